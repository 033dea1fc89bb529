//! Boxes on the path that see, make or change packets.

mod eten;
mod forward;

pub use eten::Reporter;
pub use forward::Forwarder;
