//! Flows of datagrams beside those of TCP.

use crate::common::{error, run, run_with, with};
use lab::{Row, Watch};

/// 1.5 Mbit/s, 100 ms one way, 60 seconds, one flow of datagrams.
fn datagrams(udp: &str) -> String {
    with(&[
        ("errors  = { bit = 1e-5 }\n", ""),
        (
            "tcp     = { recovery = \"sack\", receive_window = \"20 segments\", eten = \"none\" }",
            "",
        ),
        ("to      =", &format!("traffic = {{ udp = {{ {udp} }} }}\nto =")),
    ])
}

fn row(udp: &str) -> Row {
    run(&datagrams(udp)).rows.remove(0)
}

#[test]
fn a_constant_bit_rate_arrives_as_it_is_sent() {
    // 250-byte packets at 1 Mbit/s: one every 2 ms, the last 51 under way at the end.
    let row = row("rate = \"1 Mbit/s\", packet = 250");
    assert_eq!((row.datagrams.sent, row.datagrams.received), (30_001, 29_950));
    assert_eq!(row.payload_bytes, 29_950 * 222);
    assert!((row.goodput_bps - 29_950.0 * 250.0 * 8.0 / 60.0).abs() < 1e-3, "{row:?}");
    assert_eq!((row.started, row.finished, row.completed_s), (0, 0, None));
}

#[test]
fn more_than_the_link_carries_is_lost() {
    let row = row("rate = \"3 Mbit/s\", packet = 250");
    let loss = row.datagrams.loss().unwrap();
    assert!((loss - 0.5).abs() < 0.01, "{loss}");
    assert!((row.goodput_bps / 1.5e6 - 1.0).abs() < 0.01, "{}", row.goodput_bps);
}

#[test]
fn errors_of_the_link_are_its_loss() {
    let text = datagrams("rate = \"1 Mbit/s\", packet = 250")
        .replace("delay   =", "errors = { packet = 0.1 }\ndelay =");
    let loss = run(&text).rows[0].datagrams.loss().unwrap();
    assert!((loss - 0.1).abs() < 0.01, "{loss}");
}

#[test]
fn bursts_have_their_share_of_the_time() {
    let udp = "rate = \"1 Mbit/s\", packet = 250, on = \"200 ms\", off = \"300 ms\"";
    let text = datagrams(udp).replace("60 s", "2000 s");
    let row = &run(&text).rows[0];
    let share = row.datagrams.sent as f64 / (2000.0 * 500.0);
    assert!((share - 0.4).abs() < 0.02, "{share}");
}

#[test]
fn they_last_as_long_as_they_are_to() {
    let text = datagrams("rate = \"1 Mbit/s\", packet = 250, lasts = \"10 s\"")
        .replace("[[flows]]", "[[flows]]\nstart = \"20 s\"");
    let row = &run(&text).rows[0];
    assert_eq!((row.datagrams.sent, row.datagrams.received, row.duration_s), (5000, 5000, 10.0));
}

#[test]
fn byte_mode_changes_nothing_in_either_version_of_ip() {
    for ip in [4, 6] {
        let text = datagrams("rate = \"1 Mbit/s\", packet = 250, on = \"1 s\", off = \"1 s\"")
            .replace("to =", &format!("ip = {ip}\nto ="));
        let watch = Watch { digest: true, bytes: true, ..Watch::default() };
        assert_eq!(run_with(&text, 1, &watch), run(&text));
    }
}

#[test]
fn tcp_yields_to_what_does_not_respond() {
    let both = |rate: &str| {
        let udp = format!("rate = \"{rate}\", packet = 500");
        let second = "[[flows]]\nname = \"tcp\"\nfrom = \"a\"\nto = \"b\"\n";
        let rows = run(&format!("{}{second}", datagrams(&udp))).rows;
        assert_eq!(rows[1].datagrams.loss(), None);
        rows[1].goodput_bps
    };
    let [alone, beside] = ["1 bit/s", "1 Mbit/s"].map(both);
    // Twenty segments of 576 bytes per round trip fit into what is left.
    assert!(alone > 440e3 && beside < alone && beside > 300e3, "{alone} {beside}");
}

#[test]
fn datagrams_that_make_no_sense_are_refused() {
    for (udp, key, message) in [
        ("packet = 100", "traffic.udp`", "missing key `rate`"),
        ("rate = \"1 Mbit/s\"", "traffic.udp`", "missing key `packet`"),
        (
            "rate = \"1 Mbit/s\", packet = 28",
            "traffic.udp.packet = 28`",
            "expected 29 to 65535 bytes",
        ),
        (
            "rate = \"1 Mbit/s\", packet = \"2 packets\"",
            "traffic.udp.packet = \"2 packets\"`",
            "expected 29 to 65535 bytes",
        ),
        (
            "rate = \"0 Mbit/s\", packet = 100",
            "traffic.udp.rate = \"0 Mbit/s\"`",
            "a number above 0 and bit/s",
        ),
        (
            "rate = \"1 Mbit/s\", packet = 100, on = \"1 s\"",
            "traffic.udp`",
            "expected both `on` and `off`, or neither",
        ),
        (
            "rate = \"1 Mbit/s\", packet = 100, on = \"1 s\", off = \"0 s\"",
            "traffic.udp.off = \"0 s\"`",
            "expected more than 0 s",
        ),
        (
            "rate = \"1 Mbit/s\", packet = 100, lasts = \"0 s\"",
            "traffic.udp.lasts = \"0 s\"`",
            "expected more than 0 s",
        ),
        (
            "rate = \"1 Mbit/s\", packet = 100 }, size = 1, count = { ",
            "traffic.udp`",
            "expected either `udp` or `size`",
        ),
    ] {
        let found = error(&datagrams(udp)).to_string();
        assert!(found.starts_with(&format!("`flows.0.{key}")), "{udp}: {found}");
        assert!(found.contains(message), "{udp}: {found}");
    }
    let udp = "traffic = { udp = { rate = \"1 Mbit/s\", packet = 100 } }\nfrom";
    let message = error(&with(&[("from", udp)])).to_string();
    assert_eq!(
        message,
        "`flows.0.tcp`: UDP datagrams have no TCP settings: expected either `tcp` or `traffic.udp`"
    );
}
