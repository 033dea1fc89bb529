//! The ends of TFRC flows at a host.

use super::{FourTuple, Host, Outlet};
use crate::Application;
use crate::tfrc::{TfrcReceiver, TfrcSender};
use base::{Schedule, Time};
use rustc_hash::FxHashMap;
use tcp::PeerLosses;
use wire::{Ip, Packet, Payload, Tfrc, TfrcMessage};

impl<A: Application> Host<A> {
    /// Adds the sender of a TFRC flow between these ends; one of the ports is [`Tfrc::PORT`].
    pub fn send_tfrc(&mut self, ends: FourTuple, sender: TfrcSender) {
        self.datagrams.tfrc.add(ends, Machine::Sender(sender));
    }

    /// Adds the receiver of a TFRC flow between these ends; one of the ports is [`Tfrc::PORT`].
    pub fn receive_tfrc(&mut self, ends: FourTuple, receiver: TfrcReceiver) {
        self.datagrams.tfrc.add(ends, Machine::Receiver(receiver));
    }

    /// The senders of TFRC flows, with their ends, in the order of the calls.
    pub fn tfrc_senders(&self) -> impl Iterator<Item = (&FourTuple, &TfrcSender)> {
        self.datagrams.tfrc.ends.iter().filter_map(|end| match &end.machine {
            Machine::Sender(sender) => Some((&end.tuple, sender)),
            Machine::Receiver(_) => None,
        })
    }

    /// The receivers of TFRC flows, with their ends, in the order of the calls.
    pub fn tfrc_receivers(&self) -> impl Iterator<Item = (&FourTuple, &TfrcReceiver)> {
        self.datagrams.tfrc.ends.iter().filter_map(|end| match &end.machine {
            Machine::Sender(_) => None,
            Machine::Receiver(receiver) => Some((&end.tuple, receiver)),
        })
    }

    /// Processes a packet of TFRC.
    pub(super) fn on_tfrc(&mut self, now: Time, packet: &Packet, tfrc: &Tfrc) {
        if !self.datagrams.tfrc.handle_packet(now, packet, tfrc) {
            self.statistics.no_connection += 1;
        }
    }
}

/// The ends of TFRC flows.
#[derive(Debug, Default)]
pub(super) struct TfrcEnds {
    ends: Vec<TfrcEnd>,
    by_tuple: FxHashMap<FourTuple, u32>,
    /// When each is due.
    schedule: Schedule,
    /// A packet has arrived for an end since the last transmission, or one is due.
    changed: bool,
}

#[derive(Debug)]
struct TfrcEnd {
    machine: Machine,
    tuple: FourTuple,
    /// For the outlet.
    route: Option<u32>,
}

#[derive(Debug)]
enum Machine {
    Sender(TfrcSender),
    Receiver(TfrcReceiver),
}

impl Machine {
    fn poll_timeout(&self) -> Time {
        match self {
            Machine::Sender(sender) => sender.poll_timeout(),
            Machine::Receiver(receiver) if receiver.is_due() => Time::ZERO,
            Machine::Receiver(receiver) => receiver.poll_timeout(),
        }
    }

    /// Handles the timer that is due, if one is; returns the next message.
    fn poll_transmit(&mut self, now: Time) -> Option<(TfrcMessage, Payload)> {
        match self {
            Machine::Sender(sender) => {
                sender.handle_timeout(now);
                sender.poll_transmit(now)
            }
            Machine::Receiver(receiver) => {
                receiver.handle_timeout(now);
                Some((receiver.poll_transmit(now)?, Payload::default()))
            }
        }
    }
}

impl TfrcEnds {
    fn add(&mut self, tuple: FourTuple, machine: Machine) {
        let id = self.schedule.add();
        self.schedule.set(id, machine.poll_timeout());
        self.by_tuple.insert(tuple, id);
        self.ends.push(TfrcEnd { machine, tuple, route: None });
    }

    /// When the next is due.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.schedule.first().0
    }

    /// Marks what is due at `now`.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.changed |= self.next() <= now;
    }

    /// The causes of the packets that are missing before one that arrives next.
    pub(super) fn indicate(&mut self, tuple: &FourTuple, before: u32, losses: PeerLosses) {
        if let Some(&id) = self.by_tuple.get(tuple)
            && let Machine::Receiver(receiver) = &mut self.ends[id as usize].machine
        {
            receiver.indicate(before, losses);
        }
    }

    /// Processes a packet; returns whether it is for one of the ends.
    fn handle_packet(&mut self, now: Time, packet: &Packet, tfrc: &Tfrc) -> bool {
        let tuple = FourTuple::of_tfrc(&packet.ip, tfrc);
        let Some(&id) = self.by_tuple.get(&tuple) else { return false };
        let machine = &mut self.ends[id as usize].machine;
        match machine {
            Machine::Sender(sender) => sender.handle_packet(now, &tfrc.message),
            Machine::Receiver(receiver) => {
                receiver.handle_packet(now, packet.len(), &tfrc.message, packet.payload);
            }
        }
        self.schedule.set(id, machine.poll_timeout());
        self.changed = true;
        true
    }

    /// Sends what is due, after a packet or [`TfrcEnds::handle_timeout`]. Returns whether the next deadline may
    /// be earlier than before.
    #[inline]
    pub(super) fn transmit<A>(&mut self, now: Time, outlet: &mut impl Outlet<A>) -> bool {
        let changed = core::mem::take(&mut self.changed);
        if changed {
            self.send_due(now, outlet);
        }
        changed
    }

    /// Sends what is due at `now`.
    #[inline]
    pub(super) fn send_due<A>(&mut self, now: Time, outlet: &mut impl Outlet<A>) {
        while self.next() <= now {
            self.send_first(now, outlet);
        }
    }

    /// Sends what is due at one end.
    fn send_first<A>(&mut self, now: Time, outlet: &mut impl Outlet<A>) {
        let (_, id) = self.schedule.first();
        let TfrcEnd { machine, tuple, route } = &mut self.ends[id as usize];
        if let Some((message, payload)) = machine.poll_transmit(now) {
            let packet = outlet.packet();
            packet.make_tfrc(Tfrc {
                source_port: tuple.local_port,
                destination_port: tuple.remote_port,
                message,
            });
            packet.ip = Ip::new(tuple.local, tuple.remote);
            packet.payload = payload;
            outlet.send(payload.len, route, None);
        }
        self.schedule.set(id, machine.poll_timeout());
    }
}
