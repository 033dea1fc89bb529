//! Packets as bytes: they change no result of any scenario of the repository, and other programs
//! read them.

use crate::common::{self, LONG_LINK, run_with, scenario, with};
use lab::{Capture, Outcome, RunError, Watch};
use pcap_file::pcapng::{Block, PcapNgReader};
use scenario::{Experiment, Source, Value};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use wire::{Body, Icmp, Packet};

/// Every scenario file of the repository.
fn scenario_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml")
                && fs::read_to_string(&path).expect("a text").contains("[[links]]")
            {
                files.push(path);
            }
        }
    }
    assert!(files.len() >= 2, "{files:?}");
    files
}

#[test]
fn neither_bytes_nor_observers_change_a_scenario() {
    bytes_and_observers_change_nothing(2);
}

#[test]
#[ignore = "a soak test"]
fn neither_bytes_nor_observers_change_any_point_of_a_scenario() {
    bytes_and_observers_change_nothing(u64::MAX);
}

/// Compares runs at up to `most` points of every scenario's sweep.
fn bytes_and_observers_change_nothing(most: u64) {
    let cancelled = AtomicBool::new(false);
    for file in scenario_files() {
        let name = file.display().to_string();
        let text = fs::read_to_string(&file).unwrap();
        // Who moves has arrived by then.
        let duration = if text.contains(".attached]") { "20 s" } else { "10 s" };
        let mut source = Source::new(text, &name);
        source.put("duration", &Value::String(duration.to_owned())).unwrap();
        let experiment = Experiment::read(&source).unwrap();
        for point in common::spread(experiment.points(), most) {
            let scenario = experiment.scenario_at(point).unwrap();
            let run = |watch: &Watch| {
                let run = lab::run(&scenario, 1, watch, &cancelled).unwrap();
                Outcome { paths: None, ..run }
            };
            let watch = Watch { series: true, digest: true, ..Watch::default() };
            let watched = run(&watch);
            assert!(
                watched == run(&Watch { bytes: true, ..watch.clone() }),
                "{name}, point {point}"
            );
            let alone = Outcome { series: None, digest: None, ..watched };
            assert!(alone == run(&Watch::default()), "{name}, point {point}");
        }
    }
}

/// A place for a file of this test alone.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A long link with backward notices of corruption.
fn notified() -> String {
    with(&[("none", "backward"), ("60 s", "20 s")])
}

fn captured(text: &str, name: &str, at: &[&str]) -> PathBuf {
    let file = file(name);
    let at = at.iter().map(|place| (*place).to_owned()).collect();
    let capture = Some(Capture { file: file.clone(), at });
    let watch = Watch { digest: true, capture, ..Watch::default() };
    let digest = Watch { digest: true, ..Watch::default() };
    assert_eq!(run_with(text, 1, &watch), run_with(text, 1, &digest), "it changes nothing");
    file
}

/// The names of a file's interfaces, and its packets: interface, nanoseconds, and the packet.
fn read(file: &Path) -> (Vec<String>, Vec<(u32, u128, Packet)>) {
    let mut reader = PcapNgReader::new(File::open(file).expect("a file")).expect("pcapng");
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(block) = block.expect("a block") {
            let (packet, _) = Packet::parse(&block.data).expect("a packet");
            packets.push((block.interface_id, block.timestamp.as_nanos(), packet));
        }
    }
    let names = reader.interfaces().iter().map(|interface| {
        use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption::IfName;
        let name = interface.options.iter().find_map(|option| match option {
            IfName(name) => Some(name.to_string()),
            _ => None,
        });
        name.expect("a name")
    });
    (names.collect(), packets)
}

#[test]
fn a_capture_has_an_interface_for_every_direction_and_exact_times() {
    let (names, packets) = read(&captured(&notified(), "directions.pcapng", &[]));
    assert_eq!(names, ["a->b", "b->a"]);
    let [syn, answer] = [0, 1].map(|at| packets.iter().find(|(link, ..)| *link == at).unwrap());
    assert_eq!(syn.1, 0);
    // The SYN's transmission (44 bytes at 1.5 Mbit/s, and no fraction of a nanosecond) and 100 ms.
    let transmission = u128::from(syn.2.len()) * 8 * 1_000_000_000 / 1_500_000;
    assert!(answer.1.abs_diff(100_000_000 + transmission) <= 1, "{}", answer.1);
    let notices = packets.iter().filter(|(.., packet)| {
        matches!(packet.body, Body::Icmp(Icmp::Corruption { .. })) && packet.len() == 180
    });
    assert!(notices.count() > 0);
}

#[test]
fn a_capture_at_a_node_sees_what_it_sends_and_receives() {
    let (names, packets) = read(&captured(&notified(), "node.pcapng", &["b"]));
    assert_eq!(names, ["a->b received", "b->a"]);
    let first = |at| packets.iter().find(|(link, ..)| *link == at).unwrap().1;
    assert_eq!(first(0), first(1), "the SYN is answered at once");

    let (names, packets) = read(&captured(&notified(), "link.pcapng", &["b->a"]));
    assert_eq!(names, ["b->a"]);
    assert!(packets.iter().all(|(link, ..)| *link == 0));
}

#[test]
fn a_capture_of_nothing_or_to_nowhere_is_refused() {
    let error = |file: &str, at: &[&str]| {
        let at = at.iter().map(|place| (*place).to_owned()).collect();
        let capture = Some(Capture { file: file.into(), at });
        let watch = Watch { capture, ..Watch::default() };
        lab::run(&scenario(LONG_LINK), 1, &watch, &AtomicBool::new(false)).unwrap_err()
    };
    let place = "b->c".to_owned();
    assert_eq!(error("unused", &["a", "b->c"]), RunError::NoSuchPlace { place });
    let nowhere = error("/no/such/folder/x.pcapng", &[]);
    assert!(matches!(nowhere, RunError::Write { .. }), "{nowhere}");
    assert!(nowhere.to_string().starts_with("/no/such/folder/x.pcapng: "), "{nowhere}");
}

/// What tshark shows of a file: the numbers of the packets for which `filter` holds. It is not
/// asked where it is missing, but continuous integration has it.
fn tshark(file: &Path, filter: &str) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    match command.output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "tshark: {errors}");
            let text = String::from_utf8(output.stdout).expect("numbers");
            Some(text.lines().map(str::to_owned).collect())
        }
        Err(error) => {
            // Past the harness, which shows no words of a test that passes.
            let _ = writeln!(io::stderr(), "\n*** NOT TESTED: tshark cannot be run ({error})\n");
            None
        }
    }
}

#[test]
fn tshark_finds_nothing_malformed_and_no_bad_checksum() {
    for (name, text) in [
        ("reno.pcapng", with(&[("sack", "reno"), ("60 s", "20 s")])),
        ("sack.pcapng", with(&[("60 s", "20 s")])),
        ("backward.pcapng", notified()),
        ("modern.pcapng", with(&[("ns2-2001", "modern"), ("60 s", "5 s")])),
    ] {
        let file = captured(&text, name, &[]);
        let (_, packets) = read(&file);
        let good =
            "ip.checksum.status == 1 && (tcp.checksum.status == 1 || icmp.checksum.status == 1)";
        let Some(good) = tshark(&file, good) else { return };
        assert_eq!(good.len(), packets.len(), "{name}");
        let bad = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 || \
                   icmp.checksum.status == 0 || _ws.expert.severity == \"Error\"";
        assert_eq!(tshark(&file, bad), Some(Vec::new()), "{name}");
    }
}
