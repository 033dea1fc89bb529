//! A host on real packets: the simulator's host, run by a thread of its own on a TUN device.
//!
//! The kernel of the device's namespace is the host's router. Both exchange units of up to 64 kB
//! whose checksums neither computes.

mod announced;
mod port;
mod worker;
mod workers;

pub use workers::Workers;

use crate::commands::Commands;
use crate::error::Doing;
use crate::steering::{Steering, bell};
use crate::{Clock, Copies, DeviceUse, Error, Netlink, Offload, Tun};
use base::{Duration, Time};
use host::{Application, Bytes, ConnectionId, Host, HostIndication, Settings};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use worker::{Command, HandedOver, Worker};

/// The counters of a stack on its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that were read and written.
    pub device: DeviceUse,
    /// Packets among those read that were for a connection of another worker of the device
    /// ([`Workers`]), and were handed over to it.
    pub handed_over: u64,
    /// Packets that were to be handed over, and are lost because too many waited for that worker.
    pub overflowed: u64,
    /// Times that the thread slept.
    pub slept: u64,
}

/// A function that gets the events of connections, if the host records them ([`Host::watch`]).
pub type Listener = Box<dyn FnMut(Time, ConnectionId, tcp::Event) + Send>;

/// A device for a host in the calling thread's network namespace, up and with a route to each of the
/// host's `addresses`. `queue` is the number of packets that may wait for the host.
///
/// # Errors
/// Those of [`Tun::open`] and [`Netlink`].
pub fn device(name: &str, mtu: u16, queue: u32, addresses: &[IpAddr]) -> Result<Tun, Error> {
    let one = queues(name, mtu, queue, addresses, Some(NonZeroUsize::MIN))?.pop();
    Ok(one.unwrap_or_else(|| unreachable!("there is one")))
}

/// Like [`device`], with a queue of `queue` packets for each of several [`Workers`]: as many as
/// the cores that the process may use, if `workers` is `None`.
///
/// # Errors
/// Those of [`Tun::open_queues`] and [`Netlink`].
pub fn queues(
    name: &str,
    mtu: u16,
    queue: u32,
    addresses: &[IpAddr],
    workers: Option<NonZeroUsize>,
) -> Result<Vec<Tun>, Error> {
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let tuns = Tun::open_queues(name, Offload::Full, mtu, workers.unwrap_or_else(cores))?;
    let netlink = Netlink::open()?;
    netlink.set_queue_length(name, queue)?;
    netlink.set_up(name)?;
    for &address in addresses {
        let prefix = if address.is_ipv4() { 32 } else { 128 };
        netlink.add_route(address, prefix, name, None)?;
    }
    Ok(tuns)
}

/// The memory of the machine, bytes.
fn machine_memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram as u64 * u64::from(info.mem_unit)
}

fn starting() -> String {
    "starting a stack".to_owned()
}

/// A host that is not started yet.
pub struct Stack<A> {
    host: Host<A>,
    tun: Tun,
    clock: Clock,
    listener: Option<Listener>,
    copies: Option<Copies>,
}

impl<A: Application + Bytes + Send + 'static> Stack<A> {
    /// `host` on `tun`, a device with [`Offload::Full`]. The host's times are those of `clock`. If its memory is
    /// not limited ([`host::Settings::memory`]), it may take a sixteenth of the machine's memory, as Linux's TCP
    /// may.
    #[must_use]
    pub fn new(mut host: Host<A>, tun: Tun, clock: Clock) -> Stack<A> {
        let settings = host.settings();
        if settings.memory.is_none() {
            host.set(Settings { memory: Some(machine_memory() / 16), ..settings });
        }
        Stack { host, tun, clock, listener: None, copies: None }
    }

    /// Sends events to a callback.
    #[must_use]
    pub fn listener(self, listener: Listener) -> Stack<A> {
        Stack { listener: Some(listener), ..self }
    }

    /// Publishes the copy number of the segment in each packet. The host then sends no units of
    /// several segments.
    #[must_use]
    pub fn copies(self, copies: Copies) -> Stack<A> {
        Stack { copies: Some(copies), ..self }
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// If there can be no such thread.
    pub fn start(self) -> Result<Running<A>, Error> {
        self.spawn(bell()?, None)
    }

    /// Starts the thread, which is woken by `bell`.
    fn spawn(
        self,
        bell: Arc<OwnedFd>,
        steering: Option<Steering<HandedOver>>,
    ) -> Result<Running<A>, Error> {
        let (sender, receiver) = mpsc::channel();
        let device = self.tun.name().to_owned();
        let removed = Arc::new(AtomicBool::new(false));
        let worker = Worker::new(self, receiver, Arc::clone(&bell), Arc::clone(&removed), steering);
        let builder = std::thread::Builder::new().name("stack".to_owned());
        let thread = builder.spawn(move || worker.run()).doing(starting)?;
        let commands = Commands { sender, bell };
        Ok(Running { commands, device, removed, thread: Some(thread) })
    }
}

/// The rest of a stack that has ended.
pub struct Ended<A> {
    /// The host. Its connections are closed.
    pub host: Host<A>,
    /// The counters of the device, which is removed.
    pub counts: Counts,
    /// Connections that had to be reset.
    pub reset: u64,
    /// The device was removed while the stack ran; connections ended with
    /// [`tcp::Events::UNREACHABLE`].
    pub removed: bool,
}

/// Lets a running host's thread call functions, from any thread and without waiting.
pub struct Caller<A>(Commands<Command<A>>);

impl<A> Caller<A> {
    /// Lets the host's thread call `f` with the time and the host. Segments are sent afterwards. A
    /// host that has ended drops `f`.
    pub fn call(&self, f: impl FnOnce(Time, &mut Host<A>) + Send + 'static) {
        let _ = self.0.send(Command::Call(Box::new(f)));
    }
}

/// A sender of indications to a running host, from any thread and without waiting.
pub struct Indications<A>(Caller<A>);

impl<A: Application> Indications<A> {
    /// Sends an indication; a host that has ended ignores it.
    pub fn send(&self, indication: HostIndication) {
        let _ = self.0.0.send(Command::Indicate(indication));
    }
}

/// A running host. It ends, and resets its connections, when this is dropped. It also ends if its
/// device is removed.
pub struct Running<A> {
    commands: Commands<Command<A>>,
    /// The name of the device.
    device: String,
    /// Whether it was removed.
    removed: Arc<AtomicBool>,
    /// Until it has been joined.
    thread: Option<JoinHandle<Ended<A>>>,
}

impl<A> Running<A> {
    /// Lets the host's thread call `f` with the time and the host, and returns the result. Segments
    /// are sent afterwards.
    ///
    /// # Errors
    /// If the device was removed, or the thread has panicked.
    pub fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(Time, &mut Host<A>) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let (answer, result) = mpsc::sync_channel(1);
        self.commands
            .send(Command::Call(Box::new(move |now, host| {
                // The caller waits for it.
                let _ = answer.send(f(now, host));
            })))
            .map_err(|_| self.end_cause())?;
        result.recv().map_err(|_| self.end_cause())
    }

    /// Whether the host still runs.
    ///
    /// # Errors
    /// As [`Running::call`].
    pub fn check(&self) -> Result<(), Error> {
        match &self.thread {
            Some(thread) if !thread.is_finished() => Ok(()),
            _ => Err(self.end_cause()),
        }
    }

    /// Why the thread has ended by itself.
    fn end_cause(&self) -> Error {
        if self.removed.load(Ordering::Acquire) {
            Error::DeviceRemoved(self.device.clone())
        } else {
            Error::Stopped
        }
    }

    /// A handle to the host's thread.
    #[must_use]
    pub fn caller(&self) -> Caller<A> {
        Caller(self.commands.clone())
    }

    /// A sender of indications to the host.
    #[must_use]
    pub fn indications(&self) -> Indications<A> {
        Indications(self.caller())
    }

    /// Ends it. Connections have `patience` to end by themselves, then they are reset; connections
    /// in TIME-WAIT are dropped. Returns the rest.
    ///
    /// # Panics
    /// If an application has.
    #[must_use]
    pub fn stop(self, patience: Duration) -> Ended<A> {
        self.ask_to_end(patience);
        self.join()
    }

    /// Waits until the thread has ended.
    fn join(mut self) -> Ended<A> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("it is joined here and by `drop` alone"),
        }
    }

    /// Lets the thread end.
    fn ask_to_end(&self, patience: Duration) {
        // It may have ended already.
        let _ = self.commands.send(Command::Stop(patience));
    }
}

impl<A> Drop for Running<A> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.ask_to_end(Duration::ZERO);
            let _ = thread.join();
        }
    }
}
