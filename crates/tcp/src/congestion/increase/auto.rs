//! Auto: another increase function while the bottleneck of the path has room for it, else the
//! standard's. Beyond `obanaik2003`, which asks for policies that turn themselves off on slow links
//! (§3.2.3, 3.4), and gives no detector.
//!
//! Packets sent back to back leave the bottleneck at its rate, and so do their acknowledgments: the
//! fastest train of acknowledgments in a round trip gives the rate C of the bottleneck, long before
//! it is full and whatever the number of flows. A window W whose acknowledgment takes a round-trip
//! time r leaves room there for `C r - W` segments per round trip. A connection whose own last hop
//! is the bottleneck uses all of that link: its delivery rate W/r is C and stays there while its
//! queue, and so r, grows with W. There is no room, and growth is the standard's. On a fast link
//! that many flows share, W/r is the connection's share of C, and there is room.

#[cfg(test)]
mod tests;

use super::{AckSample, Canit, ConstantRate, IncreaseByK, IncreaseFunction, RoundTrip};
use base::settings::{Kind, Setting};
use base::{Duration, Time};
use core::fmt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

base::settings! {
    /// Another function's growth while there is room, else the standard's.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Auto {
        /// The function while the path has free capacity.
        pub fast: Fast,
        #[serde(skip_serializing_if = "Bottleneck::is_unknown")]
        bottleneck: Bottleneck,
    }
}

/// The functions that may grow faster than the standard's.
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

impl Auto {
    /// The share of the room that a round trip may take.
    pub const SHARE: f64 = 0.25;
    /// If that share is less than this, segments, growth is the standard's.
    pub const WORTHWHILE: f64 = 2.0;
    /// The weight of a round trip in the average of the bottleneck's rate.
    pub const WEIGHT: f64 = 0.125;
    /// Segments of a train: with one, any two compressed acknowledgments would count.
    pub const TRAIN: u64 = 2;

    /// Auto with another function.
    #[must_use]
    pub const fn new(fast: Fast) -> Auto {
        Auto { fast, bottleneck: Bottleneck::UNKNOWN }
    }
}

impl IncreaseFunction for Auto {
    const DEFAULT: Auto = Auto::new(Fast::Canit(Canit::DEFAULT));

    fn per_ack(&mut self, window: f64, ack: &AckSample) -> f64 {
        self.bottleneck.on_ack(ack);
        let room = self.bottleneck.carries(ack).map_or(0.0, |carried| carried - window);
        let most = Auto::SHARE * room;
        if most < Auto::WORTHWHILE {
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
        self.bottleneck = Bottleneck::UNKNOWN;
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

impl Setting for Fast {
    const KIND: Kind = Kind::Another(&[Fast::ALL[0].0, Fast::ALL[1].0, Fast::ALL[2].0]);
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
        named
            .map(|(_, fast)| *fast)
            .ok_or_else(|| E::custom(format_args!("expected {}", &self as &dyn de::Expected)))
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

/// The estimate of the bottleneck, from the times between acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Bottleneck {
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

impl Bottleneck {
    const UNKNOWN: Bottleneck =
        Bottleneck { rate: None, last: [None; 2], round: None, fastest: 0.0 };

    fn is_unknown(&self) -> bool {
        *self == Bottleneck::UNKNOWN
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let train = Auto::TRAIN * u64::from(ack.mss);
        // An acknowledgment that closes a gap covers more than the last arrival.
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
            self.rate =
                Some(self.rate.map_or(fastest, |rate| rate + Auto::WEIGHT * (fastest - rate)));
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

    /// Segments that it carries in a round trip, once its rate is known.
    fn carries(&self, ack: &AckSample) -> Option<f64> {
        Some(self.rate? * ack.srtt?.as_secs_f64() / f64::from(ack.mss))
    }
}
