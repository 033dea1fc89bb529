//! From a flow's `tcp` table to the settings of its two ends.

use super::file::{self, Headers, IpVersion, Report, Transport};
use super::quantity::{Amount, DelayedAck, Ssthresh, UserTimeout};
use super::{increase, keep_alive};
use crate::error::Problem;
use crate::profile::{Defaults, InitialSsthresh, Window};
use crate::shape::Told as _;
use base::Duration;
use base::units::Size;
use tcp::Config;
use tcp::mechanism::{CumulativeEten, Eten, ForwardEten, Guard, Mechanism, Needs};
use toml::Spanned;

/// The settings of a flow.
pub(super) struct Settings {
    pub(super) sender: Config,
    pub(super) receiver: Config,
    pub(super) eten: Notification,
}

/// Who reports a corruption, and how.
pub(super) struct Notification {
    pub(super) report: Report,
    pub(super) notice_size: u16,
    pub(super) mistakes: f64,
    pub(super) transport: Transport,
    pub(super) headers: Headers,
}

/// The largest window that a scaled window field can say (RFC 7323 §2.3).
const LARGEST_WINDOW: u64 = 65_535 << 14;
/// The largest payload of an IPv4 packet with a TCP header of 20 bytes.
const LARGEST_MSS: u64 = 65_535 - 40;

/// The settings, checked.
pub(super) fn resolve(
    tcp: file::Tcp,
    ip: IpVersion,
    defaults: &Defaults,
    problems: &mut Vec<Problem>,
) -> Option<Settings> {
    let mss = mss(tcp.mss, defaults).told(problems);
    let minimum_mss = minimum_mss(tcp.minimum_mss).told(problems);
    // What depends on a size that is none is looked at once there is one.
    let receive_window =
        mss.and_then(|mss| receive_window(tcp.receive_window, mss, defaults).told(problems));
    let initial_ssthresh = mss.zip(receive_window).and_then(|(mss, window)| {
        ssthresh(tcp.initial_ssthresh, mss, window, defaults).told(problems)
    });
    let increase = increase::resolve(tcp.increase, tcp.congestion).told(problems);
    let delayed_ack = delayed_ack(tcp.delayed_ack, defaults).told(problems);
    let rto = rto(tcp.rto, defaults).told(problems);
    let keep_alive = keep_alive::resolve(tcp.keep_alive).told(problems);
    let user_timeout = user_timeout(tcp.user_timeout).told(problems);
    let mechanisms: Vec<_> =
        tcp.mechanisms.unwrap_or_default().into_iter().map(|entry| entry.0).collect();
    let guard = tcp.eten.as_ref().and_then(|eten| guard(&eten.get_ref().0));
    let eten = eten(tcp.eten, ip, &mechanisms, defaults).told(problems);
    let standard = Config::default();
    let mut receiver = Config {
        mss: mss?,
        minimum_mss: minimum_mss?,
        receive_window: receive_window?,
        recovery: tcp.recovery,
        congestion: tcp.congestion,
        increase: increase?,
        byte_counting: tcp.byte_counting.map_or(defaults.byte_counting, |written| written.0),
        initial_window: tcp.initial_window.map_or(defaults.initial_window, |written| written.0),
        initial_ssthresh: initial_ssthresh?,
        limited_transmit: tcp.limited_transmit.unwrap_or(defaults.limited_transmit),
        delayed_ack: delayed_ack?,
        rto: rto?,
        pipe: tcp.pipe,
        ssthresh_on_backoff: tcp.ssthresh_on_backoff.unwrap_or(defaults.ssthresh_on_backoff),
        validation: tcp.window_validation,
        restart_after_idle: tcp.restart_after_idle,
        reduction: tcp.reduction,
        undo: tcp.undo.unwrap_or(defaults.undo),
        dsack: tcp.dsack.unwrap_or(defaults.dsack),
        timestamps: tcp.timestamps.unwrap_or(defaults.timestamps),
        require_timestamps: tcp.require_timestamps,
        ecn: tcp.ecn,
        nagle: tcp.nagle,
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
    let (eten, notified) = eten?;
    let mut sender = receiver.clone();
    sender.mechanisms.extend(guard.map(Mechanism::Guard));
    if notified.as_ref().is_some_and(|one| one.needs().contains(Needs::RECEIVER)) {
        receiver.mechanisms.extend(notified.clone());
    }
    sender.mechanisms.extend(notified);
    Some(Settings { sender, receiver, eten })
}

/// Who reports a corruption and how, and what an end makes of it.
fn eten(
    written: Option<Spanned<file::Eten>>,
    ip: IpVersion,
    mechanisms: &[Mechanism],
    defaults: &Defaults,
) -> Result<(Notification, Option<Mechanism>), Problem> {
    let span = written.as_ref().map(Spanned::span);
    let table = written.map(|written| written.into_inner().0).unwrap_or_default();
    let notice_size = notice_size(&table.notice_size, ip, defaults)?;
    let report = table.report.unwrap_or_default();
    // Beside "none" they may stay: a sweep may turn notification off.
    let tells = matches!(report, Report::None | Report::Forward);
    let told = "only where `report` is \"forward\" is the receiver told";
    let transport = where_it_means_something(table.transport, tells, told)?;
    let read = "only where `report` is \"backward\" or \"forward\" does a node read them";
    let reads = matches!(report, Report::None | Report::Backward | Report::Forward);
    let headers = where_it_means_something(table.headers, reads, read)?;
    let erring = "only the oracle makes mistakes: expected it with `report = \"oracle\"`";
    let mistakes = table.mistakes.filter(|written| written.get_ref().0 > 0.0);
    let mistakes = mistakes.map(|written| Spanned::new(written.span(), written.get_ref().0));
    let mistakes = where_it_means_something(mistakes, report == Report::Oracle, erring)?;
    let mechanism = match report {
        Report::None => None,
        Report::Oracle | Report::Backward => {
            Some(Mechanism::Eten(Eten::new(table.suppress_dupacks)))
        }
        Report::Forward => Some(Mechanism::ForwardEten(ForwardEten::new(table.suppress_dupacks))),
        Report::Cumulative => {
            let bound = table.bound.map_or(1.0, |bound| bound.0);
            let ceten = CumulativeEten::new(table.strategy, bound, table.fields);
            Some(Mechanism::CumulativeEten(ceten))
        }
    };
    let is_eten = |other: &Mechanism| {
        use Mechanism::{CumulativeEten, Eten, ForwardEten};
        matches!(other, Eten(_) | ForwardEten(_) | CumulativeEten(_))
    };
    if mechanism.is_some() && mechanisms.iter().any(is_eten) {
        let message = "`mechanisms` names eten already".to_owned();
        let problem = Problem { span, message, ..Problem::default() };
        return Err(problem.help("expected it in one place only"));
    }
    Ok((Notification { report, notice_size, mistakes, transport, headers }, mechanism))
}

/// A setting, or its default, of what there is only where it means something.
fn where_it_means_something<T: Default>(
    written: Option<Spanned<T>>,
    means: bool,
    otherwise: &str,
) -> Result<T, Problem> {
    match written {
        Some(written) if !means => Err(Problem::at(written.span(), otherwise)),
        written => Ok(written.map(Spanned::into_inner).unwrap_or_default()),
    }
}

/// The sender's defences against forged notices, if there are any.
fn guard(table: &file::EtenTable) -> Option<Guard> {
    let file::Defences { nonce, trust, limit } = table.defences.as_ref()?;
    // The table's numbers are no larger than this.
    let limit = limit.as_ref().map_or(0, |limit| u32::try_from(limit.0).unwrap_or(u32::MAX));
    let notified = !matches!(table.report, None | Some(Report::None));
    (notified && (*nonce || *trust || limit > 0)).then(|| Guard::new(*nonce, *trust, limit))
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

/// A window written as bytes or segments.
fn window(size: Size) -> Option<Window> {
    match size {
        Size::Bytes(bytes) => Some(Window::Bytes(bytes)),
        Size::Segments(segments) => Some(Window::Segments(segments)),
        Size::Packets(_) => None,
    }
}

fn receive_window(
    written: Option<Spanned<Amount>>,
    mss: u16,
    defaults: &Defaults,
) -> Result<u32, Problem> {
    let span = written.as_ref().map(Spanned::span);
    let bytes = match &written {
        None => Some(defaults.receive_window),
        Some(written) => window(written.get_ref().0),
    }
    .map(|window| window.bytes(mss))
    .filter(|bytes| (u64::from(mss)..=LARGEST_WINDOW).contains(bytes))
    .and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| {
        let message = format!(
            "expected at least one segment ({mss} bytes) and at most {LARGEST_WINDOW} bytes, \
             such as \"20 segments\" or \"64 KiB\""
        );
        Problem { span, message, ..Problem::default() }
    })
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
        Some(Ssthresh::At(size)) => window(size).map(InitialSsthresh::At),
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

fn rto(written: Option<Spanned<file::Rto>>, defaults: &Defaults) -> Result<tcp::Rto, Problem> {
    let Some(written) = written else { return Ok(defaults.rto) };
    let table = written.get_ref();
    let rto = tcp::Rto {
        initial: table.initial.map_or(defaults.rto.initial, |written| written.0),
        minimum: table.minimum.map_or(defaults.rto.minimum, |written| written.0),
        maximum: table.maximum.map_or(defaults.rto.maximum, |written| written.0),
        granularity: table.granularity.map_or(defaults.rto.granularity, |written| written.0),
        estimator: table.estimator.unwrap_or(defaults.rto.estimator),
        restart: table.restart.unwrap_or(defaults.rto.restart),
    };
    let wrong = if rto.initial == Duration::ZERO {
        "`initial`: expected more than 0 s".to_owned()
    } else if rto.granularity == Duration::ZERO {
        "`granularity`: expected more than 0 s".to_owned()
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

/// The size of a notice over a version of IP.
pub(super) fn notice_size(
    written: &Option<Spanned<Amount>>,
    ip: IpVersion,
    defaults: &Defaults,
) -> Result<u16, Problem> {
    let smallest = match ip {
        IpVersion::V4 => wire::CorruptionNotice::SMALLEST,
        IpVersion::V6 => wire::CorruptionNotice::SMALLEST_V6,
    };
    let Some(written) = written else { return Ok(defaults.notice_size) };
    match written.get_ref().0 {
        Size::Bytes(bytes) if (u64::from(smallest)..=65_535).contains(&bytes) => Ok(bytes as u16),
        _ => Err(Problem::at(written.span(), format!("expected {smallest} to 65535 bytes"))),
    }
}
