//! Cumulative ETEN, both ends: what packets say of their path tells how likely a loss is to be one
//! of corruption (`bbn8333` §2.2, §4).
//!
//! Every segment starts with a survival of 1, on which the nodes of the path work, and echoes what
//! the last acceptable segment from the peer had. Who lets nodes work on it, and how an arriving
//! segment's fields get here, is not its business.

mod known;
mod total;

use super::{Hooks, Incoming, Loss, Needs, Rules, Signal, Verdict, View};
use crate::Identity;
use crate::indication::{Indication, Subject};
use base::Seed;
use known::{Known, Links};
use serde::{Deserialize, Deserializer, Serialize, de};
use total::Total;
use wire::{Causes, Packet, PathFields, PathForm, Segment};

/// What the sender makes of a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// It is congestion with the probability `p / (p + q)`, where p is the survival of congestion
    /// and q that of corruption, as §4.3 has it.
    #[default]
    Published,
    /// The same with losses in place of survivals, which is what §4.3 describes.
    LossRatio,
    /// No coin: the window comes down to between a half and all of the flight, by the share of
    /// corruption in the total loss, which the sender estimates itself. Timeouts are answered as
    /// ever.
    Adaptive,
}

/// What the fields weigh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fields {
    /// Nothing, as in the publication; lab only.
    #[default]
    Free,
    /// Their bytes in every header, for which segments have less room.
    Real,
}

/// How what nodes know gets to a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// In the headers of its packets, and back in those of its peer.
    #[default]
    Header,
    /// In messages of their own about one link each, of which the nodes send a few (§4.1).
    Traceback,
}

/// What the nodes of the path do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// The weight of a packet in their averages.
    pub a: f64,
    /// In which form they tell them.
    pub form: PathForm,
    /// By which way.
    pub transport: Transport,
}

impl Default for Network {
    fn default() -> Network {
        Network { a: 0.5, form: PathForm::default(), transport: Transport::default() }
    }
}

/// Decides by the path's probabilities what a loss means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CumulativeEten {
    /// How.
    pub strategy: Strategy,
    /// No loss leaves more than this share of the flight, from 0.5 to 1, whatever the path is said
    /// to be like: a peer that lies gains no more (§7). 1 believes everything.
    #[serde(deserialize_with = "share")]
    pub bound: f64,
    /// What the fields weigh.
    pub fields: Fields,
    #[serde(skip_serializing_if = "is_default")]
    network: Network,
    #[serde(skip_serializing_if = "is_default")]
    state: State,
}

impl Default for CumulativeEten {
    fn default() -> CumulativeEten {
        CumulativeEten::new(Strategy::default(), 1.0, Fields::default())
    }
}

/// What it remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct State {
    secret: u64,
    is_ipv6: bool,
    /// Coins tossed.
    tosses: u64,
    /// Of the segment that is being looked at.
    arriving: Option<PathFields>,
    known: Known,
    links: Links,
    total: Total,
    /// Losses below share a decision.
    decided_until: u64,
    decision: Option<Verdict>,
    /// Of what was outstanding at the last timeout.
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
    /// By a strategy, a bound from 0.5 to 1, and the weight of the fields.
    #[must_use]
    pub fn new(strategy: Strategy, bound: f64, fields: Fields) -> CumulativeEten {
        let (network, state) = (Network::default(), State::default());
        CumulativeEten { strategy, bound, fields, network, state }
    }

    /// What it is told by.
    #[must_use]
    pub fn network(&self) -> Network {
        self.network
    }

    /// Says what it is told by.
    pub fn set_network(&mut self, network: Network) {
        self.network = network;
    }

    /// How likely packets survive the path.
    fn survival(&self, view: &View) -> Causes<f64> {
        match self.network.transport {
            Transport::Header => self.state.known.survival(self.network.form),
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
                let total = self.state.total.with_another(self.network.a);
                let corruption = (loss.corruption / total).clamp(0.0, 1.0);
                return Verdict::Decrease((0.5 + 0.5 * corruption).min(self.bound));
            }
        };
        if self.toss() <= congestion {
            Verdict::STANDARD
        } else if self.bound < 1.0 {
            Verdict::Decrease(self.bound)
        } else {
            Verdict::Corruption
        }
    }

    /// A number in (0, 1] that nobody can foresee.
    fn toss(&mut self) -> f64 {
        self.state.tosses += 1;
        let seed = self.state.secret.wrapping_add(self.state.tosses);
        Seed(seed).stream("cumulative-eten").uniform()
    }
}

/// The part that `this` is of both; the whole if there is nothing.
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
        match (self.fields, self.network.transport) {
            (Fields::Real, Transport::Header) => {
                Known::default().fields(self.network.form).size(self.state.is_ipv6)
            }
            _ => 0,
        }
    }

    fn indication(&mut self, view: &View, indication: &Indication) -> Option<super::Action> {
        match indication.subject {
            Subject::Path(fields) => self.state.arriving = Some(fields),
            Subject::Link { node, link, survival } => {
                self.state.links.heard(view.now, (node, link), survival);
            }
            Subject::Corrupted { .. }
            | Subject::PeerCorrupted { .. }
            | Subject::Connectivity(_)
            | Subject::Unreachable { .. } => {}
        }
        None
    }

    fn incoming(&mut self, _view: &View, _segment: &Segment) -> Option<Incoming> {
        // The segment is acceptable: no blind forgery.
        if let Some(fields) = self.state.arriving.take() {
            self.state.known.heard(self.network.form, &fields);
        }
        None
    }

    fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        self.state.total.count(self.network.a, &view.statistics);
        if self.network.transport == Transport::Header {
            let fields = self.state.known.next_fields(self.network.form);
            fields.put(self.state.is_ipv6, &mut packet.rare);
            packet.rare.set_weightless(self.fields == Fields::Free);
        }
    }

    fn loss(&mut self, view: &View, loss: &Loss) -> Option<Verdict> {
        match loss.signal {
            // Somebody knows.
            Signal::Notice | Signal::Ecn => return None,
            // A timeout is an event of its own, and excused once in a window: an excuse repairs one
            // segment, and if more are missing each would take a timeout that is twice as long.
            Signal::Rto => {
                let again = loss.start < self.state.timed_out_until;
                self.state.timed_out_until = view.nxt;
                match self.strategy {
                    Strategy::Adaptive => return None,
                    Strategy::LossRatio if again => return None,
                    Strategy::LossRatio | Strategy::Published => {}
                }
            }
            Signal::Dupack | Signal::Sack => {
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
