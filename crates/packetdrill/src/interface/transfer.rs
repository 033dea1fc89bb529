//! Reading and writing.

use super::{User, blocking, now, reply, shared};
use crate::memory::{address, bytes, bytes_mut, gather, put_control, room, scatter};
use crate::transfer::{Reading, Writing};
use core::net::SocketAddr;
use libc::{c_int, c_void, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};
use rustix::io::Errno;

const READ_FLAGS: c_int = libc::MSG_PEEK | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
const WRITE_FLAGS: c_int =
    libc::MSG_MORE | libc::MSG_EOR | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_FASTOPEN;

fn read_into(fd: c_int, into: &mut [u8], flags: c_int) -> Result<usize, Errno> {
    if flags & !READ_FLAGS != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let how = Reading { peek: flags & libc::MSG_PEEK != 0 };
    shared()?.wait_for(blocking(fd, flags)?, None, |stack| stack.read(fd, into, how))
}

/// Writes `bytes`; `to` is the destination of a call that may open a connection.
fn write_all(
    fd: c_int,
    bytes: &[u8],
    flags: c_int,
    to: Result<SocketAddr, Errno>,
) -> Result<usize, Errno> {
    if flags & !WRITE_FLAGS != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let fast_open = flags & libc::MSG_FASTOPEN != 0;
    if now(|stack| stack.opens_by_data(fd, fast_open))? {
        let blocks = blocking(fd, flags)?;
        let taken = now(|stack| stack.connect_with(fd, to, bytes, blocks))?;
        if blocks {
            shared()?.wait_for(true, None, |stack| stack.connected(fd))?;
        }
        return Ok(taken);
    }
    let how =
        Writing { more: flags & libc::MSG_MORE != 0, end_of_record: flags & libc::MSG_EOR != 0 };
    let mut done = 0;
    let end = shared()?.wait_for(blocking(fd, flags)?, None, |stack| {
        loop {
            done += stack.write(fd, &bytes[done..], how)?;
            if done == bytes.len() {
                return Ok(());
            }
        }
    });
    match end {
        Err(error) if done == 0 => Err(error),
        _ => Ok(done),
    }
}

fn length(result: Result<usize, Errno>) -> ssize_t {
    reply(result.map(|length| length as i64))
}

pub(super) unsafe extern "C" fn read(
    user: User,
    fd: c_int,
    into: *mut c_void,
    size: size_t,
) -> ssize_t {
    // SAFETY: as of read(2).
    unsafe { recv(user, fd, into, size, 0) }
}

pub(super) unsafe extern "C" fn recv(
    _: User,
    fd: c_int,
    into: *mut c_void,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as of recv(2).
    let into = unsafe { bytes_mut(into, size) };
    length(into.and_then(|into| read_into(fd, into, flags)))
}

pub(super) unsafe extern "C" fn recvfrom(
    user: User,
    fd: c_int,
    into: *mut c_void,
    size: size_t,
    flags: c_int,
    _: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    // A stream has no source address per read.
    // SAFETY: as of recvfrom(2).
    unsafe {
        if !address_length.is_null() {
            *address_length = 0;
        }
        recv(user, fd, into, size, flags)
    }
}

/// # Safety
/// As of `readv(2)`.
unsafe fn read_vector(
    fd: c_int,
    vector: *const iovec,
    count: usize,
    flags: c_int,
) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let mut data = vec![0; unsafe { room(vector, count) }?];
    let length = read_into(fd, &mut data, flags)?;
    // SAFETY: the caller's promise.
    unsafe { scatter(&data[..length], vector, count) }?;
    Ok(length)
}

pub(super) unsafe extern "C" fn readv(
    _: User,
    fd: c_int,
    vector: *const iovec,
    count: c_int,
) -> ssize_t {
    let count = usize::try_from(count).map_err(|_| Errno::INVAL);
    // SAFETY: as of readv(2).
    length(count.and_then(|count| unsafe { read_vector(fd, vector, count, 0) }))
}

pub(super) unsafe extern "C" fn recvmsg(
    _: User,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    if message.is_null() {
        return length(Err(Errno::FAULT));
    }
    // SAFETY: as of recvmsg(2).
    let result = unsafe {
        read_vector(fd, (*message).msg_iov, (*message).msg_iovlen, flags).inspect(|_| {
            let left = now(|stack| stack.reported_inq(fd)).ok().flatten();
            let control = left.map(|left| (libc::SOL_TCP, libc::TCP_CM_INQ, left as c_int));
            put_control(message, control);
            (*message).msg_namelen = 0;
        })
    };
    length(result)
}

pub(super) unsafe extern "C" fn write(
    user: User,
    fd: c_int,
    from: *const c_void,
    size: size_t,
) -> ssize_t {
    // SAFETY: as of write(2).
    unsafe { send(user, fd, from, size, 0) }
}

pub(super) unsafe extern "C" fn send(
    _: User,
    fd: c_int,
    from: *const c_void,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as of send(2).
    let from = unsafe { bytes(from, size) };
    length(from.and_then(|from| write_all(fd, from, flags, Err(Errno::DESTADDRREQ))))
}

pub(super) unsafe extern "C" fn sendto(
    _: User,
    fd: c_int,
    from: *const c_void,
    size: size_t,
    flags: c_int,
    to: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    // The destination address of a connected stream is ignored.
    // SAFETY: as of sendto(2).
    let (from, to) = unsafe { (bytes(from, size), address(to, address_length)) };
    length(from.and_then(|from| write_all(fd, from, flags, to)))
}

pub(super) unsafe extern "C" fn writev(
    _: User,
    fd: c_int,
    vector: *const iovec,
    count: c_int,
) -> ssize_t {
    let count = usize::try_from(count).map_err(|_| Errno::INVAL);
    // SAFETY: as of writev(2).
    let data = count.and_then(|count| unsafe { gather(vector, count) });
    length(data.and_then(|data| write_all(fd, &data, 0, Err(Errno::DESTADDRREQ))))
}

pub(super) unsafe extern "C" fn sendmsg(
    _: User,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    if message.is_null() {
        return length(Err(Errno::FAULT));
    }
    // SAFETY: as of sendmsg(2).
    let (data, to) = unsafe {
        let data = gather((*message).msg_iov, (*message).msg_iovlen);
        (data, address((*message).msg_name.cast(), (*message).msg_namelen))
    };
    length(data.and_then(|data| write_all(fd, &data, flags, to)))
}
