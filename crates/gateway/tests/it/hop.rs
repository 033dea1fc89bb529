//! The hop goes down, and comes back.

use crate::common::{GATEWAY, SERVER, World, alone};
use live::Netlink;
use scenario::IpVersion;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// A round trip of 60 ms.
const HOP: &str = "rate = \"20 Mbit/s\"\ndelay = \"30 ms\"\nqueue = \"200 packets\"";

/// The hop is down for so long: timers of the gateway have expired after 0.2 to 0.3, 0.6 to 0.9, 1.4 to 2.1 and 3 to 4.5
/// seconds, and expire next after 6.2 or more.
const OUTAGE: Duration = Duration::from_millis(4_700);

/// How long after an outage the server gets new bytes of an upload through a gateway with these keys.
#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn silence_after_outage(keys: &str, label: &str) -> Option<Duration> {
    let world = World::new(HOP, label)?;
    let daemon = world.gateway(keys);
    let (listener, address) = world.listen(IpVersion::V4);
    let (arrived, arrivals) = mpsc::channel();
    let is_over = Arc::new(AtomicBool::new(false));
    let mut user = world.connect(address);
    let (stream, _) = listener.accept().unwrap();
    let mut reading = stream.try_clone().unwrap();
    let server = thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while reading.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {
            // It is not asked for any more at the end.
            let _ = arrived.send(Instant::now());
        }
    });
    let sending = {
        let is_over = Arc::clone(&is_over);
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) && user.write_all(&[7; 10_000]).is_ok() {}
        })
    };
    arrivals.recv_timeout(Duration::from_secs(10)).unwrap();
    thread::sleep(Duration::from_secs(2));
    let at_gateway = |f: &(dyn Fn(&Netlink) + Sync)| {
        world.at(GATEWAY, || f(&Netlink::open().unwrap()));
    };
    at_gateway(&|netlink| netlink.set_down("link1").unwrap());
    thread::sleep(OUTAGE);
    while arrivals.try_recv().is_ok() {}
    at_gateway(&|netlink| {
        netlink.set_up("link1").unwrap();
        // It was removed with the device's last route.
        netlink.add_route(world.address(SERVER, IpVersion::V4), 32, "link1", None).unwrap();
    });
    let up = Instant::now();
    let silence = arrivals.recv_timeout(Duration::from_secs(30)).unwrap().duration_since(up);
    is_over.store(true, Ordering::Relaxed);
    daemon.stop();
    sending.join().unwrap();
    drop(arrivals);
    // The gateway's reset may be lost.
    let _ = stream.shutdown(Shutdown::Both);
    server.join().unwrap();
    Some(silence)
}

#[test]
fn once_the_hop_is_there_again_connections_go_on_at_once() {
    alone(|| {
        let worlds = [
            ("", "hop"),
            ("mode = \"split\"\nrate = \"20 Mbit/s\"", "hop-split"),
            ("tcp = { mechanisms = [] }", "hop-deaf"),
        ];
        // At the same time: each mostly waits.
        let silences = thread::scope(|scope| {
            let start = |(keys, label): (&'static str, &'static str)| {
                let thread = thread::Builder::new().name(label.to_owned());
                thread.spawn_scoped(scope, move || silence_after_outage(keys, label)).unwrap()
            };
            worlds.map(start).map(|world| world.join().unwrap())
        });
        let [Some(spoof), Some(split), Some(deaf)] = silences else { return };
        for (mode, silence) in [("spoof", spoof), ("split", split)] {
            assert!(silence < Duration::from_millis(700), "{mode}: {silence:?}");
        }
        assert!(deaf > Duration::from_secs(1), "without the indication: {deaf:?}");
    });
}
