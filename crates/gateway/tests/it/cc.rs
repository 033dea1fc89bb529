//! The command `lasthopd cc`, in this machine's kernel.

use live::{Namespace, rights};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIST: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// The kernel's description of its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";
const PIN: &str = "/sys/fs/bpf/lasthop/lasthop_byk";

fn lasthopd(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthopd"));
    command.arg("cc").args(words).env_remove("RUST_LOG");
    command
}

/// What it prints, and whether it succeeds.
fn said(words: &[&str]) -> (bool, String) {
    let output = lasthopd(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

fn is_available() -> bool {
    std::fs::read_to_string(LIST).unwrap().contains("lasthop_byk")
}

/// A control is for the whole kernel: one test has all of its cases.
#[test]
fn a_control_is_loaded_listed_used_and_unloaded() {
    let mut missing = rights::missing(&[rights::NET_ADMIN, rights::SYS_ADMIN]);
    missing.extend((!Path::new(BTF).exists()).then_some(BTF));
    if !missing.is_empty() {
        let _ = writeln!(std::io::stderr(), "SKIPPED {}: it lacks {}", file!(), missing.join(", "));
        return;
    }
    assert!(!is_available(), "lasthop_byk is loaded: lasthopd cc unload increase-by-k");
    refusals();
    without_a_file_system();
    let load = ["load", "increase-by-k", "--k", "2.5"];
    let (succeeded, text) = said(&load);
    assert!(succeeded && text.contains("loaded lasthop_byk (increase-by-k, k = 2.5)"), "{text}");
    let (succeeded, text) = said(&load);
    assert!(!succeeded && text.starts_with("lasthop_byk is loaded already"), "{text}");
    used();
    let (succeeded, text) = said(&["unload", "increase-by-k"]);
    assert!(succeeded && text == "unloaded lasthop_byk\n", "{text}");
    assert!(!is_available() && !Path::new(PIN).exists());
    let (succeeded, text) = said(&["unload", "increase-by-k"]);
    assert!(!succeeded && text == "lasthop_byk is not loaded\n", "{text}");
    killed();
}

fn refusals() {
    for (words, expected) in [
        (["load", "increase-by-k", "--k", "0"], "k must be a number above 0 and below 65536\n"),
        (["load", "canit", "--nit", "20 s"], "nit must be 1 us to 16 s, in whole microseconds\n"),
        (["load", "constant-rate", "--c", "5000"], "c must be at most 1000\n"),
    ] {
        assert_eq!(said(&words), (false, expected.to_owned()));
    }
    for words in [["load", "canit"].as_slice(), &["list"]] {
        // By the user `nobody`, who may have no right to execute a program in this folder.
        let output = match lasthopd(words).uid(65_534).output() {
            Ok(output) => output,
            Err(error) => {
                eprintln!("SKIPPED without root, {words:?}: {error}");
                continue;
            }
        };
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with("congestion controls in BPF need root"), "{text}");
    }
}

/// In a mount namespace of its own without a BPF file system, which ends with it, or with the shell there.
fn without_a_file_system() {
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_lasthopd")]);
        let output = command.env_remove("RUST_LOG").output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    const UNMOUNT: &str = "while umount /sys/fs/bpf 2>/dev/null; do :; done";
    let text = in_namespace(&format!("{UNMOUNT}; exec \"$0\" cc load increase-by-k"));
    assert!(text.starts_with("there is no BPF file system at /sys/fs/bpf"), "{text}");
    let text = in_namespace(&format!("{UNMOUNT}; \"$0\" cc load increase-by-k; \"$0\" cc list"));
    assert!(text.starts_with("mounted the BPF file system at /sys/fs/bpf\nloaded"), "{text}");
    assert!(
        text.ends_with("lasthop_byk   increase-by-k, k = 4, per segment; users: 0\n"),
        "{text}"
    );
    vanishes("with its file system");
}

/// The kernel takes a control off its list a little after its last pin.
fn vanishes(when: &str) {
    let gone = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        !is_available()
    });
    assert!(gone, "{when}");
}

/// By the sysctl of a namespace, which counts as a user until it is changed.
fn used() {
    let namespace = Namespace::create("cc").unwrap();
    let use_it = |name: &str| namespace.run(|| std::fs::write(SYSCTL, name)).unwrap().unwrap();
    use_it("lasthop_byk");
    let (_, text) = said(&["list"]);
    assert_eq!(text, "lasthop_byk   increase-by-k, k = 2.5, per segment; users: 1\n");
    let socket = namespace.run(|| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.tcp_congestion()
    });
    assert!(socket.unwrap().unwrap().starts_with(b"lasthop_byk"));
    use_it("reno");
    let (_, text) = said(&["list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!([{
        "name": "lasthop_byk", "control": "increase-by-k", "k": 2.5, "per_ack": false,
        "loaded": true, "users": 0,
    }]);
    assert_eq!(listed, expected);
}

/// Killed at any moment, it has loaded the control or has left nothing.
fn killed() {
    let mut both = [0, 0];
    for step in 0..25_u64 {
        let mut loader =
            lasthopd(&["load", "increase-by-k"]).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(1500 * step));
        loader.kill().unwrap();
        loader.wait().unwrap();
        let is_pinned = Path::new(PIN).exists();
        both[usize::from(is_pinned)] += 1;
        if is_pinned {
            assert!(is_available());
            assert!(said(&["unload", "increase-by-k"]).0);
        }
        vanishes(&format!("killed after {step} steps"));
    }
    eprintln!("killed before and after it was loaded: {both:?}");
    assert!(both[0] > 0);
    assert_eq!(said(&["list"]), (true, String::new()));
}
