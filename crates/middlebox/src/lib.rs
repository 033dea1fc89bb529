//! Boxes on the path that see, make or change packets.

mod ceten;
mod detection;
mod eten;
mod forward;

pub use ceten::{Meter, Traceback};
pub use detection::Reading;
pub use eten::Reporter;
pub use forward::Forwarder;
