//! Auto: another increase function as long as the narrowest link of the path has room for it, else
//! the standard's. Beyond `obanaik2003`, which asks for policies that turn themselves off on slow
//! links (§3.2.3, 3.4), and gives no detector.
//!
//! What follows closely on each other into the narrowest link comes out of it as fast as that link
//! is, and so do the acknowledgments: the fastest train of them in a round trip tells the rate C of
//! that link, long before it is full and whoever shares it. A window W that takes a round trip r to
//! be acknowledged leaves room there for `C r - W` segments a round trip. A connection whose own last
//! hop is the bottleneck has all of that link: its delivery rate W/r is C and stays there while its
//! queue, and so r, grows with W. There is no room, and growth is the standard's. On a fast link that
//! many share, W/r is the connection's part of C, and there is room.

#[cfg(test)]
mod tests;

use super::{AckSample, Canit, ConstantRate, IncreaseByK, IncreaseFunction, RoundTrip};
use base::{Duration, Time};
use core::fmt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Another function's growth where there is room for it, else the standard's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auto {
    /// The other function.
    pub fast: Fast,
    #[serde(skip_serializing_if = "Narrowest::is_unknown")]
    narrowest: Narrowest,
}

/// What may grow faster than the standard.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "policy", rename_all = "kebab-case")]
pub enum Fast {
    /// K segments per window.
    IncreaseByK(IncreaseByK),
    /// c r² segments per window.
    ConstantRate(ConstantRate),
    /// r/NIT segments per window.
    Canit(Canit),
}

/// The share of the room that a round trip may take.
const SHARE: f64 = 0.25;
/// If that is less than so many segments, the standard's one has to do.
const WORTHWHILE: f64 = 2.0;

impl Auto {
    /// With another function for where there is room.
    #[must_use]
    pub const fn new(fast: Fast) -> Auto {
        Auto { fast, narrowest: Narrowest::UNKNOWN }
    }
}

impl IncreaseFunction for Auto {
    const DEFAULT: Auto = Auto::new(Fast::Canit(Canit::DEFAULT));

    fn per_ack(&mut self, window: f64, ack: &AckSample) -> f64 {
        self.narrowest.on_ack(ack);
        let room = self.narrowest.carries(ack).map_or(0.0, |carried| carried - window);
        let most = SHARE * room;
        if most < WORTHWHILE {
            return 1.0 / window;
        }
        self.fast.per_ack(window, ack).min(most / window)
    }

    fn round_trip(&mut self) -> Option<&mut RoundTrip> {
        match &mut self.fast {
            Fast::IncreaseByK(f) => f.round_trip(),
            Fast::ConstantRate(f) => f.round_trip(),
            Fast::Canit(f) => f.round_trip(),
        }
    }

    fn reset(&mut self) {
        self.narrowest = Narrowest::UNKNOWN;
    }
}

impl Fast {
    /// By their names, with their defaults.
    pub const ALL: &[(&str, Fast)] = &[
        ("increase-by-k", Fast::IncreaseByK(IncreaseByK::DEFAULT)),
        ("constant-rate", Fast::ConstantRate(ConstantRate::DEFAULT)),
        ("canit", Fast::Canit(Canit::DEFAULT)),
    ];

    fn per_ack(&mut self, window: f64, ack: &AckSample) -> f64 {
        match self {
            Fast::IncreaseByK(f) => f.per_ack(window, ack),
            Fast::ConstantRate(f) => f.per_ack(window, ack),
            Fast::Canit(f) => f.per_ack(window, ack),
        }
    }
}

impl<'de> Deserialize<'de> for Fast {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Fast, D::Error> {
        from.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Fast;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = Fast::ALL.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        write!(f, "{}, or {{ policy = one of them, ... }}", names.join(", "))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Fast, E> {
        let named = Fast::ALL.iter().find(|(name, _)| *name == text);
        named.map(|(_, fast)| *fast).ok_or_else(|| {
            E::custom(format_args!("expected {}", &self as &dyn de::Expected))
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Fast, A::Error> {
        // The derived one.
        Fast::deserialize(MapAccessDeserializer::new(map))
    }
}

impl Serialize for Fast {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Fast::serialize(self, to)
    }
}

/// What is known of the narrowest link, by the times between acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Narrowest {
    /// Its rate, octets a second: the fastest train of a round trip, averaged over round trips.
    rate: Option<f64>,
    /// The last two acknowledgments, the latest first.
    last: [Option<Arrived>; 2],
    /// When the present round trip began, and the fastest train in it.
    round: Option<Time>,
    fastest: f64,
}

/// An acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Arrived {
    at: Time,
    octets: u64,
}

/// The weight of a round trip in the average.
const WEIGHT: f64 = 0.125;
/// Segments of a train: with one, two acknowledgments that something on their way has brought
/// together would do.
const TRAIN: u64 = 2;

impl Narrowest {
    const UNKNOWN: Narrowest =
        Narrowest { rate: None, last: [None; 2], round: None, fastest: 0.0 };

    fn is_unknown(&self) -> bool {
        *self == Narrowest::UNKNOWN
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let train = TRAIN * u64::from(ack.mss);
        // An acknowledgment that closes a gap stands for more than what has just arrived.
        let usual = ack.acked <= train && !ack.after_timeout;
        let now = Arrived { at: ack.now, octets: ack.acked };
        if let Some(rate) = self.rate_until(now, train).filter(|_| usual) {
            self.fastest = self.fastest.max(rate);
        }
        self.last = if usual { [Some(now), self.last[0]] } else { [None; 2] };
        let round = *self.round.get_or_insert(ack.now);
        let over = ack.srtt.is_some_and(|srtt| ack.now.since(round) >= srtt);
        if over && self.fastest > 0.0 {
            let fastest = core::mem::take(&mut self.fastest);
            self.rate = Some(self.rate.map_or(fastest, |rate| rate + WEIGHT * (fastest - rate)));
            self.round = Some(ack.now);
        }
    }

    /// Octets a second in the train that ends with this acknowledgment.
    fn rate_until(&self, now: Arrived, train: u64) -> Option<f64> {
        let [last, before] = self.last;
        let (start, octets) = match last? {
            last if now.octets >= train => (last, now.octets),
            last => (before?, now.octets + last.octets),
        };
        let took = now.at.since(start.at);
        (took > Duration::ZERO).then(|| octets as f64 / took.as_secs_f64())
    }

    /// Segments that it carries in a round trip, once that is known.
    fn carries(&self, ack: &AckSample) -> Option<f64> {
        Some(self.rate? * ack.srtt?.as_secs_f64() / f64::from(ack.mss))
    }
}
