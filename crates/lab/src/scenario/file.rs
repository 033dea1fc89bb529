//! The shape of a scenario file: what may be written where. What it means is decided elsewhere.

use super::quantity::{Amount, ByteCounting, DelayedAck, Initial, Ssthresh, UserTimeout, Written};
use crate::profile::Profile;
use base::units::Size;
use base::{Duration, Rate};
use core::fmt;
use core::marker::PhantomData;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use tcp::congestion::{Congestion, Increase};
use tcp::mechanism::Mechanism;
use tcp::{Estimator, Recovery, Reduction, SsthreshOnBackoff};
use toml::Spanned;

/// The whole file.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) title: String,
    pub(super) duration: Spanned<Written<Duration>>,
    #[serde(default)]
    pub(super) profile: Profile,
    pub(super) nodes: Spanned<Names>,
    #[serde(default)]
    pub(super) links: Vec<Spanned<Link>>,
    pub(super) flows: Spanned<Vec<Spanned<Flow>>>,
    /// Read elsewhere; here so that it is among the keys that are known.
    #[serde(default, rename = "sweep")]
    pub(super) _sweep: IgnoredAny,
}

/// A table whose keys are names, in the order in which they are written.
#[derive(Debug)]
pub(super) struct Names(pub(super) Vec<Spanned<String>>);

/// A node has no settings yet.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {}

/// One of `[[links]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) between: Spanned<Vec<Spanned<String>>>,
    pub(super) rate: Written<Rate>,
    pub(super) delay: Written<Duration>,
    pub(super) queue: Option<Spanned<Written<Size>>>,
    pub(super) errors: Option<Spanned<Errors>>,
}

/// Errors of both directions, or of each.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Errors {
    pub(super) bit: Option<Spanned<f64>>,
    pub(super) packet: Option<Spanned<f64>>,
    pub(super) forward: Option<DirectionErrors>,
    pub(super) backward: Option<DirectionErrors>,
}

/// Errors of one direction.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DirectionErrors {
    pub(super) bit: Option<Spanned<f64>>,
    pub(super) packet: Option<Spanned<f64>>,
}

/// One of `[[flows]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flow {
    pub(super) name: Option<Spanned<String>>,
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<String>,
    pub(super) start: Option<Spanned<Written<Duration>>>,
    #[serde(default)]
    pub(super) traffic: Traffic,
    pub(super) profile: Option<Profile>,
    #[serde(default)]
    pub(super) tcp: Tcp,
}

/// What a flow carries.
#[derive(Debug, Default)]
pub(super) enum Traffic {
    /// It never ends.
    #[default]
    Bulk,
    /// So much.
    Transfer(Transfer),
}

/// A transfer that ends.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Transfer {
    pub(super) size: Spanned<Amount>,
}

/// The settings of TCP at both ends of a flow; what is left out is as the profile says.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tcp {
    pub(super) recovery: Option<Recovery>,
    pub(super) congestion: Option<Congestion>,
    pub(super) increase: Option<Spanned<Increase>>,
    pub(super) byte_counting: Option<ByteCounting>,
    pub(super) mss: Option<Spanned<Amount>>,
    pub(super) receive_window: Option<Spanned<Amount>>,
    pub(super) initial_window: Option<Initial>,
    pub(super) initial_ssthresh: Option<Spanned<Ssthresh>>,
    pub(super) restart_after_idle: Option<bool>,
    pub(super) limited_transmit: Option<bool>,
    pub(super) delayed_ack: Option<Spanned<DelayedAck>>,
    pub(super) rto: Option<Spanned<Rto>>,
    pub(super) ssthresh_on_backoff: Option<SsthreshOnBackoff>,
    pub(super) reduction: Option<Reduction>,
    pub(super) undo: Option<bool>,
    pub(super) dsack: Option<bool>,
    pub(super) timestamps: Option<bool>,
    pub(super) ecn: Option<bool>,
    pub(super) nagle: Option<bool>,
    pub(super) user_timeout: Option<Spanned<UserTimeout>>,
    pub(super) eten: Option<Spanned<Eten>>,
    pub(super) mechanisms: Vec<Entry>,
}

/// One of a list. That it is a type of its own makes errors inside of it point at it, and not at
/// the list.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Entry(pub(super) Mechanism);

/// The settings of the retransmission timer.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Rto {
    pub(super) initial: Option<Written<Duration>>,
    pub(super) minimum: Option<Written<Duration>>,
    pub(super) maximum: Option<Written<Duration>>,
    pub(super) granularity: Option<Written<Duration>>,
    pub(super) estimator: Option<Estimator>,
}

/// Explicit transport error notification: who reports, and what the sender makes of it.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EtenTable {
    pub(super) report: Report,
    pub(super) suppress_dupacks: Option<bool>,
    pub(super) notice_size: Option<Spanned<Amount>>,
}

/// Who tells the sender of a corruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// Nobody.
    #[default]
    None,
    /// The world, at the moment of detection and at no cost.
    Oracle,
    /// The node that detects it, by a packet.
    Backward,
}

/// A word that stands for a table, or the table.
#[derive(Debug, Default)]
pub(super) struct Eten(pub(super) EtenTable);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Names;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of nodes, such as { sender = {}, receiver = {} }")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let mut names = Names(Vec::new());
                while let Some((name, Node {})) = map.next_entry()? {
                    names.0.push(name);
                }
                Ok(names)
            }
        }
        deserializer.deserialize_map(Table)
    }
}

impl<'de> Deserialize<'de> for Traffic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Traffic, D::Error> {
        deserializer.deserialize_any(WordOrTable::new(
            "\"bulk\" or { size = \"3 MB\" }",
            |word| (word == "bulk").then_some(Traffic::Bulk),
            Traffic::Transfer,
        ))
    }
}

impl<'de> Deserialize<'de> for Eten {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Eten, D::Error> {
        deserializer.deserialize_any(WordOrTable::new(
            "\"none\", \"oracle\", \"backward\", or { report = one of them, ... }",
            |word| {
                let report = match word {
                    "none" => Report::None,
                    "oracle" => Report::Oracle,
                    "backward" => Report::Backward,
                    _ => return None,
                };
                Some(Eten(EtenTable { report, ..EtenTable::default() }))
            },
            Eten,
        ))
    }
}

/// Reads a word or a table.
struct WordOrTable<T, U> {
    expected: &'static str,
    word: fn(&str) -> Option<T>,
    table: fn(U) -> T,
    marker: PhantomData<U>,
}

impl<T, U> WordOrTable<T, U> {
    fn new(
        expected: &'static str,
        word: fn(&str) -> Option<T>,
        table: fn(U) -> T,
    ) -> WordOrTable<T, U> {
        WordOrTable { expected, word, table, marker: PhantomData }
    }
}

impl<'de, T, U: Deserialize<'de>> Visitor<'de> for WordOrTable<T, U> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
        (self.word)(word).ok_or_else(|| E::custom(format_args!("expected {}", self.expected)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        U::deserialize(MapAccessDeserializer::new(map)).map(self.table)
    }
}
