//! Sealing and opening allocate nothing, and a flood leaves memory as it is.

use base::{Duration, Time};
use channel::{Channel, Config, HEADER, OVERHEAD, SecretKey};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Counts allocations and bytes, and leaves them to the system.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call goes unchanged to the system's allocator.
#[allow(unsafe_code, reason = "an allocator")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(size as i64 - layout.size() as i64, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, end as u8], 5000))
}

fn entropy(first: u8) -> impl FnMut() -> Option<[u8; 32]> + Send {
    let mut drawn = 0u64;
    move || {
        let mut bytes = [first; 32];
        drawn += 1;
        bytes[..8].copy_from_slice(&drawn.to_be_bytes());
        Some(bytes)
    }
}

/// Two connected ends, and all that was sent.
fn connected(now: Time) -> ([Channel; 2], Vec<Vec<u8>>) {
    let secret = |n: u8| SecretKey::generate(&mut move || Some([n; 32])).expect("randomness");
    let mut ends = [0u8, 1].map(|end| {
        let config = Config::new(secret(end + 1), secret(2 - end).public());
        let config = Config { address: Some(address(1 - usize::from(end))), ..config };
        Channel::new(now, config, entropy(end)).expect("keys that fit")
    });
    let (mut sent, mut bytes) = (Vec::new(), Vec::new());
    ends[0].handle_timeout(now);
    for turn in 0..6 {
        let (from, to) = (turn % 2, 1 - turn % 2);
        while ends[from].poll_transmit(now, &mut bytes).is_some() {
            sent.push(bytes.clone());
            ends[to].handle_datagram(now, address(from), &mut bytes.clone());
        }
    }
    assert!(ends.iter().all(|end| end.is_connected(now)));
    while ends.iter_mut().any(|end| end.poll_event().is_some()) {}
    (ends, sent)
}

#[test]
fn payloads_cost_no_allocation_and_a_flood_no_memory() {
    let mut now = Time::ZERO + Duration::from_secs(1);
    let ([mut a, mut b], handshake) = connected(now);
    let mut packet = vec![0; OVERHEAD + 1400];

    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for number in 0..2000u32 {
        packet[HEADER..HEADER + 4].copy_from_slice(&number.to_be_bytes());
        assert_eq!(a.seal(now, &mut packet), Ok(address(1)));
        let payload = b.handle_datagram(now, address(0), &mut packet).expect("a payload");
        assert_eq!((payload.len(), &payload[..4]), (1400, &number.to_be_bytes()[..]));
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);

    // One that does not arrive as it was sent.
    a.seal(now, &mut packet).expect("a session");
    // Of each kind: garbage, forgeries of what was sent, and replays. All are handled as if there were nothing
    // else to do, and answered.
    let mut out = Vec::with_capacity(200);
    let mut flood = |channel: &mut Channel, now, count: u32| {
        for number in 0..count {
            let mut bytes = match number % 4 {
                0 => vec![1, (number / 4 % 8) as u8, number as u8, 7, 7],
                1 => handshake[number as usize / 4 % handshake.len()].clone(),
                _ => packet.clone(),
            };
            if number % 4 > 1 {
                let at = number as usize / 4 % bytes.len().min(100);
                bytes[at] ^= 0x10;
            }
            assert!(channel.handle_datagram(now, address(7), &mut bytes).is_none());
            while channel.poll_transmit(now, &mut out).is_some() {}
        }
    };
    // Events and the keys of handshakes make room once.
    flood(&mut b, now, 1000);
    let before = BYTES.load(Ordering::Relaxed);
    for _ in 0..10 {
        now += Duration::from_millis(10);
        flood(&mut b, now, 500);
    }
    assert_eq!(BYTES.load(Ordering::Relaxed) - before, 0);
    assert_eq!(b.poll_event(), None);
    let statistics = b.statistics();
    assert!(statistics.forged > 1000 && statistics.stale > 300, "{statistics:?}");
}
