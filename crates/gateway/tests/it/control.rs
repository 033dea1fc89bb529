//! The control socket.

use crate::common::{CLEAN, Folder, GATEWAY, World, beside, configuration, exchange};
use gateway::Service;
use scenario::IpVersion;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A gateway with its socket.
fn start(world: &World, path: &Path) -> Service {
    let gateway = configuration("rate = \"50 Mbit/s\"");
    let started = world.at(GATEWAY, || Service::start(&gateway, None, Some(path)));
    started.unwrap_or_else(|error| panic!("{error}"))
}

/// What is answered to these bytes.
fn ask(path: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // It may be closed before all was read.
    let _ = stream.write_all(request);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn the_state_is_told_to_the_owner_and_the_socket_goes_with_the_gateway() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "status") else { return };
        let folder = Folder::new("status");
        let path = folder.0.join("below/lasthopd.sock");
        let service = start(&world, &path);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        exchange(&world, IpVersion::V4, [100_000, 200_000]);
        let status = gateway::status(&path).unwrap();
        assert_eq!(
            (status.lan.as_slice(), status.wan.as_str()),
            (&["link0".to_owned()][..], "link1")
        );
        assert_eq!((status.mode.as_str(), status.pid), ("spoof", std::process::id()));
        assert_eq!(status.counters["split connections"], 1);
        assert_eq!(status.counters["rate of the hop, bit/s"], 50_000_000);
        assert!(status.gauges.contains_key("held_bytes"), "{status:?}");
        for device in [&status.packets.lan, &status.packets.wan] {
            assert!(device.received > 3 && device.sent > 3, "{status:?}");
        }
        let text = status.to_string();
        assert!(text.contains("mode spoof") && text.contains("LAN link0, WAN link1"), "{text}");
        service.stop();
        assert!(!path.exists());
        assert!(gateway::status(&path).is_err());
    });
}

#[test]
fn requests_that_are_none_are_refused() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "refuse") else { return };
        let folder = Folder::new("refuse");
        let path = folder.0.join("socket");
        let service = start(&world, &path);
        let long = vec![b'x'; 100_000];
        for request in [
            &b"{}\n"[..],
            b"{\"command\":\"stop\"}\n",
            b"{\"command\":\"status\",\"of\":1}\n",
            b"\xff\xfe\n",
            b"{\"command\":\"status\"}{}\n",
            &long,
        ] {
            let answer = ask(&path, request);
            assert!(answer.is_empty() || answer.starts_with("{\"error\":"), "{answer}");
            // The long one is refused while it is still sent, which may cost the answer.
            assert!(!answer.is_empty() || request.len() > 4096);
        }
        assert!(ask(&path, b"{\"command\":\"status\"}\n").starts_with("{\"status\":"));
        service.stop();
    });
}

#[test]
fn who_stalls_holds_up_nobody_else_and_not_for_long() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "stall") else { return };
        let folder = Folder::new("stall");
        let path = folder.0.join("socket");
        let service = start(&world, &path);
        let stalled: Vec<UnixStream> = (0..5)
            .map(|_| {
                let mut stream = UnixStream::connect(&path).unwrap();
                stream.write_all(b"{").unwrap();
                stream
            })
            .collect();
        gateway::status(&path).unwrap();
        exchange(&world, IpVersion::V6, [100_000, 100_000]);
        // A byte now and then does not make it longer.
        let mut slow = &stalled[0];
        let began = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        while slow.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(200));
            let took = SystemTime::UNIX_EPOCH.elapsed().unwrap() - began;
            assert!(took < Duration::from_secs(15), "still connected after {took:?}");
        }
        // More than are served at a time: all are closed at once or within their time.
        let many: Vec<_> = (0..30).map(|_| UnixStream::connect(&path)).collect();
        exchange(&world, IpVersion::V4, [100_000, 100_000]);
        drop(many);
        std::thread::sleep(Duration::from_millis(300));
        gateway::status(&path).unwrap();
        // Nor do they hold up its end.
        let _stalled: Vec<_> = (0..5).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let began = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        service.stop();
        assert!(SystemTime::UNIX_EPOCH.elapsed().unwrap() - began < Duration::from_secs(3));
    });
}

#[test]
fn a_socket_that_was_left_is_replaced_and_one_that_answers_is_not() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "left") else { return };
        let folder = Folder::new("left");
        let path = folder.0.join("socket");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let service = start(&world, &path);
        let pid = gateway::status(&path).unwrap().pid;
        let Some(other) = World::new(CLEAN, "other") else { return };
        let gateway = configuration("");
        let second = other.at(GATEWAY, || Service::start(&gateway, None, Some(&path)));
        let error = second.err().unwrap().to_string();
        assert!(error.contains("another process answers"), "{error}");
        // It has left nothing behind, and the first one answers.
        let devices = other.at(GATEWAY, || live::Netlink::open().unwrap().index("lh-lan"));
        assert!(devices.is_err());
        assert_eq!(gateway::status(&path).unwrap().pid, pid);
        service.stop();
    });
}
