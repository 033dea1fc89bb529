//! Cumulative ETEN, both ends: survival probabilities in packet headers say how likely a loss is
//! corruption (`bbn8333` §2.2, §4).
//!
//! Every segment starts with a survival of 1, which the nodes of the path reduce, and echoes the
//! fields of the last acceptable segment of the peer. How the nodes do that, and how arriving
//! fields get here, does not matter here.

mod loss_rate;
mod path_state;

use super::{Hooks, Incoming, Loss, Needs, Rules, Signal, Verdict, View};
use crate::Identity;
use crate::indication::Indication;
use base::Seed;
use base::settings::Kind;
use loss_rate::LossRate;
use path_state::{LinkTable, PathState};
use serde::{Deserialize, Deserializer, Serialize, de};
use wire::{Causes, Packet, PathFields, PathForm, Segment};

/// The sender's decision on a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Congestion with the probability `p / (p + q)`, where p is the survival of congestion and q
    /// that of corruption, as §4.3 has it.
    #[default]
    Published,
    /// As [`Strategy::Published`], with losses in place of survivals, as the text of §4.3
    /// describes.
    LossRatio,
    /// No random decision: the window is reduced to between a half and all of the flight, by the
    /// share of corruption in the total loss rate, which the sender estimates itself. Timeouts have
    /// the usual response.
    Adaptive,
}

/// The size of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fields {
    /// Zero bytes, as in the publication; lab only.
    #[default]
    Free,
    /// Their real size, which reduces the room for data.
    Real,
}

/// How the nodes' estimates reach the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// In the headers of its packets, echoed in those of its peer.
    #[default]
    Header,
    /// In separate messages about one link each, which the nodes send occasionally (§4.1).
    Traceback,
}

base::words!(Strategy, Fields, Transport);

base::settings! {
    /// Decides from the path's survival probabilities what a loss means.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct CumulativeEten {
        /// How the cause of a loss is decided.
        pub strategy: Strategy,
        /// The largest share of the flight that a loss leaves, from 0.5 to 1, whatever the reported
        /// probabilities: it bounds the gain of a lying peer (`bbn8333` §7). 1 is no bound.
        #[serde(deserialize_with = "share")]
        pub bound: f64 as Kind::Number { least: 0.5, most: 1.0 },
        /// The size of the fields in packets: zero bytes (in the lab only), or their real size.
        pub fields: Fields,
        /// How the nodes' estimates reach the sender: in the headers of packets, or in messages of
        /// the nodes about one link each.
        pub transport: Transport,
        /// What the fields hold. The nodes must have the same.
        pub form: PathForm,
        /// The weight of a packet in the nodes' averages, above 0 and at most 1. Strategy `adaptive`
        /// averages its own losses likewise, and needs at most 1/64.
        pub a: f64 as Kind::Weight,
        #[serde(skip_serializing_if = "is_default")]
        state: State,
    }
}

impl Default for CumulativeEten {
    fn default() -> CumulativeEten {
        CumulativeEten::new(Strategy::default(), 1.0, Fields::default())
    }
}

/// The state of the mechanism.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    secret: u64,
    is_ipv6: bool,
    /// Random numbers drawn.
    draws: u64,
    /// The fields of the segment being processed.
    arriving: Option<PathFields>,
    path: PathState,
    links: LinkTable,
    loss_rate: LossRate,
    /// Losses below share a decision.
    decided_until: u64,
    decision: Option<Verdict>,
    /// SND.NXT at the last timeout.
    timed_out_until: u64,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(deserializer)?;
    if (0.5..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(de::Error::invalid_value(de::Unexpected::Float(share), &"0.5 to 1"))
}

impl CumulativeEten {
    /// The largest weight of a packet that [`Strategy::Adaptive`] can use: the share of one average
    /// in another says nothing if either remembers two packets.
    pub const ADAPTIVE: f64 = 1.0 / 64.0;

    /// A mechanism with a strategy, a bound from 0.5 to 1, and a size of the fields; nodes report as
    /// published.
    #[must_use]
    pub fn new(strategy: Strategy, bound: f64, fields: Fields) -> CumulativeEten {
        let (transport, form) = (Transport::default(), PathForm::default());
        CumulativeEten { strategy, bound, fields, transport, form, a: 0.5, state: State::default() }
    }

    /// Whether the strategy can use averages with this weight of a packet.
    #[must_use]
    pub fn averages_enough(&self) -> bool {
        self.strategy != Strategy::Adaptive || self.a <= CumulativeEten::ADAPTIVE
    }

    /// The survival probability of the path.
    fn survival(&self, view: &View) -> Causes<f64> {
        match self.transport {
            Transport::Header => self.state.path.survival(self.form),
            Transport::Traceback => self.state.links.survival(view.now),
        }
    }

    fn decide(&mut self, view: &View) -> Verdict {
        let survival = self.survival(view);
        let loss = survival.map(|survival| 1.0 - survival);
        let congestion = match self.strategy {
            Strategy::Published => part(survival.congestion, survival.corruption),
            Strategy::LossRatio => part(loss.congestion, loss.corruption),
            Strategy::Adaptive => {
                let total = self.state.loss_rate.with_one_more(self.a);
                let corruption = (loss.corruption / total).clamp(0.0, 1.0);
                return Verdict::Decrease((0.5 + 0.5 * corruption).min(self.bound));
            }
        };
        if self.draw() <= congestion {
            Verdict::STANDARD
        } else if self.bound < 1.0 {
            Verdict::Decrease(self.bound)
        } else {
            Verdict::Corruption
        }
    }

    /// An unpredictable random number in (0, 1].
    fn draw(&mut self) -> f64 {
        self.state.draws += 1;
        let seed = self.state.secret.wrapping_add(self.state.draws);
        Seed(seed).stream("cumulative-eten").uniform()
    }
}

/// `this / (this + other)`; 1 if both are zero.
fn part(this: f64, other: f64) -> f64 {
    let both = this + other;
    if both > 0.0 { this / both } else { 1.0 }
}

impl Rules for CumulativeEten {
    const HOOKS: Hooks =
        Hooks::INDICATION.union(Hooks::LOSS).union(Hooks::OUTGOING).union(Hooks::INCOMING);
    // Nodes read the IP header alone.
    const NEEDS: Needs = Needs::SENDER.union(Needs::RECEIVER).union(Needs::MIDDLEBOX);

    fn begin(&mut self, identity: &Identity) {
        (self.state.secret, self.state.is_ipv6) = (identity.secret, identity.is_ipv6);
    }

    fn overhead(&self) -> u32 {
        match (self.fields, self.transport) {
            (Fields::Real, Transport::Header) => {
                PathState::default().fields(self.form).size(self.state.is_ipv6)
            }
            _ => 0,
        }
    }

    fn indication(&mut self, view: &View, indication: &Indication) -> Option<super::Action> {
        match *indication {
            Indication::Path(fields) => self.state.arriving = Some(fields),
            Indication::Link { node, link, survival } => {
                self.state.links.update(view.now, (node, link), survival);
            }
            Indication::Corrupted { .. }
            | Indication::PeerCorrupted { .. }
            | Indication::Connectivity(_)
            | Indication::Unreachable { .. }
            | Indication::TooBig { .. }
            | Indication::PeerLosses(_) => {}
        }
        None
    }

    fn incoming(&mut self, _view: &View, _segment: &Segment) -> Option<Incoming> {
        // The segment is acceptable: no blind forgery.
        if let Some(fields) = self.state.arriving.take() {
            self.state.path.update(self.form, &fields);
        }
        None
    }

    fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        self.state.loss_rate.count(self.a, &view.statistics);
        if self.transport == Transport::Header {
            let fields = self.state.path.next_fields(self.form);
            fields.put(self.state.is_ipv6, &mut packet.unparsed);
            packet.unparsed.set_zero_size(self.fields == Fields::Free);
        }
    }

    fn loss(&mut self, view: &View, loss: &Loss) -> Option<Verdict> {
        match loss.signal {
            // The cause is known.
            Signal::Notice | Signal::Ecn => return None,
            // A timeout is decided separately, and may count as corruption once per window: that
            // repairs one segment, and if more are missing, each would take a timeout twice as
            // long.
            Signal::Rto => {
                let again = loss.start < self.state.timed_out_until;
                self.state.timed_out_until = view.nxt;
                match self.strategy {
                    Strategy::Adaptive => return None,
                    Strategy::LossRatio if again => return None,
                    Strategy::LossRatio | Strategy::Published => {}
                }
            }
            Signal::Dupack | Signal::Sack | Signal::Rack => {
                if loss.start < self.state.decided_until {
                    return self.state.decision;
                }
            }
        }
        self.state.decision = Some(self.decide(view));
        self.state.decided_until = view.nxt;
        self.state.decision
    }
}

#[cfg(test)]
mod tests;
