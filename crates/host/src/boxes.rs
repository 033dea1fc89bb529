//! The boxes of a node, run one behind the other.

use crate::middlebox::{DropReason, LinkEvent, Middlebox, Outbox, Port, Verdict};
use base::Time;
use wire::{Packet, Payload};

/// The boxes of a node, in the order in which packets pass them.
///
/// The simulator's node and the testbed's emulator call this for each packet, link event and deadline, and
/// then carry out [`Boxes::outbox`].
#[derive(Default)]
pub struct Boxes {
    boxes: Vec<Box<dyn Middlebox + Send>>,
    inspects_packets: bool,
    shares_state: bool,
    /// The packets and indications from the boxes, to be carried out.
    pub outbox: Outbox,
    dropped: [u64; DropReason::ALL.len()],
}

impl Boxes {
    /// Puts a box behind those that are there.
    pub fn add(&mut self, middlebox: Box<dyn Middlebox + Send>) {
        self.inspects_packets |= middlebox.inspects_packets();
        self.shares_state |= middlebox.shares_state();
        self.boxes.push(middlebox);
    }

    /// Whether there is no box.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// Whether a box inspects packets ([`Middlebox::inspects_packets`]).
    #[must_use]
    #[inline]
    pub fn inspect_packets(&self) -> bool {
        self.inspects_packets
    }

    /// Whether a box shares state with boxes of other nodes ([`Middlebox::shares_state`]).
    #[must_use]
    #[inline]
    pub fn share_state(&self) -> bool {
        self.shares_state
    }

    /// Passes a packet to the boxes in order, until one does not forward it.
    pub fn packet(&mut self, now: Time, from: Option<Port>, packet: &mut Packet) -> Verdict {
        self.pass(now, from, packet, 0)
    }

    /// Passes a packet to the boxes from the one with this number on.
    fn pass(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        first: usize,
    ) -> Verdict {
        for n in first..self.boxes.len() {
            let verdict = self.boxes[n].packet(now, from, packet, &mut self.outbox.context());
            self.pass_on(now, n + 1);
            match verdict {
                Verdict::Forward => {}
                Verdict::Consume => return Verdict::Consume,
                Verdict::Drop(reason) => {
                    self.dropped[reason as usize] += 1;
                    return Verdict::Drop(reason);
                }
            }
        }
        Verdict::Forward
    }

    /// Passes the packets that the box before the one with this number passes on.
    #[inline]
    fn pass_on(&mut self, now: Time, next: usize) {
        if self.outbox.passed.is_empty() {
            return;
        }
        for (from, mut packet) in core::mem::take(&mut self.outbox.passed) {
            if self.pass(now, from, &mut packet, next) == Verdict::Forward {
                self.outbox.context().send(packet);
            }
        }
    }

    /// Asks the boxes about a packet that is to take a link; returns whether none drops it.
    pub fn leaving(&mut self, now: Time, to: Port, packet: &Packet) -> bool {
        for middlebox in &mut self.boxes {
            if let Err(reason) = middlebox.leaving(now, to, packet, &mut self.outbox.context()) {
                self.dropped[reason as usize] += 1;
                return false;
            }
        }
        true
    }

    /// Passes on that the queue of a link from the node has accepted a packet.
    pub fn queued(&mut self, now: Time, to: Port, packet: &mut Packet) {
        for middlebox in &mut self.boxes {
            middlebox.queued(now, to, packet, &mut self.outbox.context());
        }
    }

    /// Passes on an event of a link that begins or ends at the node.
    pub fn link(&mut self, now: Time, port: Port, event: LinkEvent<'_>) {
        for n in 0..self.boxes.len() {
            self.boxes[n].link(now, port, event, &mut self.outbox.context());
            self.pass_on(now, n + 1);
        }
    }

    /// The next wake of any box; [`Time::NEVER`] without one.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        let wakes = self.boxes.iter().map(|middlebox| middlebox.next_wake());
        wakes.fold(Time::NEVER, Time::min)
    }

    /// Wakes the boxes that are due.
    pub fn wake(&mut self, now: Time) {
        for n in 0..self.boxes.len() {
            if self.boxes[n].next_wake() <= now {
                self.boxes[n].wake(now, &mut self.outbox.context());
                self.pass_on(now, n + 1);
            }
        }
    }

    /// Calls `held` with all payload that the boxes keep, or want to be sent.
    pub fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        for middlebox in &self.boxes {
            middlebox.held_payloads(held);
        }
        let outbox = &self.outbox;
        let sent = outbox.packets.iter().flat_map(|sent| outbox.payloads(sent.packet.payload));
        sent.for_each(held);
    }

    /// The counts of all boxes that are not 0.
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let mut counts = Vec::new();
        for middlebox in &self.boxes {
            middlebox.counts(&mut |name, value| {
                if value > 0 {
                    counts.push((name, value));
                }
            });
        }
        counts
    }

    /// The present value of each quantity that boxes hold ([`Middlebox::gauges`]), in the order of the boxes;
    /// where several have one of the same name, the sum.
    #[must_use]
    pub fn gauges(&self) -> Vec<(&'static str, u64)> {
        let mut gauges: Vec<(&'static str, u64)> = Vec::new();
        for middlebox in &self.boxes {
            middlebox.gauges(&mut |name, value| match gauges
                .iter_mut()
                .find(|gauge| gauge.0 == name)
            {
                Some((_, sum)) => *sum += value,
                None => gauges.push((name, value)),
            });
        }
        gauges
    }

    /// The number of packets that boxes dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// The numbers of packets that boxes dropped, by reason.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> {
        let all = DropReason::ALL.map(|reason| (reason, self.dropped(reason)));
        all.into_iter().filter(|&(_, packets)| packets > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middlebox::Context;

    /// Decides by the packet's length, and counts packets.
    struct Judge(fn(u32) -> Verdict, u32);

    impl Middlebox for Judge {
        fn packet(
            &mut self,
            _: Time,
            _: Option<Port>,
            packet: &mut Packet,
            cx: &mut Context<'_>,
        ) -> Verdict {
            self.1 += 1;
            packet.payload.len += 1;
            cx.send(*packet);
            (self.0)(packet.payload.len)
        }

        fn next_wake(&self) -> Time {
            Time::ZERO + base::Duration::from_millis(u64::from(self.1))
        }

        fn gauges(&self, gauge: &mut dyn FnMut(&'static str, u64)) {
            gauge("packets", self.1.into());
        }
    }

    fn drops_22(len: u32) -> Verdict {
        if len == 22 { Verdict::Drop(DropReason::Replay) } else { Verdict::Forward }
    }

    fn packet(len: u32) -> Packet {
        let mut packet = Packet::BLANK;
        packet.payload.len = len;
        packet
    }

    #[test]
    fn a_packet_passes_one_box_behind_the_other_until_one_does_not_forward_it() {
        let mut boxes = Boxes::default();
        boxes.add(Box::new(Judge(
            |len| if len == 11 { Verdict::Consume } else { Verdict::Forward },
            0,
        )));
        boxes.add(Box::new(Judge(drops_22, 0)));
        let verdicts = [10, 20, 30].map(|len| boxes.packet(Time::ZERO, None, &mut packet(len)));
        let expected = [Verdict::Consume, Verdict::Drop(DropReason::Replay), Verdict::Forward];
        assert_eq!(verdicts, expected);
        let sent: Vec<_> =
            boxes.outbox.packets.iter().map(|sent| sent.packet.payload.len).collect();
        assert_eq!(sent, [11, 21, 22, 31, 32]);
        assert_eq!(boxes.drops().collect::<Vec<_>>(), [(DropReason::Replay, 1)]);
        // The first has seen three packets, the second two: the earlier wake is returned.
        assert_eq!(boxes.next_wake(), Time::ZERO + base::Duration::from_millis(2));
        assert_eq!(boxes.gauges(), [("packets", 5)]);
    }

    /// Keeps each packet for a while.
    #[derive(Default)]
    struct Keeper(Option<Packet>);

    impl Middlebox for Keeper {
        fn packet(
            &mut self,
            _: Time,
            _: Option<Port>,
            packet: &mut Packet,
            cx: &mut Context<'_>,
        ) -> Verdict {
            if let Some(kept) = self.0.replace(*packet) {
                cx.pass_on(Some(Port(4)), kept);
            }
            Verdict::Consume
        }

        fn next_wake(&self) -> Time {
            if self.0.is_some() { Time::ZERO } else { Time::NEVER }
        }

        fn wake(&mut self, _: Time, cx: &mut Context<'_>) {
            self.0.take().into_iter().for_each(|kept| cx.pass_on(Some(Port(4)), kept));
        }
    }

    #[test]
    fn what_a_box_passes_on_goes_through_those_behind_it_only() {
        let mut boxes = Boxes::default();
        boxes.add(Box::new(Judge(|_| Verdict::Forward, 0)));
        boxes.add(Box::new(Keeper::default()));
        boxes.add(Box::new(Keeper::default()));
        boxes.add(Box::new(Judge(drops_22, 0)));
        for len in [10, 20, 30] {
            let verdict = boxes.packet(Time::ZERO, Some(Port(4)), &mut packet(len));
            assert_eq!(verdict, Verdict::Consume);
        }
        // Each keeper has one, and the last judge has added one to the third.
        let sent = |boxes: &Boxes| -> Vec<u32> {
            boxes.outbox.packets.iter().map(|sent| sent.packet.payload.len).collect()
        };
        assert_eq!(sent(&boxes), [11, 21, 31, 12, 12]);
        boxes.outbox = Outbox::default();
        boxes.wake(Time::ZERO);
        boxes.wake(Time::ZERO);
        assert_eq!(sent(&boxes), [22, 32, 32]);
        assert_eq!(boxes.dropped(DropReason::Replay), 1);
        assert!(boxes.outbox.passed.is_empty());
    }

    #[test]
    fn without_boxes_everything_is_forwarded_and_nothing_wakes() {
        let mut boxes = Boxes::default();
        assert_eq!(boxes.packet(Time::ZERO, None, &mut packet(1)), Verdict::Forward);
        assert!(boxes.next_wake() == Time::NEVER && boxes.outbox.is_empty());
        assert!(!boxes.inspect_packets() && !boxes.share_state());
    }
}
