//! Boxes that a file puts into nodes.

use crate::common::{digest, error, rejects, run, with};

const NODES: &str = "a = {}\nb = {}\n";

/// The file with these boxes in both nodes and this `tcp` besides.
fn boxes(of_a: &str, of_b: &str, tcp: &str) -> String {
    let nodes = format!("a = {{ boxes = [{of_a}] }}\nb = {{ boxes = [{of_b}] }}\n");
    with(&[(NODES, &nodes), ("eten = \"none\"", tcp)])
}

#[test]
fn error_notification_stands_for_a_box_in_every_node_and_a_mechanism() {
    let backward = with(&[("eten = \"none\"", "eten = \"backward\"")]);
    let reporter = "{ box = \"corruption-reporter\", notice_size = 180 }";
    let mechanism = "mechanisms = [{ mechanism = \"eten\" }]";
    assert_eq!(digest(&backward), digest(&boxes(reporter, reporter, mechanism)));
    let forward = with(&[("eten = \"none\"", "eten = \"forward\"")]);
    let forwarder = "{ box = \"corruption-forwarder\", notice_size = 180 }";
    let mechanism = "mechanisms = [{ mechanism = \"forward-eten\" }]";
    assert_eq!(digest(&forward), digest(&boxes(forwarder, forwarder, mechanism)));
}

#[test]
fn cumulative_notification_stands_for_a_meter_in_every_node_and_a_mechanism() {
    let cases = [
        ("", "", ""),
        ("a = 0.01", ", a = 0.01", ", a = 0.01"),
        ("form = \"levels\"", ", form = \"levels\"", ", form = \"levels\""),
    ];
    for (network, of_box, of_ends) in cases {
        let eten = "eten = { report = \"cumulative\", strategy = \"loss-ratio\" }";
        let short = with(&[("eten = \"none\"", eten)]) + &format!("[ceten]\n{network}\n");
        let meter = format!("{{ box = \"loss-meter\"{of_box} }}");
        let mechanism = format!(
            "mechanisms = [{{ mechanism = \"cumulative-eten\", strategy = \"loss-ratio\"{of_ends} }}]"
        );
        let rows = boxes(&meter, &meter, &mechanism);
        assert_eq!(digest(&short), digest(&rows), "{network}");
        // Of the two nodes the receiver is at the end of the link that corrupts.
        assert_eq!(digest(&boxes("", &meter, &mechanism)), digest(&rows), "{network}");
        assert_ne!(digest(&boxes(&meter, "", &mechanism)), digest(&rows), "{network}");
    }
}

#[test]
fn a_meter_sends_messages_about_its_flows() {
    let traceback = "mechanisms = [{ mechanism = \"cumulative-eten\", strategy = \"loss-ratio\", \
                     transport = \"traceback\" }]";
    let text =
        |of_b: &str| boxes("", of_b, traceback).replace("[[flows]]", "[[flows]]\nname = \"own\"");
    let reductions = |of_b: &str| run(&text(of_b)).rows[0].sender.reductions.unwrap();
    let plain = reductions("");
    let notified = reductions("{ box = \"loss-meter\", messages = 0.2, flows = [\"own\"] }");
    assert!(2 * notified < plain, "{notified} with messages, {plain} without");
    let other = format!(
        "{}[[flows]]\nname = \"other\"\nfrom = \"a\"\nto = \"b\"\ntcp = {{ {traceback} }}\n",
        text("{ METER }")
    );
    let of = |flows: &str| {
        let meter = format!("box = \"loss-meter\", messages = 0.2, flows = [{flows}]");
        run(&other.replace("METER", &meter)).rows[0].sender.reductions.unwrap()
    };
    assert!(2 * of("\"own\"") < of("\"other\""), "{} and {}", of("\"own\""), of("\"other\""));
    assert_eq!(
        digest(&text("{ box = \"loss-meter\", form = \"levels\", messages = 1e-12 }")),
        digest(&text(""))
    );
}

#[test]
fn a_meter_that_no_sender_can_read_is_rejected() {
    let rejected = |meter: &str, tcp: &str, message: &str| {
        let nodes = format!("a = {{}}\nb = {{ boxes = [{meter}] }}\n");
        let text = with(&[(NODES, &nodes), ("eten = \"none\"", tcp)]);
        let found = error(&text).to_string();
        assert!(found.starts_with(message), "{found}");
    };
    let mechanism = "mechanisms = [{ mechanism = \"cumulative-eten\", form = \"levels\" }]";
    let unread = "`nodes.b.boxes.0`: no flow reads what it reports: expected `form`, or `messages`, as the \
                  mechanism `cumulative-eten` of flow `flow 0` has `form` and `transport`";
    rejected("{ box = \"loss-meter\" }", mechanism, unread);
    rejected("{ box = \"loss-meter\", messages = 0.1 }", mechanism, unread);
    let twice = "`nodes.b.boxes.0`: every node has a meter of this form";
    rejected("{ box = \"loss-meter\" }", "eten = \"cumulative\"", twice);
    let settings = [
        ("a = 0", "`nodes.b.boxes.0.a = 0`: expected a number above 0 and at most 1"),
        ("a = 1.5", "`nodes.b.boxes.0.a = 1.5`: expected a number above 0 and at most 1"),
        ("messages = 2", "`nodes.b.boxes.0.messages = 2`: expected a number, 0 to 1"),
        (
            "form = \"bits\"",
            "`nodes.b.boxes.0.form = \"bits\"`: unknown name `bits`, expected one of",
        ),
    ];
    for (setting, message) in settings {
        rejected(&format!("{{ box = \"loss-meter\", {setting} }}"), "eten = \"none\"", message);
    }
}

#[test]
fn only_nodes_with_the_box_notify() {
    let mechanism = "mechanisms = [{ mechanism = \"eten\" }]";
    let notices = |of_a, of_b| run(&boxes(of_a, of_b, mechanism)).rows[0].sender.notices;
    // Data is corrupted on the way to `b`.
    assert!(notices("", "{ box = \"corruption-reporter\" }") > Some(10));
    assert_eq!(notices("{ box = \"corruption-reporter\" }", ""), Some(0));
}

#[test]
fn a_clamp_shortens_the_segments_of_connections_through_its_node() {
    let segments = |of_b| {
        let row = &run(&boxes("", of_b, "eten = \"none\"")).rows[0];
        row.payload_bytes as f64 / row.sender.segments.unwrap() as f64
    };
    let (free, clamped) = (segments(""), segments("{ box = \"mss-clamp\", mss = 200 }"));
    assert!(free > 450.0 && (150.0..=200.0).contains(&clamped), "{free} and {clamped} bytes");
}

#[test]
fn a_connection_does_without_the_options_that_a_node_strips() {
    let strip = |options: &str| format!("{{ box = \"strip-options\", options = [{options}] }}");
    let row = |options: &str, tcp: &str| run(&boxes("", &strip(options), tcp)).rows.remove(0);
    let segment = |options| {
        let row = row(options, "eten = \"none\", timestamps = true");
        row.payload_bytes as f64 / row.sender.segments.unwrap() as f64
    };
    let (plain, stripped) = (segment(""), segment("\"timestamps\""));
    assert!((10.0..14.0).contains(&(stripped - plain)), "{plain} and {stripped} bytes");
    let bytes = |options| {
        let row = row(options, "eten = \"none\", mss = 1000");
        row.payload_bytes as f64 / row.sender.segments.unwrap() as f64
    };
    // RFC 9293 §3.7.1, MUST-15
    let (large, unsaid) = (bytes(""), bytes("\"mss\""));
    assert!(large > 800.0 && (450.0..=536.0).contains(&unsaid), "{large} and {unsaid} bytes");
    let as_newreno = run(&with(&[("\"sack\"", "\"newreno\"")])).rows.remove(0);
    let without = row("\"sack\"", "eten = \"none\"");
    assert_eq!(without.payload_bytes, as_newreno.payload_bytes);
    // The echo of a corruption is an option without a standard.
    let forward = "eten = \"forward\"";
    assert!(row("\"sack\", \"mss\"", forward).sender.notices > Some(10));
    assert_eq!(row("\"unknown\"", forward).sender.notices, Some(0));
    // 64 KiB are all that a window without a scale can say.
    let wide = |options: &str| {
        let changes = [
            ("1.5 Mbit/s", "80 Mbit/s"),
            ("errors  = { bit = 1e-5 }\n", ""),
            ("\"50 packets\"", "\"unlimited\""),
            ("\"20 segments\"", "\"1 MB\""),
        ];
        let text = boxes(&strip(options), "", "eten = \"none\"");
        let text = changes.iter().fold(text, |text, (old, new)| text.replace(old, new));
        run(&text).rows[0].payload_bps * 0.2 / 8.0
    };
    let (unscaled, scaled) = (wide("\"window-scale\""), wide("\"timestamps\""));
    assert!(unscaled < 65_536.0 && scaled > 200_000.0, "{unscaled} and {scaled} bytes");
}

#[test]
fn an_error_of_a_box_points_at_its_place() {
    let at = |written: &str, marked: &str, message: &str| {
        rejects((NODES, &format!("a = {{}}\nb = {{ boxes = [{written}] }}\n")), marked, message);
    };
    at(
        "{ box = \"mss-clam\" }",
        "\"mss-clam\"",
        "`nodes.b.boxes.0.box = \"mss-clam\"`: unknown name `mss-clam`, expected one of \
         `corruption-reporter`, `corruption-forwarder`, `loss-meter`, `mss-clamp`, `strip-options`, `impairment`, \
         `spoofer`, `pair`, `snoop`, `esp`, `spep`, \
         `station`, `mobile`, \
         `on-path-attacker`, `false-echoes`, `false-fields`",
    );
    let short = "{ box = \"mss-clamp\", mss = 10 }";
    at(short, "10 }", "`nodes.b.boxes.0.mss = 10`: expected a whole number, 48 or more");
    let option = "{ box = \"strip-options\", options = [\"ecn\"] }";
    at(
        option,
        "[\"ecn\"]",
        "`nodes.b.boxes.0.options`: unknown name `ecn`, expected one of `mss`, `window-scale`, `sack`, \
         `timestamps`, `unknown`",
    );
    let stranger = "{ box = \"corruption-reporter\", flows = [\"web\"] }";
    at(stranger, stranger, "`nodes.b.boxes.0`: there is no flow `web`");
    let unknown = boxes("{ box = \"mss-clamp\", size = 3 }", "", "eten = \"none\"");
    assert!(error(&unknown).to_string().contains("size"), "{}", error(&unknown));
}
