//! Connection tracking. It is to see packets of TCP and ICMP, which are forwarded twice, only where they leave for the
//! hop, and all others, which are forwarded once, as ever.

use super::Finding;
use super::firewall::{Program, RuleSet};
use super::rules::{
    ICMP, ICMPV6, TCP, UDP, concerns_all, is_by_state, is_forward, is_not_tracked, is_of,
    may_be_of, may_concern, may_not_be_tracked, translates,
};
use crate::network::DEVICES;
use scenario::{Gateway, Work};
use serde_json::Value;

/// What this is about, in findings.
const TRACKING: &str = "connection tracking";

/// The first time that a packet of a connection passes decides how its addresses are translated, and in the wrong
/// place: between two interfaces of which neither is the hop's. Between two halves of a connection, sequence numbers
/// may differ, so that tracking takes them for invalid.
pub(super) fn tracking(gateway: &Gateway, sets: &[RuleSet]) -> Finding {
    let wan = &gateway.wan;
    let rules = || sets.iter().flat_map(|set| &set.rules);
    let translating = |device: &str| -> Vec<&Value> {
        rules().filter(|rule| translates(rule) && may_concern(rule, "oifname", device)).collect()
    };
    let for_hop = translating(wan);
    // Connections that come out of a pair are not the other gateway's to translate.
    let mut for_lan = Vec::new();
    if let (Work::Pair(..), true) = (&gateway.work, for_hop.is_empty()) {
        for_lan = gateway.lan.iter().flat_map(|name| translating(name)).collect();
    }
    let is_filtered = sets.iter().any(|set| {
        let chains = || set.chains.iter().filter(|chain| is_forward(chain));
        set.rules.iter().any(|rule| is_by_state(rule) && chains().any(|chain| is_of(rule, chain)))
    });
    if for_hop.is_empty() && for_lan.is_empty() && !is_filtered {
        return Finding::fine(TRACKING, "nothing depends on it");
    }
    let lan = || gateway.lan.iter().map(String::as_str);
    let [to_lan, to_wan] = DEVICES;
    let (translating, by, needed): (_, _, Vec<&str>) = match for_lan.is_empty() {
        true => (for_hop, wan.clone(), lan().chain([to_lan]).collect()),
        false => (for_lan, gateway.lan.join(", "), vec![wan, to_wan]),
    };
    let is_untracked = |name: &str, protocol| {
        let mut rules =
            rules().filter(|rule| may_not_be_tracked(rule) && may_be_of(rule, protocol));
        rules.any(|rule| may_concern(rule, "iifname", name))
    };
    let is_done = needed.iter().all(|name| {
        is_untracked(name, TCP) && (is_untracked(name, ICMP) || is_untracked(name, ICMPV6))
    });
    let are_all_translated = translating.iter().any(|rule| concerns_all(rule));
    let finding = |is_error: bool, message: &str, mend| match is_error {
        true => Finding::error(TRACKING, message, Some(mend)),
        false => Finding::advice(TRACKING, message, Some(mend)),
    };
    let mend = untracking(sets, &needed);
    if !is_done {
        let message = match are_all_translated {
            true => &format!(
                "packets are tracked twice, and so the addresses of those that leave by {by} would not be translated"
            ),
            false => {
                "packets are tracked twice: addresses are not translated, and packets may count as invalid"
            }
        };
        return finding(are_all_translated, message, mend);
    }
    let interfaces: Vec<_> = needed.into_iter().filter(|name| !DEVICES.contains(name)).collect();
    let too_much = too_much(sets, &interfaces);
    if too_much.is_empty() {
        let message = format!("TCP and ICMP are tracked only where they leave by {by}");
        return Finding::fine(TRACKING, message);
    }
    let is_sure = too_much.iter().any(|(_, rule)| is_not_tracked(rule));
    let removed = too_much.into_iter().map(|(program, rule)| removing(program, rule));
    let mend = removed.chain([mend]).collect::<Vec<_>>().join("; ");
    let message = "packets that do not go to the gateway, such as UDP, are not tracked either: their addresses are \
                   not translated, and what answers them counts as new";
    finding(are_all_translated && is_sure, message, mend)
}

/// The rules by which packets that arrive by interfaces are not tracked, although they do not go to the gateway.
fn too_much<'a>(sets: &'a [RuleSet], interfaces: &[&str]) -> Vec<(Program, &'a Value)> {
    let is_such = |rule: &Value| {
        let concerns = |name: &&str| may_concern(rule, "iifname", name);
        may_not_be_tracked(rule)
            && concerns_all(rule)
            && may_be_of(rule, UDP)
            && interfaces.iter().any(concerns)
    };
    let of = |set: &'a RuleSet| set.rules.iter().map(|rule| (set.program, rule));
    sets.iter().flat_map(of).filter(|(_, rule)| is_such(rule)).collect()
}

/// The command that removes a rule of a table for what is not tracked.
fn removing(program: Program, rule: &Value) -> String {
    let text = |key: &str| rule[key].as_str().unwrap_or_default();
    match program {
        Program::Nft => {
            let place = ["family", "table", "chain"].map(text).join(" ");
            format!("nft delete rule {place} handle {}", rule["handle"])
        }
        Program::Iptables(program) => format!("{program} -t raw -D {}", text("line")),
    }
}

/// The command after which TCP and ICMP that arrive by devices are not tracked; to the router itself, they are as
/// before.
fn untracking(sets: &[RuleSet], devices: &[&str]) -> String {
    if sets.iter().any(|set| set.program == Program::Nft) {
        return format!(
            "nft add table inet lasthop; \
             nft add chain inet lasthop raw '{{ type filter hook prerouting priority raw; }}'; \
             nft add rule inet lasthop raw iifname '{{ {} }}' meta l4proto '{{ tcp, icmp, ipv6-icmp }}' \
             fib daddr type unicast notrack",
            devices.join(", ")
        );
    }
    let programs = sets.iter().filter_map(|set| match set.program {
        Program::Nft => None,
        Program::Iptables(name) => Some(name),
    });
    let of = |program: &'static str| {
        let icmp = if program.starts_with("ip6") { ICMPV6.0 } else { ICMP.0 };
        let each = devices.iter().flat_map(move |device| [TCP.0, icmp].map(|of| (device, of)));
        each.map(move |(device, of)| {
            format!(
                "{program} -t raw -I PREROUTING -i {device} -p {of} -m addrtype --dst-type UNICAST -j CT --notrack"
            )
        })
    };
    programs.flat_map(of).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;
    use crate::doctor::firewall::tests::{by, judged_all};
    use serde_json::json;

    fn judged(rules: &[Value]) -> Finding {
        let entries: Vec<Value> =
            rules.iter().map(|expr| json!({ "rule": { "expr": expr } })).collect();
        judged_all(&entries).remove(0)
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
        let unknown = json!({ "xt": { "type": "match", "name": "set" } });
        let iptables_of_some =
            json!([unknown, { "xt": { "type": "target", "name": "MASQUERADE" } }]);
        let split = by("l4proto", &json!({ "set": ["tcp", "icmp", 58] }));
        let part = json!([by("iifname", &json!("lan0")), split, { "notrack": null }]);
        let devices = by("iifname", &json!({ "set": ["lan0", "lan1", "lh-lan"] }));
        let all = json!([devices, split, { "notrack": null }]);
        // It may be meant for others, but for everybody it is not.
        for (translation, severity) in [
            (masquerade, Severity::Error),
            (iptables, Severity::Error),
            (iptables_of_some, Severity::Advice),
            (of_some, Severity::Advice),
        ] {
            let finding = judged(std::slice::from_ref(&translation));
            assert_eq!(finding.severity, severity);
            assert!(
                finding.mend.unwrap().contains("iifname '{ lan0, lan1, lh-lan }' meta l4proto")
            );
            assert_eq!(judged(&[translation.clone(), part.clone()]).severity, severity);
            assert_eq!(judged(&[translation, all.clone()]).severity, Severity::Fine);
        }
    }

    #[test]
    fn what_does_not_go_to_the_gateway_is_to_be_tracked() {
        let masquerade = json!({ "expr": [by("oifname", &json!("sat0")), { "masquerade": null }] });
        let judged = |conditions: &[Value], verdict: &Value| {
            let expr: Vec<_> = conditions.iter().chain([verdict]).collect();
            let rule = json!({
                "family": "inet", "table": "lasthop", "chain": "raw", "handle": 7, "expr": expr,
            });
            judged_all(&[json!({ "rule": masquerade }), json!({ "rule": rule })]).remove(0)
        };
        let notrack = json!({ "notrack": null });
        let unicast = json!({ "match": {
            "op": "==", "left": { "fib": { "result": "type", "flags": ["daddr"] } }, "right": "unicast",
        } });
        let all = [by("iifname", &json!({ "set": ["lan0", "lan1", "lh-lan"] })), unicast];
        let finding = judged(&all, &notrack);
        assert!(finding.message.contains("such as UDP"), "{finding}");
        assert_eq!(finding.severity, Severity::Error);
        let mend = finding.mend.unwrap();
        assert!(
            mend.starts_with("nft delete rule inet lasthop raw handle 7; nft add table"),
            "{mend}"
        );
        // iptables' target may be meant for something else.
        let target = json!({ "xt": { "type": "target", "name": "CT" } });
        assert_eq!(judged(&all, &target).severity, Severity::Advice);
        let field = |of: &str, field: &str, right: &Value| {
            let left = json!({ "payload": { "protocol": of, "field": field } });
            json!({ "match": { "op": "==", "left": left, "right": right } })
        };
        let mut not_udp = by("l4proto", &json!({ "set": [17, "sctp"] }));
        not_udp["match"]["op"] = json!("!=");
        for (condition, severity) in [
            (by("l4proto", &json!({ "set": ["icmp", "tcp", "ipv6-icmp"] })), Severity::Fine),
            (by("l4proto", &json!({ "set": [1, 6, 58] })), Severity::Fine),
            (by("l4proto", &json!("@those")), Severity::Error),
            (by("l4proto", &json!({ "set": ["icmp", "tcp", "udp"] })), Severity::Error),
            (not_udp, Severity::Fine),
            // Some addresses are none of the gateway's business.
            (field("ip", "daddr", &json!("10.0.0.9")), Severity::Fine),
            // ICMP is missing, or TCP.
            (by("l4proto", &json!("tcp")), Severity::Error),
            (field("ip", "protocol", &json!("tcp")), Severity::Error),
            (field("icmpv6", "type", &json!("echo-request")), Severity::Error),
        ] {
            let conditions = [&all[..], std::slice::from_ref(&condition)].concat();
            assert_eq!(judged(&conditions, &notrack).severity, severity, "{condition}");
        }
    }
}
