//! By when everything must have arrived.

use crate::exchange::cases::{Case, End};
use crate::exchange::host::Host;
use base::{Duration, Time};
use tcp::Recovery;
use tcp::mechanism::Mechanism;

/// The limit that follows from the settings.
#[derive(Debug)]
pub(crate) struct Limit {
    /// When something last went wrong, or an application last did something.
    pub(crate) disturbed_at: Time,
    /// Everything has arrived then.
    pub(crate) at: Time,
    /// The longest round trip.
    round_trip: Duration,
    /// All that may be lost in waiting for timers.
    stalls: Duration,
    /// Octets of either end that any round trip moves.
    pace: [u64; 2],
}

impl Limit {
    /// Round trips for the handshake, the FINs and their acknowledgments.
    const EXTRA: u64 = 6;

    pub(crate) fn new(case: &Case) -> Limit {
        let [one, two] = &case.ends;
        let maximum = one.config.rto.maximum.max(two.config.rto.maximum);
        let habits = [&one.habits, &two.habits];
        // What was lost last is sent again by a timeout at the latest, which finds everything
        // outstanding lost. Of what a receiver has reported and discarded, the next one finds out,
        // for only what was never reported goes after the first (RFC 6675 §5.1). Where a window
        // has shrunk to nothing, the first only probes it. A tail loss probe, after a timeout at
        // most, precedes the timeout (RFC 8985 §7.3). After a timeout, a notice may spend the window of
        // one segment on one out of order; without SACK its acknowledgment makes no room. F-RTO takes the
        // first acknowledgment after a timeout for a late one if those before it were lost (RFC 5682 §3, step
        // 3b), and then less than three segments wait for the next timeout.
        let notices = [one, two].iter().any(|end| {
            let heeds = |mechanism: &Mechanism| {
                matches!(
                    mechanism,
                    Mechanism::Eten(_) | Mechanism::ForwardEten(_) | Mechanism::Eln(_)
                )
            };
            !end.config.recovery.needs_sack() && end.config.mechanisms.iter().any(heeds)
        });
        let probes = [one, two].iter().any(|end| end.config.recovery == Recovery::Rack);
        let stalls = if case.queues.is_some() {
            0 // Nothing is ever lost.
        } else {
            1 + u64::from(habits.iter().any(|habits| habits.reneges > 0.0))
                + u64::from(habits.iter().any(|habits| habits.shrinks > 0.0))
                + u64::from(probes)
                + u64::from(notices)
                + u64::from([one, two].iter().any(|end| end.config.frto))
        };
        let mut stalls = maximum * stalls;
        if one.aborts || two.aborts {
            // A lost reset is found out by asking.
            for keep_alive in [one, two].iter().filter_map(|end| end.config.keep_alive) {
                stalls = stalls.max(keep_alive.idle + keep_alive.interval);
            }
        }
        Limit {
            disturbed_at: Time::ZERO,
            at: Time::NEVER,
            round_trip: case.longest_round_trip(),
            stalls,
            pace: [pace(one, two), pace(two, one)],
        }
    }

    /// Something happens at `at`: what is not there yet has as long as it takes.
    pub(crate) fn disturb(&mut self, at: Time, hosts: &[Host; 2]) {
        self.disturbed_at = self.disturbed_at.max(at);
        let trips = [0, 1].map(|i| {
            let (host, peer) = (&hosts[i], &hosts[1 - i]);
            (host.total - peer.read).div_ceil(self.pace[i]) + host.written.len() as u64
        });
        let trips = trips[0].max(trips[1]) + Limit::EXTRA;
        self.at = self.disturbed_at + self.stalls + self.round_trip * trips;
    }
}

/// What one end gets through to the other in a round trip at least: a segment, or half of the
/// window (RFC 9293 §3.8.6.2.1). Options and fields take at most 40 bytes of a segment.
fn pace(from: &End, to: &End) -> u64 {
    let segment = from.config.mss.min(to.config.mss) - 40;
    u64::from(segment).min(u64::from(to.config.receive_window.initial).div_ceil(2))
}
