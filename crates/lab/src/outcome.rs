//! The outcome of a run.

use crate::account::Counts;
use crate::failure::RunError;
use crate::ledger::Ledger;
use crate::log::{self, Owners};
use crate::row::{Distributions, Row, Tail};
use crate::series::{self, Series};
use crate::table::{Column, Table, count};
use crate::watch::Watch;
use crate::world::Built;
use base::Quantiles;
use host::DropReason;
use middlebox::fec::SideChannel;
use scenario::{Latency, Scenario, port};
use sim::Digest;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// One for every flow, in the order of declaration.
    pub rows: Vec<Row>,
    /// The counts of all links together.
    pub totals: Totals,
    /// The counts of each direction of a link, by the names of its ends (`a->b`), in the order of
    /// declaration.
    pub links: Vec<(String, link::Statistics)>,
    /// The queueing delays of each direction, in the same order; `None` for one without a packet.
    /// Empty if they were not measured.
    pub queue_delays_s: Vec<Option<Tail>>,
    /// Their distributions, nanoseconds; empty if they were not kept.
    pub queue_delays: Vec<Quantiles>,
    /// The packets that boxes dropped.
    pub box_drops: Vec<BoxDrops>,
    /// What boxes counted.
    pub box_counts: Vec<BoxCount>,
    /// Events of the simulation.
    pub events: u64,
    /// Which path segments took through the simulator's hosts.
    pub paths: Option<Paths>,
    /// The digest of all packets, if requested.
    pub digest: Option<Digest>,
    /// Time series, if requested.
    pub series: Option<Series>,
}

/// Packets that the boxes of a node dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoxDrops {
    /// The node's name.
    pub node: String,
    /// Why.
    pub reason: DropReason,
    /// How many, more than 0.
    pub packets: u64,
}

/// What a box of a node counted, beside packets that it dropped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoxCount {
    /// The node's name.
    pub node: String,
    /// The name of the count.
    pub name: &'static str,
    /// How many, more than 0.
    pub count: u64,
}

/// Counts over all links and both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Totals {
    /// Packets that a queue dropped, or a link that went down.
    pub dropped: u64,
    /// Packets that arrived corrupted.
    pub corrupted: u64,
    /// Packets that arrived with wrong bytes, which their own codes corrected.
    pub corrected: u64,
    /// Packets lost without a trace.
    pub lost: u64,
}

impl Totals {
    /// The sums over all directions of links.
    pub fn of<'a>(links: impl Iterator<Item = &'a link::Statistics>) -> Totals {
        links.fold(Totals::default(), |totals, link| Totals {
            dropped: totals.dropped + link.dropped + link.discarded,
            corrupted: totals.corrupted + link.corrupted,
            corrected: totals.corrected + link.corrected,
            lost: totals.lost + link.lost,
        })
    }
}

/// The paths that segments took through hosts, of all connections together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Paths {
    /// Segments.
    pub segments: u64,
    /// Those of them that took the fast path.
    pub fast: u64,
}

impl Paths {
    /// The share of segments that took the fast path; `None` without segments.
    #[must_use]
    pub fn fast_share(&self) -> Option<f64> {
        (self.segments > 0).then(|| self.fast as f64 / self.segments as f64)
    }
}

/// Reads the outcome of a world at its end.
pub(crate) fn of(
    scenario: &Scenario,
    seed: u64,
    built: Built,
    ledger: Ledger<'_>,
    owned: Option<Owners>,
    watch: &Watch,
) -> Result<Outcome, RunError> {
    let world = &built.world;
    let keep = watch.latency == Latency::Distributions;
    let mut rows = ledger.rows(keep);
    for (index, row) in rows.iter_mut().enumerate() {
        let to = built.address(scenario, index, scenario.flows[index].to);
        row.data_dropped = Some(world.data_drops(to, port(index)));
    }
    for (row, beside) in rows.iter_mut().zip(&built.codings) {
        row.coding = beside.as_ref().map(SideChannel::statistics).unwrap_or_default();
        if row.coding.faults > 0 {
            let (flow, blocks) = (row.flow.clone(), row.coding.faults);
            return Err(RunError::Coding { flow, seed, blocks });
        }
    }
    if let Some(row) = rows.iter().find(|row| row.misplaced > 0) {
        let (flow, misplaced) = (row.flow.clone(), row.misplaced);
        return Err(RunError::Misplaced { flow, seed, misplaced });
    }
    if world.unroutable() > 0 {
        return Err(RunError::Unroutable { packets: world.unroutable(), seed });
    }
    if let Some(fault) = world.byte_fault() {
        return Err(RunError::Bytes { fault, seed });
    }
    let directions = scenario.links.iter().zip(&built.links).flat_map(|(link, &(there, back))| {
        scenario.directions(link).into_iter().zip([there, back].map(|id| world.link(id)))
    });
    let links: Vec<_> = directions.collect();
    let totals = Totals::of(links.iter().map(|(_, link)| link));
    let ids = built.links.iter().flat_map(|&(there, back)| [there, back]);
    let mut queue_delays: Vec<_> = ids.filter_map(|id| world.queue_delays(id)).collect();
    let queue_delays_s = queue_delays.iter().map(Tail::of).collect();
    queue_delays.retain(|_| keep);
    let box_drops = scenario.nodes.iter().zip(&built.nodes).flat_map(|(node, &id)| {
        world.box_drops(id).map(|(reason, packets)| BoxDrops {
            node: node.clone(),
            reason,
            packets,
        })
    });
    let box_drops = box_drops.collect();
    let box_counts = scenario.nodes.iter().zip(&built.nodes).flat_map(|(node, &id)| {
        let counts = world.box_counts(id).into_iter();
        counts.map(|(name, count)| BoxCount { node: node.clone(), name, count })
    });
    let box_counts = box_counts.collect();
    let events = world.events();
    let paths = built.nodes.iter().map(|&node| world.host(node).statistics());
    let paths = paths.fold(Paths::default(), |all, host| Paths {
        segments: all.segments + host.segments,
        fast: all.fast + host.fast_path,
    });
    let (series, digest) = observations(scenario, built, owned, watch)?;
    let paths = Some(paths);
    Ok(Outcome {
        rows,
        totals,
        links,
        queue_delays_s,
        queue_delays,
        box_drops,
        box_counts,
        events,
        paths,
        digest,
        series,
    })
}

fn observations(
    scenario: &Scenario,
    built: Built,
    owned: Option<Owners>,
    watch: &Watch,
) -> Result<(Option<Series>, Option<Digest>), RunError> {
    let Built { world, nodes, links, .. } = built;
    // Series that were not requested are not made.
    let senders = watch.series.then(|| series::senders(&world, &nodes));
    let (recorded, digest) = world.observations();
    if let (Some(file), Some(all)) = (&watch.log, &owned) {
        log::write(file, scenario, all, &recorded.events)?;
    }
    let series = senders.map(|senders| Series::of(scenario, &senders, (&nodes, &links), &recorded));
    Ok((series, digest))
}

impl Outcome {
    /// The counts of each direction of a link, as columns.
    #[must_use]
    pub fn links_table(&self) -> Table {
        let counts = |value: fn(&link::Statistics) -> u64| {
            Column::Integer(self.links.iter().map(|(_, link)| count(value(link))).collect())
        };
        let mut table = Table::default();
        let names = self.links.iter().map(|(name, _)| name.clone());
        table.push("link", Column::Text(names.collect()));
        table.push("packets", counts(|link| link.packets));
        table.push("bytes", counts(|link| link.bytes));
        table.push("dropped", counts(|link| link.dropped + link.discarded));
        table.push("marked", counts(|link| link.marked));
        table.push("corrupted", counts(|link| link.corrupted));
        table.push("corrected", counts(|link| link.corrected));
        table.push("lost", counts(|link| link.lost));
        table.push("duplicated", counts(|link| link.duplicated));
        table.push("reordered", counts(|link| link.reordered));
        let delays: Vec<_> = (0..self.links.len())
            .map(|direction| self.queue_delays_s.get(direction).copied().flatten())
            .collect();
        push_queue_delays(&mut table, &delays);
        table
    }

    /// The direction with the largest 95th percentile of queueing delays, and these.
    fn longest_queue_delays(&self) -> Option<(usize, Tail)> {
        let delays = self.queue_delays_s.iter().enumerate();
        let delays = delays.filter_map(|(direction, delays)| Some((direction, (*delays)?)));
        delays.max_by(|(_, one), (_, other)| one.p95.total_cmp(&other.p95))
    }
}

/// Appends queueing delays as columns.
fn push_queue_delays(table: &mut Table, delays: &[Option<Tail>]) {
    let column = |value: fn(Tail) -> f64| {
        Column::Float(delays.iter().map(|delays| delays.map(value)).collect())
    };
    table.push("queue_delay_mean_s", column(|delays| delays.mean));
    table.push("queue_delay_median_s", column(|delays| delays.median));
    table.push("queue_delay_p95_s", column(|delays| delays.p95));
    table.push("queue_delay_p99_s", column(|delays| delays.p99));
}

impl Outcome {
    /// The distributions of round trips and delays that were kept and are not empty: what it is of
    /// ("rtt", "srtt", "delay" by flow, "queue_delay" by direction of a link), the name of that, and
    /// columns with each time and how often it was found.
    #[must_use]
    pub fn distributions(&self) -> Vec<(&'static str, &str, Table)> {
        let of_flows = self.rows.iter().flat_map(|row| {
            let found = row.distributions.as_deref().into_iter();
            found.flat_map(|found| {
                [("rtt", &found.rtt), ("srtt", &found.srtt), ("delay", &found.delay)]
                    .map(|(what, times)| (what, row.flow.as_str(), times))
            })
        });
        let of_links = self.links.iter().zip(&self.queue_delays);
        let of_links = of_links.map(|((link, _), times)| ("queue_delay", link.as_str(), times));
        let found = of_flows.chain(of_links).filter(|(.., times)| times.count() > 0);
        found
            .map(|(what, of, times)| {
                let mut table = Table::default();
                let seconds = times.counts().map(|(nanos, _)| Some(nanos as f64 / 1e9));
                table.push("time_s", Column::Float(seconds.collect()));
                let counts = times.counts().map(|(_, number)| count(number));
                table.push("count", Column::Integer(counts.collect()));
                (what, of, table)
            })
            .collect()
    }
}

impl Outcome {
    /// The packets that boxes dropped, as columns.
    #[must_use]
    pub fn box_drops_table(&self) -> Table {
        let drops = &self.box_drops;
        let mut table = Table::default();
        table.push("node", Column::Text(drops.iter().map(|drop| drop.node.clone()).collect()));
        let reasons = drops.iter().map(|drop| drop.reason.name().to_owned());
        table.push("reason", Column::Text(reasons.collect()));
        let packets = drops.iter().map(|drop| count(drop.packets));
        table.push("packets", Column::Integer(packets.collect()));
        table
    }

    /// What boxes counted, as columns.
    #[must_use]
    pub fn box_counts_table(&self) -> Table {
        let counts = &self.box_counts;
        let mut table = Table::default();
        table.push("node", Column::Text(counts.iter().map(|one| one.node.clone()).collect()));
        table.push("what", Column::Text(counts.iter().map(|one| one.name.to_owned()).collect()));
        table.push("count", Column::Integer(counts.iter().map(|one| count(one.count)).collect()));
        table
    }
}

impl Outcome {
    /// The rows as columns.
    #[must_use]
    pub fn table(&self, seed: u64) -> Table {
        let records: Vec<_> =
            self.rows.iter().map(|row| Record { seed, outcome: self, row }).collect();
        let mut table = Table::default();
        tabulate(&mut table, &records);
        table
    }
}

/// An outcome with its point and seed.
pub(crate) struct Record<'a> {
    pub(crate) seed: u64,
    pub(crate) outcome: &'a Outcome,
    pub(crate) row: &'a Row,
}

/// Appends rows as columns to a table.
pub(crate) fn tabulate(table: &mut Table, records: &[Record<'_>]) {
    let texts = |value: fn(&Row) -> &String| {
        Column::Text(records.iter().map(|r| value(r.row).clone()).collect())
    };
    let floats = |value: fn(&Row) -> Option<f64>| {
        Column::Float(records.iter().map(|r| value(r.row)).collect())
    };
    let integers = |value: fn(&Record<'_>) -> u64| {
        Column::Integer(records.iter().map(|record| count(value(record))).collect())
    };
    let counts = |value: fn(&Counts) -> Option<u64>| {
        Column::Count(records.iter().map(|r| value(&r.row.sender).map(count)).collect())
    };
    table.push("seed", integers(|r| r.seed));
    table.push("flow", texts(|row| &row.flow));
    table.push("from", texts(|row| &row.from));
    table.push("to", texts(|row| &row.to));
    table.push("duration_s", floats(|row| Some(row.duration_s)));
    table.push("payload_bytes", integers(|r| r.row.payload_bytes));
    table.push("payload_bps", floats(|row| Some(row.payload_bps)));
    table.push("goodput_bps", floats(|row| Some(row.goodput_bps)));
    table.push("completed_s", floats(|row| row.completed_s));
    table.push("acknowledged_s", floats(|row| row.acknowledged_s));
    table.push("started", integers(|r| r.row.started));
    table.push("finished", integers(|r| r.row.finished));
    table.push("failed", integers(|r| r.row.failed));
    table.push("time_mean_s", floats(|row| row.time_s.map(|time| time.mean)));
    table.push("time_median_s", floats(|row| row.time_s.map(|time| time.median)));
    table.push("time_p95_s", floats(|row| row.time_s.map(|time| time.p95)));
    table.push("slowdown_mean", floats(|row| row.slowdown.map(|slowdown| slowdown.mean)));
    table.push("slowdown_median", floats(|row| row.slowdown.map(|slowdown| slowdown.median)));
    table.push("slowdown_p95", floats(|row| row.slowdown.map(|slowdown| slowdown.p95)));
    table.push("datagrams_sent", integers(|r| r.row.datagrams.sent));
    table.push("datagrams_received", integers(|r| r.row.datagrams.received));
    table.push("datagram_loss", floats(|row| row.datagrams.loss()));
    let dropped = records.iter().map(|r| r.row.data_dropped.map(count));
    table.push("data_dropped", Column::Count(dropped.collect()));
    table.push("rtt_min_s", floats(|row| row.rtt_s.map(|rtt| rtt.min)));
    table.push("rtt_mean_s", floats(|row| row.rtt_s.map(|rtt| rtt.mean)));
    table.push("rtt_median_s", floats(|row| row.rtt_s.map(|rtt| rtt.median)));
    table.push("rtt_p95_s", floats(|row| row.rtt_s.map(|rtt| rtt.p95)));
    table.push("rtt_p99_s", floats(|row| row.rtt_s.map(|rtt| rtt.p99)));
    table.push("srtt_mean_s", floats(|row| row.srtt_s.map(|srtt| srtt.mean)));
    table.push("srtt_median_s", floats(|row| row.srtt_s.map(|srtt| srtt.median)));
    table.push("srtt_p95_s", floats(|row| row.srtt_s.map(|srtt| srtt.p95)));
    table.push("srtt_p99_s", floats(|row| row.srtt_s.map(|srtt| srtt.p99)));
    table.push("delay_min_s", floats(|row| row.delay_s.map(|delay| delay.min)));
    table.push("delay_mean_s", floats(|row| row.delay_s.map(|delay| delay.mean)));
    table.push("delay_median_s", floats(|row| row.delay_s.map(|delay| delay.median)));
    table.push("delay_p95_s", floats(|row| row.delay_s.map(|delay| delay.p95)));
    table.push("delay_p99_s", floats(|row| row.delay_s.map(|delay| delay.p99)));
    table.push("segments", counts(|c| c.segments));
    table.push("retransmissions", counts(|c| c.retransmissions));
    table.push("timeouts", counts(|c| c.timeouts));
    table.push("reductions", counts(|c| c.reductions));
    table.push("notices", counts(|c| c.notices));
    table.push("reprobes", counts(|c| c.reprobes));
    table.push("repairs", integers(|r| r.row.coding.repairs));
    table.push("rebuilt", integers(|r| r.row.coding.rebuilt));
    table.push("misplaced", integers(|r| r.row.misplaced));
    table.push("dropped", integers(|r| r.outcome.totals.dropped));
    table.push("corrupted", integers(|r| r.outcome.totals.corrupted));
    table.push("corrected", integers(|r| r.outcome.totals.corrected));
    table.push("lost", integers(|r| r.outcome.totals.lost));
    let longest = records.iter().map(|r| r.outcome.longest_queue_delays());
    push_queue_delays(table, &longest.map(|delays| Some(delays?.1)).collect::<Vec<_>>());
    table.push("events", integers(|r| r.outcome.events));
}

/// Appends the distributions of round trips and delays as columns: texts, JSON lists of pairs of
/// nanoseconds and how often these were found.
pub(crate) fn tabulate_distributions(table: &mut Table, records: &[Record<'_>]) {
    let of_flow = |which: fn(&Distributions) -> &Quantiles| {
        let found = records.iter().map(|r| r.row.distributions.as_deref().map(which));
        Column::Text(found.map(written).collect())
    };
    table.push("rtt_counts", of_flow(|found| &found.rtt));
    table.push("srtt_counts", of_flow(|found| &found.srtt));
    table.push("delay_counts", of_flow(|found| &found.delay));
    let longest = records.iter().map(|r| {
        let (direction, _) = r.outcome.longest_queue_delays()?;
        r.outcome.queue_delays.get(direction)
    });
    table.push("queue_delay_counts", Column::Text(longest.map(written).collect()));
}

fn written(found: Option<&Quantiles>) -> String {
    let pairs = found.into_iter().flat_map(Quantiles::counts);
    let pairs: Vec<_> = pairs.map(|(nanos, count)| format!("[{nanos},{count}]")).collect();
    format!("[{}]", pairs.join(","))
}
