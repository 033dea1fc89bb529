//! The table of functions that packetdrill calls (its `packetdrill.h`), and `getsockopt` for the
//! calls that it makes past the table.
#![allow(unsafe_code, reason = "the shared object's interface is made of C functions")]

mod network;
mod readiness;
mod sockets;
mod transfer;

use crate::profile::Setup;
use crate::shared::Shared;
use crate::stack::Stack;
use core::ffi::{CStr, c_char};
use core::ptr;
use libc::{
    c_int, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd,
    size_t, sockaddr, socklen_t, ssize_t, timeval, timezone, useconds_t,
};
use rustix::io::Errno;
use std::process;
use std::sync::OnceLock;

use network::{gettimeofday, netdev_receive, netdev_send, usleep};
use readiness::{epoll_create, epoll_ctl, epoll_wait, poll};
pub use sockets::getsockopt;
use sockets::{accept, bind, close, connect, fcntl, ioctl, listen, setsockopt, shutdown, socket};
use transfer::{read, readv, recv, recvfrom, recvmsg, send, sendmsg, sendto, write, writev};

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

/// The stack of this process. It is never dropped: packetdrill uses its sockets until it exits.
static STACK: OnceLock<Shared> = OnceLock::new();

/// Fills `interface` with the functions; `flags` is the value of `--so_flags` ([`Setup`]). Invalid
/// flags end the process with a message, because the interface has no other way to refuse.
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
    getsockopt: sockets::getsockopt_of,
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

/// Whether a call on a descriptor may block.
fn blocking(fd: c_int, flags: c_int) -> Result<bool, Errno> {
    let nonblocking = now(|stack| stack.is_nonblocking(fd))?;
    Ok(!nonblocking && flags & libc::MSG_DONTWAIT == 0)
}

// Pipes and files belong to the kernel; their descriptors cannot be spliced with ours.

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
    reply(Err(Errno::NOSYS))
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Interface>() == 264);
