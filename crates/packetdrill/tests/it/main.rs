//! packetdrill's table of functions, and the sockets behind it.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod blocking;
mod common;
mod fast_open;
mod interface;
mod sockets;
