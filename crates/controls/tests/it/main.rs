//! The controls in the kernel of this machine.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod agreement;
mod traces;

use live::rights;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kernel's description of its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The kernel has one control of a name.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Leave to load controls; `None`, and a word about it, where that is not permitted.
fn permitted() -> Option<MutexGuard<'static, ()>> {
    let mut missing = rights::missing(&[rights::NET_ADMIN, rights::SYS_ADMIN]);
    missing.extend((!Path::new(BTF).exists()).then_some(BTF));
    if missing.is_empty() {
        return Some(ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner));
    }
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: it lacks {}", missing.join(", "));
    None
}
