//! A run depends on its scenario and its seed alone, and obeys the arithmetic of its path.

use crate::common::{
    LONG_LINK, SACK_AND_AIMD, chain, digest, error, fast_share, run, run_with, scenario, with,
};
use base::Duration;
use base::settings::{Span, Table as _};
use lab::{Column, Watch};
use scenario::Report;
use tcp::congestion::{Auto, Canit, Cap, ConstantRate, Fast, Increase, IncreaseByK, RoundTrip};
use tcp::{Estimator, SsthreshOnBackoff};

/// Every packet of [`LONG_LINK`] under seed 1, on every machine. It changes when TCP, a link or
/// randomness behaves differently, and with nothing else: change it only on purpose.
const GOLDEN: &str = "974610e20ddfde3a";

#[test]
fn the_same_scenario_and_seed_give_the_same_packets_everywhere() {
    assert_eq!(digest(LONG_LINK), GOLDEN);
    assert_eq!(digest(LONG_LINK), digest(LONG_LINK));
}

#[test]
fn another_seed_gives_other_packets() {
    let watch = &Watch { digest: true, ..Watch::default() };
    assert_ne!(run_with(LONG_LINK, 1, watch).digest, run_with(LONG_LINK, 2, watch).digest);
}

#[test]
fn a_mechanism_that_is_off_or_has_nothing_to_say_changes_nothing() {
    let plain = digest(LONG_LINK);
    assert_eq!(digest(&with(&[(", eten = \"none\"", "")])), plain);
    assert_eq!(digest(&with(&[("\"none\"", "{ report = \"none\", notice_size = 99 }")])), plain);

    let clean = |eten: &str| digest(&with(&[("1e-5", "0"), ("none", eten)]));
    assert_eq!(clean("oracle"), clean("none"));
    assert_eq!(clean("backward"), clean("none"));
    assert_ne!(digest(&with(&[("none", "oracle")])), plain);
    assert_ne!(digest(&with(&[("none", "backward")])), plain);
}

#[test]
fn watching_changes_nothing() {
    let both = run_with(LONG_LINK, 1, &Watch { series: true, digest: true, ..Watch::default() });
    assert_eq!(both.digest, run(LONG_LINK).digest);
    let none = run_with(LONG_LINK, 1, &Watch::default());
    assert_eq!((both.rows, both.totals, both.events), (none.rows, none.totals, none.events));
}

#[test]
fn another_node_changes_no_packet() {
    assert_eq!(digest(&with(&[("b = {}", "b = {}\nc = {}")])), digest(LONG_LINK));
}

#[test]
fn idle_nodes_and_links_in_front_of_the_others_change_no_random_decision() {
    let idle = "[[links]]\nbetween = [\"d\", \"c\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nerrors = { bit = 1e-3 }\n\n\
                [[links]]\nbetween";
    let beside = run(&with(&[("a = {}", "c = {}\nd = {}\na = {}"), ("[[links]]\nbetween", idle)]));
    let alone = run(LONG_LINK);
    assert!(alone.totals.corrupted > 0);
    assert_eq!((beside.rows, beside.totals), (alone.rows, alone.totals));
}

/// `window` segments per round trip: propagation and the transmission of a packet and its
/// acknowledgment.
fn window_limited_goodput(window: f64, rate: f64, delay: f64) -> f64 {
    let round_trip = 2.0 * delay + (576.0 + 40.0) * 8.0 / rate;
    (window * 576.0 * 8.0 / round_trip).min(rate)
}

#[test]
fn a_small_window_carries_its_size_per_round_trip() {
    for (rate, delay) in [(100e6, 0.1), (100e6, 0.01), (10e6, 0.32), (1.5e6, 0.1)] {
        let text = with(&[
            ("60 s", "600 s"),
            ("1.5 Mbit/s", &format!("{rate} bit/s")),
            ("100 ms", &format!("{delay} s")),
            ("1e-5", "0"),
        ]);
        let outcome = run(&text);
        let expected = window_limited_goodput(20.0, rate, delay);
        let ratio = outcome.rows[0].goodput_bps / expected;
        // Slow start costs some five round trips of 600 s.
        assert!((0.99..=1.0).contains(&ratio), "{ratio} of {expected} at {rate}, {delay}");
        assert_eq!(outcome.rows[0].sender.retransmissions, Some(0));
        assert_eq!((outcome.totals.dropped, outcome.totals.corrupted), (0, 0));
    }
}

#[test]
fn a_window_beyond_the_path_fills_it() {
    let text = with(&[("20 segments", "200 segments"), ("1e-5", "0"), ("60 s", "600 s")]);
    let goodput = run(&text).rows[0].goodput_bps;
    assert!((1.4e6..=1.5e6).contains(&goodput), "{goodput}");
}

#[test]
fn goodput_counts_headers_and_payload_does_not() {
    let row = &run(LONG_LINK).rows[0];
    assert!((row.goodput_bps / row.payload_bps - 576.0 / 536.0).abs() < 1e-12);
    assert!((row.payload_bps - row.payload_bytes as f64 * 8.0 / 60.0).abs() < 1e-6);
    assert_eq!((row.duration_s, row.completed_s), (60.0, None));
}

#[test]
fn a_transfer_ends_when_the_receiver_has_everything() {
    let text =
        with(&[("1e-5", "0"), ("from    =", "traffic = { size = 5360 }\nstart = \"2 s\"\nfrom =")]);
    let row = &run(&text).rows[0];
    assert_eq!(row.payload_bytes, 5360);
    // One round trip for the handshake; then 1, 2, 4, 3 segments, the last half a round trip.
    let completed = row.completed_s.unwrap();
    assert!((0.9..0.95).contains(&completed), "{completed}");
    assert_eq!(row.duration_s, completed);
    assert!((row.payload_bps - 5360.0 * 8.0 / completed).abs() < 1e-6);
    assert_eq!(row.sender.retransmissions, Some(0));
}

#[test]
fn a_transfer_that_does_not_end_in_time_has_no_completion() {
    let text = with(&[("from    =", "traffic = { size = \"1 GB\" }\nfrom =")]);
    let row = &run(&text).rows[0];
    assert_eq!((row.completed_s, row.duration_s), (None, 60.0));
}

#[test]
fn every_error_is_counted_and_a_notice_repairs_it() {
    let outcome = |eten: &str| run(&with(&[("none", eten), ("60 s", "600 s")]));
    let [none, oracle, backward] = ["none", "oracle", "backward"].map(outcome);
    assert!(none.totals.corrupted > 100 && none.totals.lost == 0);
    assert_eq!(none.rows[0].sender.notices, Some(0));
    assert!(oracle.rows[0].sender.notices > backward.rows[0].sender.notices);
    assert!(backward.rows[0].sender.notices > Some(100));
    let goodput = [&none, &backward, &oracle].map(|outcome| outcome.rows[0].goodput_bps);
    assert!(goodput.is_sorted(), "{goodput:?}");
    assert!(goodput[1] > 1.5 * goodput[0], "{goodput:?}");
}

#[test]
fn an_oracle_that_errs_keeps_its_source_from_slowing_down() {
    let erring = |mistakes: &str| {
        run(&with(&[
            ("1e-5", "0"),
            ("50 packets", "5 packets"),
            ("\"none\"", &format!("{{ report = \"oracle\", mistakes = {mistakes} }}")),
        ]))
    };
    let [never, always] = ["0", "1"].map(erring);
    let honest = run(&with(&[("1e-5", "0"), ("50 packets", "5 packets")]));
    assert_eq!(never.digest, honest.digest);
    assert!(never.rows[0].sender.reductions > Some(0) && always.totals.dropped > 0);
    assert_eq!(always.rows[0].sender.reductions, Some(0));
    assert_eq!(always.rows[0].sender.notices, Some(always.totals.dropped));
}

#[test]
fn errors_may_differ_by_direction() {
    let lost = |direction: &str| {
        run(&with(&[("errors  = { bit = 1e-5 }\n", &format!("errors = {{}}\n{direction}\n"))]))
    };
    let forward = lost("forward = { errors = { packet = 1 } }");
    assert_eq!((forward.rows[0].payload_bytes, forward.totals.lost > 3), (0, true));
    let backward = lost("backward = { errors = { packet = 0.5 } }");
    assert!(backward.rows[0].payload_bytes > 0 && backward.totals.lost > 3);
}

#[test]
fn many_flows_share_a_link_and_keep_their_bytes_apart() {
    let mut text = with(&[("1e-5", "1e-6"), ("none", "oracle")]);
    for flow in 1..20 {
        let (from, to) = if flow % 2 == 0 { ("a", "b") } else { ("b", "a") };
        let size = flow * 10_000;
        text += &format!(
            "[[flows]]\nname = \"f{flow}\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             start = \"{} ms\"\ntraffic = {{ size = {size} }}\ntcp = {{ eten = \"backward\" }}\n",
            977 * (20 - flow)
        );
    }
    let outcome = run_with(&text, 3, &Watch { series: true, ..Watch::default() });
    for (flow, row) in outcome.rows.iter().enumerate().skip(1) {
        assert_eq!(row.flow, format!("f{flow}"));
        assert_eq!(row.payload_bytes, flow as u64 * 10_000, "{row:?}");
        assert!(row.completed_s.is_some());
    }
    // Every flow has the time series of its own connection.
    let series = outcome.series.unwrap();
    for (flow, (name, table)) in series.flows.iter().enumerate().skip(1) {
        let start = crate::common::floats(table, "t_s")[0];
        assert_eq!(*name, format!("f{flow}"));
        assert!((start - 0.977 * (20 - flow) as f64).abs() < 1e-9, "{name}: {start}");
    }
}

#[test]
fn deliveries_grow_to_what_the_row_counts() {
    let text = with(&[("1e-5", "1e-6")]);
    let outcome = run_with(&text, 1, &Watch { series: true, ..Watch::default() });
    let series = outcome.series.unwrap();
    let [(flow, table)] = series.deliveries.as_slice() else { panic!("one flow") };
    assert_eq!(flow, "flow 0");
    let Some(Column::Integer(bytes)) = table.column("payload_bytes") else { panic!("counts") };
    assert!(bytes.len() >= 100 && bytes.is_sorted(), "{bytes:?}");
    assert!(bytes[bytes.len() / 2] > 0 && bytes[0] < bytes[bytes.len() / 2]);
    assert_eq!(bytes.last(), Some(&(outcome.rows[0].payload_bytes as i64)));
    assert_eq!(crate::common::floats(table, "t_s").len(), bytes.len());
}

#[test]
fn time_series_show_what_the_sender_thinks_and_what_waits() {
    let text = with(&[("1e-5", "0")]);
    let series = run_with(&text, 1, &Watch { series: true, ..Watch::default() }).series.unwrap();
    let [(flow, table)] = series.flows.as_slice() else { panic!("one flow") };
    assert_eq!(flow, "flow 0");
    let names: Vec<&str> = table.columns().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "t_s",
            "cwnd_bytes",
            "cwnd_plus_dupacked_bytes",
            "ssthresh_bytes",
            "srtt_s",
            "rto_s",
            "flight_bytes",
        ]
    );
    assert!(crate::common::floats(table, "t_s").is_sorted());
    assert_eq!(crate::common::integers(table, "cwnd_bytes")[..2], [536, 536]);
    assert!(crate::common::integers(table, "flight_bytes").contains(&(20 * 536)));
    assert_eq!(crate::common::floats(table, "rto_s")[0], 6.0);

    let queues: Vec<&str> = series.queues.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(queues, ["a->b", "b->a"]);
    let waiting = crate::common::integers(&series.queues[0].1, "packets");
    assert!(waiting.iter().all(|&packets| (0..=50).contains(&packets)));
    assert!(waiting.iter().any(|&packets| packets > 1));
}

#[test]
fn a_profile_fills_in_what_the_file_leaves_out() {
    let flow = &scenario(&with(&[("receive_window = \"20 segments\", ", "")])).flows[0];
    assert_eq!(
        (flow.sender.mss, flow.sender.receive_window),
        (536, tcp::ReceiveWindow::fixed(20 * 536))
    );
    assert_eq!(flow.sender.initial_window, tcp::InitialWindow::Segments(1));
    assert_eq!(flow.sender.initial_ssthresh, Some(20 * 536));
    assert_eq!((flow.sender.limited_transmit, flow.sender.delayed_ack), (false, None));
    assert_eq!(flow.sender.rto.initial.as_secs_f64(), 6.0);
    assert_eq!(flow.sender.rto.minimum.as_secs_f64(), 0.2);
    assert_eq!(flow.sender.rto.granularity.as_secs_f64(), 0.1);
    assert_eq!(flow.sender.rto.estimator, Estimator::Ticks);
    assert_eq!((flow.notice_size, flow.report), (180, Report::None));

    let modern = scenario(&with(&[("profile  = \"ns2-2001\"\n", "")]));
    let standard = tcp::Config {
        receive_window: tcp::ReceiveWindow::fixed(20 * 1460),
        recovery: tcp::Recovery::Sack, // The file says so.
        ..tcp::Config::default()
    };
    assert_eq!(modern.flows[0].sender, standard);
    assert_eq!(modern.flows[0].notice_size, 56);
}

#[test]
fn a_flow_may_have_a_profile_and_settings_of_its_own() {
    let flow = &scenario(&with(&[
        ("[[flows]]", "[[flows]]\nprofile = \"ns2-2007\""),
        ("eten = \"none\"", "mss = 1000, initial_window = 4, rto = { minimum = \"1 s\" }"),
    ]))
    .flows[0];
    assert_eq!(
        (flow.sender.mss, flow.sender.initial_window),
        (1000, tcp::InitialWindow::Segments(4))
    );
    assert_eq!(flow.sender.initial_ssthresh, Some(20_000), "the window, in segments of its own");
    assert_eq!(flow.sender.ssthresh_on_backoff, SsthreshOnBackoff::Halve);
    assert_eq!(flow.sender.rto.minimum.as_secs_f64(), 1.0);
    assert_eq!(flow.sender.rto.initial.as_secs_f64(), 3.0);
}

#[test]
fn every_setting_of_a_connection_can_be_said() {
    let settings = [
        "mss = 1000, minimum_mss = 88, receive_window = \"10 kB\", recovery = \"reno\", congestion = \"aimd\"",
        "increase = { policy = \"increase-by-k\", k = 2 }, byte_counting = 2, initial_window = \"rfc3390\"",
        "initial_ssthresh = \"5 kB\", hystart = true, hystart_round_end = \"passed\", window_validation = \"half\", restart_after_idle = false",
        "pipe = \"unreported\", limited_transmit = true, delayed_ack = \"123 ms\", retries = 3, challenges = 0",
        "syn_retries = 2, syn_ack_retries = 1, out_of_window_acks = 4",
        "rto = { initial = \"2 s\", minimum = \"1 ms\", maximum = \"9 s\", granularity = \"2 ms\", minimum_variance = \"3 ms\", \
         estimator = \"exact\", restart = \"advance\" }",
        "ssthresh_on_backoff = \"halve\", reduction = \"prr\", undo = true, frto = true, dsack = true",
        "timestamps = true, require_timestamps = true, ecn = true, fast_open = true, nagle = false, pacing = true, prompt_start = true, mtu_probing = \"black-hole\", user_timeout = \"100 s\"",
        "keep_alive = { idle = \"5 s\", interval = \"1 s\", probes = 2 }, time_wait = \"7 s\"",
        "mechanisms = [{ mechanism = \"eten\" }]",
    ];
    let written = "recovery = \"sack\", receive_window = \"20 segments\", eten = \"none\"";
    let flow = &scenario(&with(&[(written, &settings.join(", "))])).flows[0];
    let expected = tcp::Config {
        mss: 1000,
        minimum_mss: 88,
        receive_window: tcp::ReceiveWindow::fixed(10_000),
        recovery: tcp::Recovery::Reno,
        pipe: tcp::Pipe::Unreported,
        congestion: tcp::congestion::Congestion::Aimd,
        increase: Increase::IncreaseByK(IncreaseByK { k: 2.0 }),
        loss_threshold: None,
        renew_min_rtt: false,
        tolerate_random_loss: false,
        byte_counting: Some(2),
        initial_window: tcp::InitialWindow::Rfc3390,
        initial_ssthresh: Some(5000),
        hystart: true,
        hystart_round_end: tcp::RoundEnd::Passed,
        validation: tcp::Validation::Half,
        restart_after_idle: false,
        limited_transmit: true,
        delayed_ack: Some(Duration::from_millis(123)),
        rto: tcp::Rto {
            initial: Duration::from_secs(2),
            minimum: Duration::from_millis(1),
            maximum: Duration::from_secs(9),
            granularity: Duration::from_millis(2),
            minimum_variance: Duration::from_millis(3),
            estimator: Estimator::Exact,
            restart: tcp::Restart::Advance,
        },
        retries: 3,
        syn_retries: 2,
        syn_ack_retries: 1,
        ssthresh_on_backoff: SsthreshOnBackoff::Halve,
        reduction: tcp::Reduction::Prr,
        undo: true,
        frto: true,
        dsack: true,
        timestamps: true,
        require_timestamps: true,
        ecn: tcp::EcnMode::Classic,
        fast_open: true,
        nagle: false,
        pacing: true,
        prompt_start: true,
        mtu_probing: tcp::MtuProbing::BlackHole,
        keep_alive: Some(tcp::KeepAlive {
            idle: Duration::from_secs(5),
            interval: Duration::from_secs(1),
            probes: 2,
        }),
        user_timeout: Some(Duration::from_secs(100)),
        challenges: 0,
        out_of_window_acks: 4,
        time_wait: Duration::from_secs(7),
        fin_wait_2: tcp::Config::default().fin_wait_2,
        mechanisms: vec![tcp::mechanism::Mechanism::Eten(tcp::mechanism::Eten::default())],
    };
    assert_eq!(flow.sender, expected);
}

#[test]
fn what_is_left_out_of_keep_alive_is_the_rfcs() {
    let kept =
        |setting: &str| scenario(&with(&[("eten = \"none\"", setting)])).flows[0].sender.keep_alive;
    assert_eq!(kept("keep_alive = {}"), Some(tcp::KeepAlive::default()));
    assert_eq!(kept("keep_alive = \"off\""), None);
}

#[test]
fn a_timer_that_restarts_with_a_repair_does_not_expire_while_that_is_on_its_way() {
    let timeouts = |restart: &str| {
        let rto = format!("rto = {{ restart = \"{restart}\" }}");
        let text = with(&[
            ("ns2-2001", "ns2-2007"),
            ("60 s", "120 s"),
            ("errors  = { bit = 1e-5 }", "forward = { errors = { packet = 0.00716 } }"),
            ("eten = \"none\"", &rto),
        ]);
        let of = |seed| run_with(&text, seed, &Watch::default()).rows[0].sender.timeouts;
        (1..=5).filter_map(of).sum::<u64>()
    };
    let (with_repair, without) = (timeouts("retransmission"), timeouts("advance"));
    assert!(10 * with_repair < without && without > 40, "{with_repair} {without}");
}

#[test]
fn a_repair_behind_a_full_queue_is_not_taken_for_lost_while_what_is_ahead_of_it_arrives() {
    // Slow start has filled the queue of a satellite link when a lost segment is found: the repair takes
    // longer than any segment before it.
    let satellite = |restart: &str| {
        format!(
            "title = \"a satellite\"\nduration = \"8 s\"\n[nodes]\na = {{}}\nb = {{}}\n\
             [[links]]\nbetween = [\"a\", \"b\"]\nrate = \"4 Mbit/s\"\ndelay = \"270 ms\"\n\
             queue = \"300 kB\"\nforward = {{ errors = {{ packet = 0.005 }} }}\n\
             [[flows]]\nfrom = \"a\"\nto = \"b\"\n\
             tcp = {{ rto = {{ minimum = \"200 ms\", minimum_variance = \"200 ms\", restart = \"{restart}\" }} }}\n"
        )
    };
    let timeouts = |restart: &str| {
        let of =
            |seed| run_with(&satellite(restart), seed, &Watch::default()).rows[0].sender.timeouts;
        (1..=60).filter_map(of).sum::<u64>()
    };
    let (with_sacks, without) = (timeouts("sack"), timeouts("retransmission"));
    assert!(with_sacks == 0 && without > 5, "{with_sacks} {without}");
}

#[test]
fn a_connection_is_given_up_after_its_retries() {
    for retries in [0, 1, 3] {
        let text = with(&[
            ("bit = 1e-5", "packet = 1"),
            ("eten = \"none\"", &format!("retries = {retries}")),
            ("60 s", "1000 s"),
        ]);
        let row = &run(&text).rows[0];
        assert_eq!((row.failed, row.sender.segments), (1, Some(retries + 1)), "{row:?}");
    }
}

#[test]
fn both_ends_have_the_mechanisms_and_the_sender_alone_what_repairs_by_notice() {
    let settings = "eten = \"oracle\", mechanisms = []";
    let flow = &scenario(&with(&[("eten = \"none\"", settings)])).flows[0];
    assert_eq!((flow.sender.mechanisms.len(), flow.receiver.mechanisms.len()), (1, 0));
    assert_eq!(flow.report, Report::Oracle);

    let settings = "mechanisms = [{ mechanism = \"eten\", suppress_dupacks = \"none\" }]";
    let flow = &scenario(&with(&[("eten = \"none\"", settings)])).flows[0];
    assert_eq!(flow.sender, flow.receiver);
    assert_eq!(flow.sender.mechanisms.len(), 1);
}

#[test]
fn on_a_long_fast_path_with_rare_losses_cubic_is_half_as_fast_again_as_aimd() {
    // 100 ms; one segment of 10,000 is lost.
    let mean_window = |congestion: &str| {
        let text = with(&[
            ("profile  = \"ns2-2001\"", "profile = \"modern\""),
            ("60 s", "600 s"),
            ("1.5 Mbit/s", "1 Gbit/s"),
            ("100 ms", "50 ms"),
            ("queue   = \"50 packets\"\n", ""),
            ("errors  = { bit = 1e-5 }", "forward = { errors = { packet = 1e-4 } }"),
            ("\"20 segments\"", "\"5000 segments\""),
            ("eten = \"none\"", congestion),
        ]);
        let row = &run(&text).rows[0];
        row.payload_bytes as f64 / 1460.0 / row.duration_s * 0.1
    };
    let rfc6675 = SACK_AND_AIMD.replace("recovery = \"sack\", ", "");
    let reno = mean_window(&rfc6675);
    let cubic = mean_window(&rfc6675.replace("aimd", "cubic"));
    // AIMD under independent losses: 1.31 / sqrt(p). RFC 9438, table 1, for losses at equal
    // distances: CUBIC has 187 segments where RFC 5681 has 120.
    assert!((0.95..1.05).contains(&(reno / 131.0)), "{reno}");
    assert!((1.5..2.0).contains(&(cubic / reno)), "{cubic} {reno}");
}

#[test]
fn westwood_keeps_its_window_where_errors_and_not_queues_lose_packets() {
    // One packet in a hundred is corrupted, 200 ms there and back; a window of 20 segments is 14 %
    // of what the path holds, so that nothing is ever queued.
    let goodput = |congestion: &str| {
        let text = with(&[
            ("1.5 Mbit/s", "10 Mbit/s"),
            ("60 s", "300 s"),
            ("errors  = { bit = 1e-5 }", "forward = { errors = { packet = 1e-2 } }"),
            ("eten = \"none\"", congestion),
        ]);
        run(&text).rows[0].goodput_bps
    };
    let aimd = goodput("congestion = \"aimd\"");
    for congestion in ["westwood-2001", "westwood+"] {
        let westwood = goodput(&format!("congestion = \"{congestion}\""));
        assert!(westwood > 1.2 * aimd, "{congestion}: {westwood} {aimd}");
    }
}

#[test]
fn what_is_odd_but_allowed_runs() {
    let cases: [&[(&str, &str)]; 11] = [
        &[("\"sack\"", "\"sack\", mss = 1"), ("60 s", "5 s")],
        &[("\"sack\"", "\"reno\", mss = 65495"), ("50 packets", "1 B")],
        &[("\"20 segments\"", "1073725440"), ("50 packets", "4000000000 packets")],
        &[("20 segments", "1 segment"), ("1.5 Mbit/s", "1 bit/s")],
        &[("1e-5", "1"), ("none", "oracle")],
        &[("1e-5", "0.001"), ("none", "backward")],
        &[("100 ms", "0 s"), ("1.5 Mbit/s", "1000 Gbit/s"), ("60 s", "10 ms")],
        &[("100 ms", "1000000 h"), ("60 s", "1000000 s")],
        &[("\"none\"", "\"none\", initial_window = 1000000"), ("60 s", "0.000001 s")],
        &[
            ("\"none\"", "\"none\", rto = { initial = \"1 ns\", minimum = \"0 s\" }"),
            ("60 s", "1 ms"),
        ],
        &[("\"none\"", "\"none\", delayed_ack = \"1000 s\""), ("bit = 1e-5", "packet = 0.5")],
    ];
    for changes in cases {
        let outcome = run(&with(changes));
        assert!(outcome.events < 10_000_000, "{changes:?}: {} events", outcome.events);
    }
}

/// The increase function of the first flow of a scenario that says this of it.
fn increase(written: &str) -> Increase {
    let written = format!("increase = {written}");
    scenario(&with(&[("eten = \"none\"", &written)])).flows[0].sender.increase
}

#[test]
fn an_increase_function_is_a_name_or_has_settings() {
    let canit = |nit, rtt, cap| {
        Increase::Canit(Canit { nit: Span(Duration::from_millis(nit)), rtt, cap: Cap(cap) })
    };
    assert_eq!(increase("\"canit\""), canit(30, RoundTrip::Smoothed, None));
    assert_eq!(increase("{ policy = \"canit\" }"), canit(30, RoundTrip::Smoothed, None));
    assert_eq!(
        increase("{ policy = \"canit\", nit = \"0.1 s\", rtt = \"90 ms\", cap = 1 }"),
        canit(100, RoundTrip::Given(Duration::from_millis(90)), Some(1.0))
    );
    assert_eq!(
        increase("{ policy = \"constant-rate\", c = 50, rtt = \"smoothed\", cap = \"off\" }"),
        Increase::ConstantRate(ConstantRate { c: 50.0, ..ConstantRate::default() })
    );
    let by_k = Fast::IncreaseByK(IncreaseByK { k: 3.0 });
    assert_eq!(
        increase("{ policy = \"auto\", fast = { policy = \"increase-by-k\", k = 3 } }"),
        Increase::Auto(Auto::new(by_k))
    );
}

#[test]
fn propagation_is_that_of_the_links_there_and_back_at_the_start() {
    let propagation = |links: &str| {
        let file = format!(
            "title = \"x\"\nduration = \"1 s\"\nnodes = {{ a = {{}}, b = {{}}, c = {{}} }}\n{links}\n\
             [[flows]]\nfrom = \"a\"\nto = \"c\"\n\
             tcp = {{ congestion = \"aimd\", increase = {{ policy = \"canit\", rtt = \"propagation\" }} }}\n"
        );
        let mut flow = scenario(&file).flows.remove(0);
        assert_eq!(flow.receiver.increase, flow.sender.increase);
        *flow.sender.increase.round_trip().unwrap()
    };
    let links = |last: &str| {
        let first = "[[links]]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n";
        format!("{first}[[links]]\nbetween = [\"b\", \"c\"]\nrate = \"56 kbit/s\"\n{last}")
    };
    let given = |ms| RoundTrip::Given(Duration::from_millis(ms));
    assert_eq!(propagation(&links("delay = \"50 ms\"")), given(120));
    let uneven = "delay = \"50 ms\"\nbackward = { delay = \"200 ms\" }";
    assert_eq!(propagation(&links(uneven)), given(270));
}

#[test]
fn every_name_of_tcps_tables_is_understood() {
    for (name, recovery) in tcp::Recovery::ALL {
        let flow = &scenario(&with(&[("\"sack\"", &format!("\"{name}\""))])).flows[0];
        assert_eq!(flow.sender.recovery, *recovery);
    }
    for (name, increase) in tcp::congestion::Increase::ALL {
        let settings = format!("increase = \"{name}\"");
        let flow = &scenario(&with(&[("eten = \"none\"", &settings)])).flows[0];
        assert_eq!(flow.sender.increase, *increase);
    }
    for (name, congestion) in tcp::congestion::Congestion::ALL {
        let settings = format!("congestion = \"{name}\", byte_counting = 2");
        let flow = &scenario(&with(&[("eten = \"none\"", &settings)])).flows[0];
        assert_eq!((flow.sender.congestion, flow.sender.byte_counting), (*congestion, Some(2)));
    }
    for name in tcp::mechanism::Mechanism::names() {
        let settings = format!("mechanisms = [{{ mechanism = \"{name}\" }}]");
        let flow = &scenario(&with(&[("eten = \"none\"", &settings)])).flows[0];
        assert_eq!(flow.sender.mechanisms.len(), 1, "{name}");
    }
}

#[test]
fn nearly_all_segments_take_the_fast_path_as_users_run_them() {
    let modern = |tcp: &str| {
        with(&[
            ("\"ns2-2001\"", "\"modern\""),
            ("bit = 1e-5", "bit = 1e-7"),
            ("eten = \"none\"", tcp),
        ])
    };
    let digest = Watch { digest: true, ..Watch::default() };
    for tcp in ["timestamps = true", "timestamps = false", "delayed_ack = \"off\"", "ecn = true"] {
        for watch in [&Watch::default(), &digest] {
            let share = fast_share(&modern(tcp), watch);
            assert!(share > 0.95, "{tcp}: {share}");
        }
    }
    let never = Watch { general_path: true, ..Watch::default() };
    assert_eq!(fast_share(&modern("timestamps = true"), &never), 0.0);
}

#[test]
fn packets_survive_64_hops() {
    assert!(run(&chain(64)).rows[0].payload_bytes > 0);
}

#[test]
fn the_lab_runs_our_stack_whatever_the_file_says_of_the_testbed() {
    let text = with(&[("from    = \"a\"", "stack = \"linux\"\nfrom    = \"a\"")])
        + "[testbed]\ncorrupted = \"flip\"\n";
    assert_eq!(digest(&text), digest(LONG_LINK));
}

#[test]
fn a_run_ends_with_its_flow_and_says_of_others_what_they_did_until_then() {
    let rest = "[[flows]]\nname = \"own\"\nfrom = \"a\"\nto = \"b\"\nstart = \"1 s\"\n\
                traffic = { size = \"100 kB\" }\n[[flows]]";
    let text = with(&[("[[flows]]", rest)]);
    let whole = run(&text);
    let cut = run(&format!("ends_with = \"own\"\n{text}"));
    assert_eq!(cut.rows[0], whole.rows[0]);
    let own = &cut.rows[0];
    // The last acknowledgment arrives a round trip after the last data was sent.
    let (completed, acknowledged) = (own.completed_s.unwrap(), own.acknowledged_s.unwrap());
    assert!(completed < acknowledged && acknowledged < completed + 0.2, "{own:?}");
    // In slices of a hundredth of the duration, here 0.6 s.
    let end = cut.rows[1].duration_s;
    assert!((acknowledged..acknowledged + 0.6).contains(&(end - 1.0)), "{end} {own:?}");
    assert!(cut.events < whole.events / 2);
    assert!(cut.rows[1].payload_bytes < whole.rows[1].payload_bytes / 2);
}

#[test]
fn a_run_ends_only_with_one_transfer_of_a_size() {
    for (name, message) in [
        ("nobody", "there is no such flow"),
        ("flow 0", "expected a flow that is one transfer with a `size`"),
    ] {
        let text = format!("ends_with = \"{name}\"\n{LONG_LINK}");
        let found = error(&text).to_string();
        assert!(found.contains("ends_with") && found.contains(message), "{found}");
    }
}

#[test]
fn a_flow_has_the_drops_of_its_own_data() {
    let text = with(&[("[[flows]]", "[[flows]]\nfrom = \"b\"\nto = \"a\"\n[[flows]]")]);
    let text = text.replace("bit = 1e-5", "bit = 0").replace("50 packets", "5 packets");
    let outcome = run(&text);
    let own: Vec<u64> = outcome.rows.iter().filter_map(|row| row.data_dropped).collect();
    let links: Vec<u64> = outcome.links.iter().map(|(_, link)| link.dropped).collect();
    assert!(own[1] > 0 && own[1] <= links[0], "{own:?} {links:?}");
    assert!(own[0] > 0 && own[0] <= links[1], "{own:?} {links:?}");
}
