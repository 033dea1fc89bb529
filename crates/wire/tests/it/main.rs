//! All integration tests of the crate, in one binary: it links once.
#![allow(clippy::unwrap_used)] // A test that cannot go on may say so in any way.

mod common;
mod corpus;
mod readers;
mod roundtrip;
mod sealed;
