//! The program in the kernel of this machine.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod agreement;
mod attached;
mod frames;
mod lab;

use live::rights;
use std::io::Write as _;

/// Whether BPF programs may be loaded; if not, it says so.
fn permitted() -> bool {
    let missing = rights::missing(&[rights::NET_ADMIN, rights::SYS_ADMIN]);
    if !missing.is_empty() {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // What is printed is not shown of tests that pass, but what is written is.
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: it lacks {}", missing.join(", "));
    }
    missing.is_empty()
}
