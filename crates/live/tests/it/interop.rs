//! Our stack and the kernel's, one at either end: small samples of what `make interop` runs.

mod cases;
mod path;
mod programs;

use crate::common::permitted;
use base::{Duration, Rate, Seed};
use cases::Meeting;
use link::{CoDel, Config, Discipline, Impairments, Reordering};
use path::Path;

fn each(path: Path, mut case: impl FnMut(&Path, Meeting) -> Option<String>) {
    for meeting in Meeting::ALL {
        if let Some(fault) = case(&path, meeting) {
            panic!("{meeting:?}: {fault}");
        }
    }
    let (ended, report) = path.stop();
    if let Some(report) = report {
        println!("{:?}", report.verdict());
    }
    assert_eq!(ended.counts.device.failed, 0);
    assert_eq!(ended.reset, 0);
}

fn linked(what: &str, change: impl FnOnce(&mut Config)) -> Path {
    let mut config = path::link(400_000_000, Duration::from_micros(500));
    change(&mut config);
    Path::linked(what, &config, Seed(1)).unwrap()
}

#[test]
fn a_stream_arrives_whole_both_ways() {
    if permitted("whole") {
        each(Path::direct("whole").unwrap(), |path, meeting| {
            [true, false].into_iter().find_map(|we| cases::transfer(path, meeting, 20_000_000, we))
        });
    }
}

#[test]
fn loss_and_flipped_bits_do_no_harm() {
    if permitted("loss") {
        for (what, packet, bit) in [("loss", 0.03, 0.0), ("flips", 0.0, 2e-6)] {
            let path = linked(what, |config| config.errors = link::Uniform { bit, packet }.into());
            each(path, |path, meeting| {
                [true, false].into_iter().find_map(|we| cases::transfer(path, meeting, 500_000, we))
            });
        }
    }
}

#[test]
fn packets_may_come_twice_and_in_another_order() {
    if permitted("order") {
        let reordering = Reordering { probability: 0.05, delay: Duration::from_millis(1) };
        let change = Impairments { reordering, duplication: 0.05, ..Impairments::default() };
        each(linked("order", |config| config.impairments = change), |path, meeting| {
            [true, false].into_iter().find_map(|we| cases::transfer(path, meeting, 2_000_000, we))
        });
    }
}

#[test]
fn many_connections_are_served_at_once() {
    if permitted("many") {
        each(Path::direct("many").unwrap(), |path, meeting| {
            cases::many(path, meeting, 100, 50_000)
        });
    }
}

#[test]
fn a_reset_ends_a_connection_and_a_closed_port_refuses_it() {
    if permitted("reset") {
        each(Path::direct("reset").unwrap(), |path, meeting| {
            let reset = [true, false].into_iter().find_map(|we| cases::reset(path, meeting, we));
            reset.or_else(|| cases::refused(path, meeting))
        });
    }
}

#[test]
fn either_end_may_close_its_half() {
    if permitted("half") {
        each(Path::direct("half").unwrap(), |path, meeting| {
            let ways = [true, false].into_iter();
            ways.into_iter().find_map(|we| cases::half_close(path, meeting, we, 1_000_000))
        });
    }
}

#[test]
fn a_window_that_closes_opens_again() {
    if permitted("window") {
        each(Path::direct("window").unwrap(), |path, meeting| {
            let pause = Duration::from_millis(500);
            let ways = [true, false].into_iter();
            ways.into_iter().find_map(|we| cases::zero_window(path, meeting, we, pause))
        });
    }
}

#[test]
fn both_may_close_at_once() {
    if permitted("both") {
        let config = path::link(100_000_000, cases::CROSSING);
        each(Path::linked("both", &config, Seed(1)).unwrap(), |path, meeting| {
            match cases::simultaneous_close(path, meeting) {
                Ok(true) => None,
                // A busy machine may have let one FIN wait for the other.
                Ok(false) => {
                    println!("{meeting:?}: the FINs have not crossed");
                    None
                }
                Err(fault) => Some(fault),
            }
        });
    }
}

#[test]
fn accurate_ecn_meets_the_kernels_ecn() {
    if permitted("marks") {
        let codel = CoDel { ecn: true, target: Duration::from_millis(1), ..CoDel::default() };
        let path = linked("marks", |config| {
            config.rate = Rate::from_bps(50_000_000);
            config.discipline = Discipline::CoDel(codel);
        });
        each(path, |path, meeting| {
            [true, false].into_iter().find_map(|we| cases::accurate_ecn(path, meeting, we))
        });
    }
}

#[test]
fn data_goes_with_the_syn() {
    if permitted("open") {
        let path = Path::direct("open").unwrap();
        path.kernel
            .run(|| live::netlink::set_sysctl("net.ipv4.tcp_fastopen", "3"))
            .unwrap()
            .unwrap();
        each(path, cases::fast_open);
    }
}

#[test]
fn a_peer_that_has_vanished_is_noticed() {
    if permitted("alive") {
        let path = Path::direct("alive").unwrap();
        for meeting in [Meeting::ALL[0], Meeting::ALL[1]] {
            let fault = cases::keep_alive(&path, meeting, std::time::Duration::from_millis(2500));
            assert_eq!(fault, None);
        }
    }
}
