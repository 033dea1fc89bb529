//! The controller of a connection.

use super::hystart::{HyStart, Rules, Step};
use super::{AckSample, Algorithm, CongestionControl, Episode, Growth, Lost};
use base::{Duration, Rate, Time};
use serde::{Deserialize, Serialize};

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
    /// HyStart++, if configured.
    hystart_rules: Option<Rules>,
    /// HyStart++ in the initial slow start, if configured.
    hystart: Option<Box<HyStart>>,
    /// The algorithm before the last reduction; of consecutive timeouts, before the first.
    prior: Option<Box<Algorithm>>,
    pub(super) algorithm: Algorithm,
}

impl Controller {
    /// A controller that starts from `window` bytes; its slow-start threshold is arbitrarily high.
    pub(crate) fn new(growth: Growth, window: u64) -> Controller {
        let algorithm = Algorithm::new(growth, window);
        let models_path = algorithm.models_path();
        // One that models the path has no slow start.
        let hystart_rules = growth.hystart.filter(|_| !models_path);
        let mut controller = Controller {
            window: algorithm.window(),
            models_path,
            needs_every_ack: false,
            hystart_rules,
            hystart: None,
            prior: None,
            algorithm,
        };
        controller.set_hystart(hystart_rules);
        controller
    }

    /// Begins HyStart++ with these rules, or ends it.
    fn set_hystart(&mut self, rules: Option<Rules>) {
        self.hystart = rules.map(|rules| Box::new(HyStart::new(rules)));
        self.needs_every_ack = rules.is_some() || self.algorithm.needs_every_ack();
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
        self.set_hystart(self.hystart_rules.filter(|_| ssthresh.is_none()));
        self.change(|algorithm| algorithm.reset(window, ssthresh));
    }

    /// The rate of pacing, if the algorithm has one of its own: only those do that model the path.
    #[inline(always)]
    pub(crate) fn pacing(&self) -> Option<Rate> {
        if self.models_path { self.algorithm.pacing() } else { None }
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
