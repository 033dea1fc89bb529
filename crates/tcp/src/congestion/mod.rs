//! Congestion control: how large the window is, and nothing else.
//!
//! It is told of acknowledgments and of congestion; which losses are congestion, and how they are
//! repaired, is decided elsewhere.
//!
//! A new controller is a file beside this page and a line in the table below.

#[cfg(test)]
mod contract;
mod increase;
mod prr;
mod westwood;

pub use increase::{Auto, Canit, ConstantRate, Fast, IncreaseByK, Standard};
pub use increase::{Cap, Increase, IncreaseFunction, RoundTrip};
pub use prr::{Bound, Prr};

use base::{Duration, Rate, Time};
use serde::{Deserialize, Serialize};

/// What an acknowledgment of new data says about the path.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it arrived.
    pub now: Time,
    /// Octets newly acknowledged cumulatively.
    pub acked: u64,
    /// Those of them for which limited transmit has let out as many already: they are counted, if
    /// octets are, but once.
    pub answered: u64,
    /// Octets newly known to be delivered.
    pub delivered: u64,
    /// Octets delivered over a recent interval.
    pub rate: RateSample,
    /// The round trip of the segment that caused it, unless ambiguous (Karn), as the clock shows it
    /// that measures them: in whole ticks, if it has such.
    pub rtt: Option<Duration>,
    /// The smoothed round trip.
    pub srtt: Option<Duration>,
    /// Whether the congestion window was what kept the sender from sending more. A window that is
    /// not used must not grow (RFC 9293 §3.8.2, RFC 7661).
    pub window_limited: bool,
    /// What it acknowledges was outstanding when a timeout struck, and may have arrived before it
    /// was sent again (RFC 3465 §2.3).
    pub after_timeout: bool,
    /// Segment size, bytes.
    pub mss: u32,
}

impl AckSample {
    /// Octets that the window grows by, where they are counted.
    #[inline]
    fn counted(&self) -> u64 {
        self.acked.saturating_sub(self.answered)
    }
}

/// Octets delivered over an interval (draft-cheng-iccrg-delivery-rate-estimation §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Octets.
    pub delivered: u64,
    /// How long their delivery took: the longer of sending and acknowledging them.
    pub interval: Duration,
}

impl RateSample {
    /// The delivery rate; `None` if no time passed.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        let nanos = u128::from(self.interval.as_nanos());
        let bits = u128::from(self.delivered) * 8_000_000_000;
        Rate::from_bps(u64::try_from(bits.checked_div(nanos)?).unwrap_or(u64::MAX))
    }
}

/// Congestion, noticed.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    /// When it was noticed.
    pub now: Time,
    /// Octets in flight when it was noticed, those of limited transmit not counted (RFC 5681 §3.2)
    /// and never more than the window allowed.
    pub flight: u64,
    /// Segment size, bytes.
    pub mss: u32,
    /// What a mechanism wants to remain of the flight, 0 to 1; `None` leaves it to the controller.
    pub decrease: Option<f64>,
    /// Leave the slow-start threshold as it is.
    pub keep_ssthresh: bool,
    /// A mark told of it, and nothing was lost: the window may fall to one segment (RFC 3168
    /// §6.1.2).
    pub marked: bool,
}

impl Episode {
    /// The window and the slow-start threshold that are left, if the controller leaves `share` of
    /// the flight: two segments at least (RFC 5681 §3.1, equation 4; RFC 9438 §4.6).
    fn reduced(&self, share: f64) -> (u64, u64) {
        let target = (self.flight as f64 * self.decrease.unwrap_or(share)) as u64;
        let mss = u64::from(self.mss);
        (target.max(if self.marked { mss } else { 2 * mss }), target.max(2 * mss))
    }
}

/// A congestion controller. Windows are in bytes, and never less than a segment.
pub trait CongestionControl: Sized {
    /// Whether it looks at acknowledgments while its window is not what limits the sender.
    const NEEDS_EVERY_ACK: bool = true;

    /// New data was acknowledged outside of recovery.
    fn on_ack(&mut self, sample: &AckSample);

    /// An acknowledgment by which no window grows has arrived: a duplicate, with nothing `acked`, or
    /// one in recovery. It may be measured.
    fn on_other_ack(&mut self, _sample: &AckSample) {}

    /// Congestion was noticed, once per episode; recovery keeps the flow going.
    fn on_congestion(&mut self, episode: &Episode);

    /// Start again from one segment: a timeout, or an algorithm without fast recovery.
    fn on_rto(&mut self, episode: &Episode);

    /// The connection was idle for so long that its window has expired: it is at most `window`, the
    /// restart window, which is at least a segment (RFC 5681 §4.1).
    fn on_idle(&mut self, window: u64);

    /// The last reduction was for nothing: the windows are what they were `before` it.
    fn on_undo(&mut self, before: Self);

    /// The path is another one: start from `window`, at least a segment, with what was known of
    /// the old path forgotten. `ssthresh` is in bytes, `None` is "arbitrarily high".
    fn reset(&mut self, window: u64, ssthresh: Option<u64>);

    /// The rate at which to send; `None` if acknowledgments alone clock transmission.
    fn pacing(&self) -> Option<Rate>;

    /// The congestion window, bytes.
    fn window(&self) -> u64;

    /// The slow-start threshold, bytes; `u64::MAX` while arbitrarily high.
    fn ssthresh(&self) -> u64;
}

/// No window grows larger, bytes.
const LARGEST_WINDOW: f64 = (1_u64 << 40) as f64;

/// What slow start adds for an acknowledgment, bytes: a segment (RFC 5681 §3.1, equation 2), or
/// `byte_counting` of them at most, but not while a timeout is being repaired (RFC 3465 §2.2, 2.3).
#[inline]
fn slow_start(sample: &AckSample, byte_counting: Option<u32>) -> f64 {
    let (acked, limit) = match byte_counting {
        Some(segments) if !sample.after_timeout => (sample.counted(), segments),
        Some(_) => (sample.counted(), 1),
        None => (sample.acked, 1),
    };
    acked.min(u64::from(limit) * u64::from(sample.mss)) as f64
}

macro_rules! controllers {
    ($($(#[$doc:meta])* $module:ident :: $Controller:ident = $name:literal;)+) => {
        $(mod $module;)+
        $(use $module::$Controller;)+

        /// One of the congestion controllers, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Congestion {
            $($(#[$doc])* #[serde(rename = $name)] $Controller,)+
        }

        impl Default for Congestion {
            /// The first of the table.
            fn default() -> Congestion {
                Congestion::ALL[0].1
            }
        }

        impl Congestion {
            /// Every controller with the name it has in scenario files.
            pub const ALL: &[(&str, Congestion)] = &[$(($name, Congestion::$Controller)),+];
        }

        /// One of the congestion controllers, with its state.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        enum Law {
            $(#[serde(rename = $name)] $Controller($Controller),)+
        }

        impl Law {
            /// A controller that starts from `window` bytes; its slow-start threshold is
            /// arbitrarily high.
            fn new(growth: Growth, window: u64) -> Law {
                match growth.congestion {
                    $(Congestion::$Controller => {
                        Law::$Controller($Controller::new(growth, window))
                    })+
                }
            }
        }

        impl Law {
            #[inline]
            fn needs_ack_sample(&self, window_limited: bool) -> bool {
                window_limited || match self {
                    $(Law::$Controller(_) => $Controller::NEEDS_EVERY_ACK,)+
                }
            }
        }

        impl CongestionControl for Law {
            #[inline(always)]
            fn on_ack(&mut self, sample: &AckSample) {
                // A copy for each, so that no sample is put together for one that does not look.
                match self { $(Law::$Controller(c) => c.on_ack(&{ *sample }),)+ }
            }

            fn on_other_ack(&mut self, sample: &AckSample) {
                match self { $(Law::$Controller(c) => c.on_other_ack(sample),)+ }
            }

            fn on_congestion(&mut self, episode: &Episode) {
                match self { $(Law::$Controller(c) => c.on_congestion(episode),)+ }
            }

            fn on_rto(&mut self, episode: &Episode) {
                match self { $(Law::$Controller(c) => c.on_rto(episode),)+ }
            }

            fn on_idle(&mut self, window: u64) {
                match self { $(Law::$Controller(c) => c.on_idle(window),)+ }
            }

            fn on_undo(&mut self, before: Law) {
                match (self, before) {
                    $((Law::$Controller(c), Law::$Controller(before)) => c.on_undo(before),)+
                    // It never changes.
                    (law, before) => *law = before,
                }
            }

            fn reset(&mut self, window: u64, ssthresh: Option<u64>) {
                match self { $(Law::$Controller(c) => c.reset(window, ssthresh),)+ }
            }

            fn pacing(&self) -> Option<Rate> {
                match self { $(Law::$Controller(c) => c.pacing(),)+ }
            }

            #[inline]
            fn window(&self) -> u64 {
                match self { $(Law::$Controller(c) => c.window(),)+ }
            }

            #[inline]
            fn ssthresh(&self) -> u64 {
                match self { $(Law::$Controller(c) => c.ssthresh(),)+ }
            }
        }
    };
}

controllers! {
    /// Additive increase, multiplicative decrease (RFC 5681).
    aimd::Aimd = "aimd";
    /// A cubic function of the time since the last reduction (RFC 9438).
    cubic::Cubic = "cubic";
    /// Bandwidth estimated at every acknowledgment, as TCP Westwood did first (Mascolo, Casetti,
    /// Gerla, Sanadidi, Wang, MobiCom 2001).
    westwood_2001::Westwood2001 = "westwood-2001";
    /// Bandwidth estimated once a round trip (Grieco, Mascolo, CCR 34 (2), 2004).
    westwood_plus::WestwoodPlus = "westwood+";
}

/// The congestion controller of a connection, and what a reduction that turns out to be needless
/// goes back to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Controller {
    law: Law,
    /// As it was before the last reduction; of timeouts in a row, before the first.
    before: Option<Law>,
}

impl Controller {
    /// A controller that starts from `window` bytes; its slow-start threshold is arbitrarily high.
    pub(crate) fn new(growth: Growth, window: u64) -> Controller {
        Controller { law: Law::new(growth, window), before: None }
    }

    /// Whether [`Controller::on_ack`] is worth calling.
    #[inline]
    pub(crate) fn needs_ack_sample(&self, window_limited: bool) -> bool {
        self.law.needs_ack_sample(window_limited)
    }

    #[inline(always)]
    pub(crate) fn on_ack(&mut self, sample: &AckSample) {
        self.law.on_ack(sample);
    }

    pub(crate) fn on_other_ack(&mut self, sample: &AckSample) {
        self.law.on_other_ack(sample);
    }

    pub(crate) fn on_congestion(&mut self, episode: &Episode) {
        self.before = Some(self.law.clone());
        self.law.on_congestion(episode);
    }

    pub(crate) fn on_rto(&mut self, episode: &Episode) {
        if self.before.is_none() || self.window() > u64::from(episode.mss) {
            self.before = Some(self.law.clone());
        }
        self.law.on_rto(episode);
    }

    /// The last reduction was for nothing: the windows are as before it, unless they have grown beyond
    /// since. Without a reduction, nothing happens.
    pub(crate) fn on_undo(&mut self) {
        if let Some(before) = self.before.take()
            && self.window() <= before.window()
        {
            self.law.on_undo(before);
        }
    }

    pub(crate) fn on_idle(&mut self, window: u64) {
        self.before = None;
        self.law.on_idle(window);
    }

    pub(crate) fn reset(&mut self, window: u64, ssthresh: Option<u64>) {
        self.before = None;
        self.law.reset(window, ssthresh);
    }

    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.law.window()
    }

    #[inline]
    pub(crate) fn ssthresh(&self) -> u64 {
        self.law.ssthresh()
    }
}

/// Which controller there is, and how its window grows.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Growth {
    pub(crate) congestion: Congestion,
    pub(crate) increase: Increase,
    pub(crate) byte_counting: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_sample_divides_octets_by_time() {
        let sample = RateSample { delivered: 1250, interval: Duration::from_millis(1) };
        assert_eq!(sample.rate(), Rate::from_bps(10_000_000));
        assert_eq!(RateSample::default().rate(), None);
    }
}
