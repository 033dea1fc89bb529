//! Programs in namespaces.

use crate::common::permitted;
use base::{Duration, Time};
use live::namespace::{Launch, User};
use live::{Clock, Namespace};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

fn launch(words: &[&str]) -> Launch {
    let words = words.iter().map(OsString::from).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    Launch {
        words,
        environment: vec![("PATH".into(), path)],
        background: true,
        ..Launch::default()
    }
}

/// A process that has ended, but was not waited for, has no namespace.
fn is_running(process: u32) -> bool {
    std::fs::metadata(format!("/proc/{process}/ns/net")).is_ok()
}

/// A file for the test of this name, which a program makes.
fn file(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("lasthop-{}-{test}", std::process::id()))
}

fn wait_for(what: impl Fn() -> bool) {
    let clock = Clock::start();
    while !what() {
        assert!(clock.now() < Time::ZERO + Duration::from_secs(10), "it does not come");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn programs_are_in_the_namespace_and_end_with_patience_or_without() {
    if !permitted("programs") {
        return;
    }
    let namespace = Namespace::create("programs").unwrap();
    let other = Namespace::create("programs-of-others").unwrap();
    let ready = file("ready");
    let stubborn = format!("trap '' TERM HUP; : > {}; while :; do sleep 1; done", ready.display());
    let [obeys, refuses] = [&["sleep", "1000"][..], &["sh", "-c", &stubborn]]
        .map(|words| namespace.start(&launch(words)).unwrap());
    let others = other.start(&launch(&["sleep", "1000"])).unwrap();
    let inode = |path: String| std::fs::metadata(path).unwrap().ino();
    let own = namespace.run(|| inode("/proc/thread-self/ns/net".to_owned())).unwrap();
    assert_eq!(inode(format!("/proc/{obeys}/ns/net")), own);
    wait_for(|| ready.exists());
    std::fs::remove_file(ready).unwrap();
    let (clock, patience) = (Clock::start(), Duration::from_millis(300));
    namespace.end_processes(patience);
    assert!(clock.now() >= Time::ZERO + patience, "the second has its time");
    assert_eq!([obeys, refuses, others].map(is_running), [false, false, true]);
    other.end_processes(Duration::from_secs(10));
    assert!(!is_running(others));
}

#[test]
fn a_program_has_the_user_and_the_resolver_that_it_is_given() {
    if !permitted("user") {
        return;
    }
    let namespace = Namespace::create("user").unwrap();
    let (out, resolver) = (file("out"), file("resolver"));
    std::fs::write(&resolver, "nameserver 192.0.2.53\n").unwrap();
    std::fs::write(&out, "").unwrap();
    std::os::unix::fs::chown(&out, Some(65_534), None).unwrap();
    let script = format!("{{ id -u; id -g; id -G; cat /etc/resolv.conf; }} > {}", out.display());
    let user = User { user: 65_534, group: 65_533, groups: vec![65_533, 65_532] };
    let launch = Launch {
        user: Some(user),
        resolver: Path::new("/etc/resolv.conf").exists().then(|| resolver.clone()),
        ..launch(&["sh", "-c", &script])
    };
    let process = namespace.start(&launch).unwrap();
    wait_for(|| !is_running(process));
    let said = std::fs::read_to_string(&out).unwrap();
    assert!(said.starts_with("65534\n65533\n65533 65532\n"), "{said}");
    assert_eq!(said.contains("192.0.2.53"), launch.resolver.is_some(), "{said}");
    let own = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    assert!(!own.contains("192.0.2.53"), "of others it is what it was");
    [out, resolver].iter().for_each(|file| std::fs::remove_file(file).unwrap());
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    if !permitted("missing") {
        return;
    }
    let namespace = Namespace::create("missing").unwrap();
    match namespace.start(&launch(&["no-such-program"])) {
        Err(live::Error::System { source, action }) => {
            assert_eq!(source.kind(), ErrorKind::NotFound);
            assert!(action.contains("no-such-program"), "{action}");
        }
        other => panic!("{other:?}"),
    }
}
