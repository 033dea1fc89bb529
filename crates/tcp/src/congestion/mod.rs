//! Congestion control: the size of the congestion window.
//!
//! A controller is called for acknowledgments and congestion; which losses are congestion, and how
//! they are repaired, is decided elsewhere.
//!
//! A new controller is a file beside this page and a line in the table below. One with more state
//! than `cubic` or `aimd` is held in a box, so that other connections have no room for it.

#[cfg(test)]
mod contract;
mod controller;
mod hystart;
mod increase;
mod prr;
mod samples;
mod westwood;

pub(crate) use controller::Controller;
pub(crate) use hystart::Rules as HyStartRules;
pub use increase::{Auto, Canit, ConstantRate, Fast, IncreaseByK, Standard};
pub use increase::{Cap, Increase, IncreaseFunction, RoundTrip};
pub use prr::{Bound, Progress, Prr};
pub use samples::{AckSample, CeMarks, Episode, FlightSample, Lost, RateSample};
pub use westwood_plus::WestwoodPlusPath;

use base::{Duration, Rate, Time};
use serde::{Deserialize, Serialize};

/// A congestion controller. Windows are in bytes, and never less than a segment.
pub trait CongestionControl: Sized {
    /// Whether it needs samples of acknowledgments while its window does not limit the sender.
    const NEEDS_EVERY_ACK: bool = true;

    /// Whether it follows a model of the path: it needs [`FlightSample`]s, sets the window in fast
    /// recovery itself, and has a rate of its own.
    const MODELS_PATH: bool = false;

    /// Processes an acknowledgment of new data outside of recovery.
    fn on_ack(&mut self, sample: &AckSample);

    /// Processes an acknowledgment by which the window does not grow: a duplicate, with nothing
    /// `acked`, or one in recovery.
    fn on_other_ack(&mut self, _sample: &AckSample) {}

    /// Notes a loss by congestion.
    fn on_lost(&mut self, _lost: &Lost) {}

    /// Notes the end of a recovery episode.
    fn on_recovered(&mut self) {}

    /// Notes the round trip of the handshake, before the first data is sent.
    fn on_handshake(&mut self, _rtt: Duration, _mss: u32) {}

    /// Notes that data becomes outstanding; `app_limited`: the application had no more before.
    fn on_first_outstanding(&mut self, _now: Time, _app_limited: bool) {}

    /// Whether it holds the flight down to measure the round trip, so that rates mean nothing.
    fn is_probing_rtt(&self) -> bool {
        false
    }

    /// Reduces the window at the start of a congestion episode with fast recovery.
    fn on_congestion(&mut self, episode: &Episode);

    /// Restarts from one segment: after a timeout, or without fast recovery.
    fn on_rto(&mut self, episode: &Episode);

    /// Reduces the window after an idle time to at most `window`, the restart window, which is at
    /// least a segment (RFC 5681 §4.1).
    fn on_idle(&mut self, window: u64);

    /// Undoes the last reduction: restores the windows from `before` it.
    fn on_undo(&mut self, before: Self);

    /// Restarts on another path from `window`, at least a segment, with the state of the old path
    /// discarded. `ssthresh` is in bytes, `None` is "arbitrarily high".
    fn reset(&mut self, window: u64, ssthresh: Option<u64>);

    /// The rate at which to send; `None` leaves pacing to the window and the round trip.
    fn pacing(&self) -> Option<Rate> {
        None
    }

    /// Whether it still looks for the capacity of the path: in slow start.
    fn is_in_slow_start(&self) -> bool {
        self.window() < self.ssthresh()
    }

    /// Grows the window by `bytes`: in slow start, or where segments are larger.
    fn grow(&mut self, bytes: f64);

    /// Ends slow start without congestion: ssthresh falls to the window.
    fn end_slow_start(&mut self);

    /// The congestion window, bytes.
    fn window(&self) -> u64;

    /// The slow-start threshold, bytes; `u64::MAX` while arbitrarily high.
    fn ssthresh(&self) -> u64;
}

/// The largest window, bytes.
const LARGEST_WINDOW: f64 = (1_u64 << 40) as f64;

/// The increase of slow start for an acknowledgment, bytes: a segment (RFC 5681 §3.1, equation 2),
/// or `byte_counting` of them at most, but one during recovery from a timeout (RFC 3465 §2.2, 2.3).
#[inline]
fn slow_start(sample: &AckSample, byte_counting: Option<u32>) -> f64 {
    let (acked, limit) = match byte_counting {
        Some(segments) if !sample.after_timeout => (sample.counted_octets(), segments),
        Some(_) => (sample.counted_octets(), 1),
        None => (sample.acked, 1),
    };
    acked.min(u64::from(limit) * u64::from(sample.mss)) as f64
}

/// How the state of a controller is held: as it is, or as the table says.
macro_rules! held {
    ($Controller:ident) => {
        $Controller
    };
    ($Controller:ident $Held:ty) => {
        $Held
    };
}

macro_rules! controllers {
    ($(
        $(#[$doc:meta])* $module:ident :: $Controller:ident $(in $Held:ty)? = $name:literal;
    )+) => {
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
        enum Algorithm {
            $(#[serde(rename = $name)] $Controller(held!($Controller $($Held)?)),)+
        }

        impl Algorithm {
            /// A controller that starts from `window` bytes; its slow-start threshold is
            /// arbitrarily high.
            fn new(growth: Growth, window: u64) -> Algorithm {
                match growth.congestion {
                    $(Congestion::$Controller => {
                        Algorithm::$Controller($Controller::new(growth, window).into())
                    })+
                }
            }
        }

        impl Algorithm {
            #[inline]
            fn models_path(&self) -> bool {
                match self { $(Algorithm::$Controller(_) => $Controller::MODELS_PATH,)+ }
            }

            #[inline]
            fn needs_every_ack(&self) -> bool {
                match self { $(Algorithm::$Controller(_) => $Controller::NEEDS_EVERY_ACK,)+ }
            }
        }

        impl CongestionControl for Algorithm {
            #[inline(always)]
            fn on_ack(&mut self, sample: &AckSample) {
                // A copy for each, so that no sample is assembled for a controller that does not
                // read it.
                match self { $(Algorithm::$Controller(c) => c.on_ack(&{ *sample }),)+ }
            }

            fn on_other_ack(&mut self, sample: &AckSample) {
                match self { $(Algorithm::$Controller(c) => c.on_other_ack(sample),)+ }
            }

            fn on_lost(&mut self, lost: &Lost) {
                match self { $(Algorithm::$Controller(c) => c.on_lost(lost),)+ }
            }

            fn on_recovered(&mut self) {
                match self { $(Algorithm::$Controller(c) => c.on_recovered(),)+ }
            }

            fn on_handshake(&mut self, rtt: Duration, mss: u32) {
                match self { $(Algorithm::$Controller(c) => c.on_handshake(rtt, mss),)+ }
            }

            fn on_first_outstanding(&mut self, now: Time, app_limited: bool) {
                match self {
                    $(Algorithm::$Controller(c) => c.on_first_outstanding(now, app_limited),)+
                }
            }

            fn is_probing_rtt(&self) -> bool {
                match self { $(Algorithm::$Controller(c) => c.is_probing_rtt(),)+ }
            }

            fn on_congestion(&mut self, episode: &Episode) {
                match self { $(Algorithm::$Controller(c) => c.on_congestion(episode),)+ }
            }

            fn on_rto(&mut self, episode: &Episode) {
                match self { $(Algorithm::$Controller(c) => c.on_rto(episode),)+ }
            }

            fn on_idle(&mut self, window: u64) {
                match self { $(Algorithm::$Controller(c) => c.on_idle(window),)+ }
            }

            fn on_undo(&mut self, before: Algorithm) {
                match (self, before) {
                    $((Algorithm::$Controller(c), Algorithm::$Controller(before)) => {
                        c.on_undo($Controller::clone(&before));
                    })+
                    // The algorithm of a connection never changes.
                    (algorithm, prior) => *algorithm = prior,
                }
            }

            fn reset(&mut self, window: u64, ssthresh: Option<u64>) {
                match self { $(Algorithm::$Controller(c) => c.reset(window, ssthresh),)+ }
            }

            fn pacing(&self) -> Option<Rate> {
                match self { $(Algorithm::$Controller(c) => c.pacing(),)+ }
            }

            fn is_in_slow_start(&self) -> bool {
                match self { $(Algorithm::$Controller(c) => c.is_in_slow_start(),)+ }
            }

            fn grow(&mut self, bytes: f64) {
                match self { $(Algorithm::$Controller(c) => c.grow(bytes),)+ }
            }

            fn end_slow_start(&mut self) {
                match self { $(Algorithm::$Controller(c) => c.end_slow_start(),)+ }
            }

            #[inline]
            fn window(&self) -> u64 {
                match self { $(Algorithm::$Controller(c) => c.window(),)+ }
            }

            #[inline]
            fn ssthresh(&self) -> u64 {
                match self { $(Algorithm::$Controller(c) => c.ssthresh(),)+ }
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
    westwood_2001::Westwood2001 in Box<Westwood2001> = "westwood-2001";
    /// Bandwidth estimated once a round trip (Grieco, Mascolo, CCR 34 (2), 2004).
    westwood_plus::WestwoodPlus in Box<WestwoodPlus> = "westwood+";
    /// The growth of a connection with a round trip of 25 ms, on any path (Caini, Firrincieli, IJSCN
    /// 22 (5), 2004).
    hybla::Hybla = "hybla";
    /// A model of the path, its bandwidth and its shortest round trip (draft-ietf-ccwg-bbr, BBRv3).
    bbr::Bbr in Box<Bbr> = "bbr";
}

/// The choice of controller and increase function.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Growth {
    pub(crate) congestion: Congestion,
    pub(crate) increase: Increase,
    pub(crate) byte_counting: Option<u32>,
    /// HyStart++, if used.
    pub(crate) hystart: Option<HyStartRules>,
    /// As [`crate::Config::loss_threshold`].
    pub(crate) loss_threshold: Option<f64>,
    /// As [`crate::Config::renew_min_rtt`].
    pub(crate) renew_min_rtt: bool,
    /// As [`crate::Config::tolerate_random_loss`].
    pub(crate) tolerate_random_loss: bool,
}
