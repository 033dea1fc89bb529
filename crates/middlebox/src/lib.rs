//! Boxes on the path that see, make or change packets.

mod eten;
pub mod fec;

pub use eten::Reporter;
