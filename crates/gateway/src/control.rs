//! The control socket. A request is one line of JSON, such as `{"command":"status"}`, and so is the answer:
//! `{"status":{...}}` or `{"error":"..."}`. Each connection carries one of both.

use crate::capture::{self, Capture};
use crate::placed::Placed;
use crate::service::Handle;
use crate::serving::{Exchange, Server};
use crate::{Connections, Status};
use base::{Duration, Time};
use live::Clock;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::IpAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Where the socket is, unless it is said otherwise.
pub const SOCKET: &str = "/run/lasthop/lasthopd.sock";

/// The longest time until a new version of the program answers.
const LONGEST_UPGRADE: Duration = Duration::from_secs(30);

/// The longest request, bytes.
const LONGEST_REQUEST: usize = 4096;
/// The longest answer, bytes.
const LONGEST_ANSWER: usize = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    // With braces: serde lets unknown keys pass beside a name alone.
    Status {},
    Connections {},
    /// New connections pass unsplit from now on, or are split again.
    Drain {
        #[serde(default)]
        undo: bool,
    },
    /// The configuration is read again.
    Reload {},
    /// The new version of the program takes the place of the one that runs. It is answered only if it does not.
    Upgrade {},
    /// The mobile host is attached to this base station.
    Handoff {
        station: IpAddr,
    },
    /// The packets of a user follow the answer.
    Capture {
        user: IpAddr,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Status(Box<Status>),
    Connections(Connections),
    Done {},
    Error(String),
}

/// A control socket, which is removed when this is dropped.
pub(crate) struct Control {
    _placed: Placed,
    _server: Server,
}

impl Control {
    /// Listens at `path`, where only the owner may connect.
    ///
    /// # Errors
    /// If another process listens there, or the system refuses.
    pub(crate) fn listen(path: &Path, handle: Handle) -> io::Result<Control> {
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process answers there"));
        }
        let (listener, placed) = Placed::bind(path, |path| UnixListener::bind(path))?;
        let server = Server::start("control", listener, move |exchange| answer(exchange, &handle))?;
        Ok(Control { _placed: placed, _server: server })
    }
}

fn has_line(bytes: &[u8]) -> bool {
    bytes.contains(&b'\n')
}

fn answer(exchange: &mut Exchange, handle: &Handle) -> io::Result<()> {
    let Some(request) = exchange.request(LONGEST_REQUEST, has_line)? else {
        let message = format!("expected one line of at most {LONGEST_REQUEST} bytes");
        return write(exchange, &Answer::Error(message));
    };
    let answer = match serde_json::from_slice(&request) {
        Ok(Request::Capture { user }) => return send_packets(exchange, handle, user),
        Ok(request) => act(&request, handle).unwrap_or_else(Answer::Error),
        Err(error) => Answer::Error(format!("not a request: {error}")),
    };
    write(exchange, &answer)
}

fn act(request: &Request, handle: &Handle) -> Result<Answer, String> {
    let core = handle.upgrade().ok_or("the gateway is ending")?;
    let answer = match request {
        Request::Status {} => core.observe().map(|(status, _)| Answer::Status(Box::new(status))),
        Request::Connections {} => core.daemon().connections().map(Answer::Connections),
        Request::Drain { undo } => core.daemon().drain(!undo).map(|()| Answer::Done {}),
        // They have no end.
        Request::Capture { .. } => return Err("it is answered elsewhere".to_owned()),
        Request::Handoff { station } => match core.daemon().attach(*station) {
            Ok(false) => return Err("it is no mobile host (mode \"mobile\")".to_owned()),
            attached => attached.map(|_| Answer::Done {}),
        },
        Request::Reload {} => return core.reload().map(|()| Answer::Done {}),
        Request::Upgrade {} => return Err(core.upgrade()),
    };
    answer.map_err(|error| error.to_string())
}

fn send_packets(exchange: &mut Exchange, handle: &Handle, user: IpAddr) -> io::Result<()> {
    // A gateway that ends does not wait until the client has enough.
    let captures = handle.upgrade().map(|core| core.daemon().capture(user));
    match captures {
        None => write(exchange, &Answer::Error("the gateway is ending".to_owned())),
        Some(Err(error)) => write(exchange, &Answer::Error(error.to_string())),
        Some(Ok((captures, clock))) => {
            write(exchange, &Answer::Done {})?;
            capture::send(exchange, &captures, clock)
        }
    }
}

fn write(exchange: &mut Exchange, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    exchange.write_all(&line)
}

/// Asks the gateway whose control socket is at `path` for its state.
///
/// # Errors
/// If there is none that answers.
pub fn status(path: &Path) -> io::Result<Status> {
    match ask(path, &Request::Status {})? {
        Answer::Status(status) => Ok(*status),
        other => Err(unexpected(&other)),
    }
}

/// Asks it for the connections that it carries.
///
/// # Errors
/// If there is none that answers.
pub fn connections(path: &Path) -> io::Result<Connections> {
    match ask(path, &Request::Connections {})? {
        Answer::Connections(connections) => Ok(connections),
        other => Err(unexpected(&other)),
    }
}

/// Lets new connections pass it unsplit; or, with `undo`, be split again.
///
/// # Errors
/// If there is none that answers.
pub fn drain(path: &Path, undo: bool) -> io::Result<()> {
    done(ask(path, &Request::Drain { undo })?)
}

/// Tells the agent of a mobile host that it is attached to a base station.
///
/// # Errors
/// If there is none that answers, or if it is no such agent.
pub fn handoff(path: &Path, station: IpAddr) -> io::Result<()> {
    done(ask(path, &Request::Handoff { station })?)
}

/// Lets it read its configuration again.
///
/// # Errors
/// If there is none that answers, or if something is wrong with the configuration.
pub fn reload(path: &Path) -> io::Result<()> {
    done(ask(path, &Request::Reload {})?)
}

/// Lets the new version of its program take its place, with all connections, and waits until that answers.
///
/// # Errors
/// If there is none that answers, or if that is not possible: then the old one goes on, unless it says otherwise.
pub fn upgrade(path: &Path) -> io::Result<Status> {
    let before = status(path)?;
    match ask(path, &Request::Upgrade {}) {
        Ok(answer) => return Err(unexpected(&answer)),
        // The executed program has closed it.
        Err(error) if is_closed(&error) => {}
        Err(error) => return Err(error),
    }
    let clock = Clock::start();
    loop {
        match status(path) {
            Ok(after) if after.pid == before.pid => return Ok(after),
            Ok(_) => {
                let message =
                    "the gateway was started anew, and its connections were reset: see its log";
                return Err(io::Error::other(message));
            }
            Err(error) if clock.now() > Time::ZERO + LONGEST_UPGRADE => return Err(error),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Asks it for the packets from and to a user; another capture that is in progress ends.
///
/// # Errors
/// If there is none that answers.
pub fn capture(path: &Path, user: IpAddr) -> io::Result<Capture> {
    let answer = || -> io::Result<(Answer, BufReader<UnixStream>)> {
        let stream = UnixStream::connect(path)?;
        let mut request = serde_json::to_vec(&Request::Capture { user })?;
        request.push(b'\n');
        (&stream).write_all(&request)?;
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line)?;
        Ok((serde_json::from_str(&line)?, stream))
    };
    let (answer, stream) = answer().map_err(|error| silent(path, &error))?;
    done(answer)?;
    Ok(Capture::new(stream))
}

fn done(answer: Answer) -> io::Result<()> {
    match answer {
        Answer::Done {} => Ok(()),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(answer: &Answer) -> io::Error {
    match answer {
        Answer::Error(message) => io::Error::other(message.clone()),
        _ => io::Error::other("it answers something else"),
    }
}

fn ask(path: &Path, request: &Request) -> io::Result<Answer> {
    let answer = || -> io::Result<Answer> {
        let mut exchange = Exchange::new(Box::new(UnixStream::connect(path)?));
        write(&mut exchange, request)?;
        let closed = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let line = exchange.request(LONGEST_ANSWER, has_line)?.ok_or_else(closed)?;
        Ok(serde_json::from_slice(&line)?)
    };
    answer().map_err(|error| silent(path, &error))
}

/// There is no gateway, or it does not answer.
fn silent(path: &Path, error: &io::Error) -> io::Error {
    let shown = path.display();
    io::Error::new(error.kind(), format!("no gateway answers at {shown}: {error}"))
}
