//! lasthop in real time: namespaces, stacks, emulated links, and the kernel at the other end.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;
mod emulator;
mod foundation;
mod inline;
mod interop;
mod kernel;
mod pair;
mod programs;
mod stack;
mod transfer;
mod udp_sender;
mod workers;
