//! What a chain and a rule do, in the form in which nft prints them, as far as the doctor asks.

use super::firewall::RuleSet;
use serde_json::Value;

pub(super) fn is_forward(chain: &Value) -> bool {
    chain["hook"] == "forward" && chain["type"] == "filter"
}

/// Whether a chain drops what none of its rules accepts: by its policy, or by a rule for all.
pub(super) fn is_strict(set: &RuleSet, chain: &Value) -> bool {
    let drops_all = |rule: &Value| {
        let is_drop = has_expression(rule, "drop")
            || has_expression(rule, "reject")
            || targets(rule).any(|name| name == "DROP" || name == "REJECT");
        is_drop && is_unconditional(rule)
    };
    chain["policy"] == "drop" || set.rules.iter().any(|rule| is_of(rule, chain) && drops_all(rule))
}

pub(super) fn is_of(rule: &Value, chain: &Value) -> bool {
    rule["family"] == chain["family"]
        && rule["table"] == chain["table"]
        && rule["chain"] == chain["name"]
}

/// Whether a rule decides by the state of a connection.
pub(super) fn is_by_state(rule: &Value) -> bool {
    states(rule).next().is_some()
        || expressions(rule).any(|expression| expression.pointer("/vmap/key/ct").is_some())
}

/// Whether it does so for packets of connections that are new, or not tracked.
pub(super) fn is_by_state_of_new(rule: &Value) -> bool {
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
pub(super) fn may_accept(rule: &Value) -> bool {
    ["accept", "jump", "goto", "vmap"].into_iter().any(|name| has_expression(rule, name))
}

fn expressions(rule: &Value) -> impl Iterator<Item = &Value> {
    rule.get("expr").and_then(Value::as_array).into_iter().flatten()
}

fn has_expression(rule: &Value, name: &str) -> bool {
    expressions(rule).any(|expression| expression.get(name).is_some())
}

/// What rules that were made with iptables do, where nft has no word of its own for it.
fn targets(rule: &Value) -> impl Iterator<Item = &str> {
    let foreign = expressions(rule).filter_map(|expression| expression.get("xt"));
    let targets = foreign.filter(|foreign| foreign["type"] == "target");
    targets.filter_map(|target| target["name"].as_str())
}

pub(super) fn translates(rule: &Value) -> bool {
    has_expression(rule, "masquerade")
        || has_expression(rule, "snat")
        || targets(rule).any(|name| name == "MASQUERADE" || name == "SNAT")
}

/// nft does not say what iptables' target `CT` does.
pub(super) fn may_not_be_tracked(rule: &Value) -> bool {
    is_not_tracked(rule) || targets(rule).any(|name| name == "CT" || name == "NOTRACK")
}

/// Whether it surely keeps packets from being tracked.
pub(super) fn is_not_tracked(rule: &Value) -> bool {
    has_expression(rule, "notrack")
}

/// Whether it depends on nothing but interfaces, the protocol, and whether packets are for this machine or others.
pub(super) fn concerns_all(rule: &Value) -> bool {
    conditions(rule).all(|condition| {
        let asks = |path: &str| condition.pointer(path).is_some();
        asks("/left/meta/key") || asks("/left/fib") || condition["name"] == "addrtype"
    })
}

fn is_unconditional(rule: &Value) -> bool {
    conditions(rule).next().is_none() && !has_expression(rule, "limit")
}

/// The conditions of a rule; of some of iptables, nft tells nothing but their names.
fn conditions(rule: &Value) -> impl Iterator<Item = &Value> {
    expressions(rule).filter_map(|expression| {
        let foreign = expression.get("xt").filter(|foreign| foreign["type"] != "target");
        expression.get("match").or(foreign)
    })
}

/// Whether packets by a device may be what a rule is about.
pub(super) fn may_concern(rule: &Value, key: &str, device: &str) -> bool {
    conditions(rule).all(|condition| {
        let about = condition.pointer("/left/meta/key").and_then(Value::as_str);
        if about != Some(key) && about != key.strip_suffix("name") {
            return true;
        }
        may_hold(condition, |right| Some(matches(right.as_str()?, device)))
    })
}

/// A protocol over IP, with its name in nft and iptables, and its number.
pub(super) type Protocol = (&'static str, u64);

pub(super) const TCP: Protocol = ("tcp", 6);
pub(super) const UDP: Protocol = ("udp", 17);
pub(super) const ICMP: Protocol = ("icmp", 1);
pub(super) const ESP: Protocol = ("esp", 50);
pub(super) const ICMPV6: Protocol = ("ipv6-icmp", 58);

/// Whether packets of a protocol may be what a rule is about.
pub(super) fn may_be_of(rule: &Value, (name, number): Protocol) -> bool {
    conditions(rule).all(|condition| {
        let text = |path: &str| condition.pointer(path).and_then(Value::as_str);
        match (text("/left/meta/key"), text("/left/payload/protocol"), text("/left/payload/field"))
        {
            (Some("l4proto"), ..)
            | (_, Some("ip"), Some("protocol"))
            | (_, Some("ip6"), Some("nexthdr")) => may_hold(condition, |right| match right {
                Value::String(of) => Some(of == name),
                Value::Number(of) => Some(of.as_u64() == Some(number)),
                _ => None,
            }),
            // A field of its own header.
            (_, Some("icmpv6"), _) => name == "ipv6-icmp",
            (_, Some(of @ ("tcp" | "udp" | "icmp")), _) => of == name,
            _ => true,
        }
    })
}

/// Whether a condition may hold, if `is` says whether one of its values is meant, as far as that is known.
fn may_hold(condition: &Value, is: impl Fn(&Value) -> Option<bool>) -> bool {
    let right = &condition["right"];
    // What is in a set with a name is not said here.
    if right.as_str().is_some_and(|name| name.starts_with('@')) {
        return true;
    }
    let values = right.pointer("/set").and_then(Value::as_array);
    let mut values = values.map_or(std::slice::from_ref(right), Vec::as_slice).iter().map(is);
    match condition["op"] == "!=" {
        true => values.all(|is| is != Some(true)),
        false => values.any(|is| is != Some(false)),
    }
}

/// A name that ends in `*` stands for all that begin with it.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    }
}
