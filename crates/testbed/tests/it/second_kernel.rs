//! ESP of another implementation: a Linux kernel that runs as a process (user-mode-linux, whose IPsec is esp6)
//! exchanges TCP under ESP with a node that has the box `esp`. The option of SPEP is in front of what the kernel
//! gets, as the base station has filled it in.

use crate::common::{at_once, emulate, skip};
use crate::spep;
use live::Clock;
use scenario::IpVersion;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testbed::Emulation;
use wire::{EspKeys, Packet, Spep};

/// The peer's kernel gets what the node `peer` forwards.
const PATH: &str = r#"title = "a second kernel"
duration = "1 s"
[nodes]
fixed = { boxes = [{ box = "esp", spep = true, first_spi = 4096 }] }
station = { boxes = [{ box = "spep", hop = "peer" }] }
peer = {}
[[links]]
between = ["fixed", "station"]
rate = "100 Mbit/s"
delay = "1 ms"
[[links]]
between = ["station", "peer"]
rate = "100 Mbit/s"
delay = "1 ms"
[[flows]]
from = "peer"
to = "fixed"
ip = 6
stack = "linux"
traffic = "bulk"
[[flows]]
from = "peer"
to = "fixed"
ip = 6
stack = "linux"
traffic = "bulk"
"#;

/// The ports of the flows.
const PORTS: [u16; 2] = [5001, 5002];

/// What the second kernel runs first, behind a few assignments. Its file system is the machine's.
const INIT: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
modules=/usr/lib/uml/modules/$(uname -r)/kernel
for module in crypto/hmac crypto/sha512_generic crypto/jitterentropy_rng crypto/drbg crypto/gf128mul \
    crypto/ghash-generic crypto/ctr crypto/gcm crypto/seqiv lib/crc-ccitt net/ipv6/ipv6 net/xfrm/xfrm_algo net/xfrm/xfrm_user net/ipv6/esp6; do
    insmod "$modules/$module.ko"
done
ip link set lo up
ip link set eth0 up
ip address add fd01::2/64 dev eth0 nodad
ip address add "$own/128" dev lo nodad
# What the peer sends has room for ESP and the option.
ip route add "$peer/128" via fd01::1 dev eth0 src "$own" advmss 1300
associate() {
    ip xfrm state add src "$1" dst "$2" proto esp spi "$3" mode transport replay-window 32 \
        aead 'rfc4106(gcm(aes))' "$key" 128
}
associate "$own" "$peer" 0x2000
# One for each connection.
associate "$peer" "$own" 4096
associate "$peer" "$own" 4097
ip xfrm policy add src "$own" dst "$peer" dir out tmpl proto esp mode transport
ip xfrm policy add src "$peer" dst "$own" dir in tmpl proto esp mode transport
export own peer there back
timeout 6 bash -c 'cat "$there" >"/dev/tcp/$peer/5001"' && echo sent &&
    timeout 6 bash -c 'cmp - "$back" <"/dev/tcp/$peer/5002"' && echo received
cat /proc/net/xfrm_stat
echo o >/proc/sysrq-trigger
sleep 60
"#;

/// What is there of the programs; what is missing is in the error.
fn programs() -> Result<(), String> {
    let needed =
        ["/usr/bin/linux.uml", "/usr/bin/bash", "/usr/bin/cmp", "/usr/sbin/insmod", "/usr/sbin/ip"];
    match needed.iter().find(|program| !Path::new(program).exists()) {
        Some(program) => Err(format!(
            "{program} is missing: user-mode-linux, bash, diffutils, kmod and iproute2"
        )),
        None => Ok(()),
    }
}

/// `ip` in the namespace of the node.
fn ip(emulation: &Emulation, node: usize, arguments: &str) {
    let mut command = Command::new("ip");
    command.args(["-n", emulation.namespace(node).name()]).args(arguments.split(' '));
    let status = command.status().unwrap();
    assert!(status.success(), "ip {arguments}: {status}");
}

/// A second kernel at work. Dropping it ends all of its processes.
struct Kernel(Child);

impl Drop for Kernel {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// A directory for the files of a test, which a second kernel reads.
fn directory(label: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("second-kernel-{label}"));
    fs::create_dir_all(&path).unwrap();
    path
}

/// Starts a second kernel behind the node `peer`, whose address it takes. Its console is the file.
fn boot(emulation: &Emulation, files: &Path, key: &[u8]) -> Kernel {
    let [fixed, own] = [0, 2].map(|node| emulation.address(node, IpVersion::V6));
    for arguments in [
        &*format!("address del {own}/128 dev lo"),
        "tuntap add tap0 mode tap",
        // A router solicits neighbours from its link-local address, which nodes do without.
        "link set tap0 addrgenmode eui64",
        "address add fd01::1/64 dev tap0 nodad",
        "link set tap0 up",
        &*format!("route add {own}/128 via fd01::2 dev tap0"),
    ] {
        ip(emulation, 2, arguments);
    }
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let files = files.to_str().unwrap();
    let init = format!(
        "#!/usr/bin/bash\nown={own} peer={fixed} key=0x{key} there={files}/there back={files}/back\n{INIT}"
    );
    let script = format!("{files}/init");
    fs::write(&script, init).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let console = File::create(format!("{files}/console")).unwrap();
    let start = || {
        Command::new("/usr/bin/linux.uml")
            .args(["mem=96M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"])
            .args(["con=null", "con0=null,fd:1", "eth0=tuntap,tap0"])
            .arg(format!("init={script}"))
            .stdin(Stdio::null())
            .stderr(console.try_clone()?)
            .stdout(console)
            .process_group(0)
            .spawn()
    };
    Kernel(emulation.namespace(2).run(start).unwrap().unwrap())
}

/// How long a kernel may take to boot and to transfer.
const PATIENCE: Duration = Duration::from_secs(25);

/// Whether there is still time.
fn has_time(clock: Clock) -> bool {
    u128::from(clock.now().as_nanos()) < PATIENCE.as_nanos()
}

/// The next connection; `None` if there is none in time, or the kernel has ended.
fn accept(listener: &TcpListener, kernel: &mut Kernel, clock: Clock) -> Option<TcpStream> {
    listener.set_nonblocking(true).unwrap();
    while has_time(clock) && matches!(kernel.0.try_wait(), Ok(None)) {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            return Some(stream);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// What is sent from the second kernel, and back.
fn contents() -> [Vec<u8>; 2] {
    [13, 11].map(|shift| (0..300_000_u64).map(|place| (place ^ place >> shift) as u8).collect())
}

/// What became of the transfers.
struct Exchange {
    /// What arrived from the second kernel, if it connected.
    arrived: Option<Vec<u8>>,
    console: String,
    /// The packets that passed the kernel before it.
    packets: Vec<Vec<u8>>,
    outcome: testbed::Outcome,
}

fn exchange(label: &str, key: &[u8]) -> Option<Exchange> {
    if let Err(missing) = programs() {
        skip(&missing);
        return None;
    }
    let emulation = emulate(PATH, label)?;
    let files = directory(label);
    let [there, back] = contents();
    fs::write(files.join("there"), &there).unwrap();
    fs::write(files.join("back"), &back).unwrap();
    let listen = |port| {
        let at = SocketAddr::new(emulation.address(0, IpVersion::V6), port);
        emulation.namespace(0).run(|| TcpListener::bind(at)).unwrap().unwrap()
    };
    let listeners = PORTS.map(listen);
    let capture = spep::Capture::start(emulation.namespace(2));
    let (mut kernel, clock) = (boot(&emulation, &files, key), Clock::start());
    let arrived = accept(&listeners[0], &mut kernel, clock).map(|mut stream| {
        let mut arrived = Vec::new();
        stream.read_to_end(&mut arrived).unwrap();
        arrived
    });
    if arrived.is_some()
        && let Some(mut stream) = accept(&listeners[1], &mut kernel, clock)
    {
        stream.write_all(&back).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    }
    while has_time(clock) && matches!(kernel.0.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    eprintln!("{label}: the second kernel took {}", clock.now());
    drop(kernel);
    let console = fs::read(files.join("console")).unwrap();
    let console = String::from_utf8_lossy(&console).into_owned();
    let packets = capture.stop();
    let outcome = emulation.stop().unwrap();
    // Linux 6.1 in user mode cannot restore the registers of processors with AMX, and ends as it boots.
    if console.contains("ptrace set fp regs failed") {
        skip(&"user-mode Linux does not know the registers of this processor");
        return None;
    }
    Some(Exchange { arrived, console, packets, outcome })
}

#[test]
fn the_esp_of_linux_and_ours_read_each_other_also_behind_the_option() {
    let right = [&EspKeys::LAB_KEY[..], &EspKeys::LAB_SALT].concat();
    let wrong = [&[7; 16][..], &EspKeys::LAB_SALT].concat();
    let both =
        at_once([("uml", right), ("uml-wrong", wrong)], |(label, key)| exchange(label, &key));
    let [Some(right), Some(wrong)] = both else { return };
    let count = |outcome: &testbed::Outcome, name| {
        let counts = outcome.run.box_counts.iter().filter(|count| count.name == name);
        counts.map(|count| count.count).sum::<u64>()
    };
    eprintln!("{}\n{:?}", right.console, right.outcome.run.box_counts);
    let says = |word| right.console.lines().any(|line| line.trim_end() == word);
    assert!(says("sent") && says("received"), "{}", right.console);
    assert!(right.arrived.is_some_and(|arrived| arrived == contents()[0]));
    let [opened, protected, marked] =
        ["opened", "protected", "marked"].map(|name| count(&right.outcome, name));
    assert!(
        opened > 210 && protected > 230 && marked == protected,
        "{opened} {protected} {marked}"
    );
    // What the base station had written was in front of what it accepted.
    let packets = right.packets.iter().filter_map(|bytes| Some(Packet::parse(bytes).ok()?.0));
    let filled = packets.filter_map(|packet| {
        let esp = packet.esp()?;
        Spep::of(&packet).map(|spep| spep.blocks[0] == (1, esp.sequence))
    });
    let filled: Vec<bool> = filled.collect();
    // Nearly each is captured as it arrives, and as it leaves.
    assert!(filled.len() as u64 > protected && !filled.contains(&false), "{filled:?}");
    // With another key, nothing arrives.
    assert!(wrong.arrived.is_none() && count(&wrong.outcome, "opened") == 0, "{}", wrong.console);
}
