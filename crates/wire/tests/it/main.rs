//! All integration tests of the crate, in one binary: it links once.

mod common;
mod corpus;
mod readers;
mod roundtrip;
