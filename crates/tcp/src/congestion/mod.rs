//! Congestion control: the size of the congestion window.
//!
//! A controller is called for acknowledgments and congestion; which losses are congestion, and how
//! they are repaired, is decided elsewhere.
//!
//! A new controller is a file beside this page and a line in the table below. One with more state
//! than `cubic` or `aimd` is held in a box, so that other connections have no room for it.

#[cfg(test)]
mod contract;
mod hystart;
mod increase;
mod prr;
mod westwood;

pub(crate) use hystart::limit as hystart_limit;
pub use increase::{Auto, Canit, ConstantRate, Fast, IncreaseByK, Standard};
pub use increase::{Cap, Increase, IncreaseFunction, RoundTrip};
pub use prr::{Bound, Progress, Prr};
pub use westwood_plus::WestwoodPlusPath;

use base::{Duration, Rate, Time};
use hystart::{HyStart, Step};
use serde::{Deserialize, Serialize};

/// A sample of an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it arrived.
    pub now: Time,
    /// Octets newly acknowledged cumulatively.
    pub acked: u64,
    /// Those of them that limited transmit has replaced by new octets already: appropriate byte
    /// counting counts them once.
    pub limited_transmit: u64,
    /// Octets newly delivered, SACKed ones included.
    pub delivered: u64,
    /// The delivery rate.
    pub rate: RateSample,
    /// The flight, if the controller models the path.
    pub flight: FlightSample,
    /// The round-trip time of the segment that caused it, unless ambiguous (Karn), as the
    /// round-trip clock measures it.
    pub rtt: Option<Duration>,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Whether the congestion window limits the sender. A window that is not used must not grow
    /// (RFC 9293 §3.8.2, RFC 7661).
    pub window_limited: bool,
    /// The acknowledged octets were outstanding at a timeout, and may have arrived before their
    /// retransmission (RFC 3465 §2.3).
    pub after_timeout: bool,
    /// Segment size, bytes.
    pub mss: u32,
    /// The newly reported congestion marks, with accurate ECN.
    pub marks: CeMarks,
}

/// Packets that arrived at the receiver with a congestion mark (CE), as accurate ECN reports them (RFC
/// 9768).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CeMarks {
    /// Packets.
    pub packets: u64,
    /// Bytes of their payload; where the path removes the receiver's option, estimated from the
    /// packets.
    pub bytes: u64,
}

impl AckSample {
    /// The octets that appropriate byte counting counts.
    #[inline]
    fn counted_octets(&self) -> u64 {
        self.acked.saturating_sub(self.limited_transmit)
    }
}

/// Octets delivered over an interval (draft-cheng-iccrg-delivery-rate-estimation §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Octets.
    pub delivered: u64,
    /// The time of their delivery: the longer of sending and acknowledging them.
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

/// The flight at an acknowledgment, and when what it delivers was sent (draft-ietf-ccwg-bbr §4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlightSample {
    /// Octets delivered so far.
    pub delivered: u64,
    /// Octets in the network now.
    pub in_flight: u64,
    /// Octets in the network when the copy was sent that was delivered, itself included.
    pub sent_in_flight: u64,
    /// The application limited the flight when it was sent.
    pub app_limited: bool,
    /// Its round trip; `None` if another copy may have arrived.
    pub rtt: Option<Duration>,
}

/// A range that is lost by congestion.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// When that was found.
    pub now: Time,
    /// Its first octet.
    pub start: u64,
    /// The octet after its last.
    pub end: u64,
    /// Octets delivered when it was sent.
    pub delivered: u64,
    /// Octets in the network when it was sent, itself included.
    pub in_flight: u64,
    /// The application limited the flight when it was sent.
    pub app_limited: bool,
}

/// A congestion episode.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    /// When it was detected.
    pub now: Time,
    /// Octets in flight when it was detected, without those of limited transmit (RFC 5681 §3.2),
    /// and never more than the window allowed.
    pub flight: u64,
    /// Segment size, bytes.
    pub mss: u32,
    /// The share of the flight that a mechanism leaves, 0 to 1; `None` leaves it to the controller.
    pub decrease: Option<f64>,
    /// Leave the slow-start threshold as it is.
    pub keep_ssthresh: bool,
    /// An ECN mark without a loss: the window may fall to one segment (RFC 3168 §6.1.2).
    pub marked: bool,
}

impl Episode {
    /// The new window and slow-start threshold, if the controller leaves `share` of the flight: at
    /// least two segments (RFC 5681 §3.1, equation 4; RFC 9438 §4.6).
    fn reduced(&self, share: f64) -> (u64, u64) {
        let target = (self.flight as f64 * self.decrease.unwrap_or(share)) as u64;
        let mss = u64::from(self.mss);
        (target.max(if self.marked { mss } else { 2 * mss }), target.max(2 * mss))
    }
}

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

/// The congestion controller of a connection, with the state to which an undo returns.
//
// Each segment reads the first fields: they are in one place, whatever the algorithm is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Controller {
    /// The algorithm's window.
    window: u64,
    models_path: bool,
    /// The algorithm or HyStart++ needs samples while the window does not limit the sender.
    needs_every_ack: bool,
    /// The limit of HyStart++.
    hystart_limit: Option<u32>,
    /// HyStart++ in the initial slow start, if configured.
    hystart: Option<Box<HyStart>>,
    /// The algorithm before the last reduction; of consecutive timeouts, before the first.
    prior: Option<Box<Algorithm>>,
    algorithm: Algorithm,
}

impl Controller {
    /// A controller that starts from `window` bytes; its slow-start threshold is arbitrarily high.
    pub(crate) fn new(growth: Growth, window: u64) -> Controller {
        let algorithm = Algorithm::new(growth, window);
        let models_path = algorithm.models_path();
        // One that models the path has no slow start.
        let hystart_limit = growth.hystart.filter(|_| !models_path);
        let mut controller = Controller {
            window: algorithm.window(),
            models_path,
            needs_every_ack: false,
            hystart_limit,
            hystart: None,
            prior: None,
            algorithm,
        };
        controller.set_hystart(hystart_limit);
        controller
    }

    /// Begins HyStart++ with this limit, or ends it.
    fn set_hystart(&mut self, limit: Option<u32>) {
        self.hystart = limit.map(|limit| Box::new(HyStart::new(limit)));
        self.needs_every_ack = limit.is_some() || self.algorithm.needs_every_ack();
    }

    /// Changes the algorithm's state, perhaps its window.
    #[inline(always)]
    fn change(&mut self, change: impl FnOnce(&mut Algorithm)) {
        change(&mut self.algorithm);
        self.window = self.algorithm.window();
    }

    /// Whether [`Controller::on_ack`] has an effect.
    #[inline]
    pub(crate) fn needs_ack_sample(&self, window_limited: bool) -> bool {
        window_limited | self.needs_every_ack
    }

    /// Processes an acknowledgment of new data outside of recovery, which advances SND.UNA to
    /// `una`; SND.NXT is `nxt`.
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, sample: &AckSample, una: u64, nxt: u64) {
        if self.hystart.is_some() {
            self.on_ack_in_hystart(sample, una, nxt);
        } else {
            self.change(|algorithm| algorithm.on_ack(sample));
        }
    }

    #[inline(never)]
    fn on_ack_in_hystart(&mut self, sample: &AckSample, una: u64, nxt: u64) {
        let Some(hystart) = &mut self.hystart else { return };
        let Step { growth, is_over } = hystart.on_ack(sample, una, nxt);
        self.change(|algorithm| {
            // The controller only measures.
            algorithm.on_ack(&AckSample { window_limited: false, ..*sample });
            algorithm.grow(growth);
            if is_over {
                algorithm.end_slow_start();
            }
        });
        if is_over {
            self.set_hystart(None);
        }
    }

    pub(crate) fn on_other_ack(&mut self, sample: &AckSample) {
        self.change(|algorithm| algorithm.on_other_ack(sample));
    }

    /// Notes that segments are larger from now on: the window has room for one (RFC 5681 §3.1; Linux:
    /// `tcp_mtup_probe_success`).
    pub(crate) fn on_larger_segments(&mut self, mss: u32) {
        let missing = u64::from(mss).saturating_sub(self.window);
        if missing > 0 {
            self.change(|algorithm| algorithm.grow(missing as f64));
        }
    }

    /// Whether it follows a model of the path ([`CongestionControl::MODELS_PATH`]).
    #[inline]
    pub(crate) fn models_path(&self) -> bool {
        self.models_path
    }

    pub(crate) fn on_lost(&mut self, lost: &Lost) {
        self.change(|algorithm| algorithm.on_lost(lost));
    }

    pub(crate) fn on_recovered(&mut self) {
        self.change(CongestionControl::on_recovered);
    }

    pub(crate) fn on_handshake(&mut self, rtt: Duration, mss: u32) {
        self.change(|algorithm| algorithm.on_handshake(rtt, mss));
    }

    pub(crate) fn on_first_outstanding(&mut self, now: Time, app_limited: bool) {
        self.change(|algorithm| algorithm.on_first_outstanding(now, app_limited));
    }

    pub(crate) fn is_probing_rtt(&self) -> bool {
        self.algorithm.is_probing_rtt()
    }

    pub(crate) fn on_congestion(&mut self, episode: &Episode) {
        self.keep_prior();
        self.set_hystart(None);
        self.change(|algorithm| algorithm.on_congestion(episode));
    }

    pub(crate) fn on_rto(&mut self, episode: &Episode) {
        if self.prior.is_none() || self.window > u64::from(episode.mss) {
            self.keep_prior();
        }
        self.set_hystart(None);
        self.change(|algorithm| algorithm.on_rto(episode));
    }

    /// Keeps the present state for an undo.
    fn keep_prior(&mut self) {
        match &mut self.prior {
            Some(prior) => **prior = self.algorithm.clone(),
            None => self.prior = Some(Box::new(self.algorithm.clone())),
        }
    }

    /// Undoes the last reduction, unless the window has grown beyond since. Without a reduction, it
    /// has no effect.
    pub(crate) fn on_undo(&mut self) {
        if let Some(before) = self.prior.take()
            && self.window <= before.window()
        {
            self.change(|algorithm| algorithm.on_undo(*before));
        }
    }

    pub(crate) fn on_idle(&mut self, window: u64) {
        self.prior = None;
        self.change(|algorithm| algorithm.on_idle(window));
    }

    pub(crate) fn reset(&mut self, window: u64, ssthresh: Option<u64>) {
        self.prior = None;
        // RFC 9406 §4.3: only while ssthresh is arbitrarily high.
        self.set_hystart(self.hystart_limit.filter(|_| ssthresh.is_none()));
        self.change(|algorithm| algorithm.reset(window, ssthresh));
    }

    pub(crate) fn pacing(&self) -> Option<Rate> {
        self.algorithm.pacing()
    }

    pub(crate) fn is_in_slow_start(&self) -> bool {
        self.algorithm.is_in_slow_start()
    }

    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    #[inline]
    pub(crate) fn ssthresh(&self) -> u64 {
        self.algorithm.ssthresh()
    }
}

/// The choice of controller and increase function.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Growth {
    pub(crate) congestion: Congestion,
    pub(crate) increase: Increase,
    pub(crate) byte_counting: Option<u32>,
    /// HyStart++, if used, with its limit L in segments.
    pub(crate) hystart: Option<u32>,
    /// As [`crate::Config::loss_threshold`].
    pub(crate) loss_threshold: Option<f64>,
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
