//! Mode `pair`.

use crate::common::{
    CLEAN, FAR, Folder, GATEWAY, INTERFACES, Process, World, beside, configuration,
    configuration_at, content, exchange,
};
use gateway::Daemon;
use live::Clock;
use scenario::{Gateway, IpVersion};
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// A long hop that loses packets.
const LOSSY: &str =
    "rate = \"10 Mbit/s\"\ndelay = \"100 ms\"\nqueue = \"100 packets\"\nerrors = { packet = 0.05 }";

/// A key of a gateway in a file that is removed afterwards.
struct Key(PathBuf);

impl Key {
    fn new(label: &str) -> Key {
        let name = format!("lasthop-{}-{label}.key", std::process::id());
        let key = Key(std::env::temp_dir().join(name));
        key.public();
        key
    }

    fn public(&self) -> String {
        gateway::public_key(&self.0).unwrap().to_string()
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const FAR_INTERFACES: &str = "lan = \"link2\"\nwan = \"link1\"\n";

/// Two gateways, of which the one at the server's side does not know where the other is.
pub(crate) struct Pair {
    near: Key,
    far: Key,
    keys: &'static str,
}

impl Pair {
    pub(crate) fn new(label: &str, keys: &'static str) -> Pair {
        let key = |end: &str| Key::new(&format!("{label}-{end}"));
        Pair { near: key("near"), far: key("far"), keys }
    }

    pub(crate) fn near(&self, world: &World, ip: IpVersion) -> Daemon {
        world.gateway(&self.near_keys(world, ip))
    }

    pub(crate) fn near_configuration(&self, world: &World, ip: IpVersion) -> Gateway {
        configuration(&self.near_keys(world, ip))
    }

    pub(crate) fn far_configuration(&self) -> Gateway {
        configuration_at(FAR_INTERFACES, &self.far_keys())
    }

    pub(crate) fn near_keys(&self, world: &World, ip: IpVersion) -> String {
        let peer = std::net::SocketAddr::new(world.address(FAR, ip), 51_995);
        let (key, public) = (self.near.0.display(), self.far.public());
        let keys = self.keys;
        format!(
            "mode = \"pair\"\npeer = \"{peer}\"\n\
             key = \"{key}\"\npeer_key = \"{public}\"\n{keys}"
        )
    }

    pub(crate) fn far(&self, world: &World) -> Daemon {
        world.gateway_at(FAR, FAR_INTERFACES, &self.far_keys())
    }

    fn far_keys(&self) -> String {
        let (key, public, keys) = (self.far.0.display(), self.near.public(), self.keys);
        format!("mode = \"pair\"\nkey = \"{key}\"\npeer_key = \"{public}\"\n{keys}")
    }

    /// The gateway at the server's side as a process, which can be killed.
    fn far_process(&self, world: &World, folder: &Folder) -> Process {
        self.process(world, FAR, &format!("{FAR_INTERFACES}{}", self.far_keys()), folder)
    }

    fn process(&self, world: &World, node: usize, config: &str, folder: &Folder) -> Process {
        let file = folder.0.join("lasthopd.toml");
        fs::write(&file, config).unwrap();
        let config = file;
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthopd"));
        command.args(["run", "--config"]).arg(config).arg("--socket").arg(folder.0.join("socket"));
        command.stderr(fs::File::create(folder.0.join("log")).unwrap());
        Process(world.at(node, || command.spawn()).unwrap())
    }
}

fn count(daemon: &Daemon, name: &str) -> u64 {
    daemon.boxes().unwrap().get(name).copied().unwrap_or(0)
}

/// Waits until connections are split.
pub(crate) fn wait_for_association(world: &World, daemon: &Daemon) {
    let before = count(daemon, "split connections");
    for _ in 0..60 {
        thread::sleep(Duration::from_millis(500));
        exchange(world, IpVersion::V4, [1, 1]);
        if count(daemon, "split connections") > before {
            return;
        }
    }
    panic!("no association");
}

#[test]
fn connections_of_both_versions_of_ip_go_over_one_association_and_are_whole() {
    beside(|| {
        for hop_ip in [IpVersion::V4, IpVersion::V6] {
            let Some(world) = World::pair(LOSSY, "pair") else { return };
            let pair = Pair::new("both", "rate = \"10 Mbit/s\"");
            // Whoever comes second is found.
            let near = pair.near(&world, hop_ip);
            let far = pair.far(&world);
            wait_for_association(&world, &near);
            let before = count(&near, "split connections");
            for ip in [IpVersion::V4, IpVersion::V6] {
                exchange(&world, ip, [300_000, 2_000_000]);
            }
            for daemon in [&near, &far] {
                let split = count(daemon, "split connections") - before;
                assert_eq!(split, 2, "{:?}", daemon.boxes());
                assert!(count(daemon, "SRP segments") > 200);
                assert_eq!(daemon.counts().unwrap().without_bytes, 0);
            }
            near.stop();
            far.stop();
        }
    });
}

/// A connection of the user's, with the server's end of it, after a byte in each direction.
fn open(world: &World) -> [TcpStream; 2] {
    let (listener, address) = world.listen(IpVersion::V4);
    let mut user = world.connect(address);
    let mut server = listener.accept().unwrap().0;
    server.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut byte = [0];
    user.write_all(&[1]).unwrap();
    server.read_exact(&mut byte).unwrap();
    server.write_all(&[2]).unwrap();
    user.read_exact(&mut byte).unwrap();
    [user, server]
}

#[test]
fn where_the_address_of_a_gateway_changes_its_connections_go_on() {
    beside(|| {
        let Some(world) = World::pair(CLEAN, "moved") else { return };
        let pair = Pair::new("moved", "rate = \"50 Mbit/s\"");
        let near = pair.near(&world, IpVersion::V4);
        let far = pair.far(&world);
        wait_for_association(&world, &near);
        let before = count(&near, "split connections");
        let [mut user, mut server] = open(&world);
        const BYTES: usize = 10_000_000;
        let sending = thread::spawn(move || {
            server.write_all(&content(2, BYTES)).unwrap();
            server.shutdown(Shutdown::Write).unwrap();
            server
        });
        let mut got = vec![0; 1_000_000];
        user.read_exact(&mut got).unwrap();
        // The far gateway knows the near one by its packets alone.
        let ip = |node: usize, command: String| {
            let run = || Command::new("ip").args(command.split(' ')).status().unwrap();
            assert!(world.at(node, run).success(), "{command}");
        };
        let far_address = world.address(FAR, IpVersion::V4);
        ip(FAR, "route add 192.0.2.77 dev link1".to_owned());
        ip(GATEWAY, "address add 192.0.2.77/32 dev link1".to_owned());
        ip(GATEWAY, format!("route replace {far_address} dev link1 src 192.0.2.77"));
        let rules = "table inet moved { chain in { type filter hook prerouting priority -500; \
                     udp dport 51995 ip saddr != 192.0.2.77 drop; }; }";
        let only_new = || Command::new("nft").arg(rules).status().unwrap();
        assert!(world.at(FAR, only_new).success());
        user.read_to_end(&mut got).unwrap();
        assert!(got == content(2, BYTES), "{} bytes", got.len());
        user.write_all(&[7]).unwrap();
        let (mut server, mut byte) = (sending.join().unwrap(), [0]);
        server.read_exact(&mut byte).unwrap();
        assert_eq!((byte, count(&near, "split connections")), ([7], before + 1));
        near.stop();
        far.stop();
    });
}

#[test]
fn when_either_gateway_ends_the_ends_are_told_and_when_it_starts_again_connections_are_split() {
    beside(|| {
        let Some(world) = World::pair(CLEAN, "restart") else { return };
        let pair = Pair::new("restart", "rate = \"50 Mbit/s\"");
        let mut near = pair.near(&world, IpVersion::V4);
        let mut far = pair.far(&world);
        wait_for_association(&world, &near);
        for ends_near in [true, false] {
            let before = count(&near, "split connections");
            let ends = open(&world);
            assert_eq!(count(&near, "split connections"), before + 1);
            if ends_near {
                near.stop();
                near = pair.near(&world, IpVersion::V4);
            } else {
                far.stop();
                far = pair.far(&world);
            }
            for mut end in ends {
                let error = end.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{ends_near}: {error}");
            }
            wait_for_association(&world, if ends_near { &near } else { &far });
            exchange(&world, IpVersion::V6, [100_000, 100_000]);
        }
        near.stop();
        far.stop();
    });
}

#[test]
fn when_one_was_killed_and_starts_again_no_end_hangs_and_connections_are_split() {
    beside(|| {
        let Some(world) = World::pair(CLEAN, "killed") else { return };
        let pair = Pair::new("killed", "rate = \"50 Mbit/s\"");
        let folder = Folder::new("killed");
        let near = pair.near(&world, IpVersion::V4);
        let far = pair.far_process(&world, &folder);
        wait_for_association(&world, &near);
        let [mut user, mut server] = open(&world);
        drop(far);
        let _far = pair.far_process(&world, &folder);
        let error = user.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        // What the server sends next goes to the user directly, who knows the connection no more.
        let refused = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(100));
            server.write_all(&[3]).is_err()
        });
        assert!(refused);
        wait_for_association(&world, &near);
        exchange(&world, IpVersion::V6, [100_000, 100_000]);
        near.stop();
    });
}

#[test]
fn a_client_who_waits_while_the_other_gateway_starts_again_is_not_refused() {
    beside(|| {
        let Some(world) = World::pair(CLEAN, "waiting") else { return };
        let pair = Pair::new("waiting", "rate = \"50 Mbit/s\"");
        let folder = Folder::new("waiting");
        let near = pair.near(&world, IpVersion::V4);
        let far = pair.far_process(&world, &folder);
        wait_for_association(&world, &near);
        let before = count(&near, "split connections");
        drop(far);
        let _far = pair.far_process(&world, &folder);
        // The near gateway does not know yet that its association is none of the other one's any more.
        exchange(&world, IpVersion::V4, [1000, 1000]);
        assert!(count(&near, "split connections") > before, "it was split at first");
        near.stop();
    });
}

#[test]
fn an_upgrade_of_either_gateway_goes_on_with_every_connection() {
    beside(|| {
        let Some(world) = World::pair(CLEAN, "pair-upgrade") else { return };
        let pair = Pair::new("upgrade", "rate = \"50 Mbit/s\"");
        let folders = ["near", "far"].map(|end| Folder::new(&format!("upgrade-{end}")));
        let keys = [pair.near_keys(&world, IpVersion::V4), pair.far_keys()];
        let [near, far] = [
            pair.process(&world, GATEWAY, &format!("{INTERFACES}{}", keys[0]), &folders[0]),
            pair.process(&world, FAR, &format!("{FAR_INTERFACES}{}", keys[1]), &folders[1]),
        ];
        let split = |folder: &Folder| {
            let status = gateway::status(&folder.0.join("socket")).ok();
            status.and_then(|status| status.gauges.get("split_connections").copied()).unwrap_or(0)
        };
        let mut ends = None;
        for _ in 0..60 {
            thread::sleep(Duration::from_millis(500));
            // Before there is an association, connections are passed on.
            let opened = open(&world);
            if split(&folders[0]) > 0 {
                ends = Some(opened);
                break;
            }
        }
        let Some([mut user, mut server]) = ends else { panic!("no association") };
        // Of this one, the last bytes wait for the user: its stream between the gateways is over.
        const LAST: usize = 150_000;
        let [mut late, mut done] = open(&world);
        late.shutdown(Shutdown::Write).unwrap();
        done.write_all(&content(3, LAST)).unwrap();
        drop(done);
        const BYTES: usize = 20_000_000;
        let mut copy = server.try_clone().unwrap();
        let sending = thread::spawn(move || copy.write_all(&content(2, BYTES)).unwrap());
        let clock = Clock::start();
        let mut longest = [base::Duration::ZERO; 2];
        let mut got = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        for (index, node) in [GATEWAY, FAR].into_iter().enumerate() {
            let until = got.len() + BYTES / 5;
            while got.len() < until {
                let len = user.read(&mut buffer).unwrap();
                got.extend_from_slice(&buffer[..len]);
            }
            let mut command = Command::new(env!("CARGO_BIN_EXE_lasthopd"));
            command.args(["upgrade", "--socket"]).arg(folders[index].0.join("socket"));
            let upgrading = world.at(node, || command.stderr(Stdio::piped()).spawn()).unwrap();
            let until = got.len() + BYTES / 5;
            while got.len() < until {
                let began = clock.now();
                let len = user.read(&mut buffer).unwrap();
                assert!(len > 0);
                longest[index] = longest[index].max(clock.now().since(began));
                got.extend_from_slice(&buffer[..len]);
            }
            let upgraded = upgrading.wait_with_output().unwrap();
            assert!(upgraded.status.success(), "{}", String::from_utf8_lossy(&upgraded.stderr));
            assert_eq!(split(&folders[index]), 2);
        }
        sending.join().unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        user.read_to_end(&mut got).unwrap();
        assert!(got == content(2, BYTES), "{} bytes", got.len());
        let mut last = Vec::new();
        late.read_to_end(&mut last).unwrap();
        assert!(last == content(3, LAST), "{} bytes", last.len());
        // The other direction, too.
        user.write_all(&[7]).unwrap();
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [7]);
        assert!(longest.iter().all(|pause| *pause < base::Duration::from_secs(3)), "{longest:?}");
        drop((near, far));
    });
}

#[test]
fn whichever_was_killed_and_starts_again_with_its_files_no_end_hangs_and_no_byte_is_wrong() {
    beside(|| {
        let Some(world) = World::pair(CLEAN, "pair-files") else { return };
        let pair = Pair::new("files", "rate = \"50 Mbit/s\"");
        let folders = ["near", "far"].map(|end| Folder::new(&format!("files-{end}")));
        let texts = [
            format!("{INTERFACES}{}", pair.near_keys(&world, IpVersion::V4)),
            format!("{FAR_INTERFACES}{}", pair.far_keys()),
        ];
        let start = |index: usize| {
            pair.process(&world, [GATEWAY, FAR][index], &texts[index], &folders[index])
        };
        let split = || {
            let status = gateway::status(&folders[0].0.join("socket")).ok();
            status.and_then(|status| status.counters.get("split connections").copied()).unwrap_or(0)
        };
        let wait = || {
            let before = split();
            for _ in 0..60 {
                thread::sleep(Duration::from_millis(500));
                exchange(&world, IpVersion::V4, [1, 1]);
                if split() > before {
                    return;
                }
            }
            panic!("no association");
        };
        let mut processes = [0, 1].map(|index| Some(start(index)));
        for killed in [0, 1, 0, 1] {
            wait();
            let ends = open(&world);
            processes[killed] = None;
            processes[killed] = Some(start(killed));
            for mut end in ends {
                end.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                let error = end.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{killed}: {error}");
            }
            wait();
            exchange(&world, IpVersion::V6, [100_000, 100_000]);
        }
    });
}
