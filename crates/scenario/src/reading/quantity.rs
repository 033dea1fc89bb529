//! Quantities and numbers in scenario files.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::{Shape, integer, number, unexpected};
use base::units::{Size, UnitError};
use base::{Duration, Rate, units};
use core::str::FromStr;
use host::Sizes;
use serde_json::{Value, json};
use tcp::InitialWindow;
use toml::Spanned;

/// A value written with its unit, in quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<T>(pub(crate) T);

/// A quantity, which is written with a unit.
pub(crate) trait Quantity: FromStr<Err = UnitError> {
    /// What is expected, in a message.
    const EXPECTED: &'static str;
    /// Its name.
    const NAME: &'static str;
    /// An example of it.
    const EXAMPLE: &'static str;

    /// The names of the units.
    fn units() -> Vec<&'static str>;
}

impl Quantity for Duration {
    const EXPECTED: &'static str = "a duration in quotes, such as \"320 ms\"";
    const NAME: &'static str = "duration";
    const EXAMPLE: &'static str = "320 ms";

    fn units() -> Vec<&'static str> {
        units::DURATIONS.iter().map(|(name, _)| *name).collect()
    }
}

impl Quantity for Rate {
    const EXPECTED: &'static str = "a rate in quotes, such as \"1.5 Mbit/s\"";
    const NAME: &'static str = "rate";
    const EXAMPLE: &'static str = "1.5 Mbit/s";

    fn units() -> Vec<&'static str> {
        units::RATES.iter().map(|(name, _)| *name).collect()
    }
}

impl Quantity for Size {
    const EXPECTED: &'static str = "a size in quotes, such as \"64 KiB\" or \"50 packets\"";
    const NAME: &'static str = "size";
    const EXAMPLE: &'static str = "64 KiB";

    fn units() -> Vec<&'static str> {
        [units::BYTES, units::PACKETS, units::SEGMENTS]
            .into_iter()
            .flatten()
            .map(|(name, _)| *name)
            .collect()
    }
}

/// A text with one of the units.
fn with_unit<T: Quantity>() -> Value {
    written_in(&T::units(), T::NAME, T::EXAMPLE)
}

/// A text with one of these units.
fn written_in(units: &[&str], name: &str, example: &str) -> Value {
    let units = units.join("|");
    json!({
        "title": name,
        "type": "string",
        "pattern": format!(r"^\s*([0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)([eE][+-]?[0-9]+)?\s*({units})\s*$"),
        "examples": [example],
    })
}

/// The quantity in a text; the outer `None` if the value is not a text.
fn parsed<T: Quantity>(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Option<T>> {
    let text = node.get_ref().as_str()?;
    Some(
        text.parse()
            .map_err(|error: UnitError| {
                problems.push(Problem::at(node.span(), error.to_string()));
            })
            .ok(),
    )
}

impl<T: Quantity> Shape for Written<T> {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Written<T>> {
        match parsed(node, problems) {
            Some(value) => value.map(Written),
            None => unexpected(node, T::EXPECTED, problems),
        }
    }

    fn schema() -> Value {
        with_unit::<T>()
    }
}

/// A size that may be a plain number of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount(pub(crate) Size);

impl Shape for Amount {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Amount> {
        if let Some(size) = parsed(node, problems) {
            return size.map(Amount);
        }
        match integer(node).map(u64::try_from) {
            Some(Ok(bytes)) => Some(Amount(Size::Bytes(bytes))),
            _ => unexpected(
                node,
                "bytes, 0 or more, or a size in quotes, such as \"64 KiB\" or \"20 segments\"",
                problems,
            ),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "title": "bytes", "type": "integer", "minimum": 0 }, with_unit::<Size>()] })
    }
}

/// A probability, 0 to 1.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Probability(pub(crate) f64);

impl Shape for Probability {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Probability> {
        match number(node) {
            Some(p) if (0.0..=1.0).contains(&p) => Some(Probability(p)),
            Some(_) => {
                problems.push(Problem::at(node.span(), "expected a probability, 0 to 1"));
                None
            }
            None => unexpected(node, "a probability, 0 to 1", problems),
        }
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

/// A number above 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positive(pub(crate) f64);

impl Shape for Positive {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Positive> {
        match number(node) {
            Some(value) if value > 0.0 && value.is_finite() => Some(Positive(value)),
            _ => unexpected(node, "a number above 0", problems),
        }
    }

    fn schema() -> Value {
        json!({ "type": "number", "exclusiveMinimum": 0 })
    }
}

/// A whole number, at least 1.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Count(pub(crate) u64);

impl Shape for Count {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Count> {
        match integer(node).map(u64::try_from) {
            Some(Ok(count @ 1..)) => Some(Count(count)),
            _ => unexpected(node, "a whole number, at least 1", problems),
        }
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 1 })
    }
}

/// A mean number of packets, at least 1.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Packets(pub(crate) f64);

impl Shape for Packets {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Packets> {
        match number(node) {
            Some(mean) if (1.0..=1e9).contains(&mean) => Some(Packets(mean)),
            _ => unexpected(node, "a mean number of packets, 1 to 1e9", problems),
        }
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 1, "maximum": 1_000_000_000 })
    }
}

/// A whole number, 0 or more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole(pub(crate) u32);

impl Shape for Whole {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Whole> {
        match integer(node).map(u32::try_from) {
            Some(Ok(count)) => Some(Whole(count)),
            _ => unexpected(node, "a whole number, 0 or more", problems),
        }
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
    }
}

/// A number of segments, plain or with its unit.
fn segments(node: &Node<'_>) -> Option<u32> {
    if let Some(count) = integer(node) {
        return u32::try_from(count).ok();
    }
    match node.get_ref().as_str()?.parse() {
        Ok(Size::Segments(count)) => u32::try_from(count).ok(),
        _ => None,
    }
}

/// The same as schemas: of a plain number of 1 to `most`, and of a text.
fn segments_schemas(most: u32) -> [Value; 2] {
    let units: Vec<&str> = units::SEGMENTS.iter().map(|(name, _)| *name).collect();
    [
        json!({ "title": "segments", "type": "integer", "minimum": 1, "maximum": most }),
        written_in(&units, "text", "10 segments"),
    ]
}

/// The largest growth of the window per ACK, segments, where bytes are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteCounting(pub(crate) Option<u32>);

impl Shape for ByteCounting {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<ByteCounting> {
        match (node.get_ref().as_str(), segments(node)) {
            (Some("off"), _) => Some(ByteCounting(None)),
            (Some("all"), _) => Some(ByteCounting(Some(u32::MAX))),
            (_, Some(limit @ 1..)) => Some(ByteCounting(Some(limit))),
            _ => unexpected(node, "\"off\", \"all\" or a number of segments, at least 1", problems),
        }
    }

    fn schema() -> Value {
        let [number, text] = segments_schemas(u32::MAX);
        json!({ "anyOf": [{ "enum": ["off", "all"] }, number, text] })
    }
}

/// An initial window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Initial(pub(crate) InitialWindow);

/// The largest initial window, segments.
const LARGEST_INITIAL_WINDOW: u32 = 1_000_000;

impl Shape for Initial {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Initial> {
        let window = match (node.get_ref().as_str(), segments(node)) {
            (Some("rfc3390"), _) => InitialWindow::Rfc3390,
            (Some("rfc6928"), _) => InitialWindow::Rfc6928,
            (_, Some(segments @ 1..=LARGEST_INITIAL_WINDOW)) => InitialWindow::Segments(segments),
            _ => {
                let expected =
                    format!("\"rfc3390\", \"rfc6928\" or 1 to {LARGEST_INITIAL_WINDOW} segments");
                return unexpected(node, &expected, problems);
            }
        };
        Some(Initial(window))
    }

    fn schema() -> Value {
        let [number, text] = segments_schemas(LARGEST_INITIAL_WINDOW);
        json!({ "anyOf": [{ "enum": ["rfc3390", "rfc6928"] }, number, text] })
    }
}

/// A quantity, or one of a few words.
macro_rules! words {
    (
        $(#[$doc:meta])*
        $Type:ident expects $expected:literal {
            $($word:literal => $Word:ident,)+
            other text => $Other:ident($Value:ty),
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum $Type {
            $($Word,)+
            $Other($Value),
        }

        impl Shape for $Type {
            fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<$Type> {
                match node.get_ref().as_str() {
                    $(Some($word) => Some($Type::$Word),)+
                    text => match text.map(str::parse::<$Value>) {
                        Some(Ok(value)) => Some($Type::$Other(value)),
                        Some(Err(error)) if error.is_negative() => {
                            problems.push(Problem::at(node.span(), error.to_string()));
                            None
                        }
                        _ => unexpected(node, $expected, problems),
                    },
                }
            }

            fn schema() -> Value {
                json!({ "anyOf": [{ "enum": [$($word),+] }, with_unit::<$Value>()] })
            }
        }
    };
}

words! {
    /// How long an acknowledgment may be delayed.
    DelayedAck expects "\"off\" or a duration, such as \"40 ms\"" {
        "off" => Off,
        other text => After(Duration),
    }
}

words! {
    /// The time that a connection may be without progress.
    UserTimeout expects "\"off\" or a duration, such as \"100 s\"" {
        "off" => Off,
        other text => After(Duration),
    }
}

words! {
    /// The time of a warning before an event.
    Warning expects "\"off\" or a duration, such as \"1 s\"" {
        "off" => Off,
        other text => Before(Duration),
    }
}

words! {
    /// The slow-start threshold of a new connection.
    Ssthresh expects "\"infinite\", \"receive-window\" or a size, such as \"20 segments\"" {
        "infinite" => Infinite,
        "receive-window" => ReceiveWindow,
        other text => At(Size),
    }
}

words! {
    /// The limit of a queue.
    QueueLimit expects "\"unlimited\" or a size, such as \"50 packets\" or \"64 KiB\"" {
        "unlimited" => Unlimited,
        other text => Most(Size),
    }
}

/// A number of bytes, at least 1.
pub(crate) fn bytes(size: &Spanned<Amount>, what: &str, most: u64) -> Result<u64, Problem> {
    match size.get_ref().0 {
        Size::Bytes(bytes) if (1..=most).contains(&bytes) => Ok(bytes),
        Size::Bytes(_) => {
            let most =
                if most == Sizes::LARGEST { "1 EiB".to_owned() } else { format!("{most} bytes") };
            Err(Problem::at(size.span(), format!("expected at least 1 byte and at most {most}")))
        }
        Size::Packets(_) | Size::Segments(_) => {
            let message = format!("{what} is a number of bytes: expected a size such as \"3 MB\"");
            Err(Problem::at(size.span(), message))
        }
    }
}
