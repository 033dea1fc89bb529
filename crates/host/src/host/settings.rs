//! A host's settings and counters.

use serde::{Deserialize, Serialize};

/// Settings of a host, besides those of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The most resets per second for segments of no connection (RFC 9293 §3.10.7.1); 0 for none.
    pub resets: u32,
    /// Keep closed connections and their applications, for results. A long-lived server should not.
    pub keep_closed: bool,
    /// After a change of the path, one connection probes it for all connections with outstanding
    /// data. Connections without outstanding data are notified at once.
    pub shared_probe: bool,
    /// Answer SYNs that overflow a listener's backlog by cookies (RFC 4987 §3.6), instead of
    /// dropping them. Their connections have no window scaling, SACK or ECN unless both ends use
    /// timestamps, which then carry the negotiated options.
    pub syn_cookies: bool,
    /// The most connections by Fast Open whose handshake is not complete, or that have ended before
    /// it was, less than a minute ago (RFC 7413 §5.1). Beyond them, data of SYNs is ignored.
    pub fast_open_backlog: u32,
    /// Bytes of memory for all connections ([`tcp::Connection::memory`]) and the payload that their
    /// applications keep ([`crate::Application::memory`]), without a limit if `None`. From half of
    /// it on, connections drop out-of-order segments; from three quarters on,
    /// they announce windows of a few segments; when it is used up, new connections are refused
    /// ([`Statistics::overflows`]). Data inside an announced window is accepted all the same, so
    /// the limit can be exceeded by the data in flight.
    pub memory: Option<u64>,
    /// The smallest path MTU that an ICMP message over IPv4 may demand, bytes: a smaller one counts as
    /// this, as in Linux (`min_pmtu`), for an attacker would have us send tiny packets. At least
    /// 68 (RFC 1191 §3). In IPv6 it is always 1280.
    pub minimum_path_mtu: u16,
    /// Segments may take the fast path ([`tcp::FastPath`]). It changes the speed only.
    pub fast_path: bool,
    /// New connections measure round trips ([`tcp::Connection::round_trips`]), and the sinks of
    /// datagrams delays ([`crate::DatagramSink::delays`]).
    pub measure_latency: bool,
    /// Segments of new connections carry bytes whose payloads do not continue each other
    /// ([`tcp::Connection::gather`]).
    pub gather: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            resets: 200,
            keep_closed: false,
            shared_probe: false,
            syn_cookies: true,
            fast_open_backlog: 1024,
            memory: None,
            minimum_path_mtu: 552,
            fast_path: true,
            measure_latency: false,
            gather: false,
        }
    }
}

/// Counts of what a host did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Statistics {
    /// Segments for connections.
    pub segments: u64,
    /// Segments among them that took the fast path.
    pub fast_path: u64,
    /// Packets for no connection and no listener.
    pub no_connection: u64,
    /// Resets that were sent for such packets.
    pub resets: u64,
    /// Resets that were not sent, because of the limit.
    pub resets_limited: u64,
    /// SYNs that were dropped, because a listener's backlog was full or memory was used up.
    pub overflows: u64,
    /// SYNs that were answered by a cookie for that reason.
    pub cookies: u64,
    /// Connections that were opened by a cookie.
    pub cookies_accepted: u64,
    /// Connections opened by Fast Open: their SYN had a valid cookie.
    pub fast_opens: u64,
    /// SYNs with a Fast Open option that was ignored, because too many such connections were
    /// pending.
    pub fast_opens_limited: u64,
    /// ICMP errors about no connection.
    pub unmatched: u64,
    /// Notices of corruption that matched no connection, and were given to the only one that
    /// matches with one bit of the ports changed.
    pub recovered: u64,
    /// Fragments of packets, which are not reassembled.
    pub fragments: u64,
    /// Packets that could not be read.
    pub malformed: u64,
    /// Connections that were not opened, because no port was left.
    pub unopened: u64,
}
