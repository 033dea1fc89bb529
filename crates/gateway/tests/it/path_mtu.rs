//! The longest packets of the hop between two gateways.

use crate::common::{CLEAN, FAR, GATEWAY, World, beside, content, exchange};
use crate::pair::{Pair, wait_for_association};
use gateway::Daemon;
use live::Netlink;
use scenario::IpVersion;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The longest packet that a gateway sends, bytes.
fn longest(daemon: &Daemon) -> u64 {
    daemon.observe().unwrap().gauges["longest_packet_bytes"]
}

/// The MTU of the hop's interface, bytes.
fn of_interface(world: &World) -> u64 {
    let mtu = || Netlink::open().unwrap().mtu("link1").unwrap();
    world.at(GATEWAY, mtu).into()
}

/// From now on, packets that are longer than 1400 bytes and match are lost, whichever gateway sends them.
fn narrow(world: &World, matching: &str) {
    for node in [GATEWAY, FAR] {
        let rules = format!(
            "table inet narrow {{ chain arriving {{ type filter hook prerouting priority -500; \
             iifname \"link1\" udp dport 51995 meta length > 1400 {matching} drop; }}; }}"
        );
        let run = || Command::new("nft").arg(&rules).status().unwrap();
        assert!(world.at(node, run).success(), "{rules}");
    }
}

fn wait_until(daemon: &Daemon, is_so: impl Fn(u64) -> bool) {
    for _ in 0..600 {
        if is_so(longest(daemon)) {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("{} bytes", longest(daemon));
}

#[test]
fn it_is_that_of_the_interface_unless_the_path_has_a_shorter_one() {
    beside(|| {
        let Some(world) = World::pair(CLEAN, "longest") else { return };
        let pair = Pair::new("longest", "rate = \"50 Mbit/s\"");
        let near = pair.near(&world, IpVersion::V4);
        let far = pair.far(&world);
        wait_for_association(&world, &near);
        wait_until(&near, |bytes| bytes == of_interface(&world));
        near.stop();
        far.stop();
        // A router that does not tell: it fragments what may be fragmented, and drops the rest.
        narrow(&world, "ip frag-off & 0x4000 != 0");
        let near = pair.near(&world, IpVersion::V4);
        let far = pair.far(&world);
        wait_for_association(&world, &near);
        for daemon in [&near, &far] {
            wait_until(daemon, |bytes| (1396..=1400).contains(&bytes));
        }
        exchange(&world, IpVersion::V6, [1_000_000, 3_000_000]);
        near.stop();
        far.stop();
    });
}

#[test]
fn where_packets_that_were_not_too_long_become_so_all_bytes_arrive() {
    beside(|| {
        let Some(world) = World::pair(CLEAN, "narrower") else { return };
        let pair = Pair::new("narrower", "rate = \"50 Mbit/s\"");
        let near = pair.near(&world, IpVersion::V6);
        let far = pair.far(&world);
        wait_for_association(&world, &near);
        wait_until(&far, |bytes| bytes == of_interface(&world));
        let (listener, address) = world.listen(IpVersion::V4);
        let serving = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&content(2, 20_000_000)).unwrap();
        });
        let mut stream = world.connect(address);
        let mut got = vec![0; 1_000_000];
        stream.read_exact(&mut got).unwrap();
        // Routers do not fragment IPv6, and this one does not tell either.
        narrow(&world, "meta nfproto ipv6");
        stream.read_to_end(&mut got).unwrap();
        serving.join().unwrap();
        assert!(got == content(2, 20_000_000), "{} bytes", got.len());
        assert!((1280..=1400).contains(&longest(&far)), "{}", longest(&far));
        near.stop();
        far.stop();
    });
}
