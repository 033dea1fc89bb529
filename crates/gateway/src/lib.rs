//! `lasthopd`: a gateway that carries the TCP connections of its users over a bad hop.
//!
//! Linux only.

#![cfg(target_os = "linux")]

mod daemon;
mod network;
mod peer;
mod plane;

pub use daemon::{Daemon, Error};
pub use peer::{PeerError, public_key};
