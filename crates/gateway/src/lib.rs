//! `lasthopd`: a gateway that carries the TCP connections of its users over a bad hop.
//!
//! Linux only.

#![cfg(target_os = "linux")]

mod capture;
#[cfg(feature = "controls")]
pub mod cc;
mod connections;
mod control;
mod counted;
mod daemon;
pub mod doctor;
mod ending;
mod error;
mod esp;
pub mod handover;
mod hop_watch;
mod host_settings;
pub mod install;
mod journal;
mod link_socket;
pub mod logs;
mod lost;
mod manager;
mod marking;
mod metrics;
mod mhp;
mod modes;
mod network;
mod peer;
mod placed;
mod plane;
mod records;
mod reload;
mod secret;
mod service;
mod serving;
mod state_files;
mod status;
pub mod top;
mod tunnel;
mod workers;

pub use capture::{Capture, Captured, Stop};
pub use connections::{By, Connection, Connections, How, Rates, Record, Seen, State, User};
pub use control::{SOCKET, capture, connections, drain, handoff, reload, status, upgrade};
pub use daemon::Daemon;
pub use error::Error;
pub use marking::MarkingError;
pub use peer::{PeerError, make_network_key, public_key};
pub use reload::{read, source};
pub use service::{Service, run};
pub use state_files::clean_up;
pub use status::{Device, Observation, Packets, Status};
