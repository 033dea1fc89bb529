//! Boxes on the path that see, make or change packets.

mod ceten;
mod eten;
pub mod fec;

pub use ceten::{Meter, Traceback};
pub use eten::Reporter;
