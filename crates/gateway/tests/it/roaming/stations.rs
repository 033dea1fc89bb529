//! Base stations and agents that end, are started again, or have another key.

use super::network::{Members, Network, count, routes_to_the_host, wait_for_attachments};
use super::transfers::{serve, transfer};
use crate::common::beside_few;
use base::Time;
use gateway::Daemon;
use live::netlink::Family;
use live::{Clock, Netlink};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

#[test]
fn both_ends_are_reset_if_the_base_station_that_has_the_state_is_gone() {
    reset_with_the_station(Members::MOBILE);
}

#[test]
fn over_srp_both_ends_are_reset_if_the_base_station_that_has_the_state_is_gone() {
    reset_with_the_station(Members::OVER_SRP);
}

fn reset_with_the_station(agent: &str) {
    beside_few(|| {
        let Some(network) = Network::new(2) else { return };
        let members = Members::new("station-gone");
        network.roam(0);
        let first = members.process(&network.stations[0], Members::STATION);
        let second = members.start(&network.stations[1], Members::STATION);
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        let mut user = network.connect();
        let (mut server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        user.write_all(b"a").unwrap();
        server.read_exact(&mut [0]).unwrap();
        drop(first);
        network.roam(1);
        for end in [&mut user, &mut server] {
            let error = end.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        }
        assert_eq!(count(&mobile, "attachments whose state was lost"), 1);
        // The next connection is the new base station's.
        let mut user = network.connect();
        let (mut server, _) = listener.accept().unwrap();
        user.write_all(b"b").unwrap();
        server.read_exact(&mut [0]).unwrap();
        assert_eq!(count(&second, "split connections"), 1);
        network.mobile.run(|| mobile.stop()).unwrap();
        second.stop();
    });
}

#[test]
fn over_srp_connections_go_on_with_a_base_station_or_an_agent_that_is_started_again() {
    beside_few(|| {
        let Some(network) = Network::new(1) else { return };
        let members = Members::new("srp-again");
        network.count_segments();
        network.roam(0);
        let listener = network.listen();
        let open = || {
            let mut user = network.connect();
            let (mut server, _) = listener.accept().unwrap();
            server.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            user.write_all(b"a").unwrap();
            server.read_exact(&mut [0]).unwrap();
            [user, server]
        };
        let start = |index: usize| match index {
            0 => members.process(&network.stations[0], Members::STATION),
            _ => members.process(&network.mobile, Members::OVER_SRP),
        };
        let mut processes = [0, 1].map(|index| Some(start(index)));
        for killed in [0, 1, 0, 1] {
            network.wait_for_srp(&members);
            let clock = Clock::start();
            let ends = open();
            // An end of a tunnel whose other end is lost is silent for 5 s before it is another one.
            assert!(clock.now() < Time::ZERO + base::Duration::from_secs(4));
            // What it had is lost, and both ends learn it.
            processes[killed] = None;
            processes[killed] = Some(start(killed));
            for mut end in ends {
                let error = end.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{killed}: {error}");
            }
        }
        network.wait_for_srp(&members);
        let before = network.segments();
        open();
        assert_eq!(network.segments(), before);
        drop(processes);
    });
}

#[test]
fn a_station_with_another_key_gets_no_state() {
    at_a_station_with_another_key(Members::MOBILE);
}

#[test]
fn over_srp_a_station_with_another_key_gets_no_state() {
    at_a_station_with_another_key(Members::OVER_SRP);
}

fn at_a_station_with_another_key(agent: &str) {
    beside_few(|| {
        let Some(network) = Network::new(2) else { return };
        let (members, others) = (Members::new("key"), Members::new("other-key"));
        network.roam(0);
        let first = members.start(&network.stations[0], Members::STATION);
        let second = others.start(&network.stations[1], Members::STATION);
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        let mut user = network.connect();
        let (mut server, _) = listener.accept().unwrap();
        user.write_all(b"a").unwrap();
        server.read_exact(&mut [0]).unwrap();
        network.roam(1);
        thread::sleep(Duration::from_millis(700));
        assert!(count(&second, "messages that are not authentic") > 0);
        assert_eq!(count(&second, "SRP segments"), 0);
        assert_eq!(count(&first, "connections handed over"), 0);
        // Who opens a connection to a base station without the key gets no answer.
        let ask = || TcpStream::connect(("198.18.9.1", wire::Mobility::PORT)).unwrap();
        let mut stranger = network.stations[1].run(ask).unwrap();
        stranger.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stranger.write_all(&[1; 48]).unwrap();
        let mut answer = Vec::new();
        let end = stranger.read_to_end(&mut answer);
        assert!(end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
        assert!(answer.is_empty(), "{answer:?}");
        // Back at the base station that has them, connections go on.
        network.roam(0);
        wait_for_attachments(&mobile, 2);
        user.write_all(b"b").unwrap();
        server.read_exact(&mut [0]).unwrap();
        network.mobile.run(|| mobile.stop()).unwrap();
        [first, second].into_iter().for_each(Daemon::stop);
    });
}

#[test]
fn over_srp_a_host_with_another_key_has_no_association_and_its_connections_pass_as_they_are() {
    beside_few(|| {
        let Some(network) = Network::new(1) else { return };
        let (members, others) = (Members::new("host-key"), Members::new("other-host-key"));
        network.roam(0);
        network.count_segments();
        let station = members.start(&network.stations[0], Members::STATION);
        let mobile = others.start(&network.mobile, Members::OVER_SRP);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        // It waits until the agent knows that there is no base station of its network, 12 s at most.
        let clock = Clock::start();
        let stream = network.connect();
        assert!(clock.now() < Time::ZERO + base::Duration::from_secs(16));
        let before = network.segments();
        const LEN: usize = 300_000;
        assert!(transfer(stream, 1, LEN));
        // The next one need not wait.
        let clock = Clock::start();
        assert!(transfer(network.connect(), 2, LEN));
        assert!(clock.now() < Time::ZERO + base::Duration::from_secs(5));
        assert!(network.segments() > before);
        assert!(count(&station, "messages that are not authentic") > 0);
        assert_eq!(count(&mobile, "attachments after which transfer resumed"), 0);
        for end in [&station, &mobile] {
            assert_eq!(count(end, "split connections"), 0);
            assert_eq!(count(end, "SRP segments"), 0);
        }
        assert_eq!(network.stations[0].run(routes_to_the_host).unwrap(), "");
        network.mobile.run(|| mobile.stop()).unwrap();
        station.stop();
        network.assert_nothing_is_left();
    });
}

#[test]
fn a_base_station_that_ends_while_it_waits_for_state_leaves_no_route_behind() {
    beside_few(|| {
        let Some(network) = Network::new(2) else { return };
        let members = Members::new("ends");
        network.roam(0);
        let start = |node| members.start(node, Members::STATION);
        let [old, new] = [0, 1].map(|index| start(&network.stations[index]));
        let mobile = members.start(&network.mobile, Members::MOBILE);
        wait_for_attachments(&mobile, 1);
        network.lose_requests(99);
        network.roam(1);
        let routes = || network.stations[1].run(routes_to_the_host).unwrap();
        for _ in 0..500 {
            if !routes().is_empty() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert!(!routes().is_empty());
        // It still asks: a connection between base stations takes two seconds to fail.
        new.stop();
        assert_eq!(routes(), "");
        network.mobile.run(|| mobile.stop()).unwrap();
        old.stop();
    });
}

#[test]
fn what_an_agent_that_was_killed_has_left_is_taken_back() {
    beside_few(|| {
        let Some(network) = Network::of(1, &Family::ALL) else { return };
        let members = Members::new("agent-killed");
        network.roam(0);
        let setting = || live::netlink::sysctl("net.ipv4.conf.air.forwarding").unwrap();
        let priorities = || -> Vec<(bool, u32)> {
            let rules = Netlink::open().unwrap().all_rules();
            rules.iter().map(|rule| (rule.family == Family::V6, rule.priority)).collect()
        };
        let before = network.mobile.run(priorities).unwrap();
        // The second one knows what was before the first one.
        for _ in 0..2 {
            drop(members.process(&network.mobile, Members::MOBILE));
            assert_eq!(network.mobile.run(setting).unwrap(), "1");
            assert_ne!(network.mobile.run(priorities).unwrap(), before);
        }
        let socket = members.socket(&network.mobile);
        let rules = network.mobile.run(|| gateway::clean_up(&socket).unwrap()).unwrap();
        assert_eq!(rules, 8);
        assert_eq!(network.mobile.run(priorities).unwrap(), before);
        network.assert_nothing_is_left();
        assert!(!socket.with_extension("settings").exists());
    });
}
