//! From `[[attacks]]` to attacks: who forges notices of corruption or of changes of connectivity, of
//! whose packets, and knowing what (`bbn8333` §6.2, §7.1; `koutsianas2007` §3.6).

use super::flows::hops;
use super::quantity::{Count, Probability, Whole, Written};
use super::{Flow, Link, Traffic, node};
use crate::error::Problem;
use crate::shape::{Told as _, table};
use base::{Duration, Time};
use middlebox::Aim;
use toml::Spanned;
use wire::Causes;

/// Forged notices about a flow, or datagrams instead.
#[derive(Clone, Debug, PartialEq)]
pub struct Attack {
    /// The node that they come from.
    pub at: usize,
    /// The victim, by its index.
    pub flow: usize,
    /// What they are.
    pub kind: AttackKind,
    /// What the attacker knows, and what follows from it.
    pub method: Method,
    /// From when on.
    pub start: Time,
    /// From when on no more.
    pub stop: Time,
}

/// How an attacker goes about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// It sees nothing of the victim and guesses.
    Blind {
        /// Packets a second.
        rate: u32,
        /// Where it guesses that sequence numbers are.
        aim: Aim,
    },
    /// It sees the victim's packets pass.
    OnPath {
        /// It answers every so many-th of those with data.
        every: u64,
    },
    /// It is the receiver of the flow.
    Receiver {
        /// Which losses it claims to have seen, if it echoes fields.
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
    /// Datagrams of UDP of the same size at the same times, which nobody reads: what the load alone
    /// does.
    Datagrams,
    /// Forged indications that the connectivity of the flow's receiver has changed.
    Changes,
    /// The echoes of a receiver that calls every hole corruption (of `report = "forward"`).
    Echoes,
    /// Made-up fields in the headers of a receiver's segments (of `report = "cumulative"`).
    Fields,
}

/// What an attacker knows of its victim.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Knowledge {
    /// Its addresses and ports.
    #[default]
    Blind,
    /// Its packets.
    OnPath,
    /// All that its receiver knows, since it is that.
    Receiver,
}

table! {
    /// Somebody who forges notices of corruption, or of changes of connectivity.
    pub(super) struct Table {
        /// The node that they come from.
        at: Spanned<String>, needed;
        /// The name of the flow that is attacked: one that runs over TCP.
        flow: Spanned<String>, needed;
        /// What is sent: forged notices, or, for comparison, inert datagrams of the same size at the
        /// same times; or acknowledgments to the flow's sender, in its receiver's name, that tell of
        /// `changes` of connectivity. Of a receiver: `echoes` that call
        /// every hole corruption (where the flow has `report = "forward"`), or `fields` of its choice
        /// (`report = "cumulative"`).
        kind: AttackKind = AttackKind::default();
        /// What the attacker knows: addresses and ports; the victim's packets, which pass its node;
        /// or all that the flow's receiver knows, which it is.
        knowledge: Knowledge = Knowledge::default();
        /// Packets a second; 0 for none. Only of `knowledge = "blind"`, and needed there.
        rate: Spanned<Whole>;
        /// Where the sequence numbers are guessed: among all 2^32, or among those in flight just now,
        /// the strongest guess; of `changes`, so are acknowledgment numbers and timestamps, or all are
        /// those of the last acknowledgment. Only of `knowledge = "blind"`.
        aim: Spanned<Aim>;
        /// A notice for every so many-th packet that passes with data, a change for every so many-th
        /// acknowledgment; 1 if absent. Only of
        /// `knowledge = "on-path"`.
        every: Spanned<Count>;
        /// What a receiver claims that its path is like; certain corruption if absent. Only of
        /// `kind = "fields"`.
        claim: Spanned<Claim>;
        /// From when on; at once if absent.
        start: Written<Duration>;
        /// From when on no more; to the end of the run if absent.
        stop: Written<Duration>;
    }
}

table! {
    /// What a path is claimed to be like.
    pub(super) struct Claim {
        /// The probability of a loss by corruption.
        corruption: Probability = Probability(1.0);
        /// That of a loss by congestion.
        congestion: Probability = Probability(0.0);
    }
}

/// What attacks are read against.
pub(super) struct Context<'a> {
    pub(super) nodes: &'a [String],
    pub(super) links: &'a [Link],
    pub(super) flows: &'a [Flow],
}

impl Context<'_> {
    /// The attacks, checked.
    pub(super) fn resolve(
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
        let method = method(written).told(problems);
        let lies = matches!(table.kind, AttackKind::Echoes | AttackKind::Fields);
        if (table.knowledge == Knowledge::Receiver) != lies {
            let message =
                "expected `knowledge = \"receiver\"` with `kind = \"echoes\"` and \"fields\" only";
            problems.push(Problem::at(written.span(), message));
        }
        let at = table.at.as_ref().and_then(|name| node(name, self.nodes).told(problems));
        let flow = table.flow.as_ref().and_then(|name| self.flow(name).told(problems));
        let (at, flow) = (at?, flow?);
        if let Some(name) = &table.at {
            self.place(name, at, &self.flows[flow], table.knowledge).told(problems)?;
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
                let message = "expected a flow over TCP: nobody heeds notices about datagrams";
                Err(Problem::at(name.span(), message))
            }
            Some(index) => Ok(index),
        }
    }

    /// Makes sure that the attacker is where it can do what it is to do.
    fn place(
        &self,
        name: &Spanned<String>,
        at: usize,
        flow: &Flow,
        knowledge: Knowledge,
    ) -> Result<(), Problem> {
        let hops = |from, to| hops(self.nodes.len(), self.links, from, to);
        let wrong = match knowledge {
            Knowledge::Receiver if at != flow.to => "expected the node that receives the flow",
            Knowledge::Receiver => return Ok(()),
            _ if at == flow.from || at == flow.to => "expected another node than the victim's ends",
            Knowledge::Blind if hops(at, flow.from).is_none() => "there is no way to the victim",
            Knowledge::OnPath
                if !is_between(
                    hops(flow.from, at),
                    hops(at, flow.to),
                    hops(flow.from, flow.to),
                ) =>
            {
                "the victim's packets do not pass here: expected a node on their way"
            }
            Knowledge::Blind | Knowledge::OnPath => return Ok(()),
        };
        Err(Problem::at(name.span(), wrong))
    }
}

/// Whether a shortest way leads through a place.
fn is_between(before: Option<u32>, behind: Option<u32>, whole: Option<u32>) -> bool {
    before.zip(behind).map(|(before, behind)| before + behind) == whole
}

fn method(written: &Spanned<Table>) -> Result<Method, Problem> {
    let Table { kind, knowledge, rate, aim, every, claim, .. } = written.get_ref();
    let unfit = |span, key| {
        let message = format!("`{key}` says nothing with this `knowledge`");
        Err(Problem::at(span, message))
    };
    if let (Some(claim), true) = (claim, *kind != AttackKind::Fields) {
        let message = "only of `kind = \"fields\"` is it the claim";
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
            Err(Problem::at(written.span(), "missing key `rate`: packets a second"))
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
