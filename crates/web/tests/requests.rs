//! What a page gets for what it asks, as the module's exports carry it.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

const HOP: &str = r#"
title = "A hop"
duration = "20 s"
[nodes]
a = {}
b = {}
[[links]]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "50 ms"
errors = { packet = 0.01 }
[[flows]]
name = "bulk"
from = "a"
to = "b"
"#;

fn answer(request: &Value) -> Value {
    serde_json::from_str(&lasthop_web::answer(&request.to_string())).unwrap()
}

fn file(settings: &Value) -> Value {
    json!({ "name": "hop.toml", "text": HOP, "settings": settings })
}

fn ran(settings: &Value) -> Value {
    let request = json!({ "want": "run", "file": file(settings), "seed": 7, "frames": 100 });
    answer(&request)["run"].clone()
}

#[test]
fn a_run_has_the_digest_of_the_lab_and_its_series_at_equal_steps() {
    let ran = ran(&json!([]));
    let source = scenario::Source::new(HOP, "hop.toml");
    let scenario = scenario::Experiment::read(&source).unwrap().scenario().unwrap();
    let watch = lab::Watch { digest: true, ..lab::Watch::default() };
    let outcome = lab::run(&scenario, 7, &watch, &false.into()).unwrap();
    assert_eq!(ran["digest"], format!("{:016x}", outcome.digest.unwrap().0));
    assert_eq!(ran["flows"][0]["payload_bytes"], outcome.rows[0].payload_bytes);
    assert_eq!(ran["senders"]["bulk"]["cwnd_bytes"].as_array().unwrap().len(), 101);
    assert_eq!(ran["queues"]["a->b"]["packets"].as_array().unwrap().len(), 101);
    let arrived = ran["deliveries"]["bulk"]["payload_bytes"].as_array().unwrap();
    assert_eq!(arrived.last(), Some(&ran["flows"][0]["payload_bytes"]));
}

#[test]
fn settings_replace_values_and_the_document_has_them_in_their_places() {
    let settings = json!([
        ["links.0.errors", { "packet": 0.0 }],
        ["flows.0.tcp.congestion", "bbr"],
        ["links.0.delay", "20 ms"],
    ]);
    let request = json!({ "want": "document", "file": file(&settings) });
    let document = answer(&request)["document"].as_str().unwrap().to_owned();
    assert!(document.contains("congestion = \"bbr\""), "{document}");
    let of_document = json!({ "name": "copy.toml", "text": document, "settings": [] });
    let request = json!({ "want": "run", "file": of_document, "seed": 7, "frames": 1 });
    assert_eq!(answer(&request)["run"]["digest"], ran(&settings)["digest"]);
    assert_ne!(ran(&settings)["digest"], ran(&json!([]))["digest"]);
}

#[test]
fn remedies_have_settings_that_a_run_takes() {
    let hop = json!({ "neighbour": "b", "rate": "2 Mbit/s", "delay": "50 ms" });
    let found = answer(&json!({ "want": "remedies", "hop": hop }));
    let found = found["remedies"].as_array().unwrap();
    assert!(found.iter().any(|remedy| remedy["name"] == "SRP"));
    let in_tcp = |remedy: &&Value| remedy["settings"][0][0] == "tcp";
    assert!(found.iter().filter(in_tcp).count() > 20);
    for remedy in found.iter().filter(in_tcp) {
        let settings = remedy["settings"].as_array().unwrap().iter();
        let settings = settings.filter(|of| of[0] == "tcp");
        let settings =
            settings.map(|of| json!([format!("flows.0.tcp.{}", of[1].as_str().unwrap()), of[2]]));
        let ran = ran(&Value::Array(settings.collect()));
        assert!(ran["flows"][0]["payload_bytes"].as_u64().unwrap() > 0, "{remedy}: {ran}");
    }
}

#[test]
fn a_mistake_is_answered_with_a_report_that_names_its_place() {
    for (request, expected) in [
        ("{", "not a request"),
        (r#"{"want": "tea"}"#, "tea"),
        (r#"{"want": "remedies", "hop": 1}"#, "invalid type: integer"),
    ] {
        let error: Value = serde_json::from_str(&lasthop_web::answer(request)).unwrap();
        assert!(error["error"].as_str().unwrap().contains(expected), "{error}");
    }
    let file = file(&json!([["links.0.rate", "2 Mbit/fortnight"]]));
    let request = json!({ "want": "run", "file": file, "seed": 1, "frames": 10 });
    let error = answer(&request)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("links.0.rate") && error.contains("fortnight"), "{error}");
    let file = json!({ "name": "x.toml", "text": "title = ", "settings": [] });
    let error = answer(&json!({ "want": "document", "file": file }));
    assert!(error["error"].as_str().unwrap().contains("x.toml:1"), "{error}");
}
