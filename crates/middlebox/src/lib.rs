//! Boxes on the path that see, make or change packets.

mod attack;
mod eten;

pub use attack::{Aim, Forgery, Guesser, Tap};
pub use eten::Reporter;
