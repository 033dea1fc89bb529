//! Boxes on the path that see, make or change packets.

mod ceten;
mod eten;

pub use ceten::{Meter, Traceback};
pub use eten::Reporter;
