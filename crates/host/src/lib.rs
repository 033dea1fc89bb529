//! What stands around a connection: hosts, applications, and boxes on the path.
//!
//! A [`Host`] owns what a real host owns: it takes packets to connections, listens, numbers
//! connections, and keeps the timers of all of them behind one wake. A [`Middlebox`] sees the
//! packets that pass a node.

mod application;
mod boxes;
mod host;
mod middlebox;
mod shared_probe;
mod traffic;
mod workload;

pub use application::{Application, Bytes};
pub use boxes::Boxes;
pub use host::{
    AdoptError, Binding, ConnectionId, ConnectionSnapshot, FourTuple, Host, HostSnapshot, Inlet,
    Listener, Opening, Outlet, Prefix, Settings, Statistics,
};
pub use middlebox::{
    Context, DropReason, HostIndication, LinkEvent, Middlebox, Outbox, Port, Verdict,
};
pub use traffic::{
    BufferedSource, DatagramFlow, DatagramSink, DatagramSource, Dialogue, OnOff, PacedSource,
    Requester, Responder, Sink, SlowSink, Source, Traffic,
};
pub use workload::{Arrivals, Sizes, Workload};
