//! The coding of a flow: across packets, from end to end, and within each packet, from node to
//! node.

use super::traffic::Traffic;
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Count, Probability, Written};
use crate::reading::shape::{OrReport as _, Shape, number, table, unexpected};
use base::Duration;
use core::ops::Range;
use middlebox::fec::{PacketStrength, Settings, Signal, Strength};
use serde_json::{Value, json};
use toml::Spanned;
use wire::Packet;

/// Erasure coding across packets, from end to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coding {
    /// The settings of both ends.
    pub settings: Settings,
    /// Which losses are signalled to congestion control.
    pub signal: Signal,
    /// Where the encoder takes the probability of corruption from.
    pub corruption: Corruption,
}

/// Where an encoder takes the probability of corruption from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Corruption {
    /// The file: the probability per packet.
    Known(f64),
    /// Cumulative ETEN.
    Reported,
}

/// The flow that is coded.
pub(crate) struct Carrier<'a> {
    pub(crate) traffic: Option<&'a Traffic>,
    /// Whether it uses ECN.
    pub(crate) ecn: bool,
    /// Whether Cumulative ETEN reports probabilities to its sender.
    pub(crate) reported: bool,
    /// The largest payload of a segment without a code, bytes.
    pub(crate) mss: u16,
}

/// Both codes of a flow.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    pub(crate) erasure: Option<Coding>,
    pub(crate) per_packet: Option<PacketStrength>,
}

/// As written.
#[derive(Debug)]
pub(crate) enum Form {
    Off,
    On(Box<Table>),
}

table! {
    /// Coding of a flow's data: repair packets, from which the receiving host rebuilds lost
    /// packets, and redundancy in each packet, with which nodes correct it.
    pub(crate) struct Table {
        /// Source packets in a block, 1 to 200; 20 if absent.
        block: Spanned<Count>;
        /// Repair packets per source packet, 0 to 1; or `"cumulative"`, as many as the corruption
        /// that Cumulative ETEN reports requires. If absent, as many as `corruption` requires.
        strength: Spanned<Power>;
        /// The probability of corruption per packet that the strength follows.
        corruption: Spanned<Probability>;
        /// The target probability that a block cannot be repaired, for a strength that follows
        /// corruption; 0.001 if absent.
        target: Spanned<Probability>;
        /// How long a block stays open at the sender; packets behind a gap wait at the receiver for
        /// at most twice as long. 100 ms if absent.
        wait: Spanned<Written<Duration>>;
        /// Which losses, repaired or not, are signalled to congestion control by ECN: all, none, or
        /// the share that congestion caused according to Cumulative ETEN; all if absent. All but
        /// `none` need `ecn = true`.
        signal: Signal;
        /// The number of wrong bytes that a code in each packet corrects at the end of every link,
        /// 0 to 15, in the direction of the data; or `"cumulative"`, as many as the corruption that
        /// Cumulative ETEN reports requires. Each takes four bytes of a packet, and segments are
        /// shorter than `mss` by the size of the strongest code. 0 if absent.
        per_packet: Spanned<PerPacket>;
        /// The target probability that a packet has more wrong bytes than its code corrects, for a
        /// `per_packet` that follows corruption, above 0; 0.000001 if absent.
        packet_target: Spanned<Probability>;
    }
}

/// The strength of the code across packets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Power {
    /// Repair packets for each source packet.
    Ratio(f64),
    /// As Cumulative ETEN requires.
    Cumulative,
}

impl Shape for Power {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Power> {
        match (node.get_ref().as_str(), number(node)) {
            (Some("cumulative"), _) => Some(Power::Cumulative),
            (_, Some(ratio)) if (0.0..=1.0).contains(&ratio) => Some(Power::Ratio(ratio)),
            _ => unexpected(node, "\"cumulative\" or a number from 0 to 1", problems),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "const": "cumulative" },
            { "title": "ratio", "type": "number", "minimum": 0, "maximum": 1 },
        ] })
    }
}

/// The strength of the code in a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PerPacket {
    /// Wrong bytes that it corrects.
    Bytes(u8),
    /// As Cumulative ETEN requires.
    Cumulative,
}

impl Shape for PerPacket {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<PerPacket> {
        let most = f64::from(PacketStrength::MOST);
        match (node.get_ref().as_str(), number(node)) {
            (Some("cumulative"), _) => Some(PerPacket::Cumulative),
            (_, Some(bytes)) if (0.0..=most).contains(&bytes) && bytes.fract() == 0.0 => {
                Some(PerPacket::Bytes(bytes as u8))
            }
            _ => unexpected(node, "\"cumulative\" or a whole number from 0 to 15", problems),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "const": "cumulative" },
            { "title": "bytes", "type": "integer", "minimum": 0, "maximum": PacketStrength::MOST },
        ] })
    }
}

impl Shape for Form {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Form> {
        match node.get_ref().as_str() {
            Some("off") => Some(Form::Off),
            _ if node.get_ref().is_table() => {
                // Whether something is missing shows once nothing else is wrong.
                let before = problems.len();
                let table = Table::read(node, problems);
                table.filter(|_| problems.len() == before).map(Box::new).map(Form::On)
            }
            _ => unexpected(node, "\"off\" or { strength = 0.1, ... }", problems),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "const": "off" }, Table::schema()], "default": "off" })
    }
}

/// The codes of a flow, checked.
pub(crate) fn resolve(
    form: Option<Spanned<Form>>,
    carrier: &Carrier<'_>,
    problems: &mut Vec<Problem>,
) -> Codes {
    let Some(form) = form else { return Codes::default() };
    let span = form.span();
    let Form::On(table) = form.into_inner() else { return Codes::default() };
    let mut refuse = |message: &str| problems.push(Problem::at(span.clone(), message));
    if let Some(Traffic::Datagrams(_)) = carrier.traffic {
        refuse("only TCP can be coded: expected \"off\" beside `traffic.udp`");
        return Codes::default();
    }
    let per_packet = per_packet(&table, carrier).or_report(problems).flatten();
    let Table { strength, corruption, block, target, wait, signal, .. } = &*table;
    let erases = strength.is_some() || corruption.is_some() || block.is_some();
    let erases = erases || target.is_some() || wait.is_some() || signal.is_some();
    if table.per_packet.is_some() && !erases {
        return Codes { erasure: None, per_packet };
    }
    Codes { erasure: erasure(*table, span, carrier, problems), per_packet }
}

/// The code in each packet; `None` without one.
fn per_packet(table: &Table, carrier: &Carrier<'_>) -> Result<Option<PacketStrength>, Problem> {
    let strength = table.per_packet.as_ref().map(|written| (written.span(), *written.get_ref()));
    let target = match &table.packet_target {
        None => PacketStrength::TARGET,
        Some(target) if !matches!(strength, Some((_, PerPacket::Cumulative))) => {
            let message = "expected `per_packet = \"cumulative\"`, or no `packet_target`";
            return Err(Problem::at(target.span(), message));
        }
        Some(target) if target.get_ref().0 > 0.0 => target.get_ref().0,
        Some(target) => return Err(Problem::at(target.span(), "expected more than 0")),
    };
    let (span, strength) = match strength {
        None | Some((_, PerPacket::Bytes(0))) => return Ok(None),
        Some((span, PerPacket::Bytes(bytes))) => (span, PacketStrength::Fixed(bytes)),
        Some((span, PerPacket::Cumulative)) if carrier.reported => {
            (span, PacketStrength::Following(target))
        }
        Some((span, PerPacket::Cumulative)) => {
            let message = "`cumulative` needs Cumulative ETEN: expected `eten = \"cumulative\"` in the flow's \
                           `tcp`, and nodes that report probabilities in headers";
            return Err(Problem::at(span, message));
        }
    };
    let redundancy = Packet::REDUNDANCY as u16 * u16::from(strength.most());
    if carrier.mss <= 2 * redundancy {
        let message = format!(
            "the code may take {redundancy} bytes of a packet: expected `mss` of the flow's `tcp` to \
             be more than {}",
            2 * redundancy
        );
        return Err(Problem::at(span, message));
    }
    if table.signal == Some(Signal::Share) {
        let message = "the decoder cannot count what codes in packets correct: expected `signal` \"all\" \
                       or \"none\" beside `per_packet`";
        return Err(Problem::at(span, message));
    }
    Ok(Some(strength))
}

/// The code across packets.
fn erasure(
    table: Table,
    span: Range<usize>,
    carrier: &Carrier<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Coding> {
    let mut refuse = |message: &str| problems.push(Problem::at(span.clone(), message));
    let signal = table.signal.unwrap_or_default();
    if signal != Signal::None && !carrier.ecn {
        refuse(
            "losses are signalled to congestion control by ECN: expected `ecn = true` in the flow's \
             `tcp`, or `signal = \"none\"`",
        );
    }
    let cumulative = table.strength.as_ref().map(Spanned::get_ref);
    if !carrier.reported
        && (signal == Signal::Share || matches!(cumulative, Some(Power::Cumulative)))
    {
        refuse(
            "`cumulative` and `share` need Cumulative ETEN: expected `eten = \"cumulative\"` in the \
             flow's `tcp`, and nodes that report probabilities in headers",
        );
    }
    let standard = Settings::default();
    let strength = strength(&table, span).or_report(problems);
    let block = block(table.block, standard.block).or_report(problems);
    let wait = wait(table.wait, standard.wait).or_report(problems);
    let (strength, corruption) = strength?;
    let settings = Settings { block: block?, strength, wait: wait? };
    Some(Coding { settings, signal, corruption })
}

/// The strength, and where it takes the probability of corruption from.
fn strength(table: &Table, span: Range<usize>) -> Result<(Strength, Corruption), Problem> {
    let following = match &table.target {
        None => Strength::default(),
        Some(target) if target.get_ref().0 > 0.0 => Strength::Following(target.get_ref().0),
        Some(target) => return Err(Problem::at(target.span(), "expected more than 0")),
    };
    let power = table.strength.as_ref().map(Spanned::get_ref);
    match (power, &table.corruption) {
        (Some(_), Some(corruption)) => {
            let message = "expected either `strength`, or `corruption` that it follows";
            Err(Problem::at(corruption.span(), message))
        }
        (Some(Power::Ratio(ratio)), None) => match &table.target {
            None => Ok((Strength::Fixed(*ratio), Corruption::Known(0.0))),
            Some(target) => {
                let message = "expected `strength` not to be fixed, or no `target`";
                Err(Problem::at(target.span(), message))
            }
        },
        (Some(Power::Cumulative), None) => Ok((following, Corruption::Reported)),
        (None, Some(corruption)) => Ok((following, Corruption::Known(corruption.get_ref().0))),
        (None, None) => {
            let message = "expected `strength`, or `corruption` that it follows, or `per_packet`";
            Err(Problem::at(span, message))
        }
    }
}

fn block(written: Option<Spanned<Count>>, default: u8) -> Result<u8, Problem> {
    let Some(written) = written else { return Ok(default) };
    let most = Settings::MOST_SOURCES;
    let block = u8::try_from(written.get_ref().0).ok().filter(|block| *block <= most);
    block.ok_or_else(|| Problem::at(written.span(), format!("expected at most {most}")))
}

fn wait(
    written: Option<Spanned<Written<Duration>>>,
    default: Duration,
) -> Result<Duration, Problem> {
    let Some(written) = written else { return Ok(default) };
    match written.get_ref().0 {
        Duration::ZERO => Err(Problem::at(written.span(), "expected more than 0 s")),
        wait => Ok(wait),
    }
}
