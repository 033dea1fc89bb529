//! The program, and how the kernel gets it.

use base::Duration;
use libbpf_rs::query::{LinkInfo, LinkTypeInfo};
use libbpf_rs::{
    AsRawLibbpf as _, ErrorKind, Link, MapCore, MapFlags, MapImpl, MapType, Object, ObjectBuilder,
    ProgramInput, ProgramMut,
};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt as _;
use std::ptr::{self, NonNull};
use std::{fs, io};
use thiserror::Error;

/// Why packets cannot be marked in the kernel.
#[derive(Debug, Error)]
pub enum Error {
    /// The process may not load BPF programs.
    #[error("marking packets in the kernel needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")]
    Forbidden,
    /// The kernel accepts no such program.
    #[error(
        "the kernel refuses to mark packets, which needs Linux 6.6 or newer with CONFIG_BPF_SYSCALL and \
         CONFIG_NET_XGRESS: {0}"
    )]
    Refused(#[source] libbpf_rs::Error),
    /// A running program was not asked.
    #[error("asking the program that marks packets: {0}")]
    Asking(#[source] libbpf_rs::Error),
}

impl Error {
    fn refused(error: libbpf_rs::Error) -> Error {
        match error.kind() {
            ErrorKind::PermissionDenied => Error::Forbidden,
            _ => Error::Refused(error),
        }
    }
}

/// What the program is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most flows; a new one takes the place of one that has been idle for long.
    pub flows: u32,
    /// A flow that has been idle for longer is forgotten. The kernel counts in steps of 1 to 10 ms.
    pub idle: Duration,
    /// The index of the interface of the hop.
    pub interface: u32,
    /// Bytes in front of the IP header of its packets: 14 with Ethernet, 0 without a link layer.
    pub link_header: u32,
}

impl Settings {
    /// As in the memory of the program: `struct settings`.
    fn to_bytes(self, namespace: u64) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.idle.as_nanos().to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.link_header.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.interface.to_ne_bytes());
        bytes[16..].copy_from_slice(&namespace.to_ne_bytes());
        bytes
    }
}

/// What has happened: the beginning of `struct done` of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets whose option was filled in.
    pub marked: u64,
    /// Flows that were unknown: new ones, and those that were forgotten or came by a handoff.
    pub new_flows: u64,
    /// Flows that went on after having been idle too long.
    pub expired_flows: u64,
    /// Packets that were not marked because other CPUs were busy with their flow.
    pub contended: u64,
    /// Of those that were marked, packets that the queue of the interface has refused.
    pub dropped: u64,
}

/// The program in the kernel. It marks packets from [`Marker::attach`] on, until this is dropped.
#[derive(Debug)]
pub struct Marker {
    /// Those to the interface of the hop, and to what tells of dropped packets.
    links: [Option<Link>; 2],
    object: Object,
    interface: u32,
}

/// The names of the programs that run at these links.
const PROGRAMS: [&str; 2] = ["mark", "dropped"];

/// What [`Marker::run`] has done.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// What the program returned: −1, so that the packet goes on.
    pub verdict: i32,
    /// The mean time of a run, as the kernel measures it.
    pub each: Duration,
}

impl Marker {
    /// Loads the program for an interface of the network namespace of the calling thread. It does nothing yet.
    ///
    /// # Errors
    /// If the process lacks rights, or the kernel refuses the program.
    pub fn load(settings: &Settings) -> Result<Marker, Error> {
        // What it would print is in the errors.
        libbpf_rs::set_print(None);
        let object = load(settings, true).or_else(|_| load(settings, false))?;
        Ok(Marker { links: [None, None], object, interface: settings.interface })
    }

    fn program(&mut self, name: &str) -> Result<ProgramMut<'_>, Error> {
        let mut programs = self.object.progs_mut();
        let found = programs.find(|program| program.name() == OsStr::new(name));
        found.ok_or_else(|| Error::Asking(not_there("no program")))
    }

    fn map(&self, kind: MapType) -> Result<MapImpl<'_>, Error> {
        let mut maps = self.object.maps();
        maps.find(|map| map.map_type() == kind).ok_or_else(|| Error::Asking(not_there("no map")))
    }

    /// Marks the packets that leave by the interface. To be called in the network namespace of [`Marker::load`].
    ///
    /// # Errors
    /// If there is no such interface, or the kernel refuses.
    pub fn attach(&mut self) -> Result<(), Error> {
        let [mark, dropped] = PROGRAMS;
        let index =
            i32::try_from(self.interface).map_err(|_| Error::Refused(not_there("no interface")))?;
        let program = self.program(mark)?.as_libbpf_object();
        #[expect(
            unsafe_code,
            reason = "libbpf-rs has no call for tcx: the program is loaded, no options are allowed, and the link that \
                      libbpf returns is owned by what wraps it"
        )]
        let link = unsafe {
            let link = libbpf_rs::libbpf_sys::bpf_program__attach_tcx(
                program.as_ptr(),
                index,
                ptr::null(),
            );
            NonNull::new(link).map(|link| Link::from_ptr(link))
        };
        let link = link.ok_or_else(|| Error::refused(io::Error::last_os_error().into()))?;
        // Without it, what the queue refuses is not known.
        let of_drops = self.program(dropped)?.attach().ok();
        self.links = [Some(link), of_drops];
        Ok(())
    }

    /// Whether the interface by which marked packets leave is there still.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        let info = self.links[0].as_ref().and_then(|link| link.info().ok());
        let is_there = |info: LinkInfo| match info.info {
            LinkTypeInfo::Tcx(tcx) => tcx.ifindex > 0,
            _ => false,
        };
        info.is_some_and(is_there)
    }

    /// Whether the kernel tells of packets that the queue of the interface refuses, so that these count as lost before the
    /// hop. It needs a kernel with BTF.
    #[must_use]
    pub fn sees_drops(&self) -> bool {
        self.links[1].is_some()
    }

    /// What has happened since it was loaded.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn counts(&self) -> Result<Counts, Error> {
        let map = self.map(MapType::PercpuArray)?;
        let of_each =
            map.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(Error::Asking)?;
        let mut all = Counts::default();
        for bytes in of_each.unwrap_or_default() {
            let (numbers, _) = bytes.as_chunks();
            let fields = [
                &mut all.marked,
                &mut all.new_flows,
                &mut all.expired_flows,
                &mut all.contended,
                &mut all.dropped,
            ];
            for (field, number) in fields.into_iter().zip(numbers) {
                *field += u64::from_ne_bytes(*number);
            }
        }
        Ok(all)
    }

    /// The number of flows in the table, also of those that are idle.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn flows(&self) -> Result<usize, Error> {
        const AT_ONCE: u32 = 4096;
        let map = self.map(MapType::LruHash)?;
        let all = map.lookup_batch(AT_ONCE, MapFlags::ANY, MapFlags::ANY);
        Ok(all.map_err(Error::Asking)?.count())
    }

    /// Runs the program on a frame so many times as if it left by an interface, and writes it as it would leave into
    /// `left`, which is as long: for tests and measurements.
    ///
    /// # Errors
    /// If the kernel refuses: a frame has a link-layer header of Ethernet.
    pub fn run(&mut self, frame: &[u8], left: &mut [u8], times: u32) -> Result<Measured, Error> {
        let input = ProgramInput {
            data_in: Some(frame),
            data_out: Some(left),
            repeat: times,
            ..ProgramInput::default()
        };
        let [mark, _] = PROGRAMS;
        let output = self.program(mark)?.test_run(input).map_err(Error::Asking)?;
        let each = Duration::from_nanos(u64::try_from(output.duration.as_nanos()).unwrap_or(0));
        Ok(Measured { verdict: output.return_value as i32, each })
    }
}

/// With the program that is told of dropped packets, or without it.
fn load(settings: &Settings, sees_drops: bool) -> Result<Object, Error> {
    // Where there is none, no interface is in it.
    let namespace = fs::metadata("/proc/thread-self/ns/net").map_or(0, |file| file.ino());
    let program = include_bytes!(concat!(env!("OUT_DIR"), "/spep.o"));
    let mut object = ObjectBuilder::default().open_memory(program).map_err(Error::refused)?;
    for mut map in object.maps_mut() {
        match map.map_type() {
            MapType::LruHash => map.set_max_entries(settings.flows),
            MapType::Array => map.set_initial_value(&settings.to_bytes(namespace)),
            _ => Ok(()),
        }
        .map_err(Error::refused)?;
    }
    for mut program in object.progs_mut() {
        let is_needed = program.name() == OsStr::new(PROGRAMS[0]);
        program.set_autoload(is_needed || sees_drops);
    }
    object.load().map_err(Error::refused)
}

fn not_there(what: &str) -> libbpf_rs::Error {
    io::Error::new(io::ErrorKind::NotFound, what.to_owned()).into()
}
