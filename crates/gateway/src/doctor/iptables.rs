//! Rules that were made with iptables-legacy, which nft does not show: in the form in which nft shows its own.

use super::firewall::{Program, RuleSet};
use live::netlink::Family;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;

/// The rules for a version of IP; `None` if there are none.
///
/// # Errors
/// If there are some, and no program shows them: which one should.
pub(super) fn rules(family: Family) -> Result<Option<RuleSet>, &'static str> {
    let (names, programs) = match family {
        Family::V4 => ("ip_tables_names", ["iptables-legacy", "iptables"]),
        Family::V6 => ("ip6_tables_names", ["ip6tables-legacy", "ip6tables"]),
    };
    // The kernel names the tables that are in use. Only root can read that, as an operator is, but not the service.
    let used = std::fs::read_to_string(format!("/proc/thread-self/net/{names}"));
    if used.unwrap_or_default().is_empty() {
        return Ok(None);
    }
    for program in programs {
        let Ok(output) = Command::new(format!("{program}-save")).output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout);
        // Its namesake shows what nft shows.
        if output.status.success() && !text.lines().next().unwrap_or_default().contains("nf_tables")
        {
            return Ok(Some(read(family, Program::Iptables(program), &text)));
        }
    }
    Err(programs[0])
}

/// What `iptables-save` prints.
fn read(family: Family, program: Program, text: &str) -> RuleSet {
    let family = if family == Family::V4 { "ip" } else { "ip6" };
    let mut set = RuleSet { program, chains: Vec::new(), rules: Vec::new() };
    let mut table = "";
    let mut own = BTreeSet::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
            own.clear();
        } else if let Some(chain) = line.strip_prefix(':') {
            let mut words = chain.split(' ');
            let (name, policy) = (words.next().unwrap_or_default(), words.next());
            if policy == Some("-") {
                own.insert(name);
            }
            set.chains.push(json!({
                "family": family,
                "table": table,
                "name": name,
                "type": if table == "nat" { "nat" } else { "filter" },
                "hook": name.to_lowercase(),
                "policy": policy.unwrap_or_default().to_lowercase(),
            }));
        } else if line.starts_with("-A ") {
            let (chain, expressions) = rule(&words(line), &own);
            set.rules.push(json!({
                "family": family, "table": table, "chain": chain, "expr": expressions,
                "line": line.trim_start_matches("-A "),
            }));
        }
    }
    set
}

/// The chain and the expressions of a rule. Conditions about anything but devices, protocols and the state of
/// connections are only said to be there.
fn rule<'a>(words: &[&'a str], own: &BTreeSet<&str>) -> (&'a str, Vec<Value>) {
    let mut chain = "";
    let mut expressions = Vec::new();
    let mut is_negated = false;
    let mut words = words.iter().copied();
    let meta = |key: &str, right: &str, is_negated: bool| {
        json!({ "match": {
            "op": if is_negated { "!=" } else { "==" },
            "left": { "meta": { "key": key } },
            "right": right,
        } })
    };
    let device = |name: &str| name.replace('+', "*");
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_default();
        match word {
            "!" => {
                is_negated = true;
                continue;
            }
            "-A" => chain = value(),
            "-i" => expressions.push(meta("iifname", &device(value()), is_negated)),
            "-o" => expressions.push(meta("oifname", &device(value()), is_negated)),
            "-p" => expressions.push(meta("l4proto", value(), is_negated)),
            "--dst-type" => {
                expressions.push(json!({ "xt": { "type": "match", "name": "addrtype" } }));
            }
            "--ctstate" | "--state" => {
                let states: Vec<String> = value().split(',').map(str::to_lowercase).collect();
                expressions.push(json!({ "match": {
                    "op": if is_negated { "!=" } else { "in" },
                    "left": { "ct": { "key": "state" } },
                    "right": states,
                } }));
            }
            // What they say follows, or nothing.
            "-m" | "--comment" => drop(value()),
            "-j" | "-g" => {
                let target = value();
                let is_untracked = target == "NOTRACK" || words.any(|word| word == "--notrack");
                expressions.push(match target {
                    "ACCEPT" => json!({ "accept": null }),
                    "MASQUERADE" => json!({ "masquerade": null }),
                    "SNAT" => json!({ "snat": null }),
                    _ if is_untracked => json!({ "notrack": null }),
                    _ if own.contains(target) => json!({ "jump": { "target": target } }),
                    _ => json!({ "xt": { "type": "target", "name": target } }),
                });
                break;
            }
            _ if word.starts_with('-') => {
                expressions.push(json!({ "xt": { "type": "match", "name": word } }));
            }
            // The value of such a condition.
            _ => {}
        }
        is_negated = false;
    }
    (chain, expressions)
}

/// The words of a line; what is in quotes is one.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_at(quoted_len(quoted)),
            None => rest.split_at(rest.find(' ').unwrap_or(rest.len())),
        };
        words.push(word);
        rest = after.strip_prefix('"').unwrap_or(after).trim_start();
    }
    words
}

/// Where the closing quote of a text is, which has `\` before quotes of its own.
fn quoted_len(text: &str) -> usize {
    let mut is_escaped = false;
    let quote = |letter: char| {
        let found = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        found
    };
    text.find(quote).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_with_what_the_doctor_asks_for() {
        let text = r#"# Generated by iptables-save v1.8.9 on Thu Nov 26 08:15:44 2026
*filter
:FORWARD DROP [0:0]
:users - [0:0]
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD ! -i lan0 -o sat+ -m comment --comment "a \" -j b" -j users
-A users -s 10.0.0.0/8 -j REJECT --reject-with icmp-port-unreachable
COMMIT
*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -i lan0 -p icmp -m addrtype --dst-type UNICAST -j CT --notrack
COMMIT
"#;
        let set = read(Family::V4, Program::Iptables("iptables-legacy"), text);
        let hooks: Vec<_> = set.chains.iter().map(|chain| chain["hook"].clone()).collect();
        assert_eq!(hooks, ["forward", "users", "prerouting"]);
        assert_eq!(set.chains[0]["policy"], "drop");
        let expected = [
            json!([
                { "match": { "op": "in", "left": { "ct": { "key": "state" } }, "right": ["related", "established"] } },
                { "accept": null },
            ]),
            json!([
                { "match": { "op": "!=", "left": { "meta": { "key": "iifname" } }, "right": "lan0" } },
                { "match": { "op": "==", "left": { "meta": { "key": "oifname" } }, "right": "sat*" } },
                { "jump": { "target": "users" } },
            ]),
            json!([{ "xt": { "type": "match", "name": "-s" } }, { "xt": { "type": "target", "name": "REJECT" } }]),
            json!([
                { "match": { "op": "==", "left": { "meta": { "key": "iifname" } }, "right": "lan0" } },
                { "match": { "op": "==", "left": { "meta": { "key": "l4proto" } }, "right": "icmp" } },
                { "xt": { "type": "match", "name": "addrtype" } },
                { "notrack": null },
            ]),
        ];
        let found: Vec<_> = set.rules.iter().map(|rule| rule["expr"].clone()).collect();
        assert_eq!(found, expected);
        assert_eq!(set.rules[2]["chain"], "users");
        assert_eq!(set.rules[3]["table"], "raw");
    }
}
