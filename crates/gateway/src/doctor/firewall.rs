//! Rules of nftables and iptables. Packets of TCP and ICMP are forwarded twice, to the gateway and from it, and filters
//! are to accept them both times.

use super::rules::{
    ESP, TCP, is_by_state, is_by_state_of_new, is_forward, is_of, is_strict, may_accept, may_be_of,
    may_concern,
};
use super::tracking::tracking;
use super::{Finding, iptables};
use crate::network::{self, DEVICES};
use live::netlink::Family;
use scenario::{Gateway, Mode};
use serde_json::Value;
use std::process::Command;

/// What shows rules, and changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Nft,
    /// Under this name, for one version of IP.
    Iptables(&'static str),
}

/// The rules that a program shows, as nft shows its own.
pub(super) struct RuleSet {
    pub(super) program: Program,
    pub(super) chains: Vec<Value>,
    pub(super) rules: Vec<Value>,
}

pub(super) fn examine(gateway: &Gateway) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut sets = Vec::new();
    // Without nft, no rules were set up with it.
    if let Ok(output) = Command::new("nft").args(["--json", "list", "ruleset"]).output() {
        // Its exit code says whether it may ask.
        if output.status.success() {
            sets.push(of_nft(serde_json::from_slice(&output.stdout).unwrap_or_default()));
        } else {
            let message = "nft does not tell the rules: they were not examined";
            findings.push(Finding::advice("firewall", message, None));
        }
    }
    for family in Family::ALL {
        match iptables::rules(family) {
            Ok(set) => sets.extend(set),
            Err(program) => {
                let message = format!(
                    "there are rules of {program}, and no {program}-save tells them: they were not examined"
                );
                let mend = format!("{program}-save shows them, where it is installed");
                findings.push(Finding::advice("firewall", message, Some(mend)));
            }
        }
    }
    if !sets.is_empty() {
        findings.extend(judge(gateway, &sets));
    }
    findings
}

/// What nft prints.
fn of_nft(mut printed: Value) -> RuleSet {
    let (mut chains, mut rules) = (Vec::new(), Vec::new());
    for entry in printed.get_mut("nftables").and_then(Value::as_array_mut).into_iter().flatten() {
        chains.extend(entry.get_mut("chain").map(Value::take));
        rules.extend(entry.get_mut("rule").map(Value::take));
    }
    RuleSet { program: Program::Nft, chains, rules }
}

/// What rules mean for a gateway.
fn judge(gateway: &Gateway, sets: &[RuleSet]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Packets of IPv6 to be marked are the same both times that they are forwarded.
    if gateway.mode() != Mode::Spep && !network::rules(gateway).is_empty() {
        findings.push(tracking(gateway, sets));
    }
    for set in sets {
        let strict = set.chains.iter().filter(|chain| is_forward(chain) && is_strict(set, chain));
        findings.extend(strict.filter_map(|chain| forwarding(gateway, set, chain)));
    }
    findings
}

/// A chain that drops what no rule accepts has to accept what goes to the gateway and comes from it.
fn forwarding(gateway: &Gateway, set: &RuleSet, chain: &Value) -> Option<Finding> {
    let [lan, wan] = DEVICES;
    let (protocol, is_one_way) = match gateway.mode() {
        Mode::Spep => (ESP, true),
        _ => (TCP, false),
    };
    let rules: Vec<_> = set.rules.iter().filter(|rule| is_of(rule, chain)).collect();
    let accepts = |from: &str, to: &str, is_answer: bool| {
        // Over the hop, it is under ESP.
        let is_of_hop = from == gateway.wan || to == gateway.wan;
        let protocol = if gateway.esp.is_some() && is_of_hop { ESP } else { protocol };
        rules.iter().any(|rule| {
            may_accept(rule)
                && may_be_of(rule, protocol)
                && may_concern(rule, "iifname", from)
                && may_concern(rule, "oifname", to)
                && (is_answer || !is_by_state(rule) || is_by_state_of_new(rule))
        })
    };
    let text = |key: &str| chain.get(key).and_then(Value::as_str).unwrap_or_default();
    let place = match set.program {
        Program::Nft => ["family", "table", "name"].map(text).join(" "),
        Program::Iptables(program) => format!("{} of {program}", text("name")),
    };
    let mut missing = Vec::new();
    let mut mends = Vec::new();
    let mut need = |from: &str, to: &str, is_answer: bool| {
        let is_of_answers = from == gateway.wan || from == lan;
        if (is_one_way && is_of_answers) || accepts(from, to, is_answer) {
            return;
        }
        missing.push(format!("{from} to {to}"));
        mends.push(match set.program {
            Program::Nft => {
                let condition = if is_answer { " ct state established,related" } else { "" };
                format!("nft insert rule {place} iifname {from} oifname {to}{condition} accept")
            }
            Program::Iptables(program) => {
                let condition = match is_answer {
                    true => " -m conntrack --ctstate ESTABLISHED,RELATED",
                    false => "",
                };
                format!("{program} -I {} -i {from} -o {to}{condition} -j ACCEPT", text("name"))
            }
        });
    };
    for interface in &gateway.lan {
        need(interface, lan, false);
        // Those are not tracked.
        need(lan, interface, false);
    }
    need(wan, &gateway.wan, false);
    if !network::rules(gateway).is_empty() {
        need(&gateway.wan, wan, true);
    }
    if missing.is_empty() {
        return None;
    }
    let message = format!(
        "the chain {place} drops what no rule accepts, and none accepts packets from {}",
        missing.join(", ")
    );
    Some(Finding::error("firewall", message, Some(mends.join("; "))))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::doctor::Severity;
    use scenario::{Source, Style};
    use serde_json::json;

    pub(in crate::doctor) fn judged_all(entries: &[Value]) -> Vec<Finding> {
        judged_of(entries, "")
    }

    /// With a configuration that has these keys besides.
    fn judged_of(entries: &[Value], keys: &str) -> Vec<Finding> {
        let text = format!("lan = [\"lan0\", \"lan1\"]\nwan = \"sat0\"\n{keys}");
        let source = Source::new(text, "lasthopd.toml");
        let gateway =
            Gateway::read(&source).unwrap_or_else(|error| panic!("{}", error.render(Style::Plain)));
        judge(&gateway, &[of_nft(json!({ "nftables": entries }))])
    }

    pub(in crate::doctor) fn by(key: &str, right: &Value) -> Value {
        json!({ "match": { "op": "==", "left": { "meta": { "key": key } }, "right": right } })
    }

    #[test]
    fn where_there_is_no_nft_the_commands_are_those_of_iptables() {
        let source = Source::new("lan = \"lan0\"\nwan = \"sat0\"\n", "lasthopd.toml");
        let gateway =
            Gateway::read(&source).unwrap_or_else(|error| panic!("{}", error.render(Style::Plain)));
        let masquerade = json!([by("oifname", &json!("sat0")), { "masquerade": null }]);
        let chain = json!({
            "family": "ip", "table": "filter", "name": "FORWARD", "type": "filter", "hook": "forward",
            "policy": "drop",
        });
        let set = RuleSet {
            program: Program::Iptables("iptables"),
            chains: vec![chain],
            rules: vec![json!({ "expr": masquerade })],
        };
        let findings = judge(&gateway, &[set]);
        let mends: Vec<_> =
            findings.iter().map(|finding| finding.mend.as_deref().unwrap()).collect();
        assert_eq!(
            mends,
            [
                "iptables -t raw -I PREROUTING -i lan0 -p tcp -m addrtype --dst-type UNICAST -j CT --notrack; \
                 iptables -t raw -I PREROUTING -i lan0 -p icmp -m addrtype --dst-type UNICAST -j CT --notrack; \
                 iptables -t raw -I PREROUTING -i lh-lan -p tcp -m addrtype --dst-type UNICAST -j CT --notrack; \
                 iptables -t raw -I PREROUTING -i lh-lan -p icmp -m addrtype --dst-type UNICAST -j CT --notrack",
                "iptables -I FORWARD -i lan0 -o lh-lan -j ACCEPT; \
                 iptables -I FORWARD -i lh-lan -o lan0 -j ACCEPT; \
                 iptables -I FORWARD -i lh-wan -o sat0 -j ACCEPT; \
                 iptables -I FORWARD -i sat0 -o lh-wan -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
            ]
        );
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
        // A rule at the end is as good as a policy.
        let reject =
            rule(&json!([{ "counter": {} }, { "xt": { "type": "target", "name": "REJECT" } }]));
        assert_eq!(errors(&[&answers, &users, &reject], "accept").len(), 1);
        assert_eq!(errors(&[&answers, &users, &ours, &to_us, &reject], "accept"), []);
        let some = rule(&json!([by("iifname", &json!("dsl0")), { "drop": null }]));
        assert_eq!(errors(&[&answers, &users, &some], "accept"), []);
        // Answers alone are known by their state.
        assert_eq!(errors(&[&users, &ours], "drop").len(), 1);
    }

    #[test]
    fn where_packets_are_marked_it_has_to_accept_esp_on_its_way_to_the_hop() {
        let users = rule(&json!([
            by("iifname", &json!("lan*")), by("oifname", &json!("sat0")), { "accept": null },
        ]));
        let masquerade = rule(&json!([by("oifname", &json!("sat0")), { "masquerade": null }]));
        let judged = |rules: &[&Value]| {
            let mut entries = vec![chain("drop"), masquerade.clone()];
            entries.extend(rules.iter().map(|rule| (*rule).clone()));
            judged_of(&entries, "mode = \"spep\"")
        };
        let found = judged(&[&users]);
        // Of the tracking of packets that are the same both times, nothing is said.
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            finding.message,
            "the chain inet f forward drops what no rule accepts, and none accepts packets from lan0 to lh-lan, \
             lan1 to lh-lan, lh-wan to sat0"
        );
        let of =
            |protocol: &str| rule(&json!([by("l4proto", &json!(protocol)), { "accept": null }]));
        assert_eq!(judged(&[&of("tcp")]).len(), 1);
        assert_eq!(judged(&[&of("esp")]), []);
    }

    #[test]
    fn a_gateway_under_esp_needs_tcp_on_one_side_and_esp_on_the_other() {
        let of =
            |protocol: &str| rule(&json!([by("l4proto", &json!(protocol)), { "accept": null }]));
        let judged = |rules: &[&str]| {
            let mut entries = vec![chain("drop")];
            entries.extend(rules.iter().map(|protocol| of(protocol)));
            let found = judged_of(&entries, "mode = \"split\"\nesp = \"fixed\"");
            let errors = found.into_iter().filter(|finding| finding.severity == Severity::Error);
            errors.map(|finding| finding.message).collect::<Vec<_>>()
        };
        let message = |ways: &str| {
            let start = "the chain inet f forward drops what no rule accepts, and none accepts packets from";
            vec![format!("{start} {ways}")]
        };
        assert_eq!(judged(&["tcp"]), message("lh-wan to sat0, sat0 to lh-wan"));
        let of_lan = "lan0 to lh-lan, lh-lan to lan0, lan1 to lh-lan, lh-lan to lan1";
        assert_eq!(judged(&["esp"]), message(of_lan));
        assert_eq!(judged(&["tcp", "esp"]), Vec::<String>::new());
    }
}
