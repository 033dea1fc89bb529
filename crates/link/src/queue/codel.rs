//! Controlled delay.

use super::{Backlog, Waiting};
use base::{Duration, Time};

/// CoDel (RFC 8289): once every packet has waited longer than `target` for an `interval`, packets
/// are dropped as their turn comes, faster and faster until waiting is short again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// For how long a packet may wait.
    pub target: Duration,
    /// About the longest round-trip time of the flows over the link.
    pub interval: Duration,
    /// Bytes in the longest packet: with no more behind it, none is dropped.
    pub max_packet: u32,
    /// ECN-capable packets are marked (RFC 3168 §5) where others are dropped.
    pub ecn: bool,
}

impl Default for CoDel {
    /// 5 and 100 ms, packets of up to 1500 bytes, without marks.
    fn default() -> CoDel {
        CoDel {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            max_packet: 1500,
            ecn: false,
        }
    }
}

/// The state of CoDel, and what it does: the pseudocode of RFC 8289 §5.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    codel: CoDel,
    /// When waiting will have been too long for an interval, while it is too long.
    first_above: Option<Time>,
    dropping: bool,
    /// When the next is dropped.
    drop_next: Time,
    /// Drops since dropping began.
    count: u64,
    /// The same when it began last.
    last_count: u64,
}

impl Control {
    pub(crate) fn new(codel: CoDel) -> Control {
        Control {
            codel,
            first_above: None,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// The packet to be transmitted next, marked perhaps; those before it are dropped.
    pub(crate) fn dequeue<P: Copy>(
        &mut self,
        now: Time,
        backlog: &mut Backlog<P>,
        mut drop: impl FnMut(P),
    ) -> Option<Waiting<P>> {
        let (mut packet, late) = self.take(now, backlog);
        if self.dropping {
            self.dropping = late;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let kept = self.mark_or_drop(&mut packet, &mut drop);
                if !kept {
                    (packet, self.dropping) = self.take(now, backlog);
                }
                if self.dropping {
                    self.drop_next = self.after(self.drop_next);
                }
                if kept {
                    break;
                }
            }
        } else if late {
            if !self.mark_or_drop(&mut packet, &mut drop) {
                (packet, _) = self.take(now, backlog);
            }
            self.dropping = true;
            // If it was dropping not long ago, it goes on where it had got to.
            let delta = self.count - self.last_count;
            let recent = now.since(self.drop_next) < self.codel.interval * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.after(now);
            self.last_count = self.count;
        }
        packet
    }

    /// Takes the next packet, and says whether it may be dropped.
    fn take<P: Copy>(&mut self, now: Time, backlog: &mut Backlog<P>) -> (Option<Waiting<P>>, bool) {
        let Some(packet) = backlog.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let short = now.since(packet.since) < self.codel.target;
        if short || backlog.bytes() <= u64::from(self.codel.max_packet) {
            self.first_above = None;
            return (Some(packet), false);
        }
        let due = *self.first_above.get_or_insert(now + self.codel.interval);
        (Some(packet), now >= due)
    }

    /// Whether the packet was marked, and is to be sent.
    fn mark_or_drop<P: Copy>(
        &self,
        packet: &mut Option<Waiting<P>>,
        drop: &mut impl FnMut(P),
    ) -> bool {
        match packet {
            Some(packet) if self.codel.ecn && packet.capable => {
                packet.marked = true;
                true
            }
            Some(packet) => {
                drop(packet.packet);
                false
            }
            None => false,
        }
    }

    /// When the next is dropped, after one at `time`: the control law.
    fn after(&self, time: Time) -> Time {
        let nanos = self.codel.interval.as_nanos() as f64 / (self.count as f64).sqrt();
        time + Duration::from_nanos(nanos as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn backlog(packets: u32, capable: bool) -> Backlog<u32> {
        let mut backlog = Backlog::new();
        for packet in 0..packets {
            let (since, marked) = (Time::ZERO, false);
            backlog.push(Waiting { packet, len: 1000, since, capable, marked, corrects: 0 });
        }
        backlog
    }

    /// A packet is sent every millisecond: when, in milliseconds, others are dropped or it is marked.
    fn milliseconds(codel: CoDel, mut backlog: Backlog<u32>) -> Vec<u64> {
        let mut control = Control::new(codel);
        let mut events = Vec::new();
        for millis in 1..1000 {
            let now = Time::ZERO + MS * millis;
            let packet = control.dequeue(now, &mut backlog, |_| events.push(millis));
            events.extend(packet.filter(|packet| packet.marked).map(|_| millis));
        }
        events
    }

    /// The control law, one interval after waiting was first too long (at 5 ms): each drop is
    /// interval / sqrt(count) after the last, at the next millisecond.
    fn law() -> Vec<u64> {
        let mut due = 105.0;
        let mut law = Vec::new();
        for count in 1.. {
            law.push(f64::ceil(due - 1e-6) as u64);
            due += 100.0 / f64::from(count).sqrt();
            if due > 999.0 {
                break;
            }
        }
        law
    }

    #[test]
    fn drops_follow_the_control_law() {
        assert_eq!(milliseconds(CoDel::default(), backlog(5000, false)), law());
    }

    #[test]
    fn capable_packets_are_marked_at_the_same_times() {
        let codel = CoDel { ecn: true, ..CoDel::default() };
        assert_eq!(milliseconds(codel, backlog(5000, true)), law());
        assert_eq!(milliseconds(codel, backlog(5000, false)), law());
    }

    #[test]
    fn a_short_wait_or_a_single_packet_drops_nothing() {
        let patient = CoDel { target: Duration::from_secs(2), ..CoDel::default() };
        assert!(milliseconds(patient, backlog(5000, false)).is_empty());
        let large = CoDel { max_packet: 5_000_000, ..CoDel::default() };
        assert!(milliseconds(large, backlog(5000, false)).is_empty());
    }

    #[test]
    fn dropping_that_stopped_not_long_ago_goes_on_where_it_had_got_to() {
        let mut control = Control::new(CoDel::default());
        let drops = |control: &mut Control, from: u64, to: u64| {
            let mut queue = backlog(5000, false);
            let mut drops = 0;
            for millis in from..to {
                control.dequeue(Time::ZERO + MS * millis, &mut queue, |_| drops += 1);
            }
            drops
        };
        let first = drops(&mut control, 1, 1000);
        assert_eq!(drops(&mut control, 1000, 1000), 0);
        control.dequeue(Time::ZERO + MS * 1000, &mut backlog(1, false), |_| {});
        // Again too long from 1001 ms on: from 1101 ms on it drops as fast as at the end.
        let second = drops(&mut control, 1001, 1201);
        assert_eq!(control.last_count, first - 1);
        assert!(second > 3, "{second}");
        // A long time later it starts anew.
        control.dequeue(Time::ZERO + MS * 5000, &mut backlog(1, false), |_| {});
        drops(&mut control, 5001, 5103);
        assert_eq!(control.last_count, 1);
    }
}
