//! Observers: time series of flows and queues, and packets as bytes.
//!
//! Observation changes nothing in a run. Without observers it costs one branch.

use crate::bytes::{Bytes, CapturePoint};
use crate::{LinkId, NodeId};
use base::Time;
use host::{Application, Boxes, ConnectionId, Host};
use link::Fate;
use tcp::{Event, Vitals};
use wire::Packet;

/// A change of a connection's vitals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowSample {
    /// When.
    pub at: Time,
    /// The new values.
    pub vitals: Vitals,
}

/// A change of a queue's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSample {
    /// When.
    pub at: Time,
    /// Packets waiting or in transmission.
    pub packets: u32,
}

/// A change of what the boxes of a node hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxSample {
    /// When.
    pub at: Time,
    /// The present values ([`host::Middlebox::gauges`]).
    pub gauges: Vec<(&'static str, u64)>,
}

/// The subject of a time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceTarget {
    /// The vitals of a node's connections.
    Flows(NodeId),
    /// All events of a node's connections.
    Events(NodeId),
    /// A link's queue.
    Queue(LinkId),
    /// What a node's boxes hold.
    Boxes(NodeId),
}

/// The time series of a run.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Per traced node and connection, in the order of opening.
    pub flows: Vec<(NodeId, ConnectionId, Vec<FlowSample>)>,
    /// Per traced link.
    pub queues: Vec<(LinkId, Vec<QueueSample>)>,
    /// Per traced node.
    pub boxes: Vec<(NodeId, Vec<BoxSample>)>,
    /// The events of the connections of traced nodes, in order.
    pub events: Vec<(Time, NodeId, ConnectionId, Event)>,
}

impl Series {
    fn flow(&mut self, now: Time, node: NodeId, id: ConnectionId, vitals: Vitals) {
        let known = self.flows.iter().position(|flow| (flow.0, flow.1) == (node, id));
        let index = known.unwrap_or_else(|| {
            self.flows.push((node, id, Vec::new()));
            self.flows.len() - 1
        });
        self.flows[index].2.push(FlowSample { at: now, vitals });
    }
}

/// The observers of a world.
#[derive(Default)]
pub(crate) struct Observer {
    pub(crate) series: Series,
    /// Nodes of which there are time series.
    pub(crate) flows: Vec<NodeId>,
    /// Nodes of which there is a log.
    pub(crate) logs: Vec<NodeId>,
    pub(crate) bytes: Option<Bytes>,
}

impl Observer {
    /// Observes an arrival at the end of a link.
    pub(crate) fn arrival(&mut self, now: Time, link: usize, packet: &Packet, fate: Fate) {
        if let Some(bytes) = &mut self.bytes
            && !matches!(fate, Fate::Corrupted | Fate::Lost)
        {
            bytes.seen(now, CapturePoint::Received(LinkId(link)), packet);
        }
    }

    /// Observes a packet that is about to be put on a link.
    pub(crate) fn sending(&mut self, packet: &mut Packet) {
        if let Some(bytes) = &mut self.bytes {
            bytes.pass(packet);
        }
    }

    /// Observes a packet that a link has accepted.
    pub(crate) fn sent(&mut self, now: Time, link: LinkId, packet: &Packet) {
        if let Some(bytes) = &mut self.bytes {
            bytes.seen(now, CapturePoint::Sent(link), packet);
        }
    }

    /// Observes the events of a host.
    pub(crate) fn events<A: Application>(&mut self, now: Time, node: NodeId, host: &mut Host<A>) {
        while let Some((id, event)) = host.poll_event() {
            if let Event::Vitals(vitals) = event
                && self.flows.contains(&node)
            {
                self.series.flow(now, node, id, vitals);
            }
            if self.logs.contains(&node) {
                self.series.events.push((now, node, id, event));
            }
        }
    }

    /// Observes a node's boxes after a packet or a wake.
    pub(crate) fn boxes(&mut self, now: Time, node: NodeId, boxes: &Boxes) {
        let Some((_, samples)) = self.series.boxes.iter_mut().find(|traced| traced.0 == node)
        else {
            return;
        };
        let gauges = boxes.gauges();
        if samples.last().is_none_or(|last| last.gauges != gauges) {
            samples.push(BoxSample { at: now, gauges });
        }
    }

    /// Observes a link's queue before or after a change; first it catches up with departures since
    /// the last call.
    pub(crate) fn queue<P: Copy + Default>(
        &mut self,
        now: Time,
        id: LinkId,
        link: &mut link::Link<P>,
    ) {
        let Some((_, samples)) = self.series.queues.iter_mut().find(|queue| queue.0 == id) else {
            return;
        };
        let mut sample = |at, packets: usize| {
            let packets = packets as u32;
            if samples.last().is_none_or(|last| last.packets != packets) {
                samples.push(QueueSample { at, packets });
            }
        };
        while let Some(at) = link.next_departure().filter(|&at| at <= now) {
            sample(at, link.queued_packets(at));
        }
        sample(now, link.queued_packets(now));
    }
}
