//! The deterministic simulator: virtual time over hosts, links and boxes.
//!
//! [`Network`] says what there is; [`World`] runs it. The same network and seed give the same run,
//! bit for bit, on any machine: events are ordered by (time, component), components by
//! declaration, and all chance comes from named sub-streams.

mod address;
mod bytes;
mod digest;
mod fabric;
mod mistakes;
mod network;
mod node;
mod observer;
mod slab;
mod switches;
mod world;

pub use bytes::{ByteFault, Capture, CapturePoint};
pub use digest::Digest;
pub use network::{LinkId, Network, NodeId, Roaming};
pub use observer::{FlowSample, QueueSample, Series, TraceTarget};
pub use world::World;
