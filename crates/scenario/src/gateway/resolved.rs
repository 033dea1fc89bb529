//! What a configuration comes to, with what holds where nothing is written.

use super::esp::{Esp, Network};
use super::written::{Hop, Interfaces, Listening, Written};
use super::{Gateway, Mode, Notifier, Peer, Work};
use crate::alone::Alone;
use crate::flow::{IpVersion, Profile};
use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Count, Written as Quantity};
use crate::reading::shape::{AtLeastOne, Both};
use base::settings::{Bytes, Span};
use base::units::Size;
use middlebox::{Connect, Mobile, Pair, SpepStation, Spoofer, Station};
use std::net::{Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use tcp::congestion::Congestion;
use tcp::mechanism::{Eln, Mechanism, Rlci};
use toml::Spanned;

/// The UDP port at which gateways listen to each other, by default.
const PORT: u16 = 51_995;
/// What is held of a connection in each direction, by default: as much as auto-tuned windows take at most.
const CACHE: Bytes = Bytes(16 << 20);
/// The congestion control over the hop, by default: losses by corruption below its threshold do not slow it down
/// (`bench/gateway_congestion.py`).
const CONGESTION: Congestion = Congestion::Bbr;
/// BBR's loss threshold by default where the rate of the hop is known. The gateway sends no faster, so losses are
/// corruption; BBR's probes at 1.25 times the bandwidth make up for as many.
const LOSS_THRESHOLD: f64 = 0.2;
/// What the largest packet of a hop may be, bytes.
const MTU: RangeInclusive<u32> = 256..=65_535;
/// What the largest packet may be of a path under ESP, bytes: IPv6 needs the least (RFC 8200 §5).
const ESP_MTU: RangeInclusive<u32> = 1280..=65_535;
/// The most threads that carry connections: queues of a TUN device (`MAX_TAP_QUEUES` of the kernel's tun.c).
const WORKERS: u64 = 256;
/// The longest name of an interface (`IFNAMSIZ` of linux/if.h, without the final 0).
const LONGEST_NAME: usize = 15;

/// The gateway that is written, unless there are problems.
pub(super) fn resolve(
    Both(mut written, own): Both<Written, Alone>,
    problems: &mut Vec<Problem>,
) -> Option<Gateway> {
    let tcp = with_defaults(own, &written).resolve(Profile::default(), IpVersion::V4, problems);
    let lan = written.lan.take().map_or_else(Vec::new, |Interfaces(names)| names);
    let wan = written.wan.take()?;
    check_interfaces(&lan, &wan, problems);
    check_connect(&written, problems);
    let workers = workers(&written, problems);
    let esp = esp(&mut written, problems);
    let metrics = written.metrics.map(|Listening(address)| address);
    let records = written.records.take().map(PathBuf::from);
    let work = work(written, problems)?;
    let lan = lan.into_iter().map(Spanned::into_inner).collect();
    Some(Gateway { lan, wan: wan.into_inner(), work, workers, tcp: tcp?, metrics, records, esp })
}

/// The settings of TCP, with those that a mode has by default.
fn with_defaults(own: Alone, written: &Written) -> Alone {
    let mut reprobing = Rlci::default();
    reprobing.signal = false;
    match written.mode {
        // Over the hop, SRP carries the connections; or there are none.
        Mode::Pair | Mode::Spep | Mode::Notify => own,
        Mode::Mobile => {
            reprobing.rate_limit = Some(false);
            own.or_mechanisms(vec![Mechanism::Rlci(reprobing)])
        }
        // Losses have a cause, and the path to the hop is shared with others.
        Mode::Split if written.esp.is_some() => own
            .or_mechanisms(vec![Mechanism::Eln(Eln::of_every_hole()), Mechanism::Rlci(reprobing)]),
        // Its users' ends know nothing of the hop.
        Mode::Spoof | Mode::Split | Mode::Station => {
            // A mobile host may move as often as it does: its messages are authentic.
            reprobing.rate_limit = (written.mode == Mode::Station).then_some(false);
            // Users compare it with TCP that is not paced.
            let mut own = own.or_congestion(CONGESTION).or_bad_hop().or_prompt_start();
            // Base stations send SRP at this rate, not TCP.
            if written.rate.is_some() && written.mode != Mode::Station {
                own = own.or_loss_threshold(LOSS_THRESHOLD);
            }
            own.or_mechanisms(vec![Mechanism::Rlci(reprobing)])
        }
    }
}

/// Whether the interfaces have names that an interface can have, and are others at each side.
fn check_interfaces(lan: &[Spanned<String>], wan: &Spanned<String>, problems: &mut Vec<Problem>) {
    for name in lan.iter().chain([wan]) {
        let text = name.get_ref();
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
        if text.is_empty() || text.len() > LONGEST_NAME || !text.bytes().all(fits) {
            problems.push(Problem::at(name.span(), "expected the name of a network interface"));
        }
    }
    if let Some(both) = lan.iter().find(|name| name.get_ref() == wan.get_ref()) {
        let message = format!("`{}` is the interface of the hop, too", both.get_ref());
        problems.push(Problem::at(both.span(), message));
    }
}

/// Whether the mode can accept clients so.
fn check_connect(written: &Written, problems: &mut Vec<Problem>) {
    let Some(connect) = &written.connect else { return };
    let message = match (written.mode, connect.get_ref()) {
        (Mode::Split, Connect::EndToEnd) => {
            "mode \"split\" does not let handshakes pass end to end"
        }
        (Mode::Spoof, Connect::First | Connect::AtOnce) | (Mode::Pair, _) => {
            "only mode \"split\" accepts clients by handshakes of its own"
        }
        _ => return,
    };
    problems.push(Problem::at(connect.span(), message));
}

/// The threads that carry connections.
fn workers(written: &Written, problems: &mut Vec<Problem>) -> usize {
    let Some(workers) = &written.workers else { return 1 };
    let Count(count) = *workers.get_ref();
    let is_esp = written.esp.is_some();
    if count > WORKERS {
        let message = format!("expected at most {WORKERS} threads");
        problems.push(Problem::at(workers.span(), message));
    } else if count > 1 && (written.rate.is_some() || written.mode == Mode::Pair || is_esp) {
        let message = match written.mode {
            Mode::Pair => "mode \"pair\" has one association, and one thread for it",
            _ if is_esp => "one thread carries what is under ESP (`esp`)",
            _ => "one thread sends at the `rate` of the hop",
        };
        problems.push(Problem::at(workers.span(), message));
    }
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// How what goes over the hop is protected.
fn esp(written: &mut Written, problems: &mut Vec<Problem>) -> Option<Esp> {
    let host = written.esp.take()?.into_inner();
    let networks = match written.esp_networks.take() {
        Some(AtLeastOne(networks)) => networks.into_iter().map(|Network(of)| of).collect(),
        None => vec![Network::all()],
    };
    let mtu = longest(written.esp_mtu.take(), &ESP_MTU, problems);
    Some(Esp { host, key: std::mem::take(&mut written.esp_key).into(), networks, mtu })
}

/// What the mode does.
fn work(mut written: Written, problems: &mut Vec<Problem>) -> Option<Work> {
    let [cache, memory] =
        [written.cache.take(), written.memory.take()].map(|amount| bytes(amount?, problems));
    let [connections, connections_per_user] =
        [written.connections, written.connections_per_user].map(|most| most.map(count));
    let rate = written.rate.map(|Hop(rate)| rate);
    let share = written.share.take().is_some_and(Spanned::into_inner);
    let (teardown, hop) = (written.teardown, Gateway::HOP.to_owned());
    Some(match written.mode {
        Mode::Spoof | Mode::Split => {
            let default = Spoofer::default();
            let connect = written.connect.map(Spanned::into_inner);
            Work::Spoof(Spoofer {
                connect: match written.mode {
                    Mode::Split => connect.unwrap_or(Connect::First),
                    _ => Connect::EndToEnd,
                },
                cache: cache.or(Some(CACHE)),
                teardown,
                hop: Some(hop),
                rate,
                connections: connections.unwrap_or(default.connections),
                connections_per_user,
                memory,
            })
        }
        Mode::Pair => {
            let default = Pair::default();
            let pair = Pair {
                hop,
                rate,
                cache: cache.unwrap_or(default.cache),
                teardown,
                connections: connections.unwrap_or(default.connections),
                connections_per_user,
                memory,
                share,
                ..default
            };
            Work::Pair(pair, peer(written, problems)?)
        }
        Mode::Station => {
            let default = Station::default();
            let station = Station {
                cache: cache.unwrap_or(CACHE),
                semantics: teardown,
                rate: rate.unwrap_or_default(),
                share,
                connections: connections.unwrap_or(default.connections),
                ..default
            };
            Work::Station(station, written.network_key.into())
        }
        Mode::Mobile => {
            let mobile = Mobile {
                hop: written.hop,
                rate: rate.unwrap_or_default(),
                share,
                cache: cache.unwrap_or(CACHE),
                semantics: teardown,
                ..Mobile::default()
            };
            Work::Mobile(mobile, written.network_key.into())
        }
        Mode::Spep => {
            let default = SpepStation::default();
            let station = SpepStation {
                hop,
                flows: written.flows.map_or(default.flows, count),
                idle: written.idle.map_or(default.idle, |Quantity(idle)| Span(idle)),
                ..default
            };
            Work::Spep(station, written.data_path)
        }
        Mode::Notify => Work::Notify(Notifier {
            link_socket: written.link_socket.into(),
            notices: count(written.notices),
        }),
    })
}

/// The other gateway of a pair.
fn peer(written: Written, problems: &mut Vec<Problem>) -> Option<Peer> {
    let Some(peer_key) = written.peer_key else {
        problems.push(Problem {
            message: "mode \"pair\" needs `peer_key`, the public key of the other gateway"
                .to_owned(),
            help: Some("`lasthopd key` at the other gateway prints it".to_owned()),
            ..Problem::default()
        });
        return None;
    };
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT));
    Some(Peer {
        address: written.peer.map(|Listening(address)| address),
        peer_key: peer_key.into_inner(),
        key: written.key.into(),
        listen: written.listen.map_or(any, |Listening(address)| address),
        mtu: longest(written.mtu, &MTU, problems),
    })
}

fn bytes(amount: Spanned<Amount>, problems: &mut Vec<Problem>) -> Option<Bytes> {
    if let Size::Bytes(bytes @ 1..) = amount.get_ref().0 {
        return Some(Bytes(bytes));
    }
    problems.push(Problem::at(amount.span(), "expected bytes, 1 or more"));
    None
}

fn count(Count(count): Count) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The length of the largest packet, bytes, if one is written.
fn longest(
    mtu: Option<Spanned<Count>>,
    permitted: &RangeInclusive<u32>,
    problems: &mut Vec<Problem>,
) -> Option<u32> {
    let mtu = mtu?;
    let bytes = u32::try_from(mtu.get_ref().0).unwrap_or(u32::MAX);
    if !permitted.contains(&bytes) {
        let (least, most) = (permitted.start(), permitted.end());
        problems.push(Problem::at(mtu.span(), format!("expected bytes, {least} to {most}")));
    }
    Some(bytes)
}
