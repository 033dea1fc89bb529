//! Handoffs between base stations that have the state of connections.

use super::network::{
    Addresses, MOBILE, Members, Network, SERVER, V6, count, wait_for_attachments,
};
use super::transfers::{serve, slow_transfer, transfer};
use crate::common::{beside_few, content};
use gateway::Daemon;
use live::netlink::Family;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

#[test]
fn a_download_and_an_upload_go_on_through_handoffs_between_three_base_stations() {
    beside_few(|| {
        let Some(network) = Network::new(3) else { return };
        let members = Members::new("roaming");
        network.roam(0);
        let station = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(station).collect();
        let mobile = members.start(&network.mobile, Members::MOBILE);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        const LEN: usize = 3_000_000;
        let serving = thread::spawn(move || {
            let (mut stream, from) = listener.accept().unwrap();
            assert_eq!(from.ip().to_canonical().to_string(), MOBILE);
            let mut reading = stream.try_clone().unwrap();
            let writing = thread::spawn(move || {
                for part in content(2, LEN).chunks(LEN / 100) {
                    stream.write_all(part).unwrap();
                    thread::sleep(Duration::from_millis(40));
                }
                stream.shutdown(std::net::Shutdown::Write).unwrap();
            });
            let mut got = Vec::new();
            reading.read_to_end(&mut got).unwrap();
            assert!(got == content(1, LEN), "{} bytes of the upload", got.len());
            writing.join().unwrap();
        });
        let mut stream = network.connect();
        let mut sending = stream.try_clone().unwrap();
        let upload = thread::spawn(move || {
            for part in content(1, LEN).chunks(LEN / 100) {
                sending.write_all(part).unwrap();
                thread::sleep(Duration::from_millis(40));
            }
            sending.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let download = thread::spawn(move || {
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            assert!(got == content(2, LEN), "{} bytes of the download", got.len());
        });
        // Six handoffs, one of them back at once.
        for station in [1, 2, 0, 1, 0, 2] {
            thread::sleep(Duration::from_millis(500));
            network.roam(station);
        }
        upload.join().unwrap();
        download.join().unwrap();
        serving.join().unwrap();
        let total = |name| stations.iter().map(|station| count(station, name)).sum::<u64>();
        assert_eq!(total("split connections"), 1);
        assert!(total("connections taken over") >= 4, "{}", total("connections taken over"));
        assert_eq!(total("connections taken over"), total("connections handed over"));
        assert_eq!(count(&mobile, "attachments whose state was lost"), 0);
        // What is no mobile host cannot be attached.
        assert!(!stations[0].attach("198.18.9.2".parse().unwrap()).unwrap());
        stations.into_iter().for_each(Daemon::stop);
        network.mobile.run(|| mobile.stop()).unwrap();
        network.assert_nothing_is_left();
    });
}

#[test]
fn over_srp_a_download_and_an_upload_go_on_through_handoffs_with_losses() {
    beside_few(|| {
        let Some(network) = Network::new(3) else { return };
        let members = Members::new("srp");
        network.lose(2);
        network.count_segments();
        network.roam(0);
        let station = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(station).collect();
        let mobile = members.start(&network.mobile, Members::OVER_SRP);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        const LEN: usize = 6_000_000;
        let transfers: Vec<_> = (0..4)
            .map(|number| {
                let stream = network.connect();
                thread::spawn(move || assert!(transfer(stream, 2 * number, LEN), "it was reset"))
            })
            .collect();
        for station in [1, 2, 0, 1, 0, 2] {
            thread::sleep(Duration::from_millis(300));
            network.roam(station);
        }
        transfers.into_iter().for_each(|transfer| transfer.join().unwrap());
        let total = |name| stations.iter().map(|station| count(station, name)).sum::<u64>();
        assert_eq!(total("split connections"), 4);
        assert_eq!(count(&mobile, "split connections"), 4);
        // What went over the hop went by SRP, but for what passed a base station that did not know the host yet.
        let segments = network.segments();
        assert!(segments < 1000, "{segments}");
        // Those that the server opens, too.
        let accept = || TcpListener::bind((MOBILE, 81)).unwrap();
        let listener = network.mobile.run(accept).unwrap();
        let connect = || TcpStream::connect((MOBILE, 81)).unwrap();
        let mut caller = network.server.run(connect).unwrap();
        let (mut called, from) = listener.accept().unwrap();
        assert_eq!(from.ip().to_string(), SERVER);
        caller.write_all(b"a").unwrap();
        called.read_exact(&mut [0]).unwrap();
        assert_eq!(network.segments(), segments);
        assert!(total("connections taken over") >= 4, "{}", total("connections taken over"));
        assert_eq!(count(&mobile, "attachments whose state was lost"), 0);
        network.mobile.run(|| mobile.stop()).unwrap();
        stations.into_iter().for_each(Daemon::stop);
    });
}

#[test]
fn over_ipv6_transfers_go_on_through_handoffs_with_losses() {
    transfers_by(&[Family::V6], Members::MOBILE);
}

#[test]
fn over_srp_and_ipv6_transfers_go_on_through_handoffs_with_losses() {
    transfers_by(&[Family::V6], Members::OVER_SRP);
}

#[test]
fn connections_of_both_versions_of_ip_move_with_their_host() {
    transfers_by(&[Family::V4, Family::V6], Members::MOBILE);
}

#[test]
fn over_srp_connections_of_both_versions_of_ip_move_with_their_host() {
    transfers_by(&[Family::V4, Family::V6], Members::OVER_SRP);
}

/// Two transfers of each version of IP, through handoffs and losses. Base stations have addresses of IPv6 that are of the
/// link alone on the radio channel.
fn transfers_by(families: &'static [Family], agent: &str) {
    beside_few(|| {
        let Some(network) = Network::of(3, families) else { return };
        let members = Members::new("versions");
        network.lose(1);
        // Segments of SRP that were cut: they are to fit the hop by either version.
        network.count_arriving(&format!("udp dport {} @th,72,8 8", wire::Mobility::PORT));
        network.roam(0);
        let station = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(station).collect();
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        const LEN: usize = 4_000_000;
        let transfers: Vec<_> = families
            .iter()
            .flat_map(|family| [*family; 2])
            .zip(0..)
            .map(|(family, number)| {
                let stream = network.connect_by(family);
                // It goes on longer than the handoffs.
                let lasts = Duration::from_secs(3);
                let transfer = move || slow_transfer(stream, 2 * number, LEN, lasts);
                thread::spawn(move || assert!(transfer(), "it was reset"))
            })
            .collect();
        let count_of = transfers.len() as u64;
        for station in [1, 2, 0, 1, 0, 2] {
            thread::sleep(Duration::from_millis(400));
            network.roam(station);
        }
        transfers.into_iter().for_each(|transfer| transfer.join().unwrap());
        let total = |name| stations.iter().map(|station| count(station, name)).sum::<u64>();
        assert_eq!(total("split connections"), count_of);
        assert_eq!(network.segments(), 0);
        assert!(total("connections taken over") >= count_of, "{}", total("connections taken over"));
        assert_eq!(count(&mobile, "attachments whose state was lost"), 0);
        // Those that the server opens, too.
        for family in families {
            let of = Addresses::of(*family);
            let accept = || TcpListener::bind((of.mobile, 81)).unwrap();
            let listener = network.mobile.run(accept).unwrap();
            let connect = || TcpStream::connect((of.mobile, 81)).unwrap();
            let mut caller = network.server.run(connect).unwrap();
            let (mut called, from) = listener.accept().unwrap();
            assert_eq!(from.ip().to_string(), of.server);
            caller.write_all(b"a").unwrap();
            called.read_exact(&mut [0]).unwrap();
        }
        assert_eq!(total("split connections"), count_of + families.len() as u64);
        network.mobile.run(|| mobile.stop()).unwrap();
        stations.into_iter().for_each(Daemon::stop);
        network.assert_nothing_is_left();
    });
}

#[test]
fn connections_that_are_over_do_not_move() {
    beside_few(|| {
        let Some(network) = Network::new(2) else { return };
        let members = Members::new("over");
        network.roam(0);
        let station = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(station).collect();
        let mobile = members.start(&network.mobile, Members::MOBILE);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        let lasting = network.connect();
        (0..5).for_each(|number| assert!(transfer(network.connect(), 2 * number, 1000)));
        let left = |station: &Daemon| station.observe().unwrap().gauges["split_connections"];
        thread::sleep(Duration::from_millis(200));
        // They are in TIME-WAIT.
        assert_eq!(left(&stations[0]), 6);
        network.roam(1);
        wait_for_attachments(&mobile, 2);
        assert_eq!(count(&stations[1], "connections taken over"), 1);
        assert_eq!(stations.iter().map(left).collect::<Vec<_>>(), [0, 1]);
        assert!(transfer(lasting, 20, 1000));
        network.mobile.run(|| mobile.stop()).unwrap();
        stations.into_iter().for_each(Daemon::stop);
    });
}

#[test]
fn a_handoff_by_hand_goes_to_the_address_by_which_base_stations_know_each_other() {
    beside_few(|| {
        let Some(network) = Network::of(2, &[Family::V6]) else { return };
        let members = Members::new("by-hand");
        network.roam(0);
        let station = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(station).collect();
        let mobile = members.start(&network.mobile, Members::OVER_SRP);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        let mut user = network.connect();
        let (mut server, _) = listener.accept().unwrap();
        user.write_all(b"a").unwrap();
        server.read_exact(&mut [0]).unwrap();
        // The host's default route does not change, but there is one to the other base station.
        let other = V6.wired(11, 1);
        network.lead(&V6, 1);
        network
            .mobile
            .run(|| V6.ip(&format!("route add {other} via {} dev air", V6.on_air(1))))
            .unwrap();
        assert!(mobile.attach(other.parse().unwrap()).unwrap());
        wait_for_attachments(&mobile, 2);
        server.write_all(b"b").unwrap();
        user.read_exact(&mut [0]).unwrap();
        assert_eq!(count(&stations[1], "connections taken over"), 1);
        // One of another version of IP knows nothing of the host.
        let error = mobile.attach("198.18.9.2".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("version of IP"), "{error}");
        network.mobile.run(|| mobile.stop()).unwrap();
        stations.into_iter().for_each(Daemon::stop);
        network.assert_nothing_is_left();
    });
}
