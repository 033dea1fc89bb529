//! SYNs and RSTs have queues of their own in the devices, if the process may load the program for them.

use crate::common::{CLEAN, Folder, GATEWAY, INTERFACES, World, beside, configuration, exchange};
use crate::pair::{Pair, wait_for_association};
use crate::process::Running;
use gateway::doctor::{Finding, Severity, examine};
use live::QueueProgram;
use live::inline::Owners;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{
    CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities,
};
use scenario::IpVersion;
use socket2::SockRef;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::thread::sleep;
use std::time::Duration;

/// The queues of both devices that a process has.
fn queues(running: &Running) -> usize {
    let about = fs::read_dir(format!("/proc/{}/fdinfo", running.child.id())).unwrap();
    let about = about.filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok());
    about.filter(|about| about.lines().any(|line| line.starts_with("iff:\tlh-"))).count()
}

/// Whether programs can be loaded here.
pub(crate) fn loads(test: &str) -> bool {
    let refused = |error: &live::Error| {
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {error}");
    };
    QueueProgram::load(&Owners::new(1, [0; 2])).inspect_err(refused).is_ok()
}

/// Takes from the calling thread, and from the programs that it starts, what lets them load BPF programs. Says whether
/// they cannot now: without `kernel.unprivileged_bpf_disabled`, all can.
pub(crate) fn give_up_bpf() -> bool {
    let given_up = [CapabilitySet::BPF, CapabilitySet::SYS_ADMIN];
    let mut sets = capabilities(None).unwrap();
    for capability in given_up {
        remove_capability_from_bounding_set(capability).unwrap();
        sets.effective.remove(capability);
        sets.permitted.remove(capability);
    }
    set_capabilities(None, sets).unwrap();
    QueueProgram::load(&Owners::new(1, [0; 2])).is_err()
}

/// What is found about them at the gateway's node, with these keys.
fn about_queues(world: &World, keys: &str, running: bool) -> Vec<Finding> {
    let gateway = configuration(keys);
    let mut findings = world.at(GATEWAY, || examine(&gateway, running));
    findings.retain(|finding| finding.about == "queues of SYNs and RSTs");
    findings
}

#[test]
fn an_upgrade_keeps_the_queues_of_syns_and_rsts() {
    beside(|| {
        if !loads("the queues of SYNs and RSTs") {
            return;
        }
        for (keys, expected) in [("", 6), ("workers = 2", 12), ("mode = \"split\"", 6)] {
            let Some(world) = World::new(CLEAN, "queues") else { return };
            let running = Running::with(&world, "queues", keys);
            running.told("READY=1");
            assert_eq!(queues(&running), expected, "{keys}");
            let said = about_queues(&world, keys, true);
            let said: Vec<_> = said.iter().map(|finding| finding.message.as_str()).collect();
            assert_eq!(said, ["the gateway has them"], "{keys}");
            for _ in 0..2 {
                let upgraded = running.call(&world, &["upgrade"]);
                let text = String::from_utf8_lossy(&upgraded.stderr);
                assert!(upgraded.status.success(), "{text}");
                running.told("READY=1");
                assert_eq!(queues(&running), expected, "{keys}");
                // SYNs are read.
                exchange(&world, IpVersion::V4, [10_000, 10_000]);
                exchange(&world, IpVersion::V6, [10_000, 10_000]);
            }
        }
    });
}

#[test]
fn a_connection_ends_although_the_reset_has_overtaken_data() {
    beside(|| {
        if !loads("resets that overtake data") {
            return;
        }
        for keys in ["", "mode = \"split\"", "mode = \"split\"\nconnect = \"at-once\""] {
            let Some(world) = World::new(CLEAN, "overtaken") else { return };
            let running = Running::with(&world, "overtaken", keys);
            running.told("READY=1");
            let (listener, address) = world.listen(IpVersion::V4);
            let mut user = world.connect(address);
            let (mut server, _) = listener.accept().unwrap();
            // The user's window grows.
            user.write_all(&[1; 200_000]).unwrap();
            server.read_exact(&mut vec![0; 200_000]).unwrap();
            let gateway = Pid::from_child(&running.child);
            kill_process(gateway, Signal::STOP).unwrap();
            // Segments for three turns, behind which the reset would be in the same queue.
            user.set_nodelay(true).unwrap();
            (0..40).for_each(|_| user.write_all(&[2; 100]).unwrap());
            sleep(Duration::from_millis(100));
            SockRef::from(&user).set_linger(Some(Duration::ZERO)).unwrap();
            drop(user);
            sleep(Duration::from_millis(100));
            kill_process(gateway, Signal::CONT).unwrap();
            server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let error = server.read_to_end(&mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{keys}: {error}");
        }
    });
}

#[test]
fn a_process_that_may_not_load_the_program_has_one_queue_for_all_packets_and_says_so_once() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "one-queue") else { return };
        if !world.at(GATEWAY, give_up_bpf) {
            return;
        }
        let give_up = || assert!(give_up_bpf());
        let running = Running::prepared(&world, "one-queue", INTERFACES, give_up);
        running.told("READY=1");
        assert_eq!(queues(&running), 2);
        exchange(&world, IpVersion::V4, [100_000, 100_000]);
        // This process may load the program.
        if loads("the examination") {
            let [finding] = &about_queues(&world, "", true)[..] else { panic!("nothing about it") };
            assert_eq!(finding.severity, Severity::Advice);
            assert!(finding.message.ends_with("(its log says why)"), "{finding}");
        }
        let said = || {
            let log = fs::read_to_string(running.path("log")).unwrap();
            log.lines()
                .filter(|line| line.contains("flood of SYNs or RSTs"))
                .map(str::to_owned)
                .collect()
        };
        let before: Vec<String> = said();
        assert!(
            before.len() == 1 && before[0].contains("AmbientCapabilities=CAP_BPF"),
            "{before:?}"
        );
        let upgraded = running.call(&world, &["upgrade"]);
        assert!(upgraded.status.success(), "{}", String::from_utf8_lossy(&upgraded.stderr));
        running.told("READY=1");
        assert_eq!(queues(&running), 2);
        exchange(&world, IpVersion::V6, [100_000, 100_000]);
        assert_eq!(said(), before);
    });
}

#[test]
fn the_examination_says_whether_syns_and_rsts_can_have_queues_of_their_own() {
    beside(|| {
        if !loads("the examination") {
            return;
        }
        let Some(world) = World::new(CLEAN, "doctor-queues") else { return };
        for keys in ["", "workers = 2"] {
            assert_eq!(about_queues(&world, keys, false)[0].severity, Severity::Fine, "{keys}");
        }
        let gateway = configuration("");
        let without = world.at(GATEWAY, || give_up_bpf().then(|| examine(&gateway, false)));
        let Some(findings) = without else { return };
        let finding =
            findings.iter().find(|finding| finding.about == "queues of SYNs and RSTs").unwrap();
        assert_eq!(finding.severity, Severity::Advice);
        // Lines of a unit: all of them in one would be no capability.
        let lines =
            "AmbientCapabilities=CAP_BPF, CapabilityBoundingSet=CAP_BPF and SystemCallFilter=bpf";
        assert!(finding.mend.as_ref().unwrap().contains(lines), "{finding}");
    });
}

#[test]
fn the_examination_says_whether_the_kernel_can_check_the_codes_of_a_pairs_datagrams() {
    beside(|| {
        if !loads("the examination of a pair") {
            return;
        }
        let Some(world) = World::new(CLEAN, "doctor-codes") else { return };
        let folder = Folder::new("doctor-codes");
        let [key, other] = ["private.key", "other.key"].map(|name| folder.0.join(name));
        let [_, peer_key] = [&key, &other].map(|file| gateway::public_key(file).unwrap());
        let gateway = configuration(&format!(
            "mode = \"pair\"\nkey = \"{}\"\npeer_key = \"{peer_key}\"",
            key.display()
        ));
        let found = || {
            let mut findings = examine(&gateway, false);
            findings.retain(|finding| finding.about == "authentication codes");
            findings
        };
        let severities = |findings: Vec<Finding>| -> Vec<_> {
            findings.into_iter().map(|finding| finding.severity).collect()
        };
        assert_eq!(severities(world.at(GATEWAY, found)), [Severity::Fine]);
        let without = world.at(GATEWAY, || give_up_bpf().then(found));
        let Some(findings) = without else { return };
        assert!(findings[0].message.contains("replayed or forged"), "{}", findings[0]);
        assert_eq!(severities(findings), [Severity::Advice]);
    });
}

#[test]
fn a_gateway_of_a_pair_that_may_not_load_the_program_works_and_says_so() {
    beside(|| {
        for ip in [IpVersion::V4, IpVersion::V6] {
            let Some(world) = World::pair(CLEAN, "no-codes") else { return };
            if !world.at(GATEWAY, give_up_bpf) {
                return;
            }
            let pair = Pair::new("no-codes", "");
            let far = pair.far(&world);
            let text = format!("{INTERFACES}{}", pair.near_keys(&world, ip));
            let give_up = || assert!(give_up_bpf());
            let running = Running::prepared(&world, "no-codes", &text, give_up);
            running.told("READY=1");
            wait_for_association(&world, &far);
            exchange(&world, ip, [100_000, 1_000_000]);
            let log = fs::read_to_string(running.path("log")).unwrap();
            let mut said = log.lines().filter(|line| line.contains("replayed or forged"));
            assert!(said.next().unwrap().contains("AmbientCapabilities=CAP_BPF"), "{log}");
            assert_eq!(said.next(), None);
            far.stop();
        }
    });
}
