//! Network namespaces that this process creates and removes.

mod programs;

pub use programs::{Launch, User};

use crate::Error;
use crate::error::Doing;
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

/// Where iproute2 looks for namespaces.
const DIRECTORY: &str = "/run/netns";

/// The prefix of our namespaces' names; the process id follows.
const PREFIX: &str = "lasthop";

/// A network namespace called `lasthop-<pid>-<what>`, to which `ip netns exec` has access as well.
/// Dropping it removes it, once no thread is in it and no socket of it is open.
///
/// Where this process may not write the directory of names, as in a user namespace of its own, other programs do not
/// know the name, and the namespace ends with the process at the latest.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: File,
    is_listed: bool,
}

impl Namespace {
    /// A new namespace, with only a loopback device that is down.
    ///
    /// # Errors
    /// If `what` is not valid in a name, the name is taken, or the process may not create
    /// namespaces (CAP_SYS_ADMIN).
    pub fn create(what: &str) -> Result<Namespace, Error> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if what.is_empty() || !what.chars().all(fits) {
            return Err(Error::Name(what.to_owned()));
        }
        let name = format!("{PREFIX}-{}-{what}", std::process::id());
        let path = reserve(&name)?;
        // A namespace is made by a thread that goes there, and lives on by its bind mount or descriptor.
        let made = thread::scope(|scope| scope.spawn(|| make(path.as_deref())).join());
        let made = made.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match made {
            Ok(file) => Ok(Namespace { name, file, is_listed: path.is_some() }),
            Err(error) => {
                let _ = path.map(|path| remove_path(&path));
                Err(error).doing(|| format!("making network namespace {name}"))
            }
        }
    }

    /// The namespace of [`list`] with this name.
    ///
    /// # Errors
    /// If there is none.
    fn open(name: &str) -> Result<Namespace, Error> {
        let path = Path::new(DIRECTORY).join(name);
        let file = File::open(&path).doing(|| format!("opening {}", path.display()))?;
        // Its name is another's.
        Ok(Namespace { name: name.to_owned(), file, is_listed: false })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Calls `f` on a thread in this namespace and returns its result. Sockets and devices that it
    /// opens belong to the namespace wherever they are used later.
    ///
    /// # Errors
    /// If the process may not enter namespaces.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let inside = || self.enter().map(|()| f());
        thread::scope(|scope| scope.spawn(inside).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Starts a thread that runs `f` in this namespace; its result is an error if the process may
    /// not enter namespaces.
    ///
    /// # Errors
    /// If there can be no such thread.
    pub fn spawn<T: Send + 'static>(
        &self,
        thread: &str,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<Result<T, Error>>, Error> {
        // A descriptor of its own: the namespace may be dropped before the thread has entered it.
        let file = self.file.try_clone().doing(|| format!("entering {}", self.name))?;
        let name = self.name.clone();
        let inside = move || {
            enter(&file, &name)?;
            drop(file);
            Ok(f())
        };
        let builder = thread::Builder::new().name(thread.to_owned());
        builder.spawn(inside).doing(|| format!("starting thread {thread}"))
    }

    /// A descriptor of it.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn enter(&self) -> Result<(), Error> {
        enter(&self.file, &self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.is_listed {
            // A failure cannot be reported here; `list` finds the remains.
            let _ = remove(&self.name);
        }
    }
}

/// An existing namespace of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Whether the process that created it, or another with the same id, is running.
    pub in_use: bool,
}

/// The namespaces of this and other processes of ours, by name.
///
/// # Errors
/// If they cannot be listed.
pub fn list() -> Result<Vec<Listed>, Error> {
    let entries = match fs::read_dir(DIRECTORY) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.doing(|| format!("listing {DIRECTORY}"))?,
    };
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry.doing(|| format!("listing {DIRECTORY}"))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Some(process) = process(&name) else { continue };
        let in_use = Path::new("/proc").join(process.to_string()).exists();
        listed.push(Listed { name, in_use });
    }
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listed)
}

/// Removes a namespace from [`list`]. Threads and sockets that are still in it keep it alive
/// without a name.
///
/// # Errors
/// If it is none of ours, or cannot be removed.
pub fn remove(name: &str) -> Result<(), Error> {
    if process(name).is_none() || name.contains('/') {
        return Err(Error::Name(name.to_owned()));
    }
    let path = Path::new(DIRECTORY).join(name);
    remove_path(&path).doing(|| format!("removing network namespace {name}"))
}

/// Ends the programs in a namespace from [`list`], and removes it.
///
/// # Errors
/// As [`remove`].
pub fn clear(name: &str, patience: base::Duration) -> Result<(), Error> {
    if process(name).is_some()
        && !name.contains('/')
        && let Ok(namespace) = Namespace::open(name)
    {
        namespace.end_processes(patience);
    }
    remove(name)
}

/// Makes the file of a namespace's name; `None` if this process may not.
fn reserve(name: &str) -> Result<Option<PathBuf>, Error> {
    let path = Path::new(DIRECTORY).join(name);
    let prepared = prepare_directory().doing(|| format!("preparing {DIRECTORY}"));
    let action = || format!("creating {}", path.display());
    match prepared.and_then(|()| File::create_new(&path).doing(action)) {
        Ok(_) => Ok(Some(path)),
        Err(Error::System { source, .. }) if is_denied(source.kind()) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_denied(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// The process id in a name of ours.
pub(crate) fn process(name: &str) -> Option<u32> {
    let (process, what) = name.strip_prefix(PREFIX)?.strip_prefix('-')?.split_once('-')?;
    if what.is_empty() { None } else { process.parse().ok() }
}

/// As iproute2 has it: a mount point of its own whose mounts and unmounts are seen by processes
/// with other mount namespaces, too. Otherwise those would keep a namespace that is removed here.
fn prepare_directory() -> rustix::io::Result<()> {
    match fs::create_dir_all(DIRECTORY) {
        Ok(()) => {}
        Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
    let share = || {
        let flags = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
        rustix::mount::mount_change(DIRECTORY, flags)
    };
    match share() {
        // It is no mount point yet.
        Err(Errno::INVAL) => {
            rustix::mount::mount_bind_recursive(DIRECTORY, DIRECTORY)?;
            share()
        }
        done => done,
    }
}

/// Makes a namespace of the calling thread's, and mounts it if it has a path.
fn make(path: Option<&Path>) -> rustix::io::Result<File> {
    const OURS: &str = "/proc/thread-self/ns/net";
    // SAFETY: what must not be unshared is the table of file descriptors, and it is not.
    #[expect(unsafe_code, reason = "the safe function is deprecated: see above")]
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)?;
    }
    if let Some(path) = path {
        rustix::mount::mount_bind(OURS, path)?;
    }
    let file = File::open(path.unwrap_or(Path::new(OURS)));
    file.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn enter(file: &File, name: &str) -> Result<(), Error> {
    rustix::thread::move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .doing(|| format!("entering {name}"))
}

fn remove_path(path: &Path) -> rustix::io::Result<()> {
    match rustix::mount::unmount(path, UnmountFlags::DETACH) {
        // A file on which nothing is mounted is what an interrupted `create` leaves.
        Ok(()) | Err(Errno::INVAL) => rustix::fs::unlink(path),
        failed => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_the_process() {
        assert_eq!(process("lasthop-12-sender"), Some(12));
        assert_eq!(process("lasthop-12-base-station"), Some(12));
        for other in
            ["lasthop", "lasthop-12", "lasthop-12-", "lasthop-x-y", "mine", "nolasthop-1-a"]
        {
            assert_eq!(process(other), None, "{other}");
        }
    }

    #[test]
    fn nothing_is_removed_that_is_not_ours() {
        for name in ["vpn", "lasthop-1-../vpn", "../../etc/passwd"] {
            assert!(matches!(remove(name), Err(Error::Name(_))), "{name}");
        }
    }

    #[test]
    fn a_name_is_no_path() {
        for what in ["", "a/b", "..\0", "a b"] {
            assert!(matches!(Namespace::create(what), Err(Error::Name(_))), "{what:?}");
        }
    }
}
