//! TCP Fast Open (RFC 7413): a client's cache of cookies, and the cookies and limits of a server.

use super::{FourTuple, Host};
use crate::Application;
use base::{Duration, Time};
use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tcp::{Config, FastOpen, FastOpenResult, State};
use wire::{FastOpenCookie, Flags, Segment};

/// How long the key of cookies lasts; a cookie is good in this period and in the next.
const PERIOD: Duration = Duration::from_secs(2 * 3600);
/// Paths that a client remembers; the one not used for longest is forgotten.
const PATHS: usize = 512;
/// The MSS of a server that has announced none (RFC 7413 §4.1.3).
const DEFAULT_MSS: u16 = 536;
/// How long a client does without Fast Open after two failures in a row on a path; twice as long after
/// each further failure, up to [`MOST_DOUBLINGS`]. One may be an ordinary loss (as in Linux,
/// `tcp_fastopen_cache_get`).
const PAUSE: Duration = Duration::from_secs(60);
const MOST_DOUBLINGS: u32 = 10;
/// How long a connection that ended before its handshake counts as pending: an attacker must not
/// make room by resets (RFC 7413 §5.1). As in Linux.
const RESET_COUNTS: Duration = Duration::from_secs(60);

/// What a client knows of a path. Other ports of the server have the same cookie (RFC 7413 §4.1.2).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Path {
    local: IpAddr,
    pub(super) remote: IpAddr,
    pub(super) cookie: Option<FastOpenCookie>,
    /// What the server announced with its last SYN-ACK, bytes.
    mss: u16,
    /// Consecutive failures (RFC 7413 §4.1.3.1).
    pub(super) failures: u32,
    /// No Fast Open before this time of the host's.
    pub(super) paused_until: Time,
}

/// A client's cache of cookies, the path used last at the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CookieCache {
    pub(super) paths: VecDeque<Path>,
}

impl CookieCache {
    /// The path between two addresses, which is now the one used last.
    fn path(&mut self, tuple: &FourTuple) -> &mut Path {
        let (local, remote) = (tuple.local, tuple.remote);
        let known = self.paths.iter().position(|path| (path.local, path.remote) == (local, remote));
        let path = known.and_then(|index| self.paths.remove(index)).unwrap_or(Path {
            local,
            remote,
            cookie: None,
            mss: DEFAULT_MSS,
            failures: 0,
            paused_until: Time::ZERO,
        });
        if self.paths.len() == PATHS {
            self.paths.pop_front();
        }
        self.paths.push_back(path);
        let last = self.paths.len() - 1;
        &mut self.paths[last]
    }
}

/// A server's connections by Fast Open whose handshake is not complete.
#[derive(Debug, Default)]
pub(super) struct Pending {
    open: u32,
    /// When those that have ended no longer count, the earliest first.
    ended: VecDeque<Time>,
}

impl Pending {
    fn count(&mut self, now: Time) -> u32 {
        while self.ended.front().is_some_and(|&until| until <= now) {
            self.ended.pop_front();
        }
        self.open + self.ended.len() as u32
    }
}

impl<A: Application> Host<A> {
    /// Whether a connection to `remote` would send data with its SYN: its server has given a cookie, and
    /// the path has not failed lately (RFC 7413 §4.1.3).
    #[must_use]
    pub fn has_fast_open_cookie(&self, now: Time, remote: IpAddr) -> bool {
        let (local, now) = (self.address_towards(remote), self.numbering.local(now));
        self.fast_open_cookies.paths.iter().any(|path| {
            let same = (path.local, path.remote) == (local, remote);
            same && path.cookie.is_some() && path.paused_until <= now
        })
    }

    /// Chooses how a connection of ours opens (RFC 7413 §4.2.1).
    pub(super) fn open_fast(&mut self, now: Time, id: u32, config: &Config) {
        let local = self.numbering.local(now);
        let slot = &mut self.slots[id as usize];
        let path = self.fast_open_cookies.path(&slot.tuple());
        if local < path.paused_until {
            return;
        }
        let how = match path.cookie {
            Some(cookie) => FastOpen::Offer { cookie, mss: path.mss },
            None => FastOpen::Request,
        };
        // Options of mechanisms need the room of a long cookie.
        let fits = config.mechanisms.is_empty()
            || path.cookie.is_none_or(|cookie| cookie.as_bytes().len() <= 8);
        if fits {
            slot.connection.fast_open(how);
            self.after(now, id);
        }
    }

    /// Chooses how a connection opens whose SYN has a Fast Open option (RFC 7413 §4.2.2).
    pub(super) fn accept_fast(&mut self, now: Time, id: u32, cookie: &FastOpenCookie) {
        let local = self.numbering.local(now);
        let limit = self.settings.fast_open_backlog;
        let slot = &mut self.slots[id as usize];
        let tuple = slot.tuple();
        let period = local.as_nanos() / PERIOD.as_nanos();
        let of = |period| {
            let hash = self.numbering.fast_open_cookie(tuple.local, tuple.remote, period);
            FastOpenCookie::new(&hash.to_be_bytes()).unwrap_or(FastOpenCookie::REQUEST)
        };
        let (new, old) = (of(period), period.checked_sub(1).map(of));
        let is_new = *cookie == new;
        if self.fast_opens.count(local) >= limit {
            // A normal handshake, which other defences protect.
            self.statistics.fast_opens_limited += 1;
        } else if is_new || Some(*cookie) == old {
            slot.connection.fast_open(FastOpen::Accept((!is_new).then_some(new)));
            slot.fast_open_pending = true;
            self.fast_opens.open += 1;
            self.statistics.fast_opens += 1;
        } else {
            slot.connection.fast_open(FastOpen::Grant(new));
        }
    }

    /// Learns from the SYN-ACK that a client has accepted (RFC 7413 §4.1.3).
    pub(super) fn learn_cookie(
        &mut self,
        now: Time,
        id: u32,
        syn_ack: &Segment,
        cookie: Option<FastOpenCookie>,
    ) {
        let connection = &self.slots[id as usize].connection;
        // A SYN without an acknowledgment may be anybody's.
        let accepted = connection.is_confirmed() && syn_ack.flags.contains(Flags::ACK);
        if !accepted || !connection.uses_fast_open() {
            return;
        }
        let path = self.fast_open_cookies.path(&self.slots[id as usize].tuple());
        path.mss = syn_ack.options.mss.unwrap_or(DEFAULT_MSS);
        if let Some(cookie) = cookie.filter(|cookie| !cookie.is_request()) {
            path.cookie = Some(cookie);
            match connection.fast_open_result() {
                // The server has another key now: no fault of the path.
                Some(FastOpenResult::Refused) => return,
                // It answers our first SYN, which only was slow: the others had no option.
                Some(FastOpenResult::Unanswered) => {
                    path.failures = 0;
                    return;
                }
                Some(FastOpenResult::Accepted) => {}
                None => path.failures = 0,
            }
        }
        self.learn_result(now, id);
    }

    /// Learns whether Fast Open works on the path of a client (RFC 7413 §4.1.3.1).
    pub(super) fn learn_result(&mut self, now: Time, id: u32) {
        let slot = &self.slots[id as usize];
        let Some(result) = slot.connection.fast_open_result() else { return };
        let now = self.numbering.local(now);
        let path = self.fast_open_cookies.path(&slot.tuple());
        if result == FastOpenResult::Accepted {
            path.failures = 0;
        } else {
            if path.failures > 0 {
                path.paused_until = now + PAUSE * (1 << (path.failures - 1).min(MOST_DOUBLINGS));
            }
            path.failures += 1;
        }
    }

    /// After the handshake of a connection is complete, or the connection has closed: a server's is no
    /// longer pending, and a client's SYN may never have been answered.
    pub(super) fn on_fast_open_change(&mut self, now: Time, id: u32) {
        let slot = &mut self.slots[id as usize];
        let closed = slot.connection.state() == State::Closed;
        if slot.fast_open_pending && (closed || slot.connection.is_confirmed()) {
            slot.fast_open_pending = false;
            self.fast_opens.open -= 1;
            if !slot.connection.is_confirmed() {
                let until = self.numbering.local(now) + RESET_COUNTS;
                self.fast_opens.ended.push_back(until);
            }
        }
        let slot = &self.slots[id as usize];
        if closed && slot.connection.uses_fast_open() && !slot.connection.is_confirmed() {
            self.learn_result(now, id);
        }
    }
}
