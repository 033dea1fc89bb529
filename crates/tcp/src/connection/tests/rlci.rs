//! Changes of connectivity (`koutsianas2007` §3; MECHANISMS.md section 7).

mod agreement;
mod handshake;
mod limits;
mod losses;
mod probing;

use super::*;
use crate::Pipe;
use crate::mechanism::{Mechanism, Rlci};
use wire::{ConnectivityChange, Encoding, LocalStatus};

/// Of a full-sized segment, timestamps take 12 bytes and the option 8; diagrams have 1000.
const SIZE: u16 = MSS as u16 + 20;
/// Nothing is signalled or echoed.
const IDLE: ConnectivityChange = ConnectivityChange {
    c: false,
    ec: false,
    cs: LocalStatus::Idle,
    ecs: false,
    encoding: Encoding::Experimental,
};
/// The first indication, its echo, and the acknowledgment of the echo.
const INDICATION: ConnectivityChange = ConnectivityChange { c: true, cs: LocalStatus::New, ..IDLE };
const ECHO: ConnectivityChange = ConnectivityChange { ec: true, ecs: true, ..IDLE };
const ECHO_ACK: ConnectivityChange =
    ConnectivityChange { c: true, cs: LocalStatus::EchoAck, ..IDLE };

const MOVED: Connectivity = Connectivity::Changed { window: None };

/// To the letter of the report.
fn strict() -> Rlci {
    rlci(|rlci| rlci.strict = true)
}

fn rlci(set: impl FnOnce(&mut Rlci)) -> Rlci {
    let mut rlci = Rlci::default();
    set(&mut rlci);
    rlci
}

/// The corrected protocol, without the report's gaps.
fn corrected() -> Rlci {
    Rlci::default()
}

fn with(rlci: Rlci) -> Config {
    let mechanisms = vec![Mechanism::Rlci(rlci)];
    Config { mss: SIZE, timestamps: true, mechanisms, ..config() }
}

/// Established at 100 ms, after a round trip of 100 ms, with a peer that has the option; our
/// timestamps are the time and 5000.
fn agreed(config: Config) -> Diagram {
    let mut t = offered(config);
    t.time(100);
    t.stamp = Some(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    t
}

/// Our SYN is in flight to such a peer.
fn offered(config: Config) -> Diagram {
    let mut t = Diagram::new(&config, Side::Active);
    t.offer.mss = Some(SIZE);
    t.offer.connectivity = IDLE.into();
    t.recv([syn().change(IDLE)]);
    t
}

/// The same with an endless stream, ten segments of which are in flight since 100 ms.
fn flowing(config: Config) -> Diagram {
    let mut t = agreed(config);
    t.write(1 << 40);
    t.recv(each(1..=10));
    t
}

/// The segments of a range, each with this option.
fn each_with(range: core::ops::RangeInclusive<u32>, change: ConnectivityChange) -> Vec<Seg> {
    each(range).into_iter().map(|seg| seg.change(change)).collect()
}

/// The peer's segment goes, with the timestamp of the present.
fn answer(t: &mut Diagram, seg: Seg) {
    t.stamp = Some((t.now.as_nanos() / 1_000_000) as u32);
    t.send(seg);
}

/// The peer acknowledges what was sent with this timestamp.
fn answer_to(t: &mut Diagram, echoes: u32, seg: Seg) {
    t.echoes = Some(echoes);
    answer(t, seg);
    t.echoes = None;
}
