//! All integration tests of the crate, in one binary: it links once.
#![allow(clippy::unwrap_used)] // A test that cannot go on may say so in any way.

mod attacks;
mod bbr;
mod boxes;
mod bytes;
mod ceten;
mod coding;
mod common;
mod connectivity_attacks;
mod datagrams;
mod digests;
mod eten;
mod fast_open;
mod hybla;
mod hystart;
mod ipv6;
mod journals;
mod latency;
mod links;
mod mended_spoofer;
mod mhp;
mod mobility;
mod pacing;
mod path_mtu;
mod per_packet;
mod receive_window;
mod runs;
mod snoop;
mod spep;
mod spep_attacks;
mod spoofing;
mod sweeps;
mod tfrc;
mod traffic;
mod tunnels;
mod workloads;
