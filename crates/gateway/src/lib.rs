//! `lasthopd`: a gateway that carries the TCP connections of its users over a bad hop.
//!
//! Linux only.

#![cfg(target_os = "linux")]

mod control;
mod daemon;
pub mod doctor;
pub mod install;
pub mod logs;
mod metrics;
mod network;
mod peer;
mod plane;
mod service;
mod serving;
mod status;

pub use control::{Control, SOCKET, status};
pub use daemon::{Daemon, Error};
pub use metrics::Metrics;
pub use peer::{PeerError, public_key};
pub use service::{Observe, Service, run};
pub use status::{Device, Observation, Packets, Status};
