//! Timestamps (RFC 7323): what is echoed, what is measured, what is refused.

use super::*;
use crate::{DropReason, Event};

const DAY: u64 = 24 * 3600 * 1000;

fn stamp(t: &Diagram) -> Option<(u32, u32)> {
    t.last().options.timestamps.map(|stamp| (stamp.value, stamp.echo))
}

fn refusals(t: &mut Diagram) -> Vec<DropReason> {
    let events = core::iter::from_fn(|| t.connection.poll_event());
    events.filter_map(|e| if let Event::Refused { why } = e { Some(why) } else { None }).collect()
}

#[test]
fn timestamps_are_offered_and_echoed() {
    let mut t = Diagram::new(&Config { timestamps: true, ..config() }, Side::Active);
    t.recv([syn()]);
    assert_eq!(stamp(&t), Some((5000, 0)), "RFC 7323 §3.2: nothing to echo yet");
    t.time(100);
    t.stamp = Some(77);
    t.send(syn_ack());
    t.recv([ack(1)]);
    assert_eq!(stamp(&t), Some((5100, 77)));
    t.time(150);
    t.write(2000); // RFC 6691 §2: the option takes 12 bytes of each segment.
    t.recv([bytes(0, 988), bytes(988, 1976), bytes(1976, 2000)]);
    assert_eq!(stamp(&t), Some((5150, 77)));
    t.abort();
    t.recv([ack(1).seq(2001).rst()]); // RFC 7323 §3.2: in resets, too.
    assert_eq!(stamp(&t), Some((5150, 77)));
}

#[test]
fn timestamps_need_the_offer_of_both() {
    let mut t = Diagram::new(&Config { timestamps: true, ..config() }, Side::Active);
    t.recv([syn()]);
    t.send(syn_ack());
    t.recv([ack(1)]);
    assert_eq!(stamp(&t), None);
    t.write(1000);
    t.recv([data(1)]);
    for offers in [true, false] {
        let mut t = Diagram::new(&Config { timestamps: true, ..config() }, Side::Passive);
        t.stamp = offers.then_some(3);
        t.send(syn());
        t.recv([syn_ack()]);
        assert_eq!(stamp(&t), offers.then_some((5000, 3)));
    }
    // Timestamps that were not negotiated are ignored.
    let mut t = established(config());
    t.stamp = Some(50);
    t.send(data(1));
    t.stamp = Some(40);
    t.send(data(2));
    t.recv([ack(2), ack(3)]);
    assert_eq!(stamp(&t), None);
}

#[test]
fn the_echo_is_of_the_segment_that_the_acknowledgment_waited_for() {
    // RFC 7323 §4.3 (A): a delayed acknowledgment shows the delay; R3's Last.ACK.sent rule.
    let delayed_ack = Some(Duration::from_millis(40));
    let mut t = stamped(Config { delayed_ack, ..config() });
    t.stamp = Some(200);
    t.send(data(1));
    t.silent();
    t.stamp = Some(300);
    t.send(data(2));
    t.recv([ack(3)]);
    assert_eq!(stamp(&t), Some((5100, 200)));
}

#[test]
fn the_echo_is_of_the_last_segment_that_advanced_the_window() {
    // RFC 7323 §4.3 (B), (C): a segment after a hole has no say, the one that fills it has.
    let mut t = stamped(config());
    t.stamp = Some(300);
    t.send(data(2));
    t.recv([ack(1).sack(2..=2)]);
    assert_eq!(stamp(&t), Some((5100, 100)));
    t.stamp = Some(310);
    t.send(data(1));
    t.recv([ack(3)]);
    assert_eq!(stamp(&t), Some((5100, 310)));
}

#[test]
fn an_old_duplicate_is_refused_and_acknowledged() {
    // PAWS, RFC 7323 §5.3, R1: the sequence number alone would pass.
    let mut t = stamped(config());
    t.connection.watch(true);
    t.stamp = Some(200);
    t.send(data(1));
    t.recv([ack(2)]);
    t.stamp = Some(199);
    t.send(data(2).fin());
    t.recv([ack(2)]);
    assert_eq!(refusals(&mut t), [DropReason::OldTimestamp]);
    assert_eq!((t.state(), t.read(0)), (State::Established, 1000));
    t.stamp = Some(200); // An equal one is good.
    t.send(data(2));
    t.recv([ack(3)]);
}

#[test]
fn timestamps_wrap() {
    let mut t = Diagram::new(&Config { timestamps: true, ..config() }, Side::Active);
    t.recv([syn()]);
    t.stamp = Some(u32::MAX - 5);
    t.send(syn_ack());
    t.recv([ack(1)]);
    t.stamp = Some(4);
    t.send(data(1));
    t.recv([ack(2)]);
    assert_eq!(stamp(&t), Some((5000, 4)));
    t.stamp = Some(u32::MAX); // Before the wrap: old.
    t.send(data(2));
    t.recv([ack(2)]);
}

#[test]
fn a_timestamp_of_an_idle_connection_expires_after_24_days() {
    // RFC 7323 §5.5: the peer's clock may have wrapped its sign by then.
    for (days, old) in [(24, false), (23, true)] {
        let mut t = stamped(config());
        t.time(100 + days * DAY);
        t.stamp = Some(99);
        t.send(data(1));
        t.recv([ack(if old { 1 } else { 2 })]);
        assert_eq!(t.read(0), if old { 0 } else { 1000 });
    }
}

#[test]
fn a_segment_without_a_timestamp_is_dropped_if_they_are_required() {
    // RFC 7323 §3.2: silently.
    let mut t = stamped(Config { require_timestamps: true, ..config() });
    t.connection.watch(true);
    t.stamp = None;
    t.send(data(1));
    t.silent();
    assert_eq!(refusals(&mut t), [DropReason::NoTimestamp]);
}

#[test]
fn a_segment_without_a_timestamp_is_taken_as_it_is() {
    // As by Linux. It leaves TS.Recent alone, and an old timestamp stays old.
    let mut t = stamped(config());
    t.stamp = None;
    t.send(data(1));
    t.recv([ack(2)]);
    assert_eq!(t.last().options.timestamps.map(|stamp| stamp.echo), Some(100));
    t.stamp = Some(99);
    t.send(data(2));
    t.recv([ack(2)]);
    assert_eq!(t.read(0), 1000);
}

#[test]
fn an_acknowledgment_without_a_timestamp_measures_as_without_timestamps() {
    let mut t = stamped(config());
    t.write(1000 - 12);
    t.recv([bytes(0, 988)]);
    t.stamp = None;
    t.time(300);
    t.send(ack(1).acking(989));
    // 100 ms at first, then 200 ms: 7/8 * 100 + 1/8 * 200.
    assert_eq!(t.connection.vitals().srtt, Some(Duration::from_micros(112_500)));
}

#[test]
fn a_reset_needs_no_timestamp() {
    // RFC 7323 §5.2: nor is it refused for an old one.
    for old in [None, Some(1)] {
        let mut t = stamped(config());
        t.stamp = old;
        t.send(ack(1).rst());
        assert_eq!(t.connection.take_events(), Events::RESET | Events::CLOSED);
    }
}

#[test]
fn the_echo_times_what_was_sent_twice() {
    // RFC 7323 §4.1: the timestamp knows which copy was meant, Karn's rule need not forbid it.
    let rto = Rto { minimum: Duration::ZERO, ..Rto::default() };
    let mut t = stamped(Config { rto, ..config() });
    t.write(500);
    t.recv([bytes(0, 500)]);
    t.time(400);
    t.recv([bytes(0, 500)]);
    t.time(450);
    t.send(ack(1).acking(501));
    // 50 ms: SRTT = 7/8 * 100 + 50/8, RTTVAR = 3/4 * 50 + 1/4 * |100 - 50|; the back-off is over.
    assert_eq!(t.connection.vitals().srtt, Some(Duration::from_micros(93_750)));
    assert_eq!(t.connection.vitals().rto, Duration::from_micros(293_750));
}

#[test]
fn an_echo_of_the_future_is_not_believed() {
    let mut t = stamped(config());
    t.write(500);
    t.recv([bytes(0, 500)]);
    t.time(1100);
    t.recv([bytes(0, 500)]);
    let wire::Body::Tcp(last) = &mut t.sent.last_mut().unwrap().body else { panic!("not TCP") };
    last.options.timestamps = Some(wire::Timestamps { value: 9000, echo: 0 });
    t.time(1200);
    t.send(ack(1).acking(501));
    assert_eq!(t.connection.vitals().srtt, Some(Duration::from_millis(100)));
}

#[test]
fn three_blocks_fit_beside_a_timestamp() {
    // RFC 2018 §3
    let mut t = stamped(config());
    for n in [2, 4, 6] {
        t.send(data(n));
    }
    t.unseen.clear();
    t.send(data(8));
    t.recv([ack(1).sack(8..=8).sack(6..=6).sack(4..=4)]);
    assert!(t.last().options.len() <= 40);
}

#[test]
fn blocks_fit_beside_data_or_go_alone() {
    // RFC 6691 §3: data and options together are no longer than the segment size.
    let mut t = stamped(config());
    t.write(970);
    t.recv([bytes(0, 970)]);
    t.send(data(3)); // 988 - 960 leaves room for three blocks, 988 - 975 for one, 988 for none.
    t.recv([ack(1).seq(971).sack(3..=3)]);
    t.send(data(5).acking(971));
    t.recv([ack(1).seq(971).sack(5..=5).sack(3..=3)]);
    let (mut packet, now) = (Packet::BLANK, t.now);
    for (len, blocks) in [(960, 2), (975, 1), (988, 0)] {
        let end = t.connection.sender.stream.end() - 1;
        t.connection.write(3, end, len);
        t.connection.poll_transmit(now, 1, &mut packet).unwrap();
        let wire::Body::Tcp(segment) = packet.body else { panic!("not TCP") };
        assert_eq!(
            (u64::from(packet.payload.len), segment.options.sack.as_slice().len()),
            (len, blocks)
        );
        assert!(packet.payload.len + segment.options.len() as u32 <= MSS);
    }
}

#[test]
fn nothing_but_a_syn_has_a_timestamp_before_the_peer_has_spoken() {
    // RFC 7323 §3.2
    let mut t = Diagram::new(&Config { timestamps: true, ..config() }, Side::Active);
    t.recv([syn()]);
    t.stamp = Some(100);
    t.send(syn_ack().acking(7));
    t.recv([reset(7)]);
    assert_eq!(stamp(&t), None);
}

#[test]
fn what_paws_refuses_has_few_answers_until_something_is_acceptable() {
    // RFC 7323 §5.3, R1. What carries data or a FIN is sent again by a timer, and always answered.
    let mut t = stamped(Config { out_of_window_acks: 2, ..config() });
    let old = |t: &mut Diagram, seg: Seg| {
        t.stamp = Some(99);
        t.send(seg);
        t.stamp = Some(100);
    };
    for _ in 0..2 {
        old(&mut t, ack(1));
        t.recv([ack(1)]);
    }
    t.time(60_000); // Time alone gives no more.
    old(&mut t, ack(1));
    t.silent();
    for seg in [data(1), ack(1).fin()] {
        old(&mut t, seg);
        t.recv([ack(1)]);
    }
    t.send(data(1));
    t.recv([ack(2)]);
    old(&mut t, ack(1));
    t.recv([ack(2)]);
}

/// What two connections send each other, `delay` apart.
struct Pair {
    ends: [Connection; 2],
    /// Arrivals: when, at which end, what.
    flying: VecDeque<(Time, usize, Segment)>,
    now: Time,
    delay: Duration,
}

impl Pair {
    /// An end sends what it has to send.
    fn transmit(&mut self, end: usize) {
        let mut packet = Packet::BLANK;
        while self.ends[end].poll_transmit(self.now, 1, &mut packet).is_some() {
            let segment = *packet.tcp_mut().unwrap();
            self.flying.push_back((self.now + self.delay, 1 - end, segment));
        }
    }

    fn handle(&mut self, end: usize, segment: &Segment) {
        self.ends[end].handle_segment(self.now, segment, Payload::default(), Ecn::NotCapable);
        self.transmit(end);
    }

    /// Delivers at most so many segments; returns how many there were.
    fn run(&mut self, most: usize) -> usize {
        for count in 0..most {
            let Some((at, end, segment)) = self.flying.pop_front() else { return count };
            self.now = at;
            self.handle(end, &segment);
        }
        most
    }
}

#[test]
fn two_ends_that_refuse_each_others_timestamps_fall_silent() {
    // An attacker has moved TS.Recent of both ahead (RFC 7323 §7); over a long path as well, where a
    // limit of the rate alone would let them answer each other for ever.
    for delay in [1, 1000] {
        let config = Config { timestamps: true, ..config() };
        let other = Identity { local_port: 2, remote_port: 1, iss: PEER_ISS, ..IDENTITY };
        let ends = [
            Connection::new(&config, Side::Active, IDENTITY),
            Connection::new(&config, Side::Passive, other),
        ];
        let delay = Duration::from_millis(delay);
        let mut pair = Pair { ends, flying: VecDeque::new(), now: Time::ZERO, delay };
        pair.transmit(0);
        assert_eq!(pair.run(100), 3, "the handshake");
        for (end, seq, ack) in [(0, PEER_ISS, ISS), (1, ISS, PEER_ISS)] {
            let mut forged =
                Segment { flags: Flags::ACK, seq: seq + 1, ack: ack + 1, ..Segment::default() };
            forged.window = 1000;
            forged.options.timestamps = Some(wire::Timestamps { value: 1 << 30, echo: 5000 });
            pair.handle(end, &forged);
        }
        assert_eq!(pair.run(100), 0);
        // An old segment to one of them begins it.
        let mut old =
            Segment { flags: Flags::ACK, seq: PEER_ISS + 1, ack: ISS + 1, ..Segment::default() };
        old.options.timestamps = Some(wire::Timestamps { value: 5000, echo: 5000 });
        pair.handle(0, &old);
        assert_eq!(pair.run(1000), 20, "each has answered ten times");
        assert!(pair.ends.iter().all(|end| end.poll_timeout() == Time::NEVER));
    }
}

#[test]
fn an_echo_from_before_what_is_outstanding_was_sent_is_not_believed() {
    // RFC 7323 §4.1 takes what is echoed for a round trip; one of an hour would keep the timer at its
    // maximum for long.
    let twice = |echo: u32| {
        let mut t =
            stamped(Config { rto: Rto { minimum: Duration::ZERO, ..Rto::default() }, ..config() });
        t.time(3_600_000);
        t.write(500);
        t.recv([bytes(0, 500)]);
        t.time(3_600_300);
        t.recv([bytes(0, 500)]);
        t.time(3_600_350);
        t.echoes = Some(echo);
        t.send(ack(1).acking(501));
        t.connection.vitals().srtt
    };
    let unchanged = Some(Duration::from_millis(100));
    for absurd in [5000, 5000 + 3_600_000 - 1000, 5000 + 3_600_000 - 3] {
        assert_eq!(twice(absurd), unchanged, "{absurd}");
    }
    // That of the first copy can be: 350 ms.
    assert_eq!(twice(5000 + 3_600_000), Some(Duration::from_micros(131_250)));
}

mod flights {
    use super::super::super::timestamps::TimestampState;
    use base::{Duration, Time};
    use proptest::prelude::*;

    #[test]
    fn the_bound_moves_along_with_a_flight_that_never_ends() {
        // Two octets are outstanding at any time, each for two seconds.
        let mut clocks = TimestampState::new(77);
        let second = |n: u64| Time::ZERO + Duration::from_secs(n);
        for n in 2..3600 {
            clocks.on_ack(second(n), n - 2, n, second(n - 1));
        }
        let echo = |ago: u64| clocks.since(second(3599), clocks.value(second(3599 - ago)));
        assert!(echo(2).is_some() && echo(5).is_none());
    }

    proptest! {
        /// Whatever is sent and acknowledged, whenever: no true echo is refused, and none from before
        /// the last time that nothing was outstanding is believed.
        #[test]
        fn an_echo_of_what_is_outstanding_is_believed(
            steps in prop::collection::vec((0u64..400, 0u64..4, any::<bool>()), 1..200)
        ) {
            let mut clocks = TimestampState::new(77);
            let mut now = Time::ZERO + Duration::from_secs(1000);
            // When each octet was first sent, how many are acknowledged, and since when there is progress.
            let (mut sent, mut una, mut progress_at, mut idle_at) = (Vec::new(), 0, now, now);
            for (millis, octets, acks) in steps {
                now += Duration::from_millis(millis);
                if acks && una < sent.len() {
                    clocks.on_ack(now, una as u64, sent.len() as u64, progress_at);
                    // Any that is outstanding may be the one that the peer was waiting for.
                    for &at in &sent[una..] {
                        let echoed = clocks.since(now, clocks.value(at));
                        prop_assert!(echoed.is_some(), "sent at {at}, echoed at {now}");
                    }
                    prop_assert_eq!(clocks.since(now, clocks.value(idle_at).wrapping_sub(3)), None);
                    let next = (una + octets as usize).min(sent.len());
                    if next > una {
                        progress_at = now;
                    }
                    una = next;
                    if una == sent.len() {
                        clocks.on_all_acknowledged();
                    }
                } else {
                    if una == sent.len() && octets > 0 {
                        (progress_at, idle_at) = (now, now);
                    }
                    sent.extend((0..octets).map(|_| now));
                }
            }
        }
    }
}
