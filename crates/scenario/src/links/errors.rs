//! The error models.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::files::Files;
use crate::reading::quantity::{Packets, Probability, Written};
use crate::reading::schedule::Schedule;
use crate::reading::shape::{Both, OrReport as _, Shape, table, unexpected};
use base::Duration;
use base::units::Size;
use link::{Damage, ErrorModel, GilbertElliott, PacketTrace, Uniform};
use serde_json::{Value, json};
use toml::Spanned;

table! {
    /// Independent errors.
    pub(super) struct Single {
        /// The probability that a bit is wrong, independently of others (the bit error rate): a
        /// packet with a wrong bit arrives and is detected as corrupted.
        bit: Probability;
        /// The probability that a packet is lost, independently of others.
        packet: Probability;
    }
}

table! {
    /// Other error models, of which a direction has one.
    pub(super) struct Models {
        /// The Gilbert-Elliott model, with a good and a bad state that may change after each
        /// packet: `loss` and `burst`, or `p` and `r`, with `h` and `k` if needed.
        gilbert_elliott as "gilbert-elliott": Channel;
        /// Runs of damaged packets, with gaps between them.
        bursts: Bursts;
        /// Times with errors other than `bit` and `packet` beside it.
        fades: Fades;
        /// A file that says which packets are damaged.
        trace: Trace;
    }
}

/// The errors of a direction.
pub(super) type Errors = Both<Single, Models>;

/// Errors outside of fades, and the fades.
type Fades = Both<Single, Schedule<Single>>;

table! {
    /// The model of Gilbert and Elliott, in one of two descriptions.
    struct ChannelTable {
        /// The mean share of damaged packets.
        loss: Spanned<Probability>;
        /// The mean length of a run of damaged packets.
        burst: Packets;
        /// The probability of a change from good to bad after a packet.
        p: Probability;
        /// The probability of a change from bad to good after a packet.
        r: Probability;
        /// The probability that a packet survives the bad state; 0 if absent.
        h: Probability;
        /// The probability that a packet survives the good state; 1 if absent.
        k: Probability;
        /// What happens to damaged packets: they are lost (`loss`, if absent), or they arrive and
        /// are detected as corrupted.
        damage: Damage;
    }
}

/// A channel with two states.
#[derive(Debug)]
pub(super) struct Channel(GilbertElliott);

impl Shape for Channel {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Channel> {
        let before = problems.len();
        let table = ChannelTable::read(node, problems)?;
        if problems.len() > before {
            return None;
        }
        channel(&table, node).or_report(problems).map(Channel)
    }

    fn schema() -> Value {
        ChannelTable::schema()
    }
}

table! {
    /// Bursts of errors.
    pub(super) struct Bursts {
        /// The mean gap between bursts: a time, intact packets or intact bytes. Times are
        /// exponential, numbers geometric.
        gap: Spanned<Gap>, needed;
        /// The mean number of damaged packets in a burst; geometric.
        length: Packets, needed;
        /// What happens to damaged packets: they are lost (`loss`, if absent), or they arrive and
        /// are detected as corrupted.
        damage: Damage;
    }
}

table! {
    /// A file that says which packets are damaged.
    pub(super) struct TraceFile {
        /// Its path, relative to that of the scenario. Each line is the number of a packet, from 0
        /// in the order of transmission, and `loss` or `corruption`; `#` begins a comment.
        file: Spanned<String>, needed;
        /// The number of packets after which the trace repeats; if absent, all later packets are
        /// intact.
        every: Spanned<Written<Size>>;
    }
}

/// The path of a file, or a table with it.
#[derive(Debug)]
pub(super) struct Trace(TraceFile);

impl Shape for Trace {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Trace> {
        match node.get_ref().as_str() {
            Some(file) => {
                let file = Some(Spanned::new(node.span(), file.to_owned()));
                Some(Trace(TraceFile { file, every: None }))
            }
            None if node.get_ref().is_table() => TraceFile::read(node, problems).map(Trace),
            None => unexpected(node, "the path of a file, or { file = \"...\" }", problems),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [String::schema(), TraceFile::schema()] })
    }
}

/// The gap between bursts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap(link::Gap);

impl Shape for Gap {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Gap> {
        let text = node.get_ref().as_str().unwrap_or_default();
        let gap = match (text.parse::<Duration>(), text.parse::<Size>()) {
            (Ok(time), _) if time > Duration::ZERO => link::Gap::Time(time),
            (_, Ok(Size::Packets(packets @ 1..))) => link::Gap::Packets(packets as f64),
            (_, Ok(Size::Bytes(bytes @ 1..))) => link::Gap::Bytes(bytes as f64),
            _ => {
                let expected = "more than 0: a duration, packets or bytes, such as \"200 ms\", \
                                \"500 packets\" or \"1 MB\"";
                return unexpected(node, expected, problems);
            }
        };
        Some(Gap(gap))
    }

    fn schema() -> Value {
        json!({ "anyOf": [Written::<Duration>::schema(), Written::<Size>::schema()] })
    }
}

/// The error model, checked.
pub(super) fn resolve(errors: &Spanned<Errors>, files: &Files) -> Result<ErrorModel, Problem> {
    let Both(single, models) = errors.get_ref();
    let Models { gilbert_elliott, bursts, fades, trace } = models;
    let kinds = [
        ("bit", single.bit.is_some()),
        ("packet", single.packet.is_some() && single.bit.is_none()),
        ("gilbert-elliott", gilbert_elliott.is_some()),
        ("bursts", bursts.is_some()),
        ("fades", fades.is_some()),
        ("trace", trace.is_some()),
    ];
    let found: Vec<String> =
        kinds.iter().filter(|(_, there)| *there).map(|(name, _)| format!("`{name}`")).collect();
    if found.len() > 1 {
        let message = format!(
            "{} together: expected one kind of errors, which is `bit` and `packet`, or one of the \
             others",
            found.join(" and ")
        );
        return Err(Problem::at(errors.span(), message));
    }
    if let Some(Channel(channel)) = gilbert_elliott {
        Ok((*channel).into())
    } else if let Some(Bursts { gap, length, damage }) = bursts {
        // A missing value was reported where it was read.
        let gap = gap.as_ref().map_or(link::Gap::Packets(1.0), |gap| gap.get_ref().0);
        let length = length.map_or(1.0, |length| length.0);
        Ok(link::Bursts { gap, length, damage: damage.unwrap_or_default() }.into())
    } else if let Some(Both(otherwise, fades)) = fades {
        let fades = fades.resolve(|fade| Ok(uniform(fade)))?;
        Ok(link::Fades { fades, otherwise: uniform(otherwise) }.into())
    } else if let Some(Trace(trace)) = trace {
        self::trace(trace, files)
    } else {
        Ok(uniform(single).into())
    }
}

fn uniform(errors: &Single) -> Uniform {
    let written = |p: Option<Probability>| p.map_or(0.0, |p| p.0);
    Uniform { bit: written(errors.bit), packet: written(errors.packet) }
}

fn channel(written: &ChannelTable, node: &Node<'_>) -> Result<GilbertElliott, Problem> {
    let ChannelTable { loss, burst, p, r, h, k, damage } = written;
    let probability = |written: &Option<Probability>| written.map(|p| p.0);
    let transitions = [p, r, h, k].iter().any(|written| written.is_some());
    let simple = loss.is_some() || burst.is_some();
    let standard = GilbertElliott { damage: damage.unwrap_or_default(), ..Default::default() };
    match (loss, burst, probability(p), probability(r)) {
        (Some(loss), Some(Packets(burst)), ..) if !transitions => {
            let share = loss.get_ref().0;
            let r = 1.0 / burst;
            // The stationary share of the bad state is p / (p + r).
            let p = r * share / (1.0 - share);
            if share < 1.0 && p <= 1.0 {
                return Ok(GilbertElliott { p, r, ..standard });
            }
            let most = burst / (burst + 1.0);
            let message = format!("expected no more than {most:.3} with bursts of {burst} packets");
            Err(Problem::at(loss.span(), message))
        }
        (_, _, Some(p), Some(r)) if !simple => {
            let h = probability(h).unwrap_or(standard.h);
            let k = probability(k).unwrap_or(standard.k);
            Ok(GilbertElliott { p, r, h, k, ..standard })
        }
        _ => Err(Problem::at(
            node.span(),
            "expected `loss` and `burst`, or `p` and `r` with `h` and `k` if needed",
        )),
    }
}

fn trace(trace: &TraceFile, files: &Files) -> Result<ErrorModel, Problem> {
    // A trace without a file was reported where it was read.
    let Some(file) = &trace.file else { return Ok(ErrorModel::default()) };
    let at_file = |message: String| Problem::at(file.span(), message);
    let damaged = files.damaged_packets(file.get_ref()).map_err(at_file)?;
    let every = trace.every.as_ref().map(|every| (every.span(), every.get_ref().0));
    let (span, length) = match every {
        None => (file.span(), None),
        Some((span, Size::Packets(packets))) => (span, Some(packets)),
        Some((span, _)) => {
            return Err(Problem::at(span, "expected packets, such as \"10000 packets\""));
        }
    };
    PacketTrace::new(damaged.iter().copied(), length)
        .map(ErrorModel::from)
        .map_err(|error| Problem::at(span, error.to_string()))
}
