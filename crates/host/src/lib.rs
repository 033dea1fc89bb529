//! Hosts, applications, and boxes on the path.
//!
//! A [`Host`] is the stack around its connections: it demultiplexes packets, has listeners, chooses
//! initial sequence numbers and ports, and has one wake for the timers of all connections. A
//! [`Middlebox`] sees the packets that pass a node.

mod application;
mod boxes;
mod host;
mod middlebox;
mod shared_probe;
mod tfrc;
pub mod traffic;
mod workload;

pub use application::{Application, Bytes, Transport};
pub use boxes::Boxes;
pub use host::{
    AdoptError, Binding, ConnectionId, ConnectionSnapshot, FourTuple, Host, HostSnapshot, Inlet,
    Listener, Opening, Ordered, Outlet, Prefix, Served, Settings, Statistics,
};
pub use middlebox::{
    Context, DropReason, HostIndication, LinkEvent, Middlebox, Outbox, Outgoing, Port, Verdict,
};
pub use tfrc::{LossCounts, LossHistory, TfrcReceiver, TfrcSender};
pub use traffic::{
    ApplicationSettings, BufferedSource, DatagramFlow, DatagramSink, DatagramSource, Departures,
    Ends, OnOff, Pace, PacedSource, Place, Progress, Reports, Requester, Requests, Responder, Role,
    Sink, SlowSink, Source, Traffic, Transfer,
};
pub use workload::{Arrivals, Sizes, Workload};
