//! The programs of a server, with settings of their own and files in a folder.

use crate::common::{Folder, SERVER, World};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The programs at both ends.
const NEEDED: [&str; 9] =
    ["curl", "iperf3", "nginx", "openssl", "rsync", "ssh", "ssh-keygen", "sshd", "vsftpd"];

/// Where the servers listen.
const PORTS: [u16; 8] = [21, 22, 80, 443, IPERF[0], IPERF[1], IPERF[2], IPERF[3]];

/// The ports of iperf3, by version of IP, each for TCP and for UDP: it serves one test at a time, and refuses who comes
/// while it ends one.
pub(super) const IPERF: [u16; 4] = [5201, 5202, 5203, 5204];

/// A program's file.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Those of servers are not in everybody's path.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Running servers, which are ended with this.
pub(super) struct Servers {
    children: Vec<Child>,
    pub(super) folder: Folder,
}

impl Servers {
    /// Starts a web server, which takes files and has TLS, and those of ssh, FTP and iperf3; `None`, and a word about
    /// it, where a program is missing.
    pub(super) fn start(world: &World, label: &str) -> Option<Servers> {
        let missing: Vec<_> = NEEDED.into_iter().filter(|name| program(name).is_none()).collect();
        if !missing.is_empty() {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            let missing = missing.join(", ");
            let _ = writeln!(std::io::stderr(), "SKIPPED {test}: there is no {missing}");
            return None;
        }
        let mut servers = Servers { children: Vec::new(), folder: Folder::new(label) };
        servers.prepare();
        let at = |name: &str| servers.path(name).display().to_string();
        let mut commands = vec![
            vec!["nginx".to_owned(), "-p".into(), at(""), "-c".into(), at("nginx.conf")],
            vec!["sshd".into(), "-D".into(), "-e".into(), "-f".into(), at("sshd.conf")],
            vec!["vsftpd".into(), at("vsftpd.conf")],
        ];
        let iperf = |port: u16| vec!["iperf3".into(), "-s".into(), "-p".into(), port.to_string()];
        commands.extend(IPERF.map(iperf));
        for words in commands {
            servers.spawn(world, &words);
        }
        for port in PORTS {
            servers.wait_for(world, port);
        }
        Some(servers)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    fn log(&self) -> PathBuf {
        self.path("log")
    }

    /// Keys, certificate, and what each program is told.
    fn prepare(&self) {
        let folder = &self.folder.0;
        let shown = folder.display();
        // Servers give up root's rights.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["www", "www/up", "ftp", "ftp/up", "empty"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        // Anonymous users of FTP become the user `nobody`.
        fs::set_permissions(folder.join("ftp/up"), fs::Permissions::from_mode(0o777)).unwrap();
        // Where sshd stands while it does not trust its client yet.
        fs::create_dir_all("/run/sshd").unwrap();
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &format!("{shown}/host")]);
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &format!("{shown}/user")]);
        let (key, certificate) = (format!("{shown}/tls.key"), format!("{shown}/tls.crt"));
        let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
        let subject = ["-nodes", "-subj", "/CN=server", "-addext", "subjectAltName=DNS:server"];
        let files = ["-keyout", &key, "-out", &certificate];
        run("openssl", &[&request[..], &subject, &files].concat());
        let configurations = [
            ("nginx.conf", include_str!("nginx.conf")),
            ("sshd.conf", include_str!("sshd.conf")),
            ("vsftpd.conf", include_str!("vsftpd.conf")),
        ];
        for (name, text) in configurations {
            fs::write(folder.join(name), text.replace("FOLDER", &shown.to_string())).unwrap();
        }
    }

    fn spawn(&mut self, world: &World, words: &[String]) {
        let log = fs::OpenOptions::new().append(true).create(true).open(self.log()).unwrap();
        let mut command = Command::new(program(&words[0]).unwrap());
        command.args(&words[1..]).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.children.push(world.at(SERVER, || command.spawn()).unwrap());
    }

    /// Waits until a program listens at a port of the server's.
    pub(super) fn wait_for(&self, world: &World, port: u16) {
        let listens = || {
            ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"].into_iter().any(|table| {
                let table = fs::read_to_string(table).unwrap_or_default();
                // Number, own end, other end, state; that of a listener is 0A.
                table
                    .lines()
                    .map(|line| line.split_whitespace().collect::<Vec<_>>())
                    .any(|row| row[1].ends_with(&format!(":{port:04X}")) && row[3] == "0A")
            })
        };
        for _ in 0..200 {
            if world.at(SERVER, listens) {
                return;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("no program listens at port {port}:\n{}", self.said());
    }

    /// The log of all servers.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a program that is to succeed.
fn run(name: &str, arguments: &[&str]) {
    let output = Command::new(name).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {said}");
}

/// What is in a file that is to be there.
pub(super) fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
