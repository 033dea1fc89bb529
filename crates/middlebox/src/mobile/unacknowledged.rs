//! What the host's own TCP has sent while the hop was down: the last segment of each connection.

use base::{Duration, Time};
use host::FourTuple;
use wire::{Body, Flags, Packet, Payload, Segment, SeqNumber};

/// Copies of segments that were sent in vain. They go when packets can pass again, and again until they are acknowledged:
/// the timers of their connections have backed off, and the first that goes may be lost, as while routes are set up.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    segments: Vec<Packet>,
    /// How often they have gone since packets can pass again.
    sent: u32,
    /// When they go next, once there are any.
    next: Time,
}

impl Unacknowledged {
    /// The most connections.
    const MOST: usize = 64;
    /// How often they go: within 3 s.
    const MOST_SENT: u32 = 5;
    /// How long an answer is awaited first; twice as long each time.
    const FIRST_WAIT: Duration = Duration::from_millis(200);

    /// Keeps a copy of a segment that is to be acknowledged, in place of that of its connection before.
    pub(super) fn keep(&mut self, packet: &Packet) {
        let Some((connection, _)) = span(packet) else { return };
        self.segments.retain(|other| span(other).is_none_or(|(of, _)| of != connection));
        if self.segments.len() < Unacknowledged::MOST {
            self.segments.push(*packet);
        }
    }

    /// A segment of a connection has arrived, which is named as by the host.
    pub(super) fn on_arrival(&mut self, connection: &FourTuple, segment: &Segment) {
        let is_over = segment.flags.contains(Flags::RST);
        let is_acknowledged =
            |end: SeqNumber| segment.flags.contains(Flags::ACK) && segment.ack.beyond(end) >= 0;
        self.segments.retain(|packet| {
            span(packet)
                .is_some_and(|(of, end)| of != *connection || !(is_over || is_acknowledged(end)))
        });
    }

    /// The host is attached anew, and packets can pass.
    pub(super) fn on_attached(&mut self, now: Time) {
        (self.sent, self.next) = (0, now);
    }

    pub(super) fn clear(&mut self) {
        self.segments.clear();
    }

    /// When [`Unacknowledged::poll`] is to be called, if packets can pass.
    pub(super) fn poll_timeout(&self) -> Time {
        if self.segments.is_empty() { Time::NEVER } else { self.next }
    }

    /// The segments, if they are to go now.
    pub(super) fn poll(&mut self, now: Time) -> &[Packet] {
        if self.poll_timeout() > now {
            return &[];
        }
        if self.sent == Unacknowledged::MOST_SENT {
            self.clear();
        }
        self.next = now + Unacknowledged::FIRST_WAIT * (1 << self.sent);
        self.sent += 1;
        &self.segments
    }

    pub(super) fn payloads(&self) -> impl Iterator<Item = Payload> {
        self.segments.iter().map(|packet| packet.payload)
    }
}

/// The connection of a segment that takes sequence numbers, named as by its sender, and the first number after it.
fn span(packet: &Packet) -> Option<(FourTuple, SeqNumber)> {
    let Body::Tcp(segment) = &packet.body else { return None };
    let numbers = packet.payload.len + segment.control_len();
    let connection = FourTuple::of_segment(&packet.ip, segment).reversed();
    (numbers > 0).then_some((connection, segment.seq + numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;
    use wire::Ip;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// One of ten bytes from port `port` on.
    fn segment(port: u16, seq: u32) -> Packet {
        let mut packet = Packet::BLANK;
        packet.ip = Ip::new(IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        packet.payload.len = 10;
        *packet.make_tcp() = Segment {
            source_port: port,
            destination_port: 80,
            seq: SeqNumber(seq),
            flags: Flags::ACK,
            ..Segment::default()
        };
        packet
    }

    fn answer(segments: &mut Unacknowledged, port: u16, flags: Flags, ack: u32) {
        let connection = span(&segment(port, 0)).unwrap().0;
        let answer = Segment { flags, ack: SeqNumber(ack), ..Segment::default() };
        segments.on_arrival(&connection, &answer);
    }

    #[test]
    fn the_last_segment_of_each_connection_goes_until_it_is_acknowledged() {
        let mut segments = Unacknowledged::default();
        [segment(1, 1), segment(2, 1), segment(1, 11)].iter().for_each(|it| segments.keep(it));
        segments.on_attached(at(1000));
        assert_eq!(segments.poll(at(1000)), [segment(2, 1), segment(1, 11)]);
        assert!(segments.poll(at(1100)).is_empty());
        answer(&mut segments, 2, Flags::ACK, 10);
        answer(&mut segments, 1, Flags::ACK, 21);
        assert_eq!(segments.poll_timeout(), at(1200));
        assert_eq!(segments.poll(at(1200)), [segment(2, 1)]);
        answer(&mut segments, 2, Flags::RST, 0);
        assert_eq!(segments.poll_timeout(), Time::NEVER);
    }

    #[test]
    fn no_acknowledgment_is_kept() {
        let mut segments = Unacknowledged::default();
        let mut acknowledgment = segment(1, 1);
        acknowledgment.payload.len = 0;
        segments.keep(&acknowledgment);
        assert!(segments.poll(at(0)).is_empty());
    }

    #[test]
    fn they_go_a_few_times() {
        let mut segments = Unacknowledged::default();
        segments.keep(&segment(1, 1));
        segments.on_attached(at(0));
        let mut times = Vec::new();
        while segments.poll_timeout() != Time::NEVER {
            let now = segments.poll_timeout();
            if !segments.poll(now).is_empty() {
                times.push(now);
            }
        }
        assert_eq!(times, [0, 200, 600, 1400, 3000].map(at));
    }

    #[test]
    fn they_are_no_more_than_a_bound() {
        let mut segments = Unacknowledged::default();
        (0..1000).for_each(|port| segments.keep(&segment(port, 1)));
        assert_eq!(segments.poll(at(0)).len(), Unacknowledged::MOST);
    }
}
