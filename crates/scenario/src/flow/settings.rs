//! The `tcp` table of a flow, and the settings of its two ends that it yields.

use super::ecn::Ecn;
use super::eten::{self, Notification};
use super::increase;
use super::ip::IpVersion;
use super::keep_alive::{self, KeepAlive};
use super::mechanism::Entry;
use super::profile::{Defaults, InitialSsthresh, Window};
use super::receive_window;
use crate::ceten::Ceten;
use crate::reading::error::Problem;
use crate::reading::quantity::{
    Amount, ByteCounting, DelayedAck, Initial, Probability, Ssthresh, UserTimeout, Whole, Written,
};
use crate::reading::shape::{OrReport as _, table};
use base::Duration;
use base::units::Size;
use tcp::congestion::{Congestion, Increase};
use tcp::mechanism::{Mechanism, Needs};
use tcp::{
    Config, Estimator, MtuProbing, Pipe, Recovery, Reduction, Restart, RoundEnd, SsthreshOnBackoff,
    Validation,
};
use toml::Spanned;

table! {
    /// The settings of TCP at both ends of a flow; what is left out is as the profile says.
    pub(crate) struct Table {
        /// Largest payload of a segment, bytes.
        mss: Spanned<Amount>;
        /// A peer that announces a smaller segment size is sent segments of this size all the same (or of
        /// `mss`, if that is less), bytes; 48 if absent, as Linux's `tcp_min_snd_mss`.
        minimum_mss: Spanned<Amount>;
        /// The receiver's buffer, in bytes or segments; or `"auto"`, or a table with its limits: a buffer
        /// that starts small and grows to a multiple of what the application reads in a round trip.
        receive_window: Spanned<receive_window::Written>;
        /// How losses are detected and repaired.
        recovery: Recovery;
        /// What `sack` counts as outstanding during loss recovery (pipe): data neither SACKed nor
        /// lost by IsLost() of RFC 6675 §4, or all data not SACKed, as in ns-2.
        pipe: Pipe = Config::default().pipe;
        /// The congestion control algorithm.
        congestion: Congestion;
        /// Growth of `aimd` in congestion avoidance: the name of an increase function, or a table with its
        /// settings; `standard` if absent.
        increase: Spanned<Increase>;
        /// The share of what is outstanding, from 0 to below 1, up to which `bbr` does not take the losses of a round
        /// trip for congestion (BBR.LossThresh): for paths that lose packets to corruption. If absent, as
        /// draft-ietf-ccwg-bbr says: 0.02 while it probes for bandwidth, and else any loss counts.
        loss_threshold: Spanned<Probability>;
        /// With `bbr`, a round trip at most an eighth longer than the shortest renews it, as the queue was short.
        /// Else only a shorter one does, and every five seconds what is outstanding is halved for a round trip
        /// (ProbeRTT), as draft-ietf-ccwg-bbr says. So that there is such a round trip on a long path, too, the queue of
        /// a probe for bandwidth drains before the next one, for up to twelve round trips, and ProbeRTT waits for up to
        /// sixteen of the shortest. `false` if absent.
        renew_min_rtt: Spanned<bool>;
        /// With `bbr`, losses are not taken for congestion while there is no queue (the last round trip is at most a
        /// quarter longer than the shortest) and they exceed `loss_threshold` (0.02 if absent) by no more than two
        /// standard deviations. draft-ietf-ccwg-bbr has no such rule: over a path that loses half as much at random,
        /// a few more losses by chance keep the rate down. `false` if absent.
        tolerate_random_loss: Spanned<bool>;
        /// The window grows by the bytes acknowledged (RFC 3465), in slow start by at most this
        /// many segments per ACK, or without a limit (`"all"`); `"off"` counts ACKs.
        byte_counting: ByteCounting;
        /// Initial congestion window: segments, or by the rule of an RFC.
        initial_window: Initial;
        /// Initial slow-start threshold: bytes, segments, or a word.
        initial_ssthresh: Spanned<Ssthresh>;
        /// End the initial slow start once the round trip grows (HyStart++, RFC 9406); without effect
        /// where `initial_ssthresh` is not infinite.
        hystart: bool;
        /// Which acknowledgment ends a round of HyStart++: the one that reaches what had been sent when the
        /// round began, or the first one beyond it, as in Linux.
        hystart_round_end: RoundEnd = Config::default().hystart_round_end;
        /// When the window counts as used, so that it may grow (RFC 7661): if all of it kept the
        /// sender from sending more, or in slow start also if half of it was outstanding (Linux).
        window_validation: Validation = Config::default().validation;
        /// Start again from the initial window after an idle RTO.
        restart_after_idle: bool = Config::default().restart_after_idle;
        /// New data on the first two duplicate ACKs.
        limited_transmit: bool;
        /// Longest delay of an acknowledgment, or `"off"`.
        delayed_ack: Spanned<DelayedAck>;
        /// The retransmission timer.
        rto: Spanned<RtoTable>;
        /// Consecutive timeouts after which the connection is aborted (R2 of RFC 9293 §3.8.3); 15
        /// if absent.
        retries: Whole;
        /// The same for a SYN, if that is less than `retries`; 7 if absent, which last for the three
        /// minutes of RFC 9293 §3.8.3.
        syn_retries: Whole;
        /// The same for a SYN-ACK, if that is less than `retries`; 5 if absent, as in Linux.
        syn_ack_retries: Whole;
        /// What a timeout that follows another does to ssthresh.
        ssthresh_on_backoff: SsthreshOnBackoff;
        /// How the window comes down in fast recovery: at once, or in proportion to what is
        /// delivered (RFC 9937, or RFC 6937 with one of its two bounds).
        reduction: Reduction;
        /// Undo a window reduction that DSACK shows to be spurious.
        undo: bool;
        /// Find spurious timeouts by the acknowledgments that follow, and undo them (F-RTO, RFC
        /// 5682).
        frto: bool;
        /// Report duplicate segments (DSACK, RFC 2883).
        dsack: bool;
        /// Offer timestamps, which take 12 bytes of each segment.
        timestamps: bool;
        /// Drop segments without a timestamp where timestamps were negotiated (RFC 7323 §3.2)
        /// instead of accepting them as Linux does.
        require_timestamps: bool = Config::default().require_timestamps;
        /// Offer ECN: one signal in a round trip (`true`, RFC 3168), or a count of the marks
        /// (`"accurate"`, AccECN, RFC 9768), which falls back to what the peer supports.
        ecn: Ecn = Ecn(Config::default().ecn);
        /// TCP Fast Open (RFC 7413): the first data goes with the SYN, once an earlier connection
        /// between the same hosts has obtained a cookie.
        fast_open: bool = Config::default().fast_open;
        /// Nagle's algorithm: no small segment while data is unacknowledged.
        nagle: bool = Config::default().nagle;
        /// Pace segments over the round trip, at 1.2 times the window per round trip; in slow start
        /// 2 times.
        pacing: bool;
        /// A paced sender, as `bbr` always is, starts, and starts again after a pause, no slower than one that is not
        /// paced: up to the initial window leaves at once, and in slow start, which is Startup of `bbr`, segments
        /// follow at the rate at which acknowledgments have come, if that is higher than its own. `false` if absent.
        prompt_start: bool;
        /// Find the path MTU without ICMP, by the segments that arrive (RFC 4821): not at all; once
        /// full-sized segments do not arrive; or from segments of 1024 bytes on.
        mtu_probing: MtuProbing = Config::default().mtu_probing;
        /// Keep-alive probes to a silent peer; `"off"` if absent.
        keep_alive: KeepAlive;
        /// Abort the connection after this long without progress; never, if absent or `"off"`.
        user_timeout: Spanned<UserTimeout>;
        /// The largest number of challenge ACKs in five seconds (RFC 5961 §7); 10 if absent.
        challenges: Whole;
        /// The largest number of ACKs in five seconds that answer segments without data outside the
        /// window, such as keep-alives and window probes, and segments that PAWS rejects (RFC 7323
        /// §5.3), until a segment is acceptable; 10 if absent.
        out_of_window_acks: Whole;
        /// How long a closed connection keeps its ports (2 MSL); if absent, 60 seconds, and 1
        /// second in flows of many connections.
        time_wait: Written<Duration>;
        /// Explicit transport error notification (ETEN): what reports a corruption to the sender.
        eten: Spanned<eten::Form>;
        /// The mechanisms against corruption and changes of the path: a list of tables, each with
        /// `mechanism = NAME` and its settings.
        mechanisms: Vec<Entry>;
    }
}

table! {
    /// The settings of the retransmission timer.
    pub(crate) struct RtoTable {
        /// The RTO before the first measurement.
        initial: Written<Duration>;
        /// The lower bound.
        minimum: Written<Duration>;
        /// The upper bound.
        maximum: Written<Duration>;
        /// The clock granularity G of RFC 6298: the timeout exceeds the smoothed round trip by at least this. A loss
        /// probe waits for at least twice this.
        granularity: Written<Duration>;
        /// A lower bound of the variance term, 4 RTTVAR: the timeout exceeds the smoothed round trip by at least this.
        /// In Linux it is `tcp_rto_min`, 200 ms. With `estimator = "exact"` only; `"0 s"` if absent.
        minimum_variance: Written<Duration>;
        /// The arithmetic of the RTT estimate: RFC 6298, whole ticks of the granularity as ns-2 has
        /// them, or those of 4.3BSD Tahoe, whose timers also expire with a tick.
        estimator: Estimator;
        /// What restarts a running timer besides an advance of SND.UNA: a retransmission of the
        /// segment at SND.UNA (RFC 6675 §6); also SACKs of what was sent before that retransmission
        /// (`"sack"`, as in Linux); or nothing (`"advance"`). By the profile if absent: `"sack"` in `modern`,
        /// `"retransmission"` in others.
        restart: Restart;
    }
}

/// The TCP settings of a flow, checked.
pub(crate) struct Settings {
    pub(crate) sender: Config,
    pub(crate) receiver: Config,
    pub(crate) eten: Notification,
}

/// The largest payload of an IPv4 packet with a TCP header of 20 bytes.
const LARGEST_MSS: u64 = 65_535 - 40;

impl Table {
    /// Has this loss threshold if the congestion control is BBR and no threshold is written.
    pub(crate) fn or_loss_threshold(&mut self, share: f64) {
        if self.congestion == Some(Congestion::Bbr) {
            let threshold = || Spanned::new(0..0, Probability(share));
            self.loss_threshold.get_or_insert_with(threshold);
        }
    }

    /// Renews the shortest round trip and tolerates random losses if the congestion control is BBR, unless it is written
    /// otherwise.
    pub(crate) fn or_bad_hop(&mut self) {
        if self.congestion == Some(Congestion::Bbr) {
            for key in [&mut self.renew_min_rtt, &mut self.tolerate_random_loss] {
                key.get_or_insert_with(|| Spanned::new(0..0, true));
            }
        }
    }

    /// Has a prompt start unless it is written otherwise.
    pub(crate) fn or_prompt_start(&mut self) {
        self.prompt_start.get_or_insert(true);
    }

    /// Has these mechanisms if none are written.
    pub(crate) fn or_mechanisms(&mut self, mechanisms: Vec<Mechanism>) {
        self.mechanisms.get_or_insert_with(|| mechanisms.into_iter().map(Entry).collect());
    }
}

/// The settings, checked.
pub(crate) fn resolve(
    tcp: Table,
    ip: IpVersion,
    network: &Ceten,
    defaults: &Defaults,
    problems: &mut Vec<Problem>,
) -> Option<Settings> {
    let mss = mss(tcp.mss, defaults).or_report(problems);
    let minimum_mss = minimum_mss(tcp.minimum_mss).or_report(problems);
    // What depends on the MSS is checked only if the MSS is valid.
    let receive_window = mss.and_then(|mss| {
        receive_window::resolve(tcp.receive_window, mss, defaults).or_report(problems)
    });
    let initial_ssthresh = mss.zip(receive_window).and_then(|(mss, window)| {
        ssthresh(tcp.initial_ssthresh, mss, window.maximum, defaults).or_report(problems)
    });
    let congestion = tcp.congestion.unwrap_or(defaults.congestion);
    let increase = increase::resolve(tcp.increase, congestion).or_report(problems);
    let loss_threshold = loss_threshold(tcp.loss_threshold, congestion).or_report(problems);
    let renew_min_rtt = of_bbr("renew_min_rtt", tcp.renew_min_rtt, congestion).or_report(problems);
    let tolerate_random_loss =
        of_bbr("tolerate_random_loss", tcp.tolerate_random_loss, congestion).or_report(problems);
    let delayed_ack = delayed_ack(tcp.delayed_ack, defaults).or_report(problems);
    let rto = rto(tcp.rto, defaults).or_report(problems);
    let keep_alive = keep_alive::resolve(tcp.keep_alive).or_report(problems);
    let user_timeout = user_timeout(tcp.user_timeout).or_report(problems);
    let mechanisms: Vec<_> =
        tcp.mechanisms.unwrap_or_default().into_iter().map(|entry| entry.0).collect();
    let eten = eten::resolve(tcp.eten, ip, &mechanisms, network, defaults).or_report(problems);
    let standard = Config::default();
    let mut receiver = Config {
        mss: mss?,
        minimum_mss: minimum_mss?,
        receive_window: receive_window?,
        recovery: tcp.recovery.unwrap_or(defaults.recovery),
        congestion,
        increase: increase?,
        loss_threshold: loss_threshold?,
        renew_min_rtt: renew_min_rtt?,
        tolerate_random_loss: tolerate_random_loss?,
        byte_counting: tcp.byte_counting.map_or(defaults.byte_counting, |written| written.0),
        initial_window: tcp.initial_window.map_or(defaults.initial_window, |written| written.0),
        initial_ssthresh: initial_ssthresh?,
        limited_transmit: tcp.limited_transmit.unwrap_or(defaults.limited_transmit),
        delayed_ack: delayed_ack?,
        rto: rto?,
        pipe: tcp.pipe,
        ssthresh_on_backoff: tcp.ssthresh_on_backoff.unwrap_or(defaults.ssthresh_on_backoff),
        hystart: tcp.hystart.unwrap_or(defaults.hystart),
        hystart_round_end: tcp.hystart_round_end,
        mtu_probing: tcp.mtu_probing,
        validation: tcp.window_validation,
        restart_after_idle: tcp.restart_after_idle,
        reduction: tcp.reduction.unwrap_or(defaults.reduction),
        undo: tcp.undo.unwrap_or(defaults.undo),
        frto: tcp.frto.unwrap_or(defaults.frto),
        dsack: tcp.dsack.unwrap_or(defaults.dsack),
        timestamps: tcp.timestamps.unwrap_or(defaults.timestamps),
        require_timestamps: tcp.require_timestamps,
        ecn: tcp.ecn.0,
        fast_open: tcp.fast_open,
        nagle: tcp.nagle,
        pacing: tcp.pacing.unwrap_or(defaults.pacing),
        prompt_start: tcp.prompt_start.unwrap_or(standard.prompt_start),
        retries: tcp.retries.map_or(standard.retries, |written| written.0),
        syn_retries: tcp.syn_retries.map_or(standard.syn_retries, |written| written.0),
        syn_ack_retries: tcp.syn_ack_retries.map_or(standard.syn_ack_retries, |written| written.0),
        challenges: tcp.challenges.map_or(standard.challenges, |written| written.0),
        out_of_window_acks: tcp
            .out_of_window_acks
            .map_or(standard.out_of_window_acks, |written| written.0),
        keep_alive: keep_alive?,
        user_timeout: user_timeout?,
        time_wait: tcp.time_wait.map_or(defaults.time_wait, |written| written.0),
        // Every application of a scenario reads to the end.
        fin_wait_2: standard.fin_wait_2,
        mechanisms,
    };
    let eten = eten?;
    let mut sender = receiver.clone();
    sender.mechanisms.extend(eten.guard.clone().map(Mechanism::NoticeAuthentication));
    if eten.mechanism.as_ref().is_some_and(|one| one.needs().contains(Needs::RECEIVER)) {
        receiver.mechanisms.extend(eten.mechanism.clone());
    }
    sender.mechanisms.extend(eten.mechanism.clone());
    Some(Settings { sender, receiver, eten })
}

fn loss_threshold(
    written: Option<Spanned<Probability>>,
    congestion: Congestion,
) -> Result<Option<f64>, Problem> {
    let Some(written) = written else { return Ok(None) };
    let Probability(share) = *written.get_ref();
    let expected = match congestion {
        Congestion::Bbr if share < 1.0 => return Ok(Some(share)),
        Congestion::Bbr => "expected a share below 1",
        _ => "expected `loss_threshold` with `congestion = \"bbr\"` only",
    };
    Err(Problem::at(written.span(), expected))
}

/// What is written of a choice that BBR has, which is `false` if absent.
fn of_bbr(
    key: &str,
    written: Option<Spanned<bool>>,
    congestion: Congestion,
) -> Result<bool, Problem> {
    let Some(written) = written else { return Ok(false) };
    match congestion {
        Congestion::Bbr => Ok(*written.get_ref()),
        _ => {
            let expected = format!("expected `{key}` with `congestion = \"bbr\"` only");
            Err(Problem::at(written.span(), expected))
        }
    }
}

fn mss(written: Option<Spanned<Amount>>, defaults: &Defaults) -> Result<u16, Problem> {
    let Some(written) = written else { return Ok(defaults.mss) };
    match written.get_ref().0 {
        Size::Bytes(bytes @ 1..=LARGEST_MSS) => Ok(bytes as u16),
        _ => Err(Problem::at(written.span(), format!("expected 1 to {LARGEST_MSS} bytes"))),
    }
}

fn minimum_mss(written: Option<Spanned<Amount>>) -> Result<u16, Problem> {
    let Some(written) = written else { return Ok(Config::default().minimum_mss) };
    match written.get_ref().0 {
        Size::Bytes(bytes @ 0..=LARGEST_MSS) => Ok(bytes as u16),
        _ => Err(Problem::at(written.span(), format!("expected 0 to {LARGEST_MSS} bytes"))),
    }
}

fn ssthresh(
    written: Option<Spanned<Ssthresh>>,
    mss: u16,
    receive_window: u32,
    defaults: &Defaults,
) -> Result<Option<u64>, Problem> {
    let span = written.as_ref().map(Spanned::span);
    let initial = match written.map(Spanned::into_inner) {
        None => Some(defaults.initial_ssthresh),
        Some(Ssthresh::Infinite) => Some(InitialSsthresh::Infinite),
        Some(Ssthresh::ReceiveWindow) => Some(InitialSsthresh::ReceiveWindow),
        Some(Ssthresh::At(size)) => Window::of(size).map(InitialSsthresh::At),
    };
    let bytes = match initial {
        None => Some(0),
        Some(InitialSsthresh::Infinite) => None,
        Some(InitialSsthresh::ReceiveWindow) => Some(u64::from(receive_window)),
        Some(InitialSsthresh::At(window)) => Some(window.bytes(mss)),
    };
    if bytes.is_some_and(|bytes| bytes < u64::from(mss)) {
        let message = format!(
            "expected \"infinite\", \"receive-window\", or at least one segment ({mss} bytes), \
             such as \"20 segments\""
        );
        return Err(Problem { span, message, ..Problem::default() });
    }
    Ok(bytes)
}

fn delayed_ack(
    written: Option<Spanned<DelayedAck>>,
    defaults: &Defaults,
) -> Result<Option<Duration>, Problem> {
    let Some(written) = written else { return Ok(defaults.delayed_ack) };
    match *written.get_ref() {
        DelayedAck::Off => Ok(None),
        DelayedAck::After(Duration::ZERO) => {
            Err(Problem::at(written.span(), "expected \"off\" or more than 0 s"))
        }
        DelayedAck::After(delay) => Ok(Some(delay)),
    }
}

fn user_timeout(written: Option<Spanned<UserTimeout>>) -> Result<Option<Duration>, Problem> {
    let Some(written) = written else { return Ok(None) };
    match *written.get_ref() {
        UserTimeout::Off => Ok(None),
        UserTimeout::After(Duration::ZERO) => {
            Err(Problem::at(written.span(), "expected \"off\" or more than 0 s"))
        }
        UserTimeout::After(timeout) => Ok(Some(timeout)),
    }
}

fn rto(written: Option<Spanned<RtoTable>>, defaults: &Defaults) -> Result<tcp::Rto, Problem> {
    let Some(written) = written else { return Ok(defaults.rto) };
    let table = written.get_ref();
    let rto = tcp::Rto {
        initial: table.initial.map_or(defaults.rto.initial, |written| written.0),
        minimum: table.minimum.map_or(defaults.rto.minimum, |written| written.0),
        maximum: table.maximum.map_or(defaults.rto.maximum, |written| written.0),
        granularity: table.granularity.map_or(defaults.rto.granularity, |written| written.0),
        minimum_variance: table
            .minimum_variance
            .map_or(defaults.rto.minimum_variance, |written| written.0),
        estimator: table.estimator.unwrap_or(defaults.rto.estimator),
        restart: table.restart.unwrap_or(defaults.rto.restart),
    };
    let wrong = if rto.initial == Duration::ZERO {
        "`initial`: expected more than 0 s".to_owned()
    } else if rto.granularity == Duration::ZERO {
        "`granularity`: expected more than 0 s".to_owned()
    } else if rto.minimum_variance > Duration::ZERO && rto.estimator != Estimator::Exact {
        "expected `minimum_variance` with `estimator = \"exact\"` only".to_owned()
    } else if rto.maximum < rto.minimum.max(rto.initial) {
        format!(
            "`maximum` is {}: expected no less than `minimum` ({}) and `initial` ({})",
            rto.maximum, rto.minimum, rto.initial
        )
    } else {
        return Ok(rto);
    };
    Err(Problem::at(written.span(), wrong))
}
