//! A sweep makes points, points and seeds make runs, and runs make rows, always in one order.

use crate::common::{LONG_LINK, floats, integers, sweep, texts, with};
use lab::{Column, RunError, Seeds, SweepError};
use scenario::{Experiment, Source, Value};
use std::ops::ControlFlow;

fn swept(lines: &str) -> String {
    with(&[("60 s", "5 s")]) + "[sweep]\n" + lines
}

#[test]
fn without_a_sweep_there_is_one_run() {
    let table = sweep(LONG_LINK, 1);
    assert_eq!(integers(&table, "seed"), [1]);
    assert_eq!(texts(&table, "flow"), ["flow 0"]);
    assert_eq!((texts(&table, "from"), texts(&table, "to")), (vec!["a"], vec!["b"]));
}

#[test]
fn increase_functions_and_their_settings_can_be_swept() {
    let policies = "\"flows.0.tcp.increase\" = [\"standard\", { policy = \"canit\", cap = 1 }]\n";
    let table = sweep(&swept(policies), 2);
    let written = ["standard", "{ policy = \"canit\", cap = 1 }"];
    assert_eq!(texts(&table, "flows.0.tcp.increase"), written);

    let canit = "eten = \"none\", increase = { policy = \"canit\" }";
    let file = swept("\"flows.0.tcp.increase.nit\" = [\"30 ms\", \"5 s\"]\n");
    let table = sweep(&file.replacen("eten = \"none\"", canit, 1), 2);
    let payload = integers(&table, "payload_bytes");
    assert!(payload[0] > payload[1], "{payload:?}");
}

#[test]
fn the_first_key_changes_slowest_and_seeds_fastest() {
    let table = sweep(
        &swept(
            "seeds = 2\n\"links.0.delay\" = [\"1 ms\", \"2 ms\"]\n\
             \"flows.0.tcp.eten\" = [\"oracle\", \"none\"]\n",
        ),
        2,
    );
    let delays = ["1 ms", "1 ms", "1 ms", "1 ms", "2 ms", "2 ms", "2 ms", "2 ms"];
    let eten = ["oracle", "oracle", "none", "none", "oracle", "oracle", "none", "none"];
    assert_eq!(texts(&table, "links.0.delay"), delays);
    assert_eq!(texts(&table, "flows.0.tcp.eten"), eten);
    assert_eq!(integers(&table, "seed"), [1, 2, 1, 2, 1, 2, 1, 2]);
    let names: Vec<&str> = table.columns().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "links.0.delay",
            "flows.0.tcp.eten",
            "seed",
            "flow",
            "from",
            "to",
            "duration_s",
            "payload_bytes",
            "payload_bps",
            "goodput_bps",
            "completed_s",
            "acknowledged_s",
            "started",
            "finished",
            "failed",
            "time_mean_s",
            "time_median_s",
            "time_p95_s",
            "slowdown_mean",
            "slowdown_median",
            "slowdown_p95",
            "datagrams_sent",
            "datagrams_received",
            "datagram_loss",
            "data_dropped",
            "rtt_min_s",
            "rtt_mean_s",
            "rtt_median_s",
            "rtt_p95_s",
            "rtt_p99_s",
            "srtt_mean_s",
            "srtt_median_s",
            "srtt_p95_s",
            "srtt_p99_s",
            "delay_min_s",
            "delay_mean_s",
            "delay_median_s",
            "delay_p95_s",
            "delay_p99_s",
            "segments",
            "retransmissions",
            "timeouts",
            "reductions",
            "notices",
            "reprobes",
            "repairs",
            "rebuilt",
            "misplaced",
            "dropped",
            "corrupted",
            "corrected",
            "lost",
            "queue_delay_mean_s",
            "queue_delay_median_s",
            "queue_delay_p95_s",
            "queue_delay_p99_s",
            "events",
        ]
    );
}

#[test]
fn zipped_keys_change_together_where_the_zip_is_written() {
    let table = sweep(
        &swept(
            "zip = [{ \"links.0.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"], \
             \"links.0.errors.bit\" = [0, 1e-6] }]\n\"flows.0.tcp.initial_window\" = [1, 2]\n",
        ),
        1,
    );
    assert_eq!(texts(&table, "links.0.rate"), ["1 Mbit/s", "1 Mbit/s", "2 Mbit/s", "2 Mbit/s"]);
    assert_eq!(floats(&table, "links.0.errors.bit"), [0.0, 0.0, 1e-6, 1e-6]);
    assert_eq!(integers(&table, "flows.0.tcp.initial_window"), [1, 2, 1, 2]);
}

#[test]
fn a_star_stands_for_all() {
    let two = "[[links]]\nbetween = [\"b\", \"c\"]\nrate = \"9 Mbit/s\"\ndelay = \"0 s\"\n";
    let text = swept("\"links.*.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]\n")
        .replacen("b = {}", "b = {}\nc = {}", 1)
        .replacen("[[flows]]", &format!("{two}[[flows]]"), 1);
    let source = Source::new(text, "case.toml");
    let scenario = Experiment::read(&source).unwrap().scenario_at(1).unwrap();
    let rates: Vec<u64> =
        scenario.links.iter().map(|link| link.forward.rate.unwrap().as_bps()).collect();
    assert_eq!(rates, [2_000_000, 2_000_000]);
}

#[test]
fn keys_that_the_file_leaves_out_can_be_swept() {
    let text = swept(
        "\"flows.0.tcp.rto.minimum\" = [\"1 s\"]\n\"flows.0.traffic\" = [\"bulk\", { size = 3000 }]\n",
    );
    let table = sweep(&text, 1);
    assert_eq!(texts(&table, "flows.0.traffic"), ["bulk", "{ size = 3000 }"]);
    assert_eq!(integers(&table, "payload_bytes")[1], 3000);
}

#[test]
fn values_keep_their_type_if_all_have_it() {
    let table = sweep(
        &swept(
            "\"flows.0.tcp.limited_transmit\" = [true, false]\n\
             \"flows.0.tcp.receive_window\" = [\"9 segments\", 10000]\n",
        ),
        1,
    );
    let booleans = Column::Boolean(vec![true, true, false, false]);
    assert_eq!(table.column("flows.0.tcp.limited_transmit"), Some(&booleans));
    assert_eq!(
        texts(&table, "flows.0.tcp.receive_window"),
        ["9 segments", "10000", "9 segments", "10000"]
    );
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let text = swept("seeds = 5\n\"links.0.errors.bit\" = [0, 1e-6, 1e-5, 1e-4]\n");
    assert_eq!(sweep(&text, 1), sweep(&text, 2));
    assert_eq!(sweep(&text, 1), sweep(&text, 3));
}

#[test]
fn seeds_may_start_anywhere() {
    let source = Source::new(LONG_LINK, "case.toml");
    let experiment = Experiment::read(&source).unwrap();
    let rows = |first, count| {
        lab::sweep(&experiment, Seeds { first, count }, 1, |_, _| ControlFlow::Continue(()))
            .unwrap()
    };
    let (all, last) = (rows(1, 4), rows(4, 1));
    assert_eq!(integers(&all, "seed"), [1, 2, 3, 4]);
    assert_eq!(integers(&all, "payload_bytes")[3], integers(&last, "payload_bytes")[0]);
}

#[test]
fn a_key_that_is_put_in_takes_the_place_of_what_is_swept() {
    let text = swept("\"links.0.errors.bit\" = [0, 1e-6]\n\"flows.0.tcp.mss\" = [500, 600]\n");
    let mut source = Source::new(text, "case.toml");
    source.put("links.0.errors.bit", &Value::Float(1e-5)).unwrap();
    let experiment = Experiment::read(&source).unwrap();
    assert_eq!(experiment.points(), 2);
    for point in 0..2 {
        let errors = &experiment.scenario_at(point).unwrap().links[0].forward.errors;
        assert_eq!(*errors, link::Uniform { bit: 1e-5, packet: 0.0 }.into());
    }
}

#[test]
fn points_that_become_equal_are_one() {
    let text = swept(
        "zip = [{ \"links.0.errors.bit\" = [0, 0, 1e-6], \"flows.0.tcp.mss\" = [500, 600, 600] }]\n",
    );
    let points = |put: &[(&str, Value)]| {
        let mut source = Source::new(text.clone(), "case.toml");
        for (path, value) in put {
            source.put(path, value).unwrap();
        }
        Experiment::read(&source).unwrap().points()
    };
    let (bit, mss) =
        (("links.*.errors.bit", Value::Float(1e-5)), ("flows.0.tcp.mss", Value::Integer(9)));
    assert_eq!(points(&[]), 3);
    assert_eq!(points(std::slice::from_ref(&bit)), 2);
    assert_eq!(points(&[bit, mss]), 1);
}

#[test]
fn what_is_put_in_behind_a_sweeps_back_is_refused() {
    let text = swept("\"links.*.delay\" = [\"1 s\"]\n");
    let mut source = Source::new(text, "case.toml");
    source.put("links.0.delay", &Value::String("2 s".to_owned())).unwrap();
    let error = Experiment::read(&source).unwrap_err();
    assert_eq!(error.to_string(), "`links.0.delay` has no effect: the sweep sets `links.*.delay`");
}

#[test]
fn a_sweep_can_be_put_in_whole_or_in_part() {
    let text = swept("seeds = 7\n\"flows.0.tcp.mss\" = [500, 600]\n");
    let mut source = Source::new(text, "case.toml");
    source.put("sweep.seeds", &Value::Integer(3)).unwrap();
    let sizes = Value::Array([1, 2, 3].map(|n| Value::Integer(n * 100)).to_vec());
    source.put("sweep.\"flows.0.tcp.mss\"", &sizes).unwrap();
    let experiment = Experiment::read(&source).unwrap();
    assert_eq!((experiment.points(), experiment.seeds()), (3, 3));
    assert_eq!(experiment.scenario_at(2).unwrap().flows[0].sender.mss, 300);
}

#[test]
fn a_whole_sweep_that_is_put_in_undoes_what_was_put_in_before() {
    let mut source = Source::new(swept("\"links.0.delay\" = [\"1 ms\"]\n"), "case.toml");
    let delays = ["3 ms", "4 ms"].map(Value::from).to_vec();
    let sweep = Value::Table([("links.0.delay".to_owned(), delays.into())].into_iter().collect());
    let mut points = |path, value: &Value| {
        source.put(path, value).unwrap();
        Experiment::read(&source).unwrap().points()
    };
    assert_eq!(points("links.0.delay", &"9 ms".into()), 1);
    assert_eq!(points("sweep", &sweep), 2);
    assert_eq!(points("links.0.delay", &"9 ms".into()), 1);
}

#[test]
fn a_document_says_all_that_was_put_in() {
    let text = swept(
        "seeds = 2\n\"flows.0.tcp.mss\" = [500, 600]\n\
         zip = [{ \"links.0.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"] }]\n\
         \"links.0.errors.bit\" = [0.0, 1e-5]\n",
    );
    let mut source = Source::new(text, "case.toml");
    source.put("links.*.delay", &"9 ms".into()).unwrap();
    source.put("flows.0.tcp.mss", &1000.into()).unwrap();
    let document = Experiment::read(&source).unwrap().document().unwrap();
    assert_eq!(document["links"][0]["delay"], "9 ms".into());
    assert_eq!(document["sweep"]["flows.0.tcp.mss"], vec![Value::from(1000)].into());
    let keys = document["sweep"].as_table().unwrap().keys();
    assert_eq!(keys.collect::<Vec<_>>(), ["seeds", "flows.0.tcp.mss", "zip", "links.0.errors.bit"]);
    assert_eq!(document["sweep"]["zip"][0]["links.0.rate"][1], "2 Mbit/s".into());
}

#[test]
fn every_point_is_looked_at_before_the_first_run() {
    let text = swept("\"flows.0.tcp.mss\" = [500, 600, 70000]\n");
    let source = Source::new(text, "case.toml");
    let experiment = Experiment::read(&source).unwrap();
    let mut most = 0;
    let result = lab::sweep(&experiment, Seeds { first: 1, count: 1 }, 1, |done, _| {
        most = most.max(done);
        ControlFlow::Continue(())
    });
    assert!(matches!(result, Err(SweepError::Scenario(_))));
    assert_eq!(most, 0);
    let checked = lab::check(&experiment, || ControlFlow::Continue(()));
    assert!(matches!(checked, Err(SweepError::Scenario(_))));
}

#[test]
fn progress_ends_with_all_runs_done() {
    let source = Source::new(LONG_LINK, "case.toml");
    let experiment = Experiment::read(&source).unwrap();
    let mut progress = Vec::new();
    lab::sweep(&experiment, Seeds { first: 1, count: 5 }, 2, |done, all| {
        progress.push((done, all));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(progress.last(), Some(&(5, 5)));
    assert!(progress.is_sorted());
}

#[test]
fn a_cancelled_sweep_ends_early() {
    // The whole sweep would take minutes.
    let text = with(&[("60 s", "1000000 s"), ("1.5 Mbit/s", "1 Gbit/s"), ("1e-5", "0")]);
    let source = Source::new(text, "case.toml");
    let experiment = Experiment::read(&source).unwrap();
    let seeds = Seeds { first: 1, count: 100 };
    let result = lab::sweep(&experiment, seeds, 2, |_, _| ControlFlow::Break(()));
    assert!(matches!(result, Err(SweepError::Run(RunError::Cancelled))));
}

#[test]
fn an_error_of_several_points_is_reported_once_and_every_wrong_value_is() {
    let text = format!(
        "{LONG_LINK}[sweep]\n\"links.0.errors.bit\" = [0, 2, 3]\n\"flows.0.tcp.mss\" = [0, 500]\n"
    );
    let source = Source::new(text, "case.toml");
    let experiment = Experiment::read(&source).unwrap();
    let Err(SweepError::Scenario(error)) = lab::check(&experiment, || ControlFlow::Continue(()))
    else {
        panic!("three values are wrong");
    };
    let values: Vec<_> = error.findings().iter().map(|f| f.value.as_deref().unwrap()).collect();
    assert_eq!(values, ["2", "3", "0"]);
}
