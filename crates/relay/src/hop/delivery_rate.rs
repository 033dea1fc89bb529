//! The rate of the hop, learned from what is delivered over it.

use base::{Duration, Rate, Time};

/// The rate at which all flows together deliver in a round trip. The principle is that of BBR
/// (draft-ietf-ccwg-bbr §5.5), for the hop as a whole in place of a connection: the largest sample of the
/// last ten round trips counts, and probes show whether more would be delivered.
///
/// A sample counts if the hop was used fully, in one of two ways. Its queue was never empty, as the round
/// trips show: then the sample is the rate of the hop, replaces all others, and less is sent until the
/// queue is empty. Or the flows had always more to send than the rate allowed. Flows that are limited
/// by their own congestion windows say nothing of the hop, unless they deliver more.
#[derive(Debug)]
pub(super) struct DeliveryRate {
    round: Round,
    /// The hop was idle at some time in the round before: so it is in the round of its delivery.
    was_limited: bool,
    /// The share of the rate at which the round before sent, sixteenths.
    sent_gain: u64,
    base: Base,
    delivered_at: Time,
    /// What is known of the rate, once the hop was used fully.
    known: Option<Known>,
}

/// A round trip, or [`DeliveryRate::SHORTEST`] if that is longer.
#[derive(Debug)]
struct Round {
    began: Time,
    ends: Time,
    /// Bytes delivered.
    delivered: u64,
    /// Less was sent at some time than the rate allowed.
    is_limited: bool,
    /// The queue was never empty, as the delay of every acknowledgment shows.
    is_delayed: bool,
}

impl Round {
    fn new(began: Time, ends: Time) -> Round {
        Round { began, ends, delivered: 0, is_limited: false, is_delayed: true }
    }
}

/// The round trip without a queue: the shortest of the present span of time and of the one before.
#[derive(Debug)]
struct Base {
    shortest: [Duration; 2],
    until: Time,
}

impl Base {
    /// A base that has changed (another satellite) is forgotten after twice as long.
    const SPAN: Duration = Duration::from_secs(30);

    /// Takes a round trip; returns by how much it is longer than without a queue.
    fn delay(&mut self, now: Time, rtt: Duration) -> Duration {
        if now >= self.until {
            self.shortest = [self.shortest[1], Duration::MAX];
            self.until = now + Base::SPAN;
        }
        self.shortest[1] = self.shortest[1].min(rtt);
        let base = self.shortest[0].min(self.shortest[1]);
        rtt - base
    }

    /// A delay that is no jitter.
    fn threshold(&self) -> Duration {
        let base = self.shortest[0].min(self.shortest[1]);
        (base / 16).max(Duration::from_millis(10))
    }
}

#[derive(Debug)]
struct Known {
    /// The last samples, bits per second.
    samples: [u64; Known::WINDOW],
    next: usize,
    /// The round of a cycle: a probe, a round in which its queue drains, and others.
    round: u32,
    /// The share of the rate in a probe, sixteenths.
    probe: u64,
    /// The rate before the probe.
    before: u64,
    /// The queue is to be drained.
    drains: bool,
    /// Rounds for which a longer round trip does not count: with less sent it was not shorter, so that it
    /// shows no queue.
    ignores_delay: u32,
}

impl Known {
    /// Samples among which the largest counts.
    const WINDOW: usize = 10;
    /// The lowest rate, bits per second: a segment takes a second.
    const LEAST: u64 = 12_000;
    /// Rounds of a cycle.
    const CYCLE: u32 = 8;
    /// What was sent in a probe is delivered before this round of the cycle.
    const PROBE_ENDS: u32 = 3;
    /// What is sent in a first probe, and after one that has delivered more, sixteenths.
    const PROBE: u64 = 17;
    const LARGE_PROBE: u64 = 20;
    /// What is sent while a queue drains.
    const DRAIN: u64 = 12;

    fn new(rate: u64) -> Known {
        let rate = rate.max(Known::LEAST);
        let samples = [rate; Known::WINDOW];
        Known {
            samples,
            next: 0,
            round: Known::PROBE_ENDS,
            probe: Known::PROBE,
            before: rate,
            drains: true,
            ignores_delay: 0,
        }
    }

    fn rate(&self) -> u64 {
        self.samples.iter().copied().max().unwrap_or_default()
    }

    /// The share of the rate at which to send, sixteenths.
    fn gain(&self) -> u64 {
        match self.round {
            _ if self.drains => Known::DRAIN,
            0 => self.probe,
            1 => 2 * 16 - self.probe,
            _ => 16,
        }
    }

    /// A round has delivered at a rate of `sample`, of which `sent_gain` sixteenths of the rate were sent.
    fn on_round(&mut self, sample: u64, sent_gain: u64, is_limited: bool, is_delayed: bool) {
        let before = self.rate();
        self.ignores_delay = self.ignores_delay.saturating_sub(1);
        let was_draining = self.drains;
        self.drains = is_delayed && self.ignores_delay == 0;
        if self.drains {
            // Where a queue drains, more is delivered than sent.
            if sent_gain < 16 && sample < before * (sent_gain + 1) / 16 {
                (self.drains, self.ignores_delay) = (false, 4 * Known::CYCLE);
            } else {
                self.samples.fill(sample.max(Known::LEAST));
            }
            self.round = Known::PROBE_ENDS;
            return;
        }
        if !is_limited || sample > before {
            self.samples[self.next] = sample.max(Known::LEAST);
            self.next = (self.next + 1) % Known::WINDOW;
        }
        if is_limited || was_draining {
            return;
        }
        self.round = (self.round + 1) % Known::CYCLE;
        // Its round may not be the one of its delivery: at worst, half of a probe is in each of two.
        if (1..=Known::PROBE_ENDS).contains(&self.round) && sample > self.before + self.before / 64
        {
            (self.probe, self.round) = (Known::LARGE_PROBE, 0);
        } else if self.round == Known::PROBE_ENDS {
            self.probe = Known::PROBE;
        }
        if self.round == 0 {
            self.before = self.rate();
        }
    }
}

impl DeliveryRate {
    /// The shortest round: in less, acknowledgments that arrive together are too large a part.
    const SHORTEST: Duration = Duration::from_millis(100);

    pub(super) fn new() -> DeliveryRate {
        DeliveryRate {
            round: Round::new(Time::ZERO, Time::ZERO),
            was_limited: true,
            sent_gain: 16,
            base: Base { shortest: [Duration::MAX; 2], until: Time::ZERO },
            delivered_at: Time::ZERO,
            known: None,
        }
    }

    /// The rate, once it is known.
    pub(super) fn rate(&self) -> Option<Rate> {
        Rate::from_bps(self.known.as_ref()?.rate())
    }

    /// The rate at which to send now; without a limit if `None`.
    pub(super) fn pace(&self) -> Option<Rate> {
        let known = self.known.as_ref()?;
        Rate::from_bps(known.rate().saturating_mul(known.gain()) / 16)
    }

    /// Less is sent than the rate allows.
    pub(super) fn on_idle(&mut self) {
        self.round.is_limited = true;
    }

    /// Bytes were delivered by a flow whose latest round trip is `rtt`. Returns whether
    /// [`DeliveryRate::pace`] may have changed.
    pub(super) fn on_delivered(&mut self, now: Time, bytes: u64, rtt: Duration) -> bool {
        self.round.delivered += bytes;
        // If the queue was not empty since the delivery before, this one has waited at least as long.
        let since = now.since(core::mem::replace(&mut self.delivered_at, now));
        let delay = self.base.delay(now, rtt);
        self.round.is_delayed &= delay > since.max(self.base.threshold());
        if now < self.round.ends {
            return false;
        }
        let next = Round::new(now, now + rtt.max(DeliveryRate::SHORTEST));
        let Round { began, delivered, is_limited, is_delayed, .. } =
            core::mem::replace(&mut self.round, next);
        let elapsed = u128::from(now.since(began).as_nanos()).max(1);
        let sample = u64::try_from(u128::from(delivered) * 8_000_000_000 / elapsed);
        let was_limited = core::mem::replace(&mut self.was_limited, is_limited);
        self.on_round(sample.unwrap_or(u64::MAX), is_limited || was_limited, is_delayed);
        true
    }

    /// A round has delivered at a rate of `sample` bits per second.
    fn on_round(&mut self, sample: u64, is_limited: bool, is_delayed: bool) {
        match &mut self.known {
            Some(known) => {
                let gain = known.gain();
                known.on_round(sample, self.sent_gain, is_limited, is_delayed);
                self.sent_gain = gain;
            }
            None => self.known = is_delayed.then(|| Known::new(sample)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hop that delivers what is sent up to its rate, in round trips of 500 ms and more if its queue
    /// is not empty.
    struct Model {
        measured: DeliveryRate,
        now: Time,
        /// Bits waiting.
        queue: f64,
        /// Rates of the rounds that are under way, bits per second.
        sent: [f64; 1],
    }

    impl Model {
        fn new() -> Model {
            let measured = DeliveryRate::new();
            Model { measured, now: Time::ZERO, queue: 0.0, sent: [1e6] }
        }

        /// A round trip with a hop of `rate`, by flows that send `most` at most. Returns what was sent.
        fn round(&mut self, rate: f64, most: f64) -> f64 {
            let arrived = self.sent[0];
            let pace = self.measured.pace().map_or(2.0 * arrived, |pace| pace.as_bps() as f64);
            self.sent[0] = pace.min(most);
            let waited = self.queue / rate;
            let span = 0.5 + waited;
            let all = arrived * span + self.queue;
            let delivered = all.min(rate * span);
            self.queue = (all - delivered).min(rate);
            let delay = waited.min(self.queue / rate);
            for _ in 0..100 {
                self.now += Duration::from_nanos((span * 1e7) as u64);
                let rtt = Duration::from_nanos(((0.5 + delay) * 1e9) as u64);
                self.measured.on_delivered(self.now, (delivered / 800.0) as u64, rtt);
            }
            if pace > most {
                self.measured.on_idle();
            }
            self.sent[0]
        }

        fn rounds(&mut self, rounds: u32, rate: f64) {
            for _ in 0..rounds {
                self.round(rate, f64::INFINITY);
            }
        }

        fn rate(&self) -> f64 {
            self.measured.rate().map_or(0.0, |rate| rate.as_bps() as f64)
        }
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (0.93..1.07).contains(&(value / expected))
    }

    #[test]
    fn a_rate_is_unknown_until_the_hop_was_used_fully() {
        let mut model = Model::new();
        model.rounds(3, 10e6);
        assert_eq!(model.measured.rate(), None);
        model.rounds(12, 10e6);
        assert!(is_near(model.rate(), 10e6), "{}", model.rate());
    }

    #[test]
    fn a_raised_and_a_lowered_rate_are_found() {
        let mut model = Model::new();
        model.rounds(20, 10e6);
        for (rate, rounds) in [(40e6, 60), (5e6, 20), (10e6, 60)] {
            model.rounds(rounds, rate);
            assert!(is_near(model.rate(), rate), "{rate}: {}", model.rate());
        }
    }

    #[test]
    fn no_queue_stays() {
        let mut model = Model::new();
        model.rounds(40, 10e6);
        for _ in 0..100 {
            model.round(10e6, f64::INFINITY);
            assert!(model.queue < 0.1 * 10e6, "{}", model.queue);
        }
    }

    #[test]
    fn flows_that_send_less_do_not_lower_the_rate() {
        let mut model = Model::new();
        model.rounds(30, 10e6);
        for _ in 0..100 {
            model.round(10e6, 1e6);
        }
        assert!(is_near(model.rate(), 10e6), "{}", model.rate());
    }
}
