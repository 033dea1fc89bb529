//! What a half may hold.

use super::*;

/// A half that holds so many bytes, of which so many are not sent.
struct Half {
    unacknowledged: u64,
    unsent: u64,
    low_water: Option<LowWater>,
}

impl Transport for Half {
    fn write(&mut self, _: u32, _: u64, len: u64) {
        self.unacknowledged += len;
        self.unsent += len;
    }

    /// There is always more.
    fn read_up_to(&mut self, bytes: u32) -> Option<Payload> {
        (bytes > 0).then_some(Payload { stream: 1, offset: 0, len: bytes })
    }

    fn close(&mut self) {}

    fn unacknowledged(&self) -> u64 {
        self.unacknowledged
    }

    fn unsent(&self) -> u64 {
        self.unsent
    }

    fn readable(&self) -> u64 {
        u64::MAX
    }

    fn segment_size(&self) -> u32 {
        1000
    }

    fn notify_at(&mut self, low_water: LowWater) {
        self.low_water = Some(low_water);
    }

    fn abort(&mut self) {}

    fn hold_end(&mut self) {}

    fn release_end(&mut self, _: Time) {}
}

/// What a half holds and waits for once it has got what it may, of so much that it had.
fn filled(policy: Policy, unacknowledged: u64, unsent: u64) -> Half {
    let mut relay = Relay::new(policy);
    let mut halves = [(0, 0), (unacknowledged, unsent)].map(|(unacknowledged, unsent)| Half {
        unacknowledged,
        unsent,
        low_water: None,
    });
    let [near, far] = &mut halves;
    relay.pass(Side::Client, near, far);
    let [_, far] = halves;
    far
}

const POLICY: Policy =
    Policy { capacity: Some(40_000), waiting: 4000, teardown: Teardown::Spoofed };

#[test]
fn as_much_waits_as_is_in_flight() {
    for (in_flight, waits) in [(0, 4000), (3000, 4000), (10_000, 10_000)] {
        let half = filled(POLICY, in_flight, 0);
        assert_eq!((half.unacknowledged, half.unsent), (in_flight + waits, waits));
        assert_eq!(half.low_water, Some(LowWater::Unsent(waits / 2)));
    }
}

#[test]
fn while_a_segment_is_repaired_what_waits_does_not_run_out() {
    let mut half = filled(POLICY, 10_000, 0);
    // All is sent, and nothing acknowledged, up to the capacity.
    for (unacknowledged, low_water) in
        [(20_000, LowWater::Unsent(10_000)), (40_000, LowWater::Unacknowledged(30_000))]
    {
        assert_eq!(half.unacknowledged, unacknowledged);
        half = filled(POLICY, unacknowledged, 0);
        assert_eq!(half.low_water, Some(low_water));
    }
}

#[test]
fn without_a_capacity_there_is_always_room() {
    let policy = Policy { capacity: None, ..POLICY };
    let limits = policy.limits(&filled(POLICY, 10_000, 0), None);
    assert_eq!((limits.held, limits.waiting), (u64::MAX, u64::MAX));
}
