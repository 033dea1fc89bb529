//! The initial numbers of a connection: sequence number, timestamps, port. An off-path attacker
//! must not be able to guess them, and they must increase from one incarnation of a connection to
//! the next.

use super::FourTuple;
use base::{Random, Time};
use core::hash::Hasher;
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;
use tcp::Connection;
use wire::SeqNumber;

/// The key of a keyed hash.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Secret(u64, u64);

impl Secret {
    fn draw(random: &mut Random) -> Secret {
        Secret(random.bits(), random.bits())
    }

    /// F of RFC 6528 §3 and of RFC 6056 §3.3.3.
    fn hash(self, local: IpAddr, remote: IpAddr, ports: &[u16]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.0, self.1);
        for address in [local, remote] {
            match address {
                IpAddr::V4(address) => hasher.write(&address.octets()),
                IpAddr::V6(address) => hasher.write(&address.octets()),
            }
        }
        ports.iter().for_each(|port| hasher.write(&port.to_be_bytes()));
        hasher.finish()
    }
}

/// A host's secrets and its clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Numbering {
    sequence: Secret,
    timestamps: Secret,
    ports: Secret,
    mechanisms: Secret,
    cookies: Secret,
    fast_open: Secret,
    /// Nanoseconds that the world's clock is ahead of the host's, modulo 2^64: not 0 once the host
    /// was restored in a world with another clock.
    pub(super) ahead: u64,
}

impl Numbering {
    pub(super) fn new(mut random: Random) -> Numbering {
        Numbering {
            sequence: Secret::draw(&mut random),
            timestamps: Secret::draw(&mut random),
            ports: Secret::draw(&mut random),
            mechanisms: Secret::draw(&mut random),
            cookies: Secret::draw(&mut random),
            fast_open: Secret::draw(&mut random),
            ahead: 0,
        }
    }

    /// The host's own time, which no restoration sets back.
    pub(super) fn local(&self, now: Time) -> Time {
        Time::from_nanos(now.as_nanos().wrapping_sub(self.ahead))
    }

    /// A new connection with the host's own time, so that its timestamps increase from one
    /// incarnation to the next, too.
    pub(super) fn start(&self, now: Time, connection: Connection) -> Connection {
        if self.ahead == 0 {
            return connection;
        }
        let snapshot = connection.snapshot(self.local(now));
        Connection::adopt(snapshot, now).unwrap_or(connection)
    }

    /// ISN = M + F(localip, localport, remoteip, remoteport, secretkey), M a clock that ticks every
    /// four microseconds (RFC 6528 §3).
    pub(super) fn sequence(&self, now: Time, tuple: &FourTuple) -> SeqNumber {
        let ticks = self.local(now).as_nanos() / 4_000;
        let offset =
            self.sequence.hash(tuple.local, tuple.remote, &[tuple.local_port, tuple.remote_port]);
        SeqNumber((offset as u32).wrapping_add(ticks as u32))
    }

    /// Where the timestamps of a connection start (RFC 7323 §7.1). The same for every incarnation,
    /// so that a later one has later timestamps (RFC 6191).
    pub(super) fn timestamp_offset(&self, tuple: &FourTuple) -> u32 {
        self.timestamps.hash(tuple.local, tuple.remote, &[tuple.local_port, tuple.remote_port])
            as u32
    }

    /// The secret from which a connection derives unpredictable numbers.
    pub(super) fn secret(&self, now: Time, tuple: &FourTuple) -> u64 {
        let ports = [tuple.local_port, tuple.remote_port];
        self.mechanisms.hash(tuple.local, tuple.remote, &ports) ^ self.local(now).as_nanos()
    }

    /// The keyed hash of a SYN cookie, over the connection and the state in its answer (RFC 4987
    /// §3.6).
    pub(super) fn cookie(
        &self,
        tuple: &FourTuple,
        irs: SeqNumber,
        period: u64,
        size: u8,
        options: Option<u8>,
    ) -> u64 {
        let said = u16::from(size) << 8 | options.map_or(0xff, u16::from);
        let halves = |word: u32| [(word >> 16) as u16, word as u16];
        let ([irs, irs_low], [high, middle]) = (halves(irs.0), halves((period >> 16) as u32));
        let fields =
            [tuple.local_port, tuple.remote_port, irs, irs_low, high, middle, period as u16];
        self.cookies.hash(tuple.local, tuple.remote, &[&fields[..], &[said]].concat())
    }

    /// The Fast Open cookie of a client's address in a period (RFC 7413 §4.1.2).
    pub(super) fn fast_open_cookie(&self, local: IpAddr, remote: IpAddr, period: u64) -> u64 {
        let words = [48, 32, 16, 0].map(|shift| (period >> shift) as u16);
        self.fast_open.hash(local, remote, &words)
    }

    /// Where the search for a local port starts (RFC 6056 §3.3.3, algorithm 3).
    pub(super) fn port_offset(&self, local: IpAddr, remote: IpAddr, remote_port: u16) -> u16 {
        self.ports.hash(local, remote, &[remote_port]) as u16
    }
}
