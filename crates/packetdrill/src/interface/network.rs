//! The network and the time, from packetdrill's side.

use super::{User, nothing, shared};
use crate::memory::{bytes, bytes_mut};
use base::Duration;
use core::ptr;
use libc::{c_int, c_longlong, c_void, size_t, timeval, timezone, useconds_t};
use rustix::io::Errno;

pub(super) unsafe extern "C" fn netdev_send(_: User, packet: *const c_void, size: size_t) -> c_int {
    // SAFETY: packetdrill's buffer holds the packet.
    let packet = unsafe { bytes(packet, size) };
    nothing(packet.and_then(|packet| {
        shared()?.receive(packet);
        Ok(())
    }))
}

pub(super) unsafe extern "C" fn netdev_receive(
    _: User,
    into: *mut c_void,
    size: *mut size_t,
    at: *mut c_longlong,
) -> c_int {
    let Ok(shared) = shared() else { return nothing(Err(Errno::BADF)) };
    // SAFETY: packetdrill's buffer has the size that it says, and its counts are its own. An empty
    // packet says that there is none: after an error packetdrill would try again, for ever.
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

/// The clock at the start of a script, microseconds.
const EPOCH: c_longlong = 1_000_000_000_000_000;

pub(super) extern "C" fn usleep(_: User, micros: useconds_t) -> c_int {
    nothing(shared().map(|shared| shared.sleep(Duration::from_micros(u64::from(micros)))))
}

pub(super) unsafe extern "C" fn gettimeofday(
    _: User,
    into: *mut timeval,
    _: *mut timezone,
) -> c_int {
    let Ok(shared) = shared() else { return nothing(Err(Errno::FAULT)) };
    let micros = EPOCH + (shared.time().as_nanos() / 1000) as c_longlong;
    let value = timeval { tv_sec: micros / 1_000_000, tv_usec: micros % 1_000_000 };
    // SAFETY: as of gettimeofday(2).
    unsafe { ptr::write(into, value) };
    0
}
