//! Queues: limits and disciplines.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Packets, Probability, QueueLimit, Written};
use crate::reading::shape::{Shape, table, unexpected};
use base::Duration;
use base::units::Size;
use link::{CoDel, Discipline, FqCoDel, HostIsolation, Isolation};
use serde_json::{Value, json};
use toml::Spanned;

table! {
    /// A queue with a discipline.
    pub(super) struct QueueTable {
        /// The limit of all packets in the queue. If absent, it is 10240 packets with `fq_codel`,
        /// and otherwise the queue is unlimited.
        limit: Spanned<QueueLimit>;
        /// Random early detection: the longer the average queue, the more arriving packets are
        /// dropped, or marked.
        red: Spanned<Red>;
        /// CoDel: after all packets of an interval have waited too long, packets are dropped at the
        /// head of the queue, or marked.
        codel: Codel;
        /// Deficit round robin: flows or hosts have queues of their own and equal shares of the
        /// rate. At the limit, packets are dropped at the tail of the longest queue.
        drr: Drr;
        /// FQ-CoDel: flows have queues of their own, with equal shares of the rate and CoDel each; a
        /// queue that was empty is served first. At the limit, half of the packets of the longest
        /// queue are dropped at its head, 64 at most.
        fq_codel: FqCodel;
    }
}

table! {
    /// Random early detection (Floyd and Jacobson 1993).
    pub(super) struct Red {
        /// The average queue, in packets, below which no packet is dropped.
        min: Packets = Packets(link::Red::default().min);
        /// The average queue, in packets, at which the drop probability is `max_probability`.
        max: Packets = Packets(link::Red::default().max);
        /// The drop probability as the average queue reaches `max`.
        max_probability: Probability = Probability(link::Red::default().max_probability);
        /// The weight of a new sample in the average.
        weight: Probability = Probability(link::Red::default().weight);
        /// The mean packet size, bytes, by which the average decays while the queue is empty; 500
        /// if absent.
        mean_packet: Spanned<Amount>;
        /// Gentle RED: from `max` to twice `max` the drop probability grows to 1, instead of being
        /// 1 from `max` on.
        gentle: bool = link::Red::default().gentle;
        /// Wait: at least 1 / p and at most 2 / p packets lie between two drops; otherwise at most
        /// 1 / p.
        wait: bool = link::Red::default().wait;
        /// Mark ECN-capable packets where others are dropped at random.
        ecn: bool = link::Red::default().ecn;
    }
}

table! {
    /// Controlled delay (RFC 8289).
    pub(super) struct Codel {
        /// The target delay of a packet in the queue; 5 ms if absent.
        target: Written<Duration>;
        /// About the longest round-trip time of the flows on the link; 100 ms if absent.
        interval: Spanned<Written<Duration>>;
        /// The size of the largest packet, bytes: with no more than this in the queue, no packet is
        /// dropped. 1500 if absent.
        max_packet: Spanned<Amount>;
        /// Mark ECN-capable packets where others are dropped.
        ecn: bool = CoDel::default().ecn;
    }
}

table! {
    /// Deficit round robin (Shreedhar and Varghese 1996).
    pub(super) struct Drr {
        /// Bytes that a queue may send in a round, 256 or more; 1514 if absent.
        quantum: Spanned<Amount>;
        /// Which packets share a queue, by their outermost IP header: those with the same addresses,
        /// protocol and ports, those with the same source address, or those with the same destination
        /// address. `flows` if absent.
        isolation: Isolation;
    }
}

table! {
    /// FQ-CoDel (RFC 8290): 1024 queues, to which flows are hashed.
    pub(super) struct FqCodel {
        /// The target delay of a packet in its queue; 5 ms if absent.
        target: Written<Duration>;
        /// About the longest round-trip time of the flows on the link; 100 ms if absent.
        interval: Spanned<Written<Duration>>;
        /// The size of the largest packet, bytes: with no more than this in a queue, none of its
        /// packets is dropped. 1500 if absent.
        max_packet: Spanned<Amount>;
        /// Mark ECN-capable packets where CoDel drops others.
        ecn: bool = FqCoDel::default().codel.ecn;
        /// Bytes that a queue may send in a turn, 256 or more; 1514 if absent.
        quantum: Spanned<Amount>;
        /// Who has equal shares: `flows`, or first the hosts from which packets come, the hosts to
        /// which they go, or whichever has more flows, and then the flows of each. `flows` if absent.
        isolation: HostIsolation;
    }
}

/// A limit, or a table.
#[derive(Debug)]
pub(super) struct Queue(QueueTable);

impl Shape for Queue {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Queue> {
        if node.get_ref().is_table() {
            return QueueTable::read(node, problems).map(Queue);
        }
        if !node.get_ref().is_str() {
            let expected =
                "\"unlimited\", a size, such as \"50 packets\" or \"64 KiB\", or a table";
            return unexpected(node, expected, problems);
        }
        let limit = Some(Spanned::read(node, problems)?);
        Some(Queue(QueueTable { limit, ..QueueTable::default() }))
    }

    fn schema() -> Value {
        let mut alternatives = vec![QueueTable::schema()];
        match QueueLimit::schema()["anyOf"].take() {
            Value::Array(limits) => alternatives.splice(0..0, limits),
            other => alternatives.splice(0..0, vec![other]),
        };
        json!({ "anyOf": alternatives })
    }
}

/// The limit and the discipline of a queue.
pub(super) fn resolve(queue: &Spanned<Queue>) -> Result<(link::Queue, Discipline), Problem> {
    let Queue(QueueTable { limit, red, codel, drr, fq_codel }) = queue.get_ref();
    let unlimited = link::Queue::Unlimited;
    let absent = if fq_codel.is_some() { FqCoDel::LIMIT } else { unlimited };
    let limit = limit.as_ref().map_or(Ok(absent), self::limit)?;
    let red = red.as_ref().map(self::red).transpose()?.map(Discipline::Red);
    let codel = codel.as_ref().map(self::codel).transpose()?.map(Discipline::CoDel);
    let drr = drr.as_ref().map(self::drr).transpose()?.map(Discipline::Drr);
    let fq_codel = fq_codel.as_ref().map(self::fq_codel).transpose()?.map(Discipline::FqCoDel);
    let mut disciplines = [red, codel, drr, fq_codel].into_iter().flatten();
    let discipline = disciplines.next().unwrap_or_default();
    if disciplines.next().is_some() {
        let message = "expected one of `red`, `codel`, `drr`, `fq_codel`, not several";
        return Err(Problem::at(queue.span(), message));
    }
    Ok((limit, discipline))
}

fn limit(limit: &Spanned<QueueLimit>) -> Result<link::Queue, Problem> {
    let QueueLimit::Most(size) = *limit.get_ref() else { return Ok(link::Queue::Unlimited) };
    match size {
        Size::Packets(0) | Size::Bytes(0) => {
            Err(Problem::at(limit.span(), "expected more than 0: an empty queue passes no packet")
                .help("\"unlimited\" is a queue without a limit"))
        }
        Size::Packets(packets) => match u32::try_from(packets) {
            Ok(packets) => Ok(link::Queue::Packets(packets)),
            Err(_) => Err(Problem::at(limit.span(), "expected fewer than 2^32 packets")),
        },
        Size::Bytes(bytes) => Ok(link::Queue::Bytes(bytes)),
        Size::Segments(_) => Err(Problem::at(
            limit.span(),
            "a queue holds packets: expected a size such as \"50 packets\" or \"64 KiB\"",
        )),
    }
}

fn red(red: &Spanned<Red>) -> Result<link::Red, Problem> {
    let standard = link::Red::default();
    let &Red { min, max, max_probability, weight, ref mean_packet, gentle, wait, ecn } =
        red.get_ref();
    if max.0 <= min.0 {
        let message = format!("`max` is {}: expected more than `min`, {}", max.0, min.0);
        return Err(Problem::at(red.span(), message));
    }
    Ok(link::Red {
        min: min.0,
        max: max.0,
        max_probability: max_probability.0,
        weight: weight.0,
        mean_packet: bytes(mean_packet, standard.mean_packet)?,
        gentle,
        wait,
        ecn,
    })
}

fn codel(codel: &Codel) -> Result<CoDel, Problem> {
    control(codel.target, &codel.interval, &codel.max_packet, codel.ecn)
}

fn control(
    target: Option<Written<Duration>>,
    interval: &Option<Spanned<Written<Duration>>>,
    max_packet: &Option<Spanned<Amount>>,
    ecn: bool,
) -> Result<CoDel, Problem> {
    let standard = CoDel::default();
    let interval = match interval {
        Some(interval) if interval.get_ref().0 == Duration::ZERO => {
            return Err(Problem::at(interval.span(), "expected more than 0 s"));
        }
        interval => interval.as_ref().map_or(standard.interval, |interval| interval.get_ref().0),
    };
    Ok(CoDel {
        target: target.map_or(standard.target, |target| target.0),
        interval,
        max_packet: bytes(max_packet, standard.max_packet)?,
        ecn,
    })
}

fn drr(drr: &Drr) -> Result<link::Drr, Problem> {
    let standard = link::Drr::default();
    let quantum = bytes_from(LEAST_QUANTUM, &drr.quantum, standard.quantum)?;
    Ok(link::Drr { quantum, isolation: drr.isolation.unwrap_or(standard.isolation) })
}

fn fq_codel(written: &FqCodel) -> Result<FqCoDel, Problem> {
    let standard = FqCoDel::default();
    let &FqCodel { target, ref interval, ref max_packet, ecn, ref quantum, isolation } = written;
    Ok(FqCoDel {
        codel: control(target, interval, max_packet, ecn)?,
        quantum: bytes_from(LEAST_QUANTUM, quantum, standard.quantum)?,
        isolation: isolation.unwrap_or(standard.isolation),
    })
}

/// With a smaller quantum a packet would take many rounds. It is Linux's limit.
const LEAST_QUANTUM: u64 = 256;

/// The size of a packet.
fn bytes(written: &Option<Spanned<Amount>>, standard: u32) -> Result<u32, Problem> {
    bytes_from(1, written, standard)
}

/// A size from `least` bytes up to the largest packet.
fn bytes_from(
    least: u64,
    written: &Option<Spanned<Amount>>,
    standard: u32,
) -> Result<u32, Problem> {
    const MOST: u64 = 65_535;
    let Some(written) = written else { return Ok(standard) };
    match written.get_ref().0 {
        Size::Bytes(bytes) if (least..=MOST).contains(&bytes) => Ok(bytes as u32),
        _ => Err(Problem::at(written.span(), format!("expected {least} to {MOST} bytes"))),
    }
}
