//! All integration tests of the crate, in one binary: it links once.
#![allow(clippy::unwrap_used)] // A test that cannot go on may say so in any way.

mod handoffs;
mod messages;
mod resets;
mod snoop;
mod spoofer;
