//! Many handoffs, with losses and messages that are lost.

use super::network::{Addresses, Members, Network, count, wait_for_attachments};
use super::transfers::{PATIENCE, serve, transfer};
use crate::common::beside_few;
use gateway::Daemon;
use live::namespace::Namespace;
use live::netlink::Family;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The bytes of a transfer, at most.
const MOST: usize = 200_000;

/// What became of transfers: whole ones, and those that were reset.
type Outcomes = [AtomicU64; 2];

impl Network {
    /// Lets eight transfers run at any time, until `is_over`, and calls `roam` meanwhile.
    fn transfers(&self, outcomes: &Outcomes, roam: impl FnOnce()) {
        let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let number = next.fetch_add(2, Ordering::Relaxed);
                        let len = (number as usize * 7919) % MOST;
                        let families = self.families.len() as u64;
                        let family = self.families[(number / 2 % families) as usize];
                        let server = Addresses::of(family).server;
                        let connect = || TcpStream::connect((server, 80));
                        // While a station is away, none may be there to answer.
                        let Ok(stream) = self.mobile.run(connect).unwrap() else { continue };
                        stream.set_read_timeout(Some(PATIENCE)).unwrap();
                        stream.set_write_timeout(Some(PATIENCE)).unwrap();
                        let is_whole = transfer(stream, number, len);
                        outcomes[usize::from(!is_whole)].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            roam();
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn transfers_are_whole_although_most_exchanges_of_messages_fail_at_first() {
    lose_messages(Members::MOBILE, 8);
}

#[test]
fn over_srp_transfers_are_whole_although_most_exchanges_of_messages_fail_at_first() {
    lose_messages(Members::OVER_SRP, 8);
}

#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn transfers_are_whole_through_hundreds_of_handoffs_whose_messages_are_lost() {
    lose_messages(Members::MOBILE, 300);
}

#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn over_srp_transfers_are_whole_through_hundreds_of_handoffs_whose_messages_are_lost() {
    lose_messages(Members::OVER_SRP, 300);
}

/// 30 % of the control messages are lost, and no data: half of the exchanges of a message and its answer fail. No
/// connection is reset for it. If as much is lost of the connections between base stations, state may come too late: then
/// both ends are reset, and none waits in vain.
fn lose_messages(agent: &str, handoffs: u32) {
    beside_few(|| {
        let Some(network) = Network::of(3, &Family::ALL) else { return };
        let members = Members::new("messages");
        network.roam(0);
        let start = |node| members.start(node, Members::STATION);
        let stations: Vec<_> = network.stations.iter().map(start).collect();
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        let mut random = base::Seed(9).stream("messages");
        network.lose_messages(30);
        for between_stations in [false, true] {
            if between_stations {
                network.lose_requests(30);
            }
            let outcomes = Outcomes::default();
            network.transfers(&outcomes, || {
                for _ in 0..handoffs {
                    network.roam(random.bits() as usize % 3);
                    thread::sleep(Duration::from_millis(100 + random.bits() % 800));
                }
            });
            let [whole, reset] = outcomes.each_ref().map(|count| count.load(Ordering::Relaxed));
            eprintln!("{whole} transfers during {handoffs} handoffs, {reset} reset");
            // The first eight may be all there are: they wait until their host is attached.
            assert!(between_stations || whole >= 8, "{whole} of {} transfers", whole + reset);
            assert!(between_stations || reset == 0, "{reset} of {} were reset", whole + reset);
            assert!(between_stations || count(&mobile, "attachments whose state was lost") == 0);
        }
        // The last connections are in TIME-WAIT, or their vanished ends are asked whether they are there, which takes longer
        // than the short form does.
        let left = |station: &Daemon| station.observe().unwrap().gauges["split_connections"];
        if handoffs > 100 {
            for _ in 0..1500 {
                if stations.iter().map(left).sum::<u64>() == 0 {
                    break;
                }
                thread::sleep(Duration::from_millis(100));
            }
            assert_eq!(stations.iter().map(left).collect::<Vec<_>>(), [0, 0, 0]);
        }
        network.mobile.run(|| mobile.stop()).unwrap();
        stations.into_iter().for_each(Daemon::stop);
        network.assert_nothing_is_left();
    });
}

#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn a_thousand_handoffs_lose_no_byte_and_leave_nothing_behind() {
    hand_off_a_thousand_times(Members::MOBILE);
}

#[test]
#[ignore = "takes minutes: `make soak` runs it"]
fn over_srp_a_thousand_handoffs_lose_no_byte_and_leave_nothing_behind() {
    hand_off_a_thousand_times(Members::OVER_SRP);
}

fn hand_off_a_thousand_times(agent: &str) {
    beside_few(|| {
        let Some(network) = Network::new(3) else { return };
        let members = Members::new("soak");
        network.lose(3);
        network.roam(0);
        let start = |node| members.process(node, Members::STATION);
        let mut stations: Vec<_> = network.stations.iter().map(start).collect();
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        thread::spawn(move || serve(&listener));
        let mut random = base::Seed(7).stream("roaming");
        let mut roam_at_random = |handoffs: u32, mut then: Box<dyn FnMut(u64) + '_>| {
            for _ in 0..handoffs {
                network.roam(random.bits() as usize % 3);
                thread::sleep(Duration::from_millis(random.bits() % 300));
                then(random.bits());
            }
        };
        // State moves, whatever is lost.
        let outcomes = Outcomes::default();
        network.transfers(&outcomes, || roam_at_random(500, Box::new(|_| ())));
        let [whole, reset] = outcomes.each_ref().map(|count| count.load(Ordering::Relaxed));
        eprintln!("{whole} transfers during 500 handoffs, {reset} reset");
        assert_eq!(reset, 0);
        assert_eq!(count(&mobile, "attachments whose state was lost"), 0);
        // State is lost with a station that is killed: its ends are reset.
        let outcomes = Outcomes::default();
        network.transfers(&outcomes, || {
            let kill = |random: u64| {
                if random.is_multiple_of(20) {
                    let which = random as usize / 20 % 3;
                    drop(stations.remove(which));
                    thread::sleep(Duration::from_millis(random % 1000));
                    stations.insert(which, start(&network.stations[which]));
                }
            };
            roam_at_random(500, Box::new(kill));
        });
        let [whole, reset] = outcomes.each_ref().map(|count| count.load(Ordering::Relaxed));
        eprintln!("{whole} transfers during 500 handoffs with {reset} reset");
        assert!(whole > reset && reset > 0);
        // The last connections are in TIME-WAIT, or their vanished ends are asked whether they are there.
        let left = |node: &Namespace| {
            let status = gateway::status(&members.socket(node)).unwrap();
            status.gauges["split_connections"]
        };
        for _ in 0..1500 {
            if network.stations.iter().map(left).sum::<u64>() == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(network.stations.iter().map(left).collect::<Vec<_>>(), [0, 0, 0]);
        network.mobile.run(|| mobile.stop()).unwrap();
    });
}
