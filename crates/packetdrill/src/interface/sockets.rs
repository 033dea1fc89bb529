//! Sockets: made, connected, closed, and asked about.

use super::{User, blocking, nothing, now, reply, shared};
use crate::memory::{address, bytes, put_address, put_value};
use crate::socket::Family;
use crate::sockets::Shutdown;
use core::ptr;
use libc::{c_int, c_ulong, c_void, sockaddr, socklen_t};
use rustix::io::Errno;

pub(super) extern "C" fn socket(_: User, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let result = now(|stack| {
        let family = match domain {
            libc::AF_INET => Family::Inet,
            libc::AF_INET6 => Family::Inet6,
            _ => return Err(Errno::AFNOSUPPORT),
        };
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        if kind & !flags != libc::SOCK_STREAM {
            return Err(Errno::SOCKTNOSUPPORT);
        }
        if !matches!(protocol, 0 | libc::IPPROTO_TCP) {
            return Err(Errno::PROTONOSUPPORT);
        }
        let fd = stack.socket(family)?;
        stack.set_nonblocking(fd, kind & libc::SOCK_NONBLOCK != 0)?;
        Ok(fd)
    });
    reply(result.map(i64::from))
}

pub(super) unsafe extern "C" fn bind(
    _: User,
    fd: c_int,
    to: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: as of bind(2).
    let to = unsafe { address(to, length) };
    nothing(to.and_then(|to| now(|stack| stack.bind(fd, to))))
}

pub(super) extern "C" fn listen(_: User, fd: c_int, backlog: c_int) -> c_int {
    // Linux takes a negative one for the largest.
    let backlog = u32::try_from(backlog).unwrap_or(4096).min(4096);
    nothing(now(|stack| stack.listen(fd, backlog)))
}

pub(super) unsafe extern "C" fn accept(
    _: User,
    fd: c_int,
    peer: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let result = blocking(fd, 0).and_then(|blocks| {
        let (accepted, from) = shared()?.wait_for(blocks, None, |stack| stack.accept(fd))?;
        // SAFETY: as of accept(2).
        unsafe { put_address(from, peer, length) };
        Ok(accepted)
    });
    reply(result.map(i64::from))
}

pub(super) unsafe extern "C" fn connect(
    _: User,
    fd: c_int,
    to: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: as of connect(2).
    let to = unsafe { address(to, length) };
    let result = to.and_then(|to| {
        now(|stack| stack.connect(fd, to))?;
        shared()?.wait_for(blocking(fd, 0)?, None, |stack| stack.connected(fd))
    });
    nothing(result.map_err(|error| if error == Errno::AGAIN { Errno::INPROGRESS } else { error }))
}

pub(super) extern "C" fn fcntl(_: User, fd: c_int, command: c_int, argument: c_int) -> c_int {
    let result = now(|stack| match command {
        libc::F_GETFL => {
            let blocks = !stack.is_nonblocking(fd)?;
            Ok(libc::O_RDWR | if blocks { 0 } else { libc::O_NONBLOCK })
        }
        libc::F_SETFL => {
            stack.set_nonblocking(fd, argument & libc::O_NONBLOCK != 0)?;
            Ok(0)
        }
        _ => Err(Errno::INVAL),
    });
    reply(result.map(i64::from))
}

pub(super) unsafe extern "C" fn ioctl(
    _: User,
    fd: c_int,
    request: c_ulong,
    value: *mut c_int,
) -> c_int {
    if value.is_null() {
        return nothing(Err(Errno::FAULT));
    }
    let result = now(|stack| match request {
        libc::FIONREAD => stack.readable(fd),
        libc::TIOCOUTQ => stack.unacknowledged(fd),
        _ => Err(Errno::NOTTY),
    });
    // SAFETY: as of ioctl(2).
    nothing(result.map(|count| unsafe { *value = count as c_int }))
}

pub(super) extern "C" fn close(_: User, fd: c_int) -> c_int {
    nothing(now(|stack| stack.close(fd)))
}

pub(super) extern "C" fn shutdown(_: User, fd: c_int, how: c_int) -> c_int {
    let result = now(|stack| {
        let how = match how {
            libc::SHUT_RD => Shutdown::Read,
            libc::SHUT_WR => Shutdown::Write,
            libc::SHUT_RDWR => Shutdown::Both,
            _ => return Err(Errno::INVAL),
        };
        stack.shutdown(fd, how)
    });
    nothing(result)
}

pub(super) unsafe extern "C" fn getsockopt_of(
    _: User,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    size: *mut socklen_t,
) -> c_int {
    let found = now(|stack| stack.option(fd, (level, name)));
    // SAFETY: as of getsockopt(2).
    nothing(found.and_then(|found| unsafe { put_value(&found, value, size) }))
}

/// `getsockopt(2)`, for our own sockets and, by the kernel, for others: packetdrill asks for
/// `TCP_INFO` past the table, and finds this one if the shared object is preloaded.
///
/// # Safety
/// As of the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    size: *mut socklen_t,
) -> c_int {
    // SAFETY: as of getsockopt(2).
    unsafe {
        if now(|stack| Ok(stack.has(fd))).unwrap_or(false) {
            return getsockopt_of(ptr::null_mut(), fd, level, name, value, size);
        }
        libc::syscall(libc::SYS_getsockopt, fd, level, name, value, size) as c_int
    }
}

pub(super) unsafe extern "C" fn setsockopt(
    _: User,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    size: socklen_t,
) -> c_int {
    // SAFETY: as of setsockopt(2).
    let value = unsafe { bytes(value, size as usize) };
    nothing(value.and_then(|value| now(|stack| stack.set_option(fd, (level, name), value))))
}
