//! All integration tests of the crate, in one binary: it links once.

mod bytes;
mod snapshots;
mod srp;
