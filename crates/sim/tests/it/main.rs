//! All integration tests of the crate, in one binary: it links once.
#![allow(clippy::unwrap_used)] // A test that cannot go on may say so in any way.

mod analytic;
mod applications;
mod boxes;
mod bytes;
mod ceten;
mod common;
mod conduct;
mod datagrams;
mod events;
mod forward;
mod golden;
mod half_open;
mod links;
mod mistakes;
mod outages;
mod properties;
