//! `lasthopd`: a gateway that carries the TCP connections of its users over a bad hop.
//!
//! Linux only.

#![cfg(target_os = "linux")]

mod daemon;
mod network;

pub use daemon::{Daemon, Error};
