//! Keys that are refused, because nothing would come of them.

use super::Mode;
use super::written::Written;
use crate::reading::document::Node;
use crate::reading::error::Problem;
use middlebox::HopTransport;

/// Keys that some modes alone have a use for, and how these are called.
const OF_MODES: [(&[&str], &[Mode], &str); 11] = [
    (&["peer", "peer_key", "key", "listen", "mtu"], &[Mode::Pair], "mode \"pair\""),
    (
        &["share"],
        &[Mode::Pair, Mode::Station, Mode::Mobile],
        "modes \"pair\", \"station\" and \"mobile\"",
    ),
    (&["hop"], &[Mode::Mobile], "mode \"mobile\""),
    (
        &["connect", "connections_per_user", "memory", "workers"],
        &[Mode::Spoof, Mode::Split, Mode::Pair],
        "modes \"spoof\", \"split\" and \"pair\"",
    ),
    (&["network_key"], &[Mode::Station, Mode::Mobile], "modes \"station\" and \"mobile\""),
    (
        &["connections"],
        &[Mode::Spoof, Mode::Split, Mode::Pair, Mode::Station],
        "modes \"spoof\", \"split\", \"pair\" and \"station\"",
    ),
    (
        &["lan"],
        &[Mode::Spoof, Mode::Split, Mode::Pair, Mode::Station, Mode::Spep],
        "modes other than \"mobile\" and \"notify\"",
    ),
    (
        &["rate", "cache", "teardown", "records", "profile", "tcp"],
        &[Mode::Spoof, Mode::Split, Mode::Pair, Mode::Station, Mode::Mobile],
        "modes other than \"spep\" and \"notify\"",
    ),
    (&["esp", "esp_key", "esp_networks", "esp_mtu"], &[Mode::Split], "mode \"split\""),
    (&["data_path", "flows", "idle"], &[Mode::Spep], "mode \"spep\""),
    (&["link_socket", "notices"], &[Mode::Notify], "mode \"notify\""),
];

/// Keys of a mobile host for which SRP alone has a use.
const OF_SRP: [&str; 4] = ["rate", "share", "cache", "teardown"];

/// Refuses keys that are of no use with others.
pub(super) fn refuse(root: &Node<'_>, written: &Written, problems: &mut Vec<Problem>) {
    refuse_others(root, written.mode, problems);
    if written.mode == Mode::Split {
        refuse_esp(root, problems);
    }
    if written.mode == Mode::Mobile && written.hop == HopTransport::Tcp {
        refuse_srp(root, problems);
    }
}

/// Refuses keys for which a mobile host has no use, because its connections go over the hop by TCP.
fn refuse_srp(root: &Node<'_>, problems: &mut Vec<Problem>) {
    let Some(table) = root.get_ref().as_table() else { return };
    for (key, value) in OF_SRP.iter().filter_map(|&key| Some((key, table.get(key)?))) {
        let message = format!("`{key}` needs `hop = \"srp\"`");
        let help = "by TCP, the mobile host's connections end at the base station".to_owned();
        problems.push(Problem::at(value.span(), message).help(help));
    }
}

/// Refuses keys of ESP where there is none.
fn refuse_esp(root: &Node<'_>, problems: &mut Vec<Problem>) {
    let Some(table) = root.get_ref().as_table() else { return };
    if table.contains_key("esp") {
        return;
    }
    let of_esp = ["esp_key", "esp_networks", "esp_mtu"];
    for (key, value) in of_esp.into_iter().filter_map(|key| Some((key, table.get(key)?))) {
        let message = format!("`{key}` needs `esp`");
        let help = "`esp = \"fixed\"` beside the fixed host, `\"mobile\"` beside the mobile one";
        problems.push(Problem::at(value.span(), message).help(help.to_owned()));
    }
}

/// Refuses keys that the mode has no use for.
fn refuse_others(root: &Node<'_>, mode: Mode, problems: &mut Vec<Problem>) {
    let Some(table) = root.get_ref().as_table() else { return };
    for (keys, _, modes) in OF_MODES.iter().filter(|(_, modes, _)| !modes.contains(&mode)) {
        for (key, value) in keys.iter().filter_map(|&key| Some((key, table.get(key)?))) {
            let message = format!("`{key}` is of {modes} alone");
            let help = format!("leave it out, or set another mode: {modes}");
            problems.push(Problem::at(value.span(), message).help(help));
        }
    }
    if !matches!(mode, Mode::Mobile | Mode::Notify) && !table.contains_key("lan") {
        problems.push(Problem {
            message: "missing key `lan`".to_owned(),
            help: Some("it names the interface, or the interfaces, of the users".to_owned()),
            ..Problem::default()
        });
    }
}
