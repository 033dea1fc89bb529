//! What a control leaves in the kernel: nothing.

use crate::permitted;
use controls::{Control, Error, Loaded};
use libbpf_rs::MapType;
use libbpf_rs::ProgramType;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Everything that a control can leave: names, maps and programs.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    available: BTreeSet<String>,
    maps: BTreeSet<u32>,
    programs: BTreeSet<u32>,
}

fn traces() -> Traces {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let names = std::fs::read_to_string(path).unwrap();
    let ours =
        |name: &str| ["lasthop_", "calls", ".rodata.set"].iter().any(|o| name.starts_with(o));
    let maps = MapInfoIter::default();
    let maps = maps.filter(|m| m.ty == MapType::StructOps || ours(&m.name.to_string_lossy()));
    let programs = ProgInfoIter::default().filter(|p| p.ty == ProgramType::StructOps);
    Traces {
        available: names.split_whitespace().map(str::to_owned).collect(),
        maps: maps.map(|map| map.id).collect(),
        programs: programs.map(|program| program.id).collect(),
    }
}

/// The state before a test, once the kernel has freed what an earlier one used.
fn settled() -> Traces {
    for _ in 0..200 {
        if traces().maps.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // Programs go after their maps.
    std::thread::sleep(Duration::from_millis(100));
    traces()
}

/// The kernel frees things a little later.
fn comes_back(to: &Traces) {
    for _ in 0..200 {
        if traces() == *to {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(traces(), *to);
}

#[test]
fn a_control_that_was_unloaded_leaves_nothing() {
    let Some(_alone) = permitted() else { return };
    let before = settled();
    for control in Control::ALL {
        let pinned = controls::load(&control, true).unwrap();
        let name = control.kernel_name();
        assert!(traces().available.contains(name));
        assert!(matches!(controls::load(&control, true), Err(Error::Loaded(_))));
        assert!(matches!(Loaded::new(&control, true, false), Err(Error::Foreign(_))));
        let listed = controls::list().unwrap();
        let found = listed.iter().find(|one| one.name == name).unwrap();
        assert_eq!((found.control, found.users, found.loaded), (control, 0, true), "{found:?}");
        assert!(found.per_ack);
        assert_eq!(controls::unload(&control).unwrap(), 0);
        assert!(!pinned.path.exists());
        assert!(matches!(controls::unload(&control), Err(Error::NotLoaded(_))));
    }
    comes_back(&before);
}

#[test]
fn connections_keep_a_control_that_was_unloaded() {
    let Some(_alone) = permitted() else { return };
    let before = settled();
    let control = Control::ALL[0];
    controls::load(&control, false).unwrap();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_tcp_congestion(control.kernel_name().as_bytes()).unwrap();
    assert_eq!(controls::list().unwrap()[0].users, 1);
    assert_eq!(controls::unload(&control).unwrap(), 1);
    let listed = controls::list().unwrap();
    assert_eq!((listed[0].users, listed[0].loaded), (1, false));
    // Another of the name can be loaded, beside it.
    controls::load(&control, false).unwrap();
    assert_eq!(controls::unload(&control).unwrap(), 0);
    drop(socket);
    comes_back(&before);
}

/// Run by the next test in a process of its own: loads, says so, and waits for its end.
#[test]
#[ignore = "a part of another test"]
fn a_loader_that_waits() {
    let _loaded = Control::ALL.map(|control| Loaded::new(&control, false, true).unwrap());
    eprintln!("loaded");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_loader_that_is_killed_leaves_nothing() {
    let Some(_alone) = permitted() else { return };
    let before = settled();
    let mut loader = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "traces::a_loader_that_waits", "--ignored", "--nocapture"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(loader.stderr.take().unwrap()).lines();
    let loaded = lines.any(|line| line.unwrap() == "loaded");
    let during = traces();
    // SIGKILL.
    loader.kill().unwrap();
    loader.wait().unwrap();
    assert!(loaded);
    for control in Control::ALL {
        assert!(during.available.contains(control.kernel_name()), "{during:?}");
    }
    comes_back(&before);
}
