//! Error notification by way of the receiver: its keys in scenario files, and its effects.

use crate::common::{error, rejects, run, run_with, scenario, with};
use lab::Watch;
use scenario::{Headers, Report, Transport};

const NONE: &str = "eten = \"none\"";

/// The long link, with notification.
fn eten(value: &str) -> String {
    with(&[(NONE, &format!("eten = {value}"))])
}

#[test]
fn forward_notification_is_for_both_ends_and_by_message_by_default() {
    let flow = &scenario(&eten("\"forward\"")).flows[0];
    assert_eq!((flow.report, flow.notice_size), (Report::Forward, 180));
    assert_eq!((flow.transport, flow.headers), (Transport::Message, Headers::Readable));
    assert_eq!((flow.sender.mechanisms.len(), &flow.receiver), (1, &flow.sender));

    let settings = "{ report = \"forward\", transport = \"marked\", headers = \"checked\" }";
    let flow = &scenario(&eten(settings)).flows[0];
    assert_eq!((flow.transport, flow.headers), (Transport::Marked, Headers::Checked));
    let off =
        scenario(&eten("{ report = \"none\", transport = \"marked\", headers = \"checked\" }"));
    assert!(off.flows[0].sender.mechanisms.is_empty());
    let flow = &scenario(&eten("{ report = \"backward\", headers = \"checked\" }")).flows[0];
    assert_eq!((flow.headers, flow.receiver.mechanisms.len()), (Headers::Checked, 0));
}

/// Bytes that arrive.
fn arrive(text: &str) -> u64 {
    run(text).rows[0].payload_bytes
}

#[test]
fn every_way_to_the_receiver_wins_back_most_of_what_corruption_costs() {
    let [none, backward, oracle] =
        ["\"none\"", "\"backward\"", "\"oracle\""].map(|report| arrive(&eten(report)));
    for transport in ["message", "piggyback", "marked"] {
        let settings = |more: &str| {
            eten(&format!("{{ report = \"forward\", transport = \"{transport}\"{more} }}"))
        };
        let forward = arrive(&settings(""));
        assert!(2 * none < forward, "{none} {forward}: {transport}");
        assert!(forward <= oracle, "{forward} {oracle}: {transport}");
        let checked = arrive(&settings(", headers = \"checked\""));
        assert!(none < checked && checked < forward, "{checked} {forward}: {transport}");
        assert!(backward / 2 < forward, "{backward} {forward}: {transport}");
    }
}

/// Bytes that arrive over so many links of simulation 1 of `bbn8333` at its worst, with some seeds.
fn arrive_at_worst(hops: usize, eten: &str) -> u64 {
    let names = &["a", "b", "c", "d"][..=hops];
    let nodes: String = names.iter().map(|name| format!("{name} = {{}}\n")).collect();
    let link = |ends: &[&str]| {
        format!(
            "[[links]]\nbetween = {ends:?}\nrate = \"1.5 Mbit/s\"\ndelay = \"320 ms\"\n\
             queue = \"50 packets\"\nerrors = {{ bit = 1.56e-5 }}\n"
        )
    };
    let links: String = names.windows(2).map(link).collect();
    let text = format!(
        "title = \"the worst\"\nprofile = \"ns2-2001\"\nduration = \"120 s\"\n[nodes]\n{nodes}{links}\
         [[flows]]\nfrom = \"a\"\nto = {:?}\n\
         tcp = {{ recovery = \"sack\", receive_window = \"20 segments\", eten = {eten} }}\n",
        names[hops]
    );
    (1..=10).map(|seed| run_with(&text, seed, &Watch::default()).rows[0].payload_bytes).sum()
}

#[test]
fn at_the_worst_error_rates_word_that_cannot_get_lost_is_worth_its_way() {
    // A notice of 180 bytes is sent once and may be corrupted; echoes are repeated, and a mark
    // outlives what corrupts its packet once more, as long as headers are readable.
    let marked = "{ report = \"forward\", transport = \"marked\" }";
    let [back, on] = ["\"backward\"", marked].map(|eten| arrive_at_worst(3, eten) as f64);
    assert!(on > 1.15 * back, "{on} {back}");
    let [back, on] = ["\"backward\"", "\"forward\""].map(|eten| arrive_at_worst(1, eten) as f64);
    assert!(on > back, "{on} {back}");
}

#[test]
fn it_is_the_same_where_packets_are_bytes_at_every_hop() {
    for version in [4, 6] {
        for transport in ["message", "piggyback", "marked"] {
            for headers in ["readable", "checked"] {
                let settings = format!(
                    "eten = {{ report = \"forward\", transport = \"{transport}\", \
                     headers = \"{headers}\" }}"
                );
                let flow = ("to      = \"b\"", format!("to = \"b\"\nip = {version}"));
                let text = with(&[(NONE, &settings), (flow.0, &flow.1), ("60 s", "20 s")]);
                let run = |bytes| {
                    let watch = Watch { digest: true, bytes, ..Watch::default() };
                    run_with(&text, 1, &watch)
                };
                assert!(run(false) == run(true), "{version}, {transport}, {headers}");
            }
        }
    }
}

#[test]
fn over_ipv6_checksums_vouch_for_nearly_nothing() {
    let over = |version: u32, settings: &str| {
        let flow = format!("to = \"b\"\nip = {version}");
        let eten = format!("eten = {settings}");
        arrive(&with(&[(NONE, &eten), ("to      = \"b\"", &flow)]))
    };
    let checked = "{ report = \"backward\", headers = \"checked\" }";
    let gain = |version| over(version, checked) as f64 / over(version, "\"none\"") as f64;
    assert!(gain(4) > 1.5 && gain(6) < 1.2, "{} {}", gain(4), gain(6));
}

#[test]
fn settings_without_effect_are_errors_at_their_place() {
    let at = |settings: &str, marked: &str, message: &str| {
        rejects((NONE, &format!("eten = {settings}")), marked, message);
    };
    at(
        "{ report = \"backward\", transport = \"marked\" }",
        "\"marked\"",
        "`flows.0.tcp.eten.transport = \"marked\"`: `transport` needs `report = \"forward\"`: only then is the receiver notified",
    );
    at(
        "{ report = \"oracle\", headers = \"checked\" }",
        "\"checked\"",
        "`flows.0.tcp.eten.headers = \"checked\"`: `headers` needs `report` \"backward\" or \"forward\": only then does a node read them",
    );
    at(
        "{ report = \"forward\", transport = \"pigeon\" }",
        "\"pigeon\"",
        "`flows.0.tcp.eten.transport = \"pigeon\"`: unknown name `pigeon`, expected one of `message`, `piggyback`, `marked`",
    );
    for mechanism in ["eten", "forward-eten"] {
        let twice = format!("eten = \"forward\", mechanisms = [{{ mechanism = \"{mechanism}\" }}]");
        let message = error(&with(&[(NONE, &twice)])).to_string();
        assert!(message.contains("`mechanisms` lists an ETEN mechanism already"), "{message}");
    }
}
