//! Two hosts over a network that loses, doubles, delays, reorders, corrupts and marks, with
//! applications that write, read, close and abort as they like: both streams arrive whole, in order
//! and once, both ends are forgotten, and nothing remains to be done.

mod cases;
mod host;
mod limit;
mod peer;
mod world;

use cases::Case;
use proptest::prelude::*;
use world::World;

fn case() -> impl Strategy<Value = Case> {
    let both_open = prop::bool::weighted(0.1);
    ([cases::end(), cases::end()], cases::luck(), both_open, any::<u64>()).prop_map(
        |(mut ends, luck, both_open, seed)| {
            if ends.iter().any(|end| end.aborts) {
                // A reset may be lost, and who only listens does not notice (RFC 9293 §3.5.1).
                ends.iter_mut().for_each(cases::End::ask_silent_peers);
            }
            Case { ends, luck, queues: None, both_open, seed }
        },
    )
}

/// A thousand; `PROPTEST_CASES` may say otherwise.
fn count() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(1000),
    }
}

proptest! {
    #![proptest_config(count())]

    /// And connections that are watched, stored and restored meanwhile, under another clock, send
    /// the same packets at the same times.
    #[test]
    fn streams_arrive_and_connections_end(case in case()) {
        let mut plain = World::new(&case, false);
        plain.run();
        plain.verify();
        let mut restored = World::new(&case, true);
        restored.run();
        restored.verify();
        for (one, other) in plain.trace.iter().zip(&restored.trace) {
            prop_assert_eq!(one, other);
        }
        prop_assert_eq!(plain.trace.len(), restored.trace.len());
    }

    /// Without losses, in order and with timeouts above the longest round trip: no timeout, nothing
    /// is sent twice but what probes a window, and all is there a round trip per segment after the
    /// applications' last act.
    #[test]
    fn nothing_is_sent_twice_where_nothing_is_lost(case in cases::undisturbed()) {
        for restores in [false, true] {
            let mut world = World::new(&case, restores);
            world.run();
            world.verify();
            world.verify_undisturbed();
        }
    }
}
