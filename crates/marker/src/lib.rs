//! The base station of SPEP in the kernel (`obanaik2003` §4.2), in BPF.
//!
//! The program in `bpf/` does what the box `spep` of the crate `middlebox` does: it writes into the packets that leave
//! by an interface which packets of their flow have left by it. The kernel runs it where packets leave (tcx, Linux 6.6
//! or newer), before the queue of the interface. It is there as long as its [`Marker`], and not longer than the
//! process, however that ends.
//!
//! Linux only.

#![cfg(target_os = "linux")]

mod program;

pub use program::{Counts, Error, Marker, Measured, Settings};
