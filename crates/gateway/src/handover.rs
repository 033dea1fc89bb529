//! A gateway that another version of its program goes on with. The process executes that program, which inherits
//! the two devices and a file in memory with the state of all connections; meanwhile, packets wait in the devices.

use crate::network::DEVICES;
use crate::plane::Plane;
use base::Time;
use live::Tun;
use live::inherit::{inherited, pass_on};
use live::inline::{Moment, Running};
use relay::{Handover, RelaySnapshot};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use thiserror::Error;

/// The variable in which the new program finds the numbers of the descriptors: for each worker, that of the file, and
/// for the devices of LAN and WAN those of its queue and of the queues of SYNs and of RSTs, or -1 where there is none.
pub const VARIABLE: &str = "LASTHOPD_HANDOVER";

/// In the place of a queue of SYNs or RSTs that there is not.
const NONE: RawFd = -1;

/// The command that prints [`format`].
pub(crate) const QUESTION: &str = "handover-format";

/// The form of a handover. Programs whose forms differ cannot take each other's place.
#[must_use]
pub fn format() -> String {
    let (tcp, srp) = (tcp::Snapshot::VERSION, srp::Snapshot::VERSION);
    format!("5-{}-{tcp}-{srp}", RelaySnapshot::VERSION)
}

/// Why there is nothing to go on with.
#[derive(Debug, Error)]
pub enum HandoverError {
    /// The variable has been set by someone else.
    #[error("{VARIABLE} is {0:?}, expected the numbers of seven descriptors for each worker")]
    Variable(String),
    /// A descriptor is not open.
    #[error("descriptor {0} of {VARIABLE}: {1}")]
    Descriptor(RawFd, io::Error),
    /// The file is not that of a gateway.
    #[error("the state of the gateway before this one: {0}")]
    State(io::Error),
    /// It has another form.
    #[error(
        "the state of the gateway before this one has the form {found:?}, expected {expected:?}"
    )]
    Format {
        /// The form of the state.
        found: String,
        /// The one that this program reads.
        expected: String,
    },
    /// A device is not that of a gateway.
    #[error(transparent)]
    Device(#[from] live::Error),
}

/// What the program before this one has left.
pub struct Before {
    /// Since when packets wait.
    pub(crate) paused_at: Time,
    /// The key by which workers own connections.
    pub(crate) key: [u64; 2],
    /// By worker. There is at least one.
    pub(crate) parts: Vec<Part>,
    /// Where the other gateway of a pair was.
    pub(crate) peer: Option<SocketAddr>,
}

/// What a worker has left.
pub(crate) struct Part {
    pub(crate) connections: Handover,
    pub(crate) pieces: Pieces,
    pub(crate) tuns: [Tun; 2],
}

/// The state of a worker. The bytes of the pieces follow it in the file.
#[derive(Serialize, Deserialize)]
struct State {
    paused_at: Time,
    key: [u64; 2],
    connections: Handover,
    /// Places and lengths.
    pieces: Vec<(u64, u32)>,
    peer: Option<SocketAddr>,
}

impl Before {
    /// Takes over what the environment names, in the network namespace of the calling thread; `None` if it names
    /// nothing. To be called once, before the process opens anything.
    ///
    /// # Errors
    /// If it cannot be taken over.
    pub fn from_environment() -> Result<Option<Before>, HandoverError> {
        let Some(value) = std::env::var_os(VARIABLE) else { return Ok(None) };
        let value = value.to_string_lossy().into_owned();
        let numbers: Option<Vec<RawFd>> = value.split(',').map(|part| part.parse().ok()).collect();
        let workers = numbers.as_deref().map(<[RawFd]>::as_chunks::<7>);
        let Some((workers @ [_, ..], [])) = workers else {
            return Err(HandoverError::Variable(value));
        };
        let open = |number: RawFd| {
            inherited(number).map_err(|error| HandoverError::Descriptor(number, error.into()))
        };
        let device = |[own, syns, rsts]: [RawFd; 3], name| -> Result<Tun, HandoverError> {
            let control = match syns {
                NONE => None,
                _ => Some([open(syns)?, open(rsts)?]),
            };
            Ok(Tun::inherit(open(own)?, control, name)?)
        };
        let mut before = None;
        for &[file, lan, lan_syns, lan_rsts, wan, wan_syns, wan_rsts] in workers {
            let file = open(file)?;
            let lan = device([lan, lan_syns, lan_rsts], DEVICES[0])?;
            let tuns = [lan, device([wan, wan_syns, wan_rsts], DEVICES[1])?];
            let (state, pieces) = read(file.into())?;
            let State { paused_at, key, connections, peer, .. } = state;
            let before = before.get_or_insert(Before { paused_at, key, parts: Vec::new(), peer });
            before.parts.push(Part { connections, pieces, tuns });
        }
        Ok(before)
    }
}

/// Bytes of payloads, with their places.
pub(crate) type Pieces = Vec<(u64, Box<[u8]>)>;

fn read(mut file: File) -> Result<(State, Pieces), HandoverError> {
    file.rewind().map_err(HandoverError::State)?;
    let mut file = BufReader::with_capacity(1 << 18, file);
    let found = read_part(&mut file).map_err(HandoverError::State)?;
    let (found, expected) = (String::from_utf8_lossy(&found).into_owned(), format());
    if found != expected {
        return Err(HandoverError::Format { found, expected });
    }
    read_state(&mut file).map_err(HandoverError::State)
}

fn read_state(file: &mut impl Read) -> io::Result<(State, Pieces)> {
    let state: State = rmp_serde::from_slice(&read_part(file)?).map_err(io::Error::other)?;
    let piece = |&(place, len): &(u64, u32)| {
        let mut bytes = vec![0; len as usize].into_boxed_slice();
        file.read_exact(&mut bytes).map(|()| (place, bytes))
    };
    let pieces = state.pieces.iter().map(piece).collect::<io::Result<Pieces>>()?;
    Ok((state, pieces))
}

/// Reads bytes whose number is in front of them.
fn read_part(file: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut len = [0; 8];
    file.read_exact(&mut len)?;
    let mut part = Vec::new();
    let len = u64::from_be_bytes(len);
    match file.take(len).read_to_end(&mut part)? as u64 == len {
        true => Ok(part),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn write_part(file: &mut impl Write, part: &[u8]) -> io::Result<()> {
    file.write_all(&(part.len() as u64).to_be_bytes())?;
    file.write_all(part)
}

/// Executes a program, with the arguments of this one, that goes on with all connections of these workers, whose
/// connections are shared out by this key. It returns only if that is not possible; nothing has changed then.
///
/// # Errors
/// If a worker has ended.
pub(crate) fn execute(
    workers: &[Running<Plane>],
    key: [u64; 2],
    program: &Path,
) -> Result<io::Error, live::Error> {
    std::thread::scope(|scope| {
        let (sender, left) = mpsc::channel();
        // Packets wait until another program runs, or this one goes on: when these are dropped.
        let mut paused = Vec::new();
        for (number, worker) in workers.iter().enumerate() {
            let (go_on, pause) = mpsc::channel::<()>();
            paused.push(go_on);
            let sender = sender.clone();
            scope.spawn(move || {
                worker.pause(move |mut moment| {
                    let _ = sender.send((number, leave(&mut moment, key)));
                    drop(sender);
                    let _ = pause.recv();
                    // It can only fail if a descriptor is closed, and they are not.
                    let _ = pass_on_all(moment.tuns(), false);
                })
            });
        }
        drop(sender);
        let mut left: Vec<_> = left.iter().collect();
        if left.len() < workers.len() {
            return Err(live::Error::Stopped);
        }
        left.sort_unstable_by_key(|(number, _)| *number);
        let left: io::Result<Vec<_>> = left.into_iter().map(|(_, part)| part).collect();
        Ok(left.and_then(|left| execute_with(&left, program)).unwrap_or_else(|error| error))
    })
}

/// The numbers of the queues of a worker's devices.
type Queues = [[RawFd; 3]; 2];

/// The file with the state of a worker, and the numbers of its queues, which the next program inherits.
fn leave(moment: &mut Moment<'_, Plane>, key: [u64; 2]) -> io::Result<(File, Queues)> {
    let connections = moment.middlebox.hand_over(moment.now);
    let pieces = moment.payloads();
    let state = State {
        paused_at: moment.now,
        key,
        connections,
        pieces: pieces.iter().map(|(place, bytes)| (*place, bytes.len() as u32)).collect(),
        peer: moment.peer,
    };
    Ok((write(&state, &pieces)?, pass_on_all(moment.tuns(), true)?))
}

fn pass_on_all(tuns: [&Tun; 2], passes: bool) -> io::Result<Queues> {
    let queues = |tun: &Tun| {
        let [syns, rsts] = match tun.control_queues() {
            Some([syns, rsts]) => [pass_on(syns, passes)?, pass_on(rsts, passes)?],
            None => [NONE; 2],
        };
        io::Result::Ok([pass_on(tun, passes)?, syns, rsts])
    };
    let [lan, wan] = tuns;
    Ok([queues(lan)?, queues(wan)?])
}

fn execute_with(left: &[(File, Queues)], program: &Path) -> io::Result<io::Error> {
    let mut numbers = Vec::new();
    for (file, queues) in left {
        let of_worker = [pass_on(file, true)?].into_iter().chain(queues.iter().copied().flatten());
        numbers.extend(of_worker.map(|number| number.to_string()));
    }
    let mut arguments = std::env::args_os();
    let mut command = Command::new(program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    // If it fails, the files are closed.
    Ok(command.args(arguments).env(VARIABLE, numbers.join(",")).exec())
}

fn write(state: &State, pieces: &[(u64, &[u8])]) -> io::Result<File> {
    let file = File::from(memfd_create("lasthopd", MemfdFlags::CLOEXEC)?);
    let mut writer = BufWriter::with_capacity(1 << 18, file);
    write_part(&mut writer, format().as_bytes())?;
    write_part(&mut writer, &rmp_serde::to_vec_named(state).map_err(io::Error::other)?)?;
    pieces.iter().try_for_each(|(_, bytes)| writer.write_all(bytes))?;
    writer.into_inner().map_err(|error| error.into_error())
}
