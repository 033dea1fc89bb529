//! Controls that stay after the command ends: their links are pinned in the BPF file system.
//!
//! One pin is all that there is of a control. Before it is made, the control ends with the process, however that
//! ends.

use crate::kernel::{self, State};
use crate::{BPFFS, Control, Error, Loaded};
use libbpf_rs::Link;
use libbpf_rs::MapType;
use libbpf_rs::query::{LinkTypeInfo, MapInfoIter};
use rustix::io::Errno;
use serde::Serialize;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a control's name begins with.
const PREFIX: &str = "lasthop_";

fn folder() -> PathBuf {
    Path::new(BPFFS).join("lasthop")
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied => Error::Forbidden,
        _ => Error::File { path: path.to_owned(), source },
    }
}

/// What was done to load a control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The BPF file system was mounted.
    pub mounted: bool,
    /// The pin of the control.
    pub path: PathBuf,
}

/// Loads a control, which stays until [`unload`] or the next start of the machine. Mounts the BPF file system if it
/// is missing. `per_ack` as for [`Loaded::new`].
///
/// # Errors
/// As [`Loaded::new`], and if the control cannot be pinned.
pub fn load(control: &Control, per_ack: bool) -> Result<Pinned, Error> {
    let name = control.kernel_name();
    let path = folder().join(name);
    if path.try_exists().map_err(failed(&path))? {
        return Err(Error::Loaded(name));
    }
    let mut loaded = Loaded::new(control, per_ack, false)?;
    let mounted = mount()?;
    match fs::create_dir(folder()) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed(&folder())(error));
        }
        _ => {}
    }
    loaded.pin(&path).map_err(|error| failed(&path)(io::Error::other(error.to_string())))?;
    Ok(Pinned { mounted, path })
}

/// Mounts the BPF file system if it is missing, and returns whether it was.
fn mount() -> Result<bool, Error> {
    /// linux/magic.h
    const BPF_FS_MAGIC: u32 = 0xcafe_4a11;
    let failed = |error: Errno| failed(Path::new(BPFFS))(error.into());
    let found = rustix::fs::statfs(BPFFS).map_err(failed)?;
    if found.f_type as u32 == BPF_FS_MAGIC {
        return Ok(false);
    }
    // One that was made for this process alone, as by `ip netns exec`.
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let parent =
        rustix::process::getppid().map(|parent| namespace(&parent.as_raw_pid().to_string()));
    if parent.is_some_and(|parent| parent != namespace("self")) {
        return Err(Error::MountNamespace);
    }
    let flags = rustix::mount::MountFlags::NOSUID
        | rustix::mount::MountFlags::NODEV
        | rustix::mount::MountFlags::NOEXEC;
    rustix::mount::mount("bpf", BPFFS, "bpf", flags, None).map_err(failed)?;
    Ok(true)
}

/// Removes a control that [`load`] has loaded. Connections that use it keep it until they end, and so do network
/// namespaces whose sysctl names it, until that is changed. Returns about how many there are.
///
/// # Errors
/// If it is not loaded, or cannot be removed.
pub fn unload(control: &Control) -> Result<u32, Error> {
    let name = control.kernel_name();
    let path = folder().join(name);
    if !path.try_exists().map_err(failed(&path))? {
        return Err(Error::NotLoaded(name));
    }
    let map = map_of(&path)?;
    fs::remove_file(&path).map_err(failed(&path))?;
    // Others may be there.
    let _ = fs::remove_dir(folder());
    // The kernel does it a little later: it takes the control off its list, and removes it if it has no users.
    let mut users = 0;
    let mut patience = PATIENCE;
    while patience > 0 {
        std::thread::sleep(SLICE);
        patience = if is_available(name) { patience - 1 } else { patience.min(AFTER) - 1 };
        match kernel::state(map) {
            Ok(state) => users = state.users,
            Err(_) => return Ok(0),
        }
    }
    Ok(users)
}

const SLICE: Duration = Duration::from_millis(5);
/// How long an unloaded control may be on the kernel's list, and be there after that without users; slices.
const PATIENCE: u32 = 400;
const AFTER: u32 = 20;

/// Whether connections can choose a control.
fn is_available(name: &str) -> bool {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    available.is_ok_and(|names| names.split_whitespace().any(|one| one == name))
}

/// A control that the kernel has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// Its name in the kernel.
    pub name: String,
    /// Which it is, with its settings.
    #[serde(flatten)]
    pub control: Control,
    /// Whether a window grows once per acknowledgment, instead of per acknowledged segment.
    pub per_ack: bool,
    /// Whether connections can choose it; if not, it was unloaded, and is in use.
    pub loaded: bool,
    /// About how many sockets and sysctls of network namespaces use it.
    pub users: u32,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<13} {}", self.name, self.control)?;
        if self.control != Control::WestwoodPlus {
            f.write_str(if self.per_ack { ", per acknowledgment" } else { ", per segment" })?;
        }
        write!(f, "; users: {}", self.users)?;
        if self.loaded { Ok(()) } else { f.write_str("; unloaded, in use until they end") }
    }
}

/// The controls of this crate that the kernel has, also those that were unloaded and are still in use.
///
/// # Errors
/// If the process may not ask the kernel.
pub fn list() -> Result<Vec<Listed>, Error> {
    kernel::check_rights()?;
    let pinned = |control: &Control| map_of(&folder().join(control.kernel_name())).ok();
    let pinned: Vec<u32> = Control::ALL.iter().filter_map(pinned).collect();
    let mut listed = Vec::new();
    for map in MapInfoIter::default() {
        if map.ty != MapType::StructOps || !map.name.to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // It may have ended since.
        let Ok(State { name, settings, users }) = kernel::state(map.id) else { continue };
        let Some(control) = Control::ALL.iter().find(|one| one.kernel_name() == name) else {
            continue;
        };
        let loaded = pinned.contains(&map.id);
        listed.push(Listed {
            name,
            control: settings.read(control),
            per_ack: settings.is_per_ack(),
            loaded,
            // The pin is one.
            users: users.saturating_sub(loaded.into()),
        });
    }
    Ok(listed)
}

/// The number of the map behind a pin.
fn map_of(path: &Path) -> Result<u32, Error> {
    let problem = |error: libbpf_rs::Error| failed(path)(io::Error::other(error.to_string()));
    kernel::keep_warnings();
    let link = Link::open(path).map_err(problem)?;
    match link.info().map_err(problem)?.info {
        LinkTypeInfo::StructOps(info) => Ok(info.map_id),
        _ => Err(failed(path)(io::Error::other("not a congestion control"))),
    }
}
