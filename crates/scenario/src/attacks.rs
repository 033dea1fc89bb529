//! `[[attacks]]`: forged notices of corruption or of changes of connectivity (`bbn8333` §6.2,
//! §7.1; `koutsianas2007` §3.6).

use crate::flow::{Flow, Report, Traffic};
use crate::links::Link;
use crate::nodes::node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Count, Probability, Whole, Written};
use crate::reading::shape::{OrReport as _, table};
use crate::reading::words::words;
use crate::routes::Routes;
use base::settings::Span;
use base::{Duration, Time};
use middlebox::{Aim, BoxSettings, FalseEchoes, FalseFields, Forges, OnPathAttacker, Target};
use toml::Spanned;

/// An attack.
#[derive(Clone, Debug, PartialEq)]
pub struct Attack {
    /// The attacker's node.
    pub at: usize,
    /// By what it attacks.
    pub method: Method,
}

impl Attack {
    /// Whether its guesses are filled in before the target's host opens the packets.
    pub(crate) fn guesses_under_esp(&self) -> bool {
        matches!(self.method, Method::Blind(Blind { forges: Forges::EspPackets, .. }))
    }
}

/// By what an attacker attacks.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// It sees no packet of the victim and guesses.
    Blind(Blind),
    /// It has a box, which sees the victim's packets.
    Box(BoxSettings),
}

/// An attacker that sees no packet of its victim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blind {
    /// The victim, by its index.
    pub flow: usize,
    /// What it sends.
    pub forges: Forges,
    /// The end of the flow that it sends that to.
    pub to: Target,
    /// Packets per second.
    pub rate: u32,
    /// Where it guesses sequence numbers.
    pub aim: Aim,
    /// When it starts.
    pub start: Time,
    /// When it stops.
    pub stop: Time,
}

/// What an attacker sends.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AttackKind {
    /// Forged notices of corruption.
    #[default]
    Notices,
    /// UDP datagrams of the same size at the same times, which no application reads: the effect of
    /// the load alone.
    Datagrams,
    /// Forged indications that the connectivity of the flow's receiver has changed.
    Changes,
    /// Packets of the flow's ESP association, in its sender's name, which claim that all before
    /// them was received.
    EspPackets,
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
    /// An attacker, which forges notices of corruption or of changes of connectivity. All but blind
    /// ones stand for a box in their node: `on-path-attacker`, `false-echoes` or `false-fields`.
    pub(crate) struct Table {
        /// The attacker's node.
        at: Spanned<String>, needed;
        /// The name of the attacked flow, which runs over TCP.
        flow: Spanned<String>, needed;
        /// What the attacker sends: forged notices of corruption; for comparison, inert UDP
        /// datagrams of the same size at the same times; or ACKs to the flow's sender, in its
        /// receiver's name, that indicate `changes` of connectivity; or packets to the flow's
        /// receiver, in its sender's name, under ESP (`esp-packets`), whose SPI and number are
        /// guessed or read. A receiver that attacks sends `echoes` that report every gap as
        /// corruption (where the flow has `report = "forward"`), or `fields` of its choice
        /// (`report = "cumulative"`).
        kind: AttackKind = AttackKind::default();
        /// What the attacker knows: the victim's addresses and ports; the victim's packets, which
        /// pass the attacker's node; or all that the flow's receiver knows, because it is that
        /// receiver.
        knowledge: Knowledge = Knowledge::default();
        /// Packets per second; 0 for none. Only with `knowledge = "blind"`, and needed there.
        rate: Spanned<Whole>;
        /// Where the attacker guesses sequence numbers: among all 2^32, or among those in flight at
        /// the moment, the strongest guess. With `changes`, it guesses ACK numbers and timestamps
        /// likewise, or takes all of them from the last ACK. With `esp-packets` it guesses SPI and
        /// number, or knows the SPI and guesses a later number. Only with `knowledge = "blind"`.
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
        check(written).or_report(problems);
        let lies = matches!(table.kind, AttackKind::Echoes | AttackKind::Fields);
        if (table.knowledge == Knowledge::Receiver) != lies {
            let message =
                "expected `knowledge = \"receiver\"` with `kind = \"echoes\"` and \"fields\" only";
            problems.push(Problem::at(written.span(), message));
        }
        let at = table.at.as_ref().and_then(|name| node(name, self.nodes).or_report(problems));
        let flow = table.flow.as_ref().and_then(|name| self.flow(name).or_report(problems));
        let (at, flow) = (at?, flow?);
        if let Some(name) = &table.at
            && let Err(wrong) = self.place(at, &self.flows[flow], table.knowledge)
        {
            problems.push(Problem::at(name.span(), wrong));
        }
        Some(Attack { at, method: self.method(flow, table) })
    }

    /// What the table stands for, once its keys are checked.
    fn method(&self, flow: usize, table: &Table) -> Method {
        let victim = &self.flows[flow];
        let flows = vec![victim.name.clone()];
        let span = |written: &Option<Written<Duration>>| written.as_ref().map(|at| Span(at.0));
        let (start, stop) = (span(&table.start), span(&table.stop));
        let forges = match table.kind {
            AttackKind::Notices => Forges::Notices,
            AttackKind::Datagrams => Forges::Datagrams,
            AttackKind::Changes => Forges::Changes,
            AttackKind::EspPackets => Forges::EspPackets,
            AttackKind::Echoes => {
                // Attackers know by which defences they have to get past.
                let nonces = victim.has_nonces();
                return Method::Box(FalseEchoes { flows, nonces, start, stop }.into());
            }
            AttackKind::Fields => {
                let claim = table.claim.as_ref().map(Spanned::get_ref);
                let standard = Claim::default();
                let Claim { corruption, congestion } = claim.unwrap_or(&standard);
                let (corruption, congestion) = (corruption.0, congestion.0);
                let fields = FalseFields { flows, corruption, congestion, start, stop };
                return Method::Box(fields.into());
            }
        };
        // The end that notices or changes are for.
        let to_receiver = match forges {
            Forges::Notices | Forges::Datagrams => victim.report == Report::Forward,
            Forges::Changes => false,
            Forges::EspPackets => true,
        };
        let to = if to_receiver { Target::Receiver } else { Target::Sender };
        if table.knowledge == Knowledge::OnPath {
            let every = table.every.as_ref().map_or(1, |every| every.get_ref().0);
            let notice_size = victim.notice_size;
            let attacker = OnPathAttacker { flows, forges, to, notice_size, every, start, stop };
            return Method::Box(attacker.into());
        }
        Method::Blind(Blind {
            flow,
            forges,
            to,
            rate: table.rate.as_ref().map_or(0, |rate| rate.get_ref().0),
            aim: table.aim.as_ref().map(|aim| *aim.get_ref()).unwrap_or_default(),
            start: Time::ZERO + start.map_or(Duration::ZERO, |at| at.0),
            stop: stop.map_or(Time::NEVER, |at| Time::ZERO + at.0),
        })
    }

    /// Checks the place of an attacker of a node's `boxes`.
    pub(crate) fn check(&self, at: usize, settings: &BoxSettings) -> Result<(), &'static str> {
        let knowledge = match settings {
            BoxSettings::OnPathAttacker(_) => Knowledge::OnPath,
            BoxSettings::FalseEchoes(_) | BoxSettings::FalseFields(_) => Knowledge::Receiver,
            _ => return Ok(()),
        };
        let mut victims = self.flows.iter().filter(|flow| settings.flows().contains(&flow.name));
        victims.try_for_each(|flow| self.attackable(flow).and(self.place(at, flow, knowledge)))
    }

    /// The names of a node's neighbours.
    pub(crate) fn neighbours(&self, node: usize) -> Vec<&str> {
        let other = |link: &Link| match node {
            _ if link.from == node => Some(link.to),
            _ if link.to == node => Some(link.from),
            _ => None,
        };
        self.links.iter().filter_map(other).map(|node| self.nodes[node].as_str()).collect()
    }

    fn attackable(&self, flow: &Flow) -> Result<(), &'static str> {
        match flow.traffic {
            Traffic::Datagrams(_) => {
                Err("expected a flow over TCP: a sender of datagrams ignores notices")
            }
            _ => Ok(()),
        }
    }

    fn flow(&self, name: &Spanned<String>) -> Result<usize, Problem> {
        let index = self.flows.iter().position(|flow| flow.name == *name.get_ref());
        let index = index.ok_or("there is no such flow");
        let index = index.and_then(|index| self.attackable(&self.flows[index]).map(|()| index));
        index.map_err(|wrong| Problem::at(name.span(), wrong))
    }

    /// Checks that the attacker's node fits its knowledge.
    fn place(&self, at: usize, flow: &Flow, knowledge: Knowledge) -> Result<(), &'static str> {
        let hops = |from, to| self.routes.distance(self.links, from, to);
        match knowledge {
            Knowledge::Receiver if at != flow.to => Err("expected the node that receives the flow"),
            Knowledge::Receiver => Ok(()),
            _ if at == flow.from || at == flow.to => {
                Err("expected a node other than the victim's ends")
            }
            Knowledge::Blind if hops(at, flow.from).is_none() => {
                Err("there is no path to the victim")
            }
            Knowledge::OnPath
                if !is_between(
                    hops(flow.from, at),
                    hops(at, flow.to),
                    hops(flow.from, flow.to),
                ) =>
            {
                Err("the victim's packets do not pass this node: expected one on their path")
            }
            Knowledge::Blind | Knowledge::OnPath => Ok(()),
        }
    }
}

/// Whether a node is on a shortest path, by its distances.
fn is_between(before: Option<u32>, behind: Option<u32>, whole: Option<u32>) -> bool {
    before.zip(behind).map(|(before, behind)| before + behind) == whole
}

/// Checks that each key has an effect.
fn check(written: &Spanned<Table>) -> Result<(), Problem> {
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
    match (rate, aim, every) {
        (Some(rate), ..) if !blind => unfit(rate.span(), "rate"),
        (_, Some(aim), _) if !blind => unfit(aim.span(), "aim"),
        (.., Some(every)) if *knowledge != Knowledge::OnPath => unfit(every.span(), "every"),
        (None, ..) if blind => {
            Err(Problem::at(written.span(), "missing key `rate`: packets per second"))
        }
        _ => Ok(()),
    }
}
