//! Links in real time: packets of TUN devices go through [`link::Link`] on logical timestamps.
//!
//! A packet enters a link at the time it was read, and is due at the far end when the link's model
//! says so, whatever the machine did meanwhile: that the emulator was late with one packet delays
//! no other. How late it was is counted, and so is what the kernel lost on the way to it; a run in
//! which there is too much of that is void.
//!
//! A kernel without preemption (`PREEMPT_NONE`) lets even a thread with real-time priority wait for
//! milliseconds if the machine is busy with other work, and so does a hypervisor (steal).
//!
//! What becomes of packets depends on the seed, and on their sequence, lengths and times alone: the
//! links' random streams are called as the lab's simulator calls them.

mod buffers;
mod core;
mod edit;
mod machine;
mod report;
mod worker;

pub use report::{DirectionReport, Limits, Report, Verdict};

use self::core::Core;
use crate::error::Doing;
use crate::{Clock, Error, Tun};
use base::{Seed, Time};
use link::{Config, Outages};
use rustix::event::EventfdFlags;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use wire::Packet;
use worker::Worker;

/// What becomes of a packet that the link has corrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Corruption {
    /// One of its bits is flipped, and it goes on; checksums will tell, or the kernel drops it
    /// because of its header.
    #[default]
    Flip,
    /// It goes no further, and the [`Observer`] is told.
    Drop,
}

/// One direction of a link.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// Its random streams are called by it; see [`link::Names`].
    pub name: String,
    /// The link's settings.
    pub config: Config,
    /// What corruption is.
    pub corruption: Corruption,
}

/// One end of a link: a device without offload, and the node in whose namespace it is.
pub struct End {
    /// The node, for the [`Observer`] and the report.
    pub node: usize,
    /// The device, which is read and written by the emulator alone.
    pub tun: Tun,
}

/// Is told what a link knows and a packet does not show, and may answer. It is called by the
/// emulator's thread, which does nothing else meanwhile: it ought to be quick.
pub trait Observer: Send {
    /// A packet arrived damaged at `node` by direction `direction` and goes no further
    /// ([`Corruption::Drop`]). What is put into `send` is sent by the node, as its kernel routes
    /// it; such a packet has no payload.
    fn corrupted(
        &mut self,
        now: Time,
        node: usize,
        direction: usize,
        packet: &Packet,
        send: &mut Vec<Packet>,
    );

    /// A link that ends at `node` is up again or down. What is put into `send` is sent by the node.
    fn turned(&mut self, now: Time, node: usize, link: usize, up: bool, send: &mut Vec<Packet>) {
        let _ = (now, node, link, up, send);
    }
}

/// Nobody is interested.
struct Nobody;

impl Observer for Nobody {
    fn corrupted(&mut self, _: Time, _: usize, _: usize, _: &Packet, _: &mut Vec<Packet>) {}
}

/// Links to be emulated by one thread.
pub struct Emulator {
    clock: Clock,
    core: Core,
    /// By direction: 2 i is link i's forward, 2 i + 1 its backward direction.
    corruption: Vec<Corruption>,
    /// 2 i is where link i's forward direction begins, 2 i + 1 where it ends.
    ends: Vec<End>,
    observer: Box<dyn Observer>,
    limits: Limits,
}

impl Emulator {
    /// No links yet. Times of outages and variations are those of `clock`.
    #[must_use]
    pub fn new(clock: Clock, seed: Seed) -> Emulator {
        Emulator {
            clock,
            core: Core::new(seed),
            corruption: Vec::new(),
            ends: Vec::new(),
            observer: Box::new(Nobody),
            limits: Limits::default(),
        }
    }

    /// Joins two devices by a link, and returns its index: 0, 1, 2, ... Its directions are 2 i from
    /// the first end to the second, and 2 i + 1 back.
    ///
    /// # Panics
    /// If there are outages, but [`Config::when_down`] does not say for both directions what they
    /// do to packets.
    pub fn add_link(
        &mut self,
        ends: [End; 2],
        directions: [Direction; 2],
        outages: Option<&Outages>,
    ) -> usize {
        let says = |direction: &Direction| direction.config.when_down.is_some();
        assert!(
            outages.is_none() || directions.iter().all(says),
            "a link that goes down says what happens then"
        );
        self.corruption.extend(directions.iter().map(|direction| direction.corruption));
        self.ends.extend(ends);
        self.core.add_link(directions.map(|Direction { name, config, .. }| (name, config)), outages)
    }

    /// Tells somebody what happens on links.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = observer;
    }

    /// From what on a packet is late, and a run is void.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Starts the thread that does it all, with real-time priority if that is permitted.
    ///
    /// # Errors
    /// If there can be no such thread.
    pub fn start(self) -> Result<Running, Error> {
        let action = || "starting the emulator".to_owned();
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).doing(action)?;
        let stop = Arc::new(stop);
        let stopped = Arc::clone(&stop);
        let builder = std::thread::Builder::new().name("emulator".to_owned());
        let worker = Worker::new(self);
        let thread = builder.spawn(move || worker.run(&stopped)).doing(action)?;
        Ok(Running { stop, thread: Some(thread) })
    }
}

/// An emulator at work; it ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    stop: Arc<OwnedFd>,
    /// Until it has been joined.
    thread: Option<JoinHandle<Report>>,
}

impl Running {
    /// Ends it, and returns what happened. Packets on their way are lost, and the devices are gone.
    ///
    /// # Panics
    /// If the observer has.
    #[must_use]
    pub fn stop(mut self) -> Report {
        match self.end() {
            Some(Ok(report)) => report,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("it is joined here and by `drop` alone"),
        }
    }

    fn end(&mut self) -> Option<std::thread::Result<Report>> {
        let thread = self.thread.take()?;
        // A counter that has been written once cannot be full.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        Some(thread.join())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
