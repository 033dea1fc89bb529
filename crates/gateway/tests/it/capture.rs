//! The packets of a user in a file.

use crate::common::{CLEAN, Folder, GATEWAY, USER, World, beside, configuration, exchange};
use gateway::Service;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use rustix::process::{Pid, Signal, kill_process};
use scenario::IpVersion;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};
use wire::{Body, Packet};

/// A gateway with a control socket.
fn start(world: &World, folder: &Folder) -> (Service, PathBuf) {
    let socket = folder.0.join("socket");
    let gateway = configuration("");
    let started = world.at(GATEWAY, || Service::start(&gateway, None, Some(&socket)));
    (started.unwrap_or_else(|error| panic!("{error}")), socket)
}

/// Starts the command, and waits until it writes.
fn capture(socket: &Path, user: IpAddr, file: &Path, more: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthopd"));
    command.arg("capture").arg(user.to_string()).arg("-o").arg(file).arg("--socket").arg(socket);
    let mut child = command.args(more).stderr(Stdio::piped()).spawn().unwrap();
    // The head of the file is written before packets are.
    let begins = (0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        fs::metadata(file).is_ok_and(|file| file.len() > 0)
    });
    if !begins {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("nothing is captured");
    }
    child
}

fn ended(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

/// A packet with the number of its interface and its time.
type Captured = (u32, Duration, Vec<u8>);

/// The names of a file's interfaces, and its packets.
fn read(path: &Path) -> (Vec<String>, Vec<Captured>) {
    let (mut names, mut packets) = (Vec::new(), Vec::new());
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                names.extend(interface.options.iter().filter_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(packet) => {
                packets.push((packet.interface_id, packet.timestamp, packet.data.to_vec()));
            }
            _ => {}
        }
    }
    (names, packets)
}

#[test]
fn a_capture_has_the_packets_of_one_user_on_both_sides_until_it_is_interrupted() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "capture") else { return };
        let folder = Folder::new("capture");
        let (service, socket) = start(&world, &folder);
        let file = folder.0.join("user.pcapng");
        let user = world.address(USER, IpVersion::V4);
        let child = capture(&socket, user, &file, &[]);
        for ip in [IpVersion::V4, IpVersion::V6] {
            exchange(&world, ip, [200_000, 300_000]);
        }
        // Copies are a tenth of a second late at most.
        std::thread::sleep(Duration::from_millis(500));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let said = ended(child);
        let (names, packets) = read(&file);
        assert_eq!(names, ["LAN", "hop"]);
        assert_eq!(said, format!("{} packets; 0 are missing\n", packets.len()));
        assert!(packets.iter().map(|(_, at, _)| at).is_sorted());
        let age = SystemTime::UNIX_EPOCH.elapsed().unwrap() - packets[0].1;
        assert!(age < Duration::from_secs(60), "{age:?}");
        for side in [0, 1] {
            let (mut up, mut down) = (0, 0);
            for (_, _, bytes) in packets.iter().filter(|(interface, ..)| *interface == side) {
                let (packet, payload) = Packet::parse_trusted(bytes).unwrap();
                let Body::Tcp(_) = packet.body else { panic!("{packet:?}") };
                let from_user = packet.ip.source == user;
                assert!(from_user || packet.ip.destination == user);
                *(if from_user { &mut up } else { &mut down }) += payload.len();
            }
            // The hop loses nothing, so that nothing is sent twice but in vain.
            assert!((200_000..250_000).contains(&up), "{side}: {up}");
            assert!((300_000..350_000).contains(&down), "{side}: {down}");
        }
        let tshark = Command::new("tshark")
            .arg("-r")
            .arg(&file)
            .args(["-Y", "tcp.flags.syn == 1", "-T", "fields", "-e", "frame.interface_name"])
            .output();
        match tshark {
            Ok(output) => {
                // A handshake is of two packets with SYN, on each side.
                let mut names: Vec<_> =
                    std::str::from_utf8(&output.stdout).unwrap().lines().collect();
                names.sort_unstable();
                assert_eq!(names, ["LAN", "LAN", "hop", "hop"]);
            }
            Err(error) => drop(writeln!(std::io::stderr(), "SKIPPED tshark: {error}")),
        }
        service.stop();
    });
}

#[test]
fn a_capture_ends_after_its_time_when_another_begins_and_with_the_gateway() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "captures") else { return };
        let folder = Folder::new("captures");
        let (service, socket) = start(&world, &folder);
        let user = world.address(USER, IpVersion::V6);
        let path = |name: &str| folder.0.join(name);
        let timed = capture(&socket, user, &path("timed"), &["--seconds", "1"]);
        assert_eq!(ended(timed), "0 packets; 0 are missing\n");
        let first = capture(&socket, user, &path("first"), &[]);
        let second = capture(&socket, user, &path("second"), &[]);
        ended(first);
        exchange(&world, IpVersion::V6, [1000, 1000]);
        std::thread::sleep(Duration::from_millis(500));
        service.stop();
        let said = ended(second);
        assert!(!said.starts_with("0 "), "{said}");
        let output = Command::new(env!("CARGO_BIN_EXE_lasthopd"))
            .args(["capture", "10.0.0.1", "-o", "-", "--socket"])
            .arg(&socket)
            .output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("no gateway answers"), "{said}");
    });
}

#[test]
fn packets_do_not_wait_for_a_capture_that_is_not_read() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "captured") else { return };
        let folder = Folder::new("captured");
        let (service, socket) = start(&world, &folder);
        let user = world.address(USER, IpVersion::V4);
        let mut stream = UnixStream::connect(&socket).unwrap();
        let request = format!("{{\"command\":\"capture\",\"user\":\"{user}\"}}\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"{\"done\":{}}\n");
        let clock = live::Clock::start();
        // With its copies on both sides, more than may wait.
        exchange(&world, IpVersion::V4, [1000, 10_000_000]);
        let took = clock.now();
        assert!(took < base::Time::ZERO + base::Duration::from_secs(20), "{took:?}");
        // It is left alone after five seconds in which it read nothing.
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut rest = Vec::new();
        std::thread::sleep(Duration::from_secs(6));
        assert!(stream.read_to_end(&mut rest).is_ok());
        assert!(gateway::status(&socket).is_ok());
        service.stop();
    });
}
