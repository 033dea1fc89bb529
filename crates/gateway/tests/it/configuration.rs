//! Configurations, right and wrong.

use base::Rate;
use middlebox::{Connect, HopTransport};
use relay::{HopRate, Teardown};
use scenario::{DataPath, Esp, EspHost, Gateway, LabHop, Source, Style, Work};
use std::path::Path;
use tcp::congestion::Congestion;
use tcp::mechanism::Mechanism;

fn read(text: &str) -> Result<Gateway, String> {
    Gateway::read(&Source::new(text, "lasthopd.toml")).map_err(|error| error.render(Style::Plain))
}

#[test]
fn two_interfaces_are_enough() {
    let gateway = read("lan = \"eth0\"\nwan = \"sat0\"\n").unwrap();
    assert_eq!((gateway.lan, gateway.wan.as_str()), (vec!["eth0".to_owned()], "sat0"));
    let Work::Spoof(spoofer) = gateway.work else { panic!("{:?}", gateway.work) };
    assert!(spoofer.cache.is_some(), "what it holds is bounded");
}

#[test]
fn the_settings_are_those_of_a_spoofer_in_a_scenario() {
    let gateway = read(
        "lan = [\"eth0\", \"eth1\"]\nwan = \"sat0\"\nmode = \"spoof\"\nrate = \"10 Mbit/s\"\n\
         cache = \"1 MB\"\nteardown = \"end-to-end\"\nconnections = 7\n\
         connections_per_user = 20\nmemory = \"512 MB\"\ntcp = { congestion = \"bbr\" }\n",
    )
    .unwrap();
    let Work::Spoof(spoofer) = &gateway.work else { panic!("{:?}", gateway.work) };
    let spoofer = serde_json::to_value(spoofer).unwrap();
    let expected = serde_json::json!({
        "connect": "end-to-end", "cache": 1_000_000, "teardown": "end-to-end", "hop": "wan", "rate": "10000000 bit/s",
        "connections": 7, "connections_per_user": 20, "memory": 512_000_000,
    });
    assert_eq!(spoofer, expected);
    assert_eq!(gateway.lan.len(), 2);
}

#[test]
fn handshakes_of_the_gateways_own_are_of_mode_split_alone() {
    let connect =
        |keys: &str| match read(&format!("lan = \"a\"\nwan = \"b\"\n{keys}")).unwrap().work {
            Work::Spoof(spoofer) => spoofer.connect,
            work => panic!("{work:?}"),
        };
    assert_eq!(connect("mode = \"spoof\""), Connect::EndToEnd);
    assert_eq!(connect("mode = \"split\""), Connect::First);
    assert_eq!(connect("mode = \"split\"\nconnect = \"at-once\""), Connect::AtOnce);
    let pair = "mode = \"pair\"\npeer_key = \"key\"\nconnect = \"end-to-end\"";
    for keys in ["connect = \"first\"", "mode = \"split\"\nconnect = \"end-to-end\"", pair] {
        let error = read(&format!("lan = \"a\"\nwan = \"b\"\n{keys}")).unwrap_err();
        assert!(error.contains("mode \"split\"") && error.contains("connect = "), "{error}");
    }
}

#[test]
fn keys_of_another_mode_are_refused_where_they_are() {
    for key in [
        "peer = \"192.0.2.1:51995\"",
        "peer_key = \"key\"",
        "key = \"/etc/lasthop/private.key\"",
        "listen = \"[::]:51995\"",
        "mtu = 1400",
    ] {
        let name = key.split(' ').next().unwrap();
        for mode in ["", "mode = \"spoof\"\n", "mode = \"split\"\n"] {
            let error = read(&format!("lan = \"a\"\nwan = \"b\"\n{mode}{key}\n")).unwrap_err();
            let line = if mode.is_empty() { 3 } else { 4 };
            let place = format!("lasthopd.toml:{line}");
            let message = format!("`{name}` is of mode \"pair\" alone");
            assert!(error.contains(&place) && error.contains(&message), "{error}");
        }
        let pair = "mode = \"pair\"\n";
        let needed = if name == "peer_key" { "" } else { "peer_key = \"key\"\n" };
        read(&format!("lan = \"a\"\nwan = \"b\"\n{pair}{needed}{key}\n")).unwrap();
    }
}

#[test]
fn base_stations_and_mobile_hosts_have_keys_of_their_own() {
    let refused = |text: &str, line: u32, message: &str| {
        let error = read(text).unwrap_err();
        assert!(error.contains(&format!("lasthopd.toml:{line}")), "{error}");
        assert!(error.contains(message), "{error}");
    };
    let both = "`network_key` is of modes \"station\" and \"mobile\" alone";
    refused("lan = \"a\"\nwan = \"b\"\nnetwork_key = \"k\"", 3, both);
    for key in
        ["connections_per_user = 2", "workers = 2", "memory = \"1 MB\"", "connect = \"first\""]
    {
        let name = key.split(' ').next().unwrap();
        let message = format!("`{name}` is of modes \"spoof\", \"split\" and \"pair\" alone");
        refused(&format!("lan = \"a\"\nwan = \"b\"\nmode = \"station\"\n{key}"), 4, &message);
        refused(&format!("wan = \"b\"\nmode = \"mobile\"\n{key}"), 3, &message);
    }
    let others = "`lan` is of modes other than \"mobile\" and \"notify\" alone";
    refused("lan = \"a\"\nwan = \"b\"\nmode = \"mobile\"", 1, others);
    assert!(read("wan = \"b\"").unwrap_err().contains("missing key `lan`"));
    let mobile = read("wan = \"b\"\nmode = \"mobile\"\nnetwork_key = \"k\"").unwrap();
    assert!(matches!(mobile.work, Work::Mobile(_, file) if file == Path::new("k")));
    // What is about SRP, a host needs for SRP alone; a base station serves hosts with either.
    let of_srp = "rate = \"1 Mbit/s\"\nshare = true\ncache = \"300 kB\"\nteardown = \"end-to-end\"";
    for key in of_srp.lines() {
        let message = format!("`{}` needs `hop = \"srp\"`", key.split(' ').next().unwrap());
        refused(&format!("wan = \"b\"\nmode = \"mobile\"\n{key}"), 3, &message);
        refused(&format!("wan = \"b\"\nmode = \"mobile\"\nhop = \"tcp\"\n{key}"), 4, &message);
        read(&format!("lan = \"a\"\nwan = \"b\"\nmode = \"station\"\n{key}")).unwrap();
    }
    let of_mobile = "`hop` is of mode \"mobile\" alone";
    refused("lan = \"a\"\nwan = \"b\"\nmode = \"station\"\nhop = \"srp\"", 4, of_mobile);
    let mobile = read(&format!("wan = \"b\"\nmode = \"mobile\"\nhop = \"srp\"\n{of_srp}")).unwrap();
    let Work::Mobile(mobile, _) = mobile.work else { panic!("it is no mobile host") };
    assert_eq!((mobile.hop, mobile.share, mobile.cache.0), (HopTransport::Srp, true, 300_000));
    assert_eq!(mobile.semantics, Teardown::EndToEnd);
    assert_eq!(mobile.rate, HopRate::Given(Rate::from_bps(1_000_000).unwrap()));
    let keys = "mode = \"station\"\ncache = \"300 kB\"\nteardown = \"end-to-end\"\nconnections = 9";
    let Work::Station(station, file) =
        read(&format!("lan = \"a\"\nwan = \"b\"\n{keys}")).unwrap().work
    else {
        panic!("it is no base station");
    };
    assert_eq!((station.cache.0, station.connections), (300_000, 9));
    assert_eq!(file, Path::new("/etc/lasthop/network.key"));
}

#[test]
fn a_gateway_that_marks_packets_has_no_keys_of_connections() {
    let read_spep =
        |keys: &str| read(&format!("lan = \"a\"\nwan = \"b\"\nmode = \"spep\"\n{keys}"));
    let Work::Spep(station, path) = read_spep("").unwrap().work else { panic!("another mode") };
    assert_eq!((station.hop.as_str(), path), (Gateway::HOP, DataPath::Auto));
    let keys = "flows = 9\nidle = \"5 s\"\ndata_path = \"user-space\"";
    let Work::Spep(station, path) = read_spep(keys).unwrap().work else { panic!("another mode") };
    let idle = station.idle.0.as_nanos();
    assert_eq!((station.flows, idle, path), (9, 5_000_000_000, DataPath::UserSpace));
    for (key, modes) in [
        ("rate = \"1 Mbit/s\"", "modes other than \"spep\" and \"notify\""),
        ("share = true", "modes \"pair\", \"station\" and \"mobile\""),
        ("memory = \"1 MB\"", "modes \"spoof\", \"split\" and \"pair\""),
        ("connections = 5", "modes \"spoof\", \"split\", \"pair\" and \"station\""),
        ("records = \"r\"", "modes other than \"spep\" and \"notify\""),
        ("tcp = { mss = 900 }", "modes other than \"spep\" and \"notify\""),
        ("network_key = \"k\"", "modes \"station\" and \"mobile\""),
    ] {
        let name = key.split(' ').next().unwrap();
        let error = read_spep(key).unwrap_err();
        assert!(error.contains("lasthopd.toml:4"), "{error}");
        assert!(error.contains(&format!("`{name}` is of {modes} alone")), "{error}");
    }
    for key in keys.lines() {
        let name = key.split(' ').next().unwrap();
        let error = read(&format!("lan = \"a\"\nwan = \"b\"\n{key}")).unwrap_err();
        assert!(error.contains(&format!("`{name}` is of mode \"spep\" alone")), "{error}");
    }
    assert!(read("wan = \"b\"\nmode = \"spep\"").unwrap_err().contains("missing key `lan`"));
    let error = read_spep("data_path = \"xdp\"").unwrap_err();
    assert!(error.contains("`kernel`") && error.contains("lasthopd.toml:4"), "{error}");
}

#[test]
fn esp_is_of_mode_split_and_its_keys_need_it() {
    let read_split =
        |keys: &str| read(&format!("lan = \"a\"\nwan = \"b\"\nmode = \"split\"\n{keys}"));
    assert_eq!(read_split("").unwrap().esp, None);
    let gateway = read_split("esp = \"mobile\"").unwrap();
    let esp = gateway.esp.unwrap();
    assert_eq!((esp.host, esp.mtu), (EspHost::Mobile, None));
    assert_eq!(esp.key, Path::new("/etc/lasthop/esp.key"));
    let covers = |esp: &Esp, address: &str| {
        esp.networks.iter().any(|network| network.contains(address.parse().unwrap()))
    };
    assert!(covers(&esp, "2001:db8::1") && !covers(&esp, "192.0.2.1"));
    // Its TCP knows of the causes, and is as fair as that of others.
    assert!(
        gateway.tcp.mechanisms.iter().any(|of| matches!(of, Mechanism::Eln(eln) if eln.every_hole))
    );
    assert_eq!(gateway.tcp.congestion, Congestion::Cubic);
    let keys = "esp_key = \"k\"\nesp_networks = [\"2001:db8:1::/48\", \"::1\"]\nesp_mtu = 1400";
    let esp = read_split(&format!("esp = \"fixed\"\n{keys}")).unwrap().esp.unwrap();
    assert_eq!((esp.host, esp.key.as_path()), (EspHost::Fixed, Path::new("k")));
    assert_eq!((esp.networks.len(), esp.mtu), (2, Some(1400)));
    assert!(covers(&esp, "2001:db8:1::9") && covers(&esp, "::1") && !covers(&esp, "2001:db8:2::9"));
    for key in keys.lines() {
        let name = key.split(' ').next().unwrap();
        let error = read_split(key).unwrap_err();
        let message = format!("`{name}` needs `esp`");
        assert!(error.contains(&message) && error.contains("lasthopd.toml:4"), "{error}");
        for mode in ["spoof", "pair", "station", "spep"] {
            let text = format!("lan = \"a\"\nwan = \"b\"\nmode = \"{mode}\"\n{key}");
            let error = read(&text).unwrap_err();
            assert!(error.contains(&format!("`{name}` is of mode \"split\" alone")), "{error}");
        }
    }
    for (keys, message) in [
        ("esp = \"fixd\"", "did you mean `fixed`?"),
        ("esp = \"fixed\"\nesp_networks = []", "expected at least one entry"),
        ("esp = \"fixed\"\nesp_networks = [\"192.0.2.0/24\"]", "expected a network of IPv6"),
        ("esp = \"fixed\"\nesp_mtu = 1279", "expected bytes, 1280 to 65535"),
        ("esp = \"fixed\"\nworkers = 2", "one thread carries what is under ESP"),
    ] {
        let error = read_split(keys).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_reporter_of_damaged_packets_has_a_hop_and_keys_of_its_own() {
    let Work::Notify(notifier) = read("wan = \"b\"\nmode = \"notify\"").unwrap().work else {
        panic!("it is no reporter");
    };
    assert_eq!(notifier.link_socket, Path::new("/run/lasthop/link.sock"));
    assert_eq!(notifier.notices, 1000);
    let keys = "link_socket = \"/run/modem\"\nnotices = 7";
    let Work::Notify(notifier) =
        read(&format!("wan = \"b\"\nmode = \"notify\"\n{keys}")).unwrap().work
    else {
        panic!("it is no reporter");
    };
    assert_eq!((notifier.link_socket.as_path(), notifier.notices), (Path::new("/run/modem"), 7));
    for (line, key) in [(3, "link_socket = \"/run/modem\""), (3, "notices = 7")] {
        let error = read(&format!("lan = \"a\"\nwan = \"b\"\n{key}")).unwrap_err();
        let name = key.split(' ').next().unwrap();
        let message = format!("`{name}` is of mode \"notify\" alone");
        assert!(error.contains(&message) && error.contains(&format!("toml:{line}")), "{error}");
    }
    for (key, modes) in [
        ("lan = \"a\"", "other than \"mobile\" and \"notify\""),
        ("connections = 5", "\"spoof\", \"split\", \"pair\" and \"station\""),
        ("tcp = { mss = 900 }", "other than \"spep\" and \"notify\""),
        ("records = \"r\"", "other than \"spep\" and \"notify\""),
        ("rate = \"1 Mbit/s\"", "other than \"spep\" and \"notify\""),
        ("network_key = \"k\"", "\"station\" and \"mobile\""),
    ] {
        let error = read(&format!("wan = \"b\"\nmode = \"notify\"\n{key}")).unwrap_err();
        assert!(error.contains(&format!("is of modes {modes} alone")), "{error}");
        assert!(error.contains("lasthopd.toml:3"), "{error}");
    }
    let error = read("wan = \"b\"\nmode = \"notify\"\nnotices = 0").unwrap_err();
    assert!(error.contains("a whole number, at least 1"), "{error}");
}

#[test]
fn several_workers_are_for_hops_without_a_rate() {
    let read = |keys: &str| read(&format!("lan = \"a\"\nwan = \"b\"\n{keys}"));
    assert_eq!(read("").unwrap().workers, 1);
    assert_eq!(read("workers = 8\nmode = \"split\"").unwrap().workers, 8);
    let pair = "mode = \"pair\"\npeer_key = \"key\"";
    assert_eq!(read(&format!("{pair}\nworkers = 1")).unwrap().workers, 1);
    for (keys, expected) in [
        ("workers = 0", "a whole number, at least 1"),
        ("workers = 257", "expected at most 256 threads"),
        ("rate = \"1 Mbit/s\"\nworkers = 2", "one thread sends at the `rate`"),
        ("rate = \"measured\"\nworkers = 2", "one thread sends at the `rate`"),
        (&format!("{pair}\nworkers = 2"), "mode \"pair\" has one association"),
    ] {
        let error = read(keys).unwrap_err();
        assert!(error.contains(expected) && error.contains("workers = "), "{error}");
    }
}

#[test]
fn tcp_over_the_hop_has_bbr_unless_the_file_says_otherwise() {
    let congestion = |keys: &str| {
        let gateway = read(&format!("lan = \"a\"\nwan = \"b\"\n{keys}")).unwrap();
        (format!("{:?}", gateway.tcp.congestion), gateway.tcp.loss_threshold)
    };
    let pair = "mode = \"pair\"\npeer_key = \"key\"\n";
    for (keys, expected, loss_threshold) in [
        ("", "Bbr", None),
        ("rate = \"10 Mbit/s\"", "Bbr", Some(0.2)),
        ("profile = \"modern\"", "Bbr", None),
        ("tcp = { recovery = \"sack\" }", "Bbr", None),
        ("rate = \"1 Mbit/s\"\ntcp = { congestion = \"bbr\" }", "Bbr", Some(0.2)),
        ("rate = \"1 Mbit/s\"\ntcp = { loss_threshold = 0.02 }", "Bbr", Some(0.02)),
        ("tcp = { loss_threshold = 0.1 }", "Bbr", Some(0.1)),
        ("rate = \"1 Mbit/s\"\ntcp = { congestion = \"cubic\" }", "Cubic", None),
        ("tcp = { congestion = \"cubic\" }", "Cubic", None),
        ("profile = \"ns2-2007\"", "Aimd", None),
        ("mode = \"station\"\nrate = \"1 Mbit/s\"", "Bbr", None), // The rate is SRP's.
        (pair, "Cubic", None),                                    // Over the hop, it has none.
    ] {
        assert_eq!(congestion(keys), (expected.to_owned(), loss_threshold), "{keys}");
    }
}

#[test]
fn tcp_over_the_hop_starts_promptly_unless_the_file_says_otherwise() {
    let starts_promptly =
        |keys: &str| read(&format!("lan = \"a\"\nwan = \"b\"\n{keys}")).unwrap().tcp.prompt_start;
    for keys in ["", "mode = \"split\"", "mode = \"station\"", "rate = \"1 Mbit/s\""] {
        assert!(starts_promptly(keys), "{keys}");
    }
    assert!(!starts_promptly("tcp = { prompt_start = false }"));
}

#[test]
fn bbr_is_as_for_a_bad_hop_unless_the_file_says_otherwise() {
    let chosen = |keys: &str| {
        let tcp = read(&format!("lan = \"a\"\nwan = \"b\"\n{keys}")).unwrap().tcp;
        [tcp.renew_min_rtt, tcp.tolerate_random_loss]
    };
    for keys in ["", "mode = \"split\"", "mode = \"station\"", "rate = \"1 Mbit/s\""] {
        assert_eq!(chosen(keys), [true, true], "{keys}");
    }
    assert_eq!(chosen("tcp = { renew_min_rtt = false }"), [false, true]);
    assert_eq!(chosen("tcp = { tolerate_random_loss = false }"), [true, false]);
    assert_eq!(chosen("tcp = { congestion = \"cubic\" }"), [false, false]);
}

#[test]
fn metrics_have_an_address_and_a_port_of_either_family() {
    for address in ["127.0.0.1:9273", "[::1]:0"] {
        let gateway = read(&format!("lan = \"a\"\nwan = \"b\"\nmetrics = \"{address}\"")).unwrap();
        assert_eq!(gateway.metrics, Some(address.parse().unwrap()));
    }
    assert_eq!(read("lan = \"a\"\nwan = \"b\"").unwrap().metrics, None);
}

#[test]
fn the_book_has_every_key_as_the_schema_describes_it() {
    let page = include_str!("../../../../docs/gateway.md");
    let schema = Gateway::schema();
    let keys = schema["properties"].as_object().unwrap();
    assert!(keys.contains_key("metrics"));
    for (key, of) in keys {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{key}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/gateway.md has no key `{key}`"));
        let meaning = of["description"].as_str().unwrap();
        assert!(row.contains(meaning), "run: lasthopd schema | python docs/reference.py gateway");
    }
}

#[test]
fn the_scenario_for_the_lab_has_the_settings_of_the_gateway() {
    let hop = LabHop {
        rate: None,
        delay: "300 ms".to_owned(),
        loss: "0.01".to_owned(),
        queue: "100 packets".to_owned(),
        lan_delay: "1 ms".to_owned(),
    };
    let scenario = |keys: &str, hop: &LabHop| {
        let source = Source::new(format!("lan = \"a\"\nwan = \"b\"\n{keys}"), "lasthopd.toml");
        Gateway::scenario(&source, hop).map_err(|error| error.render(Style::Plain))
    };
    let keys = "rate = \"10 Mbit/s\"\ncache = \"1 MB\"\ntcp = { congestion = \"cubic\" }";
    let text = scenario(keys, &hop).unwrap();
    // Also what a gateway has by default, and no flow.
    let default = scenario("rate = \"10 Mbit/s\"", &hop).unwrap();
    for part in [
        "congestion = \"bbr\"",
        "loss_threshold = 0.2",
        "renew_min_rtt = true",
        "tolerate_random_loss = true",
        "prompt_start = true",
        "mechanism = \"rlci\", strict = false, signal = false",
    ] {
        assert!(default.contains(part), "no {part} in\n{default}");
    }
    for part in [
        "box = \"spoofer\"",
        "cache = 1000000",
        "hop = \"wan\"",
        "tcp = { congestion = \"cubic\", prompt_start = true, mechanisms = [",
        "between = [\"gateway\", \"wan\"]\nrate = \"10000000 bit/s\"\ndelay = \"300 ms\"",
        "errors = { packet = 0.01 }",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    // Of two gateways, each has its box.
    let pair = "mode = \"pair\"\npeer_key = \"key\"\nrate = \"2 Mbit/s\"";
    assert_eq!(scenario(pair, &hop).unwrap().matches("box = \"pair\"").count(), 2);
    // Hosts of SPEP have the TCP of their gateways, and the hop begins at the base station.
    let esp = scenario("mode = \"split\"\nesp = \"mobile\"\nrate = \"2 Mbit/s\"", &hop).unwrap();
    for part in [
        "lan = { boxes = [{ box = \"esp\", flows = [], spep = true",
        "gateway = { boxes = [{ box = \"spep\", hop = \"wan\"",
        "loss_causes = \"station\"",
        "ip = 6\ntcp = {",
        "mechanism = \"eln\", every_hole = true",
        "mss = 1374",
    ] {
        assert!(esp.contains(part), "no {part} in\n{esp}");
    }
    // The rate is needed, and what is wrong is named.
    let error = scenario("", &hop).unwrap_err();
    assert!(error.contains("rate = \"\""), "{error}");
    let error = scenario(keys, &LabHop { delay: "300".to_owned(), ..hop }).unwrap_err();
    assert!(error.contains("delay = \"300\""), "{error}");
}

#[test]
fn the_example_that_is_installed_is_right() {
    let gateway = read(include_str!("../../dist/lasthopd.toml")).unwrap();
    assert_eq!((gateway.lan, gateway.wan.as_str()), (vec!["lan0".to_owned()], "sat0"));
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_all_of_it_at_once() {
    for (text, expected) in [
        ("wan = \"sat0\"", &["missing key `lan`"][..]),
        ("lan = \"a\"\nwan = \"a\"", &["lasthopd.toml:1:7", "is the interface of the hop, too"]),
        ("lan = \"a/b\"\nwan = \"\"", &["lasthopd.toml:1:7", "lasthopd.toml:2:7"]),
        ("lan = []\nwan = \"b\"", &["expected at least one entry"]),
        ("lan = 5\nwan = \"b\"", &["the name of an interface in quotes, or a list of names"]),
        ("lan = \"a\"\nwan = \"b\"\nrate = \"fast\"", &["lasthopd.toml:3:8", "`fast` is no rate"]),
        ("lan = \"a\"\nwan = \"b\"\nmod = \"spoof\"", &["did you mean `mode`?"]),
        ("lan = \"a\"\nwan = \"b\"\nmode = \"spoff\"", &["did you mean `spoof`?"]),
        ("lan = \"a\"\nwan = \"b\"\ncache = 0", &["expected bytes, 1 or more"]),
        ("lan = \"a\"\nwan = \"b\"\nconnections = 0", &["expected a whole number, at least 1"]),
        (
            "lan = \"a\"\nwan = \"b\"\nmetrics = 9273",
            &["lasthopd.toml:3:11", "an address and a port"],
        ),
        (
            "lan = \"a\"\nwan = \"b\"\nmetrics = \"localhost\"",
            &["lasthopd.toml:3:11", "127.0.0.1:9273"],
        ),
        ("lan = \"a\"\nwan = \"b\"\ntcp = { mss = 0 }", &["lasthopd.toml:3:"]),
        ("lan = \"a\"\nwan = ", &["not valid TOML"]),
    ] {
        let report = read(text).unwrap_err();
        for part in expected {
            assert!(report.contains(part), "{text}\n{report}");
        }
    }
}
