//! ESP in transport mode over the hop, as a bump in the wire beside the hosts of SPEP (RFC 4301 §3.3, RFC 4303,
//! `obanaik2003` ch. 4): packets of TCP leave encrypted, and what should be encrypted and is not does not come in.
//!
//! The box `esp` of the lab numbers packets and finds the causes of losses; here are the keys, and the policy.

use crate::counted::Counted;
use crate::error::Error;
use crate::mhp::NetworkKey;
use crate::modes::hop_mtu;
use crate::peer::PeerError;
use base::{Duration, Seed, Time};
use channel::PresharedKey;
use core::net::IpAddr;
use core::num::NonZeroUsize;
use core::ops::Range;
use host::{Context, DropReason, Middlebox, Outbox, Prefix, Verdict};
use live::inline::{Boundary, Opened, Side};
use lru::LruCache;
use rustc_hash::FxBuildHasher;
use scenario::{Esp, Gateway};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::warn;
use wire::{Body, EspAlgorithm, EspKeys, Flags, OpenError, Packet, Protected, Segment};

/// ICMP for IPv6, as next header (RFC 4443 §1), and its place in the header (RFC 8200 §3).
const ICMPV6: u8 = 58;
const NEXT_HEADER: usize = 6;

/// The number of TCP.
const TCP: u8 = 6;

/// The longest packet of the path to the other gateway, bytes.
fn path_mtu(gateway: &Gateway, esp: &Esp) -> Result<u32, Error> {
    esp.mtu.map_or_else(|| hop_mtu(gateway), Ok)
}

/// The longest packet without ESP that fits the hop under ESP, of IPv4: modes count so.
pub(crate) fn mtu_within(gateway: &Gateway) -> Result<Option<u16>, Error> {
    let Some(esp) = &gateway.esp else { return Ok(None) };
    Ok(Some(Esp::segment_size(path_mtu(gateway, esp)?).saturating_add(40)))
}

/// The keys of associations, which follow from the key that both gateways share, and the names of the associations.
struct Keys {
    shared: PresharedKey,
    /// Those in use.
    known: LruCache<Name, EspKeys, FxBuildHasher>,
}

/// What names an association: its ends, its SPI, and the upper half of its initialization vectors, which the sender
/// has drawn when it was started. The lower half is the sequence number.
type Name = (IpAddr, IpAddr, u32, [u8; 4]);

fn name(packet: &Packet, esp: &wire::Esp) -> Name {
    let [run @ .., _, _, _, _] = esp.iv;
    (packet.ip.source, packet.ip.destination, esp.spi, run)
}

impl Keys {
    /// Keys that are kept; others are computed again.
    const KEPT: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

    fn new(shared: PresharedKey) -> Keys {
        Keys { shared, known: LruCache::with_hasher(Keys::KEPT, FxBuildHasher) }
    }

    /// Those of an association.
    fn derive(&self, &(source, destination, spi, run): &Name) -> EspKeys {
        let mut purpose = b"ESP, AES-GCM-16".to_vec();
        for address in [source, destination] {
            match address {
                IpAddr::V4(address) => purpose.extend(address.to_ipv6_mapped().octets()),
                IpAddr::V6(address) => purpose.extend(address.octets()),
            }
        }
        purpose.extend(spi.to_be_bytes());
        purpose.extend(run);
        let material = self.shared.derive(&purpose);
        let length = EspAlgorithm::Aes128Gcm.material();
        match EspKeys::new(EspAlgorithm::Aes128Gcm, &material[..length]) {
            Ok(keys) => keys,
            Err(_) => unreachable!("the material is as long as the algorithm's"),
        }
    }

    /// Appends the bytes of a packet in transport mode.
    fn seal(&mut self, packet: &Packet, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(esp) = packet.esp() else { return false };
        let name = name(packet, &esp);
        if !self.known.contains(&name) {
            self.known.put(name, self.derive(&name));
        }
        self.known.get(&name).is_some_and(|keys| keys.seal(packet, 0, payload, out).is_ok())
    }

    /// Verifies and decrypts a packet in place. Names of packets that are not authentic are not remembered.
    fn open(
        &mut self,
        packet: &Packet,
        esp: &wire::Esp,
        payload: &mut [u8],
    ) -> Result<(Packet, Range<usize>), OpenError> {
        let name = name(packet, esp);
        if let Some(keys) = self.known.get(&name) {
            return keys.open(packet, 0, payload);
        }
        let keys = self.derive(&name);
        let opened = keys.open(packet, 0, payload)?;
        self.known.put(name, keys);
        Ok(opened)
    }
}

/// What packets are dropped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    /// ESP with another key, or changed on its way.
    Unauthentic,
    /// TCP without ESP, from where it should come with ESP.
    InClear,
    /// It has arrived before, or is older than the window.
    Replay,
    /// It would leave in clear: it cannot be read, or it quotes TCP.
    Unprotected,
}

impl Refusal {
    /// All.
    const ALL: [Refusal; 4] =
        [Refusal::Unauthentic, Refusal::InClear, Refusal::Replay, Refusal::Unprotected];

    /// Its counter.
    fn name(self) -> &'static str {
        match self {
            Refusal::Unauthentic => "refused: ESP with another key or changed",
            Refusal::InClear => "refused: TCP without ESP",
            Refusal::Replay => "refused: ESP that has arrived before",
            Refusal::Unprotected => "refused: cannot be protected",
        }
    }

    /// What it is likely to be, for the log.
    fn cause(self) -> &'static str {
        match self {
            Refusal::Unauthentic => {
                "the other gateway has another key, or packets are damaged or forged"
            }
            Refusal::InClear => {
                "there is no gateway with `esp` and this key in front of these hosts"
            }
            Refusal::Replay => "packets are repeated or very late",
            Refusal::Unprotected => "packets of TCP that cannot be read, or errors that quote TCP",
        }
    }
}

/// One end.
pub(crate) struct EspEnd {
    networks: Vec<Prefix>,
    /// The lab's box.
    end: Box<dyn Middlebox + Send>,
    keys: Keys,
    /// Drawn when it was started: the upper half of initialization vectors.
    run: [u8; 4],
    /// The longest segment that fits, bytes.
    mss: u16,
    /// Acknowledgments with the bit of ELN that were opened, and protected.
    reports: [u64; 2],
    refused: BTreeMap<Refusal, u64>,
    /// When the log has last said what is refused.
    logged: Option<Time>,
}

impl EspEnd {
    /// The time between lines of the log.
    const QUIET: Duration = Duration::from_secs(10);

    /// That of a gateway; `None` if it has none.
    pub(crate) fn of(gateway: &Gateway) -> Result<Option<Arc<Mutex<EspEnd>>>, Error> {
        let Some(esp) = &gateway.esp else { return Ok(None) };
        let mtu = path_mtu(gateway, esp)?;
        let shared = read_key(&esp.key)?;
        let end = EspEnd {
            networks: esp.networks.clone(),
            end: Esp::settings(esp.host).of_all_packets(Seed(getrandom::u64()?).stream("esp")),
            keys: Keys::new(shared),
            run: getrandom::u32()?.to_be_bytes(),
            mss: Esp::segment_size(mtu),
            reports: [0; 2],
            refused: BTreeMap::new(),
            logged: None,
        };
        Ok(Some(Arc::new(Mutex::new(end))))
    }

    /// Whether the other gateway is in front of a host.
    fn is_behind_other(&self, host: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(host))
    }

    /// Counts a packet that is dropped, and logs it.
    fn refuse(&mut self, now: Time, why: Refusal, packet: Option<&Packet>) {
        *self.refused.entry(why).or_default() += 1;
        if self.logged.is_some_and(|at| now.since(at) < EspEnd::QUIET) {
            return;
        }
        self.logged = Some(now);
        let source = packet.map(|packet| packet.ip.source.to_string());
        let destination = packet.map(|packet| packet.ip.destination.to_string());
        let packets = self.refused[&why];
        warn!(source, destination, packets, "{}: {}", why.name(), why.cause());
    }

    /// Segments are to fit, also those of connections that are not split.
    fn clamp(&self, segment: &mut Segment) {
        if segment.flags.contains(Flags::SYN)
            && let Some(mss) = &mut segment.options.mss
        {
            *mss = self.mss.min(*mss);
        }
    }

    fn open(
        &mut self,
        now: Time,
        packet: &mut Packet,
        payload: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Opened {
        if !self.is_behind_other(packet.ip.source) {
            return Opened::AsItIs;
        }
        let Body::Esp(esp) = packet.body else {
            if !must_be_hidden(packet) {
                return Opened::AsItIs;
            }
            // RFC 4301 §5.2: what should be protected and is not is discarded.
            self.refuse(now, Refusal::InClear, Some(packet));
            return Opened::Dropped;
        };
        let Ok((opened, place)) = self.keys.open(packet, &esp, payload) else {
            self.refuse(now, Refusal::Unauthentic, Some(packet));
            return Opened::Dropped;
        };
        *packet = opened;
        match self.end.packet(now, Some(Side::Wan.port()), packet, cx) {
            Verdict::Forward => {}
            Verdict::Consume => return Opened::Dropped,
            Verdict::Drop(reason) => {
                let why = match reason {
                    DropReason::Replay => Refusal::Replay,
                    _ => Refusal::Unauthentic,
                };
                self.refuse(now, why, Some(packet));
                return Opened::Dropped;
            }
        }
        if let Body::Tcp(segment) = &mut packet.body {
            self.clamp(segment);
            self.reports[0] += u64::from(reports_corruption(segment));
        }
        Opened::Opened(place)
    }

    fn protect(&mut self, now: Time, packet: &Packet, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let mut packet = *packet;
        let is_hidden = matches!(packet.body, Body::Tcp(_))
            && self.hide(now, &mut packet)
            && self.keys.seal(&packet, payload, out);
        if !is_hidden {
            self.refuse(now, Refusal::Unprotected, Some(&packet));
        }
        is_hidden
    }

    /// Lets the box hide the transport, and names the association for [`Keys`].
    fn hide(&mut self, now: Time, packet: &mut Packet) -> bool {
        if let Body::Tcp(segment) = &mut packet.body {
            self.clamp(segment);
            self.reports[1] += u64::from(reports_corruption(segment));
        }
        let verdict = self.end.packet(now, None, packet, &mut Outbox::default().context());
        let Some(mut esp) = packet.unprotect().filter(|_| verdict == Verdict::Forward) else {
            return false;
        };
        esp.iv[..4].copy_from_slice(&self.run);
        packet.protect(esp)
    }
}

/// Whether a segment says that the first one that its sender misses was damaged (`obanaik2003` §4.2.3).
fn reports_corruption(segment: &Segment) -> bool {
    segment.flags & (Flags::ELN | Flags::SYN) == Flags::ELN
}

/// Whether a packet may pass between hosts of both gateways only under ESP: one of TCP, and an error that quotes one.
fn must_be_hidden(packet: &Packet) -> bool {
    match &packet.body {
        Body::Tcp(_) | Body::EspTransport(Protected::Tcp(_)) => true,
        Body::Icmp(icmp) => icmp.quote().is_some_and(|quote| quote.protocol == TCP),
        _ => false,
    }
}

/// The key that both gateways share.
pub(crate) fn read_key(path: &std::path::Path) -> Result<PresharedKey, PeerError> {
    Ok(NetworkKey::read(path)?.preshared)
}

/// The end, as the thread of packets has it.
pub(crate) struct Bump(pub(crate) Arc<Mutex<EspEnd>>);

fn lock(end: &Mutex<EspEnd>) -> MutexGuard<'_, EspEnd> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Boundary for Bump {
    fn open(
        &mut self,
        now: Time,
        packet: &mut Packet,
        payload: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Opened {
        lock(&self.0).open(now, packet, payload, cx)
    }

    fn protects(&self, packet: &Packet) -> bool {
        must_be_hidden(packet) && lock(&self.0).is_behind_other(packet.ip.destination)
    }

    fn protect(&mut self, now: Time, packet: &Packet, payload: &[u8], out: &mut Vec<u8>) -> bool {
        lock(&self.0).protect(now, packet, payload, out)
    }

    fn passes_unread(&mut self, now: Time, bytes: &[u8]) -> bool {
        let passes = bytes.get(NEXT_HEADER) == Some(&ICMPV6);
        if !passes {
            lock(&self.0).refuse(now, Refusal::Unprotected, None);
        }
        passes
    }
}

impl Counted for Mutex<EspEnd> {
    fn each(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let end = lock(self);
        // A link of the kernel does not report what it has damaged.
        end.end.counts(&mut |name, value| {
            if !name.starts_with("damaged_") {
                count(name, value);
            }
        });
        let [received, sent] = end.reports;
        count("reports_of_corruption_received", received);
        count("reports_of_corruption_sent", sent);
        for why in Refusal::ALL {
            count(why.name(), end.refused.get(&why).copied().unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests;
