//! Mode `spoof`.

use crate::common::{
    GATEWAY, SERVER, USER, World, beside, content, exchange, wait_for_devices_to_go,
};
use live::Netlink;
use live::inline::Side;
use live::netlink::Rule;
use scenario::IpVersion;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// A hop that loses packets.
const LOSSY: &str =
    "rate = \"20 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"100 packets\"\nerrors = { packet = 0.01 }";
/// One that does not.
const CLEAN: &str = "rate = \"50 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"500 packets\"";

#[test]
fn connections_are_split_and_whole_in_both_directions() {
    beside(|| {
        let Some(world) = World::new(LOSSY, "split") else { return };
        let daemon = world.gateway("rate = \"20 Mbit/s\"");
        for ip in [IpVersion::V4, IpVersion::V6] {
            exchange(&world, ip, [1_000_000, 2_000_000]);
        }
        let counts = daemon.boxes().unwrap();
        assert_eq!(counts.get("split connections"), Some(&2), "{counts:?}");
        daemon.stop();
    });
}

#[test]
fn when_it_has_ended_packets_pass_and_nothing_is_left_behind() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "ended") else { return };
        let rules = || world.at(GATEWAY, || Netlink::open().unwrap().rules());
        let before = rules();
        let daemon = world.gateway("");
        assert_eq!(rules().len(), before.len() + 8);
        exchange(&world, IpVersion::V4, [1000, 1000]);
        daemon.stop();
        assert_eq!(rules(), before);
        world.at(GATEWAY, wait_for_devices_to_go);
        exchange(&world, IpVersion::V4, [100_000, 100_000]);
    });
}

#[test]
fn a_gateway_starts_again_after_one_that_has_left_its_rules() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "again") else { return };
        let daemon = world.gateway("");
        // As after SIGKILL: the devices are gone, the rules stay.
        let rules = world.at(GATEWAY, || Netlink::open().unwrap().rules());
        daemon.stop();
        world.at(GATEWAY, || {
            let netlink = Netlink::open().unwrap();
            rules.iter().for_each(|rule| netlink.add_rule(rule).unwrap());
            // Of another version, and for another interface.
            netlink.add_rule(&Rule { protocol: None, ..rules[0].clone() }).unwrap();
            netlink.add_rule(&Rule { interface: "lan9".to_owned(), ..rules[0].clone() }).unwrap();
        });
        // Packets pass.
        exchange(&world, IpVersion::V6, [100_000, 100_000]);
        let daemon = world.gateway("");
        let found = world.at(GATEWAY, || Netlink::open().unwrap().rules());
        assert_eq!(found.len(), rules.len());
        assert!(rules.iter().all(|rule| found.contains(rule)), "{found:?}");
        exchange(&world, IpVersion::V6, [100_000, 100_000]);
        assert_eq!(daemon.boxes().unwrap().get("split connections"), Some(&1));
        daemon.stop();
    });
}

#[test]
fn rules_and_routes_of_other_programs_stay_even_if_they_look_like_its_own() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "others") else { return };
        let shell = |command: &str| {
            let output = world.at(GATEWAY, || Command::new("sh").args(["-c", command]).output());
            let output = output.unwrap();
            assert!(output.status.success(), "{command}");
            String::from_utf8(output.stdout).unwrap()
        };
        shell("ip rule add priority 100 iif lan9 ipproto tcp table 201 protocol static");
        shell("ip route add default dev link1 table 203 protocol static");
        let others = || shell("ip rule show; ip route show table 203");
        let before = others();
        assert!(before.contains("iif lan9") && before.contains("dev link1"), "{before}");
        let daemon = world.gateway("");
        daemon.stop();
        let removed =
            world.at(GATEWAY, || gateway::clean_up(Path::new("/nowhere/socket"))).unwrap();
        assert_eq!(removed, 0);
        assert_eq!(others(), before);
    });
}

#[test]
fn a_slow_reader_holds_the_sender_back_once_the_cache_is_full() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "slow") else { return };
        let daemon = world.gateway("cache = \"100 kB\"\ntcp = { receive_window = \"64 KiB\" }");
        let (listener, address) = world.listen(IpVersion::V4);
        const SIZE: usize = 20_000_000;
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(&content(3, SIZE)).unwrap();
        });
        let mut stream = world.connect(address);
        thread::sleep(Duration::from_secs(2));
        let held = daemon.boxes().unwrap()["bytes held at most"];
        assert!((100_000..300_000).contains(&held), "{held} bytes");
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        assert!(got == content(3, SIZE));
        server.join().unwrap();
        let counts = daemon.counts().unwrap();
        assert_eq!(counts.without_bytes + counts.unroutable, 0, "{counts:?}");
        assert!(counts.devices[Side::Lan as usize].units_written > 0, "{counts:?}");
        daemon.stop();
    });
}

#[test]
fn both_ends_learn_that_it_ends_even_if_the_first_resets_are_lost() {
    beside(|| {
        for mode in ["mode = \"spoof\"", "mode = \"split\""] {
            let Some(world) = World::new(CLEAN, "told") else { return };
            for node in [USER, SERVER] {
                let rules = "table inet lossy { chain arriving { type filter hook prerouting priority -500; \
                             tcp flags & rst == rst numgen inc mod 3 != 2 drop; }; }";
                let run = || Command::new("nft").arg(rules).status().unwrap();
                assert!(world.at(node, run).success(), "{rules}");
            }
            let daemon = world.gateway(mode);
            let (listener, address) = world.listen(IpVersion::V6);
            let mut user = world.connect(address);
            let mut server = listener.accept().unwrap().0;
            server.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            user.write_all(&[1]).unwrap();
            server.read_exact(&mut [0]).unwrap();
            daemon.stop();
            for end in [&mut user, &mut server] {
                let error = end.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{mode}: {error}");
            }
        }
    });
}
