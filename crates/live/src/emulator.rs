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
mod driver;
mod edit;
mod machine;
mod nodes;
mod report;
mod routing;
mod sleep;
mod worker;
mod writer;

pub use nodes::{Bytes, Node, Surroundings};
pub use report::{DirectionReport, Limits, Report, Verdict};

use self::nodes::Nodes;
use crate::error::Doing;
use crate::{Clock, Copies, Error, Tun};
use base::Seed;
use link::{Attachments, Config, Outages, WhenDown};
use rustix::event::EventfdFlags;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use worker::Worker;

/// The treatment of a packet that the link has corrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Corruption {
    /// One of its bits is flipped, and it is forwarded; a checksum detects the damage, or the
    /// kernel drops it because of its header.
    #[default]
    Flip,
    /// It is dropped, and indicated to the boxes of the node where it arrived.
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
    /// The socket at which the driver of the device at its end reports the packets that it drops because they are
    /// corrupted, and how many there were ([`wire::LinkReport`]).
    pub reports_to: Option<PathBuf>,
}

/// One end of a link: a device without offload, and the node in whose namespace it is.
pub struct End {
    /// The node, by its index.
    pub node: usize,
    /// The device, which is read and written by the emulator alone.
    pub tun: Tun,
}

/// Links to be emulated by one thread.
pub struct Emulator {
    clock: Clock,
    seed: Seed,
    /// 2 i is link i's forward, 2 i + 1 its backward direction.
    directions: Vec<Direction>,
    /// 2 i is where link i's forward direction begins, 2 i + 1 where it ends.
    ends: Vec<End>,
    /// Of links, by their index.
    outages: Vec<(usize, Outages)>,
    attachments: Vec<Attachments>,
    nodes: Nodes,
    limits: Limits,
}

impl Emulator {
    /// No links yet. Times of outages and variations are those of `clock`.
    #[must_use]
    pub fn new(clock: Clock, seed: Seed) -> Emulator {
        Emulator {
            clock,
            seed,
            directions: Vec::new(),
            ends: Vec::new(),
            outages: Vec::new(),
            attachments: Vec::new(),
            nodes: Nodes::new(),
            limits: Limits::default(),
        }
    }

    /// Joins two devices by a link, and returns its index: 0, 1, 2, ... Its directions are 2 i from
    /// the first end to the second, and 2 i + 1 back.
    pub fn add_link(&mut self, ends: [End; 2], directions: [Direction; 2]) -> usize {
        self.ends.extend(ends);
        self.directions.extend(directions);
        self.ends.len() / 2 - 1
    }

    /// Lets a link be down now and then. Where its settings do not say what becomes of packets then,
    /// it is [`WhenDown::KEEP`].
    pub fn add_outages(&mut self, link: usize, outages: Outages) {
        self.make_switched(link, WhenDown::KEEP);
        self.outages.push((link, outages));
    }

    /// Lets a node move. Of the links by which it is ever attached only the present one is up; where
    /// their settings do not say what becomes of packets then, it is [`WhenDown::DROP`]. Routes follow
    /// as soon as it is attached anew; then hosts get their indications.
    ///
    /// Once a node moves, packets that are read from any device of a node take the link on the route
    /// to their destination as it is then, whichever device the node's kernel sent them by: its own
    /// routes need not change.
    pub fn add_attachments(&mut self, attachments: Attachments) {
        for &link in attachments.links.values() {
            self.make_switched(link, WhenDown::DROP);
        }
        self.attachments.push(attachments);
    }

    fn make_switched(&mut self, link: usize, unless: WhenDown) {
        for direction in &mut self.directions[2 * link..2 * link + 2] {
            direction.config.when_down.get_or_insert(unless);
        }
    }

    /// Lets boxes read the bytes of payloads that have arrived; and `own` write those of what they send and have not
    /// received: it returns false of others.
    pub fn share(
        &mut self,
        bytes: Bytes,
        own: impl Fn(wire::Payload, &mut [u8]) -> bool + Send + 'static,
    ) {
        self.nodes.bytes = bytes;
        self.nodes.own = Box::new(own);
    }

    /// Gives the node with this index its boxes. They run in the emulator's thread, which does nothing
    /// else meanwhile.
    pub fn set_node(&mut self, index: usize, node: Node) {
        self.nodes.set(index, node);
    }

    /// Lets addresses of no node be beyond this one: routes to them lead there, and its kernel routes on what
    /// boxes there send to them. Without it, there is no route.
    pub fn set_default_gateway(&mut self, node: usize) {
        self.nodes.default_gateway = Some(node);
    }

    /// Says where indications go; without it, nowhere.
    pub fn surround(&mut self, surroundings: Box<dyn Surroundings>) {
        self.nodes.surroundings = surroundings;
    }

    /// Gives boxes the copy number of the segment in a packet, as far as hosts publish it.
    pub fn copies(&mut self, copies: Copies) {
        self.nodes.copies = copies;
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
        let removed = Arc::new(OnceLock::new());
        let found = Arc::clone(&removed);
        let thread = builder.spawn(move || worker.run(&stopped, &found)).doing(action)?;
        Ok(Running { stop, removed, thread: Some(thread) })
    }
}

/// An emulator at work; it ends when this is dropped. It also ends if one of its devices is removed;
/// the others are gone then, too.
#[derive(Debug)]
pub struct Running {
    stop: Arc<OwnedFd>,
    /// The name of a device that was removed.
    removed: Arc<OnceLock<String>>,
    /// Until it has been joined.
    thread: Option<JoinHandle<Report>>,
}

impl Running {
    /// Whether it still runs.
    ///
    /// # Errors
    /// If a device was removed, or a box has panicked.
    pub fn check(&self) -> Result<(), Error> {
        match &self.thread {
            Some(thread) if !thread.is_finished() => Ok(()),
            _ => Err(self.removal().unwrap_or(Error::Stopped)),
        }
    }

    /// The error of a removed device.
    fn removal(&self) -> Option<Error> {
        self.removed.get().cloned().map(Error::DeviceRemoved)
    }

    /// Ends it, and returns what happened. Packets on their way are lost, and the devices are gone.
    ///
    /// # Errors
    /// If a device was removed.
    ///
    /// # Panics
    /// If a box has.
    pub fn stop(mut self) -> Result<Report, Error> {
        match self.end() {
            Some(Ok(report)) => self.removal().map_or(Ok(report), Err),
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
