//! Packets that come in a row, and those that come one by one.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use wire::Udp;

/// Packets that come one after the other, a millisecond apart, until `until`.
struct Row {
    now: Time,
    until: Time,
    /// What comes; the first is here.
    coming: VecDeque<Packet>,
    /// The place of the next that goes out.
    place: Packet,
    sent: Vec<(Time, Packet)>,
    passed_on: usize,
}

impl<A> Outlet<A> for Row {
    fn packet(&mut self) -> &mut Packet {
        &mut self.place
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&A>) {
        self.sent.push((self.now, self.place));
    }
}

impl<A> Inlet<A> for Row {
    fn now(&self) -> Time {
        self.now
    }

    fn arrived(&mut self) -> &mut Packet {
        &mut self.coming[0]
    }

    fn answer(&mut self, _: Option<u32>, len: u32, _: wire::Ecn) {
        assert_eq!(self.coming[0].len(), len);
        self.sent.push((self.now, self.coming[0]));
    }

    fn release(&mut self) {
        self.place = self.coming[0];
    }

    fn pass_on(&mut self) {
        self.passed_on += 1;
    }

    fn advance(&mut self) -> bool {
        let next = self.now + Duration::from_millis(1);
        if self.coming.len() == 1 || next >= self.until {
            return false;
        }
        self.coming.pop_front();
        self.now = next;
        true
    }
}

/// A client and a server with three connections between them.
fn acquainted() -> (Host<Traffic>, Host<Traffic>) {
    let (mut client, mut server) = (host(CLIENT), server(80));
    for stream in 0..3 {
        client.open(transfer(Time::ZERO, 80, stream, 100_000));
    }
    client.handle_timeout(Time::ZERO);
    for syn in sent(&mut client, Time::ZERO) {
        server.handle_packet(Time::ZERO, &syn);
    }
    for answer in sent(&mut server, Time::ZERO) {
        client.handle_packet(Time::ZERO, &answer);
    }
    (client, server)
}

/// Data for such a server: by stream, then by place.
fn data() -> Vec<Vec<Packet>> {
    let (mut client, mut server) = acquainted();
    let mut streams = vec![Vec::new(); 3];
    // The window opens with what the server says.
    for _ in 0..3 {
        for packet in sent(&mut client, Time::ZERO) {
            server.handle_packet(Time::ZERO, &packet);
            if packet.payload.len > 0 {
                streams[packet.payload.stream as usize].push(packet);
            }
        }
        for answer in sent(&mut server, Time::ZERO) {
            client.handle_packet(Time::ZERO, &answer);
        }
    }
    streams
}

/// What comes: a packet of a stream, a datagram, or one for another host.
fn coming() -> impl Strategy<Value = Vec<(u8, usize, usize)>> {
    let kind = prop_oneof![12 => Just(0u8), 1 => Just(1), 1 => Just(2)];
    prop::collection::vec((kind, 0usize..3, 0usize..12), 1..60)
}

proptest! {
    #[test]
    fn packets_in_a_row_are_dealt_with_as_one_by_one(coming in coming(), ahead in 1u64..20) {
        let streams = data();
        let packet = |&(kind, stream, place): &(u8, usize, usize)| {
            let mut packet = streams[stream][place % streams[stream].len()];
            match kind {
                1 => packet.body = Body::Udp(Udp { source_port: 1, destination_port: 2 }),
                2 => packet.ip.destination = CLIENT,
                _ => {}
            }
            packet
        };
        let packets: VecDeque<Packet> = coming.iter().map(packet).collect();

        let (mut one_by_one, mut answers) = (acquainted().1, Vec::new());
        for (number, packet) in (1..).zip(&packets) {
            if packet.ip.destination == SERVER {
                one_by_one.handle_packet(millis(number), packet);
                let sent = sent(&mut one_by_one, millis(number));
                answers.extend(sent.into_iter().map(|packet| (millis(number), packet)));
            }
        }

        let mut in_a_row = acquainted().1;
        let (place, sent, coming) = (Packet::BLANK, Vec::new(), packets.clone());
        let mut row = Row { now: millis(1), until: Time::ZERO, coming, place, sent, passed_on: 0 };
        loop {
            row.until = row.now + Duration::from_millis(ahead);
            let _ = in_a_row.exchange(&mut row);
            // Whatever was due meanwhile, the next comes all the same.
            row.coming.pop_front();
            row.now += Duration::from_millis(1);
            if row.coming.is_empty() {
                break;
            }
        }
        let foreign = packets.iter().filter(|packet| packet.ip.destination != SERVER).count();
        prop_assert_eq!(row.passed_on, foreign);
        prop_assert_eq!(row.sent, answers);
        let counted = |host: &Host<Traffic>| Statistics { fast_path: 0, ..host.statistics() };
        prop_assert_eq!(counted(&in_a_row), counted(&one_by_one));
        prop_assert_eq!(received(&in_a_row), received(&one_by_one));
    }
}
