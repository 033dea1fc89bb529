//! The ends of flows on the kernel's stack: sockets in threads, in the namespaces of their nodes.

mod datagrams;
mod dialogue;
mod transfer;
mod workload;

use crate::network::Network;
use crate::state::{Ended, Entry, RunState};
use crate::{Error, settings};
use lab::{Account, Counts, Part};
use rustix::event::PollFlags;
use scenario::{Flow, Stack, Traffic, port};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// A thread of a kernel's end.
pub(crate) type Thread = JoinHandle<Result<(), live::Error>>;

/// An end that waits for the start of the run.
pub(crate) struct Waiting {
    flow: usize,
    node: usize,
    /// The socket that listens already.
    listener: Option<Socket>,
}

/// Makes the kernel's ends of all flows; those that listen do so from now on.
pub(crate) fn prepare(
    scenario: &scenario::Scenario,
    network: &Network,
) -> Result<Vec<Waiting>, Error> {
    let mut waiting = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        for (node, stack) in [(flow.from, flow.stacks.from), (flow.to, flow.stacks.to)] {
            if stack == Stack::Lasthop {
                continue;
            }
            let own = SocketAddr::new(crate::state::address(scenario, index, node), port(index));
            let accepts = match flow.traffic {
                Traffic::Requests(_) => node == flow.from,
                Traffic::Transfer(_) | Traffic::Workload(_) => node == flow.to,
                Traffic::Datagrams(_) => false,
            };
            let receives = matches!(flow.traffic, Traffic::Datagrams(_)) && node == flow.to;
            let namespace = &network.nodes[node].namespace;
            let listener = if accepts {
                Some(namespace.run(|| listen(flow, node, own))??)
            } else if receives {
                Some(namespace.run(|| datagrams::receiver(own))??)
            } else {
                if !matches!(flow.traffic, Traffic::Datagrams(_)) {
                    // A setting that the kernel refuses is reported before the run.
                    namespace.run(|| stream(flow, node, own))??;
                }
                None
            };
            waiting.push(Waiting { flow: index, node, listener });
        }
    }
    Ok(waiting)
}

impl Waiting {
    /// Starts the end's thread.
    pub(crate) fn start(self, state: &Arc<RunState>, network: &Network) -> Result<Thread, Error> {
        let namespace = &network.nodes[self.node].namespace;
        let name = format!("{}-{}", state.scenario.nodes[self.node], self.flow);
        let state = Arc::clone(state);
        Ok(namespace.spawn(&name, move || self.run(&state))?)
    }

    fn run(self, state: &RunState) {
        let Waiting { flow: index, node, listener } = self;
        let end = FlowEnd { state, index, flow: &state.scenario.flows[index], node };
        let active = AtomicUsize::new(0);
        match (&end.flow.traffic, listener) {
            (Traffic::Transfer(transfer), None) => end.send_one(*transfer),
            (Traffic::Workload(workload), None) => end.send_many(*workload),
            (Traffic::Requests(dialogue), None) => end.ask(*dialogue),
            (Traffic::Datagrams(datagrams), None) => end.send_datagrams(datagrams),
            (Traffic::Datagrams(_), Some(socket)) => end.receive_datagrams(&socket),
            (Traffic::Transfer(transfer), Some(listener)) => {
                end.serve(&listener, &active, |socket| end.receive(socket, transfer.reading));
            }
            (Traffic::Workload(_), Some(listener)) => {
                end.serve(&listener, &active, |socket| end.receive(socket, None));
            }
            (Traffic::Requests(dialogue), Some(listener)) => {
                end.serve(&listener, &active, |socket| end.answer(socket, *dialogue));
            }
        }
    }
}

/// An end of a flow.
struct FlowEnd<'a> {
    state: &'a RunState,
    index: usize,
    flow: &'a Flow,
    node: usize,
}

/// The largest number of threads of an end; further connections wait.
const MOST_THREADS: usize = 2000;

/// The stack of a thread, bytes; its buffer is on the heap.
const STACK: usize = 128 * 1024;

/// The size of a read or write, bytes.
const CHUNK: usize = 64 * 1024;

impl FlowEnd<'_> {
    /// Accepts connections, each handled by a thread of its own.
    fn serve(&self, listener: &Socket, active: &AtomicUsize, handle: impl Fn(&Socket) + Sync) {
        let handle = &handle;
        std::thread::scope(|scope| {
            loop {
                let accepted = self.state.when(listener, PollFlags::IN, || listener.accept());
                match accepted {
                    Ok((socket, _)) => {
                        let work = move || {
                            let ready = socket.set_nonblocking(true);
                            if let Err(error) = ready {
                                return self.fail(&error);
                            }
                            handle(&socket);
                            leave(self.state, &socket);
                        };
                        if self.spawn(scope, active, work).is_err() {
                            return;
                        }
                    }
                    Err(Ended::Over) => return,
                    // The peer closed the connection before it was accepted.
                    Err(Ended::Failed(error))
                        if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(Ended::Failed(error)) => return self.fail(&error),
                }
            }
        });
    }

    /// Runs `work` in a thread, once there are fewer than the largest number.
    fn spawn<'scope>(
        &self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        active: &'scope AtomicUsize,
        work: impl FnOnce() + Send + 'scope,
    ) -> Result<(), Ended> {
        while active.load(Ordering::Acquire) >= MOST_THREADS {
            self.state.sleep_until(self.state.clock.now() + base::Duration::from_millis(1))?;
        }
        active.fetch_add(1, Ordering::AcqRel);
        let counted = move || {
            work();
            active.fetch_sub(1, Ordering::AcqRel);
        };
        let builder = std::thread::Builder::new().stack_size(STACK);
        builder.spawn_scoped(scope, counted).map(drop).map_err(|error| {
            self.fail(&error);
            Ended::Failed(error)
        })
    }

    /// A connection to the other end of the flow.
    fn connect(&self, local_port: u16) -> Result<Socket, Ended> {
        let other = if self.node == self.flow.from { self.flow.to } else { self.flow.from };
        let own = self.state.place(self.index, self.node, local_port);
        let remote = self.state.place(self.index, other, port(self.index));
        let socket = stream(self.flow, self.node, own).map_err(|error| {
            self.state.enter(Entry::Error(error));
            Ended::Over
        })?;
        socket.bind(&SockAddr::from(own))?;
        match socket.connect(&SockAddr::from(remote)) {
            Err(error)
                if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
            {
                return Err(Ended::Failed(error));
            }
            _ => {}
        }
        self.state.wait(&socket, PollFlags::OUT)?;
        match socket.take_error()? {
            Some(error) => Err(Ended::Failed(error)),
            None => Ok(socket),
        }
    }

    fn enter(&self, account: Account) {
        self.state.enter(Entry::Account(self.index, account));
    }

    /// Enters the account of a sender.
    fn enter_sender(
        &self,
        socket: Option<&Socket>,
        spec: Option<scenario::TransferSpec>,
        result: &Result<(), Ended>,
        transfer: u64,
        wrong: u64,
    ) {
        let counts = socket.map_or(UNKNOWN, counts);
        let over = !matches!(result, Err(Ended::Over));
        let part = Part::Sender { spec, counts };
        self.enter(Account { part, transfer, over, misplaced: wrong });
    }

    fn fail(&self, error: &io::Error) {
        let message = format!("flow `{}`: {error}", self.flow.name);
        self.state.enter(Entry::Error(Error::System(message)));
    }
}

/// A socket with the settings of the end of a flow at a node.
fn stream(flow: &Flow, node: usize, own: SocketAddr) -> Result<Socket, Error> {
    let open = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(own), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let socket = open().map_err(|error| Error::System(format!("opening a socket: {error}")))?;
    let config = if node == flow.from { &flow.sender } else { &flow.receiver };
    settings::apply(&socket, flow, config)?;
    Ok(socket)
}

/// The listening socket of a flow.
fn listen(flow: &Flow, node: usize, own: SocketAddr) -> Result<Socket, Error> {
    let failed = |error: io::Error| Error::System(format!("listening at {own}: {error}"));
    let socket = stream(flow, node, own)?;
    socket.bind(&SockAddr::from(own)).map_err(failed)?;
    socket.listen(i32::from(u16::MAX)).map_err(failed)?;
    Ok(socket)
}

/// Counts that the kernel does not report.
const UNKNOWN: Counts = Counts {
    segments: None,
    retransmissions: None,
    timeouts: None,
    reductions: None,
    notices: None,
    reprobes: None,
};

fn counts(socket: &Socket) -> Counts {
    let counts = live::sockopt::tcp_counts(socket).unwrap_or_default();
    Counts {
        segments: counts.segments,
        retransmissions: counts.retransmissions,
        timeouts: counts.timeouts,
        ..UNKNOWN
    }
}

/// The port of the end that opened the connection.
fn client_port(address: io::Result<SockAddr>) -> u64 {
    let address = address.ok().and_then(|address| address.as_socket());
    address.map_or(0, |address| u64::from(address.port()))
}

/// Resets a connection that the end of the run interrupts.
fn leave(state: &RunState, socket: &Socket) {
    if state.is_over() {
        let _ = socket.set_linger(Some(std::time::Duration::ZERO));
    }
}
