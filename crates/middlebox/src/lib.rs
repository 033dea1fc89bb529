//! Boxes on the path that see, make or change packets.

mod eten;

pub use eten::Reporter;
