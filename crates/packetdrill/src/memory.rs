//! C's structures, read and written. The callers own what the pointers point to, as they do with
//! system calls.
#![allow(unsafe_code, reason = "the shared object's interface is made of C pointers")]

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use core::{mem, ptr, slice};
use libc::{c_int, c_void, cmsghdr, iovec, msghdr, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};
use rustix::io::Errno;

/// Bytes to be read.
///
/// # Safety
/// `start` points to `length` bytes, or is null.
pub(crate) unsafe fn bytes<'a>(start: *const c_void, length: usize) -> Result<&'a [u8], Errno> {
    if start.is_null() {
        return if length == 0 { Ok(&[]) } else { Err(Errno::FAULT) };
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { slice::from_raw_parts(start.cast(), length) })
}

/// Bytes to be written.
///
/// # Safety
/// `start` points to `length` bytes without another reference, or is null.
pub(crate) unsafe fn bytes_mut<'a>(
    start: *mut c_void,
    length: usize,
) -> Result<&'a mut [u8], Errno> {
    if start.is_null() {
        return if length == 0 { Ok(&mut []) } else { Err(Errno::FAULT) };
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { slice::from_raw_parts_mut(start.cast(), length) })
}

/// All bytes of a vector.
///
/// # Safety
/// `vector` points to `count` entries, each of which says where its bytes are.
pub(crate) unsafe fn gather(vector: *const iovec, count: usize) -> Result<Vec<u8>, Errno> {
    let mut all = Vec::new();
    if vector.is_null() {
        return if count == 0 { Ok(all) } else { Err(Errno::FAULT) };
    }
    // SAFETY: the caller's promise, twice.
    unsafe {
        for part in slice::from_raw_parts(vector, count) {
            all.extend_from_slice(bytes(part.iov_base, part.iov_len)?);
        }
    }
    Ok(all)
}

/// How many bytes a vector has room for.
///
/// # Safety
/// As of [`gather`].
pub(crate) unsafe fn room(vector: *const iovec, count: usize) -> Result<usize, Errno> {
    if vector.is_null() {
        return if count == 0 { Ok(0) } else { Err(Errno::FAULT) };
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { slice::from_raw_parts(vector, count) }.iter().map(|part| part.iov_len).sum())
}

/// Fills a vector, which has the room.
///
/// # Safety
/// As of [`gather`], and there is no other reference to those bytes.
pub(crate) unsafe fn scatter(
    mut data: &[u8],
    vector: *const iovec,
    count: usize,
) -> Result<(), Errno> {
    if data.is_empty() {
        return Ok(());
    }
    // SAFETY: the caller's promise, twice.
    unsafe {
        for part in slice::from_raw_parts(vector, count) {
            let (head, tail) = data.split_at(part.iov_len.min(data.len()));
            bytes_mut(part.iov_base, head.len())?.copy_from_slice(head);
            data = tail;
        }
    }
    Ok(())
}

/// An address of either family.
///
/// # Safety
/// `address` points to `length` bytes, or is null.
pub(crate) unsafe fn address(
    address: *const sockaddr,
    length: socklen_t,
) -> Result<SocketAddr, Errno> {
    let length = length as usize;
    if address.is_null() {
        return Err(Errno::FAULT);
    }
    if length < mem::size_of::<sockaddr_in>() {
        return Err(Errno::INVAL);
    }
    // SAFETY: the caller's promise, and each structure is read only if it is all there.
    unsafe {
        match c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let found: sockaddr_in = ptr::read_unaligned(address.cast());
                let ip = Ipv4Addr::from_bits(u32::from_be(found.sin_addr.s_addr));
                Ok(SocketAddr::new(ip.into(), u16::from_be(found.sin_port)))
            }
            libc::AF_INET6 if length >= mem::size_of::<sockaddr_in6>() => {
                let found: sockaddr_in6 = ptr::read_unaligned(address.cast());
                let ip = Ipv6Addr::from(found.sin6_addr.s6_addr);
                Ok(SocketAddr::new(ip.into(), u16::from_be(found.sin6_port)))
            }
            libc::AF_INET6 => Err(Errno::INVAL),
            _ => Err(Errno::AFNOSUPPORT),
        }
    }
}

/// Writes an address, cut off where there is no room, and how long it is.
///
/// # Safety
/// `length` points to the number of bytes at `address`, or either is null.
pub(crate) unsafe fn put_address(
    found: SocketAddr,
    address: *mut sockaddr,
    length: *mut socklen_t,
) {
    if address.is_null() || length.is_null() {
        return;
    }
    match found {
        SocketAddr::V4(found) => {
            let value = sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: found.port().to_be(),
                sin_addr: libc::in_addr { s_addr: found.ip().to_bits().to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: the caller's promise.
            unsafe { put(&value, address.cast(), length) };
        }
        SocketAddr::V6(found) => {
            let value = sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: found.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: found.ip().octets() },
                sin6_scope_id: 0,
            };
            // SAFETY: the caller's promise.
            unsafe { put(&value, address.cast(), length) };
        }
    }
}

/// # Safety
/// `length` points to the number of bytes at `into`.
unsafe fn put<T>(value: &T, into: *mut u8, length: *mut socklen_t) {
    let size = mem::size_of::<T>();
    // SAFETY: the caller's promise; no more is copied than there is room for.
    unsafe {
        ptr::copy_nonoverlapping(ptr::from_ref(value).cast(), into, size.min(*length as usize));
        *length = size as socklen_t;
    }
}

/// Writes an option's value, cut off where there is no room, and how long it then is.
///
/// # Safety
/// `length` points to the number of bytes at `into`, or either is null.
pub(crate) unsafe fn put_value(
    value: &[u8],
    into: *mut c_void,
    length: *mut socklen_t,
) -> Result<(), Errno> {
    if length.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: the caller's promise, twice.
    unsafe {
        let size = value.len().min(*length as usize);
        bytes_mut(into, size)?.copy_from_slice(&value[..size]);
        *length = size as socklen_t;
    }
    Ok(())
}

/// Writes one control message with a number, or none, behind a message.
///
/// # Safety
/// `message` points to a message, whose control buffer is as long as it says.
pub(crate) unsafe fn put_control(message: *mut msghdr, number: Option<(c_int, c_int, c_int)>) {
    // SAFETY: the caller's promise; the macros' functions stay within the buffer if it has the room.
    unsafe {
        let room = (*message).msg_controllen;
        (*message).msg_controllen = 0;
        (*message).msg_flags = 0;
        let Some((level, kind, value)) = number else { return };
        let size = mem::size_of::<c_int>() as u32;
        if (*message).msg_control.is_null() || room < libc::CMSG_SPACE(size) as usize {
            (*message).msg_flags = libc::MSG_CTRUNC;
            return;
        }
        (*message).msg_controllen = libc::CMSG_SPACE(size) as _;
        let control: *mut cmsghdr = libc::CMSG_FIRSTHDR(message);
        (*control).cmsg_level = level;
        (*control).cmsg_type = kind;
        (*control).cmsg_len = libc::CMSG_LEN(size) as _;
        ptr::write_unaligned(libc::CMSG_DATA(control).cast(), value);
    }
}
