//! UDP datagrams: traffic that does not respond to congestion, or does so by TFRC.

use super::ip::IpVersion;
use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Written};
use crate::reading::shape::{OrReport as _, table};
use crate::reading::words::words;
use base::units::Size;
use base::{Duration, Rate};
use host::OnOff;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use wire::Tfrc;

/// How datagrams respond to congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateControl {
    /// Not at all.
    #[default]
    None,
    /// By TFRC (RFC 5348).
    Tfrc,
}

words! { RateControl }

/// UDP datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// Bytes of each, with the headers of IP, UDP and TFRC.
    pub packet: u16,
    /// Bits per second, headers included; with bursts, during a burst; with TFRC, at most.
    pub rate: Rate,
    /// How they respond to congestion.
    pub rate_control: RateControl,
    /// Losses by corruption, as far as the receiver is told, are no loss events of TFRC.
    pub loss_causes: bool,
    /// Bursts and silences; `None` for a constant bit rate.
    pub bursts: Option<OnOff>,
    /// How long, from the start of the flow; `None` to the end of the run.
    pub lasts: Option<Duration>,
}

impl Datagrams {
    /// Bytes of payload in each.
    #[must_use]
    pub fn payload(&self, ip: IpVersion) -> u32 {
        u32::from(self.packet - Datagrams::headers(ip, self.rate_control))
    }

    /// Bytes of the headers of IP, UDP and TFRC.
    fn headers(ip: IpVersion, rate_control: RateControl) -> u16 {
        let network = match ip {
            IpVersion::V4 => 28,
            IpVersion::V6 => 48,
        };
        network
            + match rate_control {
                RateControl::None => 0,
                RateControl::Tfrc => Tfrc::DATA as u16,
            }
    }
}

table! {
    /// Datagrams at a constant bit rate, in bursts, or at the rate of TFRC.
    pub(crate) struct DatagramsTable {
        /// Bits per second, headers included; with `on` and `off`, during a burst; with `rate_control`, the
        /// rate of the application, which is not exceeded.
        rate: Written<Rate>, needed;
        /// Bytes of each datagram, with the headers of IP and UDP, and of TFRC.
        packet: Spanned<Amount>, needed;
        /// How the datagrams respond to congestion: not at all (`none`), or by TCP-Friendly Rate Control, RFC 5348
        /// (`tfrc`). Its header has 12 bytes.
        rate_control: RateControl = RateControl::default();
        /// With `rate_control = "tfrc"`: losses by corruption are no loss events, if the receiver's node learns
        /// the causes (box `esp` with `loss_causes`).
        loss_causes: Spanned<bool>;
        /// The mean length of a burst. Bursts and silences alternate, both of exponential length; a
        /// constant bit rate if absent.
        on: Spanned<Written<Duration>>;
        /// The mean length of a silence.
        off: Spanned<Written<Duration>>;
        /// How long they are sent, from the start of the flow; to the end of the run if absent.
        lasts: Spanned<Written<Duration>>;
    }
}

/// Datagrams, checked.
pub(crate) fn resolve(
    table: &Spanned<DatagramsTable>,
    ip: IpVersion,
    problems: &mut Vec<Problem>,
) -> Option<Datagrams> {
    let DatagramsTable { rate, packet, on, off, lasts, rate_control, loss_causes } =
        table.get_ref();
    let rate_control = *rate_control;
    if let (RateControl::None, Some(causes)) = (rate_control, loss_causes) {
        let message = "expected `rate_control = \"tfrc\"` beside `loss_causes`";
        problems.push(Problem::at(causes.span(), message));
    }
    if let (RateControl::Tfrc, Some(burst)) = (rate_control, on.as_ref().or(off.as_ref())) {
        let message = "TFRC sends at a steady rate: expected neither `on` nor `off`";
        problems.push(Problem::at(burst.span(), message));
    }
    let least = Datagrams::headers(ip, rate_control) + 1;
    let packet = packet.as_ref().and_then(|packet| size(packet, least).or_report(problems));
    let mut some = |span: &Option<Spanned<Written<Duration>>>| {
        span.as_ref().map(|span| match span.get_ref().0 {
            Duration::ZERO => {
                problems.push(Problem::at(span.span(), "expected more than 0 s"));
                None
            }
            length => Some(length),
        })
    };
    let (on, off, lasts) = (some(on), some(off), some(lasts));
    let bursts = match (on, off) {
        (None, None) => Some(None),
        (Some(on), Some(off)) => on.zip(off).map(|(on, off)| Some(OnOff { on, off })),
        _ => {
            problems.push(Problem::at(table.span(), "expected both `on` and `off`, or neither"));
            None
        }
    };
    let lasts = match lasts {
        None => None,
        Some(lasts) => Some(lasts?),
    };
    Some(Datagrams {
        packet: packet?,
        rate: rate.as_ref()?.0,
        rate_control,
        loss_causes: loss_causes.as_ref().is_some_and(|causes| *causes.get_ref()),
        bursts: bursts?,
        lasts,
    })
}

fn size(packet: &Spanned<Amount>, least: u16) -> Result<u16, Problem> {
    match packet.get_ref().0 {
        Size::Bytes(bytes) if (u64::from(least)..=65_535).contains(&bytes) => Ok(bytes as u16),
        _ => Err(Problem::at(packet.span(), format!("expected {least} to 65535 bytes"))),
    }
}
