//! UDP datagrams: traffic that does not respond to congestion.

use super::ip::IpVersion;
use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Written};
use crate::reading::shape::{OrReport as _, table};
use base::units::Size;
use base::{Duration, Rate};
use host::OnOff;
use toml::Spanned;

/// UDP datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// Bytes of each, with the headers of IP and UDP.
    pub packet: u16,
    /// Bits per second, headers included; with bursts, during a burst.
    pub rate: Rate,
    /// Bursts and silences; `None` for a constant bit rate.
    pub bursts: Option<OnOff>,
    /// How long, from the start of the flow; `None` to the end of the run.
    pub lasts: Option<Duration>,
}

impl Datagrams {
    /// Bytes of payload in each.
    #[must_use]
    pub fn payload(&self, ip: IpVersion) -> u32 {
        u32::from(self.packet - Datagrams::headers(ip))
    }

    /// Bytes of the headers of IP and UDP.
    fn headers(ip: IpVersion) -> u16 {
        match ip {
            IpVersion::V4 => 28,
            IpVersion::V6 => 48,
        }
    }
}

table! {
    /// Datagrams at a constant bit rate, or in bursts.
    pub(crate) struct DatagramsTable {
        /// Bits per second, headers included; with `on` and `off`, during a burst.
        rate: Written<Rate>, needed;
        /// Bytes of each datagram, with the headers of IP and UDP.
        packet: Spanned<Amount>, needed;
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
    let DatagramsTable { rate, packet, on, off, lasts } = table.get_ref();
    let packet = packet.as_ref().and_then(|packet| size(packet, ip).or_report(problems));
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
    Some(Datagrams { packet: packet?, rate: rate.as_ref()?.0, bursts: bursts?, lasts })
}

fn size(packet: &Spanned<Amount>, ip: IpVersion) -> Result<u16, Problem> {
    let least = Datagrams::headers(ip) + 1;
    match packet.get_ref().0 {
        Size::Bytes(bytes) if (u64::from(least)..=65_535).contains(&bytes) => Ok(bytes as u16),
        _ => Err(Problem::at(packet.span(), format!("expected {least} to 65535 bytes"))),
    }
}
