//! Congestion controls of the lab for the kernel's TCP, in BPF (`struct_ops`).
//!
//! Each is a small program in `bpf/`, which the kernel runs for each acknowledgment of the connections that use it.
//! The kernel has no floating-point numbers in BPF: increases are multiples of 2^-24 segments, rounded down. The
//! settings and the constants are those of the `tcp` crate; the loader writes them into the program's read-only
//! data.
//!
//! libbpf loads the programs, by `libbpf-rs`: `aya`, the other maintained loader, has no `struct_ops`. It links
//! libelf and zlib dynamically.
//!
//! Linux only.

#![cfg(target_os = "linux")]

mod control;
mod error;
mod kernel;
mod pins;
mod record;
mod settings;

pub use control::{Control, Loaded};
pub use error::Error;
pub use pins::{Listed, Pinned, list, load, unload};
pub use record::Call;

/// Where the kernel shows BPF objects.
const BPFFS: &str = "/sys/fs/bpf";
