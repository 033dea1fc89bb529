//! The CPU time of packets and handshakes: `cargo run --release -p lasthop-channel --example speed`.
#![allow(clippy::unwrap_used, reason = "a failure ends the program with its cause")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use base::Time;
use channel::{Channel, Config, OVERHEAD, SecretKey, system_entropy};
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Instant;

const PAYLOAD: usize = 1400;
const PACKETS: u32 = 100;
const ROUNDS: u32 = 500;

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, end as u8], 5000))
}

fn configs() -> [Config; 2] {
    let secrets = [0, 1].map(|_| SecretKey::generate(&mut system_entropy).unwrap());
    let keys = [secrets[1].public(), secrets[0].public()];
    let [a, b] = secrets;
    let [first, second] = [Config::new(a, keys[0]), Config::new(b, keys[1])];
    [Config { address: Some(address(1)), ..first }, second]
}

/// Hands what one end has to send to the other, until both have nothing.
fn settle(ends: &mut [Channel; 2], now: Time) {
    let mut bytes = Vec::new();
    for turn in 0..6 {
        while ends[turn % 2].poll_transmit(now, &mut bytes).is_some() {
            ends[1 - turn % 2].handle_datagram(now, address(turn % 2), &mut bytes);
        }
    }
}

/// The least nanoseconds of a call in many short rounds, in some of which the machine did nothing else.
fn measure(name: &str, calls: u32, mut round: impl FnMut()) {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round();
        least = least.min(start.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    println!("{name:<44} {least:>9.0} ns");
}

fn main() {
    let now = Time::from_nanos(1);
    let mut ends = configs().map(|config| Channel::new(now, config, system_entropy).unwrap());
    ends[0].handle_timeout(now);
    settle(&mut ends, now);
    let [a, b] = &mut ends;

    let mut packet = vec![0; OVERHEAD + PAYLOAD];
    measure("seal 1400 bytes", PACKETS, || {
        for _ in 0..PACKETS {
            a.seal(now, black_box(&mut packet)).unwrap();
        }
    });
    let mut packets = vec![vec![0; OVERHEAD + PAYLOAD]; PACKETS as usize];
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        packets.iter_mut().for_each(|packet| assert!(a.seal(now, packet).is_ok()));
        let start = Instant::now();
        for packet in &mut packets {
            b.handle_datagram(now, address(0), packet).unwrap();
        }
        least = least.min(start.elapsed().as_nanos() as f64 / f64::from(PACKETS));
    }
    println!("{:<44} {least:>9.0} ns", "open 1400 bytes");

    // What a flood costs.
    packets.iter_mut().for_each(|packet| assert!(a.seal(now, packet).is_ok()));
    let original = packets[0].clone();
    let mut replay = original.clone();
    b.handle_datagram(now, address(0), &mut replay);
    let mut flood = |name: &str, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        measure(name, PACKETS, || {
            for _ in 0..PACKETS {
                assert!(b.handle_datagram(now, address(7), black_box(&mut bytes)).is_none());
            }
        });
    };
    flood("replayed packet of 1400 bytes", &original);
    let mut forged = packets[1].clone();
    forged[OVERHEAD] ^= 1;
    flood("packet of 1400 bytes, changed on its way", &forged);
    forged[13] ^= 1;
    flood("forged packet of 1400 bytes, right session", &forged);
    forged[2] ^= 1;
    flood("forged packet, another session", &forged);
    let mut initiation = vec![0; 86];
    initiation[..2].copy_from_slice(&[2, 1]);
    flood("forged initiation", &initiation);

    let configs = configs();
    measure("two ends made, and their handshake", 1, || {
        let new = |config: &Config| Channel::new(now, config.clone(), system_entropy).unwrap();
        let mut ends = [new(&configs[0]), new(&configs[1])];
        ends[0].handle_timeout(now);
        settle(&mut ends, now);
        assert!(ends[1].is_connected(now));
    });
}
