//! The network of a scenario for programs. What programs have of it is tested by the command's tests.

use crate::common::{NOISY_HOP, scenario, skip};
use scenario::IpVersion;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::{End, Error, Shell, Wanted};

const FLOW: &str = "[[flows]]\nfrom = \"server\"\nto = \"mobile\"\n";

/// The network of [`NOISY_HOP`] with this in its file; `None`, and a word about it, where real packets are not
/// permitted.
fn start(more: &str) -> Option<Shell> {
    match Shell::start(&scenario(&format!("{NOISY_HOP}{FLOW}{more}")), &Wanted::default()) {
        Ok(shell) => Some(shell),
        Err(error @ (Error::Forbidden(_) | Error::Absent)) => {
            skip(&error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn path(node: &str) -> PathBuf {
    Path::new("/run/netns").join(format!("lasthop-{}-{node}", std::process::id()))
}

#[test]
fn packets_of_programs_pass_the_links_and_nothing_is_left() {
    let Some(shell) = start("") else { return };
    let [near, far] = [End::Near, End::Far].map(|end| shell.address(end, IpVersion::V4).unwrap());
    assert_eq!([near.to_string(), far.to_string()], ["10.128.0.3", "10.128.0.1"]);
    assert!(!shell.is_served().unwrap());
    // A datagram to a port where nothing listens is answered by the kernel at the other end.
    let script = format!("exec 3<>/dev/udp/{far}/9 && echo >&3 && ! read -t 5 <&3");
    let name = path("mobile").file_name().unwrap().to_owned();
    let netns = |words: &[&str]| {
        Command::new("ip").args(["netns", "exec"]).arg(&name).args(words).status().unwrap()
    };
    assert!(netns(&["bash", "-c", &script]).success());
    let outcome = shell.stop().unwrap();
    let packets: Vec<u64> = outcome.run.links.iter().map(|(_, link)| link.packets).collect();
    assert_eq!(packets, [1, 1, 1, 1], "there and back");
    let median = outcome.run.queue_delays_s[0].unwrap().median;
    assert_eq!(median, 0.0, "the packets have waited for none");
    assert_eq!(["server", "station", "mobile"].map(|node| path(node).exists()), [false; 3]);
}

#[test]
fn what_belongs_to_flows_is_refused() {
    let refused = |boxes: &str, more: &str| {
        let text = format!("{NOISY_HOP}{FLOW}name = \"file\"\n{more}");
        let text = text.replace("station = {}", &format!("station = {{ boxes = [{boxes}] }}"));
        match Shell::start(&scenario(&text), &Wanted::default()) {
            Err(Error::Refused { what, why }) => format!("{what}: {why}"),
            Err(error @ (Error::Forbidden(_) | Error::Absent)) => {
                skip(&error);
                String::new()
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it is not refused: {boxes} {more}"),
        }
    };
    let said = refused("{ box = \"loss-meter\" }", "");
    if said.is_empty() {
        return;
    }
    assert!(said.contains("`loss-meter` of node `station`"), "{said}");
    let attack = "[[attacks]]\nat = \"station\"\nflow = \"file\"\nknowledge = \"on-path\"";
    assert!(
        refused("", &format!("tcp = {{ eten = \"backward\" }}\n{attack}")).contains("`attacks`")
    );
    let tunnel = "[[tunnels]]\nfrom = \"server\"\nto = \"mobile\"";
    assert!(refused("", tunnel).contains("`tunnels`"));
}
