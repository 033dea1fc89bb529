//! A TCP endpoint as a plain state machine.
//!
//! Segments, indications and the time go in; segments, events and the next deadline come out. It
//! opens no socket, reads no clock and draws no random number.
//!
//! - [`Connection`] is the endpoint: handshake, data in both directions, close.
//! - [`Recovery`] detects losses, a [`congestion::CongestionControl`] sizes the window, and
//!   [`mechanism`]s say what a loss means. None of them knows the others.
//! - [`Indication`] carries what lower layers, routers and peers report to a connection.

mod config;
pub mod congestion;
mod connection;
mod event;
mod indication;
pub mod mechanism;
mod reassembly;
mod receive_queue;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;
mod state;
mod stream;

pub use config::{
    Config, EcnMode, Estimator, InitialWindow, KeepAlive, MtuProbing, Pipe, ReceiveWindow,
    Reduction, Restart, RoundEnd, Rto, SsthreshOnBackoff, Validation,
};
pub use connection::{
    AdoptError, Clock, Connection, Events, FastOpen, FastOpenResult, FastPath, FastPathOutcome,
    Handshake, Identity, LowWater, Predicted, Reader, Snapshot, Transmit,
};
pub use event::{DropReason, Event};
pub use indication::{Connectivity, Indication, LossCause, PeerLosses};
pub use recovery::Recovery;
pub use rtt::{RoundTrips, Rtt};
pub use sender::Statistics;
pub use state::{Info, OutstandingSegments, Pressure, RecoveryState, Side, State, Vitals};
