//! Two namespaces and one link between them, for as long as standard input is open.
//!
//! `emulate NAME bps=10000000 delay_ns=10000000 loss=0.01 queue=100 seed=1`, all optional. It prints
//! a line of JSON when the link is there, and another with what it did in the end. Rate, delay and
//! queue are of both directions, losses of the forward direction. The nodes are the namespaces
//! lasthop-<pid>-NAME-a (10.9.0.1, fd09::1) and lasthop-<pid>-NAME-b (10.9.0.2, fd09::2).

#[path = "../tests/it/pair.rs"]
mod pair;

use base::{Duration, Rate, Seed};
use link::{Config, ErrorModel, Queue, Uniform};
use live::emulator::{Direction, DirectionReport, Report, Verdict};
use pair::{ADDRESSES, Pair};
use std::error::Error;
use std::io::Read;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("expected a name, then settings KEY=VALUE")?;
    let (mut config, mut loss, mut seed) = (Config::default(), 0.0, Seed(1));
    for argument in arguments {
        let (key, value) = argument.split_once('=').ok_or("expected KEY=VALUE")?;
        match key {
            "bps" => config.rate = Rate::from_bps(value.parse()?),
            "delay_ns" => config.delay = Duration::from_nanos(value.parse()?),
            "queue" => config.queue = Queue::Packets(value.parse()?),
            "loss" => loss = value.parse()?,
            "seed" => seed = Seed(value.parse()?),
            _ => return Err("expected bps, delay_ns, loss, queue or seed".into()),
        }
    }
    let errors = ErrorModel::from(Uniform { packet: loss, ..Uniform::default() });
    let forward = Direction { config: Config { errors, ..config.clone() }, ..Direction::default() };
    let backward = Direction { config, ..Direction::default() };
    let Pair { nodes, emulator } = Pair::new(&name, [forward, backward], seed)?;
    let running = emulator.start()?;
    let [a, b] = nodes.each_ref().map(|node| node.name());
    println!("{{\"namespaces\":[\"{a}\",\"{b}\"],\"addresses\":{ADDRESSES:?}}}");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    print(&running.stop()?);
    Ok(())
}

fn print(report: &Report) {
    let directions: Vec<String> = report.directions.iter().map(direction).collect();
    let void = match report.verdict() {
        Verdict::Valid => "null".to_owned(),
        Verdict::Void(why) => format!("{why:?}"),
    };
    println!(
        "{{\"span_s\":{:.3},\"busy_s\":{:.3},\"waited_s\":{:.6},\"stolen_s\":{:.3},\
         \"realtime\":{},\"void\":{void},\"directions\":[{}]}}",
        report.span.as_secs_f64(),
        report.busy.as_secs_f64(),
        report.waited.as_secs_f64(),
        report.stolen.as_secs_f64(),
        report.realtime,
        directions.join(",")
    );
}

fn direction(report: &DirectionReport) -> String {
    let lateness = |q: f64| report.lateness.quantile(q).unwrap_or(0) as f64 / 1e6;
    format!(
        "{{\"read\":{},\"written\":{},\"dropped\":{},\"lost\":{},\"kernel_dropped\":{},\
         \"failed\":{},\"late\":{},\"lateness_ms\":{{\"median\":{:.4},\"p99\":{:.4},\"max\":{:.4}}}}}",
        report.read,
        report.written,
        report.link.dropped,
        report.link.lost,
        report.kernel_dropped,
        report.failed,
        report.late,
        lateness(0.5),
        lateness(0.99),
        lateness(1.0)
    )
}
