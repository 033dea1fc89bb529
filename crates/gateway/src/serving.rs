//! Short answers over stream sockets: one request a connection, bounded in number and in time, so that nobody
//! who connects holds up anything but his own connection.

use base::{Duration, Time};
use live::Clock;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// The most connections at a time. Further ones are closed at once.
const MOST: usize = 8;

/// From the acceptance of a connection to its end.
const LONGEST: Duration = Duration::from_secs(5);

/// A connected socket.
pub(crate) trait Stream: Read + Write + Send {
    /// How long a single read or write may take.
    fn set_timeout(&self, timeout: std::time::Duration) -> io::Result<()>;
    /// Whether the other end has closed it, or its direction to here.
    fn has_ended(&self) -> bool;
}

/// Where connections arrive.
pub(crate) trait Listener: Send + 'static {
    fn accept(&self) -> io::Result<Box<dyn Stream>>;
    fn duplicate(&self) -> io::Result<OwnedFd>;
}

macro_rules! sockets {
    ($Listener:ty, $Stream:ty) => {
        impl Stream for $Stream {
            fn set_timeout(&self, timeout: std::time::Duration) -> io::Result<()> {
                self.set_read_timeout(Some(timeout))?;
                self.set_write_timeout(Some(timeout))
            }

            fn has_ended(&self) -> bool {
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                let received = rustix::net::recv(self, &mut [0u8; 1], flags);
                received.map(|(_, len)| len == 0).unwrap_or_else(|error| error != Errno::AGAIN)
            }
        }

        impl Listener for $Listener {
            fn accept(&self) -> io::Result<Box<dyn Stream>> {
                Ok(Box::new(<$Listener>::accept(self)?.0))
            }

            fn duplicate(&self) -> io::Result<OwnedFd> {
                self.as_fd().try_clone_to_owned()
            }
        }
    };
}

sockets! { UnixListener, UnixStream }
sockets! { TcpListener, TcpStream }

/// A connection with a deadline for all of it.
pub(crate) struct Exchange {
    stream: Box<dyn Stream>,
    clock: Clock,
    deadline: Time,
}

impl Exchange {
    /// Over a connection, from now on.
    pub(crate) fn new(stream: Box<dyn Stream>) -> Exchange {
        let clock = Clock::start();
        Exchange { stream, clock, deadline: clock.now() + LONGEST }
    }

    /// Lets it go on: its time begins again.
    pub(crate) fn renew(&mut self) {
        self.deadline = self.clock.now() + LONGEST;
    }

    /// Whether the other end has closed it, or its direction to here.
    pub(crate) fn has_ended(&self) -> bool {
        self.stream.has_ended()
    }

    /// Lets the next read or write take what is left of the time.
    fn limit(&self) -> io::Result<()> {
        match self.deadline.since(self.clock.now()).as_nanos() {
            0 => Err(io::ErrorKind::TimedOut.into()),
            nanos => self.stream.set_timeout(std::time::Duration::from_nanos(nanos)),
        }
    }

    /// Reads until what was read is whole, and returns it; `None` if it ends before, or is longer than `most`
    /// bytes.
    pub(crate) fn request(
        &mut self,
        most: usize,
        is_whole: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Option<Vec<u8>>> {
        let mut request = Vec::new();
        let mut buffer = [0; 512];
        while !is_whole(&request) {
            let len = self.read(&mut buffer)?;
            if len == 0 || request.len() + len > most {
                return Ok(None);
            }
            request.extend_from_slice(&buffer[..len]);
        }
        Ok(Some(request))
    }
}

impl Read for Exchange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.read(buffer)
    }
}

impl Write for Exchange {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A thread that answers until this is dropped.
pub(crate) struct Server {
    listener: OwnedFd,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Lets `answer` serve each connection on a thread of its own.
    pub(crate) fn start(
        name: &'static str,
        listener: impl Listener,
        answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Server> {
        let duplicate = listener.duplicate()?;
        let ending = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ending);
        let builder = std::thread::Builder::new().name(name.to_owned());
        let thread = builder.spawn(move || accept(name, &listener, &told, &Arc::new(answer)))?;
        Ok(Server { listener: duplicate, ending, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        // Its call to accept returns with an error then.
        if rustix::net::shutdown(&self.listener, Shutdown::Both).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn accept<F>(name: &str, listener: &impl Listener, ending: &AtomicBool, answer: &Arc<F>)
where
    F: Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
{
    let open = Arc::new(AtomicUsize::new(0));
    while !ending.load(Ordering::Acquire) {
        let Ok(stream) = listener.accept() else {
            // Perhaps there are no descriptors left.
            std::thread::sleep(std::time::Duration::from_millis(10));
            continue;
        };
        let Some(place) = Place::take(&open) else { continue };
        let answer = Arc::clone(answer);
        let serve = move || {
            let mut exchange = Exchange::new(stream);
            // Given up before the connection is closed: who sees it closed may open another one.
            let _place = place;
            // Who has gone needs no answer.
            let _ = answer(&mut exchange);
        };
        // Without a thread, the connection is closed.
        let _ = std::thread::Builder::new().name(name.to_owned()).spawn(serve);
    }
}

/// One of the [`MOST`] connections.
struct Place(Arc<AtomicUsize>);

impl Place {
    /// Only the accepting thread takes places.
    fn take(open: &Arc<AtomicUsize>) -> Option<Place> {
        if open.load(Ordering::Acquire) >= MOST {
            return None;
        }
        open.fetch_add(1, Ordering::AcqRel);
        Some(Place(Arc::clone(open)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
