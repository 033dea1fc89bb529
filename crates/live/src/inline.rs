//! A middlebox in the path of packets that the kernel forwards.
//!
//! The kernel routes the packets that come from the LAN into one TUN device, and those that come from the
//! WAN into another. Between the two stands a middlebox of the lab. What is written to a device comes back to
//! the kernel, which forwards it by its main routes. Packets are units of up to 64 kB whose checksums
//! are left to devices.

mod boundary;
mod passing;
mod routes;
pub(crate) mod tap;
mod underlay;
mod worker;

pub use crate::steering::Owners;
pub use boundary::{Boundary, Opened};
pub use tap::{Captured, Captures};
pub use underlay::{Change, Received, Underlay};

use crate::commands::Commands;
use crate::device::DeviceUse;
use crate::error::Doing;
use crate::payloads::Payloads;
use crate::steering::{Steering, bell};
use crate::{Clock, Error, Netlink, Tun};
use base::Time;
use host::{Middlebox, Port};
use routes::Routes;
use std::net::{IpAddr, SocketAddr};
use std::ops::Add;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tap::Tap;
use wire::Payload;
use worker::{Command, HandedOver, Worker};

/// The two networks between which a gateway stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The network of its users.
    Lan,
    /// The network behind the bad hop.
    Wan,
}

impl Side {
    /// Both.
    pub const ALL: [Side; 2] = [Side::Lan, Side::Wan];

    /// The other one.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Lan => Side::Wan,
            Side::Wan => Side::Lan,
        }
    }

    /// The port by which a middlebox gets the packets that come from here.
    #[must_use]
    pub const fn port(self) -> Port {
        Port(2 * self as u32)
    }
}

/// The counters of a middlebox's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By [`Side`], those of its device.
    pub devices: [DeviceUse; 2],
    /// Packets that passed as they were.
    pub passed: u64,
    /// Packets that the middlebox consumed.
    pub consumed: u64,
    /// Packets that the middlebox dropped.
    pub dropped: u64,
    /// Packets that were lost because there was no memory for their bytes, or their bytes had gone.
    pub without_bytes: u64,
    /// Packets that were lost because there was no route for them.
    pub unroutable: u64,
    /// Packets that were lost because more came than could be carried: of those that were only to pass, and of those
    /// that one worker was to hand over to another.
    pub overload: u64,
    /// Packets that one worker has read and handed over to another.
    pub handed_over: u64,
    /// Datagrams that the underlay refused ([`Underlay::refused`]).
    pub refused: u64,
    /// Times that the thread slept.
    pub slept: u64,
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        let ([lan, wan], [other_lan, other_wan]) = (self.devices, other.devices);
        Counts {
            devices: [lan + other_lan, wan + other_wan],
            passed: self.passed + other.passed,
            consumed: self.consumed + other.consumed,
            dropped: self.dropped + other.dropped,
            without_bytes: self.without_bytes + other.without_bytes,
            unroutable: self.unroutable + other.unroutable,
            overload: self.overload + other.overload,
            handed_over: self.handed_over + other.handed_over,
            refused: self.refused + other.refused,
            slept: self.slept + other.slept,
        }
    }
}

/// A middlebox and its devices, which is not started yet.
pub struct Inline<B> {
    middlebox: B,
    /// By [`Side`].
    tuns: [Tun; 2],
    routes: Routes,
    underlay: Option<Box<dyn Underlay>>,
    boundary: Option<Box<dyn Boundary>>,
    payloads: Payloads,
    clock: Clock,
}

/// A middlebox that runs, between two packets, with what belongs to it.
pub struct Moment<'a, B> {
    /// The time.
    pub now: Time,
    /// The middlebox.
    pub middlebox: &'a mut B,
    /// Where the peer of its underlay is, if it has one and that is known.
    pub peer: Option<SocketAddr>,
    payloads: &'a mut Payloads,
    tuns: [&'a Tun; 2],
}

/// Bytes of payloads, with the streams and the places by which payloads name them.
pub type Pieces = Vec<(u32, u64, Box<[u8]>)>;

impl<B: Middlebox> Moment<'_, B> {
    /// The devices, by [`Side`].
    #[must_use]
    pub fn tuns(&self) -> [&Tun; 2] {
        self.tuns
    }

    /// The bytes of the payloads that the middlebox holds, in pieces with their places, for
    /// [`Inline::with_payloads`].
    #[must_use]
    pub fn payloads(&self) -> Vec<(u64, &[u8])> {
        self.payloads.pieces(|held| self.middlebox.held_payloads(held))
    }

    /// Copies of the bytes of payloads, for [`Moment::adopt`] of another process. Bytes that have gone are missing.
    #[must_use]
    pub fn copies(&self, payloads: &[Payload]) -> Pieces {
        self.payloads.copies(payloads)
    }

    /// Keeps bytes of another process, so that the middlebox can have the payloads that name them. Returns false if
    /// there is no memory for them, or if both have the same stream by chance ([`Inline::with_stream`]).
    pub fn adopt(&mut self, pieces: Pieces) -> bool {
        self.payloads.adopt(pieces)
    }
}

/// The rest of one that has ended.
pub struct Ended<B> {
    /// The middlebox.
    pub middlebox: B,
    /// The counters.
    pub counts: Counts,
    /// A device was removed while it ran.
    pub removed: bool,
}

impl<B: Middlebox + Send + 'static> Inline<B> {
    /// `middlebox` between two devices with [`crate::Offload::Full`], by [`Side`], in the network namespace of
    /// the calling thread. What it sends to a destination that the kernel routes to one of the interfaces
    /// `lan` goes to the LAN. A packet that it forwards counts as queued ([`Middlebox::queued`]): what the queue of the
    /// interface does then is not known here.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn new(
        middlebox: B,
        tuns: [Tun; 2],
        lan: &[String],
        clock: Clock,
    ) -> Result<Inline<B>, Error> {
        let routes = Routes::new(Netlink::open()?, lan)?;
        let payloads = Payloads::default();
        let (underlay, boundary) = (None, None);
        Ok(Inline { middlebox, tuns, routes, underlay, boundary, payloads, clock })
    }

    /// Goes on with the [`Moment::payloads`] of another program, those that the middlebox has taken over from it. To be
    /// called first.
    #[must_use]
    pub fn with_payloads(self, pieces: impl IntoIterator<Item = (u64, Box<[u8]>)>) -> Inline<B> {
        Inline { payloads: Payloads::restored(pieces), ..self }
    }

    /// Names the payloads that it keeps by this stream. To be called first, if other processes adopt them
    /// ([`Moment::adopt`]): each has a stream of its own.
    #[must_use]
    pub fn with_stream(mut self, stream: u32) -> Inline<B> {
        self.payloads.of_stream(stream);
        self
    }

    /// Has room for a middlebox that holds so many bytes of payloads; 512 MiB if nothing is said of it. Packets for which
    /// there is none are lost, except for those without payload.
    #[must_use]
    pub fn with_memory(mut self, held: u64) -> Inline<B> {
        self.payloads.limit(held);
        self
    }

    /// Sends the packets of SRP of the middlebox by another way than the kernel's routes.
    #[must_use]
    pub fn with_underlay(self, underlay: Box<dyn Underlay>) -> Inline<B> {
        Inline { underlay: Some(underlay), ..self }
    }

    /// Has a boundary before the WAN. The device of the LAN must have packets of one segment alone
    /// ([`Netlink::set_single_segments`]), and there can be no further workers: protected packets do not show whose they
    /// are.
    #[must_use]
    pub fn with_boundary(self, boundary: Box<dyn Boundary>) -> Inline<B> {
        Inline { boundary: Some(boundary), ..self }
    }

    /// Starts its thread.
    ///
    /// # Errors
    /// If there can be no such thread.
    pub fn start(self) -> Result<Running<B>, Error> {
        self.spawn(bell()?, None)
    }

    /// Starts workers, each with a thread, with queues of the same devices ([`Tun::open_queues`]) and with a middlebox of
    /// its own, which gets the packets of the connections that it owns, and errors about them. `workers` are as many as
    /// `owners` says.
    ///
    /// # Errors
    /// If there can be no such threads.
    pub fn start_all(workers: Vec<Inline<B>>, owners: &Owners) -> Result<Vec<Running<B>>, Error> {
        debug_assert_eq!(workers.len(), owners.workers());
        let bells = workers.iter().map(|_| bell()).collect::<Result<Vec<_>, _>>()?;
        let steering = Steering::among(&bells, owners);
        let parts = workers.into_iter().zip(bells).zip(steering);
        parts.map(|((worker, bell), steering)| worker.spawn(bell, steering)).collect()
    }

    fn spawn(
        self,
        bell: Arc<OwnedFd>,
        steering: Option<Steering<HandedOver>>,
    ) -> Result<Running<B>, Error> {
        let (sender, receiver) = mpsc::channel();
        let worker = Worker::new(self, receiver, Arc::clone(&bell), steering);
        let builder = std::thread::Builder::new().name("inline".to_owned());
        let starting = || "starting the data plane".to_owned();
        let thread = builder.spawn(move || worker.run()).doing(starting)?;
        Ok(Running { commands: Commands { sender, bell }, thread: Some(thread) })
    }
}

/// Copies of the packets that the devices of these workers take and give from now on, and whose source or destination is
/// this address; a capture before this one ends.
///
/// # Errors
/// If a thread has ended.
pub fn capture<B>(
    workers: &[Running<B>],
    address: IpAddr,
    clock: Clock,
) -> Result<Captures, Error> {
    let (taps, captures) = Tap::new(address, clock);
    workers.iter().try_for_each(|worker| worker.send(Command::Tap(taps.clone())))?;
    Ok(captures)
}

/// A running middlebox, whose thread ends with this.
pub struct Running<B> {
    commands: Commands<Command<B>>,
    /// `None` once it was waited for.
    thread: Option<JoinHandle<Ended<B>>>,
}

/// Calls functions on the thread of a running middlebox, from any other thread.
pub struct Caller<B>(Commands<Command<B>>);

impl<B> Clone for Caller<B> {
    fn clone(&self) -> Caller<B> {
        Caller(self.0.clone())
    }
}

impl<B: Send + 'static> Caller<B> {
    /// Lets its thread call `f` with the time, the middlebox and its counters, and returns the result. What
    /// the middlebox has to send is sent then, before any other packet passes.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(Time, &mut B, &Counts) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let (answer, result) = mpsc::sync_channel(1);
        // The caller waits for the answer.
        let call = move |now, middlebox: &mut B, counts: &Counts| {
            let _ = answer.send(f(now, middlebox, counts));
        };
        self.0.send(Command::Call(Box::new(call)))?;
        result.recv().map_err(|_| Error::Stopped)
    }

    /// Lets its thread send what the middlebox has to send, and then call `f`, and returns the result. Packets wait
    /// in the devices until then.
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn pause<R: Send + 'static>(
        &self,
        f: impl FnOnce(Moment<'_, B>) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let (answer, result) = mpsc::sync_channel(1);
        let pause = move |moment: Moment<'_, B>| {
            let _ = answer.send(f(moment));
        };
        self.0.send(Command::Pause(Box::new(pause)))?;
        result.recv().map_err(|_| Error::Stopped)
    }
}

impl<B: Send + 'static> Running<B> {
    /// [`Caller::call`].
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(Time, &mut B, &Counts) -> R + Send + 'static,
    ) -> Result<R, Error> {
        self.caller().call(f)
    }

    /// [`Caller::pause`].
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn pause<R: Send + 'static>(
        &self,
        f: impl FnOnce(Moment<'_, B>) -> R + Send + 'static,
    ) -> Result<R, Error> {
        self.caller().pause(f)
    }

    /// What calls functions on its thread.
    #[must_use]
    pub fn caller(&self) -> Caller<B> {
        Caller(self.commands.clone())
    }

    /// Has room for a middlebox that holds so many bytes from now on ([`Inline::with_memory`]).
    ///
    /// # Errors
    /// If the thread has ended.
    pub fn set_memory(&self, held: u64) -> Result<(), Error> {
        self.send(Command::Memory(held))
    }

    /// What tells the middlebox ([`LinkEvent::Up`](host::LinkEvent)), or the underlay that leads there, that what lies
    /// behind the device of a side can be reached again, or by another way.
    pub fn link_bell(&self, side: Side) -> impl Fn() + Send + use<B> {
        let commands = self.commands.clone();
        move || {
            // One that has ended needs no word.
            let _ = commands.send(Command::LinkUp(side));
        }
    }

    /// Whether it runs. It ends by itself if a device is removed.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it, and removes its devices.
    ///
    /// # Panics
    /// If the middlebox has.
    #[must_use]
    pub fn stop(mut self) -> Ended<B> {
        match self.end() {
            Some(ended) => ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Only this and its drop take it.
            None => unreachable!("the thread is waited for once"),
        }
    }
}

impl<B> Running<B> {
    fn send(&self, command: Command<B>) -> Result<(), Error> {
        self.commands.send(command)
    }

    /// Ends its thread, and waits for it.
    fn end(&mut self) -> Option<std::thread::Result<Ended<B>>> {
        let thread = self.thread.take()?;
        // One that has ended needs no word.
        let _ = self.send(Command::Stop);
        Some(thread.join())
    }
}

impl<B> Drop for Running<B> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests;
