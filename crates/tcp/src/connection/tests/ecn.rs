//! Explicit congestion notification (RFC 3168).

use super::*;

fn marking() -> Config {
    Config { ecn: EcnMode::Classic, ..config() }
}

/// A connection that has agreed on ECN, at 100 ms.
fn agreed(config: Config) -> Diagram {
    let mut t = Diagram::new(&config, Side::Active);
    t.recv([syn().ece().cwr()]);
    t.time(100);
    t.send(syn_ack().ece());
    t.recv([ack(1)]);
    t
}

/// The same with an endless stream.
fn filling() -> Diagram {
    let mut t = agreed(marking());
    t.write(1 << 40);
    t.recv(each(1..=10));
    t
}

#[test]
fn ecn_is_agreed_on_by_the_side_that_opens() {
    // RFC 3168 §6.1.1: an answer with ECE alone; a mere echo of both flags is none.
    let answers = [(syn_ack().ece(), true), (syn_ack(), false), (syn_ack().ece().cwr(), false)];
    for (answer, agreed) in answers {
        let mut t = Diagram::new(&marking(), Side::Active);
        t.recv([syn().ece().cwr()]);
        assert_eq!(last_mark(&t), Ecn::NotCapable, "§6.1.1: a SYN is not ECN-capable");
        t.send(answer);
        t.recv([ack(1)]);
        assert_eq!(last_mark(&t), Ecn::NotCapable, "§6.1.4: nor is a bare acknowledgment");
        t.write(500);
        t.recv([bytes(0, 500)]);
        assert_eq!(last_mark(&t), if agreed { Ecn::Capable } else { Ecn::NotCapable });
    }
}

#[test]
fn ecn_is_agreed_on_by_the_side_that_answers() {
    let offers = [
        (syn().ece().cwr(), syn_ack().ece(), Ecn::Capable),
        (syn().ece(), syn_ack(), Ecn::NotCapable),
        (syn().cwr(), syn_ack(), Ecn::NotCapable),
        (syn(), syn_ack(), Ecn::NotCapable),
    ];
    for (offer, answer, mark) in offers {
        let mut t = Diagram::new(&marking(), Side::Passive);
        t.send(offer);
        t.recv([answer]);
        assert_eq!(last_mark(&t), Ecn::NotCapable);
        t.send(ack(1));
        t.write(500);
        t.recv([bytes(0, 500)]);
        assert_eq!(last_mark(&t), mark);
    }
    let mut t = Diagram::new(&config(), Side::Passive);
    t.send(syn().ece().cwr());
    t.recv([syn_ack()]);
}

#[test]
fn only_new_data_is_ecn_capable() {
    // RFC 3168 §6.1.5: not a retransmission; §6.1.6: not a probe of a closed window.
    let mut t = agreed(marking());
    t.write(1000);
    t.recv([data(1)]);
    assert_eq!(last_mark(&t), Ecn::Capable);
    t.time(1100);
    t.recv([data(1)]);
    assert_eq!(last_mark(&t), Ecn::NotCapable);
    t.send(ack(2).window(0));
    t.write(1000);
    t.time(3100);
    t.recv([bytes(1000, 1001)]);
    assert_eq!(last_mark(&t), Ecn::NotCapable);
}

#[test]
fn congestion_is_echoed_until_the_peer_sends_cwr() {
    // RFC 3168 §6.1.3
    let mut t = agreed(marking());
    t.send(data(1));
    t.recv([ack(2)]);
    t.mark = Ecn::Congested;
    t.send(data(2));
    t.recv([ack(3).ece()]);
    t.mark = Ecn::Capable;
    t.send(data(3));
    t.recv([ack(4).ece()]);
    t.write(500);
    t.recv([bytes(0, 500).acking(at(4)).ece()]); // Data segments have the flag, too.
    t.send(data(4).cwr().acking(501));
    t.recv([ack(5).seq(501)]);
    t.mark = Ecn::Congested;
    t.send(data(5).cwr().acking(501)); // Both at once: it begins again.
    t.recv([ack(6).seq(501).ece()]);
}

#[test]
fn marks_mean_nothing_to_who_has_not_agreed() {
    let mut t = sending(config());
    t.mark = Ecn::Congested;
    t.send(data(1).acking(at(2)).ece());
    t.recv(each(11..=12).into_iter().map(|seg| seg.acking(at(2))));
    assert_eq!(t.statistics().reductions, 0);
}

#[test]
fn an_echo_halves_the_window_once_per_window_and_is_confirmed() {
    // RFC 3168 §6.1.2: as a loss would, but nothing is sent again.
    let mut t = filling();
    t.time(200);
    t.send(ack(2).ece());
    t.silent();
    assert_eq!(t.windows(), (segments(5), segments(5)));
    for n in 3..=6 {
        t.send(ack(n).ece()); // All of the same window.
        t.silent();
    }
    t.send(ack(7).ece());
    t.recv([data(11).cwr()]);
    t.send(ack(8));
    t.recv([data(12)]);
    assert_eq!((t.windows().1, t.statistics().reductions), (segments(5), 1));
    t.send(ack(11));
    t.unseen.clear();
    t.send(ack(12).ece()); // Of the next window.
    t.unseen.clear();
    assert_eq!(t.statistics().reductions, 2);
    assert_eq!(t.statistics().retransmissions, 0);
}

#[test]
fn an_echo_does_not_grow_the_window() {
    let mut t = agreed(Config { initial_window: InitialWindow::Segments(2), ..marking() });
    t.write(1 << 40);
    t.recv(each(1..=2));
    t.send(ack(3).ece());
    assert_eq!(t.windows().0, segments(1), "half of two, and nothing added");
    t.recv([data(3).cwr()]);
}

#[test]
fn a_loss_is_confirmed_with_the_next_new_data() {
    // RFC 3168 §6.1.2: CWR after any reduction; never on a retransmission.
    let mut t = filling();
    t.time(200);
    for n in 2..=4 {
        t.send(ack(1).sack(2..=n));
    }
    t.recv([data(1)]);
    t.time(300);
    t.send(ack(11));
    t.recv([data(11).cwr(), data(12), data(13), data(14), data(15)]);
}

#[test]
fn a_window_that_was_halved_for_an_echo_is_not_halved_again_for_a_loss() {
    let mut t = filling();
    t.time(200);
    t.send(ack(2).ece());
    for n in 3..=5 {
        t.send(ack(2).ece().sack(3..=n));
    }
    t.recv([data(2)]);
    assert_eq!((t.windows(), t.statistics().reductions), ((segments(5), segments(5)), 1));
}

#[test]
fn an_echo_is_not_undone_by_a_needless_retransmission() {
    let mut t = filling();
    t.time(200);
    t.send(ack(2).ece());
    for n in 3..=5 {
        t.send(ack(2).ece().sack(3..=n));
    }
    t.recv([data(2)]);
    t.time(210);
    t.send(ack(11));
    t.unseen.clear();
    t.time(300);
    t.send(ack(11).sack(2..=2));
    t.unseen.clear();
    assert_eq!((t.windows().1, t.statistics().undone), (segments(5), 0));
}

#[test]
fn a_timeout_is_a_reduction_of_its_window() {
    let mut t = filling();
    t.time(1100);
    t.recv([data(1)]);
    t.time(1200);
    t.send(ack(2).ece());
    assert_eq!(t.statistics().reductions, 0, "what the timeout has reduced is not reduced again");
    t.unseen.clear();
}

#[test]
fn a_syn_is_retransmitted_without_ecn() {
    // RFC 3168 §6.1.1.1
    let mut t = Diagram::new(&marking(), Side::Active);
    t.recv([syn().ece().cwr()]);
    t.time(1000);
    t.recv([syn()]);
    t.time(3000);
    t.recv([syn()]);
    t.time(3100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    t.write(500);
    t.recv([bytes(0, 500)]);
    assert_eq!((last_mark(&t), t.connection.info().ecn), (Ecn::NotCapable, false));
}

#[test]
fn a_late_answer_to_a_withdrawn_offer_makes_marks_count_but_sends_none() {
    // RFC 3168 §6.1.1: no ECT after a SYN without ECN; marks of the peer's data are echoed.
    let mut t = Diagram::new(&marking(), Side::Active);
    t.recv([syn().ece().cwr()]);
    t.time(1000);
    t.recv([syn()]);
    t.send(syn_ack().ece());
    t.recv([ack(1)]);
    t.write(500);
    t.recv([bytes(0, 500)]);
    assert_eq!((last_mark(&t), t.connection.info().ecn), (Ecn::NotCapable, false));
    t.mark = Ecn::Congested;
    t.send(data(1).acking(501));
    t.recv([ack(2).seq(501).ece()]);
}

#[test]
fn a_reset_that_answers_an_offer_of_ecn_is_believed_the_second_time() {
    // RFC 3168 §6.1.1.1
    let mut t = Diagram::new(&marking(), Side::Active);
    t.recv([syn().ece().cwr()]);
    t.send(ack(1).rst().acking(2));
    t.silent(); // It acknowledges something else.
    t.send(ack(1).rst());
    t.recv([syn()]);
    assert_eq!(t.state(), State::SynSent);
    let mut refused = t;
    refused.send(ack(1).rst());
    refused.silent();
    assert_eq!(refused.connection.take_events(), Events::RESET | Events::CLOSED);
}

#[test]
fn a_reset_without_an_offer_or_after_a_timeout_ends_the_connection() {
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.send(ack(1).rst());
    t.silent();
    assert_eq!(t.state(), State::Closed);
    let mut t = Diagram::new(&marking(), Side::Active);
    t.recv([syn().ece().cwr()]);
    t.time(1000);
    t.recv([syn()]);
    t.send(ack(1).rst());
    t.silent();
    assert_eq!(t.state(), State::Closed);
}

#[test]
fn a_peer_that_falls_back_is_answered_without_ecn() {
    let mut t = Diagram::new(&marking(), Side::Passive);
    t.send(syn().ece().cwr());
    t.recv([syn_ack().ece()]);
    t.send(syn());
    t.recv([syn_ack()]);
    t.send(ack(1));
    t.write(500);
    t.recv([bytes(0, 500)]);
    assert_eq!(last_mark(&t), Ecn::NotCapable);
    // The same SYN again changes nothing.
    let mut t = Diagram::new(&marking(), Side::Passive);
    t.send(syn().ece().cwr());
    t.recv([syn_ack().ece()]);
    t.send(syn().ece().cwr());
    t.recv([syn_ack().ece()]);
}

#[test]
fn in_a_simultaneous_open_no_ect_follows_a_syn_without_ecn() {
    let mut t = Diagram::new(&marking(), Side::Active);
    t.recv([syn().ece().cwr()]);
    t.time(1000);
    t.recv([syn()]);
    t.send(syn().ece().cwr());
    t.recv([syn_ack()]);
    t.send(syn_ack());
    t.unseen.clear();
    t.write(500);
    t.recv([bytes(0, 500)]);
    assert_eq!(last_mark(&t), Ecn::NotCapable);
}
