//! The control socket. A request is one line of JSON, such as `{"command":"status"}`, and so is the answer:
//! `{"status":{...}}` or `{"error":"..."}`. Each connection carries one of both.

use crate::serving::{Exchange, Server};
use crate::{Observe, Status};
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Where the socket is, unless it is said otherwise.
pub const SOCKET: &str = "/run/lasthop/lasthopd.sock";

/// The longest request, bytes.
const LONGEST_REQUEST: usize = 4096;
/// The longest answer, bytes.
const LONGEST_ANSWER: usize = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    // With braces: serde lets unknown keys pass beside a name alone.
    Status {},
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Status(Box<Status>),
    Error(String),
}

/// A control socket, which is removed when this is dropped.
pub struct Control {
    path: PathBuf,
    /// The socket's device and inode.
    identity: (u64, u64),
    _server: Server,
}

impl Control {
    /// Listens at `path`, where only the owner may connect.
    ///
    /// # Errors
    /// If another process listens there, or the system refuses.
    pub fn listen(path: &Path, observe: Observe) -> io::Result<Control> {
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process answers there"));
        }
        if let Some(folder) = path.parent()
            && !folder.as_os_str().is_empty()
        {
            std::fs::create_dir_all(folder)?;
        }
        // No client finds the socket before its mode is set. What a process that was killed has left is replaced.
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(format!(".{}", std::process::id()));
        let fresh = PathBuf::from(fresh);
        let listener = UnixListener::bind(&fresh)?;
        let placed = std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600))
            .and_then(|()| std::fs::rename(&fresh, path));
        if let Err(error) = placed {
            let _ = std::fs::remove_file(&fresh);
            return Err(error);
        }
        let identity = identity(path)?;
        let server =
            Server::start("control", listener, move |exchange| answer(exchange, &observe))?;
        Ok(Control { path: path.to_owned(), identity, _server: server })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Another process may have replaced it.
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

fn has_line(bytes: &[u8]) -> bool {
    bytes.contains(&b'\n')
}

fn answer(exchange: &mut Exchange, observe: &Observe) -> io::Result<()> {
    let Some(request) = exchange.request(LONGEST_REQUEST, has_line)? else {
        let message = format!("expected one line of at most {LONGEST_REQUEST} bytes");
        return write(exchange, &Answer::Error(message));
    };
    let answer = match serde_json::from_slice(&request) {
        Ok(Request::Status {}) => match observe() {
            Ok((status, _)) => Answer::Status(Box::new(status)),
            Err(error) => Answer::Error(error.to_string()),
        },
        Err(error) => Answer::Error(format!("not a request: {error}")),
    };
    write(exchange, &answer)
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
    let mut exchange = Exchange::new(Box::new(UnixStream::connect(path)?));
    write(&mut exchange, &Request::Status {})?;
    let closed = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let line = exchange.request(LONGEST_ANSWER, has_line)?.ok_or_else(closed)?;
    match serde_json::from_slice(&line)? {
        Answer::Status(status) => Ok(*status),
        Answer::Error(message) => Err(io::Error::other(message)),
    }
}
