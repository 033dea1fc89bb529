//! Units of several segments that a network card or the kernel cuts up.

use super::*;

/// A connection that may send units of `unit` segments.
fn uniting(unit: u16, config: Config) -> Diagram {
    let mut t = established(config);
    t.unit = unit;
    t
}

#[test]
fn a_unit_carries_the_same_bytes_as_its_segments() {
    let mut t = uniting(4, config());
    t.write(1 << 30);
    t.recv([bytes(0, 4000), bytes(4000, 8000), bytes(8000, 10_000)]);
    t.time(200);
    t.send(ack(2)); // Its segments are acknowledged one by one.
    t.recv([bytes(10_000, 12_000)]);
    assert_eq!(t.statistics().segments, 1 + 12);
}

#[test]
fn a_part_of_a_unit_is_sent_again_alone() {
    let mut t = uniting(10, config());
    t.write(1 << 30);
    t.recv([bytes(0, 10_000)]);
    t.time(200);
    t.send(ack(3));
    t.unseen.clear();
    for n in 4..=6 {
        t.send(ack(3).sack(4..=n));
    }
    let again: Vec<_> = t.unseen.drain(..).map(|(_, seg)| seg).filter(|s| s.seq == at(3)).collect();
    assert_eq!(again, [data(3)]);
}

#[test]
fn copies_count_up_within_a_unit() {
    // So that a corruption notice can name its copy.
    let eten = crate::mechanism::Eten::new(crate::mechanism::Suppression::None);
    let mechanisms = vec![crate::mechanism::Mechanism::Eten(eten)];
    let mut t = uniting(4, Config { mechanisms, ..config() });
    t.write(4000);
    t.recv([bytes(0, 4000)]);
    let first = t.copy(1);
    t.notice_of(at(3), CopyId(first.0 + 1)); // That was the second.
    t.silent();
    t.notice_of(at(3), CopyId(first.0 + 2));
    t.recv([data(3)]);
}

#[test]
fn a_unit_ends_where_the_payload_changes_its_identity() {
    let mut t = uniting(10, config());
    t.connection.write(3, 0, 2500);
    t.connection.write(5, 0, 2500);
    let mut units = vec![];
    let (mut packet, now) = (Packet::BLANK, t.now);
    while let Some(written) = t.connection.poll_transmit(now, 10, &mut packet) {
        units.push((packet.payload.stream, packet.payload.len, written.count));
    }
    assert_eq!(units, [(3, 2500, 3), (5, 2500, 3)]);
}

#[test]
fn a_fin_goes_with_the_last_data_of_a_unit() {
    for len in [2500, 3000] {
        let mut t = uniting(10, config());
        t.connection.write(3, 0, u64::from(len));
        t.close();
        t.recv([bytes(0, len).fin()]);
    }
}

#[test]
fn a_unit_keeps_to_both_windows_and_to_nagle() {
    let mut t = uniting(10, Config { nagle: true, ..config() });
    t.send(ack(1).window(3504));
    t.write(1 << 30);
    t.recv([bytes(0, 3000)]); // The rest of the window is no segment.
    let mut t = uniting(10, Config { nagle: true, ..config() });
    t.write(2500);
    t.recv([bytes(0, 2000)]); // The rest of the data waits.
    let mut t = uniting(10, Config { initial_window: InitialWindow::Segments(3), ..config() });
    t.write(1 << 30);
    t.recv([bytes(0, 3000)]);
}

#[test]
fn a_reduction_sets_cwr_once_per_unit() {
    let mut t = Diagram::new(&Config { ecn: EcnMode::Classic, ..config() }, Side::Active);
    t.recv([syn().ece().cwr()]);
    t.send(syn_ack().ece());
    t.recv([ack(1)]);
    t.unit = 10;
    t.write(1 << 30);
    t.recv([bytes(0, 10_000)]);
    t.time(200);
    t.send(ack(9).ece());
    t.recv([bytes(10_000, 13_000).cwr()]);
    assert_eq!(last_mark(&t), Ecn::Capable);
    t.send(ack(11));
    let flags = t.unseen.drain(..).map(|(_, seg)| seg.flags).collect::<Vec<_>>();
    assert!(flags.iter().all(|flags| !flags.contains(Flags::CWR)));
}

#[test]
fn a_unit_is_pushed_so_that_receive_offload_delivers_it() {
    for (unit, pushed) in [(1, false), (2, true)] {
        let mut t = uniting(unit, config());
        t.write(1 << 30);
        assert_eq!(t.last().flags.contains(Flags::PSH), pushed);
    }
}
