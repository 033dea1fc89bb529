//! The ends of flows on the kernel's stack: sockets in threads, in the namespaces of their nodes. They
//! run the lab's applications.

mod connection;
mod datagrams;
mod sockets;

use crate::Error;
use crate::network::Network;
use crate::state::{Ended, Entry, RunState, Unfinished};
use base::Time;
use host::{
    DatagramSource, Departures, FourTuple, Listener, Opening, TfrcReceiver, TfrcSender, Workload,
};
use lab::Account;
use rustix::event::PollFlags;
use scenario::{End, Endpoint, Flow, Scenario, port};
use socket2::{SockAddr, Socket};
use sockets::{UNKNOWN, client_port, counts, leave, listen, stream};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A thread of a kernel's end.
pub(crate) type Thread = JoinHandle<Result<(), live::Error>>;

/// The kernel's ends of flows, before the network exists.
#[derive(Default)]
pub(crate) struct KernelEnds(Vec<KernelEnd>);

/// An end of a flow.
struct KernelEnd {
    flow: usize,
    node: usize,
    task: Option<Task>,
}

/// What an end does.
enum Task {
    Listen(Listener<End>),
    Open(Box<Opening<End>>),
    OpenMany(Workload<End>),
    TakeDatagrams,
    SendDatagrams(DatagramSource),
}

impl Endpoint for KernelEnd {
    fn give(&mut self, _: IpAddr) {
        // The network has been given all of them.
    }

    fn listen(&mut self, listener: Listener<End>) {
        self.task = Some(Task::Listen(listener));
    }

    fn open(&mut self, opening: Opening<End>) {
        self.task = Some(Task::Open(opening.into()));
    }

    fn open_many(&mut self, workload: Workload<End>) {
        self.task = Some(Task::OpenMany(workload));
    }

    fn take_datagrams(&mut self, _: u16, _: Option<Departures>) {
        self.task = Some(Task::TakeDatagrams);
    }

    fn send_datagrams(&mut self, source: DatagramSource) {
        self.task = Some(Task::SendDatagrams(source));
    }

    fn receive_tfrc(&mut self, _: FourTuple, _: TfrcReceiver) {
        // Not reached: scenarios give flows with TFRC no end of the kernel's. The flow would stay silent.
    }

    fn send_tfrc(&mut self, _: FourTuple, _: TfrcSender) {
        // As above.
    }
}

impl KernelEnds {
    /// The end of a flow at a node, to be installed.
    pub(crate) fn end(&mut self, flow: usize, node: usize) -> &mut dyn Endpoint {
        self.0.push(KernelEnd { flow, node, task: None });
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    /// Opens the sockets of those that listen.
    pub(crate) fn prepare(
        self,
        scenario: &Scenario,
        network: &Network,
    ) -> Result<Vec<Waiting>, Error> {
        let prepare = |KernelEnd { flow: index, node, task }| {
            let own = SocketAddr::new(crate::state::address(scenario, index, node), port(index));
            let flow = &scenario.flows[index];
            let config = if node == flow.from { &flow.sender } else { &flow.receiver };
            let namespace = &network.nodes[node].namespace;
            let socket = match &task {
                Some(Task::Listen(_)) => Some(namespace.run(|| listen(flow, config, own))??),
                Some(Task::TakeDatagrams) => Some(namespace.run(|| datagrams::receiver(own))??),
                Some(Task::Open(_) | Task::OpenMany(_)) => {
                    // A setting that the kernel refuses is reported before the run.
                    namespace.run(|| stream(flow, config, own))??;
                    None
                }
                Some(Task::SendDatagrams(_)) | None => None,
            };
            Ok(Waiting { flow: index, node, task, socket })
        };
        self.0.into_iter().map(prepare).collect()
    }
}

/// An end that waits for the start of the run.
pub(crate) struct Waiting {
    flow: usize,
    node: usize,
    task: Option<Task>,
    /// The socket that listens already.
    socket: Option<Socket>,
}

impl Waiting {
    /// Starts the end's thread.
    pub(crate) fn start(self, state: &Arc<RunState>, network: &Network) -> Result<Thread, Error> {
        let namespace = &network.nodes[self.node].namespace;
        let name = format!("{}-{}", state.scenario.nodes[self.node], self.flow);
        let state = Arc::clone(state);
        // A listener has nothing to do until a client connects.
        let listens = matches!(self.task, Some(Task::Listen(_) | Task::TakeDatagrams) | None);
        let unfinished = (!listens).then(|| Unfinished::new(&state));
        let run = move || {
            self.run(&state);
            drop(unfinished);
        };
        Ok(namespace.spawn(&name, run)?)
    }

    fn run(self, state: &Arc<RunState>) {
        let Waiting { flow: index, node, task, socket } = self;
        let end = FlowEnd { state, index, flow: &state.scenario.flows[index], node };
        match (task, socket) {
            (Some(Task::Listen(listener)), Some(socket)) => end.serve(&socket, listener),
            (Some(Task::Open(opening)), _) => {
                if state.sleep_until(opening.at).is_ok() {
                    end.open(*opening);
                }
            }
            (Some(Task::OpenMany(workload)), _) => end.open_many(workload),
            (Some(Task::SendDatagrams(source)), _) => end.send_datagrams(source),
            (Some(Task::TakeDatagrams), Some(socket)) => end.receive_datagrams(&socket),
            (Some(Task::Listen(_) | Task::TakeDatagrams) | None, _) => {}
        }
    }
}

/// An end of a flow in the run.
struct FlowEnd<'a> {
    state: &'a Arc<RunState>,
    index: usize,
    flow: &'a Flow,
    node: usize,
}

/// The largest number of threads of an end; further connections wait.
const MOST_THREADS: usize = 2000;

/// The stack of a thread, bytes; its buffer is on the heap.
const STACK: usize = 128 * 1024;

/// The longest wait for the end of a connection, before the time is looked at again.
const SLICE: std::time::Duration = std::time::Duration::from_millis(20);

impl FlowEnd<'_> {
    /// Accepts connections, each handled by a thread of its own.
    fn serve(&self, socket: &Socket, mut listener: Listener<End>) {
        let active = AtomicUsize::new(0);
        let active = &active;
        std::thread::scope(|scope| {
            loop {
                match self.state.when(socket, PollFlags::IN, || socket.accept()) {
                    Ok((socket, peer)) => {
                        let (_, end) = listener.accept(self.four_tuple(&peer));
                        let work = move || match socket.set_nonblocking(true) {
                            Ok(()) => self.run(&socket, end, client_port(Ok(peer))),
                            Err(error) => self.fail(&error),
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

    /// The addresses of a connection that a peer has opened.
    fn four_tuple(&self, peer: &SockAddr) -> FourTuple {
        let own = self.state.place(self.index, self.node, port(self.index));
        let peer = peer.as_socket().unwrap_or(own);
        FourTuple {
            local: own.ip(),
            local_port: own.port(),
            remote: peer.ip(),
            remote_port: peer.port(),
        }
    }

    /// Opens the connections of a workload, each in a thread of its own.
    fn open_many(&self, mut workload: Workload<End>) {
        let active = AtomicUsize::new(0);
        let active = &active;
        let (ends, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            while !self.state.is_over() {
                // A connection that is not active has reported its end.
                let is_active = active.load(Ordering::Acquire) > 0;
                while ended.try_recv().is_ok() {
                    workload.ended(self.state.clock.now());
                }
                if !is_active && workload.next() == Time::NEVER {
                    return;
                }
                let now = self.state.clock.now();
                while let Some(opening) = workload.due(now) {
                    let ends = ends.clone();
                    let work = move || {
                        self.open(opening);
                        // The receiver is there until the run is over.
                        let _ = ends.send(());
                    };
                    if self.spawn(scope, active, work).is_err() {
                        return;
                    }
                }
                let wait = workload.next().since(now).as_nanos();
                let wait = std::time::Duration::from_nanos(wait).min(SLICE);
                if ended.recv_timeout(wait).is_ok() {
                    workload.ended(self.state.clock.now());
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
        let unfinished = Unfinished::new(self.state);
        let counted = move || {
            work();
            drop(unfinished);
            active.fetch_sub(1, Ordering::AcqRel);
        };
        let builder = std::thread::Builder::new().stack_size(STACK);
        builder.spawn_scoped(scope, counted).map(drop).map_err(|error| {
            self.fail(&error);
            Ended::Failed(error)
        })
    }

    /// Opens a connection and runs its application.
    fn open(&self, opening: Opening<End>) {
        match self.connect(&opening) {
            Ok(socket) => {
                let transfer = client_port(socket.local_addr());
                self.run(&socket, opening.application, transfer);
            }
            Err(ended) => {
                let over = !matches!(ended, Ended::Over);
                self.enter(Account::new(&opening.application, u64::MAX, over, UNKNOWN, None));
            }
        }
    }

    fn connect(&self, opening: &Opening<End>) -> Result<Socket, Ended> {
        let Opening { local_port, remote, remote_port, config, .. } = opening;
        let own = self.state.place(self.index, self.node, local_port.unwrap_or(0));
        let remote = SocketAddr::new(*remote, *remote_port);
        let socket = stream(self.flow, config, own).map_err(|error| {
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

    /// Runs the application of a connection to its end, or that of the run.
    fn run(&self, socket: &Socket, mut end: End, transfer: u64) {
        let result = connection::run(self.state, socket, &mut end);
        let over = !matches!(result, Err(Ended::Over));
        self.enter(Account::new(&end, transfer, over, counts(socket), None));
        leave(self.state, socket);
    }

    fn enter(&self, account: Account) {
        self.state.enter(Entry::Account(self.index, account));
    }

    fn fail(&self, error: &io::Error) {
        let message = format!("flow `{}`: {error}", self.flow.name);
        self.state.enter(Entry::Error(Error::System(message)));
    }
}
