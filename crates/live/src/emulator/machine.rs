//! What the machine gives the emulator's thread, and what it takes away.

use base::Duration;
use core::num::NonZeroU64;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use std::fs;

/// Wakes the calling thread at the time that it asks for, before others, and keeps what memory the
/// process has touched from being reclaimed meanwhile; says whether real-time priority was
/// permitted.
pub(super) fn hurry() -> bool {
    // Reading a page back takes milliseconds. Without the permission, memory stays unlocked.
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
    // Otherwise a timer may be 50 us late. It cannot fail for the calling thread.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // SAFETY: the structure has only integers, more than one in musl, and lives until the call returns; 0 is the
    // calling thread.
    #[expect(unsafe_code, reason = "rustix has no sched_setscheduler: see above")]
    let result = unsafe {
        let mut priority: libc::sched_param = core::mem::zeroed();
        priority.sched_priority = 1;
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority)
    };
    result == 0
}

/// Unlocks the memory.
pub(super) fn relax() {
    let _ = munlockall();
}

/// The time that the hypervisor took from all processors of the machine ("steal" in proc_stat(5)),
/// since boot; zero where it is not reported.
pub(super) fn stolen() -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat.lines().next().and_then(|all| all.split_whitespace().nth(8));
    let ticks: u64 = ticks.and_then(|ticks| ticks.parse().ok()).unwrap_or(0);
    Duration::from_nanos(ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

/// How long the calling thread has run, and how long it had to wait for a processor.
pub(super) fn scheduled() -> (Duration, Duration) {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let mut spans = stat.split_whitespace().map(|nanos| nanos.parse().unwrap_or(0));
    let mut next = || Duration::from_nanos(spans.next().unwrap_or(0));
    (next(), next())
}
