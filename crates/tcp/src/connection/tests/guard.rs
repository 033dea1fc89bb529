//! Forged notices, and what becomes of them (`bbn8333` §6.2, §7.1).

use super::*;
use crate::mechanism::{Eten, Mechanism, NoticeAuthentication};

fn with(guard: NoticeAuthentication, recovery: Recovery) -> Config {
    let mechanisms = vec![Mechanism::NoticeAuthentication(guard), Mechanism::Eten(Eten::default())];
    Config { recovery, initial_ssthresh: Some(segments(10)), mechanisms, ..config() }
}

fn nonces() -> Config {
    with(NoticeAuthentication::new(true, false, 0), Recovery::Sack)
}

fn trust() -> Config {
    with(NoticeAuthentication::new(false, true, 0), Recovery::Sack)
}

#[test]
fn a_notice_that_names_the_nonce_is_believed() {
    let mut t = sending(nonces());
    t.time(150);
    t.notice(3);
    t.recv([data(3)]);
    t.time(200);
    t.notice(3); // The copy that the first notice led to.
    t.recv([data(3)]);
    assert_eq!(t.statistics().notices, 2);
}

#[test]
fn a_notice_that_counts_copies_or_names_none_is_not() {
    let mut t = sending(nonces());
    t.time(150);
    for copy in 0..100 {
        t.notice_of(at(3), CopyId(copy));
    }
    let CopyId(nonce) = t.copy(3);
    t.notice_of(at(3), CopyId(nonce.wrapping_add(1)));
    t.notice_of(at(4), CopyId(nonce));
    t.silent();
}

#[test]
fn one_nonce_does_not_reveal_the_next() {
    let t = sending(nonces());
    let copies: Vec<u32> = (1..=10).map(|n| t.copy(n).0).collect();
    let steps: std::collections::BTreeSet<_> =
        copies.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    assert_eq!(steps.len(), 9, "{copies:?}");
}

/// Two corruption notices, as many as a new connection trusts.
fn two_notices(t: &mut Diagram) {
    t.time(150);
    for n in 1..=2 {
        t.notice(n);
        t.recv([data(n)]);
    }
    t.notice(3);
    t.silent();
}

#[test]
fn what_is_acknowledged_sooner_than_it_can_have_been_repaired_was_not_lost() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let mut t = sending(with(NoticeAuthentication::new(false, true, 0), recovery));
        t.time(180);
        t.notice(1);
        t.recv([data(1)]);
        t.time(200);
        t.send(ack(2)); // Half a round trip is 50 ms.
        t.recv([data(11)]);
        assert_eq!(t.statistics().refuted, 1);
        t.notice(2);
        t.silent();
    }
}

#[test]
fn what_is_selectively_acknowledged_too_soon_was_not_lost_either() {
    let mut t = sending(trust());
    t.time(180);
    t.notice(2);
    t.recv([data(2)]);
    t.time(200);
    t.send(ack(1).sack(2..=2));
    assert_eq!(t.statistics().refuted, 1);
}

#[test]
fn what_arrives_twice_was_not_lost() {
    let mut t = sending(trust());
    t.time(140);
    t.notice(1);
    t.recv([data(1)]);
    t.time(200);
    t.send(ack(2)); // As late as if it had been repaired.
    t.recv([data(11)]);
    assert_eq!(t.statistics().refuted, 0);
    t.time(240);
    t.send(ack(2).sack(1..=1)); // RFC 2883
    assert_eq!(t.statistics().refuted, 1);
    t.notice(2);
    t.silent();
}

#[test]
fn a_repair_that_nothing_speaks_against_earns_trust() {
    let mut t = sending(trust());
    two_notices(&mut t);
    t.time(250);
    for n in 2..=11 {
        t.send(ack(n)); // A round trip after the repairs.
    }
    t.recv(each(11..=20));
    t.time(350);
    t.send(ack(12));
    t.recv(each(21..=22));
    // Four now, but not yet the fifth.
    for n in 12..=15 {
        t.notice(n);
        t.recv([data(n)]);
    }
    t.notice(16);
    t.silent();
    assert_eq!(t.statistics().refuted, 0);
}

#[test]
fn without_trust_the_loss_is_what_it_is_to_any_tcp() {
    let mut t = sending(trust());
    two_notices(&mut t);
    t.time(200);
    t.send(ack(3).sack(1..=1)); // RFC 2883
    t.recv(each(11..=12));
    t.send(ack(3).sack(2..=2));
    assert_eq!(t.statistics().refuted, 2);
    t.notice(3);
    t.silent();
    for last in 4..=6 {
        t.send(ack(3).sack(4..=last));
    }
    t.recv([data(3)]);
    assert_eq!(t.statistics().reductions, 1);
}

#[test]
fn a_pause_later_one_notice_is_believed_again() {
    let mut t = sending(trust());
    t.time(180);
    t.notice(1);
    t.recv([data(1)]);
    t.time(200);
    t.send(ack(2));
    t.recv([data(11)]);
    t.time(1100);
    for n in 3..=12 {
        t.send(ack(n));
    }
    t.recv(each(12..=22));
    t.time(2201);
    t.unseen.clear();
    t.notice(13);
    assert!(t.unseen.iter().any(|(at, seg)| *at == t.now && *seg == data(13)));
}

#[test]
fn the_limit_counts_what_is_believed_in_a_round_trip() {
    let mut t = sending(with(NoticeAuthentication::new(false, false, 2), Recovery::Sack));
    t.time(150);
    for n in 3..=4 {
        t.notice(n);
        t.recv([data(n)]);
    }
    t.notice(5);
    t.silent();
    t.time(250);
    t.notice(5);
    t.recv([data(5)]);
}
