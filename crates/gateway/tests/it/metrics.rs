//! Metrics for Prometheus.

use crate::common::{CLEAN, GATEWAY, World, beside, configuration, exchange};
use gateway::Service;
use scenario::IpVersion;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

fn start(world: &World) -> Service {
    let gateway = configuration("rate = \"50 Mbit/s\"\nmetrics = \"127.0.0.1:0\"");
    world.at(GATEWAY, || {
        // In a namespace that is new, it is down.
        live::Netlink::open().unwrap().set_up("lo").unwrap();
        Service::start(&gateway, None, None).unwrap_or_else(|error| panic!("{error}"))
    })
}

fn connect(world: &World, service: &Service) -> TcpStream {
    let address = service.metrics().unwrap();
    let stream = world.at(GATEWAY, || TcpStream::connect(address)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// The head and the body of what is answered to these bytes.
fn ask(world: &World, service: &Service, request: &[u8]) -> (String, String) {
    let mut stream = connect(world, service);
    let _ = stream.write_all(request);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.to_owned(), body.to_owned())
}

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The samples of a text, by name and labels, and the types by name.
fn parse(text: &str) -> (BTreeMap<String, f64>, BTreeMap<String, String>) {
    let (mut samples, mut types) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, kind) = of.split_once(' ').unwrap();
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
        } else if !line.starts_with('#') {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(samples.insert(sample.to_owned(), value).is_none(), "{sample} twice");
        }
    }
    (samples, types)
}

#[test]
fn the_text_has_every_counter_with_its_type_and_unit() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "metrics") else { return };
        let service = start(&world);
        exchange(&world, IpVersion::V4, [100_000, 200_000]);
        let (head, body) = ask(&world, &service, GET);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(body.ends_with("# EOF\n"), "{body}");
        let (samples, types) = parse(&body);
        for sample in samples.keys() {
            let name = sample.split('{').next().unwrap();
            let of = name.strip_suffix("_total").unwrap_or(name);
            let kind = types.get(of).unwrap_or_else(|| panic!("{name} has no type"));
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
            assert!(name.starts_with("lasthop_"), "{name}");
        }
        assert_eq!(samples["lasthop_connections_split_total"], 1.0, "{body}");
        assert_eq!(samples["lasthop_hop_rate_bytes_per_second"], 6_250_000.0);
        assert_eq!(samples["lasthop_connections_unsplit_total{reason=\"SYN not seen\"}"], 0.0);
        assert!(samples["lasthop_held_bytes_max"] > 0.0);
        assert!(samples.contains_key("lasthop_held_bytes"));
        for side in ["lan", "wan"] {
            assert!(
                samples[&format!("lasthop_device_received_packets_total{{side=\"{side}\"}}")] > 3.0
            );
        }
        service.stop();
    });
}

#[test]
fn garbage_is_refused_and_slow_clients_hold_up_nobody() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "garbage") else { return };
        let service = start(&world);
        // Fewer than are served at a time, by so many that one that is just ending does not count.
        let slow: Vec<TcpStream> = (0..5)
            .map(|_| {
                let mut stream = connect(&world, &service);
                stream.write_all(b"GET /met").unwrap();
                stream
            })
            .collect();
        for (request, code) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\x16\x03\x01\x02\0\r\n\r\n", "400"),
            (b"GET /metrics SMTP\r\n\r\n", "400"),
            (b"HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
            (GET, "200"),
        ] {
            let (head, body) = ask(&world, &service, request);
            assert!(head.starts_with(&format!("HTTP/1.1 {code} ")), "{request:?}: {head}");
            assert_eq!(body.contains("lasthop_"), request == GET);
        }
        // One without an end, as long as it is taken.
        let (head, _) = ask(&world, &service, &vec![b'a'; 200_000]);
        assert!(head.is_empty() || head.starts_with("HTTP/1.1 400 "), "{head}");
        exchange(&world, IpVersion::V6, [100_000, 100_000]);
        drop(slow);
        service.stop();
    });
}
