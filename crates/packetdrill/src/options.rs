//! Socket options.

use crate::socket::{Kind, Name};
use crate::stack::Stack;
use base::Duration;
use rustix::io::Errno;
use std::os::fd::RawFd;
use tcp::congestion::Congestion;

/// Options that are stored without effect: there is one interface and one user.
const KEPT: &[Name] = &[
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT),
    (libc::IPPROTO_IP, libc::IP_TOS),
    (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
    (libc::IPPROTO_IP, libc::IP_RECVERR),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
];

/// The longest time in the options of keep-alive probes, seconds (Linux: `MAX_TCP_KEEPIDLE`).
const MAX_KEEP_ALIVE: u16 = 32_767;

const CONGESTION: &[(&str, Congestion)] =
    &[("cubic", Congestion::Cubic), ("reno", Congestion::Aimd)];

fn number(value: &[u8]) -> Result<i32, Errno> {
    let bytes = value.first_chunk().ok_or(Errno::INVAL)?;
    Ok(i32::from_ne_bytes(*bytes))
}

/// What the options of IP take, too (Linux).
fn byte_or_number(value: &[u8]) -> Result<i32, Errno> {
    if let [byte] = value { Ok(i32::from(*byte)) } else { number(value) }
}

fn positive<T: TryFrom<i32>>(value: &[u8]) -> Result<T, Errno> {
    T::try_from(number(value)?).map_err(|_| Errno::INVAL)
}

impl Stack {
    /// `setsockopt(2)`
    ///
    /// # Errors
    /// As the system call; `NOPROTOOPT` for what is unknown.
    pub fn set_option(&mut self, fd: RawFd, name: Name, value: &[u8]) -> Result<(), Errno> {
        let socket = self.find_mut(fd)?;
        let options = &mut socket.options;
        match name {
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
                options.send_buffer = u64::from(positive::<u32>(value)?).max(4608);
            }
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
                options.receive_buffer = Some(positive::<u32>(value)?.max(2304));
            }
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                let seconds = positive(value.get(4..).unwrap_or_default())?;
                options.linger = (number(value)? != 0).then_some(seconds);
            }
            (libc::IPPROTO_TCP, libc::TCP_INQ) => options.reports_inq = number(value)? != 0,
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
                options.mss = Some(positive(value)?).filter(|mss| *mss >= 88);
                options.mss.ok_or(Errno::INVAL)?;
            }
            (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => {
                let text = value.split(|&byte| byte == 0).next().unwrap_or_default();
                let found = CONGESTION.iter().find(|(name, _)| name.as_bytes() == text);
                options.congestion = Some(found.ok_or(Errno::NOENT)?.1);
            }
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => {
                options.nodelay = number(value)? != 0;
                self.apply_nodelay(fd)?;
            }
            (libc::IPPROTO_TCP, libc::TCP_CORK) => {
                options.corked = number(value)? != 0;
                let corked = options.corked;
                if let Ok(place) = self.place(fd) {
                    self.using(place, |connection, _| connection.cork(corked));
                }
            }
            (libc::IPPROTO_TCP, libc::TCP_FASTOPEN) => {
                options.accepts_fast_open = Some(positive::<u32>(value)? > 0);
            }
            (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT) => {
                let on = number(value)? != 0;
                if on && !self.setup.offers_fast_open() {
                    return Err(Errno::OPNOTSUPP);
                }
                self.find_mut(fd)?.options.connects_fast = on;
            }
            (libc::IPPROTO_TCP, libc::TCP_SYNCNT) => {
                let retries = positive::<u8>(value)?;
                options.syn_retries = Some(u32::from(retries));
                if let Ok(place) = self.place(fd) {
                    self.using(place, |connection, _| {
                        connection.set_syn_retries(u32::from(retries));
                    });
                }
            }
            (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => {
                let millis = positive::<u32>(value)?;
                options.user_timeout = millis;
                let timeout = options.user_timeout();
                if let Ok(place) = self.place(fd) {
                    self.using(place, |connection, _| connection.set_user_timeout(timeout));
                }
            }
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => options.keep_alive = number(value)? != 0,
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => {
                let idle = positive::<u16>(value)?;
                if !(1..=MAX_KEEP_ALIVE).contains(&idle) {
                    return Err(Errno::INVAL);
                }
                options.keep_alive_idle = Some(Duration::from_secs(u64::from(idle)));
            }
            name if KEPT.contains(&name) => {
                let value = if name.0 == libc::IPPROTO_IP {
                    byte_or_number(value)?
                } else {
                    number(value)?
                };
                options.kept.insert(name, value);
            }
            _ => return Err(Errno::NOPROTOOPT),
        }
        // A listener's connections have the settings that it has now.
        match self.find(fd)?.kind {
            Kind::Listening { backlog } => self.listen(fd, backlog),
            Kind::Idle | Kind::Deferred(_) | Kind::Connected(_) => Ok(()),
        }
    }

    /// Without Nagle's algorithm nothing waits, not even what `TCP_CORK` or `MSG_MORE` holds.
    fn apply_nodelay(&mut self, fd: RawFd) -> Result<(), Errno> {
        let nodelay = self.find(fd)?.options.nodelay;
        if let Ok(place) = self.place(fd) {
            self.using(place, |connection, _| {
                connection.set_nagle(!nodelay);
                if nodelay {
                    connection.flush();
                }
            });
        }
        Ok(())
    }

    /// `getsockopt(2)`: the bytes of the value.
    ///
    /// # Errors
    /// As the system call; `NOPROTOOPT` for what is unknown.
    pub fn option(&mut self, fd: RawFd, name: Name) -> Result<Vec<u8>, Errno> {
        let socket = self.find(fd)?;
        let options = &socket.options;
        let place = self.place(fd).ok();
        let is_ipv6 = place.is_some_and(|place| place.is_ipv6);
        let value = match name {
            (libc::SOL_SOCKET, libc::SO_ERROR) => {
                let take = |place| self.using(place, |_, endpoint| endpoint.error.take());
                let error = place.and_then(take).flatten();
                error.map_or(0, Errno::raw_os_error)
            }
            (libc::SOL_SOCKET, libc::SO_TYPE) => libc::SOCK_STREAM,
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => libc::IPPROTO_TCP,
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
                i32::from(matches!(socket.kind, Kind::Listening { .. }))
            }
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => options.send_buffer as i32,
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
                options.config(&self.setup, is_ipv6).receive_window.maximum as i32
            }
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                let linger = options.linger;
                let fields = [i32::from(linger.is_some()), linger.unwrap_or(0) as i32];
                return Ok(fields.iter().flat_map(|field| field.to_ne_bytes()).collect());
            }
            (libc::SOL_SOCKET, libc::SO_MEMINFO) => return self.memory(fd),
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => i32::from(options.keep_alive),
            (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => options.user_timeout as i32,
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => i32::from(options.nodelay),
            (libc::IPPROTO_TCP, libc::TCP_CORK) => i32::from(options.corked),
            (libc::IPPROTO_TCP, libc::TCP_INQ) => i32::from(options.reports_inq),
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => match place {
                Some(place) => self.connection(place)?.info().mss as i32,
                None => i32::from(options.config(&self.setup, is_ipv6).mss),
            },
            (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => {
                let used = options.config(&self.setup, is_ipv6).congestion;
                let (name, _) =
                    CONGESTION.iter().find(|(_, own)| *own == used).ok_or(Errno::INVAL)?;
                return Ok([name.as_bytes(), b"\0"].concat());
            }
            (libc::IPPROTO_TCP, libc::TCP_INFO) => return self.tcp_info(fd),
            // Algorithms with such information are not implemented here.
            (libc::IPPROTO_TCP, libc::TCP_CC_INFO) => return Ok(Vec::new()),
            name if KEPT.contains(&name) => options.kept.get(&name).copied().unwrap_or(0),
            _ => return Err(Errno::NOPROTOOPT),
        };
        Ok(value.to_ne_bytes().to_vec())
    }

    /// `SO_MEMINFO`: nine counts, of which the buffers' sizes and fills are known.
    fn memory(&self, fd: RawFd) -> Result<Vec<u8>, Errno> {
        let options = &self.find(fd)?.options;
        let mut counts = [0_u32; 9];
        counts[1] = options.config(&self.setup, false).receive_window.maximum;
        counts[3] = options.send_buffer as u32;
        if self.place(fd).is_ok() {
            counts[0] = self.readable(fd)?;
            counts[5] = self.unacknowledged(fd)?;
        }
        Ok(counts.iter().flat_map(|count| count.to_ne_bytes()).collect())
    }
}
