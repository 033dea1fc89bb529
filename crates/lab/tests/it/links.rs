//! Links of a scenario: the effect of each key, and the errors.

use crate::common::{error, rejects, scenario, with};
use base::{Duration, Rate};
use link::{
    CoDel, Damage, DeliveryTrace, Discipline, Drr, ErrorModel, Fades, FqCoDel, GilbertElliott,
    HostIsolation, Impairments, Interval, Intervals, Isolation, Jitter, JitterShape, Outages,
    Queue, Red, Reordering, Uniform, Variation, WhenDown,
};
use scenario::{Experiment, Link, Source};
use std::path::PathBuf;

/// The link of the scenario with other lines for its queue and errors.
fn link(lines: &str) -> Link {
    scenario(&with_link(lines)).links.remove(0)
}

fn with_link(lines: &str) -> String {
    with(&[("queue   = \"50 packets\"\nerrors  = { bit = 1e-5 }\n", lines)])
}

/// The forward errors of a link with this for `errors`.
fn errors(written: &str) -> ErrorModel {
    link(&format!("errors = {written}\n")).forward.errors
}

/// What is said of a link with this for `errors`.
fn refused(written: &str) -> String {
    error(&with_link(&format!("errors = {written}\n"))).to_string()
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn what_is_said_of_both_directions_holds_for_each_that_says_nothing_else() {
    let link = link(
        "queue = \"50 packets\"\nerrors = { packet = 0.5 }\nforward = { errors = { bit = 1e-5 } }\n\
         [links.backward]\nrate = \"9600 bit/s\"\ndelay = \"1 s\"\nqueue = \"unlimited\"\nerrors = {}\n",
    );
    let link::Config { rate, delay, queue, errors, .. } = link.forward;
    assert_eq!((rate, delay), (Rate::from_bps(1_500_000), ms(100)));
    assert_eq!((queue, errors), (Queue::Packets(50), Uniform { bit: 1e-5, packet: 0.0 }.into()));
    let link::Config { rate, delay, queue, errors, .. } = link.backward;
    assert_eq!((rate, delay), (Rate::from_bps(9600), Duration::from_secs(1)));
    assert_eq!((queue, errors), (Queue::Unlimited, Uniform::default().into()));
}

#[test]
fn rate_and_delay_are_needed_for_both_directions_at_once_or_for_each() {
    let rate = "rate    = \"1.5 Mbit/s\"\n";
    let each = "forward = { rate = \"1 Mbit/s\" }\nbackward = { rate = \"2 Mbit/s\" }\n";
    assert_eq!(scenario(&with(&[(rate, each)])).links[0].backward.rate, Rate::from_bps(2_000_000));
    for (lines, missing) in [
        ("", "`links.0`: missing key `rate`"),
        ("backward = { rate = \"2 Mbit/s\" }\n", "`links.0`: missing key `rate`"),
        (
            "forward = { rates = \"1 Mbit/s\" }\nbackward = { rate = \"2 Mbit/s\" }\n",
            "`links.0`: missing key `rate`\n`links.0.forward.rates`: unknown key `rates`, ",
        ),
    ] {
        let message = error(&with(&[(rate, lines)])).to_string();
        assert!(message.starts_with(missing), "{message}");
    }
}

#[test]
fn a_key_of_one_direction_is_swept_like_any_other() {
    let text = with_link("") + "[sweep]\n\"links.0.backward.delay\" = [\"1 s\", \"2 s\"]\n";
    let source = Source::new(text, "case.toml");
    let link = &Experiment::read(&source).unwrap().scenario_at(1).unwrap().links[0];
    assert_eq!((link.forward.delay, link.backward.delay), (ms(100), ms(2000)));
}

#[test]
fn links_join_two_nodes_that_are_there_once() {
    rejects(
        ("[\"a\", \"b\"]", "[\"a\", \"c\"]"),
        "\"c\"",
        "`links.0.between.1 = \"c\"`: there is no such node",
    );
    rejects(
        ("[\"a\", \"b\"]", "[\"a\", \"a\"]"),
        "[\"a\"",
        "`links.0.between`: expected two different nodes",
    );
    rejects(
        ("[\"a\", \"b\"]", "[\"a\"]"),
        "[\"a\"",
        "`links.0.between`: expected the names of two nodes",
    );
    let second = "[[links]]\nbetween = [\"b\", \"a\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 s\"\n";
    rejects(
        ("[[flows]]", &format!("{second}[[flows]]")),
        "[\"b\", \"a\"]",
        "`links.1.between`: there is already a link between these nodes",
    );
}

#[test]
fn a_queue_holds_something() {
    for queue in ["0 packets", "0 B"] {
        rejects(
            ("50 packets", queue),
            &format!("\"{queue}\""),
            &format!(
                "`links.0.queue = \"{queue}\"`: expected more than 0: an empty queue passes no packet"
            ),
        );
    }
}

#[test]
fn probabilities_are_between_0_and_1() {
    for p in ["-0.1", "1.1", "nan", "inf"] {
        let message = format!("`links.0.errors.bit = {p}`: expected a probability, 0 to 1");
        rejects(("1e-5", p), &format!("{p} }}"), &message);
    }
}

#[test]
fn a_channel_with_two_states_is_given_by_its_share_and_bursts_or_by_its_probabilities() {
    let model = errors("{ gilbert-elliott = { loss = 0.2, burst = 4 } }");
    let plain = GilbertElliott { p: 0.0625, r: 0.25, ..GilbertElliott::default() };
    assert_eq!(model, plain.into());
    let model = errors(
        "{ gilbert-elliott = { p = 0.1, r = 0.2, h = 0.3, k = 0.4, damage = \"corruption\" } }",
    );
    let damage = Damage::Corruption;
    assert_eq!(model, GilbertElliott { p: 0.1, r: 0.2, h: 0.3, k: 0.4, damage }.into());
}

#[test]
fn of_a_channel_with_two_states_one_description_is_expected_that_can_be() {
    for half in ["loss = 0.1", "burst = 2", "p = 0.1", "loss = 0.1, burst = 2, k = 1", ""] {
        assert_eq!(
            refused(&format!("{{ gilbert-elliott = {{ {half} }} }}")),
            "`links.0.errors.gilbert-elliott`: expected `loss` and `burst`, or `p` and `r` with `h` \
             and `k` if needed"
        );
    }
    assert_eq!(
        refused("{ gilbert-elliott = { loss = 0.9, burst = 3 } }"),
        "`links.0.errors.gilbert-elliott.loss = 0.9`: expected no more than 0.750 with bursts of 3 \
         packets"
    );
    for loss in ["1", "1.5", "-0.1"] {
        let message = refused(&format!("{{ gilbert-elliott = {{ loss = {loss}, burst = 3 }} }}"));
        assert!(message.starts_with("`links.0.errors.gilbert-elliott.loss = "), "{message}");
    }
    assert_eq!(
        refused("{ gilbert-elliott = { loss = 0.1, burst = 0.5 } }"),
        "`links.0.errors.gilbert-elliott.burst = 0.5`: found number `0.5`, expected a mean number \
         of packets, 1 to 1e9"
    );
    assert_eq!(
        refused("{ gilbert-elliott = { loss = 0.1, burst = 2, damage = \"lost\" } }"),
        "`links.0.errors.gilbert-elliott.damage = \"lost\"`: unknown name `lost`, expected `loss` \
         or `corruption`"
    );
}

#[test]
fn bursts_have_gaps_in_time_packets_or_bytes() {
    for (written, gap) in [
        ("200 ms", link::Gap::Time(ms(200))),
        ("500 packets", link::Gap::Packets(500.0)),
        ("1 MB", link::Gap::Bytes(1e6)),
    ] {
        let model = errors(&format!("{{ bursts = {{ gap = \"{written}\", length = 2.5 }} }}"));
        assert_eq!(model, link::Bursts { gap, length: 2.5, damage: Damage::Loss }.into());
    }
    for wrong in ["\"0 ms\"", "\"0 packets\"", "\"9 segments\"", "\"-1 ms\"", "\"often\""] {
        assert_eq!(
            refused(&format!("{{ bursts = {{ gap = {wrong}, length = 2 }} }}")),
            format!(
                "`links.0.errors.bursts.gap = {wrong}`: expected more than 0: a duration, packets \
                 or bytes, such as \"200 ms\", \"500 packets\" or \"1 MB\""
            )
        );
    }
    assert_eq!(
        refused("{ bursts = {} }"),
        "`links.0.errors.bursts`: missing key `gap`\n`links.0.errors.bursts`: missing key `length`"
    );
}

#[test]
fn fades_have_their_times_and_their_errors() {
    let model = errors(
        "{ fades = { bit = 1e-7, every = \"60 s\", at = [{ start = \"1 s\", end = \"3 s\", bit = \
         1e-4 }, { start = \"10 s\", packet = 1 }] } }",
    );
    let fade = |start, end, bit, packet| Interval {
        start: ms(start),
        end: ms(end),
        value: Uniform { bit, packet },
    };
    let list = [fade(1000, 3000, 1e-4, 0.0), fade(10_000, 60_000, 0.0, 1.0)];
    let fades = Intervals::new(list, Some(Duration::from_secs(60))).unwrap();
    assert_eq!(model, Fades { fades, otherwise: Uniform { bit: 1e-7, packet: 0.0 } }.into());
}

#[test]
fn spans_of_time_come_one_after_the_other() {
    let fades = |at: &str| refused(&format!("{{ fades = {{ {at} }} }}"));
    assert_eq!(fades(""), "`links.0.errors.fades`: missing key `at`");
    assert_eq!(fades("at = []"), "`links.0.errors.fades.at`: expected at least one entry");
    assert_eq!(fades("at = [{}]"), "`links.0.errors.fades.at.0`: missing key `start`");
    assert_eq!(
        fades("at = [{ start = \"2 s\", end = \"2 s\" }]"),
        "`links.0.errors.fades.at.0`: ends at 2 s: expected an end after its start, 2 s"
    );
    assert_eq!(
        fades("at = [{ start = \"1 s\", end = \"3 s\" }, { start = \"2 s\", end = \"9 s\" }]"),
        "`links.0.errors.fades.at.1`: starts at 2 s: expected 3 s, the end of the one before, or \
         later"
    );
    assert_eq!(
        fades("at = [{ start = \"1 s\" }, { start = \"1 s\" }]"),
        "`links.0.errors.fades.at.1`: starts at 1 s: expected later than the one before it"
    );
    for period in ["0 s", "2 s"] {
        assert_eq!(
            fades(&format!("every = \"{period}\", at = [{{ start = \"1 s\", end = \"3 s\" }}]")),
            format!(
                "`links.0.errors.fades.every = \"{period}\"`: a period of {period}: expected more \
                 than 0 s and no less than 3 s, the last end"
            )
        );
    }
}

#[test]
fn errors_are_of_one_kind() {
    for (written, kinds) in [
        ("bit = 1e-6, trace = \"x\"", "`bit` and `trace`"),
        ("packet = 0, fades = { at = [{ start = \"0 s\" }] }", "`packet` and `fades`"),
    ] {
        assert_eq!(
            refused(&format!("{{ {written} }}")),
            format!(
                "`links.0.errors`: {kinds} together: expected one kind of errors, which is `bit` \
                 and `packet`, or one of the others"
            )
        );
    }
}

/// A scenario that names a trace, beside a file with that name. The folder has the test's name.
fn traced(test: &str, trace: &[u8], written: &str) -> (Source, PathBuf) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("link.trace");
    std::fs::write(&file, trace).unwrap();
    let text = with_link(written);
    (Source::new(text, folder.join("case.toml").display().to_string()), file)
}

/// What is said of it, and of the file.
fn refused_trace(test: &str, trace: &[u8], written: &str) -> String {
    let (source, file) = traced(test, trace, written);
    let error = Experiment::read(&source).unwrap().scenario().unwrap_err();
    error.to_string().replace(file.to_str().unwrap(), "link.trace")
}

#[test]
fn a_trace_says_which_packets_are_damaged() {
    let trace = b"# lost while it rained\n3\n4 loss # and so on\n\n 70 corruption\r\n";
    let written = "errors = { trace = { file = \"link.trace\", every = \"100 packets\" } }\n";
    let (source, _) = traced("a_trace", trace, written);
    let experiment = Experiment::read(&source).unwrap();
    let scenario = experiment.scenario().unwrap();
    let packet = |index, damage| link::DamagedPacket { index, damage };
    let damaged =
        [packet(3, Damage::Loss), packet(4, Damage::Loss), packet(70, Damage::Corruption)];
    let expected = link::PacketTrace::new(damaged, Some(100)).unwrap();
    assert_eq!(scenario.links[0].forward.errors, expected.into());
}

#[test]
fn a_trace_in_brief_is_its_file() {
    let (source, _) =
        traced("brief", b"0\n", "forward = { errors = { trace = \"link.trace\" } }\n");
    let scenario = Experiment::read(&source).unwrap().scenario().unwrap();
    let outcome = lab::run(&scenario, 1, &lab::Watch::default(), &false.into()).unwrap();
    assert_eq!(
        (outcome.totals.lost, outcome.rows[0].sender.timeouts),
        (1, Some(1)),
        "the SYN is lost"
    );
}

#[test]
fn an_invalid_trace_is_reported_with_the_line_and_its_content() {
    let written = "errors = { trace = \"link.trace\" }\n";
    let number = "expected the number of a packet, from 0, followed by `loss`, `corruption` or nothing, which is `loss`";
    let many = "9".repeat(90);
    for (trace, message) in [
        ("1\nx\n", format!("line 2, `x`: {number}")),
        ("-1\n", format!("line 1, `-1`: {number}")),
        ("1.5\n", format!("line 1, `1.5`: {number}")),
        ("\n\n7 lost\n", format!("line 3, `7 lost`: {number}")),
        ("7 loss 8\n", format!("line 1, `7 loss 8`: {number}")),
        (&many, format!("line 1, `{}...`: {number}", &many[..40])),
        ("8\n8\n", "line 2, `8`: expected more than 8, the number before it".to_owned()),
    ] {
        assert_eq!(
            refused_trace("malformed", trace.as_bytes(), written),
            format!("`links.0.errors.trace = \"link.trace\"`: `link.trace`, {message}")
        );
    }
    for (trace, message) in [
        (&b"\xff\xfe"[..], "is not UTF-8: see line 1"),
        (&[b'#'; (64 << 20) + 1], "is too large: expected at most 64 MiB"),
    ] {
        assert_eq!(
            refused_trace("no_text", trace, written),
            format!("`links.0.errors.trace = \"link.trace\"`: `link.trace` {message}")
        );
    }
}

#[test]
fn a_trace_that_cannot_be_read_or_repeated_is_an_error() {
    assert_eq!(
        refused("{ trace = \"none.trace\" }"),
        "`links.0.errors.trace = \"none.trace\"`: there is no file `none.trace`"
    );
    assert_eq!(
        refused("{ trace = \".\" }"),
        "`links.0.errors.trace = \".\"`: cannot read `.`: is a directory"
    );
    assert_eq!(
        refused("{ trace = 7 }"),
        "`links.0.errors.trace = 7`: found integer `7`, expected the path of a file, or { file = \
         \"...\" }"
    );
    for (every, message) in [
        ("5 packets", "repeated after 5 packets: expected more than its last damaged one, 7"),
        ("5 MB", "expected packets, such as \"10000 packets\""),
    ] {
        let written =
            format!("errors = {{ trace = {{ file = \"link.trace\", every = \"{every}\" }} }}\n");
        assert_eq!(
            refused_trace("repeated", b"7\n", &written),
            format!("`links.0.errors.trace.every = \"{every}\"`: {message}")
        );
    }
}

#[test]
fn keys_of_an_error_model_are_swept_like_any_other() {
    let text = with(&[("bit = 1e-5", "gilbert-elliott = { burst = 2 }"), ("60 s", "5 s")])
        + "[sweep]\n\"links.0.errors.gilbert-elliott.loss\" = [0.0, 0.1]\n";
    let table = crate::common::sweep(&text, 1);
    assert_eq!(crate::common::floats(&table, "links.0.errors.gilbert-elliott.loss"), [0.0, 0.1]);
    let lost = crate::common::integers(&table, "lost");
    assert!(lost[0] == 0 && lost[1] > 0, "{lost:?}");
}

#[test]
fn packets_are_delayed_duplicated_and_jittered_at_random() {
    let impaired = link(
        "reordering = { probability = 0.1, delay = \"7 ms\" }\nduplication = 0.02\njitter = \"5 ms\"\n\
         backward = { jitter = { bound = \"1 ms\", shape = \"bell\", reorders = true } }\n",
    );
    let reordering = Reordering { probability: 0.1, delay: ms(7) };
    let jitter = Jitter { bound: ms(5), ..Jitter::default() };
    assert_eq!(impaired.forward.impairments, Impairments { reordering, duplication: 0.02, jitter });
    let jitter = Jitter { bound: ms(1), shape: JitterShape::Bell, reorders: true };
    assert_eq!(
        impaired.backward.impairments,
        Impairments { reordering, duplication: 0.02, jitter }
    );
    assert_eq!(link("").forward.impairments, Impairments::default());
}

#[test]
fn invalid_impairments_are_errors() {
    for (lines, message) in [
        ("reordering = 0.1", "reordering = 0.1`: found number `0.1`, expected a table"),
        ("reordering = { probability = 0.1 }", "reordering`: missing key `delay`"),
        (
            "reordering = { probability = 2, delay = \"1 ms\" }",
            "reordering.probability = 2`: expected a probability, 0 to 1",
        ),
        ("duplication = -1", "duplication = -1`: expected a probability, 0 to 1"),
        ("duplication = \"1 %\"", "duplication = \"1 %\"`: expected a probability, 0 to 1"),
        (
            "jitter = 5",
            "jitter = 5`: found integer `5`, expected a duration in quotes, such as \"5 ms\", or { \
             bound = \"5 ms\", ... }",
        ),
        (
            "jitter = \"5 MB\"",
            "jitter = \"5 MB\"`: `5 MB` is no duration: expected a number and ns, us, ms, s, min or \
             h, such as \"320 ms\"",
        ),
        ("jitter = {}", "jitter`: missing key `bound`"),
        (
            "jitter = { bound = \"1 ms\", shape = \"normal\" }",
            "jitter.shape = \"normal\"`: unknown name `normal`, expected `uniform` or `bell`",
        ),
    ] {
        let message = format!("`links.0.{message}");
        assert_eq!(error(&with_link(&format!("{lines}\n"))).to_string(), message);
    }
}

#[test]
fn rate_and_delay_change_at_times() {
    let changing = link(
        "changes = { every = \"60 s\", at = [{ start = \"10 s\", rate = \"1 Mbit/s\" }, { start = \
         \"20 s\", end = \"30 s\", rate = \"2 Mbit/s\", delay = \"1 s\" }] }\n",
    );
    let rate = Rate::from_bps;
    let interval = |start, end, value| Interval { start: ms(start), end: ms(end), value };
    let list = [
        interval(10_000, 20_000, Variation { rate: rate(1_000_000), delay: None }),
        interval(20_000, 30_000, Variation { rate: rate(2_000_000), delay: Some(ms(1000)) }),
    ];
    let variations = Intervals::new(list, Some(Duration::from_secs(60))).unwrap();
    assert_eq!(
        (&changing.forward.variations, &changing.backward.variations),
        (&variations, &variations)
    );
    assert_eq!(
        error(&with_link("changes = { at = [{ start = \"1 s\", rate = \"0 bit/s\" }] }\n"))
            .findings()[0]
            .key
            .as_deref(),
        Some("links.0.changes.at.0.rate")
    );
}

#[test]
fn a_link_is_down_at_times_or_at_random() {
    let failing =
        link("outages = { at = [{ start = \"1 s\", end = \"2 s\" }, { start = \"9 s\" }] }\n");
    let interval = |start, end| Interval { start: ms(start), end, value: () };
    let list = [interval(1000, ms(2000)), interval(9000, Duration::MAX)];
    assert_eq!(failing.outages, Some(Outages::At(Intervals::new(list, None).unwrap())));
    let failing = link("outages = { mean_up = \"30 s\", mean_down = \"2 s\" }\n");
    assert_eq!(failing.outages, Some(Outages::Random { up: ms(30_000), down: ms(2000) }));
    assert_eq!(link("").outages, None);
}

#[test]
fn invalid_outages_are_errors() {
    let both =
        "`: expected either times (`at`, and `every` if they repeat), or `mean_up` and `mean_down`";
    for (outages, message) in [
        ("{}", both),
        ("{ at = [{ start = \"1 s\" }], mean_up = \"1 s\" }", both),
        ("{ mean_up = \"1 s\" }", "`: missing key `mean_down`"),
        ("{ every = \"9 s\" }", "`: missing key `at`"),
        (
            "{ mean_up = \"1 s\", mean_down = \"0 s\" }",
            ".mean_down = \"0 s\"`: expected more than 0 s",
        ),
        (
            "{ means = 1 }",
            ".means`: unknown key `means`, expected one of `at`, `every`, `mean_up`, `mean_down`",
        ),
        (
            "{ at = [{ start = \"1 s\", end = \"0 s\" }] }",
            ".at.0`: ends at 0 s: expected an end after its start, 1 s",
        ),
        ("3", " = 3`: found integer `3`, expected a table"),
    ] {
        let text = with_link(&format!("outages = {outages}\n"));
        assert_eq!(error(&text).to_string(), format!("`links.0.outages{message}"));
    }
}

#[test]
fn the_treatment_of_packets_when_the_link_goes_down_is_a_word_or_a_table() {
    let when_down = |written: &str| link(&format!("when_down = {written}\n")).backward.when_down;
    assert_eq!(when_down("\"keep\""), Some(WhenDown::KEEP));
    assert_eq!(when_down("\"drop\""), Some(WhenDown::DROP));
    assert_eq!(
        when_down("{ queued = \"keep\", flying = \"drop\", arriving = \"drop\" }"),
        Some(WhenDown { keep_queued: true, keep_flying: false, accept: false })
    );
    for (written, message) in [
        (
            "1",
            " = 1`: found integer `1`, expected \"keep\", \"drop\", or a table with `queued`, `flying` and `arriving`",
        ),
        (
            "\"cut\"",
            " = \"cut\"`: expected \"keep\", \"drop\", or a table with `queued`, `flying` and `arriving`",
        ),
        ("{ queued = \"keep\", flying = \"keep\" }", "`: missing key `arriving`"),
        (
            "{ queued = \"keep\", flying = \"keep\", arriving = \"lost\" }",
            ".arriving = \"lost\"`: unknown name `lost`, expected `keep` or `drop`",
        ),
    ] {
        let text = with_link(&format!("when_down = {written}\n"));
        assert_eq!(error(&text).to_string(), format!("`links.0.when_down{message}"));
    }
}

#[test]
fn nothing_arrives_while_a_link_is_down() {
    let outcome = |lines: &str| crate::common::run(&with_link(lines));
    let outages = "outages = { at = [{ start = \"10 s\", end = \"40 s\" }] }\n";
    let (whole, cut) = (outcome("queue = \"50 packets\"\n"), outcome(outages));
    let bytes = |outcome: &lab::Outcome| outcome.rows[0].payload_bytes as f64;
    let share = bytes(&cut) / bytes(&whole);
    // 30 of 60 s, and the timer takes its time afterwards.
    assert!((0.3..0.52).contains(&share), "{share}");
}

/// A phone between two cells, attached as is said.
fn mobile(attached: &str) -> String {
    format!(
        "title = \"handoff\"\nduration = \"20 s\"\n[nodes]\nserver = {{}}\nwest = {{}}\neast = {{}}\n\
         island = {{}}\nphone = {{ attached = {attached} }}\n\
         [[links]]\nbetween = [\"server\", \"west\"]\nrate = \"9 Mbit/s\"\ndelay = \"5 ms\"\n\
         [[links]]\nbetween = [\"server\", \"east\"]\nrate = \"9 Mbit/s\"\ndelay = \"5 ms\"\n\
         [[links]]\nbetween = [\"west\", \"phone\"]\nrate = \"2 Mbit/s\"\ndelay = \"9 ms\"\n\
         [[links]]\nbetween = [\"phone\", \"east\"]\nrate = \"4 Mbit/s\"\ndelay = \"9 ms\"\n\
         [[links]]\nbetween = [\"phone\", \"island\"]\nrate = \"4 Mbit/s\"\ndelay = \"9 ms\"\n\
         [[flows]]\nfrom = \"server\"\nto = \"phone\"\n"
    )
}

#[test]
fn a_node_that_moves_is_attached_to_one_after_another() {
    let text = mobile(
        "{ at = [{ start = \"0 s\", end = \"5 s\", to = \"west\" }, { start = \"6 s\", to = \"east\" }] }",
    );
    let interval = |start, end, value| Interval { start: ms(start), end, value };
    let list = [interval(0, ms(5000), 2), interval(6000, Duration::MAX, 3)];
    let links = Intervals::new(list, None).unwrap();
    assert_eq!(
        scenario(&text).attachments,
        [link::Attachments { node: 4, links, notifies: vec![4], warning: None }]
    );
    let outcome = crate::common::run(&text);
    let most = (5.0 * 2e6 + 14.0 * 4e6) / 8.0;
    let share = outcome.rows[0].payload_bytes as f64 / most;
    assert!((0.7..1.0).contains(&share), "{share}");
}

#[test]
fn invalid_attachments_are_errors() {
    for (attached, message) in [
        ("{}", "`: missing key `at`"),
        ("{ at = [{ start = \"0 s\" }] }", ".at.0`: missing key `to`"),
        (
            "{ at = [{ start = \"0 s\", to = \"north\" }] }",
            ".at.0.to = \"north\"`: there is no such node",
        ),
        (
            "{ at = [{ start = \"0 s\", to = \"server\" }] }",
            ".at.0.to = \"server\"`: there is no link between `phone` and this node",
        ),
        (
            "{ at = [{ start = \"0 s\", to = \"west\" }, { start = \"1 s\", to = \"east\" }, { start = \
             \"2 s\", to = \"island\" }] }",
            ".at.2.to = \"island\"`: there is no path from `server` to `phone` while attached to this node",
        ),
        (
            "{ at = [{ start = \"9 s\", end = \"1 s\", to = \"west\" }] }",
            ".at.0`: ends at 1 s: expected an end after its start, 9 s",
        ),
    ] {
        let text = mobile(attached);
        assert_eq!(error(&text).to_string(), format!("`nodes.phone.attached{message}"));
    }
}

#[test]
fn queues_drop_early_by_red_or_codel() {
    let queue = |written: &str| {
        let config = link(&format!("queue = {written}\n")).forward;
        (config.queue, config.discipline)
    };
    assert_eq!(queue("\"9 packets\""), (Queue::Packets(9), Discipline::DropTail));
    assert_eq!(queue("{}"), (Queue::Unlimited, Discipline::DropTail));
    let standard = (Queue::Bytes(90_000), Discipline::Red(Red::default()));
    assert_eq!(queue("{ limit = \"90 kB\", red = {} }"), standard);
    let red = Red {
        min: 3.0,
        max: 9.5,
        max_probability: 0.2,
        weight: 0.01,
        mean_packet: 1000,
        gentle: false,
        wait: true,
        ecn: true,
    };
    let read = queue(
        "{ red = { min = 3, max = 9.5, max_probability = 0.2, weight = 0.01, mean_packet = 1000, \
         gentle = false, wait = true, ecn = true } }",
    );
    assert_eq!(read, (Queue::Unlimited, Discipline::Red(red)));
    assert_eq!(queue("{ codel = {} }").1, Discipline::CoDel(CoDel::default()));
    let codel = CoDel { target: ms(20), interval: ms(600), max_packet: 576, ecn: true };
    let read = queue(
        "{ codel = { target = \"20 ms\", interval = \"600 ms\", max_packet = \"576 B\", ecn = true } }",
    );
    assert_eq!(read.1, Discipline::CoDel(codel));
}

#[test]
fn queues_share_the_rate_by_drr_or_fq_codel() {
    let queue = |written: &str| {
        let config = link(&format!("queue = {written}\n")).forward;
        (config.queue, config.discipline)
    };
    let standard = Discipline::FqCoDel(FqCoDel::default());
    assert_eq!(queue("{ fq_codel = {} }"), (Queue::Packets(10_240), standard));
    assert_eq!(queue("{ limit = \"unlimited\", fq_codel = {} }"), (Queue::Unlimited, standard));
    let codel = CoDel { target: ms(20), interval: ms(600), max_packet: 576, ecn: false };
    let triple = FqCoDel { codel, quantum: 600, isolation: HostIsolation::Triple };
    let read = queue(
        "{ fq_codel = { target = \"20 ms\", interval = \"600 ms\", max_packet = 576, ecn = false, \
         quantum = 600, isolation = \"triple-isolate\" } }",
    );
    assert_eq!(read.1, Discipline::FqCoDel(triple));
    let drr = |written: &str| link(&format!("queue = {{ drr = {written} }}\n")).forward.discipline;
    assert_eq!(drr("{}"), Discipline::Drr(Drr { quantum: 1514, isolation: Isolation::Flows }));
    let hosts = Drr { quantum: 300, isolation: Isolation::SourceHost };
    assert_eq!(drr("{ quantum = \"300 B\", isolation = \"srchost\" }"), Discipline::Drr(hosts));
}

/// What docs/howto/queues.md says of the example.
#[test]
fn the_queue_decides_how_users_share_a_hop_and_how_long_a_call_waits() {
    let file = format!("{}/../../scenarios/examples/shared.toml", env!("CARGO_MANIFEST_DIR"));
    let source = Source::new(std::fs::read_to_string(&file).unwrap(), file);
    let experiment = Experiment::read(&source).unwrap();
    let results: Vec<_> = (0..6)
        .map(|point| {
            let scenario = experiment.scenario_at(point).unwrap();
            let outcome = lab::run(&scenario, 1, &lab::Watch::default(), &false.into()).unwrap();
            let [downloads, download, call] = &outcome.rows[..] else { panic!("three flows") };
            let share = download.payload_bytes as f64
                / (download.payload_bytes + downloads.payload_bytes) as f64;
            let time = call.time_s.unwrap();
            (share, time.median, time.p95)
        })
        .collect();
    let [tail, codel, drr, drr_hosts, fq, fq_hosts] = results[..] else { panic!("six points") };
    for (share, ..) in [tail, codel, drr, fq] {
        assert!((share - 0.1).abs() < 0.02, "{results:?}");
    }
    assert!((drr_hosts.0 - 0.5).abs() < 0.02 && fq_hosts.0 > 0.35, "{results:?}");
    assert!(tail.1 > 0.2 && tail.2 > 0.4 && drr_hosts.2 > 0.2, "{results:?}");
    // A message that CoDel drops waits for a loss probe.
    assert!(codel.1 < 0.06 && codel.2 > 0.15, "{results:?}");
    assert!(drr.2 < 0.055 && fq.2 < 0.042 && fq_hosts.2 < 0.042, "{results:?}");
}

#[test]
fn invalid_queues_are_errors() {
    for (queue, message) in [
        (
            "50",
            " = 50`: found integer `50`, expected \"unlimited\", a size, such as \"50 packets\" or \
             \"64 KiB\", or a table",
        ),
        (
            "\"50\"",
            " = \"50\"`: expected \"unlimited\" or a size, such as \"50 packets\" or \"64 KiB\"",
        ),
        ("\"5000000000 packets\"", " = \"5000000000 packets\"`: expected fewer than 2^32 packets"),
        (
            "{ limit = \"0 B\" }",
            ".limit = \"0 B\"`: expected more than 0: an empty queue passes no packet",
        ),
        (
            "{ red = {}, codel = {} }",
            "`: expected one of `red`, `codel`, `drr`, `fq_codel`, not several",
        ),
        ("{ red = { min = 20 } }", ".red`: `max` is 15: expected more than `min`, 20"),
        (
            "{ red = { min = 0 } }",
            ".red.min = 0`: found integer `0`, expected a mean number of packets, 1 to 1e9",
        ),
        ("{ red = { weight = 2 } }", ".red.weight = 2`: expected a probability, 0 to 1"),
        (
            "{ red = { mean_packet = \"1 packet\" } }",
            ".red.mean_packet = \"1 packet\"`: expected 1 to 65535 bytes",
        ),
        (
            "{ codel = { interval = \"0 s\" } }",
            ".codel.interval = \"0 s\"`: expected more than 0 s",
        ),
        ("{ codel = { max_packet = 0 } }", ".codel.max_packet = 0`: expected 1 to 65535 bytes"),
        ("{ drr = { quantum = 255 } }", ".drr.quantum = 255`: expected 256 to 65535 bytes"),
        (
            "{ drr = { isolation = \"host\" } }",
            ".drr.isolation = \"host\"`: unknown name `host`, expected one of `flows`, `srchost`, `dsthost`",
        ),
        (
            "{ pie = {} }",
            ".pie`: unknown key `pie`, expected one of `limit`, `red`, `codel`, `drr`, `fq_codel`",
        ),
    ] {
        let text = with_link(&format!("queue = {queue}\n"));
        assert_eq!(error(&text).to_string(), format!("`links.0.queue{message}"));
    }
}

#[test]
fn a_queue_marks_what_understands_it() {
    let outcome = |ecn: bool, feedback: &str| {
        let queue =
            format!("queue = {{ limit = \"50 packets\", red = {{ min = 2, ecn = {ecn} }} }}\n");
        let text = with_link(&queue).replace("eten = \"none\"", &format!("ecn = {feedback}"));
        let text = text.replace("20 segments", "90 segments");
        let outcome = crate::common::run(&text);
        let general = lab::Watch { digest: true, general_path: true, ..lab::Watch::default() };
        assert_eq!(crate::common::run_with(&text, 1, &general).digest, outcome.digest);
        (outcome.totals.dropped > 0, outcome.rows[0].sender.reductions > Some(0))
    };
    for feedback in ["true", "\"accurate\""] {
        assert_eq!(outcome(true, feedback), (false, true), "{feedback}");
        assert_eq!(outcome(false, feedback), (true, true), "{feedback}");
    }
    let wrong = with_link("").replace("eten = \"none\"", "ecn = \"exact\"");
    let message = "expected true, false or \"accurate\"";
    assert!(error(&wrong).to_string().contains(message), "{}", error(&wrong));
}

#[test]
fn a_rate_may_be_recorded() {
    let rate = "rate    = \"1.5 Mbit/s\"\n";
    let (source, _) =
        traced("rate", b"1\n2\n10\n", "forward = { rate = { trace = \"link.trace\" } }\n");
    let link = Experiment::read(&source).unwrap().scenario().unwrap().links.remove(0);
    let trace = DeliveryTrace::parse("1\n2\n10").unwrap();
    assert_eq!((link.forward.trace, link.forward.rate), (Some(trace), None));
    assert_eq!((link.backward.trace, link.backward.rate), (None, Rate::from_bps(1_500_000)));
    for (written, message) in [
        (
            "7",
            " = 7`: found integer `7`, expected a rate in quotes, such as \"1.5 Mbit/s\", or { trace = \"FILE\" }",
        ),
        ("{}", "`: missing key `trace`"),
        ("{ trace = \"none.trace\" }", ".trace = \"none.trace\"`: there is no file `none.trace`"),
    ] {
        let text = with(&[(rate, &format!("rate = {written}\n"))]);
        assert_eq!(error(&text).to_string(), format!("`links.0.rate{message}"));
    }
}

#[test]
fn an_invalid_recorded_rate_is_reported_with_its_line() {
    for (trace, message) in [
        (&b"1\nx\n"[..], "line 2: \"x\": expected a whole number of milliseconds"),
        (b"5\n4\n", "line 2: 4 after 5: expected milliseconds that do not decrease"),
        (b"", "a trace that takes no time: expected a last line of at least 1 millisecond"),
    ] {
        assert_eq!(
            refused_trace("bad_rate", trace, "backward = { rate = { trace = \"link.trace\" } }\n"),
            format!("`links.0.backward.rate.trace = \"link.trace\"`: `link.trace`, {message}")
        );
    }
    assert_eq!(
        refused_trace(
            "two_rates",
            b"1\n",
            "forward = { rate = { trace = \"link.trace\" }, changes = { at = [{ start = \"1 s\", rate = \
             \"1 bit/s\" }] } }\n"
        ),
        "`links.0.forward.changes`: expected no other rate: the trace of the link determines when it transmits"
    );
}

#[test]
fn a_run_counts_what_each_direction_did() {
    let outcome = crate::common::run(&with_link(
        "reordering = { probability = 0.01, delay = \"50 ms\" }\n\
         duplication = 0.01\nbackward = { errors = { packet = 0.01 } }\n\
         [links.forward.errors]\nbit = 1e-6\n[links.forward.queue.red]\nmin = 1\nmax = 4\nweight = 0.5\necn = true\n",
    ).replace("eten = \"none\"", "ecn = true").replace("20 segments", "200 segments"));
    let [(there, forward), (back, backward)] = &outcome.links[..] else { panic!("two directions") };
    assert_eq!((there.as_str(), back.as_str()), ("a->b", "b->a"));
    assert!(forward.corrupted > 0 && backward.corrupted == 0);
    assert!(backward.lost > 0 && forward.lost == 0);
    assert!(forward.marked > 0 && backward.marked == 0);
    assert!(forward.duplicated > 0 && backward.duplicated > 0);
    assert!(forward.reordered > 0 && backward.reordered > 0);
    let totals = outcome.totals;
    assert_eq!((totals.corrupted, totals.lost), (forward.corrupted, backward.lost));
    let table = outcome.links_table();
    assert_eq!(crate::common::texts(&table, "link"), ["a->b", "b->a"]);
    assert_eq!(crate::common::integers(&table, "packets")[0], forward.packets as i64);
    let cut = crate::common::run(&with_link(
        "outages = { mean_up = \"5 s\", mean_down = \"1 s\" }\nwhen_down = \"drop\"\n",
    ));
    assert!(cut.totals.dropped > 0, "by links that went down");
}

/// Every packet of the first 20 s of the examples under seed 1, on every machine; between them
/// they use most of what links can do. They change when the path of a packet does, and with nothing
/// else: change them only on purpose.
const EXAMPLES: [(&str, &str); 5] = [
    ("fibre", "2a363f592d417780"),
    ("geo-clean", "765edb7810cef9a6"),
    ("geo-lossy", "8399c7c0ea2d6fbe"),
    ("mobile", "9b1718977abe259e"),
    ("modem", "8b0ff6c3309adf8e"),
];

#[test]
fn recorded_digests_of_the_examples_hold() {
    let digest = |name: &str| {
        let file = format!("{}/../../scenarios/examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let mut source = Source::new(std::fs::read_to_string(&file).unwrap(), file);
        source.put("duration", &scenario::Value::String("20 s".to_owned())).unwrap();
        let scenario = Experiment::read(&source).unwrap().scenario().unwrap();
        let watch = lab::Watch { digest: true, ..lab::Watch::default() };
        let outcome = lab::run(&scenario, 1, &watch, &false.into()).unwrap();
        format!("{:016x}", outcome.digest.unwrap().0)
    };
    let now = EXAMPLES.map(|(name, _)| (name, digest(name)));
    assert_eq!(now, EXAMPLES.map(|(name, recorded)| (name, recorded.to_owned())));
}
