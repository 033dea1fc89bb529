//! One connection, or many, between a host of ours and the kernel.

use super::path::{KERNELS, OURS, Path, address};
use super::programs::{Exchange, Outcome, Plan, exchange};
use crate::kernel;
use base::{Duration, Time};
use host::Opening;
use live::{Stream, netlink, sockopt};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration as Span;
use tcp::{Config, Events, KeepAlive, ReceiveWindow, Rto, State};

/// The longest that anything may take.
const PATIENCE: Span = Span::from_secs(300);

/// How the ends meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meeting {
    pub(crate) v6: bool,
    /// We open the connection, not the kernel.
    pub(crate) we_open: bool,
}

impl Meeting {
    pub(crate) const ALL: [Meeting; 4] = [
        Meeting { v6: false, we_open: true },
        Meeting { v6: true, we_open: true },
        Meeting { v6: false, we_open: false },
        Meeting { v6: true, we_open: false },
    ];
}

/// What became of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Met {
    pub(crate) ours: Outcome,
    pub(crate) kernels: Outcome,
    pub(crate) events: Events,
    pub(crate) states: Vec<State>,
}

impl Met {
    /// What is wrong with it, if each end ought to have received what the other has sent.
    pub(crate) fn fault(&self) -> Option<String> {
        let Met { ours, kernels, events, .. } = self;
        let whole = ours.sent == kernels.received && kernels.sent == ours.received;
        let trouble = events.intersects(Events::RESET | Events::TIMED_OUT | Events::UNREACHABLE);
        if whole && !trouble && kernels.error.is_none() {
            return None;
        }
        Some(format!(
            "we sent {} and the kernel received {}, it sent {} and we received {}; hashes {}; {events:?}, {:?}",
            ours.sent.0,
            kernels.received.0,
            kernels.sent.0,
            ours.received.0,
            if whole { "equal" } else { "differ" },
            kernels.error,
        ))
    }
}

/// Our settings.
pub(crate) fn config(v6: bool) -> Config {
    Config {
        mss: if v6 { 1440 } else { 1460 },
        receive_window: ReceiveWindow::fixed(6 << 20),
        timestamps: true,
        ecn: tcp::EcnMode::Classic,
        nagle: false,
        rto: Rto { minimum: Duration::from_millis(200), ..Rto::default() },
        time_wait: Duration::from_secs(1),
        ..Config::default()
    }
}

/// A port that no other case has used.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(5000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

type Done = (Outcome, Events, Vec<State>);

/// Connections under way.
pub(crate) struct Connections {
    done: mpsc::Receiver<Done>,
    kernels: JoinHandle<io::Result<Vec<Outcome>>>,
}

/// Lets `plans` meet, one connection each; the first of a plan is ours. All are opened at once.
pub(crate) fn open(
    path: &Path,
    meeting: Meeting,
    config: &Config,
    plans: &[(Plan, Plan)],
) -> Connections {
    let (finished, done) = mpsc::channel();
    let Meeting { v6, we_open } = meeting;
    let port = port();
    let (config, fast_open) = (config.clone(), config.fast_open);
    let theirs: Vec<Plan> = plans.iter().map(|(_, theirs)| *theirs).collect();
    let ours: Vec<Plan> = plans.iter().map(|(ours, _)| *ours).collect();
    let kernels = if we_open {
        let local = SocketAddr::new(address(KERNELS, v6), port);
        let listener = path.kernel.run(|| listen(local)).expect("it can be entered");
        let listener = listener.expect("the address is the kernel's");
        let kernels = path.kernel.spawn("kernel", move || accept(&listener, &theirs));
        let remote = address(KERNELS, v6);
        path.call(move |now, host| {
            for plan in ours {
                let application = Stream::new(Exchange::new(plan, finished.clone()), LIMIT);
                let config = config.clone();
                let (remote_port, local_port) = (port, None);
                let opening = Opening {
                    at: now,
                    remote,
                    remote_port,
                    local: None,
                    local_port,
                    config,
                    application,
                };
                host.connect(now, opening).expect("there are ports");
            }
        });
        kernels
    } else {
        path.call(move |_, host| {
            let mut ours = ours.into_iter();
            host.listen(port, move || {
                let plan = ours.next().unwrap_or_default();
                (config.clone(), Stream::new(Exchange::new(plan, finished.clone()), LIMIT))
            });
        });
        let remote = SocketAddr::new(address(OURS, v6), port);
        path.kernel.spawn("kernel", move || connect(remote, fast_open, &theirs))
    };
    let kernels = kernels.expect("there can be another thread");
    let kernels = std::thread::spawn(move || {
        kernels.join().expect("it does not panic").expect("it can be entered")
    });
    Connections { done, kernels }
}

const LIMIT: u64 = 4 << 20;

impl Connections {
    /// What became of them; which is ours of which kernel's end is not known if there are several.
    pub(crate) fn end(self) -> Result<(Vec<Done>, Vec<Outcome>), String> {
        let kernels = self.kernels.join().expect("it does not panic");
        let kernels = kernels.map_err(|error| format!("the kernel's end: {error}"))?;
        let ours: Result<Vec<Done>, _> =
            kernels.iter().map(|_| self.done.recv_timeout(PATIENCE)).collect();
        Ok((ours.map_err(|_| "our end has not ended".to_owned())?, kernels))
    }
}

/// One connection.
pub(crate) fn meet(
    path: &Path,
    meeting: Meeting,
    config: &Config,
    ours: Plan,
    theirs: Plan,
) -> Result<Met, String> {
    let (mut done, mut kernels) = open(path, meeting, config, &[(ours, theirs)]).end()?;
    match (done.pop(), kernels.pop()) {
        (Some((ours, events, states)), Some(kernels)) => Ok(Met { ours, kernels, events, states }),
        _ => Err("there was no connection".to_owned()),
    }
}

/// The congestion control of the kernel's ends: it takes losses for congestion, as our stack does.
pub(crate) const CONGESTION_CONTROL: &str = "cubic";

fn listen(local: SocketAddr) -> io::Result<TcpListener> {
    netlink::set_sysctl("net.core.somaxconn", "4096").map_err(io::Error::other)?;
    let listener = kernel::listen(local, CONGESTION_CONTROL)?;
    sockopt::accept_fast_open(&listener, 100).map_err(io::Error::other)?;
    Ok(listener)
}

fn prepared(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Which plan a connection follows is not for the order to say: sizes are of all the same.
fn accept(listener: &TcpListener, plans: &[Plan]) -> io::Result<Vec<Outcome>> {
    let accepted = plans.iter().map(|_| prepared(kernel::accept(listener, CONGESTION_CONTROL)?));
    run(plans, accepted.collect::<io::Result<_>>()?)
}

fn connect(remote: SocketAddr, fast_open: bool, plans: &[Plan]) -> io::Result<Vec<Outcome>> {
    let stream = || {
        if !fast_open {
            return kernel::connect(remote, CONGESTION_CONTROL);
        }
        let domain = socket2::Domain::for_address(remote);
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
        socket.set_tcp_congestion(CONGESTION_CONTROL.as_bytes())?;
        sockopt::connect_by_fast_open(&socket).map_err(io::Error::other)?;
        socket.connect(&remote.into())?;
        Ok(socket.into())
    };
    let connected = plans.iter().map(|_| prepared(stream()?));
    run(plans, connected.collect::<io::Result<_>>()?)
}

/// Runs the exchanges, after all connections are established.
fn run(plans: &[Plan], streams: Vec<TcpStream>) -> io::Result<Vec<Outcome>> {
    let spawn = |(&plan, stream)| {
        std::thread::Builder::new().stack_size(256 << 10).spawn(move || exchange(plan, stream))
    };
    let threads = plans.iter().zip(streams).map(spawn).collect::<io::Result<Vec<_>>>()?;
    Ok(threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect())
}

/// `size` bytes from us to the kernel, or back, and nothing the other way.
pub(crate) fn transfer(path: &Path, meeting: Meeting, size: u64, we_send: bool) -> Option<String> {
    let sender = Plan { seed: size + 7, send: size, ..Plan::default() };
    let receiver = Plan { second: true, ..Plan::default() };
    let (ours, theirs) = if we_send { (sender, receiver) } else { (receiver, sender) };
    match meet(path, meeting, &config(meeting.v6), ours, theirs) {
        Ok(met) if met.ours.sent.0 + met.ours.received.0 != size => Some("not whole".to_owned()),
        Ok(met) => met.fault(),
        Err(error) => Some(error),
    }
}

/// A transfer with accurate ECN, over a queue that marks: with a kernel that can be told to use AccECN the
/// marks are counted; with an older one, 6.18 included, both ends agree on ECN of RFC 3168.
pub(crate) fn accurate_ecn(path: &Path, meeting: Meeting, we_send: bool) -> Option<String> {
    let set = |value| {
        let set = path.kernel.run(|| netlink::set_sysctl("net.ipv4.tcp_ecn", value));
        set.expect("it can be entered").is_ok()
    };
    let accurate = set("3");
    assert!(accurate || set("1"), "every kernel has it");
    let sender = Plan { seed: 7, send: 5_000_000, ..Plan::default() };
    let receiver = Plan { second: true, ..Plan::default() };
    let plans = if we_send { (sender, receiver) } else { (receiver, sender) };
    let config = Config { ecn: tcp::EcnMode::Accurate, ..config(meeting.v6) };
    let met = match meet(path, meeting, &config, plans.0, plans.1) {
        Ok(met) => met,
        Err(error) => return Some(error),
    };
    let (capable, marks) = (met.ours.sends_ect, met.ours.marks);
    println!("{meeting:?}, we send: {we_send}: ECT {capable}, (reported, received) {marks:?}");
    let marked =
        marks.map(|(reported, received)| if we_send { reported.packets } else { received.packets });
    match (accurate, marked) {
        _ if !capable => Some("ECN was not negotiated".to_owned()),
        (true, None) => Some("accurate ECN was not negotiated".to_owned()),
        (true, Some(0)) => Some("nothing was marked".to_owned()),
        (false, Some(_)) => Some("the kernel does not know accurate ECN".to_owned()),
        _ => met.fault(),
    }
}

/// Transfers of a few bytes from the end that opens, each of which but the first arrives with its
/// SYN, as the kernel counts.
pub(crate) fn fast_open(path: &Path, meeting: Meeting) -> Option<String> {
    const COUNT: u64 = 5;
    let counted = || {
        let counter = if meeting.we_open { "TCPFastOpenPassive" } else { "TCPFastOpenActive" };
        path.kernel.run(|| extended_counter(counter)).expect("it can be entered")
    };
    let before = counted();
    let ours = path.call(|_, host| host.statistics().fast_opens);
    for n in 1..=COUNT {
        let sender = Plan { seed: n, send: 200 * n, ..Plan::default() };
        let receiver = Plan { second: true, ..Plan::default() };
        let plans = if meeting.we_open { (sender, receiver) } else { (receiver, sender) };
        let config = Config { fast_open: true, ..config(meeting.v6) };
        match meet(path, meeting, &config, plans.0, plans.1).map(|met| met.fault()) {
            Ok(None) => {}
            Ok(Some(fault)) | Err(fault) => return Some(fault),
        }
    }
    let kernels = counted() - before;
    let ours = path.call(|_, host| host.statistics().fast_opens) - ours;
    let expected = (COUNT - 1, if meeting.we_open { 0 } else { COUNT - 1 });
    ((kernels, ours) != expected).then(|| format!("{kernels} and {ours} of {COUNT}"))
}

/// A counter of the calling thread's network namespace (`TcpExt` of `netstat`).
fn extended_counter(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat").expect("Linux has it");
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let [names, values] = [lines.next(), lines.next()].map(|line| line.expect("there are two"));
    let mut pairs = names.split(' ').zip(values.split(' '));
    let value = pairs.find(|pair| pair.0 == name).expect("it is counted").1;
    value.parse().expect("it is a number")
}

/// `count` connections at once, with `size` bytes each way.
pub(crate) fn many(path: &Path, meeting: Meeting, count: u64, size: u64) -> Option<String> {
    let plan = |seed| Plan { seed, send: size, ..Plan::default() };
    let plans: Vec<_> = (0..count).map(|n| (plan(2 * n + 1), plan(1_000_001 + 2 * n))).collect();
    let (ours, kernels) = match open(path, meeting, &config(meeting.v6), &plans).end() {
        Ok(ends) => ends,
        Err(error) => return Some(error),
    };
    let sorted = |mut hashes: Vec<(u64, Vec<u8>)>| {
        hashes.sort();
        hashes
    };
    let ours: Vec<Outcome> = ours.into_iter().map(|(ours, _, _)| ours).collect();
    let [sent, received] = [
        sorted(ours.iter().map(|outcome| outcome.sent.clone()).collect()),
        sorted(ours.iter().map(|outcome| outcome.received.clone()).collect()),
    ];
    let kernel_sent = sorted(kernels.iter().map(|outcome| outcome.sent.clone()).collect());
    let kernel_received = sorted(kernels.iter().map(|outcome| outcome.received.clone()).collect());
    let whole = sent == kernel_received && received == kernel_sent;
    let failed = kernels.iter().filter(|outcome| outcome.error.is_some()).count();
    (!whole || failed > 0 || ours.len() as u64 != count)
        .then(|| format!("{} of {count}, {failed} failed, hashes equal: {whole}", ours.len()))
}

/// One end resets the connection in the middle of a transfer; the other gets the reset.
pub(crate) fn reset(path: &Path, meeting: Meeting, we_reset: bool) -> Option<String> {
    let victim = Plan { seed: 3, send: 50_000_000, ..Plan::default() };
    let aborter = Plan { aborts_at: Some(100_000), ..Plan::default() };
    let (ours, theirs) = if we_reset { (aborter, victim) } else { (victim, aborter) };
    let met = match meet(path, meeting, &config(meeting.v6), ours, theirs) {
        Ok(met) => met,
        Err(error) => return Some(error),
    };
    let notified = match we_reset {
        true => matches!(
            met.kernels.error,
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
        ),
        false => met.events.contains(Events::RESET),
    };
    (!notified).then(|| format!("{:?}, {:?}", met.events, met.kernels.error))
}

/// Without a listener, a connection is refused.
pub(crate) fn refused(path: &Path, meeting: Meeting) -> Option<String> {
    let Meeting { v6, we_open } = meeting;
    let port = port();
    if !we_open {
        let remote = SocketAddr::new(address(OURS, v6), port);
        let result = path.kernel.run(move || TcpStream::connect(remote).map(drop));
        let kind = result.expect("it can be entered").err().map(|error| error.kind());
        return (kind != Some(io::ErrorKind::ConnectionRefused)).then(|| format!("{kind:?}"));
    }
    let (finished, done) = mpsc::channel();
    let remote = address(KERNELS, v6);
    path.call(move |now, host| {
        let application = Stream::new(Exchange::new(Plan::default(), finished), LIMIT);
        let (config, remote_port, local_port) = (config(v6), port, None);
        let opening =
            Opening { at: now, remote, remote_port, local: None, local_port, config, application };
        host.connect(now, opening).expect("there are ports");
    });
    match done.recv_timeout(PATIENCE) {
        Ok((_, events, _)) if events.contains(Events::RESET) => None,
        other => Some(format!("{other:?}")),
    }
}

/// One end closes and goes on receiving, and only then is sent everything.
pub(crate) fn half_close(
    path: &Path,
    meeting: Meeting,
    we_close: bool,
    size: u64,
) -> Option<String> {
    let first = Plan { seed: 5, send: size / 2, ..Plan::default() };
    let second = Plan { seed: 9, send: size, second: true, ..Plan::default() };
    let (ours, theirs) = if we_close { (first, second) } else { (second, first) };
    match meet(path, meeting, &config(meeting.v6), ours, theirs) {
        Ok(met) if met.ours.sent.0 + met.kernels.sent.0 != size + size / 2 => {
            Some("not whole".to_owned())
        }
        Ok(met) => met.fault(),
        Err(error) => Some(error),
    }
}

/// The receiver reads nothing for a while, so that its window closes, and then everything.
pub(crate) fn zero_window(
    path: &Path,
    meeting: Meeting,
    we_send: bool,
    pause: Duration,
) -> Option<String> {
    let size = 40_000_000;
    let sender = Plan { seed: 11, send: size, ..Plan::default() };
    let receiver = Plan { reads_after: Some(pause), ..Plan::default() };
    let (ours, theirs) = if we_send { (sender, receiver) } else { (receiver, sender) };
    let config = Config { receive_window: ReceiveWindow::fixed(1 << 20), ..config(meeting.v6) };
    match meet(path, meeting, &config, ours, theirs) {
        Ok(met) => met.fault(),
        Err(error) => Some(error),
    }
}

/// The one-way delay at which FINs are to cross.
pub(crate) const CROSSING: Duration = Duration::from_millis(50);

/// Both ends close at the same time, so that their FINs cross on a path with [`CROSSING`].
pub(crate) fn simultaneous_close(path: &Path, meeting: Meeting) -> Result<bool, String> {
    // Who opens knows of the connection earlier than the other.
    let span = |opens| Duration::from_millis(300) + if opens { CROSSING } else { Duration::ZERO };
    let plan =
        |seed, opens| Plan { seed, send: 10_000, lingers: Some(span(opens)), ..Plan::default() };
    let [ours, theirs] = [plan(1, meeting.we_open), plan(3, !meeting.we_open)];
    let met = meet(path, meeting, &config(meeting.v6), ours, theirs)?;
    match met.fault() {
        Some(fault) => Err(fault),
        None => Ok(met.states.contains(&State::Closing)),
    }
}

/// Both ends ask whether the other is still there: it is, for `alive`. Then our device goes down,
/// and both give the connection up.
pub(crate) fn keep_alive(path: &Path, meeting: Meeting, alive: Span) -> Option<String> {
    let Meeting { v6, .. } = meeting;
    let port = port();
    let local = SocketAddr::new(address(KERNELS, v6), port);
    let listener = path.kernel.run(|| listen(local)).expect("it can be entered");
    let listener = listener.expect("the address is the kernel's");
    let (finished, done) = mpsc::channel();
    let milliseconds = Duration::from_millis;
    let keep_alive = KeepAlive { idle: milliseconds(200), interval: milliseconds(200), probes: 3 };
    let config = Config { keep_alive: Some(keep_alive), ..config(v6) };
    let remote = address(KERNELS, v6);
    path.call(move |now: Time, host| {
        let forever = Plan { lingers: Some(Duration::from_secs(1000)), ..Plan::default() };
        let application = Stream::new(Exchange::new(forever, finished), LIMIT);
        let (remote_port, local_port) = (port, None);
        let opening =
            Opening { at: now, remote, remote_port, local: None, local_port, config, application };
        host.connect(now, opening).expect("there are ports");
    });
    let Ok(stream) = kernel::accept(&listener, CONGESTION_CONTROL) else {
        return Some("no connection".to_owned());
    };
    let asking = socket2::TcpKeepalive::new()
        .with_time(Span::from_secs(1))
        .with_interval(Span::from_secs(1))
        .with_retries(2);
    let socket = socket2::SockRef::from(&stream);
    if let Err(error) =
        socket.set_tcp_keepalive(&asking).and_then(|()| stream.set_nonblocking(true))
    {
        return Some(error.to_string());
    }
    std::thread::sleep(alive);
    let early = done.try_recv().ok();
    let open = io::Read::read(&mut &stream, &mut [0]).err().map(|error| error.kind());
    if early.is_some() || open != Some(io::ErrorKind::WouldBlock) {
        return Some(format!("given up early: {early:?}, {open:?}"));
    }
    path.set_up(false).expect("there is the device");
    let ours = done.recv_timeout(Span::from_secs(10));
    let mut kernels = None;
    for _ in 0..100 {
        std::thread::sleep(Span::from_millis(100));
        kernels = io::Read::read(&mut &stream, &mut [0]).err().map(|error| error.kind());
        if kernels != Some(io::ErrorKind::WouldBlock) {
            break;
        }
    }
    path.set_up(true).expect("there is the device");
    let timed_out = matches!(&ours, Ok((_, events, _)) if events.contains(Events::TIMED_OUT));
    let gone = [io::ErrorKind::TimedOut, io::ErrorKind::HostUnreachable];
    let kernel_timed_out = kernels
        .is_some_and(|kind| gone.contains(&kind) || kind == io::ErrorKind::NetworkUnreachable);
    (!timed_out || !kernel_timed_out).then(|| format!("{ours:?}, {kernels:?}"))
}
