//! Rules of nftables. Packets are forwarded twice: to the gateway and from it. Connection tracking is to see them
//! only where they leave for the hop, and filters are to accept them both times.

use super::Finding;
use crate::network::DEVICES;
use scenario::Gateway;
use serde_json::Value;
use std::process::Command;

/// What this is about, in findings.
const TRACKING: &str = "connection tracking";

pub(super) fn examine(gateway: &Gateway) -> Vec<Finding> {
    // Without nft, no rules were set up with it.
    let Ok(output) = Command::new("nft").args(["--json", "list", "ruleset"]).output() else {
        return Vec::new();
    };
    // Its exit code says whether it may ask.
    if !output.status.success() {
        let message = "nft does not tell the rules: they were not examined";
        return vec![Finding::advice("firewall", message, None)];
    }
    let rule_set: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    judge(gateway, &rule_set)
}

/// What a rule set means for a gateway.
fn judge(gateway: &Gateway, rule_set: &Value) -> Vec<Finding> {
    let entries = rule_set.get("nftables").and_then(Value::as_array);
    let of = |kind: &'static str| {
        entries.into_iter().flatten().filter_map(move |entry| entry.get(kind)).collect()
    };
    let (chains, rules): (Vec<&Value>, Vec<&Value>) = (of("chain"), of("rule"));
    let mut findings = vec![tracking(gateway, &chains, &rules)];
    let strict = chains.iter().filter(|chain| is_forward(chain) && chain["policy"] == "drop");
    findings.extend(strict.filter_map(|chain| forwarding(gateway, chain, &rules)));
    findings
}

/// The first time that a packet of a connection passes decides how its addresses are translated, and in the wrong
/// place: between two interfaces of which neither is the hop's. Between two halves of a connection, sequence numbers
/// may differ, so that tracking takes them for invalid.
fn tracking(gateway: &Gateway, chains: &[&Value], rules: &[&Value]) -> Finding {
    let wan = &gateway.wan;
    let translating: Vec<_> =
        rules.iter().filter(|rule| translates(rule) && may_concern(rule, "oifname", wan)).collect();
    let is_forwards = |rule: &&&Value| {
        chains.iter().any(|chain| is_forward(chain) && is_of(rule, chain)) && is_by_state(rule)
    };
    if translating.is_empty() && !rules.iter().any(|rule| is_forwards(&rule)) {
        return Finding::fine(TRACKING, "nothing depends on it");
    }
    let untracked = |name: &str| {
        rules
            .iter()
            .any(|rule| has_expression(rule, "notrack") && may_concern(rule, "iifname", name))
    };
    let lan = gateway.lan.iter().map(String::as_str);
    let needed: Vec<&str> = lan.chain([DEVICES[0]]).collect();
    if needed.iter().all(|name| untracked(name)) {
        return Finding::fine(TRACKING, "packets are tracked only where they leave for the hop");
    }
    // To the router itself, they are tracked as before.
    let mend = format!(
        "nft add table inet lasthop; \
         nft add chain inet lasthop raw '{{ type filter hook prerouting priority raw; }}'; \
         nft add rule inet lasthop raw iifname '{{ {} }}' fib daddr type unicast notrack",
        needed.join(", ")
    );
    if translating.iter().any(|rule| concerns_all(rule)) {
        let message = format!(
            "packets are tracked twice, and so the addresses of those that leave by {wan} would not be translated"
        );
        return Finding::error(TRACKING, message, Some(mend));
    }
    let message =
        "packets are tracked twice: addresses are not translated, and packets may count as invalid";
    Finding::advice(TRACKING, message, Some(mend))
}

/// A chain that drops what no rule accepts has to accept what goes to the gateway and comes from it.
fn forwarding(gateway: &Gateway, chain: &Value, rules: &[&Value]) -> Option<Finding> {
    let [lan, wan] = DEVICES;
    let rules: Vec<_> = rules.iter().filter(|rule| is_of(rule, chain)).collect();
    let accepts = |from: &str, to: &str, is_answer: bool| {
        rules.iter().any(|rule| {
            may_accept(rule)
                && may_concern(rule, "iifname", from)
                && may_concern(rule, "oifname", to)
                && (is_answer || !is_by_state(rule) || is_by_state_of_new(rule))
        })
    };
    let text = |key: &str| chain.get(key).and_then(Value::as_str).unwrap_or_default();
    let place = ["family", "table", "name"].map(text).join(" ");
    let mut missing = Vec::new();
    let mut mends = Vec::new();
    let mut need = |from: &str, to: &str, is_answer: bool, condition: &str| {
        if !accepts(from, to, is_answer) {
            missing.push(format!("{from} to {to}"));
            mends.push(format!(
                "nft insert rule {place} iifname {from} oifname {to}{condition} accept"
            ));
        }
    };
    for interface in &gateway.lan {
        need(interface, lan, false, "");
        // Those are not tracked.
        need(lan, interface, false, "");
    }
    need(wan, &gateway.wan, false, "");
    need(&gateway.wan, wan, true, " ct state established,related");
    if missing.is_empty() {
        return None;
    }
    let message = format!(
        "the chain {place} drops what no rule accepts, and none accepts packets from {}",
        missing.join(", ")
    );
    Some(Finding::error("firewall", message, Some(mends.join("; "))))
}

fn is_forward(chain: &Value) -> bool {
    chain["hook"] == "forward" && chain["type"] == "filter"
}

fn is_of(rule: &Value, chain: &Value) -> bool {
    rule["family"] == chain["family"]
        && rule["table"] == chain["table"]
        && rule["chain"] == chain["name"]
}

/// Whether a rule decides by the state of a connection.
fn is_by_state(rule: &Value) -> bool {
    states(rule).next().is_some()
        || expressions(rule).any(|expression| expression.pointer("/vmap/key/ct").is_some())
}

/// Whether it does so for packets of connections that are new, or not tracked.
fn is_by_state_of_new(rule: &Value) -> bool {
    states(rule).any(|state| {
        let right = state["right"].to_string();
        right.contains("\"new\"") || right.contains("\"untracked\"")
    })
}

fn states(rule: &Value) -> impl Iterator<Item = &Value> {
    let conditions = expressions(rule).filter_map(|expression| expression.get("match"));
    conditions
        .filter(|condition| condition.pointer("/left/ct/key").is_some_and(|key| key == "state"))
}

/// Other chains may accept, and so may maps.
fn may_accept(rule: &Value) -> bool {
    ["accept", "jump", "goto", "vmap", "xt"].into_iter().any(|name| has_expression(rule, name))
}

fn expressions(rule: &Value) -> impl Iterator<Item = &Value> {
    rule.get("expr").and_then(Value::as_array).into_iter().flatten()
}

fn has_expression(rule: &Value, name: &str) -> bool {
    expressions(rule).any(|expression| expression.get(name).is_some())
}

/// Rules that were made with iptables name the target of its own.
fn translates(rule: &Value) -> bool {
    has_expression(rule, "masquerade")
        || has_expression(rule, "snat")
        || expressions(rule).any(|expression| {
            let target = expression.get("xt").and_then(|target| target.get("name"));
            target.is_some_and(|name| name == "MASQUERADE" || name == "SNAT")
        })
}

/// Whether it depends on nothing but interfaces.
fn concerns_all(rule: &Value) -> bool {
    let mut conditions = expressions(rule).filter_map(|expression| expression.get("match"));
    conditions.all(|condition| condition.pointer("/left/meta/key").is_some())
        && !has_expression(rule, "xt")
}

/// Whether packets by a device may be what a rule is about.
fn may_concern(rule: &Value, key: &str, device: &str) -> bool {
    let mut conditions = expressions(rule).filter_map(|expression| expression.get("match"));
    conditions.all(|condition| {
        let about = condition.pointer("/left/meta/key").and_then(Value::as_str);
        if about != Some(key) && about != key.strip_suffix("name") {
            return true;
        }
        let right = condition.get("right").unwrap_or(&Value::Null);
        let named = match right {
            Value::String(name) => matches(name, device),
            _ => right.pointer("/set").and_then(Value::as_array).is_none_or(|names| {
                names.iter().any(|name| name.as_str().is_some_and(|name| matches(name, device)))
            }),
        };
        named == (condition.get("op").and_then(Value::as_str) != Some("!="))
    })
}

/// A name that ends in `*` stands for all that begin with it.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;
    use scenario::{Source, Style};
    use serde_json::json;

    fn judged_all(entries: &[Value]) -> Vec<Finding> {
        let source = Source::new("lan = [\"lan0\", \"lan1\"]\nwan = \"sat0\"\n", "lasthopd.toml");
        let gateway =
            Gateway::read(&source).unwrap_or_else(|error| panic!("{}", error.render(Style::Plain)));
        judge(&gateway, &json!({ "nftables": entries }))
    }

    fn judged(rules: &[Value]) -> Finding {
        let entries: Vec<Value> =
            rules.iter().map(|expr| json!({ "rule": { "expr": expr } })).collect();
        judged_all(&entries).remove(0)
    }

    fn by(key: &str, right: &Value) -> Value {
        json!({ "match": { "op": "==", "left": { "meta": { "key": key } }, "right": right } })
    }

    #[test]
    fn without_translation_towards_the_hop_there_is_nothing_to_advise() {
        assert_eq!(judged(&[]).severity, Severity::Fine);
        let elsewhere = json!([by("oifname", &json!("dsl0")), { "masquerade": null }]);
        assert_eq!(judged(&[elsewhere]).severity, Severity::Fine);
    }

    #[test]
    fn translation_needs_packets_untracked_where_they_come_from_the_lan() {
        let masquerade = json!([by("oifname", &json!("sat*")), { "masquerade": null }]);
        let iptables = json!([{ "xt": { "type": "target", "name": "MASQUERADE" } }]);
        let source = json!({ "match": {
            "op": "==", "left": { "payload": { "protocol": "ip", "field": "saddr" } }, "right": "10.0.0.9",
        } });
        let of_some = json!([source, { "masquerade": null }]);
        let part = json!([by("iifname", &json!("lan0")), { "notrack": null }]);
        let all = json!([by("iifname", &json!({ "set": ["lan0", "lan1", "lh-lan"] })), { "notrack": null }]);
        // It may be meant for others, but for everybody it is not.
        for (translation, severity) in [
            (masquerade, Severity::Error),
            (iptables, Severity::Advice),
            (of_some, Severity::Advice),
        ] {
            let finding = judged(std::slice::from_ref(&translation));
            assert_eq!(finding.severity, severity);
            assert!(finding.mend.unwrap().contains("iifname '{ lan0, lan1, lh-lan }' fib"));
            assert_eq!(judged(&[translation.clone(), part.clone()]).severity, severity);
            assert_eq!(judged(&[translation, all.clone()]).severity, Severity::Fine);
        }
    }

    fn chain(policy: &str) -> Value {
        json!({ "chain": {
            "family": "inet", "table": "f", "name": "forward", "type": "filter", "hook": "forward",
            "policy": policy,
        } })
    }

    fn rule(expr: &Value) -> Value {
        json!({ "rule": { "family": "inet", "table": "f", "chain": "forward", "expr": expr } })
    }

    #[test]
    fn a_filter_has_to_accept_what_goes_to_the_gateway_and_comes_from_it() {
        let answers = json!({ "match": {
            "op": "in", "left": { "ct": { "key": "state" } }, "right": ["established", "related"],
        } });
        let answers = rule(&json!([answers, { "accept": null }]));
        let users = rule(&json!([
            by("iifname", &json!("lan*")), by("oifname", &json!("sat0")), { "accept": null },
        ]));
        let ours = rule(&json!([by("iifname", &json!("lh-*")), { "accept": null }]));
        let to_us = rule(&json!([by("oifname", &json!("lh-*")), { "accept": null }]));
        let errors = |rules: &[&Value], policy: &str| {
            let mut entries = vec![chain(policy)];
            entries.extend(rules.iter().map(|rule| (*rule).clone()));
            let mut findings = judged_all(&entries);
            findings.retain(|finding| finding.severity == Severity::Error);
            findings
        };
        assert_eq!(errors(&[&answers, &users], "accept"), []);
        let found = errors(&[&answers, &users], "drop");
        assert_eq!(
            found[0].message,
            "the chain inet f forward drops what no rule accepts, and none accepts packets from lan0 to lh-lan, \
             lh-lan to lan0, lan1 to lh-lan, lh-lan to lan1, lh-wan to sat0"
        );
        assert_eq!(
            found[0].mend.as_deref().unwrap().split("; ").last(),
            Some("nft insert rule inet f forward iifname lh-wan oifname sat0 accept")
        );
        assert_eq!(errors(&[&answers, &users, &ours], "drop").len(), 1);
        assert_eq!(errors(&[&answers, &users, &ours, &to_us], "drop"), []);
        // Answers alone are known by their state.
        assert_eq!(errors(&[&users, &ours], "drop").len(), 1);
    }
}
