//! What is found wrong, and that a gateway does not start on it.

use crate::common::{CLEAN, Folder, GATEWAY, World, alone, beside, configuration, exchange};
use crate::datagrams::talk;
use gateway::Daemon;
use gateway::doctor::{Finding, Severity, examine};
use live::netlink::{Family, set_sysctl};
use live::{Netlink, Offload, Tun};
use scenario::IpVersion;
use std::net::{TcpListener, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// What is found at the gateway's node, without what is fine.
pub(crate) fn found(world: &World, keys: &str, running: bool) -> Vec<Finding> {
    let gateway = configuration(keys);
    let mut findings = world.at(GATEWAY, || examine(&gateway, running));
    findings.retain(|finding| finding.severity != Severity::Fine);
    findings
}

/// A gateway does not start, and says what the examination says.
pub(crate) fn refused(world: &World, keys: &str, about: &str, mend: &str) {
    let findings = found(world, keys, false);
    let finding = findings.iter().find(|finding| finding.about == about);
    let finding = finding.unwrap_or_else(|| panic!("nothing about {about}: {findings:?}"));
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(finding.mend.as_deref(), Some(mend));
    let gateway = configuration(keys);
    let error = world.at(GATEWAY, || Daemon::start(&gateway)).err().unwrap().to_string();
    assert!(error.contains(&finding.to_string()), "{error}");
}

#[test]
fn a_node_that_can_be_a_gateway_has_no_findings() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "well") else { return };
        assert_eq!(found(&world, "", false), []);
        let daemon = world.gateway("");
        assert_eq!(found(&world, "", true), []);
        // Without a word that it runs, its devices are somebody else's.
        let findings = world.at(GATEWAY, || examine(&configuration(""), false));
        assert_eq!(findings.iter().filter(|finding| finding.severity != Severity::Fine).count(), 2);
        daemon.stop();
    });
}

#[test]
fn what_a_running_gateway_has_lost_is_found_with_the_command_that_brings_it_back() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "lost") else { return };
        let daemon = world.gateway("");
        let run = |command: &str| {
            let mut words = command.split(' ');
            let mut command = Command::new(words.next().unwrap());
            command.args(words);
            assert!(world.at(GATEWAY, || command.status()).unwrap().success());
        };
        for loss in [
            "ip rule del priority 100 iif link0 ipproto tcp",
            "ip -6 rule del priority 100 iif link1 ipproto ipv6-icmp",
            "ip route flush table 201",
            "ip -6 route flush table 202",
        ] {
            run(loss);
            let findings = found(&world, "", true);
            let [finding] = findings.as_slice() else { panic!("{loss}: {findings:?}") };
            assert_eq!(finding.severity, Severity::Error);
            run(finding.mend.as_ref().unwrap());
            assert_eq!(found(&world, "", true), []);
        }
        // All packets, as gateways of before have directed them.
        run("ip rule add priority 100 iif link0 table 201 protocol 76");
        let findings = found(&world, "", true);
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert_eq!(finding.severity, Severity::Advice);
        assert_eq!(
            finding.message,
            "one more ip rule sends whatever arrives by link0 to the gateway"
        );
        daemon.stop();
    });
}

#[test]
fn settings_that_stop_packets_are_errors_with_their_commands() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "settings") else { return };
        let set = |name: &str, value: &str| world.at(GATEWAY, || set_sysctl(name, value)).unwrap();
        set("net.ipv4.ip_forward", "0");
        refused(&world, "", "forwarding", "sysctl -w net.ipv4.ip_forward=1");
        set("net.ipv4.ip_forward", "1");
        set("net.ipv6.conf.all.forwarding", "0");
        refused(&world, "", "forwarding", "sysctl -w net.ipv6.conf.all.forwarding=1");
    });
}

#[test]
fn a_version_of_ip_that_one_side_does_not_have_need_not_be_forwarded() {
    alone(|| {
        let Some(world) = World::new(CLEAN, "one-ip") else { return };
        let run = |command: &str| {
            let status = world.at(GATEWAY, || Command::new("sh").args(["-c", command]).status());
            assert!(status.unwrap().success(), "{command}");
        };
        // Addresses of its links' own are left.
        run(
            "sysctl -qw net.ipv6.conf.all.forwarding=0 && ip -6 addr flush dev link0 scope global && \
             ip -6 route flush dev link0 proto static",
        );
        assert_eq!(found(&world, "", false), []);
        let daemon = world.gateway("");
        exchange(&world, IpVersion::V4, [100_000, 100_000]);
        assert_eq!(daemon.boxes().unwrap().get("split connections"), Some(&1));
        daemon.stop();
        // A route is enough, as beside an address that only the link has.
        run("ip -6 route add 2001:db8:7::/64 dev link0");
        refused(&world, "", "forwarding", "sysctl -w net.ipv6.conf.all.forwarding=1");
    });
}

#[test]
fn no_reverse_path_filter_stops_connections_over_the_hop() {
    alone(|| {
        let Some(world) = World::new(CLEAN, "filter") else { return };
        let set = |name: &str, value: &str| world.at(GATEWAY, || set_sysctl(name, value)).unwrap();
        for [all, interfaces] in [["2", "0"], ["0", "1"], ["1", "1"]] {
            set("net.ipv4.conf.all.rp_filter", all);
            set("net.ipv4.conf.link0.rp_filter", interfaces);
            set("net.ipv4.conf.link1.rp_filter", interfaces);
            let findings = found(&world, "", false);
            let advised = findings.iter().map(|finding| (finding.severity, finding.about.as_str()));
            let strict = (all == "1").then_some((Severity::Advice, "rp_filter"));
            assert!(advised.eq(strict), "{findings:?}");
            let daemon = world.gateway("");
            exchange(&world, IpVersion::V4, [100_000, 100_000]);
            talk(&world, IpVersion::V4);
            assert_eq!(daemon.boxes().unwrap().get("split connections"), Some(&1));
            daemon.stop();
        }
    });
}

#[test]
fn interfaces_are_there_and_up() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "links") else { return };
        world.at(GATEWAY, || Netlink::open().unwrap().set_down("link0").unwrap());
        refused(&world, "", "interface link0", "ip link set dev link0 up");
        world.at(GATEWAY, || Netlink::open().unwrap().set_up("link0").unwrap());
        let missing = configuration("").wan.replace("link1", "link9");
        let gateway = scenario::Gateway { wan: missing, ..configuration("") };
        let findings = world.at(GATEWAY, || examine(&gateway, false));
        let finding = findings.iter().find(|finding| finding.about == "interface link9").unwrap();
        assert_eq!(finding.severity, Severity::Error);
    });
}

#[test]
fn rules_routes_devices_and_ports_of_somebody_else_are_found() {
    alone(|| {
        let Some(world) = World::new(CLEAN, "taken") else { return };
        let ip = |words: &str| {
            let status = world.at(GATEWAY, || Command::new("ip").args(words.split(' ')).status());
            assert!(status.unwrap().success(), "ip {words}");
        };
        // The last is like one of the gateway's.
        for (rule, table) in [
            ("priority 50 iif link0", "main"),
            ("priority 100 iif link0", "77"),
            ("priority 50 iif link0 ipproto tcp", "main"),
            ("priority 100 iif link0 ipproto udp", "201"),
            ("priority 100 iif link0", "201"),
        ] {
            ip(&format!("-6 rule add {rule} table {table}"));
            if !rule.contains("udp") {
                refused(&world, "", "rules", &format!("ip -6 rule del {rule}"));
            } else {
                assert_eq!(found(&world, "", false), [], "a gateway does not get it");
            }
            ip(&format!("-6 rule del {rule} table {table}"));
        }
        // One that a gateway has left behind, and one that comes later.
        for harmless in ["priority 100 iif link0 protocol 76", "priority 101 iif link0"] {
            ip(&format!("-6 rule add {harmless} table 201"));
            assert_eq!(found(&world, "", false), [], "{harmless}");
            ip(&format!("-6 rule del {harmless} table 201"));
        }
        let netlink = world.at(GATEWAY, || Netlink::open().unwrap());
        let tun = world.at(GATEWAY, || Tun::open("lh-wan", Offload::None, 1500).unwrap());
        refused(&world, "", "device lh-wan", "systemctl stop lasthopd, or ip link delete lh-wan");
        drop(tun);
        netlink.add_default_route(Family::V4, "link1", 202, None).unwrap();
        refused(&world, "", "routing table 202", "ip route flush table 202");
        world.at(GATEWAY, || {
            let status = Command::new("ip").args(["route", "flush", "table", "202"]).status();
            assert!(status.unwrap().success());
            netlink.set_up("lo").unwrap();
            let _taken = TcpListener::bind("127.0.0.1:9273").unwrap();
            let findings = examine(&configuration("metrics = \"127.0.0.1:9273\""), false);
            let about = |finding: &&Finding| finding.about == "metrics at 127.0.0.1:9273";
            assert_eq!(findings.iter().find(about).unwrap().severity, Severity::Error);
        });
        assert_eq!(found(&world, "metrics = \"127.0.0.1:9273\"", false), []);
    });
}

#[test]
fn a_rule_that_leads_packets_past_the_gateway_is_found_by_their_way() {
    alone(|| {
        let Some(world) = World::new(CLEAN, "ways") else { return };
        let shell = |command: &str| {
            let status = world.at(GATEWAY, || Command::new("sh").args(["-c", command]).status());
            assert!(status.unwrap().success(), "{command}");
        };
        let daemon = world.gateway("");
        for ip in ["ip", "ip -6"] {
            shell(&format!("{ip} rule add priority 50 lookup main"));
            let findings = found(&world, "", true);
            let of = |about: &str| {
                findings
                    .iter()
                    .find(|finding| finding.about == about)
                    .unwrap_or_else(|| panic!("{findings:?}"))
            };
            assert_eq!(of("rules").severity, Severity::Advice);
            let way = of("way of packets");
            assert_eq!(way.severity, Severity::Error);
            let says = |text| way.message.contains(text);
            assert!(
                says("TCP packets by link0 from ") && says(" leave by link1, not by lh-lan"),
                "{way}"
            );
            let asks = way.mend.as_ref().unwrap().split("; ").nth(1).unwrap();
            shell(asks.strip_suffix(" asks again").unwrap());
            shell(&format!("{ip} rule del priority 50"));
            assert_eq!(found(&world, "", true), []);
        }
        daemon.stop();
        // Nothing is behind an interface of which there are no routes.
        shell("ip route flush dev link1 && ip -6 route flush dev link1");
        let findings = found(&world, "", false);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].message, "no route leads to another host by link1");
    });
}

#[test]
fn without_keys_or_with_a_port_in_use_a_pair_does_not_start() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "keys") else { return };
        let folder = Folder::new("keys");
        let file = folder.0.join("private.key").display().to_string();
        let other = gateway::public_key(&folder.0.join("other.key")).unwrap().to_string();
        let keys = |peer_key: &str| {
            format!("mode = \"pair\"\nkey = \"{file}\"\npeer_key = \"{peer_key}\"")
        };
        let make = format!("lasthopd key --file {file}");
        refused(&world, &keys(&other), "private key", &make);
        std::fs::write(&file, "none").unwrap();
        refused(&world, &keys(&other), "private key", &format!("rm {file}; {make}"));
        std::fs::remove_file(&file).unwrap();
        let own = gateway::public_key(file.as_ref()).unwrap().to_string();
        let mend = "lasthopd key, at the other gateway, prints it";
        for wrong in ["none", &own] {
            refused(&world, &keys(wrong), "peer_key", mend);
        }
        assert_eq!(found(&world, &keys(&other), false), []);
        let taken = world.at(GATEWAY, || UdpSocket::bind("[::]:51995").unwrap());
        let mend = "ss -lunp 'sport = :51995' shows who has it; or listen = \"[::]:PORT\", in the configuration, is another";
        refused(&world, &keys(&other), "UDP at [::]:51995", mend);
        drop(taken);
        // A program that another test starts at this moment has a copy of the socket, until it is executed.
        while world.at(GATEWAY, || UdpSocket::bind("[::]:51995").is_err()) {
            thread::sleep(Duration::from_millis(10));
        }
        let daemon = world.gateway(&keys(&other));
        assert_eq!(found(&world, &keys(&other), true), []);
        daemon.stop();
    });
}

#[test]
fn where_settings_cannot_be_written_as_in_containers_they_need_to_be_right() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "container") else { return };
        let folder = Folder::new("container");
        let path = |name: &str| folder.0.join(name).display().to_string();
        std::fs::write(path("config"), crate::common::INTERFACES).unwrap();
        let inside = |command: &str| {
            let script = format!(
                "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && \
                 exec {} {command} --config {} --socket {}",
                env!("CARGO_BIN_EXE_lasthopd"),
                path("config"),
                path("socket")
            );
            let mut command = Command::new("unshare");
            command.args(["-m", "sh", "-c", &script]);
            command
        };
        let set = |value: &str| {
            let name = "net.ipv4.conf.default.rp_filter";
            world.at(GATEWAY, || set_sysctl(name, value)).unwrap();
        };
        set("2");
        for command in ["doctor", "run"] {
            let output = world.at(GATEWAY, || inside(command).output()).unwrap();
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(!output.status.success() && said.contains("error   /proc/sys:"), "{said}");
        }
        set("0");
        let mut running = world.at(GATEWAY, || inside("run").spawn()).unwrap();
        let socket = folder.0.join("socket");
        let answers = (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            gateway::status(&socket).is_ok()
        });
        if answers {
            exchange(&world, IpVersion::V4, [100_000, 100_000]);
            let state = gateway::status(&socket).unwrap();
            assert_eq!(state.counters["split connections"], 1);
        }
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(answers);
    });
}
