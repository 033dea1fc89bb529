//! The running gateway.

use crate::connections::{Connection, Connections};
use crate::counted::Counted;
use crate::error::Error;
use crate::esp;
use crate::handover::{Before, Part};
use crate::hop_watch::{self, HopWatch};
use crate::lost::Lost;
use crate::marking::{self, Marking};
use crate::mhp::Courier;
use crate::modes::{self, tcp_within};
use crate::network::{self, Network};
use crate::plane::{Kind, Plane};
use crate::records::Records;
use crate::state_files::StateFiles;
use crate::workers::Workers;
use crate::{Observation, doctor};
use base::Seed;
use base::settings::Bytes;
use host::{FourTuple, Middlebox as _};
use live::inline::{Captures, Counts, Inline, Owners};
use live::netlink::Attachment;
use live::{Clock, Netlink};
use scenario::{Gateway, Mode, Work};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tracing::info;

/// When the gateway ends, each reset is repeated so often, at this interval: it may be lost on the hop.
const REPEATED_RESETS: u32 = 2;
const RESETS_APART: Duration = Duration::from_millis(50);

/// A gateway, which runs until this is dropped.
pub struct Daemon {
    /// None, if packets are marked in the kernel.
    workers: Workers,
    /// Mode `spep` in the kernel.
    marking: Option<Marking>,
    mtu: u16,
    clock: Clock,
    /// Records that were not written.
    unwritten: Arc<AtomicU64>,
    /// How long packets waited for this program to take the place of the one before.
    paused_milliseconds: Option<u64>,
    /// What counts besides the boxes.
    counted: Option<Arc<dyn Counted>>,
    /// Of workers.
    _hop_watch: Option<HopWatch>,
    /// Of a base station.
    _courier: Option<Courier>,
    /// Undone after the devices of workers are gone.
    _network: Option<Network>,
}

impl Daemon {
    /// Starts a gateway in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the system does not let it; nothing is left changed then.
    pub fn start(gateway: &Gateway) -> Result<Daemon, Error> {
        Daemon::start_after(gateway, None, None)
    }

    /// Starts a gateway that goes on with the connections of another version of the program, and with what one that
    /// was killed has left in its files.
    ///
    /// # Errors
    /// As [`Daemon::start`], and if there can be no such files.
    pub(crate) fn start_after(
        gateway: &Gateway,
        before: Option<Before>,
        state: Option<&StateFiles>,
    ) -> Result<Daemon, Error> {
        if before.is_none() {
            doctor::admit(gateway)?;
        }
        if let Some(marking) = marking::start(gateway)? {
            return Ok(Daemon::in_kernel(marking));
        }
        let mtu = largest_mtu(gateway)?;
        let (secret, journal) = match state {
            None => (Seed(getrandom::u64()?), None),
            Some(state) => (state.secret()?, Some(Arc::new(Mutex::new(state.journal()?)))),
        };
        // What a program goes on with has the times of the one before.
        let clock = Clock::of_machine();
        let paused_at = before.as_ref().map(|before| before.paused_at);
        let owners = match &before {
            Some(before) => Owners::new(before.parts.len(), before.key),
            None => Owners::new(gateway.workers, [getrandom::u64()?, getrandom::u64()?]),
        };
        let unwritten = Arc::default();
        let records = records(gateway.records.as_deref(), clock, &unwritten)?;
        let (work, memory) = part_of(&gateway.work, owners.workers());
        let known = before.as_ref().and_then(|before| before.peer);
        let (mut way, mut boundary, mut courier, mut counted) = (None, None, None, None);
        let mut kinds = Vec::new();
        for _ in 0..owners.workers() {
            let parts = modes::parts(gateway, &work, clock.now(), mtu, known)?;
            let mut kind = parts.kind;
            // One of several workers has none of them.
            (way, boundary) = (parts.way, parts.boundary);
            (courier, counted) = (parts.courier, parts.counted);
            // Those of connections alone go on: associations must not get the tokens of earlier ones.
            kind.relays().set_secrets(secret.stream("numbers"));
            kinds.push(kind);
        }
        let (network, left) = match before {
            None => {
                let settings = state.map(|state| state.host_settings.as_path());
                let (network, queues) = Network::set_up(gateway, &owners, settings)?;
                (network, queues.into_iter().map(|tuns| (tuns, Vec::new())).collect())
            }
            Some(Before { parts, .. }) => {
                let take_over = |(part, kind): (Part, &mut Kind)| {
                    kind.take_over(clock.now(), part.connections);
                    (part.tuns, part.pieces)
                };
                let left: Vec<_> = parts.into_iter().zip(&mut kinds).map(take_over).collect();
                (Network::take_over(gateway)?, left)
            }
        };
        let mut workers = Vec::new();
        for (number, (mut kind, (tuns, pieces))) in kinds.into_iter().zip(left).enumerate() {
            let goes_on = kind.relays().connections();
            let random = Seed(getrandom::u64()?).stream("lost");
            let owns = |connection: &FourTuple| owners.of(connection) == number;
            let lost = Lost::new(clock.now(), journal.clone(), random, owns, goes_on);
            let plane = Plane::new(kind, lost, records.clone());
            let lan = match gateway.mode() {
                // What is for the host itself.
                Mode::Mobile => &["lo".to_owned()][..],
                _ => &gateway.lan,
            };
            let inline = Inline::new(plane, tuns, lan, clock)?;
            let inline = match gateway.mode() {
                // Other base stations keep its payloads, too.
                Mode::Station => inline.with_stream(stream()?),
                _ => inline.with_payloads(pieces),
            };
            let inline = inline.with_memory(memory);
            let inline = match boundary.take() {
                Some(boundary) => inline.with_boundary(Box::new(boundary)),
                None => inline,
            };
            workers.push(match way.take() {
                Some(way) => inline.with_underlay(way),
                None => inline,
            });
        }
        // It is that of the workers alone: the last of them removes its file.
        drop(journal);
        let workers = Workers::start(workers, owners)?;
        let courier = match (courier, workers.first()) {
            (Some(start), Some(caller)) => Some(start(caller)?),
            _ => None,
        };
        let hop_watch = watch_hop(gateway, &workers)?;
        let paused_milliseconds =
            paused_at.map(|paused_at| clock.now().since(paused_at).as_nanos() / 1_000_000);
        if let Some(paused_milliseconds) = paused_milliseconds {
            info!(paused_milliseconds, "goes on with the connections of the program before");
        }
        Ok(Daemon {
            workers,
            marking: None,
            mtu,
            clock,
            unwritten,
            paused_milliseconds,
            counted,
            _hop_watch: Some(hop_watch),
            _courier: courier,
            _network: Some(network),
        })
    }

    /// One that looks after what the kernel does.
    fn in_kernel(marking: Marking) -> Daemon {
        Daemon {
            workers: Workers::none(),
            marking: Some(marking),
            mtu: u16::MAX,
            clock: Clock::of_machine(),
            unwritten: Arc::default(),
            paused_milliseconds: None,
            counted: None,
            _hop_watch: None,
            _courier: None,
            _network: None,
        }
    }

    /// Executes a program with the arguments of this one, which goes on with all connections. It returns only if
    /// that is not possible; those whose servers had not answered yet are reset then, and nothing else has changed.
    pub fn hand_over(&self, program: &Path) -> Error {
        let prepare = |now, plane: &mut Plane, _: &Counts| {
            plane.relays().reset_half_open(now);
            plane.flush_records();
        };
        let prepared = self.workers.call_each(prepare);
        match prepared.and_then(|_| self.workers.hand_over(program)) {
            Ok(source) => Error::Execute { program: program.display().to_string(), source },
            Err(error) => error.into(),
        }
    }

    /// Whether it runs. It ends by itself if one of its devices is removed.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.workers.are_running()
    }

    /// The counters of the packets.
    ///
    /// # Errors
    /// If it has ended.
    pub fn counts(&self) -> Result<Counts, Error> {
        let of_each = self.workers.call_each(|_, _, counts| *counts)?;
        Ok(of_each.into_iter().fold(Counts::default(), |all, counts| all + counts))
    }

    /// The counters of its box, by their names.
    ///
    /// # Errors
    /// If it has ended.
    pub fn boxes(&self) -> Result<BTreeMap<&'static str, u64>, Error> {
        Ok(self.observe()?.counters)
    }

    /// All counters and gauges, of one moment.
    ///
    /// # Errors
    /// If it has ended.
    pub fn observe(&self) -> Result<Observation, Error> {
        let mut observed = self.observe_workers()?;
        if let Some(marking) = &self.marking {
            marking.observe(&mut observed)?;
        }
        Ok(observed)
    }

    /// Those of the packets that pass the process.
    ///
    /// # Errors
    /// If it has ended.
    pub(crate) fn observe_workers(&self) -> Result<Observation, Error> {
        let observe = |_, middlebox: &mut Plane, packets: &Counts| {
            let relays = middlebox.relays();
            let (draining, adopted) = (relays.is_draining(), relays.statistics().adopted);
            let lost = middlebox.lost_ends() as u64;
            let mut observed =
                Observation { packets: *packets, draining, ..Observation::default() };
            middlebox.counts(&mut |name, value| {
                observed.counters.insert(name, value);
            });
            middlebox.gauges(&mut |name, value| {
                observed.gauges.insert(name, value);
            });
            observed.counters.insert("connections taken over", adopted);
            observed.gauges.insert("ends_to_be_reset", lost);
            observed
        };
        let of_each = self.workers.call_each(observe)?.into_iter();
        let mut observed = of_each.reduce(Observation::and).unwrap_or_default();
        if let Some(paused) = self.paused_milliseconds {
            observed.gauges.insert("upgrade_pause_milliseconds", paused);
        }
        if let Some(counted) = &self.counted {
            counted.each(&mut |name, value| {
                observed.counters.insert(name, value);
            });
        }
        Ok(Observation { unwritten: self.unwritten.load(Ordering::Relaxed), ..observed })
    }

    /// The connections that it carries.
    ///
    /// # Errors
    /// If it has ended.
    pub fn connections(&self) -> Result<Connections, Error> {
        // Packets need not wait until a large table was looked at.
        const PART: usize = 512;
        let parts = self.workers.call_in_parts(|number, now, plane| {
            let carried = plane.relays().carried(number * PART..(number + 1) * PART)?;
            Some(carried.map(|carried| Connection::new(now, &carried)).collect::<Vec<_>>())
        })?;
        Ok(Connections::new(parts.into_iter().flatten().collect()))
    }

    /// Lets new connections pass unsplit; or, with `false`, splits them again. Those that it carries go on.
    ///
    /// # Errors
    /// If it has ended.
    pub fn drain(&self, draining: bool) -> Result<(), Error> {
        self.workers.call_each(move |_, plane, _| plane.relays().drain(draining))?;
        Ok(())
    }

    /// The mobile host is attached to a base station, whatever its routes say. Returns false if it is no mobile host.
    ///
    /// # Errors
    /// If it has ended, or if base stations know the host by an address of the other version of IP.
    pub fn attach(&self, station: IpAddr) -> Result<bool, Error> {
        let attach = move |now, plane: &mut Plane, _: &_| {
            plane.agent().map(|agent| agent.attach(now, station))
        };
        match self.workers.call_each(attach)?.into_iter().flatten().next() {
            Some(false) => Err(Error::Version(station)),
            attached => Ok(attached.is_some()),
        }
    }

    /// Copies of the packets from and to a user, and the clock of their times; a capture before
    /// this one ends.
    ///
    /// # Errors
    /// If it has ended.
    pub fn capture(&self, user: IpAddr) -> Result<(Captures, Clock), Error> {
        if self.marking.is_some() {
            return Err(Error::InKernel);
        }
        Ok((self.workers.capture(user, self.clock)?, self.clock))
    }

    /// Sets what may be set while it runs: how new connections are split, the rate if it is given, and the file of
    /// the records, which is opened again.
    ///
    /// # Errors
    /// If the file cannot be opened, and nothing has changed then; or if it has ended.
    pub fn set(&self, gateway: &Gateway) -> Result<(), Error> {
        let records = records(gateway.records.as_deref(), self.clock, &self.unwritten)?;
        let (work, memory) = part_of(&gateway.work, gateway.workers);
        let tcp = tcp_within(gateway, self.mtu);
        self.workers.set_memory(memory)?;
        self.workers.call_each(move |_, plane, _| {
            plane.set(&work, &tcp);
            plane.record(records);
        })?;
        Ok(())
    }

    /// Ends it. Connections that it carries are reset, for which it takes a tenth of a second.
    pub fn stop(self) {
        // It fails if a thread has ended; then nothing can be sent.
        let carried = self.workers.call_each(|now, plane, _| plane.reset_all(now));
        if carried.is_ok_and(|parts| parts.contains(&true)) {
            for _ in 0..REPEATED_RESETS {
                thread::sleep(RESETS_APART);
                let _ = self.workers.call_each(|_, plane, _| plane.repeat_resets());
            }
        }
        self.workers.stop();
    }
}

/// Tells workers what becomes of the hop.
fn watch_hop(gateway: &Gateway, workers: &Workers) -> Result<HopWatch, Error> {
    let watch = match (gateway.mode(), workers.first()) {
        (Mode::Mobile, Some(caller)) => {
            let attach = move |hop: &Attachment| {
                let (is_usable, routers) = (hop.is_usable(), hop.routers.map(Option::flatten));
                // One that has ended need not know.
                let _ = caller.call(move |now, plane, _| match plane.agent() {
                    Some(agent) if is_usable => agent.on_routers(now, routers),
                    Some(agent) => agent.on_down(now),
                    None => {}
                });
            };
            attach(&Netlink::open()?.attachment(&gateway.wan));
            // Each router is another base station.
            HopWatch::start(&gateway.wan, Duration::ZERO, attach)
        }
        (Mode::Notify, Some(caller)) => {
            let (netlink, of) = (Netlink::open()?, gateway.clone());
            HopWatch::start(&gateway.wan, hop_watch::SETTLING, move |_| {
                let own = network::notifying(&netlink, &of);
                // One that has ended need not know.
                let _ = caller.call(move |_, plane, _| plane.set_addresses(own));
            })
        }
        _ => {
            let tell = workers.hop_bell();
            let tell = move |hop: &Attachment| {
                if hop.is_usable() {
                    tell();
                }
            };
            HopWatch::start(&gateway.wan, hop_watch::SETTLING, tell)
        }
    };
    Ok(watch?)
}

/// A stream for the payloads of this process, which none of other base stations is likely to have, nor a box.
fn stream() -> Result<u32, Error> {
    Ok(getrandom::u32()? >> 2 | 1 << 30)
}

/// The records, if there are to be any.
fn records(
    path: Option<&Path>,
    clock: Clock,
    unwritten: &Arc<AtomicU64>,
) -> Result<Option<Records>, Error> {
    let open = |path: &Path| {
        let opened = Records::open(path, clock, Arc::clone(unwritten));
        opened.map_err(|source| Error::Records { path: path.display().to_string(), source })
    };
    path.map(open).transpose()
}

/// The largest packet of any interface, bytes; before it is under ESP, if it is.
fn largest_mtu(gateway: &Gateway) -> Result<u16, Error> {
    let netlink = Netlink::open()?;
    let mut largest = 0;
    for interface in gateway.lan.iter().chain([&gateway.wan]) {
        largest = netlink.mtu(interface)?.max(largest);
    }
    let largest = u16::try_from(largest).unwrap_or(u16::MAX);
    Ok(esp::mtu_within(gateway)?.map_or(largest, |mtu| mtu.min(largest)))
}

/// The work of one of so many workers: each has an equal part of what users may take, and of a quarter of the machine's
/// memory if nothing is said of memory. And how much that is, bytes.
fn part_of(work: &Work, workers: usize) -> (Work, u64) {
    let machine = rustix::system::sysinfo();
    let of_machine = (machine.totalram as u64).saturating_mul(machine.mem_unit.into());
    let (workers, mut work) = (workers as u32, work.clone());
    let (connections, of_user, memory) = match &mut work {
        Work::Spoof(spoofer) => {
            (&mut spoofer.connections, &mut spoofer.connections_per_user, &mut spoofer.memory)
        }
        Work::Pair(pair, _) => {
            (&mut pair.connections, &mut pair.connections_per_user, &mut pair.memory)
        }
        // One thread does it.
        Work::Station(..) | Work::Mobile(..) | Work::Spep(..) | Work::Notify(_) => {
            return (work, of_machine / 4);
        }
    };
    *connections = connections.div_ceil(workers);
    *of_user = of_user.map(|most| most.div_ceil(workers));
    let Bytes(bytes) = memory.unwrap_or(Bytes(of_machine / 4));
    let part = bytes.div_ceil(workers.into());
    *memory = Some(Bytes(part));
    (work, part)
}
