//! The kernel's settings for flows. What the kernel cannot set keeps its default.

use crate::Error;
use rustix::net::sockopt;
use scenario::{Flow, Scenario, Stack, Traffic};
use socket2::{Socket, TcpKeepalive};
use std::time::Duration;
use tcp::congestion::Congestion;
use tcp::{Config, EcnMode};

/// The settings of a node's whole network.
pub(crate) fn sysctls(
    scenario: &Scenario,
    node: usize,
) -> Result<Vec<(&'static str, String)>, Error> {
    // Of a buffer that the kernel tunes, half is window. Other buffers have their own size.
    let tuned = |flow: &Flow| [&flow.sender, &flow.receiver].map(|config| config.receive_window);
    let windows = scenario.flows.iter().flat_map(tuned).filter(|window| window.is_tuned());
    let largest = windows.map(|window| 2 * u64::from(window.maximum)).max().unwrap_or(256 << 20);
    let receive_buffers = format!("4096 131072 {largest}");
    const SEND_BUFFERS: &str = "4096 131072 268435456";
    let mut sysctls: Vec<(&str, String)> = [
        // Connections share no metrics.
        ("net.ipv4.tcp_no_metrics_save", "1"),
        ("net.ipv4.tcp_rmem", &receive_buffers),
        ("net.ipv4.tcp_wmem", SEND_BUFFERS),
        // Any number of transfers may start at once.
        ("net.core.somaxconn", "65535"),
        ("net.ipv4.tcp_max_syn_backlog", "65535"),
        ("net.ipv4.tcp_syncookies", "0"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into();
    let here = |flow: &&Flow| {
        let ends = [(flow.from, flow.stacks.from), (flow.to, flow.stacks.to)];
        ends.contains(&(node, Stack::Linux)) && !matches!(flow.traffic, Traffic::Datagrams(_))
    };
    let mut flows = scenario.flows.iter().filter(here);
    let Some(first) = flows.next() else { return Ok(sysctls) };
    let conflict = |setting, second: &Flow| Error::Conflict {
        node: scenario.nodes[node].clone(),
        setting,
        first: first.name.clone(),
        second: second.name.clone(),
    };
    type Number = (&'static str, &'static str, fn(&Config) -> u8);
    // With SACK the kernel always has RACK-TLP and F-RTO.
    let numbers: [Number; 4] = [
        ("recovery", "net.ipv4.tcp_sack", |config| config.recovery.needs_sack().into()),
        ("timestamps", "net.ipv4.tcp_timestamps", |config| config.timestamps.into()),
        // AccECN is in Linux since 6.18.
        ("ecn", "net.ipv4.tcp_ecn", |config| match config.ecn {
            EcnMode::Off => 0,
            EcnMode::Classic => 1,
            EcnMode::Accurate => 3,
        }),
        ("mtu_probing", "net.ipv4.tcp_mtu_probing", |config| config.mtu_probing as u8),
    ];
    for (setting, name, number) in numbers {
        let value = number(&first.sender);
        if let Some(other) = flows.clone().find(|flow| number(&flow.sender) != value) {
            return Err(conflict(setting, other));
        }
        sysctls.push((name, value.to_string()));
    }
    Ok(sysctls)
}

/// The settings of a node for programs of the user's: those of the machine, but that any user may use all ports, and
/// connections share no metrics.
pub(crate) fn for_programs() -> Vec<(&'static str, String)> {
    let settings =
        [("net.ipv4.tcp_no_metrics_save", "1"), ("net.ipv4.ip_unprivileged_port_start", "0")];
    settings.map(|(name, value)| (name, value.to_owned())).into()
}

/// Applies a flow's settings to a TCP socket, before it connects or listens.
pub(crate) fn apply(socket: &Socket, flow: &Flow, config: &Config) -> Result<(), Error> {
    let refused = |what: String| {
        move |problem: std::io::Error| Error::Setting {
            flow: flow.name.clone(),
            what,
            problem: problem.to_string(),
        }
    };
    let control = match &flow.stacks.congestion {
        Some(name) => name.as_str(),
        None => match config.congestion {
            Congestion::Cubic => "cubic",
            Congestion::Aimd => "reno",
            // Version 1 in Linux 6.
            Congestion::Bbr => "bbr",
            // A kernel module that may be missing.
            Congestion::Hybla => "hybla",
            // A kernel module that may be missing; it is closer to Westwood+ (net/ipv4/tcp_westwood.c).
            Congestion::Westwood2001 | Congestion::WestwoodPlus => "westwood",
        },
    };
    socket
        .set_tcp_congestion(control.as_bytes())
        .map_err(refused(format!("the congestion control `{control}`")))?;
    // The range that the kernel accepts: linux/tcp.h and net/ipv4/tcp.c, do_tcp_setsockopt.
    let mss = config.mss.clamp(88, 32_767);
    socket.set_tcp_mss(u32::from(mss)).map_err(refused(format!("an MSS of {mss} bytes")))?;
    socket.set_tcp_nodelay(!config.nagle).map_err(refused("TCP_NODELAY".to_owned()))?;
    // Otherwise the kernel tunes the buffer, too.
    if !config.receive_window.is_tuned() {
        let window = config.receive_window.maximum;
        // The kernel doubles it for its overhead.
        sockopt::set_socket_recv_buffer_size_force(socket, window as usize).map_err(|error| {
            refused(format!("a receive buffer of {window} bytes"))(error.into())
        })?;
        live::sockopt::set_window_clamp(socket, window)?;
    }
    if let Some(alive) = config.keep_alive {
        let time = |span: base::Duration| Duration::from_nanos(span.as_nanos()).max(SECOND);
        let keep_alive = TcpKeepalive::new()
            .with_time(time(alive.idle))
            .with_interval(time(alive.interval))
            .with_retries(alive.probes);
        socket.set_tcp_keepalive(&keep_alive).map_err(refused("keep-alives".to_owned()))?;
    }
    if let Some(timeout) = config.user_timeout {
        let timeout = Duration::from_nanos(timeout.as_nanos());
        socket.set_tcp_user_timeout(Some(timeout)).map_err(refused("a user timeout".to_owned()))?;
    }
    Ok(())
}

/// The shortest time of keep-alives that the kernel accepts.
const SECOND: Duration = Duration::from_secs(1);
