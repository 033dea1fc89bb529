use super::*;
use base::Rate;
use core::net::IpAddr;
use wire::Probability;

/// Packets of 1000 bytes from the second second on, for an application of this many Mbit/s.
fn sender(megabits: u64) -> TfrcSender {
    TfrcSender::new(DatagramFlow {
        stream: 3,
        remote: IpAddr::from([10, 0, 0, 2]),
        remote_port: 5001,
        local_port: Tfrc::PORT,
        payload: 960,
        rate: Rate::from_bps(megabits * 1_000_000).unwrap(),
        start: millis(1000),
        stop: Time::NEVER,
        bursts: None,
    })
}

fn millis(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Feedback on what was sent at `echo`, after `delay`, all in milliseconds.
fn feedback(echo: u64, delay: u32, receive_rate: u32, p: f64) -> TfrcMessage {
    TfrcMessage::Feedback {
        timestamp: 1000 * echo as u32,
        delay: 1000 * delay,
        receive_rate,
        loss_event_rate: Probability::of(p),
    }
}

/// Sends what is due until a time, and handles timers; returns the times of the packets.
fn drive(sender: &mut TfrcSender, until: u64) -> Vec<Time> {
    let mut sent = Vec::new();
    while sender.poll_timeout() <= millis(until) {
        let now = sender.poll_timeout();
        sender.handle_timeout(now);
        while sender.poll_transmit(now).is_some() {
            sent.push(now);
        }
        assert!(sender.poll_timeout() > now, "no progress at {now}");
    }
    sent
}

/// A sender with a round-trip time of 100 ms, after its first feedback at 1.1 s.
fn started(megabits: u64) -> TfrcSender {
    let mut sender = sender(megabits);
    drive(&mut sender, 1050);
    sender.handle_packet(millis(1100), &feedback(1000, 0, 0, 0.0));
    sender
}

#[test]
fn without_feedback_the_rate_starts_at_a_packet_a_second_and_halves() {
    let mut sender = sender(10);
    let sent = drive(&mut sender, 60_000);
    // RFC 5348 §4.2, §4.4: the timer first expires after 2 s, then after the time of two packets.
    assert_eq!(sent[..2], [millis(1000), millis(2000)]);
    assert!(sent.len() < 10, "{sent:?}");
    let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.windows(2).all(|pair| pair[0] <= pair[1]), "{gaps:?}");
    // To a packet in 64 seconds, no further.
    drive(&mut sender, 10_000_000);
    assert_eq!(sender.rate(), 1000.0 / 64.0);
}

#[test]
fn the_first_feedback_gives_the_round_trip_time_and_the_initial_window() {
    let mut sender = sender(10);
    drive(&mut sender, 1050);
    sender.handle_packet(millis(1130), &feedback(1000, 30, 0, 0.0));
    assert_eq!(sender.round_trip(), Some(Duration::from_millis(100)));
    // RFC 5348 §4.2: min(4 s, max(2 s, 4380)) bytes per round-trip time.
    assert_eq!(sender.rate(), 40_000.0);
    let Some((TfrcMessage::Data { round_trip, sequence, .. }, payload)) =
        sender.poll_transmit(millis(1130))
    else {
        panic!("the next packet is due 25 ms after the first")
    };
    assert_eq!((round_trip, sequence), (100_000, 1));
    assert_eq!(payload, Payload { stream: 3, offset: 960, len: 960 });
}

#[test]
fn slow_start_doubles_once_per_round_trip_time_and_to_twice_what_is_received() {
    let mut sender = started(100);
    let mut rates = Vec::new();
    // Feedback twice per round-trip time.
    for at in (1150..1500).step_by(50) {
        drive(&mut sender, at - 1);
        sender.handle_packet(millis(at), &feedback(at - 100, 0, 1_000_000, 0.0));
        rates.push(sender.rate() as u32);
    }
    assert_eq!(rates, [40_000, 80_000, 80_000, 160_000, 160_000, 320_000, 320_000]);
    for at in (1550..2000).step_by(50) {
        drive(&mut sender, at - 1);
        sender.handle_packet(millis(at), &feedback(at - 100, 0, 100_000, 0.0));
    }
    assert_eq!(sender.rate(), 200_000.0);
}

#[test]
fn a_loss_event_rate_gives_the_rate_of_the_equation_and_packets_at_equal_distances() {
    let mut sender = started(100);
    drive(&mut sender, 1199);
    sender.handle_packet(millis(1200), &feedback(1100, 0, 1_000_000, 0.01));
    let expected = equation::throughput(1000, Duration::from_millis(100), 0.01);
    assert!((sender.rate() / expected - 1.0).abs() < 1e-6, "{}", sender.rate());
    let sent = drive(&mut sender, 1299);
    let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
    assert!(gaps[1..].iter().all(|gap| (gap * expected / 1000.0 - 1.0).abs() < 1e-6), "{gaps:?}");
    // Twice what is received is less: the rates of two round-trip times count.
    for at in [1300, 1400, 1500] {
        drive(&mut sender, at - 1);
        sender.handle_packet(millis(at), &feedback(at - 100, 0, 20_000, 0.01));
    }
    assert_eq!(sender.rate(), 40_000.0);
}

#[test]
fn the_rate_halves_each_time_that_feedback_is_missing() {
    for p in [0.0, 0.01] {
        let mut sender = started(100);
        let mut at = 1200;
        while at < 1600 {
            drive(&mut sender, at - 1);
            sender.handle_packet(millis(at), &feedback(at - 100, 0, 500_000, p));
            at += 100;
        }
        let before = sender.rate();
        // Four round-trip times after the last feedback, and again.
        drive(&mut sender, 1899);
        assert_eq!(sender.rate(), before);
        drive(&mut sender, 1901);
        assert!((sender.rate() / before - 0.5).abs() < 1e-9, "{p}: {} {before}", sender.rate());
        drive(&mut sender, 2302);
        assert!((sender.rate() / before - 0.25).abs() < 1e-9, "{p}: {} {before}", sender.rate());
    }
}

#[test]
fn an_application_that_sends_less_does_not_raise_the_allowed_rate_without_end() {
    // RFC 5348 §4.3: twice the highest receive rate.
    let mut sender = started(1);
    for at in (1200..20_000).step_by(100) {
        drive(&mut sender, at - 1);
        sender.handle_packet(millis(at), &feedback(at - 100, 0, 125_000, 0.0));
    }
    assert!(sender.rate() <= 250_000.0, "{}", sender.rate());
    // A loss event while it is limited by its data lowers the limit.
    sender.handle_packet(millis(20_000), &feedback(19_900, 0, 100_000, 0.0001));
    assert_eq!(sender.rate(), 85_000.0);
}

#[test]
fn an_idle_sender_keeps_the_initial_rate() {
    let mut sender = started(100);
    for at in [1200, 1300] {
        drive(&mut sender, at - 1);
        sender.handle_packet(millis(at), &feedback(at - 100, 0, 10_000, 0.0));
    }
    let before = sender.rate();
    // Its timers are handled, but nothing is sent.
    for _ in 0..5 {
        let timer = sender.timer;
        sender.handle_timeout(timer);
    }
    // RFC 5348 §4.4: it is halved while it is at least twice the initial rate, and no further.
    assert_eq!((before, sender.rate()), (160_000.0, 40_000.0));
}

#[test]
fn feedback_that_echoes_what_was_not_sent_is_ignored() {
    let mut sender = started(100);
    let before = format!("{sender:?}");
    // From before the start, and from the future.
    for echo in [900, 1300] {
        sender.handle_packet(millis(1200), &feedback(echo, 0, 1, 1.0));
    }
    assert_eq!(format!("{sender:?}"), before);
}

#[test]
fn it_ends_when_it_is_to_stop() {
    let mut sender = sender(10);
    sender.flow.stop = millis(5000);
    let sent = drive(&mut sender, 1_000_000);
    assert!(sent.iter().all(|time| *time < millis(5000)) && sent.len() > 2, "{sent:?}");
    assert_eq!(sender.poll_timeout(), Time::NEVER);
}
