//! Programs that people use, unchanged, through a gateway in each mode, to servers as they are installed.

mod servers;
mod translated;

use crate::common::{CLEAN, SERVER, USER, World, alone, content};
use crate::pair::Pair;
use gateway::Daemon;
use scenario::IpVersion;
use servers::{IPERF, Servers, bytes, program};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The files that go either way, bytes.
const LEN: usize = 500_000;

/// The objects of a page, bytes each.
const OBJECT: usize = 12_000;
const OBJECTS: usize = 30;

/// A user at a server by one version of IP.
struct Visit<'a> {
    world: &'a World,
    servers: &'a Servers,
    ip: IpVersion,
    /// A gateway writes addresses of its own in place of the users' in their TCP connections.
    is_translated: bool,
}

impl Visit<'_> {
    /// The server's address, as URLs have it.
    fn host(&self) -> String {
        match self.world.address(SERVER, self.ip) {
            address if address.is_ipv6() => format!("[{address}]"),
            address => address.to_string(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.servers.path(name).display().to_string()
    }

    /// Runs a program of the user's, which is to succeed.
    fn run(&self, name: &str, arguments: &[&str], input: Option<&Path>) -> Output {
        let mut command = Command::new(program(name).unwrap());
        command.args(arguments).stdin(match input {
            Some(path) => Stdio::from(fs::File::open(path).unwrap()),
            None => Stdio::null(),
        });
        let output = self.world.at(USER, || command.output()).unwrap();
        assert!(
            output.status.success(),
            "{name} {arguments:?}: {}, {}\n{}\nservers:\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(&output.stdout),
            self.servers.said()
        );
        output
    }

    fn curl(&self, arguments: &[&str]) -> Vec<u8> {
        let usual = ["--silent", "--show-error", "--fail", "--globoff", "--max-time", "20"];
        self.run("curl", &[&usual[..], arguments].concat(), None).stdout
    }

    fn ssh(&self, command: &str, input: Option<&Path>) -> Vec<u8> {
        let address = self.world.address(SERVER, self.ip).to_string();
        let (shell, target) = (self.shell(), format!("root@{address}"));
        let mut words: Vec<&str> = shell.split(' ').skip(1).collect();
        words.extend([target.as_str(), command]);
        self.run("ssh", &words, input).stdout
    }

    /// The command of ssh, as rsync needs it.
    fn shell(&self) -> String {
        let key = self.path("user");
        format!(
            "ssh -F none -i {key} -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
             -o LogLevel=ERROR -o ConnectTimeout=10"
        )
    }

    /// Files by HTTP in both directions, and the address that the server sees.
    fn web(&self) {
        let host = self.host();
        let got = self.curl(&[&format!("http://{host}/file")]);
        assert!(got == content(1, LEN), "{} bytes were downloaded", got.len());
        let name = format!("web-{:?}", self.ip);
        self.curl(&["-T", &self.path("mine"), &format!("http://{host}/up/{name}")]);
        assert!(bytes(&self.servers.path(&format!("www/up/{name}"))) == content(2, LEN));
        let seen = String::from_utf8(self.curl(&[&format!("http://{host}/address")])).unwrap();
        let seen = seen.trim_start_matches("::ffff:");
        let own = self.world.address(USER, self.ip).to_string();
        assert_eq!(seen != own, self.is_translated, "the server sees {seen}, the user has {own}");
    }

    /// A page of many objects, by connections of HTTP/1.1, and by one of HTTP/2 in TLS.
    fn page(&self) {
        let folder = self.path(&format!("page-{:?}", self.ip));
        let certificate = self.path("tls.crt");
        let resolved = format!("server:443:{}", self.host());
        let trust = ["--http2", "--cacert", &certificate, "--resolve", &resolved];
        for (base, options) in [
            (format!("http://{}", self.host()), &["--http1.1"][..]),
            ("https://server".into(), &trust),
        ] {
            fs::create_dir(&folder).unwrap();
            let mut words = options.to_vec();
            words.extend(["--parallel", "--parallel-max", "6", "--write-out", "%{http_version} "]);
            let objects: Vec<[String; 2]> = (0..OBJECTS)
                .map(|number| [format!("{folder}/{number}"), format!("{base}/object{number}")])
                .collect();
            for [file, url] in &objects {
                words.extend(["-o", file, url]);
            }
            let versions = String::from_utf8(self.curl(&words)).unwrap();
            let expected = if base.starts_with("https") { "2 " } else { "1.1 " };
            assert_eq!(versions, expected.repeat(OBJECTS));
            for (number, [file, _]) in objects.iter().enumerate() {
                assert!(bytes(Path::new(file)) == content(number as u64, OBJECT), "{file}");
            }
            fs::remove_dir_all(&folder).unwrap();
        }
    }

    /// `ssh host cat` in either direction, and both at once: an end says that it has no more, and hears the rest.
    fn ssh_cat(&self) {
        let (mine, theirs) = (self.servers.path("mine"), self.path("www/file"));
        assert!(self.ssh("cat", Some(&mine)) == content(2, LEN));
        assert!(self.ssh(&format!("cat {theirs}"), None) == content(1, LEN));
        let copy = self.path(&format!("copy-{:?}", self.ip));
        self.ssh(&format!("cat > {copy}"), Some(&mine));
        assert!(bytes(Path::new(&copy)) == content(2, LEN));
    }

    /// Folders by rsync over ssh, there and back.
    fn rsync(&self) {
        let (there, back) =
            (self.path(&format!("there-{:?}", self.ip)), self.path(&format!("back-{:?}", self.ip)));
        let remote = format!("root@{}:{there}/", self.host());
        let shell = self.shell();
        self.run("rsync", &["-az", "-e", &shell, &self.path("www/"), &remote], None);
        self.run("rsync", &["-az", "-e", &shell, &remote, &format!("{back}/")], None);
        assert!(bytes(&Path::new(&back).join("file")) == content(1, LEN));
        assert!(bytes(&Path::new(&back).join("object29")) == content(29, OBJECT));
    }

    /// Files by FTP: the user connects for the data, or the server does.
    fn ftp(&self) {
        let url = format!("ftp://{}", self.host());
        for (name, options) in [("passive", &[][..]), ("active", &["--ftp-port", "-"])] {
            let got = self.curl(&[options, &[&format!("{url}/file")]].concat());
            assert!(got == content(1, LEN), "{name}: {} bytes", got.len());
            let file = format!("{name}-{:?}", self.ip);
            let target = format!("{url}/up/{file}");
            self.curl(&[options, &["-T", &self.path("mine"), &target]].concat());
            assert!(bytes(&self.servers.path(&format!("ftp/up/{file}"))) == content(2, LEN));
        }
    }

    /// TCP in both directions at once, and UDP, which is not the gateway's.
    fn iperf(&self) {
        let address = self.world.address(SERVER, self.ip).to_string();
        let ports = &IPERF[2 * usize::from(self.ip == IpVersion::V6)..];
        let tests = [
            (&["--bidir", "-t", "1"][..], &["sum_received", "sum_received_bidir_reverse"][..]),
            (&["-u", "-b", "4M", "-n", "200K"], &["sum_received"]),
        ];
        for ((options, sums), port) in tests.into_iter().zip(ports) {
            let port = port.to_string();
            let usual = ["-c", &address, "-p", &port, "--json", "--connect-timeout", "5000"];
            let said = self.run("iperf3", &[&usual[..], options].concat(), None).stdout;
            let report: serde_json::Value = serde_json::from_slice(&said).unwrap();
            for sum in sums {
                let received = report["end"][sum]["bytes"].as_u64();
                assert!(received.is_some_and(|bytes| bytes > 10_000), "{sum}: {report}");
            }
        }
    }

    /// All programs at the same time.
    fn all(&self) {
        std::thread::scope(|scope| {
            let visits: [fn(&Self); 6] =
                [Self::web, Self::page, Self::ssh_cat, Self::rsync, Self::ftp, Self::iperf];
            for visit in visits {
                scope.spawn(move || visit(self));
            }
        });
    }
}

/// The least connections that programs open by one version of IP, those of active FTP left out: 3 for files by HTTP,
/// 2 for pages, 3 for ssh, 2 for rsync, 4 for FTP, and 3 for iperf3 by TCP, 1 beside UDP.
const CONNECTIONS: u64 = 18;

/// All programs, by both versions of IP, through a gateway that the caller has started.
fn programs_work(world: &World, servers: &Servers, daemon: &Daemon, is_translated: bool) {
    let split = || daemon.boxes().unwrap().get("split connections").copied().unwrap_or(0);
    let before = split();
    std::thread::scope(|scope| {
        for ip in [IpVersion::V4, IpVersion::V6] {
            scope.spawn(move || Visit { world, servers, ip, is_translated }.all());
        }
    });
    let count = split() - before;
    assert!(count >= 2 * CONNECTIONS, "{count} connections were split: {:?}", daemon.boxes());
    assert_eq!(daemon.counts().unwrap().without_bytes, 0);
}

/// What both ends have.
fn fill(servers: &Servers) {
    fs::write(servers.path("mine"), content(2, LEN)).unwrap();
    for folder in ["www", "ftp"] {
        fs::write(servers.path(folder).join("file"), content(1, LEN)).unwrap();
    }
    for number in 0..OBJECTS {
        let object = content(number as u64, OBJECT);
        fs::write(servers.path(&format!("www/object{number}")), object).unwrap();
    }
}

/// A world with servers.
fn start(label: &str, make: fn(&str, &str) -> Option<World>) -> Option<(World, Servers)> {
    let world = make(CLEAN, label)?;
    let servers = Servers::start(&world, label)?;
    fill(&servers);
    Some((world, servers))
}

#[test]
fn programs_work_through_a_gateway_of_each_mode() {
    alone(|| {
        for keys in ["mode = \"spoof\"", "mode = \"split\""] {
            let Some((world, servers)) = start("programs", World::new) else { return };
            let daemon = world.gateway(keys);
            programs_work(&world, &servers, &daemon, false);
            daemon.stop();
        }
    });
}

#[test]
fn programs_work_through_a_pair_of_gateways() {
    alone(|| {
        let Some((world, servers)) = start("pair-programs", World::pair) else { return };
        let pair = Pair::new("programs", "rate = \"50 Mbit/s\"");
        let (near, far) = (pair.near(&world, IpVersion::V4), pair.far(&world));
        crate::pair::wait_for_association(&world, &near);
        programs_work(&world, &servers, &near, false);
        near.stop();
        far.stop();
    });
}
