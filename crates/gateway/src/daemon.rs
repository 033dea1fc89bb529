//! The running gateway.

use crate::connections::{Connection, Connections};
use crate::control::make_folder_of;
use crate::handover::{self, Before};
use crate::journal::Journal;
use crate::lost::Lost;
use crate::network::Network;
use crate::peer::{self, Mtu, PeerError, Way};
use crate::plane::{Kind, Plane};
use crate::records::Records;
use crate::{Observation, doctor, secret};
use base::Seed;
use base::settings::Bytes;
use host::Middlebox as _;
use live::inline::{Captures, Counts, Inline, Running, Side};
use live::{Clock, Netlink};
use middlebox::{Contents, Gateway as PairGateway, Neighbour, Pair, Site, Splitter, Spoofer};
use scenario::{Gateway, Peer, Work};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tcp::Config;
use thiserror::Error;
use tracing::info;

/// Why a gateway cannot run.
#[derive(Debug, Error)]
pub enum Error {
    /// The system has refused something.
    #[error(transparent)]
    Live(#[from] live::Error),
    /// There is no way to the other gateway.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The machine is not ready.
    #[error(transparent)]
    Unfit(#[from] doctor::Unfit),
    /// The address or the path cannot be listened at.
    #[error("listening at {place}: {source}")]
    Listening {
        /// The path or the address.
        place: String,
        /// The cause.
        source: io::Error,
    },
    /// The file of the records cannot be written.
    #[error("writing records to {path}: {source}")]
    Records {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A file for the next gateway cannot be used.
    #[error("{path}: {source}")]
    State {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// Another program cannot take the place of this one.
    #[error("executing {program}: {source}")]
    Execute {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// Signals cannot be caught.
    #[error("catching signals: {0}")]
    Signals(#[source] io::Error),
    /// One of its devices is gone.
    #[error("a device of the gateway was removed")]
    Removed,
    /// There is no randomness for secrets.
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// A gateway, which runs until this is dropped.
pub struct Daemon {
    plane: Running<Plane>,
    mtu: u16,
    clock: Clock,
    /// Records that were not written.
    unwritten: Arc<AtomicU64>,
    /// Undone after the devices are gone.
    _network: Network,
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
        let mtu = largest_mtu(gateway)?;
        let seed = Seed(getrandom::u64()?);
        let (secret, journal) = match state {
            None => (seed, None),
            Some(state) => (state.secret()?, Some(state.journal()?)),
        };
        // What a program goes on with has the times of the one before.
        let clock = Clock::of_machine();
        let paused_at = before.as_ref().map(|before| before.paused_at);
        let mut way = None;
        let unwritten = Arc::default();
        let records = records(gateway.records.as_deref(), clock, &unwritten)?;
        let (work, memory) = with_memory(&gateway.work);
        let mut kind = match &work {
            Work::Spoof(spoofer) => Kind::Spoof(splitter(gateway, spoofer, mtu, seed)),
            Work::Pair(pair, peer) => {
                let known = before.as_ref().and_then(|before| before.peer);
                let hop = match peer.mtu {
                    Some(mtu) => Mtu::Known(mtu),
                    None => Mtu::AtMost(Netlink::open()?.mtu(&gateway.wan)?),
                };
                let opened = Way::open(clock.now(), peer, (known, hop))?;
                let pair = Pair { mtu: hop.first(), ..pair.clone() };
                let plane = one_of_pair(gateway, &pair, opened.names(), peer, (mtu, seed));
                way = Some(opened);
                Kind::Pair(plane)
            }
        };
        // Those of connections alone go on: associations must not get the tokens of earlier ones.
        kind.relays().set_secrets(secret.stream("numbers"));
        let (network, tuns, pieces) = match before {
            None => {
                let (network, tuns) = Network::set_up(gateway)?;
                (network, tuns, Vec::new())
            }
            Some(Before { connections, pieces, tuns, .. }) => {
                kind.take_over(clock.now(), connections);
                (Network::take_over(gateway)?, tuns, pieces)
            }
        };
        let goes_on = kind.relays().connections();
        let lost = Lost::new(clock.now(), journal, seed.stream("lost"), goes_on);
        let plane = Plane::new(kind, lost, records);
        let inline = Inline::new(plane, tuns, &gateway.lan, clock)?;
        let mut inline = inline.with_payloads(pieces).with_memory(memory);
        if let Some(way) = way {
            inline = inline.with_underlay(Box::new(way));
        }
        let plane = inline.start()?;
        if let Some(paused_at) = paused_at {
            let paused_milliseconds = clock.now().since(paused_at).as_nanos() / 1_000_000;
            info!(paused_milliseconds, "goes on with the connections of the program before");
        }
        Ok(Daemon { plane, mtu, clock, unwritten, _network: network })
    }

    /// Executes a program with the arguments of this one, which goes on with all connections. It returns only if
    /// that is not possible; those whose servers had not answered yet are reset then, and nothing else has changed.
    pub fn hand_over(&self, program: &Path) -> Error {
        let path = program.to_owned();
        let executed =
            self.plane.call(|now, plane, _| plane.relays().reset_half_open(now)).and_then(|()| {
                self.plane.pause(move |moment| {
                    moment.middlebox.flush_records();
                    handover::execute(moment, &path)
                })
            });
        match executed {
            Ok(source) => Error::Execute { program: program.display().to_string(), source },
            Err(error) => error.into(),
        }
    }

    /// Whether it runs. It ends by itself if one of its devices is removed.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.plane.is_running()
    }

    /// The counters of the packets.
    ///
    /// # Errors
    /// If it has ended.
    pub fn counts(&self) -> Result<Counts, Error> {
        Ok(self.plane.call(|_, _, counts| *counts)?)
    }

    /// The counters of its box, by their names.
    ///
    /// # Errors
    /// If it has ended.
    pub fn boxes(&self) -> Result<BTreeMap<&'static str, u64>, Error> {
        let counts = |_, plane: &mut Plane, _: &Counts| {
            let mut counts = BTreeMap::new();
            plane.counts(&mut |name, value| {
                counts.insert(name, value);
            });
            counts
        };
        Ok(self.plane.call(counts)?)
    }

    /// All counters and gauges, of one moment.
    ///
    /// # Errors
    /// If it has ended.
    pub fn observe(&self) -> Result<Observation, Error> {
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
        let observed = self.plane.call(observe)?;
        Ok(Observation { unwritten: self.unwritten.load(Ordering::Relaxed), ..observed })
    }

    /// The connections that it carries.
    ///
    /// # Errors
    /// If it has ended.
    pub fn connections(&self) -> Result<Connections, Error> {
        // Packets need not wait until a large table was looked at.
        const PART: usize = 512;
        let mut all = Vec::new();
        for start in (0..).step_by(PART) {
            let part = self.plane.call(move |now, plane, _| {
                let carried = plane.relays().carried(start..start + PART)?;
                Some(carried.map(|carried| Connection::new(now, &carried)).collect::<Vec<_>>())
            })?;
            let Some(part) = part else { break };
            all.extend(part);
        }
        Ok(Connections::new(all))
    }

    /// Lets new connections pass unsplit; or, with `false`, splits them again. Those that it carries go on.
    ///
    /// # Errors
    /// If it has ended.
    pub fn drain(&self, draining: bool) -> Result<(), Error> {
        Ok(self.plane.call(move |_, plane, _| plane.relays().drain(draining))?)
    }

    /// Copies of the packets from and to a user, and the clock of their times; a capture before
    /// this one ends.
    ///
    /// # Errors
    /// If it has ended.
    pub fn capture(&self, user: IpAddr) -> Result<(Captures, Clock), Error> {
        Ok((self.plane.capture(user, self.clock)?, self.clock))
    }

    /// Sets what may be set while it runs: how new connections are split, the rate if it is given, and the file of
    /// the records, which is opened again.
    ///
    /// # Errors
    /// If the file cannot be opened, and nothing has changed then; or if it has ended.
    pub fn set(&self, gateway: &Gateway) -> Result<(), Error> {
        let records = records(gateway.records.as_deref(), self.clock, &self.unwritten)?;
        let ((work, memory), tcp) = (with_memory(&gateway.work), tcp_within(gateway, self.mtu));
        self.plane.set_memory(memory)?;
        Ok(self.plane.call(move |_, plane, _| {
            plane.set(&work, &tcp);
            plane.record(records);
        })?)
    }

    /// Ends it. Connections that it carries are reset.
    pub fn stop(self) {
        // It fails if the thread has ended; then nothing can be sent.
        let _ = self.plane.call(|now, plane, _| plane.relays().reset_all(now));
        self.plane.stop().middlebox.end();
    }
}

/// The files in which a gateway keeps what the next one needs.
pub(crate) struct StateFiles {
    journal: PathBuf,
    secret: PathBuf,
}

impl StateFiles {
    /// Those beside a control socket.
    pub(crate) fn beside(socket: &Path) -> StateFiles {
        let [journal, secret] = ["journal", "secret"].map(|end| socket.with_extension(end));
        StateFiles { journal, secret }
    }

    fn journal(&self) -> Result<Journal, Error> {
        Self::opened(&self.journal, Journal::open)
    }

    fn secret(&self) -> Result<Seed, Error> {
        Self::opened(&self.secret, secret::of_file)
    }

    fn opened<T>(path: &Path, open: fn(&Path) -> io::Result<T>) -> Result<T, Error> {
        let failed = |source| Error::State { path: path.display().to_string(), source };
        make_folder_of(path).and_then(|()| open(path)).map_err(failed)
    }
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

/// The largest packet of any interface, bytes.
fn largest_mtu(gateway: &Gateway) -> Result<u16, Error> {
    let netlink = Netlink::open()?;
    let mut largest = 0;
    for interface in gateway.lan.iter().chain([&gateway.wan]) {
        largest = netlink.mtu(interface)?.max(largest);
    }
    Ok(u16::try_from(largest).unwrap_or(u16::MAX))
}

/// The same, with a quarter of the machine's memory if nothing is said of memory; and how much that is, bytes.
fn with_memory(work: &Work) -> (Work, u64) {
    let machine = rustix::system::sysinfo();
    let of_machine = (machine.totalram as u64).saturating_mul(machine.mem_unit.into());
    let mut work = work.clone();
    let memory = match &mut work {
        Work::Spoof(spoofer) => &mut spoofer.memory,
        Work::Pair(pair, _) => &mut pair.memory,
    };
    let Bytes(bytes) = *memory.get_or_insert(Bytes(of_machine / 4));
    (work, bytes)
}

/// The box of a gateway that spoofs. It sends nothing in its own name.
fn splitter(gateway: &Gateway, spoofer: &Spoofer, mtu: u16, seed: Seed) -> Splitter {
    let none = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    at_site(gateway, [none, none], (mtu, seed), |site| spoofer.splitter(site))
}

/// The box of one of two gateways with these names.
fn one_of_pair(
    gateway: &Gateway,
    pair: &Pair,
    names: [IpAddr; 2],
    peer: &Peer,
    (mtu, seed): (u16, Seed),
) -> PairGateway {
    let is_ipv6 = peer::is_over_ipv6(peer.address);
    at_site(gateway, names, (mtu, seed), |site| pair.gateway(site, peer::overhead(is_ipv6)))
}

/// The settings of the gateway's TCP, where no packet is longer.
fn tcp_within(gateway: &Gateway, mtu: u16) -> Config {
    Config { mss: gateway.tcp.mss.min(mtu.saturating_sub(40)), ..gateway.tcp.clone() }
}

/// Makes a box at the place of a gateway, whose own name and whose neighbour's are these.
fn at_site<R>(
    gateway: &Gateway,
    [own, peer]: [IpAddr; 2],
    (mtu, seed): (u16, Seed),
    make: impl FnOnce(&Site<'_>) -> R,
) -> R {
    make(&Site {
        own: [own, own],
        neighbours: &[Neighbour { name: Gateway::HOP, address: peer, port: Side::Wan.port() }],
        attached: None,
        flows: &BTreeMap::new(),
        tunnels: &[],
        readable: &[],
        tcp: &tcp_within(gateway, mtu),
        has_streams: false,
        contents: &Contents::default(),
        random: &|| seed.stream("gateway"),
    })
}
