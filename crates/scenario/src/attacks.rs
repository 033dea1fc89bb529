//! `[[attacks]]`: forged notices of corruption or of changes of connectivity (`bbn8333` §6.2, §7.1;
//! `koutsianas2007` §3.6).

use crate::flow::{Flow, Traffic};
use crate::links::Link;
use crate::nodes::node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Count, Probability, Whole, Written};
use crate::reading::shape::{OrReport as _, table};
use crate::reading::words::words;
use crate::routes::Routes;
use base::{Duration, Time};
use middlebox::Aim;
use toml::Spanned;
use wire::Causes;

/// An attack on a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Attack {
    /// The attacker's node.
    pub at: usize,
    /// The victim, by its index.
    pub flow: usize,
    /// What the attacker sends.
    pub kind: AttackKind,
    /// What the attacker knows of the victim, and how it uses that.
    pub method: Method,
    /// When it starts.
    pub start: Time,
    /// When it stops.
    pub stop: Time,
}

/// What an attacker knows of its victim, and how it uses that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// It sees no packet of the victim and guesses.
    Blind {
        /// Packets per second.
        rate: u32,
        /// Where it guesses sequence numbers.
        aim: Aim,
    },
    /// It sees the victim's packets pass.
    OnPath {
        /// It answers one in this many data packets.
        every: u64,
    },
    /// It is the receiver of the flow.
    Receiver {
        /// The loss probabilities that it claims, if it sends fields.
        claim: Causes<f64>,
    },
}

/// What an attacker sends.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum AttackKind {
    /// Forged notices of corruption.
    #[default]
    Notices,
    /// UDP datagrams of the same size at the same times, which no application reads: the effect of
    /// the load alone.
    Datagrams,
    /// Forged indications that the connectivity of the flow's receiver has changed.
    Changes,
    /// Echoes of a receiver that reports every gap as corruption (with `report = "forward"`).
    Echoes,
    /// Invented fields in the headers of a receiver's segments (with `report = "cumulative"`).
    Fields,
}

/// What an attacker knows of its victim.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Knowledge {
    /// Its addresses and ports.
    #[default]
    Blind,
    /// Its packets.
    OnPath,
    /// All that its receiver knows: the attacker is the receiver.
    Receiver,
}

words! { AttackKind Knowledge }

table! {
    /// An attacker, which forges notices of corruption or of changes of connectivity.
    pub(crate) struct Table {
        /// The attacker's node.
        at: Spanned<String>, needed;
        /// The name of the attacked flow, which runs over TCP.
        flow: Spanned<String>, needed;
        /// What the attacker sends: forged notices of corruption; for comparison, inert UDP
        /// datagrams of the same size at the same times; or ACKs to the flow's sender, in its
        /// receiver's name, that indicate `changes` of connectivity. A receiver that attacks sends
        /// `echoes` that report every gap as corruption (where the flow has `report = "forward"`),
        /// or `fields` of its choice (`report = "cumulative"`).
        kind: AttackKind = AttackKind::default();
        /// What the attacker knows: the victim's addresses and ports; the victim's packets, which
        /// pass the attacker's node; or all that the flow's receiver knows, because it is that
        /// receiver.
        knowledge: Knowledge = Knowledge::default();
        /// Packets per second; 0 for none. Only with `knowledge = "blind"`, and needed there.
        rate: Spanned<Whole>;
        /// Where the attacker guesses sequence numbers: among all 2^32, or among those in flight at
        /// the moment, the strongest guess. With `changes`, it guesses ACK numbers and timestamps
        /// likewise, or takes all of them from the last ACK. Only with `knowledge = "blind"`.
        aim: Spanned<Aim>;
        /// One notice for this many passing data packets, one change for this many passing ACKs; 1
        /// if absent. Only with `knowledge = "on-path"`.
        every: Spanned<Count>;
        /// The loss probabilities that an attacking receiver claims; certain corruption if absent.
        /// Only with `kind = "fields"`.
        claim: Spanned<Claim>;
        /// When it starts; at the start of the run if absent.
        start: Written<Duration>;
        /// When it stops; at the end of the run if absent.
        stop: Written<Duration>;
    }
}

table! {
    /// The loss probabilities that a receiver claims.
    pub(crate) struct Claim {
        /// The probability of a loss by corruption.
        corruption: Probability = Probability(1.0);
        /// That of a loss by congestion.
        congestion: Probability = Probability(0.0);
    }
}

/// What the checks of attacks depend on.
pub(crate) struct Context<'a> {
    pub(crate) nodes: &'a [String],
    pub(crate) links: &'a [Link],
    pub(crate) flows: &'a [Flow],
    pub(crate) routes: &'a Routes,
}

impl Context<'_> {
    /// The attacks, checked.
    pub(crate) fn resolve(
        &self,
        attacks: Vec<Spanned<Table>>,
        problems: &mut Vec<Problem>,
    ) -> Vec<Attack> {
        let mut resolved = Vec::with_capacity(attacks.len());
        for attack in attacks {
            resolved.extend(self.attack(&attack, problems));
        }
        resolved
    }

    fn attack(&self, written: &Spanned<Table>, problems: &mut Vec<Problem>) -> Option<Attack> {
        let table = written.get_ref();
        let method = method(written).or_report(problems);
        let lies = matches!(table.kind, AttackKind::Echoes | AttackKind::Fields);
        if (table.knowledge == Knowledge::Receiver) != lies {
            let message =
                "expected `knowledge = \"receiver\"` with `kind = \"echoes\"` and \"fields\" only";
            problems.push(Problem::at(written.span(), message));
        }
        let at = table.at.as_ref().and_then(|name| node(name, self.nodes).or_report(problems));
        let flow = table.flow.as_ref().and_then(|name| self.flow(name).or_report(problems));
        let (at, flow) = (at?, flow?);
        if let Some(name) = &table.at {
            self.place(name, at, &self.flows[flow], table.knowledge).or_report(problems)?;
        }
        let time = |written: &Option<Written<Duration>>| {
            written.as_ref().map(|written| Time::ZERO + written.0)
        };
        Some(Attack {
            at,
            flow,
            kind: table.kind,
            method: method?,
            start: time(&table.start).unwrap_or(Time::ZERO),
            stop: time(&table.stop).unwrap_or(Time::NEVER),
        })
    }

    fn flow(&self, name: &Spanned<String>) -> Result<usize, Problem> {
        let index = self.flows.iter().position(|flow| flow.name == *name.get_ref());
        match index {
            None => Err(Problem::at(name.span(), "there is no such flow")),
            Some(index) if matches!(self.flows[index].traffic, Traffic::Datagrams(_)) => {
                let message = "expected a flow over TCP: a sender of datagrams ignores notices";
                Err(Problem::at(name.span(), message))
            }
            Some(index) => Ok(index),
        }
    }

    /// Checks that the attacker's node fits its knowledge.
    fn place(
        &self,
        name: &Spanned<String>,
        at: usize,
        flow: &Flow,
        knowledge: Knowledge,
    ) -> Result<(), Problem> {
        let hops = |from, to| self.routes.distance(self.links, from, to);
        let wrong = match knowledge {
            Knowledge::Receiver if at != flow.to => "expected the node that receives the flow",
            Knowledge::Receiver => return Ok(()),
            _ if at == flow.from || at == flow.to => "expected a node other than the victim's ends",
            Knowledge::Blind if hops(at, flow.from).is_none() => "there is no path to the victim",
            Knowledge::OnPath
                if !is_between(
                    hops(flow.from, at),
                    hops(at, flow.to),
                    hops(flow.from, flow.to),
                ) =>
            {
                "the victim's packets do not pass this node: expected one on their path"
            }
            Knowledge::Blind | Knowledge::OnPath => return Ok(()),
        };
        Err(Problem::at(name.span(), wrong))
    }
}

/// Whether a node is on a shortest path, by its distances.
fn is_between(before: Option<u32>, behind: Option<u32>, whole: Option<u32>) -> bool {
    before.zip(behind).map(|(before, behind)| before + behind) == whole
}

fn method(written: &Spanned<Table>) -> Result<Method, Problem> {
    let Table { kind, knowledge, rate, aim, every, claim, .. } = written.get_ref();
    let unfit = |span, key| {
        let message = format!("`{key}` has no effect with this `knowledge`");
        Err(Problem::at(span, message))
    };
    if let (Some(claim), true) = (claim, *kind != AttackKind::Fields) {
        let message = "`claim` needs `kind = \"fields\"`";
        return Err(Problem::at(claim.span(), message));
    }
    let blind = *knowledge == Knowledge::Blind;
    match (knowledge, rate, aim, every) {
        (_, Some(rate), _, _) if !blind => unfit(rate.span(), "rate"),
        (_, _, Some(aim), _) if !blind => unfit(aim.span(), "aim"),
        (Knowledge::Blind | Knowledge::Receiver, _, _, Some(every)) => unfit(every.span(), "every"),
        (Knowledge::Receiver, ..) => {
            let absent = Claim::default();
            let Claim { corruption, congestion } = claim.as_ref().map_or(&absent, Spanned::get_ref);
            let claim = Causes { corruption: corruption.0, congestion: congestion.0 };
            Ok(Method::Receiver { claim })
        }
        (Knowledge::Blind, None, _, _) => {
            Err(Problem::at(written.span(), "missing key `rate`: packets per second"))
        }
        (Knowledge::Blind, Some(rate), aim, None) => {
            let aim = aim.as_ref().map(|aim| *aim.get_ref()).unwrap_or_default();
            Ok(Method::Blind { rate: rate.get_ref().0, aim })
        }
        (Knowledge::OnPath, _, _, every) => {
            Ok(Method::OnPath { every: every.as_ref().map_or(1, |every| every.get_ref().0) })
        }
    }
}
