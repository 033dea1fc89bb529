//! Boxes on the path that see, make or change packets.

mod detection;
mod eten;
mod forward;

pub use detection::Reading;
pub use eten::Reporter;
pub use forward::Forwarder;
