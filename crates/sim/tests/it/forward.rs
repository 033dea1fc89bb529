//! What notification is worth by the way that it takes: back to the sender, or on to the receiver
//! and back with its acknowledgments (`bbn8333` §2.1.3).

use crate::common::*;
use base::Duration;
use tcp::Recovery;
use tcp::mechanism::Suppression;

const FORWARD: Report = Report::Forward(Transport::Message);

/// Links in a row that corrupt a packet of 1040 bytes with this probability, and as often in the
/// other direction if they are bad `both_ways`.
fn rough(hops: usize, p: f64, both_ways: bool) -> Path {
    let forward = noisy(p, 1040);
    let backward = if both_ways { forward } else { link::Uniform::default() };
    let delay = Duration::from_millis(30);
    let hop = Hop { rate: mbps(10), delay, forward, backward, ..Hop::default() };
    let mut path = Path { hops: vec![hop; hops], ..Path::default() };
    path.tcp.receive_window = tcp::ReceiveWindow::fixed(50_000);
    path
}

/// The path with notification.
fn notified(path: &Path, report: Report) -> Path {
    let mut path = Path { report, ..path.clone() };
    path.tcp.mechanisms = match report {
        Report::None => vec![],
        Report::Oracle | Report::Backward => eten(Suppression::All),
        Report::Forward(_) => forward_eten(Suppression::All),
    };
    path
}

/// Bytes that arrive within a minute, over some seeds.
fn arrive(path: &Path) -> f64 {
    let received = (1..=6).map(|seed| {
        let path = Path { seed, ..path.clone() };
        path.run(secs(60)).received() as f64
    });
    received.sum()
}

#[test]
fn on_one_hop_word_by_the_receiver_is_worth_more_than_none_and_no_more_than_an_oracles() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack] {
        for both_ways in [false, true] {
            let mut path = rough(1, 0.02, both_ways);
            path.tcp.recovery = recovery;
            let [none, oracle] =
                [Report::None, Report::Oracle].map(|report| arrive(&notified(&path, report)));
            for transport in TRANSPORTS {
                let forward = arrive(&notified(&path, Report::Forward(transport)));
                let case = format!("{recovery:?}, {transport:?}, both ways {both_ways}");
                assert!(none * 1.1 < forward, "{none} {forward}: {case}");
                assert!(forward < oracle * 1.005, "{forward} {oracle}: {case}");
            }
        }
    }
}

#[test]
fn over_three_hops_the_way_forward_and_back_is_longer_than_the_way_back() {
    for recovery in [Recovery::Reno, Recovery::Sack] {
        let mut path = rough(3, 0.02, true);
        path.tcp.recovery = recovery;
        let [none, backward] =
            [Report::None, Report::Backward].map(|report| arrive(&notified(&path, report)));
        for transport in TRANSPORTS {
            let forward = arrive(&notified(&path, Report::Forward(transport)));
            assert!(none < forward, "{none} {forward}: {recovery:?}, {transport:?}");
            assert!(
                forward < backward * 1.005,
                "{forward} {backward}: {recovery:?}, {transport:?}"
            );
        }
    }
}

#[test]
fn where_no_word_gets_lost_each_corrupted_copy_is_sent_again_once_and_nothing_slows_down() {
    for good_hops in [0, 1, 2] {
        for transport in [Transport::Message, Transport::Marked] {
            let lab = rough_then_good(good_hops, transport);
            let statistics = lab.statistics();
            assert_eq!((statistics.reductions, statistics.timeouts), (0, 0), "{transport:?}");
            assert_eq!(statistics.retransmissions, statistics.notices, "{transport:?}");
            let corrupted = lab.world.link(lab.links[0].0).corrupted;
            assert!(corrupted > 100 && corrupted.abs_diff(statistics.notices) <= 2, "{corrupted}");
        }
    }
}

#[test]
fn a_report_that_waits_for_a_packet_waits_in_vain_if_the_window_is_full() {
    // A segment that is sent again after a round trip finds the receive window used up: nothing
    // follows it before it arrives.
    let lab = rough_then_good(1, Transport::Piggyback);
    let statistics = lab.statistics();
    let corrupted = lab.world.link(lab.links[0].0).corrupted;
    assert!(statistics.timeouts > 0 && statistics.timeouts < corrupted / 50, "{statistics:?}");
    assert!(statistics.notices > corrupted * 98 / 100, "{corrupted}, {statistics:?}");
    assert_eq!(statistics.reductions, 0);
}

/// A run over a link that corrupts data, and so many good ones behind it.
fn rough_then_good(good_hops: usize, transport: Transport) -> Lab {
    let mut path = notified(&rough(1, 0.02, false), Report::Forward(transport));
    path.hops.resize(1 + good_hops, rough(1, 0.0, false).hops[0]);
    path.run(secs(100))
}

#[test]
fn without_repetition_of_echoes_lost_acknowledgments_would_cost_them() {
    // Acknowledgments are lost as often as data: each report has many chances all the same.
    let hop = Hop { backward: lossy(0.2), ..rough(1, 0.02, false).hops[0] };
    let path = notified(&Path { hops: vec![hop], ..rough(1, 0.02, false) }, FORWARD);
    let lab = path.run(secs(100));
    let corrupted = lab.world.link(lab.links[0].0).corrupted as f64;
    let notified = lab.statistics().notices as f64 / corrupted;
    assert!(notified > 0.97, "{notified} of {corrupted}");
}

#[test]
fn what_checksums_leave_of_a_packet_is_enough_in_most_cases() {
    for report in [Report::Backward, FORWARD, Report::Forward(Transport::Marked)] {
        let path = notified(&rough(1, 0.1, false), report);
        let lab = Path { checked: true, ..path }.run(secs(200));
        let corrupted = lab.world.link(lab.links[0].0).corrupted as f64;
        let notified = lab.statistics().notices as f64 / corrupted;
        // An error in some 140 of 8320 bits prevents a notice, and in 32 makes the sequence number
        // wrong.
        assert!((0.965..0.99).contains(&notified), "{notified} of {corrupted}, {report:?}");
        // A wrong port is recovered, because there is only one connection.
        let end = if report == Report::Backward { lab.sender() } else { lab.receiver() };
        let recovered = lab.world.host(end).statistics().recovered as f64 / corrupted;
        assert!((0.0005..0.01).contains(&recovered), "{recovered} of {corrupted}, {report:?}");
    }
}
