//! Metrics for Prometheus, in the text format of OpenMetrics 1.0.

use crate::link_socket::LinkCounts;
use crate::service::Handle;
use crate::serving::{Exchange, Server};
use crate::{Observation, Status};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};

/// The longest request, bytes.
const LONGEST_REQUEST: usize = 8192;
/// The most header lines of a request.
const MOST_HEADERS: usize = 64;

/// Metrics at an address, until this is dropped.
pub(crate) struct Metrics {
    address: SocketAddr,
    _server: Server,
}

impl Metrics {
    /// Serves them at an address.
    ///
    /// # Errors
    /// If the address is taken.
    pub(crate) fn listen(address: SocketAddr, handle: Handle) -> io::Result<Metrics> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let server = Server::start("metrics", listener, move |exchange| answer(exchange, &handle))?;
        Ok(Metrics { address, _server: server })
    }

    /// The address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn answer(exchange: &mut Exchange, handle: &Handle) -> io::Result<()> {
    let is_whole = |bytes: &[u8]| bytes.windows(4).any(|end| end == b"\r\n\r\n");
    let request = exchange.request(LONGEST_REQUEST, is_whole)?.unwrap_or_default();
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let is_http = parsed.parse(&request).is_ok_and(|status| status.is_complete());
    let (code, body) = match (is_http, parsed.method, parsed.path) {
        (true, Some("GET" | "HEAD"), Some("/metrics")) => match handle.observe() {
            Ok((status, observed)) => ("200 OK", text(&status, &observed)),
            Err(error) => ("503 Service Unavailable", format!("{error}\n")),
        },
        (true, Some("GET" | "HEAD"), _) => ("404 Not Found", "see /metrics\n".to_owned()),
        (true, ..) => ("405 Method Not Allowed", String::new()),
        (false, ..) => ("400 Bad Request", String::new()),
    };
    let kind = match code {
        "200 OK" => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    let shown = if parsed.method == Some("HEAD") { "" } else { body.as_str() };
    write!(
        exchange,
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{shown}",
        body.len(),
    )
}

/// All metrics of one moment.
pub(crate) fn text(status: &Status, observed: &Observation) -> String {
    let mut registry = Registry::with_prefix("lasthop");
    let moment = Moment { status: status.clone(), observed: observed.clone() };
    registry.register_collector(Box::new(moment));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Moment {
    status: Status,
    observed: Observation,
}

/// A counter of the box that has a metric of its own; all others are events.
const COUNTERS: [(&str, &str, &str); 4] = [
    ("split connections", "connections_split", "Connections that were split"),
    ("split connections that are over", "connections_ended", "Split connections that are over"),
    ("connections taken over", "connections_taken_over", "Connections of the program before"),
    ("marked", "packets_marked", "Packets that were marked (SPEP)"),
];

/// Among the counters of the box, those that also fall.
const LEVELS: [(&str, &str, &str); 2] = [
    ("bytes held at most", "held_bytes_max", "The most data held at once"),
    (
        "bytes held at most of one connection",
        "connection_held_bytes_max",
        "The most data held of one connection at once",
    ),
];

/// The counter of the box that is the rate of the hop.
const RATE: &str = "rate of the hop, bit/s";
/// The counters of a link that counts frames itself, by what became of them.
const FRAMES: [(&str, &str); 2] =
    [(LinkCounts::RECEIVED, "received"), (LinkCounts::DAMAGED, "damaged")];
/// What counts of connections that were left alone begin with.
const LEFT: &str = "connections not split: ";

impl Collector for Moment {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Moment { status, observed } = self;
        let e = &mut encoder;
        let build = [("version", status.version.as_str()), ("mode", status.mode.as_str())];
        family(e, "build_info", "The program and its mode", MetricType::Gauge, [(build, 1)])?;
        gauge(e, "uptime_seconds", "Time since the start", status.uptime_seconds)?;
        gauge(e, "draining", "1 if new connections pass unsplit", status.draining.into())?;
        let encoder = e.encode_descriptor(
            "records_dropped",
            "Records of connections that were not written",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(status.unwritten).encode(encoder)?;
        let sides = [("lan", &status.packets.lan), ("wan", &status.packets.wan)];
        let kinds = [
            ("device_received_packets", "Packets that came from a side"),
            (
                "device_received_units",
                "Of the packets that came from a side, units of several segments",
            ),
            ("device_sent_packets", "Packets that went to a side"),
            ("device_sent_units", "Of the packets that went to a side, units of several segments"),
            ("device_delayed_packets", "Packets that had to wait for the kernel"),
            ("device_failed_packets", "Packets that the kernel refused, and that are lost"),
        ];
        for (index, (name, help)) in kinds.into_iter().enumerate() {
            let of = sides.map(|(side, device)| {
                let all = [
                    device.received,
                    device.units_received,
                    device.sent,
                    device.units_sent,
                    device.delayed,
                    device.failed,
                ];
                ([("side", side)], all[index])
            });
            family(e, name, help, MetricType::Counter, of)?;
        }
        let packets = &status.packets;
        let fates = [
            ("passed", packets.passed),
            ("consumed", packets.consumed),
            ("dropped", packets.dropped),
            ("refused", packets.refused),
            ("lost_without_memory", packets.without_memory),
            ("lost_without_route", packets.without_route),
            ("lost_to_overload", packets.overload),
        ];
        let fates = fates.map(|(fate, count)| ([("fate", fate)], count));
        family(e, "packets", "Packets by what became of them", MetricType::Counter, fates)?;
        let counters = &observed.counters;
        for (of, name, help) in COUNTERS {
            if let Some(count) = counters.get(of) {
                let encoder = e.encode_descriptor(name, help, None, MetricType::Counter)?;
                ConstCounter::new(*count).encode(encoder)?;
            }
        }
        for (of, name, help) in LEVELS {
            if let Some(level) = counters.get(of) {
                gauge(e, name, help, *level)?;
            }
        }
        if let Some(bits) = counters.get(RATE).filter(|bits| **bits > 0) {
            gauge(e, "hop_rate_bytes_per_second", "The rate of the hop", bits / 8)?;
        }
        let left =
            counters.iter().filter_map(|(name, count)| Some((name.strip_prefix(LEFT)?, *count)));
        let left = left.map(|(reason, count)| ([("reason", reason)], count));
        let help = "Connections that passed without being split";
        family(e, "connections_unsplit", help, MetricType::Counter, left)?;
        let frames =
            FRAMES.iter().filter_map(|(of, fate)| Some(([("fate", *fate)], *counters.get(of)?)));
        let help = "Frames of the hop by what became of them, as its link counts them";
        family(e, "link_frames", help, MetricType::Counter, frames)?;
        let known = |name: &str| {
            FRAMES.iter().any(|(of, _)| *of == name)
                || COUNTERS.iter().chain(&LEVELS).any(|(of, ..)| *of == name)
                || name == RATE
                || name.starts_with(LEFT)
        };
        let others = counters.iter().filter(|(name, _)| !known(name));
        let others = others.map(|(name, count)| ([("event", *name)], *count));
        family(e, "events", "Other counts of the box", MetricType::Counter, others)?;
        for (name, value) in &observed.gauges {
            gauge(e, name, "At this moment", *value)?;
        }
        Ok(())
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(encoder)
}

/// Values of one metric by their labels; nothing if there are none.
fn family<'l, const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    kind: MetricType,
    values: impl IntoIterator<Item = ([(&'l str, &'l str); N], u64)>,
) -> fmt::Result {
    let mut values = values.into_iter().peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in values {
        let encoder: MetricEncoder<'_> = metric.encode_family(&labels)?;
        match kind {
            MetricType::Counter => ConstCounter::new(value).encode(encoder)?,
            _ => ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(encoder)?,
        }
    }
    Ok(())
}
