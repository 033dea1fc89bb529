//! One direction of a hop: a rate, a drop-tail queue, a delay, losses.

use base::{Duration, Random, Rate, Time};

/// How packets are lost at the end of the hop, which they have used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// Each with this probability.
    Uniform(f64),
    /// The same share of all, in bursts of this mean length, all of which is lost (Gilbert 1960).
    Bursts(f64, f64),
}

#[derive(Clone, Debug)]
pub(crate) struct Hop {
    /// Without one, packets do not wait for each other.
    pub(crate) rate: Option<Rate>,
    pub(crate) delay: Duration,
    /// Packets that wait or are being sent; more are dropped.
    pub(crate) queue: usize,
    pub(crate) loss: Loss,
    pub(crate) duplication: f64,
    /// The longest additional delay: packets overtake each other.
    pub(crate) jitter: Duration,
    random: Random,
    is_bad: bool,
    departures: std::collections::VecDeque<Time>,
    pub(crate) dropped: u64,
    pub(crate) carried: u64,
    pub(crate) lost: u64,
    pub(crate) longest_queue: usize,
}

impl Hop {
    pub(crate) fn new(rate: Option<Rate>, delay: Duration, loss: Loss, random: Random) -> Hop {
        Hop {
            rate,
            delay,
            queue: usize::MAX,
            loss,
            duplication: 0.0,
            jitter: Duration::ZERO,
            random,
            is_bad: false,
            departures: std::collections::VecDeque::new(),
            dropped: 0,
            carried: 0,
            lost: 0,
            longest_queue: 0,
        }
    }

    fn loses(&mut self) -> bool {
        match self.loss {
            Loss::Uniform(share) => share > 0.0 && self.random.chance(share),
            Loss::Bursts(share, length) => {
                let ends = 1.0 / length;
                let begins = share / (1.0 - share) * ends;
                let turns = if self.is_bad { ends } else { begins };
                self.is_bad ^= self.random.chance(turns);
                self.is_bad
            }
        }
    }

    /// When the copies of a packet arrive.
    pub(crate) fn send(&mut self, now: Time, bytes: u64) -> Vec<Time> {
        let sent = match self.rate {
            None => now,
            Some(rate) => {
                while self.departures.front().is_some_and(|departure| *departure <= now) {
                    self.departures.pop_front();
                }
                if self.departures.len() >= self.queue {
                    self.dropped += 1;
                    return Vec::new();
                }
                let begin = self.departures.back().copied().unwrap_or(now);
                self.departures.push_back(begin + rate.time_for(bytes));
                self.longest_queue = self.longest_queue.max(self.departures.len());
                begin + rate.time_for(bytes)
            }
        };
        self.carried += 1;
        if self.loses() {
            self.lost += 1;
            return Vec::new();
        }
        let copies = 1 + usize::from(self.random.chance(self.duplication));
        let late = |random: &mut Random, jitter: Duration| {
            Duration::from_nanos((random.uniform() * jitter.as_nanos() as f64) as u64)
        };
        (0..copies).map(|_| sent + self.delay + late(&mut self.random, self.jitter)).collect()
    }
}
