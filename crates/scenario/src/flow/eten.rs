//! Explicit transport error notification (ETEN): what reports corruption to a flow's sender, and
//! how the sender reacts.

use super::ip::IpVersion;
use super::profile::Defaults;
use crate::ceten::Ceten;
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Count, Probability};
use crate::reading::shape::{Shape, number, table, unexpected};
use crate::reading::words::words;
use base::units::Size;
pub use middlebox::{Headers, Transport};
use serde_json::{Value, json};
use tcp::mechanism::{
    CumulativeEten, Eten, Fields, ForwardEten, Mechanism, NoticeAuthentication, Strategy,
    Suppression,
};
use toml::Spanned;

/// What reports a corruption to the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// Nothing.
    #[default]
    None,
    /// The simulator itself, at the moment of detection and without a packet.
    Oracle,
    /// The node that detects it, by a packet to the sender.
    Backward,
    /// The receiver, in its acknowledgments, after the node that detects the corruption has
    /// notified it.
    Forward,
    /// All nodes, by what they add to the headers of packets.
    Cumulative,
}

words! { Report Transport Headers }

/// The ETEN settings of a flow, checked.
pub(crate) struct Notification {
    pub(crate) report: Report,
    pub(crate) notice_size: u16,
    pub(crate) mistakes: f64,
    pub(crate) transport: Transport,
    pub(crate) headers: Headers,
    /// The mechanism of the ends that react to it.
    pub(crate) mechanism: Option<Mechanism>,
    /// The sender's defences against forged notices.
    pub(crate) guard: Option<NoticeAuthentication>,
}

table! {
    /// Explicit transport error notification (ETEN): what reports a corruption, and how the sender
    /// reacts.
    pub(crate) struct Table {
        /// What reports a corruption to the sender: nothing (`none`); the simulator itself
        /// (`oracle`); the node that detects it, by a packet (`backward`); the receiver, which that
        /// node notifies (`forward`); or all nodes, by what they add to packet headers
        /// (`cumulative`).
        report: Report, needed;
        /// Which reported corruptions keep their duplicate ACKs from reducing the window: all, the
        /// first of a window, or none.
        suppress_dupacks: Suppression = Suppression::default();
        /// Size of a notice, bytes of the whole packet.
        notice_size: Spanned<Amount>;
        /// The probability that the oracle reports a packet as corrupted that a queue dropped; 0 if
        /// absent. Only with `report = "oracle"`.
        mistakes: Spanned<Probability>;
        /// How the node notifies the receiver; `"message"` if absent. Only with `report =
        /// "forward"`.
        transport: Spanned<Transport>;
        /// What the node that detects a corruption can read: all headers, or what the checksums
        /// confirm after one bit of the packet is flipped; `"readable"` if absent.
        headers: Spanned<Headers>;
        /// With `cumulative`: how the sender decides whether a loss was corruption.
        strategy: Strategy = Strategy::default();
        /// With `cumulative`: the largest share of the flight size that the window may keep after a
        /// loss, whatever the nodes report.
        bound: Bound;
        /// With `cumulative`: whether the fields that packets carry for it take bytes.
        fields: Fields = Fields::default();
        /// The sender's defences against forged notices; none if absent.
        defences: Defences;
    }
}

table! {
    /// Defences against forged notices; each may be on alone.
    pub(crate) struct Defences {
        /// Segments carry random numbers that only nodes on the path can read; a notice that does
        /// not repeat one is ignored.
        nonce: bool = false;
        /// Notices that prove false cost reputation; below a threshold, notices are ignored for a
        /// while.
        trust: bool = false;
        /// The largest number of notices accepted in a round trip; unlimited if absent.
        limit: Count;
    }
}

/// As written: a word, which stands for a table with that `report`, or the table.
#[derive(Debug, Default)]
pub(crate) struct Form(Table);

impl Shape for Form {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Form> {
        if node.get_ref().is_table() {
            return Table::read(node, problems).map(Form);
        }
        let report = match node.get_ref().as_str() {
            Some("none") => Report::None,
            Some("oracle") => Report::Oracle,
            Some("backward") => Report::Backward,
            Some("forward") => Report::Forward,
            Some("cumulative") => Report::Cumulative,
            _ => {
                let expected = "\"none\", \"oracle\", \"backward\", \"forward\", \"cumulative\", or \
                                { report = one of them, ... }";
                return unexpected(node, expected, problems);
            }
        };
        Some(Form(Table { report: Some(report), ..Table::default() }))
    }

    fn schema() -> Value {
        json!({ "anyOf": [Report::schema(), Table::schema()], "default": "none" })
    }
}

/// The largest share of the flight size that the window may keep after a loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound(pub(crate) f64);

impl Shape for Bound {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Bound> {
        match number(node) {
            Some(bound) if (0.5..=1.0).contains(&bound) => Some(Bound(bound)),
            _ => unexpected(node, "a number from 0.5 to 1", problems),
        }
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0.5, "maximum": 1, "default": 1 })
    }
}

/// The ETEN settings of a flow, checked.
pub(crate) fn resolve(
    written: Option<Spanned<Form>>,
    ip: IpVersion,
    mechanisms: &[Mechanism],
    network: &Ceten,
    defaults: &Defaults,
) -> Result<Notification, Problem> {
    let span = written.as_ref().map(Spanned::span);
    let table = written.map(|written| written.into_inner().0).unwrap_or_default();
    let notice_size = notice_size(&table.notice_size, ip, defaults)?;
    let guard = guard(&table);
    let report = table.report.unwrap_or_default();
    // Beside "none" they may stay: a sweep may turn notification off.
    let forward = matches!(report, Report::None | Report::Forward);
    let needs = "`transport` needs `report = \"forward\"`: only then is the receiver notified";
    let transport = only_if(forward, table.transport, needs)?;
    let needs =
        "`headers` needs `report` \"backward\" or \"forward\": only then does a node read them";
    let reads = matches!(report, Report::None | Report::Backward | Report::Forward);
    let headers = only_if(reads, table.headers, needs)?;
    let needs = "`mistakes` needs `report = \"oracle\"`: only the oracle makes them";
    let mistakes = table.mistakes.filter(|written| written.get_ref().0 > 0.0);
    let mistakes = mistakes.map(|written| Spanned::new(written.span(), written.get_ref().0));
    let mistakes = only_if(report == Report::Oracle, mistakes, needs)?;
    let mechanism = match report {
        Report::None => None,
        Report::Oracle | Report::Backward => {
            Some(Mechanism::Eten(Eten::new(table.suppress_dupacks)))
        }
        Report::Forward => Some(Mechanism::ForwardEten(ForwardEten::new(table.suppress_dupacks))),
        Report::Cumulative => {
            let bound = table.bound.map_or(1.0, |bound| bound.0);
            let ceten = CumulativeEten::new(table.strategy, bound, table.fields);
            Some(Mechanism::CumulativeEten(network.of_ends(ceten)))
        }
    };
    let is_eten = |other: &Mechanism| {
        use Mechanism::{CumulativeEten, Eten, ForwardEten};
        matches!(other, Eten(_) | ForwardEten(_) | CumulativeEten(_))
    };
    if mechanism.is_some() && mechanisms.iter().any(is_eten) {
        let message = "`mechanisms` lists an ETEN mechanism already".to_owned();
        let problem = Problem { span, message, ..Problem::default() };
        return Err(problem.help("expected ETEN in one of the two places"));
    }
    Ok(Notification { report, notice_size, mistakes, transport, headers, mechanism, guard })
}

/// A setting, or its default; an error where the setting has no effect.
fn only_if<T: Default>(
    allowed: bool,
    written: Option<Spanned<T>>,
    otherwise: &str,
) -> Result<T, Problem> {
    match written {
        Some(written) if !allowed => Err(Problem::at(written.span(), otherwise)),
        written => Ok(written.map(Spanned::into_inner).unwrap_or_default()),
    }
}

/// The sender's defences against forged notices, if there are any.
fn guard(table: &Table) -> Option<NoticeAuthentication> {
    let Defences { nonce, trust, limit } = table.defences.as_ref()?;
    // The table's numbers are no larger than this.
    let limit = limit.as_ref().map_or(0, |limit| u32::try_from(limit.0).unwrap_or(u32::MAX));
    let notified = !matches!(table.report, None | Some(Report::None));
    (notified && (*nonce || *trust || limit > 0))
        .then(|| NoticeAuthentication::new(*nonce, *trust, limit))
}

/// The size of a notice over a version of IP.
pub(crate) fn notice_size(
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
