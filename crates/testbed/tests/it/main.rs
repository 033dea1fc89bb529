//! Scenarios on real packets.

#![cfg(all(target_os = "linux", feature = "packets"))]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod boxes;
mod common;
mod ends;
mod links;
mod mhp;
mod mobility;
mod path_mtu;
mod runs;
mod second_kernel;
mod shell;
mod snoop;
mod spep;
mod spoofing;
