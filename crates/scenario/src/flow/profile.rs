//! Profiles: the default settings of TCP at a time.

use crate::reading::words::words;
use base::Duration;
use base::units::Size;
use serde::{Deserialize, Serialize};
use tcp::congestion::Congestion;
use tcp::{
    Estimator, InitialWindow, ReceiveWindow, Recovery, Reduction, Restart, Rto, SsthreshOnBackoff,
};

/// A set of defaults for the TCP settings that a scenario leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Profile {
    /// ns-2 as it was in 2001.
    #[serde(rename = "ns2-2001")]
    Ns2In2001,
    /// ns-2 as it was in 2007.
    #[serde(rename = "ns2-2007")]
    Ns2In2007,
    /// SunOS 4.1 as it was in 1994.
    #[serde(rename = "sunos-1994")]
    SunOsIn1994,
    /// Today's RFCs.
    #[default]
    #[serde(rename = "modern")]
    Modern,
}

words! { Profile }

/// An amount of data, before the segment size is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Bytes.
    Bytes(u64),
    /// Full-sized segments.
    Segments(u64),
}

impl Window {
    /// A size in bytes or segments.
    pub(crate) fn of(size: Size) -> Option<Window> {
        match size {
            Size::Bytes(bytes) => Some(Window::Bytes(bytes)),
            Size::Segments(segments) => Some(Window::Segments(segments)),
            Size::Packets(_) => None,
        }
    }

    /// Bytes, for segments of `mss` bytes.
    #[must_use]
    pub fn bytes(self, mss: u16) -> u64 {
        match self {
            Window::Bytes(bytes) => bytes,
            Window::Segments(segments) => segments.saturating_mul(u64::from(mss)),
        }
    }
}

/// The receiver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveBuffer {
    /// Of one size.
    Fixed(Window),
    /// Tuned to the path.
    Auto(ReceiveWindow),
}

/// The slow-start threshold of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSsthresh {
    /// Arbitrarily high (RFC 5681 §3.1).
    Infinite,
    /// The receive window.
    ReceiveWindow,
    /// A given amount.
    At(Window),
}

/// The defaults of a profile. All other settings are those of [`tcp::Config::default`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Largest payload of a segment, bytes.
    pub mss: u16,
    /// The receiver's buffer.
    pub receive_window: ReceiveBuffer,
    /// How losses are detected and repaired.
    pub recovery: Recovery,
    /// The congestion-control algorithm.
    pub congestion: Congestion,
    /// Initial congestion window.
    pub initial_window: InitialWindow,
    /// Initial slow-start threshold.
    pub initial_ssthresh: InitialSsthresh,
    /// Growth by the bytes acknowledged (RFC 3465), in slow start by at most this many segments per
    /// ACK; `None` counts ACKs.
    pub byte_counting: Option<u32>,
    /// End the initial slow start once the round trip grows (HyStart++, RFC 9406).
    pub hystart: bool,
    /// Pace segments over the round trip.
    pub pacing: bool,
    /// How the window is reduced in fast recovery.
    pub reduction: Reduction,
    /// New data on the first two duplicate acknowledgments (RFC 3042).
    pub limited_transmit: bool,
    /// Longest delay of an acknowledgment; `None` acknowledges every segment.
    pub delayed_ack: Option<Duration>,
    /// The retransmission timer.
    pub rto: Rto,
    /// What a repeated timeout does to the slow-start threshold.
    pub ssthresh_on_backoff: SsthreshOnBackoff,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Report duplicate segments (RFC 2883).
    pub dsack: bool,
    /// Undo spurious window reductions.
    pub undo: bool,
    /// Find spurious timeouts, and undo them (F-RTO, RFC 5682).
    pub frto: bool,
    /// Size of a notice of corruption, bytes of the whole packet.
    pub notice_size: u16,
    /// How long a closed connection keeps its ports.
    pub time_wait: Duration,
}

impl Defaults {
    /// The same for IPv6, whose header is 20 bytes longer: segments are 20 bytes shorter, so that
    /// packets have the same size, and notices of corruption quote as much.
    #[must_use]
    pub fn over_ipv6(self) -> Defaults {
        let notice_size = self.notice_size.max(middlebox::Reporter::SIZE_ICMPV6);
        Defaults { mss: self.mss - 20, notice_size, ..self }
    }

    /// The same for a flow of many connections, which reuses its ports soon.
    #[must_use]
    pub fn of_many(self) -> Defaults {
        Defaults { time_wait: Duration::from_secs(1), ..self }
    }
}

impl Profile {
    /// Every profile with its name in scenario files.
    pub const ALL: &[(&str, Profile)] = &[
        ("ns2-2001", Profile::Ns2In2001),
        ("ns2-2007", Profile::Ns2In2007),
        ("sunos-1994", Profile::SunOsIn1994),
        ("modern", Profile::Modern),
    ];

    /// What the profile sets.
    #[must_use]
    pub fn defaults(self) -> Defaults {
        let modern = tcp::Config::default();
        match self {
            Profile::Modern => Defaults {
                mss: modern.mss,
                receive_window: ReceiveBuffer::Auto(modern.receive_window),
                recovery: modern.recovery,
                congestion: modern.congestion,
                initial_window: modern.initial_window,
                initial_ssthresh: InitialSsthresh::Infinite,
                byte_counting: modern.byte_counting,
                hystart: modern.hystart,
                pacing: modern.pacing,
                reduction: modern.reduction,
                limited_transmit: modern.limited_transmit,
                delayed_ack: modern.delayed_ack,
                rto: modern.rto,
                ssthresh_on_backoff: modern.ssthresh_on_backoff,
                timestamps: modern.timestamps,
                dsack: modern.dsack,
                undo: modern.undo,
                frto: modern.frto,
                notice_size: middlebox::Reporter::SIZE_ICMP,
                time_wait: modern.time_wait,
            },
            Profile::Ns2In2001 => Defaults {
                initial_window: InitialWindow::Segments(1),
                limited_transmit: false,
                rto: Rto {
                    initial: Duration::from_secs(6),
                    granularity: Duration::from_millis(100),
                    ..NS2_RTO
                },
                ssthresh_on_backoff: SsthreshOnBackoff::Hold,
                ..NS2
            },
            Profile::Ns2In2007 => NS2,
            Profile::SunOsIn1994 => SUN_OS,
        }
    }
}

/// tcpTick_ 0.01, minrto_ 0.2, maxrto_ 60 and an initial timeout of 3 s: ns-2 2.31.
const NS2_RTO: Rto = Rto {
    initial: Duration::from_secs(3),
    minimum: Duration::from_millis(200),
    maximum: Duration::from_secs(60),
    granularity: Duration::from_millis(10),
    minimum_variance: Duration::ZERO,
    estimator: Estimator::Ticks,
    restart: Restart::Retransmission,
};

/// ns-2 2.31. segsize_ 536 is FullTcp's, window_ 20 that of all agents; ssthresh_ starts as the
/// window, and every segment is acknowledged unless DelAck is named.
const NS2: Defaults = Defaults {
    mss: 536,
    receive_window: ReceiveBuffer::Fixed(Window::Segments(20)),
    recovery: Recovery::Sack,
    congestion: Congestion::Aimd,
    initial_window: InitialWindow::Segments(2),
    initial_ssthresh: InitialSsthresh::ReceiveWindow,
    byte_counting: None,
    hystart: false,
    pacing: false,
    reduction: Reduction::Immediate,
    limited_transmit: true,
    delayed_ack: None,
    rto: NS2_RTO,
    ssthresh_on_backoff: SsthreshOnBackoff::Halve,
    timestamps: false,
    dsack: false,
    undo: false,
    frto: false,
    notice_size: middlebox::Reporter::SIZE_NS2,
    time_wait: Duration::from_secs(60),
};

/// SunOS 4.1.3, the TCP of 4.3BSD Tahoe, as Paxson classes it, too ("Automated packet trace analysis of
/// TCP implementations", SIGCOMM 1997): fast retransmit without fast recovery. Its default for a remote
/// host is segments of 512 bytes (`tcp_default_mss`), and for every socket 4096 bytes of buffer
/// (`tcp_sendspace`, `tcp_recvspace`). The send buffer is set where the traffic is.
///
/// The clock of retransmissions is that of 4.3BSD, PR_SLOWHZ = 2 ticks a second: TCPTV_MIN is two ticks,
/// TCPTV_REXMTMAX 64 s, and a SYN is repeated after 6 s. An acknowledgment is sent for every second
/// segment, or by a timer of 200 ms (PR_FASTHZ = 5). Two details differ: 4.3BSD delays an acknowledgment
/// up to the next tick of that timer, and takes one round-trip sample at a time.
const SUN_OS: Defaults = Defaults {
    mss: 512,
    receive_window: ReceiveBuffer::Fixed(Window::Bytes(4096)),
    recovery: Recovery::Tahoe,
    initial_window: InitialWindow::Segments(1),
    // TCP_MAXWIN.
    initial_ssthresh: InitialSsthresh::At(Window::Bytes(65_535)),
    limited_transmit: false,
    delayed_ack: Some(Duration::from_millis(200)),
    rto: Rto {
        initial: Duration::from_secs(6),
        minimum: Duration::from_secs(1),
        maximum: Duration::from_secs(64),
        granularity: Duration::from_millis(500),
        minimum_variance: Duration::ZERO,
        estimator: Estimator::Tahoe,
        restart: Restart::Retransmission,
    },
    notice_size: middlebox::Reporter::SIZE_ICMP,
    // The rest is what ns-2 took from 4.3BSD: acknowledgments are counted, not bytes, every timeout
    // halves ssthresh, and there are no options.
    ..NS2
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_profiles_are_ns2s() {
        let old = Profile::Ns2In2001.defaults();
        assert_eq!((old.initial_window, old.limited_transmit), (InitialWindow::Segments(1), false));
        assert_eq!(old.rto.granularity, Duration::from_millis(100));
        assert_eq!(old.rto.minimum, Duration::from_millis(200));
        assert_eq!(old.rto.initial, Duration::from_secs(6));

        let new = Profile::Ns2In2007.defaults();
        assert_eq!((new.initial_window, new.limited_transmit), (InitialWindow::Segments(2), true));
        assert_eq!(new.rto.granularity, Duration::from_millis(10));
        assert_eq!(new.rto.minimum, Duration::from_millis(200));
        assert_eq!(new.rto.initial, Duration::from_secs(3));
        assert_eq!(new.ssthresh_on_backoff, SsthreshOnBackoff::Halve);

        for defaults in [old, new] {
            assert_eq!(defaults.delayed_ack, None);
            assert_eq!(defaults.rto.estimator, Estimator::Ticks);
            assert_eq!(defaults.initial_ssthresh, InitialSsthresh::ReceiveWindow);
            assert_eq!(defaults.notice_size, 180);
            assert_eq!(
                (defaults.recovery, defaults.congestion),
                (Recovery::Sack, Congestion::Aimd)
            );
            assert_eq!((defaults.reduction, defaults.byte_counting), (Reduction::Immediate, None));
            assert!(!defaults.hystart && !defaults.pacing && !defaults.frto);
        }
    }

    #[test]
    fn sun_os_has_the_clock_and_the_buffers_of_4_3bsd() {
        let old = Profile::SunOsIn1994.defaults();
        assert_eq!((old.mss, old.recovery), (512, Recovery::Tahoe));
        assert_eq!(old.receive_window, ReceiveBuffer::Fixed(Window::Bytes(4096)));
        assert_eq!(old.rto.granularity, Duration::from_millis(500));
        assert_eq!(old.rto.estimator, Estimator::Tahoe);
        assert_eq!(
            (old.rto.minimum, old.rto.initial),
            (old.rto.granularity * 2, Duration::from_secs(6))
        );
        assert_eq!(old.delayed_ack, Some(Duration::from_millis(200)));
        assert_eq!((old.initial_window, old.byte_counting), (InitialWindow::Segments(1), None));
        assert!(!old.timestamps && !old.dsack && !old.undo && !old.frto && !old.limited_transmit);
    }

    #[test]
    fn packets_of_ipv6_are_as_large() {
        let sizes = |defaults: Defaults| (defaults.mss, defaults.notice_size);
        let over_ipv6 = |profile: Profile| sizes(profile.defaults().over_ipv6());
        assert_eq!(over_ipv6(Profile::Modern), (1440, 96));
        assert_eq!(over_ipv6(Profile::Ns2In2007), (516, 180));
    }

    #[test]
    fn modern_is_what_the_rfcs_say() {
        let modern = Profile::Modern.defaults();
        assert_eq!(
            (modern.initial_window, modern.limited_transmit),
            (InitialWindow::Segments(10), true)
        );
        assert_eq!(modern.delayed_ack, Some(Duration::from_millis(40)));
        assert_eq!(modern.rto.minimum, Duration::from_secs(1));
        assert_eq!(modern.rto.initial, Duration::from_secs(1));
        assert_eq!(modern.ssthresh_on_backoff, SsthreshOnBackoff::Hold);
        assert_eq!(modern.initial_ssthresh, InitialSsthresh::Infinite);
        assert_eq!(modern.notice_size, 56);
        assert_eq!((modern.recovery, modern.congestion), (Recovery::Rack, Congestion::Cubic));
        assert_eq!((modern.reduction, modern.byte_counting), (Reduction::Prr, Some(u32::MAX)));
        assert!(modern.hystart && modern.frto);
        assert!(matches!(modern.receive_window, ReceiveBuffer::Auto(window) if window.is_tuned()));
    }
}
