//! The deterministic simulator: virtual time over hosts, links and boxes.
//!
//! [`Topology`] describes nodes and links; [`World`] runs them. The same topology and seed give the same run,
//! bit for bit, on any machine: events are ordered by (time, component), components by
//! declaration, and all random numbers come from named sub-streams.

mod address;
mod bytes;
mod digest;
mod mistakes;
mod network;
mod node;
mod observer;
mod slab;
mod topology;
mod world;

pub use bytes::{ByteFault, Capture, CapturePoint};
pub use digest::Digest;
pub use observer::{BoxSample, FlowSample, QueueSample, Series, TraceTarget};
pub use topology::{LinkId, NodeId, Roaming, Topology};
pub use world::World;
