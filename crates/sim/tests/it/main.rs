//! All integration tests of the crate, in one binary: it links once.

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
mod links;
mod mistakes;
mod outages;
mod properties;
mod strangers;
