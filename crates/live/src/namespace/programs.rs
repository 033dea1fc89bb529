//! Programs in a namespace.

use super::Namespace;
use crate::error::Doing;
use crate::{Clock, Error};
use base::{Duration, Time};
use rustix::fs::Stat;
use rustix::mount::MountPropagationFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{Gid, Uid, UnshareFlags, set_thread_gid, set_thread_groups, set_thread_uid};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program to be started.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Its name or path, and its arguments.
    pub words: Vec<OsString>,
    /// The whole of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Whose process it is; that of the calling process if absent.
    pub user: Option<User>,
    /// What it reads at /etc/resolv.conf, in a mount namespace of its own.
    pub resolver: Option<PathBuf>,
    /// It reads nothing, and writes to the standard error of the calling process alone.
    pub background: bool,
}

/// A user, by numbers.
#[derive(Clone, Debug)]
pub struct User {
    /// The user.
    pub user: u32,
    /// The user's first group.
    pub group: u32,
    /// All groups.
    pub groups: Vec<u32>,
}

/// The file with the addresses of name servers.
const RESOLVER: &str = "/etc/resolv.conf";

/// The time between two looks whether programs have ended.
const SLICE: std::time::Duration = std::time::Duration::from_millis(10);

impl Namespace {
    /// Starts a program in this namespace, as a child of the calling process, which waits for it. Returns its
    /// process id.
    ///
    /// # Errors
    /// If there is no such program, or the process may not start it.
    pub fn start(&self, launch: &Launch) -> Result<u32, Error> {
        // A child is in the namespaces of the thread that starts it.
        self.run(|| {
            if let Some(resolver) = &launch.resolver {
                replace_resolver(resolver).doing(|| format!("replacing {RESOLVER}"))?;
            }
            let child = command(launch).and_then(|mut command| command.spawn());
            let name = launch.words.first().map(|word| word.to_string_lossy().into_owned());
            Ok(child.doing(|| format!("starting {}", name.unwrap_or_default()))?.id())
        })?
    }

    /// Ends all other processes that are in this namespace: those that `patience` is not enough for are killed.
    pub fn end_processes(&self, patience: Duration) {
        // Shells leave SIGTERM alone, and a process that is stopped acts on neither.
        let obey = self.signal(&[Signal::TERM, Signal::HUP, Signal::CONT], patience);
        if !obey {
            self.signal(&[Signal::KILL], Duration::from_secs(1));
        }
    }

    /// Sends signals to all other processes that are in this namespace, and says whether they have ended in time.
    fn signal(&self, signals: &[Signal], patience: Duration) -> bool {
        let clock = Clock::start();
        let mut processes = self.processes();
        for process in &processes {
            for signal in signals {
                // It may have ended meanwhile.
                let _ = kill_process(*process, *signal);
            }
        }
        while !processes.is_empty() && clock.now() < Time::ZERO + patience {
            std::thread::sleep(SLICE);
            processes = self.processes();
        }
        processes.is_empty()
    }

    /// The other processes whose first thread is in this namespace.
    fn processes(&self) -> Vec<Pid> {
        let Ok(own) = rustix::fs::fstat(&self.file) else { return Vec::new() };
        let is_own = |stat: Stat| (stat.st_dev, stat.st_ino) == (own.st_dev, own.st_ino);
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let others = ids.filter(|id| u32::try_from(*id) != Ok(std::process::id()));
        let inside = others.filter(|id| {
            // Of a process that has ended, there is none.
            rustix::fs::stat(format!("/proc/{id}/ns/net")).is_ok_and(is_own)
        });
        inside.filter_map(Pid::from_raw).collect()
    }
}

/// Lets the calling thread, and what it starts, read another file at the place of the resolver's.
fn replace_resolver(file: &std::path::Path) -> rustix::io::Result<()> {
    // SAFETY: what must not be unshared is the table of file descriptors, and it is not.
    #[expect(unsafe_code, reason = "the safe function is deprecated: see above")]
    unsafe {
        rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)?;
    }
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", flags)?;
    rustix::mount::mount_bind(file, RESOLVER)
}

fn command(launch: &Launch) -> io::Result<Command> {
    let (name, arguments) = launch.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(name);
    command.args(arguments).env_clear();
    command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
    if launch.background {
        let stderr = || Ok::<_, io::Error>(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
        command.stdin(Stdio::null()).stdout(stderr()?).stderr(stderr()?);
    }
    if let Some(User { user, group, groups }) = &launch.user {
        let [user, group] = [*user, *group];
        let groups: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
        let change = move || {
            set_thread_groups(&groups)?;
            set_thread_gid(Gid::from_raw(group))?;
            Ok(set_thread_uid(Uid::from_raw(user))?)
        };
        // SAFETY: the child makes three system calls, and allocates nothing.
        #[expect(
            unsafe_code,
            reason = "the child has one thread, which changes its user: see above"
        )]
        unsafe {
            command.pre_exec(change);
        }
    }
    Ok(command)
}
