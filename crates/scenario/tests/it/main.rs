//! All integration tests of the crate, in one binary: it links once.

mod common;
mod errors;
mod testbed;
