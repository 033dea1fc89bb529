//! What lies between the nodes: links, routes, the packets on them, and the time.

use crate::address;
use crate::network::{LinkId, Network};
use crate::observer::Observer;
use crate::routing::Routes;
use crate::slab::{Handle, Slab};
use base::{Schedule, Seed, Time};
use core::net::IpAddr;
use link::{Arrival, Link, Output};

/// A flow: source, destination, and the port that data goes to.
pub(crate) type Flow = (IpAddr, IpAddr, u16);

/// Links and the packets on them. In the schedule, nodes are components 0, 1, 2, ..., links follow.
pub(crate) struct Fabric {
    pub(crate) now: Time,
    pub(crate) schedule: Schedule,
    pub(crate) slab: Slab,
    pub(crate) observer: Option<Box<Observer>>,
    /// Packets that no route or no node wanted.
    pub(crate) unroutable: u64,
    links: Vec<Hop>,
    routes: Routes,
    nodes: u32,
}

struct Hop {
    link: Link<Handle>,
    to: usize,
}

impl Fabric {
    pub(crate) fn new(network: &Network, seed: Seed) -> Fabric {
        let mut schedule = Schedule::new();
        for _ in 0..network.nodes + network.links.len() {
            schedule.add();
        }
        let links = network.links.iter().enumerate().map(|(index, direction)| {
            let name = if index % 2 == 0 { "forward" } else { "backward" };
            let name = format!("link.{}.{name}", index / 2);
            Hop { link: Link::new(&direction.config, seed, &name), to: direction.to }
        });
        let ends: Vec<_> = network.links.iter().map(|link| (link.from, link.to)).collect();
        Fabric {
            now: Time::ZERO,
            schedule,
            slab: Slab::default(),
            observer: None,
            unroutable: 0,
            links: links.collect(),
            routes: Routes::shortest(network.nodes, &ends),
            nodes: network.nodes as u32,
        }
    }

    /// What reaches the end of a link now, and at which node.
    #[inline]
    pub(crate) fn arrive(&mut self, index: usize) -> Option<(usize, Arrival<Handle>)> {
        if self.observer.is_some() {
            self.watch_queue(index);
        }
        let hop = &mut self.links[index];
        let Some((arrival, next)) = hop.link.arrive() else {
            return self.wake(index);
        };
        self.schedule.set(self.nodes + index as u32, next);
        if let Some(observer) = &mut self.observer {
            observer.arrival(self.now, index, self.slab.get(arrival.packet), arrival.fate);
        }
        Some((hop.to, arrival))
    }

    /// What reaches the end of a link of which more is to be expected than arrivals.
    #[cold]
    fn wake(&mut self, index: usize) -> Option<(usize, Arrival<Handle>)> {
        let hop = &mut self.links[index];
        let output = hop.link.wake(self.now);
        self.schedule.set(self.nodes + index as u32, hop.link.next_event());
        let arrival = match output? {
            Output::Arrived(arrival) => arrival,
            Output::Copied(Arrival { packet, fate }) => {
                let packet = self.slab.insert(*self.slab.get(packet));
                Arrival { packet, fate }
            }
        };
        if let Some(observer) = &mut self.observer {
            observer.arrival(self.now, index, self.slab.get(arrival.packet), arrival.fate);
        }
        Some((self.links[index].to, arrival))
    }

    /// A link's queue is about to change, or has changed.
    #[cold]
    fn watch_queue(&mut self, index: usize) {
        if let Some(observer) = &mut self.observer {
            observer.queue(self.now, LinkId(index), &mut self.links[index].link);
        }
    }

    /// The link towards a packet's destination.
    pub(crate) fn route(&self, node: usize, handle: Handle) -> Option<u32> {
        let destination = address::node(self.slab.get(handle).ip.destination)?;
        self.routes.next(node, destination)
    }

    /// Puts a packet on the link towards its destination.
    pub(crate) fn forward(&mut self, node: usize, handle: Handle) {
        self.send(self.route(node, handle), handle);
    }

    /// Puts a packet on a link; what has no way is discarded.
    pub(crate) fn send(&mut self, route: Option<u32>, handle: Handle) {
        let Some(index) = route else {
            return self.discard(handle);
        };
        if self.observer.is_some() {
            return self.put_watched(index, handle);
        }
        self.put(index, handle);
    }

    /// Puts a packet on a link; says whether there was room for it.
    #[inline]
    fn put(&mut self, index: u32, handle: Handle) -> bool {
        let len = self.slab.get(handle).len();
        match self.links[index as usize].link.enqueue(self.now, handle, len) {
            Ok(None) => true,
            Ok(Some(arrival)) => {
                self.schedule.bring_forward(self.nodes + index, arrival);
                true
            }
            Err(handle) => {
                self.slab.release(handle);
                false
            }
        }
    }

    #[cold]
    fn put_watched(&mut self, index: u32, handle: Handle) {
        self.watch_queue(index as usize);
        if let Some(observer) = &mut self.observer {
            observer.sending(self.slab.get_mut(handle));
        }
        let accepted = self.put(index, handle);
        self.watch_queue(index as usize);
        if let Some(observer) = &mut self.observer
            && accepted
        {
            observer.sent(self.now, LinkId(index as usize), self.slab.get(handle));
        }
    }

    /// A packet that finds no way is gone.
    #[cold]
    pub(crate) fn discard(&mut self, handle: Handle) {
        self.unroutable += 1;
        self.slab.release(handle);
    }

    /// Brings the time series of queues up to the present.
    pub(crate) fn catch_up(&mut self) {
        if let Some(observer) = &mut self.observer {
            for (index, hop) in self.links.iter_mut().enumerate() {
                observer.queue(self.now, LinkId(index), &mut hop.link);
            }
        }
    }

    pub(crate) fn statistics(&self, link: LinkId) -> link::Statistics {
        self.links[link.0].link.statistics()
    }
}
