//! The table of functions that packetdrill calls (its `packetdrill.h`), and `getsockopt` for the
//! calls that it makes past the table.
#![allow(unsafe_code, reason = "the shared object's interface is made of C functions")]

use crate::epoll::Change;
use crate::memory::{address, bytes, bytes_mut, gather, room, scatter};
use crate::memory::{put_address, put_control, put_value};
use crate::profile::Setup;
use crate::shared::Shared;
use crate::sockets::{Family, Shutdown};
use crate::stack::Stack;
use crate::transfer::{Reading, Writing};
use base::Duration;
use core::ffi::{CStr, c_char};
use core::ptr;
use libc::{
    c_int, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd,
    size_t, sockaddr, socklen_t, ssize_t, timeval, timezone, useconds_t,
};
use rustix::io::Errno;
use std::process;
use std::sync::OnceLock;

type User = *mut c_void;

/// `struct packetdrill_interface`.
///
/// `fcntl` and `ioctl` are variadic in C, with an int or a pointer to one as the third argument.
/// The calling conventions of Linux on x86-64 and on 64-bit ARM pass those like named arguments.
#[repr(C)]
#[allow(missing_docs)] // The names are those of the system calls.
pub struct Interface {
    pub userdata: User,
    pub free: extern "C" fn(User),
    pub socket: extern "C" fn(User, c_int, c_int, c_int) -> c_int,
    pub bind: unsafe extern "C" fn(User, c_int, *const sockaddr, socklen_t) -> c_int,
    pub listen: extern "C" fn(User, c_int, c_int) -> c_int,
    pub accept: unsafe extern "C" fn(User, c_int, *mut sockaddr, *mut socklen_t) -> c_int,
    pub connect: unsafe extern "C" fn(User, c_int, *const sockaddr, socklen_t) -> c_int,
    pub read: unsafe extern "C" fn(User, c_int, *mut c_void, size_t) -> ssize_t,
    pub readv: unsafe extern "C" fn(User, c_int, *const iovec, c_int) -> ssize_t,
    pub recv: unsafe extern "C" fn(User, c_int, *mut c_void, size_t, c_int) -> ssize_t,
    pub recvfrom: unsafe extern "C" fn(
        User,
        c_int,
        *mut c_void,
        size_t,
        c_int,
        *mut sockaddr,
        *mut socklen_t,
    ) -> ssize_t,
    pub recvmsg: unsafe extern "C" fn(User, c_int, *mut msghdr, c_int) -> ssize_t,
    pub write: unsafe extern "C" fn(User, c_int, *const c_void, size_t) -> ssize_t,
    pub writev: unsafe extern "C" fn(User, c_int, *const iovec, c_int) -> ssize_t,
    pub send: unsafe extern "C" fn(User, c_int, *const c_void, size_t, c_int) -> ssize_t,
    pub sendto: unsafe extern "C" fn(
        User,
        c_int,
        *const c_void,
        size_t,
        c_int,
        *const sockaddr,
        socklen_t,
    ) -> ssize_t,
    pub sendmsg: unsafe extern "C" fn(User, c_int, *const msghdr, c_int) -> ssize_t,
    pub fcntl: extern "C" fn(User, c_int, c_int, c_int) -> c_int,
    pub ioctl: unsafe extern "C" fn(User, c_int, c_ulong, *mut c_int) -> c_int,
    pub close: extern "C" fn(User, c_int) -> c_int,
    pub shutdown: extern "C" fn(User, c_int, c_int) -> c_int,
    pub getsockopt:
        unsafe extern "C" fn(User, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    pub setsockopt:
        unsafe extern "C" fn(User, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    pub poll: unsafe extern "C" fn(User, *mut pollfd, nfds_t, c_int) -> c_int,
    pub netdev_send: unsafe extern "C" fn(User, *const c_void, size_t) -> c_int,
    pub netdev_receive:
        unsafe extern "C" fn(User, *mut c_void, *mut size_t, *mut c_longlong) -> c_int,
    pub usleep: extern "C" fn(User, useconds_t) -> c_int,
    pub gettimeofday: unsafe extern "C" fn(User, *mut timeval, *mut timezone) -> c_int,
    pub epoll_create: extern "C" fn(User, c_int) -> c_int,
    pub epoll_ctl: unsafe extern "C" fn(User, c_int, c_int, c_int, *mut epoll_event) -> c_int,
    pub epoll_wait: unsafe extern "C" fn(User, c_int, *mut epoll_event, c_int, c_int) -> c_int,
    pub pipe: extern "C" fn(User, *mut c_int) -> c_int,
    pub splice:
        extern "C" fn(User, c_int, *mut loff_t, c_int, *mut loff_t, size_t, c_uint) -> ssize_t,
}

/// The stack of this process. It is there to the end: packetdrill uses its sockets to the last.
static STACK: OnceLock<Shared> = OnceLock::new();

/// The functions, for `interface`; `flags` is what `--so_flags` says ([`Setup`]). Wrong flags end
/// the process with a message: there is no other way to refuse.
///
/// # Safety
/// `flags` is a C string, or null; `interface` points to a table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(
    flags: *const c_char,
    interface: *mut Interface,
) {
    let text = match flags.is_null() {
        true => String::new(),
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(flags) }.to_string_lossy().into_owned(),
    };
    let setup: Setup = text.parse().unwrap_or_else(|error| {
        eprintln!("lasthop: {error}");
        process::exit(2)
    });
    STACK.get_or_init(|| Shared::new(Stack::new(setup)));
    // SAFETY: the caller's promise.
    unsafe { ptr::write(interface, TABLE) };
}

const TABLE: Interface = Interface {
    userdata: ptr::null_mut(),
    free,
    socket,
    bind,
    listen,
    accept,
    connect,
    read,
    readv,
    recv,
    recvfrom,
    recvmsg,
    write,
    writev,
    send,
    sendto,
    sendmsg,
    fcntl,
    ioctl,
    close,
    shutdown,
    getsockopt: getsockopt_of,
    setsockopt,
    poll,
    netdev_send,
    netdev_receive,
    usleep,
    gettimeofday,
    epoll_create,
    epoll_ctl,
    epoll_wait,
    pipe,
    splice,
};

/// The stack, once there is one.
fn shared() -> Result<&'static Shared, Errno> {
    STACK.get().ok_or(Errno::BADF)
}

/// A result as C has it: -1, and `errno`, for an error.
fn reply<T: TryFrom<i64>>(result: Result<i64, Errno>) -> T
where
    T::Error: core::fmt::Debug,
{
    let value = result.unwrap_or_else(|error| {
        // SAFETY: the place of errno is this thread's own.
        unsafe { *libc::__errno_location() = error.raw_os_error() };
        -1
    });
    T::try_from(value).expect("what is returned is a length or a descriptor: it fits")
}

fn nothing(result: Result<(), Errno>) -> c_int {
    reply(result.map(|()| 0))
}

/// A call that takes no time.
fn now<T>(call: impl FnOnce(&mut Stack) -> Result<T, Errno>) -> Result<T, Errno> {
    shared()?.call(call)
}

extern "C" fn free(_: User) {}

extern "C" fn socket(_: User, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
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

unsafe extern "C" fn bind(_: User, fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: as of bind(2).
    let to = unsafe { address(to, length) };
    nothing(to.and_then(|to| now(|stack| stack.bind(fd, to))))
}

extern "C" fn listen(_: User, fd: c_int, backlog: c_int) -> c_int {
    // Linux takes a negative one for the largest.
    let backlog = u32::try_from(backlog).unwrap_or(4096).min(4096);
    nothing(now(|stack| stack.listen(fd, backlog)))
}

unsafe extern "C" fn accept(
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

unsafe extern "C" fn connect(_: User, fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: as of connect(2).
    let to = unsafe { address(to, length) };
    let result = to.and_then(|to| {
        now(|stack| stack.connect(fd, to))?;
        shared()?.wait_for(blocking(fd, 0)?, None, |stack| stack.connected(fd))
    });
    nothing(result.map_err(|error| if error == Errno::AGAIN { Errno::INPROGRESS } else { error }))
}

/// Whether a call on a descriptor may block.
fn blocking(fd: c_int, flags: c_int) -> Result<bool, Errno> {
    let nonblocking = now(|stack| stack.is_nonblocking(fd))?;
    Ok(!nonblocking && flags & libc::MSG_DONTWAIT == 0)
}

const READ_FLAGS: c_int = libc::MSG_PEEK | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
const WRITE_FLAGS: c_int = libc::MSG_MORE | libc::MSG_EOR | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

fn read_into(fd: c_int, into: &mut [u8], flags: c_int) -> Result<usize, Errno> {
    if flags & !READ_FLAGS != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let how = Reading { peek: flags & libc::MSG_PEEK != 0 };
    shared()?.wait_for(blocking(fd, flags)?, None, |stack| stack.read(fd, into, how))
}

fn write_all(fd: c_int, bytes: &[u8], flags: c_int) -> Result<usize, Errno> {
    if flags & !WRITE_FLAGS != 0 {
        return Err(Errno::OPNOTSUPP);
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

unsafe extern "C" fn read(user: User, fd: c_int, into: *mut c_void, size: size_t) -> ssize_t {
    // SAFETY: as of read(2).
    unsafe { recv(user, fd, into, size, 0) }
}

unsafe extern "C" fn recv(
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

unsafe extern "C" fn recvfrom(
    user: User,
    fd: c_int,
    into: *mut c_void,
    size: size_t,
    flags: c_int,
    _: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    // A stream does not say where it comes from.
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

unsafe extern "C" fn readv(_: User, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    let count = usize::try_from(count).map_err(|_| Errno::INVAL);
    // SAFETY: as of readv(2).
    length(count.and_then(|count| unsafe { read_vector(fd, vector, count, 0) }))
}

unsafe extern "C" fn recvmsg(_: User, fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    if message.is_null() {
        return length(Err(Errno::FAULT));
    }
    // SAFETY: as of recvmsg(2).
    let result = unsafe {
        read_vector(fd, (*message).msg_iov, (*message).msg_iovlen, flags).inspect(|_| {
            let left = now(|stack| stack.told_inq(fd)).ok().flatten();
            let control = left.map(|left| (libc::SOL_TCP, libc::TCP_CM_INQ, left as c_int));
            put_control(message, control);
            (*message).msg_namelen = 0;
        })
    };
    length(result)
}

unsafe extern "C" fn write(user: User, fd: c_int, from: *const c_void, size: size_t) -> ssize_t {
    // SAFETY: as of write(2).
    unsafe { send(user, fd, from, size, 0) }
}

unsafe extern "C" fn send(
    _: User,
    fd: c_int,
    from: *const c_void,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as of send(2).
    let from = unsafe { bytes(from, size) };
    length(from.and_then(|from| write_all(fd, from, flags)))
}

unsafe extern "C" fn sendto(
    user: User,
    fd: c_int,
    from: *const c_void,
    size: size_t,
    flags: c_int,
    _: *const sockaddr,
    _: socklen_t,
) -> ssize_t {
    // A stream that is connected goes where it goes.
    // SAFETY: as of sendto(2).
    unsafe { send(user, fd, from, size, flags) }
}

unsafe extern "C" fn writev(_: User, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    let count = usize::try_from(count).map_err(|_| Errno::INVAL);
    // SAFETY: as of writev(2).
    let data = count.and_then(|count| unsafe { gather(vector, count) });
    length(data.and_then(|data| write_all(fd, &data, 0)))
}

unsafe extern "C" fn sendmsg(_: User, fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    if message.is_null() {
        return length(Err(Errno::FAULT));
    }
    // SAFETY: as of sendmsg(2).
    let data = unsafe { gather((*message).msg_iov, (*message).msg_iovlen) };
    length(data.and_then(|data| write_all(fd, &data, flags)))
}

extern "C" fn fcntl(_: User, fd: c_int, command: c_int, argument: c_int) -> c_int {
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

unsafe extern "C" fn ioctl(_: User, fd: c_int, request: c_ulong, value: *mut c_int) -> c_int {
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

extern "C" fn close(_: User, fd: c_int) -> c_int {
    nothing(now(|stack| stack.close(fd)))
}

extern "C" fn shutdown(_: User, fd: c_int, how: c_int) -> c_int {
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

unsafe extern "C" fn getsockopt_of(
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

unsafe extern "C" fn setsockopt(
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

/// A timeout in milliseconds; a negative one is none.
fn timeout(milliseconds: c_int) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// What is not there in time is nothing.
fn or_none<T: Default>(result: Result<T, Errno>) -> Result<T, Errno> {
    if matches!(result, Err(Errno::AGAIN)) { Ok(T::default()) } else { result }
}

unsafe extern "C" fn poll(_: User, fds: *mut pollfd, count: nfds_t, milliseconds: c_int) -> c_int {
    // SAFETY: as of poll(2).
    let fds = match (fds.is_null(), count) {
        (true, 1..) => return nothing(Err(Errno::FAULT)),
        (true, 0) => &mut [],
        (false, _) => unsafe { core::slice::from_raw_parts_mut(fds, count as usize) },
    };
    let asked: Vec<_> = fds.iter().map(|entry| (entry.fd, entry.events as u32)).collect();
    let result = shared().and_then(|shared| {
        or_none(shared.wait_for(true, timeout(milliseconds), |stack| {
            let ready = stack.poll(&asked);
            if ready.iter().all(|ready| *ready == 0) { Err(Errno::AGAIN) } else { Ok(ready) }
        }))
    });
    let counted = result.map(|ready| {
        let ready = ready.into_iter().chain(core::iter::repeat(0));
        for (entry, ready) in fds.iter_mut().zip(ready) {
            entry.revents = ready as i16;
        }
        fds.iter().filter(|entry| entry.revents != 0).count() as i64
    });
    reply(counted)
}

unsafe extern "C" fn netdev_send(_: User, packet: *const c_void, size: size_t) -> c_int {
    // SAFETY: packetdrill's buffer holds the packet.
    let packet = unsafe { bytes(packet, size) };
    nothing(packet.and_then(|packet| {
        shared()?.receive(packet);
        Ok(())
    }))
}

unsafe extern "C" fn netdev_receive(
    _: User,
    into: *mut c_void,
    size: *mut size_t,
    at: *mut c_longlong,
) -> c_int {
    let Ok(shared) = shared() else { return nothing(Err(Errno::BADF)) };
    // SAFETY: packetdrill's buffer has the size that it says, and its counts are its own. An empty
    // packet is how it learns that there is none: an error would make it ask again, for ever.
    unsafe {
        let Ok(into) = bytes_mut(into, *size) else { return nothing(Err(Errno::FAULT)) };
        *size = 0;
        if let Some(sent) = shared.sent() {
            let length = sent.bytes.len().min(into.len());
            into[..length].copy_from_slice(&sent.bytes[..length]);
            *size = length;
            *at = EPOCH + (sent.at.as_nanos() / 1000) as c_longlong;
        }
    }
    0
}

/// What the clock says when a script begins, microseconds.
const EPOCH: c_longlong = 1_000_000_000_000_000;

extern "C" fn usleep(_: User, micros: useconds_t) -> c_int {
    nothing(shared().map(|shared| shared.sleep(Duration::from_micros(u64::from(micros)))))
}

unsafe extern "C" fn gettimeofday(_: User, into: *mut timeval, _: *mut timezone) -> c_int {
    let Ok(shared) = shared() else { return nothing(Err(Errno::FAULT)) };
    let micros = EPOCH + (shared.time().as_nanos() / 1000) as c_longlong;
    let value = timeval { tv_sec: micros / 1_000_000, tv_usec: micros % 1_000_000 };
    // SAFETY: as of gettimeofday(2).
    unsafe { ptr::write(into, value) };
    0
}

extern "C" fn epoll_create(_: User, size: c_int) -> c_int {
    let size = if size > 0 { Ok(()) } else { Err(Errno::INVAL) };
    reply(size.and_then(|()| now(Stack::epoll_create)).map(i64::from))
}

unsafe extern "C" fn epoll_ctl(
    _: User,
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    if event.is_null() && operation != libc::EPOLL_CTL_DEL {
        return nothing(Err(Errno::FAULT));
    }
    let change = match operation {
        libc::EPOLL_CTL_DEL => Change::Delete,
        libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD => {
            // SAFETY: as of epoll_ctl(2).
            let epoll_event { events, u64: data } = unsafe { ptr::read_unaligned(event) };
            match operation {
                libc::EPOLL_CTL_ADD => Change::Add { events, data },
                _ => Change::Modify { events, data },
            }
        }
        _ => return nothing(Err(Errno::INVAL)),
    };
    nothing(now(|stack| stack.epoll_change(epoll, fd, change)))
}

unsafe extern "C" fn epoll_wait(
    _: User,
    epoll: c_int,
    into: *mut epoll_event,
    most: c_int,
    milliseconds: c_int,
) -> c_int {
    let result =
        usize::try_from(most).ok().filter(|most| *most > 0).ok_or(Errno::INVAL).and_then(|most| {
            or_none(shared()?.wait_for(true, timeout(milliseconds), |stack| {
                let ready = stack.epoll_ready(epoll, most)?;
                if ready.is_empty() { Err(Errno::AGAIN) } else { Ok(ready) }
            }))
        });
    let counted = result.map(|ready| {
        for (index, &(events, data)) in ready.iter().enumerate() {
            // SAFETY: as of epoll_wait(2): there is room for `most`.
            unsafe { ptr::write_unaligned(into.add(index), epoll_event { events, u64: data }) };
        }
        ready.len() as i64
    });
    reply(counted)
}

// Pipes and files are the kernel's business; their descriptors cannot be joined to ours.

extern "C" fn pipe(_: User, _: *mut c_int) -> c_int {
    nothing(Err(Errno::NOSYS))
}

extern "C" fn splice(
    _: User,
    _: c_int,
    _: *mut loff_t,
    _: c_int,
    _: *mut loff_t,
    _: size_t,
    _: c_uint,
) -> ssize_t {
    length(Err(Errno::NOSYS))
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Interface>() == 264);
