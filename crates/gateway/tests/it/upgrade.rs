//! Connections whose gateway is replaced, or killed.

use crate::common::{CLEAN, GATEWAY, USER, World, alone, beside, content, exchange};
use crate::process::Running;
use gateway::{How, Record, Status};
use live::Netlink;
use live::netlink::Rule;
use scenario::IpVersion;
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

fn status(running: &Running) -> Status {
    gateway::status(&running.path("socket")).unwrap()
}

/// A transfer of so many bytes each way, at whose ends everything is checked. The last tenth of them is sent once
/// `goes_on` is set.
fn transfer(
    world: &World,
    ip: IpVersion,
    number: u64,
    bytes: usize,
    goes_on: &Arc<AtomicBool>,
) -> Vec<JoinHandle<()>> {
    let (listener, address) = world.listen(ip);
    let user = world.connect(address);
    let server = listener.accept().unwrap().0;
    server.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let ends = [(user, 2 * number), (server, 2 * number + 1)];
    let threads = ends.map(|(mut stream, own)| {
        let mut copy = stream.try_clone().unwrap();
        let goes_on = Arc::clone(goes_on);
        let sending = thread::spawn(move || {
            let content = content(own, bytes);
            let (first, last) = content.split_at(bytes / 10 * 9);
            copy.write_all(first).unwrap();
            while !goes_on.load(Relaxed) {
                thread::sleep(Duration::from_millis(10));
            }
            copy.write_all(last).unwrap();
            copy.shutdown(Shutdown::Write).unwrap();
        });
        let receiving = thread::spawn(move || {
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap_or_else(|error| panic!("{own}: {error}"));
            assert!(got == content(own ^ 1, bytes), "{own}: {} bytes of {bytes}", got.len());
        });
        [sending, receiving]
    });
    threads.into_iter().flatten().collect()
}

#[test]
fn an_upgrade_goes_on_with_every_connection_and_tells_no_end() {
    const BYTES: usize = 1_500_000;
    let keys = [
        "",
        "rate = \"50 Mbit/s\"\ncache = \"200 kB\"",
        "mode = \"split\"\nconnect = \"at-once\"\nteardown = \"end-to-end\"\nworkers = 3",
    ];
    beside(|| {
        for keys in keys {
            let Some(world) = World::new(CLEAN, "upgrade") else { return };
            let keys =
                format!("records = \"FOLDER/records\"\n{keys}\n[tcp]\ntime_wait = \"50 ms\"");
            let running = Running::with(&world, "upgrade", &keys);
            running.told("READY=1");
            let versions = [IpVersion::V4, IpVersion::V6];
            let goes_on = Arc::default();
            let transfers: Vec<_> = (0..10)
                .flat_map(|number| {
                    transfer(&world, versions[number as usize % 2], number, BYTES, &goes_on)
                })
                .collect();
            for _ in 0..3 {
                thread::sleep(Duration::from_millis(200));
                let netlink = world.at(GATEWAY, || Netlink::open().unwrap());
                let rules = netlink.rules();
                // Those of a version that got all packets.
                for rule in &rules {
                    netlink.add_rule(&Rule { protocol: None, ..rule.clone() }).unwrap();
                    netlink.remove_rule(rule).unwrap();
                }
                let before = status(&running);
                let upgraded = running.call(&world, &["upgrade"]);
                let text = String::from_utf8_lossy(&upgraded.stderr);
                assert!(
                    upgraded.status.success(),
                    "{text}{}",
                    fs::read_to_string(running.path("log")).unwrap()
                );
                running.told("READY=1");
                let found = netlink.rules();
                assert!(found.len() == 8 && rules.iter().all(|rule| found.contains(rule)));
                let after = status(&running);
                assert_eq!(after.pid, before.pid);
                assert_eq!(before.gauges["split_connections"], 10);
                assert_eq!(after.counters["connections taken over"], 10);
                assert_eq!(after.gauges["ends_to_be_reset"], 0);
                let pause = after.gauges["upgrade_pause_milliseconds"];
                assert!((1..60_000).contains(&pause), "packets waited for {pause} ms");
            }
            goes_on.store(true, Relaxed);
            for thread in transfers {
                let joined = thread.join();
                assert!(joined.is_ok(), "{keys}: {:?}", status(&running));
            }
            exchange(&world, IpVersion::V4, [100_000, 100_000]);
            assert_eq!(status(&running).packets.without_memory, 0);
            for _ in 0..100 {
                if status(&running).gauges["split_connections"] == 0 {
                    break;
                }
                thread::sleep(Duration::from_millis(50));
            }
            thread::sleep(Duration::from_millis(100));
            let records = fs::read_to_string(running.path("records")).unwrap();
            let records: Vec<Record> =
                records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(records.len(), 11);
            let whole = records.iter().filter(|record| record.ended == How::Closed);
            let whole = whole.filter(|record| {
                let Record { received_from_client: up, received_from_server: down, .. } = record;
                [*up, *down] == [BYTES as u64; 2]
            });
            assert_eq!(whole.count(), 10, "{records:?}");
        }
    });
}

#[test]
fn an_upgrade_that_is_not_possible_changes_nothing() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "upgrade-no") else { return };
        let running = Running::start(&world, "upgrade-no");
        running.told("READY=1");
        let transfers = transfer(&world, IpVersion::V4, 1, 500_000, &Arc::new(true.into()));
        // Only a restart can change this.
        let config = running.path("lasthopd.toml");
        let good = fs::read_to_string(&config).unwrap();
        for (bad, expected) in [
            ("lan = \"link0\"\nwan = \"link9\"\n", "only a restart can change `wan`"),
            ("lan = \"link0\"\nwan = 7\n", "lasthopd.toml:2"),
        ] {
            fs::write(&config, bad).unwrap();
            let upgraded = running.call(&world, &["upgrade"]);
            let text = String::from_utf8_lossy(&upgraded.stderr);
            assert!(!upgraded.status.success() && text.contains(expected), "{text}");
        }
        fs::write(&config, good).unwrap();
        assert_eq!(status(&running).gauges["split_connections"], 1);
        assert_eq!(status(&running).counters["connections taken over"], 0);
        transfers.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Both ends of a connection over which a byte has gone each way.
fn open(world: &World, ip: IpVersion) -> [TcpStream; 2] {
    let (listener, address) = world.listen(ip);
    let mut user = world.connect(address);
    let mut server = listener.accept().unwrap().0;
    server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    user.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    user.write_all(&[1]).unwrap();
    server.read_exact(&mut [0]).unwrap();
    server.write_all(&[2]).unwrap();
    user.read_exact(&mut [0]).unwrap();
    [user, server]
}

#[test]
fn after_a_kill_packets_pass_at_once_and_the_next_process_resets_what_was_carried() {
    beside(|| {
        for keys in ["workers = 3", "mode = \"split\""] {
            let Some(world) = World::new(CLEAN, "kill") else { return };
            let running = Running::with(&world, "kill", keys);
            running.told("READY=1");
            let ended = open(&world, IpVersion::V4);
            drop(ended);
            let idle = open(&world, IpVersion::V6);
            // More than a host resets in a second that knows nothing of them; these ends send nothing more.
            let silent: Vec<_> = (0..150).map(|_| open(&world, IpVersion::V4)).collect();
            silent.iter().for_each(|[_, server]| server.shutdown(Shutdown::Write).unwrap());
            let [mut user, mut server] = open(&world, IpVersion::V4);
            // The gateway has acknowledged most of this, and the server reads nothing of it.
            let sending = thread::spawn(move || {
                let error = user.write_all(&content(1, 30_000_000)).unwrap_err();
                assert!(is_reset(error.kind()), "{error}");
            });
            thread::sleep(Duration::from_millis(500));
            let running = running.killed(&world, || {
                exchange(&world, IpVersion::V4, [10_000, 10_000]);
                exchange(&world, IpVersion::V6, [10_000, 10_000]);
            });
            running.told("READY=1");
            let mut got = vec![0; 1 << 16];
            let reset = loop {
                match server.read(&mut got) {
                    Ok(0) => panic!("the stream ends as if it were whole"),
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert!(is_reset(reset.kind()), "{reset}");
            sending.join().unwrap();
            let silent = silent.into_iter().map(|[_, server]| server);
            for mut end in idle.into_iter().chain(silent) {
                let error = end.read(&mut [0]).unwrap_err();
                assert!(is_reset(error.kind()), "{error}");
            }
            exchange(&world, IpVersion::V4, [100_000, 100_000]);
            let state = status(&running);
            assert_eq!(state.counters["split connections"], 1);
            assert_eq!(world.at(GATEWAY, || Netlink::open().unwrap().rules()).len(), 8);
            // A gateway that ends in order leaves nothing to be reset.
            let alive = open(&world, IpVersion::V4);
            rustix::process::kill_process(
                rustix::process::Pid::from_child(&running.child),
                rustix::process::Signal::TERM,
            )
            .unwrap();
            let journal = running.path("socket").with_extension("journal");
            assert!(journal.exists());
            let log = running.path("log");
            for mut end in alive {
                let error = end.read(&mut [0]).unwrap_err();
                assert!(is_reset(error.kind()), "{error}");
            }
            let text = fs::read_to_string(log).unwrap();
            assert!(text.contains("resetting those of a gateway"), "{text}");
            let exists_after = {
                let mut running = running;
                running.child.wait().unwrap();
                journal.exists()
            };
            // Those that were killed and have not answered are still in it.
            assert!(!exists_after, "{}", fs::read_to_string(&journal).unwrap_or_default().len());
        }
    });
}

fn is_reset(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

#[test]
fn a_gateway_that_was_restarted_opens_connections_anew_that_servers_remember() {
    alone(|| {
        let Some(world) = World::new(CLEAN, "reuse") else { return };
        let mut running = Running::with(&world, "reuse", "mode = \"split\"");
        running.told("READY=1");
        let (listener, address) = world.listen(IpVersion::V4);
        // The same ports each time; the server closes first, and remembers.
        let mut talk = |port: u16| {
            let local = SocketAddr::new(world.address(USER, IpVersion::V4), port);
            let user = world.at(USER, || {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
                socket.set_reuse_address(true).unwrap();
                socket.bind(&local.into()).unwrap();
                socket.connect_timeout(&address.into(), Duration::from_secs(10)).unwrap();
                socket
            });
            drop(listener.accept().unwrap());
            assert_eq!((&user).read(&mut [0]).unwrap(), 0);
        };
        let ports = 2000..2016;
        ports.clone().for_each(&mut talk);
        thread::sleep(Duration::from_millis(200));
        running = running.ended_by(rustix::process::Signal::TERM, &world, || ());
        running.told("READY=1");
        let clock = live::Clock::start();
        ports.for_each(&mut talk);
        let took = clock.now();
        // One that is refused at first takes a second.
        assert!(took < base::Time::ZERO + base::Duration::from_millis(900), "{took:?}");
    });
}
