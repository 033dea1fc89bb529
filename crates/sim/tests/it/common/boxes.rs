//! Boxes that watch a path, or make its life hard.

use base::{Random, Time};
use host::{Context, DropReason, Middlebox, Port, Verdict};
use std::sync::{Arc, Mutex};
use wire::{Body, Packet, Segment};

/// Writes down every packet that passes a node, and when.
#[derive(Clone, Default)]
pub struct Tap(Arc<Mutex<Vec<(Time, Packet)>>>);

impl Tap {
    /// What it has seen.
    pub fn seen(&self) -> Vec<(Time, Packet)> {
        self.0.lock().expect("not poisoned").clone()
    }
}

impl Middlebox for Tap {
    fn packet(
        &mut self,
        now: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        self.0.lock().expect("not poisoned").push((now, *packet));
        Verdict::Forward
    }
}

/// Lets nothing pass for a while.
pub struct Blackout {
    pub from: Time,
    pub until: Time,
}

impl Middlebox for Blackout {
    fn packet(
        &mut self,
        now: Time,
        _: Option<Port>,
        _: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if self.from <= now && now < self.until {
            Verdict::Drop(DropReason::Loss)
        } else {
            Verdict::Forward
        }
    }
}

/// Doubles packets, and holds others back until a few more have passed.
pub struct Muddle {
    pub random: Random,
    /// The probability that a packet is doubled.
    pub double: f64,
    /// The probability that it is held back.
    pub hold: f64,
    /// Packets held back, and how many are still to pass before each.
    pub held: Vec<(u32, Packet)>,
}

impl Muddle {
    pub fn new(random: Random, double: f64, hold: f64) -> Muddle {
        Muddle { random, double, hold, held: Vec::new() }
    }
}

impl Middlebox for Muddle {
    fn packet(
        &mut self,
        _: Time,
        _: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        self.held.retain_mut(|(left, held)| {
            *left -= 1;
            if *left == 0 {
                cx.send(*held);
            }
            *left > 0
        });
        if self.random.chance(self.double) {
            cx.send(*packet);
        }
        if self.random.chance(self.hold) {
            self.held.push((1 + (self.random.bits() % 8) as u32, *packet));
            return Verdict::Drop(DropReason::Loss);
        }
        Verdict::Forward
    }
}

/// The segment in a packet, if there is one.
pub fn segment(packet: &Packet) -> Option<&Segment> {
    match &packet.body {
        Body::Tcp(segment) => Some(segment),
        _ => None,
    }
}
