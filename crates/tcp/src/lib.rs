//! A TCP endpoint as a plain state machine.
//!
//! Segments, indications and the time go in; segments, events and the next deadline come out. It
//! opens no socket, reads no clock and draws no random number.
//!
//! - [`Connection`] is the whole of it: handshake, data in both directions, close.
//! - [`Recovery`] detects losses, a [`congestion::CongestionControl`] sizes the window, and
//!   [`mechanism`]s say what a loss means. None of them knows the others.
//! - [`Indication`] is the one door by which layers below, routers and peers tell a connection
//!   something.

mod config;
pub mod congestion;
mod connection;
mod event;
mod indication;
pub mod mechanism;
mod ready;
mod reassembly;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
mod state;
mod stream;

pub use config::{
    Config, Estimator, InitialWindow, KeepAlive, Pipe, Reduction, Restart, Rto, SsthreshOnBackoff,
    Validation,
};
pub use connection::{
    AdoptError, Connection, Events, FastPath, FastPathOutcome, Identity, Reader, Side, Snapshot,
    Transmit,
};
pub use event::{Event, Refusal};
pub use indication::{Connectivity, Indication, Source, Subject};
pub use recovery::Recovery;
pub use sender::Statistics;
pub use state::{Info, Pressure, Standing, State, Vitals};
