//! The configuration of a connection.

use crate::congestion::{Congestion, Increase};
use crate::mechanism::Mechanism;
use crate::recovery::Recovery;
use base::Duration;
use serde::{Deserialize, Serialize};

/// The settings of one endpoint of a connection. The default is what today's systems do, as far as
/// an RFC describes it: CUBIC with HyStart++, RACK-TLP, F-RTO and proportional rate reduction.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The largest payload of a segment that we offer to receive and are willing to send, bytes.
    pub mss: u16,
    /// Lower bound of the send MSS, bytes: a peer that announces less is sent segments of this size
    /// (or of [`Config::mss`] if that is less). Tiny segments would multiply the packets, and the
    /// work for each octet. Linux has the same floor (`tcp_min_snd_mss`).
    pub minimum_mss: u16,
    /// The receive buffer, which bounds the window that we advertise.
    pub receive_window: ReceiveWindow,
    /// How losses are detected and repaired.
    pub recovery: Recovery,
    /// How [`Recovery::Sack`] and [`Recovery::Rack`] estimate the octets in the network.
    pub pipe: Pipe,
    /// The congestion-control algorithm.
    pub congestion: Congestion,
    /// The increase function of [`Congestion::Aimd`] in congestion avoidance.
    pub increase: Increase,
    /// The share of what was outstanding, from 0 to below 1, up to which losses of a round trip are not taken for
    /// congestion by [`Congestion::Bbr`]: BBR.LossThresh of draft-ietf-ccwg-bbr, which here also keeps the short-term
    /// model from following such losses. `None` is as the draft says: 2 % while it probes for bandwidth, and any loss
    /// lowers the short-term model. A round trip of fewer than 50 segments exceeds 2 % with each loss.
    pub loss_threshold: Option<f64>,
    /// With [`Congestion::Bbr`], a round trip at most an eighth longer than the shortest renews it: the queue was
    /// short. Else only a shorter one does, and every five seconds ProbeRTT halves what is outstanding for a round
    /// trip, as draft-ietf-ccwg-bbr says. So that there is such a round trip, the queue of a probe for bandwidth drains
    /// before the next one, for up to twelve round trips, and ProbeRTT waits for up to sixteen of the shortest.
    pub renew_min_rtt: bool,
    /// With [`Congestion::Bbr`], losses bound neither the long-term nor the short-term model while there is no queue (the
    /// last round trip is at most a quarter longer than the shortest) and they exceed [`Config::loss_threshold`] (2 % if
    /// `None`) by at most two standard deviations: a path that loses so much at random does so by chance. Else losses are
    /// judged as draft-ietf-ccwg-bbr says, by their share alone: of 200 segments in flight over a path that loses 1 %, the
    /// fifth that is lost ends a probe, which happens in one of twenty round trips.
    pub tolerate_random_loss: bool,
    /// Appropriate byte counting (RFC 3465): the window grows by the octets acknowledged, not by
    /// the number of acknowledgments. The value is the limit L, the segments that one
    /// acknowledgment may add in slow start: at least 1. The RFC permits 1 and 2, for receivers that
    /// acknowledge every other segment. Those of today acknowledge as many as they process at once,
    /// a 64 kB unit, for example; with `u32::MAX` all of them count, as in Linux. `None` counts
    /// acknowledgments, as equations 2 and 3 of RFC 5681 do.
    pub byte_counting: Option<u32>,
    /// Initial congestion window.
    pub initial_window: InitialWindow,
    /// Initial slow-start threshold, bytes; `None` is "arbitrarily high" (RFC 5681 §3.1).
    pub initial_ssthresh: Option<u64>,
    /// End the initial slow start once the round trip grows (HyStart++, RFC 9406). In it, one
    /// acknowledgment adds at most eight segments, or as many as [`Config::byte_counting`] says if
    /// those are more, or any number with [`Config::pacing`]. Without effect if
    /// [`Config::initial_ssthresh`] is set.
    pub hystart: bool,
    /// Which acknowledgment ends a round of HyStart++.
    pub hystart_round_end: RoundEnd,
    /// When the congestion window counts as used, so that it may grow.
    pub validation: Validation,
    /// After an idle time longer than the retransmission timeout, start again from the initial
    /// window (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// Send new data on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Longest delay of an acknowledgment (RFC 9293 §3.8.6.3); `None` acknowledges every segment.
    pub delayed_ack: Option<Duration>,
    /// The retransmission timer.
    pub rto: Rto,
    /// Consecutive timeouts of the same octet after which the connection is aborted (R2 of RFC 9293
    /// §3.8.3).
    pub retries: u32,
    /// The same limit for our SYN, if it is lower. Together the retransmissions last at least three
    /// minutes (RFC 9293 §3.8.3, MUST-23).
    pub syn_retries: u32,
    /// The same limit for our SYN-ACK, if it is lower: a forged SYN has no end that waits for it
    /// (RFC 4987 §3.3), and a real peer sends its SYN again.
    pub syn_ack_retries: u32,
    /// What the second and later consecutive timeouts do to the slow-start threshold.
    pub ssthresh_on_backoff: SsthreshOnBackoff,
    /// How the congestion window is reduced in fast recovery.
    pub reduction: Reduction,
    /// Undo a reduction once DSACKs show every retransmission of its episode to be spurious (RFC
    /// 3708 §2).
    pub undo: bool,
    /// Find spurious timeouts by the acknowledgments that follow, and undo them (F-RTO, RFC 5682),
    /// if SACK is negotiated.
    pub frto: bool,
    /// Send DSACK blocks (RFC 2883) if SACK is negotiated.
    pub dsack: bool,
    /// Offer timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// Drop segments without a timestamp once timestamps are negotiated (RFC 7323 §3.2, SHOULD).
    /// Otherwise they are accepted, as in Linux: some middleboxes strip options.
    pub require_timestamps: bool,
    /// Which explicit congestion notification is offered.
    pub ecn: EcnMode,
    /// Send the first data with the SYN to servers that have given a cookie, and accept it from
    /// clients (TCP Fast Open, RFC 7413): the host keeps and checks the cookies. A duplicate of
    /// such a SYN that arrives after the end of the connection delivers the data twice (§2).
    pub fast_open: bool,
    /// Nagle's algorithm: hold a small segment back while data is unacknowledged (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Pace segments over the round trip (RFC 9002 §7.7): at twice the window per round trip in slow
    /// start, and 1.2 times in congestion avoidance, as in Linux. Controllers with a rate of their
    /// own pace always.
    pub pacing: bool,
    /// A paced sender starts, and starts again after a pause, no slower than one that is not paced: up to the
    /// initial window leaves at once (RFC 9002 §7.7), and in slow start, which is Startup of BBR, segments follow at
    /// the rate at which acknowledgments have come, if that is higher than its own.
    pub prompt_start: bool,
    /// Find the path MTU without ICMP (RFC 4821).
    pub mtu_probing: MtuProbing,
    /// Keep-alive probes to a silent peer (RFC 9293 §3.8.4).
    pub keep_alive: Option<KeepAlive>,
    /// Abort the connection if data is outstanding and nothing is acknowledged for this long (RFC
    /// 9293 §3.8.3). Acknowledged probes of a closed window restart the timeout.
    pub user_timeout: Option<Duration>,
    /// Challenge acknowledgments that may be sent within [`Config::CHALLENGE_PERIOD`]
    /// (RFC 5961 §7).
    pub challenges: u32,
    /// Acknowledgments that may be sent within [`Config::CHALLENGE_PERIOD`] for segments without
    /// data outside the window: keep-alives and window probes (RFC 9293 §3.8.4, §3.8.6.1). They
    /// have a budget apart from challenges, so that challenges leave no probe unanswered. The same
    /// number limits the answers to segments without data that PAWS refuses (RFC 7323 §5.3), until
    /// a segment is acceptable.
    pub out_of_window_acks: u32,
    /// Duration of TIME-WAIT (2 MSL, RFC 9293 §3.6.1).
    pub time_wait: Duration,
    /// How long a connection closed by [`Connection::close_both`] waits in FIN-WAIT-2 for the
    /// peer's FIN; `None` waits without a limit, as RFC 9293 does. A connection closed by
    /// [`Connection::close`] waits without a limit, too.
    ///
    /// [`Connection::close`]: crate::Connection::close
    /// [`Connection::close_both`]: crate::Connection::close_both
    pub fin_wait_2: Option<Duration>,
    /// The mechanisms, in the order in which their hooks are called.
    pub mechanisms: Vec<Mechanism>,
}

/// The size of the receive buffer, and so of the largest window that is advertised, bytes.
///
/// If `initial` is less than `maximum`, the buffer starts at `initial` and grows to a multiple of what
/// the application reads in a round trip (dynamic right-sizing: Fisk and Feng, "Dynamic right-sizing in
/// TCP", 2001), as in Linux (`tcp_moderate_rcvbuf`). Otherwise it is always `maximum`. The window scale
/// (RFC 7323 §2) is that of `maximum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReceiveWindow {
    /// The size at first: at least one segment.
    pub initial: u32,
    /// The largest size: at most 2^30 bytes (RFC 7323 §2.3).
    pub maximum: u32,
}

impl ReceiveWindow {
    /// A buffer of so many bytes.
    #[must_use]
    pub const fn fixed(bytes: u32) -> ReceiveWindow {
        ReceiveWindow { initial: bytes, maximum: bytes }
    }

    /// Whether the buffer grows with what the application reads.
    #[must_use]
    pub const fn is_tuned(self) -> bool {
        self.initial < self.maximum
    }
}

impl Default for ReceiveWindow {
    /// 64 KiB at first, which a SYN can announce, and 16 MiB at most: those of Linux since 6.16, where
    /// half of `tcp_rmem` (128 KiB to 32 MiB) is window.
    fn default() -> ReceiveWindow {
        ReceiveWindow { initial: 65_535, maximum: 16 << 20 }
    }
}

/// The initial congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialWindow {
    /// This number of full-sized segments.
    Segments(u32),
    /// Two to four segments, about 4 KB (RFC 3390 §1).
    Rfc3390,
    /// Two to ten segments, about 14 KB (RFC 6928 §2).
    Rfc6928,
}

impl InitialWindow {
    /// Bytes, for segments of `mss` bytes.
    #[must_use]
    pub fn bytes(self, mss: u32) -> u64 {
        let mss = u64::from(mss);
        match self {
            InitialWindow::Segments(segments) => u64::from(segments.max(1)) * mss,
            InitialWindow::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
            InitialWindow::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
        }
    }
}

/// How the octets in the network are estimated in SACK recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pipe {
    /// Octets neither SACKed nor lost by IsLost() (RFC 6675 §4, SetPipe).
    #[default]
    IsLost,
    /// Every copy not SACKed, lost or not, as in the ns-2 of 2007 (`koutsianas2007` §4.1).
    Unreported,
}

/// When the congestion window counts as used (RFC 7661).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validation {
    /// When it limits the sender.
    #[default]
    Full,
    /// In slow start also when more than half of it was outstanding at once in the last round trip
    /// (RFC 7661 §4.2, Linux).
    Half,
}

/// How the congestion window is reduced in fast recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// At once; sending pauses until the pipe has drained that far (RFC 5681, RFC 6675).
    #[default]
    Immediate,
    /// Proportional rate reduction (RFC 9937).
    Prr,
    /// Proportional rate reduction with the slow start reduction bound (RFC 6937).
    PrrSsrb,
    /// Proportional rate reduction with the conservative reduction bound (RFC 6937).
    PrrCrb,
}

/// The most that an end offers, and accepts, of explicit congestion notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMode {
    /// None.
    #[default]
    Off,
    /// One signal in a round trip (RFC 3168).
    Classic,
    /// A count of the marks (AccECN, RFC 9768); with a peer that does not know it, the classic form.
    Accurate,
}

/// Whether the path MTU is found without ICMP, by the segments that arrive (RFC 4821).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MtuProbing {
    /// It is not.
    #[default]
    Off,
    /// Once full-sized segments do not arrive: three consecutive timeouts make the segments smaller,
    /// and then larger ones are tried (Linux: `tcp_mtu_probing` = 1).
    BlackHole,
    /// Segments of 1024 bytes at first, and then larger ones (Linux: `tcp_mtu_probing` = 2).
    On,
}

/// Keep-alive timing (RFC 9293 §3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeepAlive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Interval between probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection is aborted.
    pub probes: u32,
}

impl Default for KeepAlive {
    /// Two hours (RFC 9293 §3.8.4, MUST-28), then nine probes 75 seconds apart.
    fn default() -> KeepAlive {
        KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

impl Config {
    /// The period that [`Config::challenges`] counts in (RFC 5961 §7).
    pub const CHALLENGE_PERIOD: Duration = Duration::from_secs(5);
}

/// Which acknowledgment ends a round of HyStart++ (RFC 9406 §4.2: "When windowEnd is ACKed"), where windowEnd is
/// SND.NXT at the start of the round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundEnd {
    /// The one that reaches windowEnd. Segments that it lets leave are not before the next windowEnd: each round
    /// begins earlier in a flight than the one before, and may see nothing but the end of a burst.
    #[default]
    Reached,
    /// The first beyond windowEnd, the octet after those sent, as in Linux's HyStart: a round is a flight.
    Passed,
}

/// The settings of the retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rto {
    /// The timeout before the first round-trip sample.
    pub initial: Duration,
    /// Lower bound.
    pub minimum: Duration,
    /// Upper bound, back-off included.
    pub maximum: Duration,
    /// Clock granularity G: a lower bound of the variance term, and half of the shortest time after which a
    /// loss probe is sent.
    pub granularity: Duration,
    /// A further lower bound of the variance term, 4 RTTVAR, of [`Estimator::Exact`] (Linux: `tcp_rto_min`).
    pub minimum_variance: Duration,
    /// The round-trip estimator.
    pub estimator: Estimator,
    /// What restarts a running retransmission timer.
    pub restart: Restart,
}

/// What restarts a running retransmission timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Every advance of SND.UNA, and every retransmission of the segment at SND.UNA (RFC 6675 §6
    /// permits it; Linux and ns-2 do so): the retransmission has a full timeout to arrive.
    Retransmission,
    /// The same, and every SACK of a segment that was sent before the segment at SND.UNA was sent again
    /// (Linux: `tcp_clean_rtx_queue`): as long as what is ahead of the retransmission in a queue arrives,
    /// the retransmission may be behind it.
    #[default]
    Sack,
    /// Every advance of SND.UNA only (RFC 6298 §5.3).
    Advance,
}

/// The arithmetic of the round-trip estimator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// RFC 6298, on a clock of nanoseconds.
    #[default]
    Exact,
    /// Whole ticks of the granularity, in scaled integers that round down: 4.3BSD Reno's code, as
    /// used by ns-2. On a steady path the variance stays above half a tick, so the timeout stays two to
    /// three ticks above the round trip.
    Ticks,
    /// 4.3BSD Tahoe's own: a round trip is the number of ticks while it lasted, and may be none; the
    /// timeout is the mean and two mean deviations, and expires with a tick, so that it is up to one
    /// tick shorter than it says. Back-off doubles the timeout before the lower bound applies.
    Tahoe,
}

/// What the second and later consecutive timeouts do to ssthresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SsthreshOnBackoff {
    /// Only the first of consecutive timeouts reduces it (RFC 5681 §3.1).
    #[default]
    Hold,
    /// Every timeout halves it, as in ns-2.
    Halve,
}

impl Default for Rto {
    fn default() -> Rto {
        Rto {
            initial: Duration::from_secs(1),
            minimum: Duration::from_secs(1),
            maximum: Duration::from_secs(60),
            granularity: Duration::from_millis(1),
            minimum_variance: Duration::ZERO,
            estimator: Estimator::Exact,
            restart: Restart::default(),
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mss: 1460,
            minimum_mss: 48,
            receive_window: ReceiveWindow::default(),
            recovery: Recovery::Rack,
            pipe: Pipe::default(),
            congestion: Congestion::Cubic,
            increase: Increase::default(),
            byte_counting: Some(u32::MAX),
            initial_window: InitialWindow::Segments(10),
            initial_ssthresh: None,
            hystart: true,
            hystart_round_end: RoundEnd::default(),
            loss_threshold: None,
            renew_min_rtt: false,
            tolerate_random_loss: false,
            validation: Validation::default(),
            restart_after_idle: true,
            limited_transmit: true,
            delayed_ack: Some(Duration::from_millis(40)),
            rto: Rto::default(),
            retries: 15,
            // 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 s.
            syn_retries: 7,
            syn_ack_retries: 5, // Linux's: 63 s.
            ssthresh_on_backoff: SsthreshOnBackoff::default(),
            reduction: Reduction::Prr,
            undo: true,
            frto: true,
            dsack: true,
            timestamps: true,
            require_timestamps: false,
            ecn: EcnMode::default(),
            fast_open: false,
            nagle: true,
            pacing: false,
            prompt_start: false,
            mtu_probing: MtuProbing::default(),
            keep_alive: None,
            user_timeout: None,
            challenges: 10,
            out_of_window_acks: 10,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Some(Duration::from_secs(60)), // Linux: tcp_fin_timeout.
            mechanisms: Vec::new(),
        }
    }
}
