//! Address translation: with it, connection tracking is to see packets only once, when they leave.

use super::Finding;
use crate::network::DEVICES;
use scenario::Gateway;
use serde_json::Value;
use std::process::Command;

pub(super) fn examine(gateway: &Gateway) -> Option<Finding> {
    // Without nft, no address translation was set up with it. Its exit code says whether it may ask.
    let output = Command::new("nft").args(["--json", "list", "ruleset"]).output().ok()?;
    if !output.status.success() {
        let message =
            "nft does not tell the rules: whether addresses are translated was not examined";
        return Some(Finding::advice("connection tracking", message, None));
    }
    judge(gateway, &serde_json::from_slice(&output.stdout).ok()?)
}

/// What a rule set means for a gateway.
fn judge(gateway: &Gateway, rule_set: &Value) -> Option<Finding> {
    let entries = rule_set.get("nftables")?.as_array()?;
    let rules: Vec<&Value> = entries.iter().filter_map(|entry| entry.get("rule")).collect();
    let translated =
        rules.iter().any(|rule| translates(rule) && may_concern(rule, "oifname", &gateway.wan));
    if !translated {
        return Some(Finding::fine("connection tracking", "no address is translated"));
    }
    let untracked = |name: &str| {
        rules
            .iter()
            .any(|rule| has_expression(rule, "notrack") && may_concern(rule, "iifname", name))
    };
    let lan = gateway.lan.iter().map(String::as_str);
    let needed: Vec<&str> = lan.chain([DEVICES[0]]).collect();
    if needed.iter().all(|name| untracked(name)) {
        return Some(Finding::fine(
            "connection tracking",
            "packets are tracked only where addresses are translated",
        ));
    }
    let message = format!(
        "addresses are translated on {}, and packets are tracked twice: that costs half of the rate",
        gateway.wan
    );
    let mend = format!(
        "nft add table inet lasthop; \
         nft add chain inet lasthop raw '{{ type filter hook prerouting priority raw; }}'; \
         nft add rule inet lasthop raw iifname '{{ {} }}' notrack",
        needed.join(", ")
    );
    Some(Finding::advice("connection tracking", message, Some(mend)))
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

    fn judged(rules: &[Value]) -> Finding {
        let source = Source::new("lan = [\"lan0\", \"lan1\"]\nwan = \"sat0\"\n", "lasthopd.toml");
        let gateway =
            Gateway::read(&source).unwrap_or_else(|error| panic!("{}", error.render(Style::Plain)));
        let entries: Vec<Value> =
            rules.iter().map(|expr| json!({ "rule": { "expr": expr } })).collect();
        judge(&gateway, &json!({ "nftables": entries })).unwrap()
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
        let part = json!([by("iifname", &json!("lan0")), { "notrack": null }]);
        let all = json!([by("iifname", &json!({ "set": ["lan0", "lan1", "lh-lan"] })), { "notrack": null }]);
        for translation in [masquerade, iptables] {
            let finding = judged(std::slice::from_ref(&translation));
            assert_eq!(finding.severity, Severity::Advice);
            assert!(finding.mend.unwrap().contains("iifname '{ lan0, lan1, lh-lan }' notrack"));
            assert_eq!(judged(&[translation.clone(), part.clone()]).severity, Severity::Advice);
            assert_eq!(judged(&[translation, all.clone()]).severity, Severity::Fine);
        }
    }
}
