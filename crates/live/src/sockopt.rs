//! Socket options that no maintained crate has.

use crate::Error;
use crate::error::Doing;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The kernel's counters of the sending side of a TCP connection; `None` for those that this kernel
/// does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounts {
    /// Segments with data that were sent, retransmissions included.
    pub segments: Option<u64>,
    /// Segments that were retransmitted.
    pub retransmissions: Option<u64>,
    /// Expiries of the retransmission timer (Linux 6.7 or newer).
    pub timeouts: Option<u64>,
}

// The layout of `struct tcp_info` (linux/tcp.h), which only ever grows at its end.
const TOTAL_RETRANS: usize = 100;
const DATA_SEGS_OUT: usize = 156;
const TOTAL_RTO: usize = 240;
const TCP_INFO_LEN: usize = 248;

/// The kernel's counters of a TCP socket, open or not.
///
/// # Errors
/// If it is no TCP socket.
pub fn tcp_counts(socket: &impl AsFd) -> Result<TcpCounts, Error> {
    let mut info = [0_u8; TCP_INFO_LEN];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `info`, which has as many.
    #[expect(unsafe_code, reason = "no crate has TCP_INFO of today's kernels")]
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    done(result).doing(|| "reading TCP_INFO".to_owned())?;
    let known = &info[..info.len().min(len as usize)];
    let word = |at: usize| {
        let bytes = known.get(at..at + 4)?;
        Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)))
    };
    let half = |at: usize| {
        let bytes = known.get(at..at + 2)?;
        Some(u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)))
    };
    Ok(TcpCounts {
        segments: word(DATA_SEGS_OUT),
        retransmissions: word(TOTAL_RETRANS),
        timeouts: half(TOTAL_RTO),
    })
}

/// Limits the window that a TCP socket announces to this number of bytes.
///
/// # Errors
/// If it is no TCP socket, or the window is none.
pub fn set_window_clamp(socket: &impl AsFd, bytes: u32) -> Result<(), Error> {
    set(socket, (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP), bytes)
        .doing(|| format!("limiting the window to {bytes} bytes"))
}

/// Lets a listener accept the data of SYNs (TCP Fast Open, RFC 7413), with at most `pending`
/// handshakes that are incomplete. The `sysctl` setting `net.ipv4.tcp_fastopen` must allow it.
///
/// # Errors
/// If it is no TCP socket.
pub fn accept_fast_open(listener: &impl AsFd, pending: u32) -> Result<(), Error> {
    set(listener, (libc::IPPROTO_TCP, libc::TCP_FASTOPEN), pending)
        .doing(|| "accepting Fast Open".to_owned())
}

/// Lets a socket connect by TCP Fast Open (RFC 7413). If a cookie is known, the SYN goes with the
/// first data that is written.
///
/// # Errors
/// If it is no TCP socket, or the `sysctl` setting `net.ipv4.tcp_fastopen` forbids it.
pub fn connect_by_fast_open(socket: &impl AsFd) -> Result<(), Error> {
    set(socket, (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT), 1)
        .doing(|| "connecting by Fast Open".to_owned())
}

/// Lets datagrams of a UDP socket be fragmented on their way, or, with `false`, not: what is too long is lost, or
/// refused by the kernel. What the kernel has learned of paths does not matter then.
///
/// # Errors
/// If it is no UDP socket.
pub fn allow_fragments(socket: &impl AsFd, is_ipv6: bool, allow: bool) -> Result<(), Error> {
    let doing = || "setting whether datagrams may be fragmented".to_owned();
    let (ipv4, ipv6) = match allow {
        true => (Ipv4PathMtuDiscovery::DONT, Ipv6PathMtuDiscovery::WANT),
        false => (Ipv4PathMtuDiscovery::PROBE, Ipv6PathMtuDiscovery::PROBE),
    };
    set_ip_mtu_discover(socket, ipv4).map_err(io::Error::from).doing(doing)?;
    if is_ipv6 {
        set_ipv6_mtu_discover(socket, ipv6).map_err(io::Error::from).doing(doing)?;
        set(socket, (libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG), u32::from(!allow)).doing(doing)?;
    }
    Ok(())
}

/// Sets a number of a socket, by the level of its option.
fn set(
    socket: &impl AsFd,
    (level, option): (libc::c_int, libc::c_int),
    value: u32,
) -> io::Result<()> {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel reads the integer that it is pointed at.
    #[expect(unsafe_code, reason = "no crate has these options")]
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    done(result)
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_connection_counts_what_it_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"once").unwrap();
        server.read_exact(&mut [0; 4]).unwrap();
        let counts = tcp_counts(&client).unwrap();
        assert_eq!((counts.segments, counts.retransmissions), (Some(1), Some(0)));
        set_window_clamp(&client, 10_000).unwrap();
    }

    #[test]
    fn another_socket_has_none_of_it() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(tcp_counts(&socket).is_err() && set_window_clamp(&socket, 1).is_err());
        assert!(accept_fast_open(&socket, 1).is_err() && connect_by_fast_open(&socket).is_err());
    }
}
