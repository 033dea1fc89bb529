//! The program as a service.

use crate::common::{CLEAN, Folder, GATEWAY, INTERFACES, World, beside, exchange};
use live::Netlink;
use rustix::process::{Pid, Signal, kill_process};
use scenario::IpVersion;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// A program that is ended with this.
pub(crate) struct Running {
    pub(crate) child: Child,
    folder: Folder,
    notes: UnixDatagram,
}

impl Running {
    pub(crate) fn start(world: &World, label: &str) -> Running {
        Running::with(world, label, "")
    }

    /// Starts it with these keys besides its interfaces, in which FOLDER is its folder.
    pub(crate) fn with(world: &World, label: &str, keys: &str) -> Running {
        Running::configured(world, label, &format!("{INTERFACES}{keys}\n"))
    }

    /// Starts it with this configuration, in which FOLDER is its folder.
    pub(crate) fn configured(world: &World, label: &str, text: &str) -> Running {
        Running::prepared(world, label, text, || ())
    }

    /// The same on a thread that does this before.
    pub(crate) fn prepared(
        world: &World,
        label: &str,
        text: &str,
        prepare: impl FnOnce() + Send,
    ) -> Running {
        let folder = Folder::new(label);
        let text = text.replace("FOLDER", folder.0.to_str().unwrap());
        fs::write(folder.0.join("lasthopd.toml"), text).unwrap();
        Running::in_folder(world, folder, prepare)
    }

    /// Kills it, as `kill -9` does, and starts it again.
    pub(crate) fn killed(self, world: &World, meanwhile: impl FnOnce()) -> Running {
        self.ended_by(Signal::KILL, world, meanwhile)
    }

    /// Ends it with a signal, and starts it again.
    pub(crate) fn ended_by(
        mut self,
        signal: Signal,
        world: &World,
        meanwhile: impl FnOnce(),
    ) -> Running {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap();
        meanwhile();
        let folder = std::mem::replace(&mut self.folder, Folder("/nonexistent".into()));
        Running::in_folder(world, folder, || ())
    }

    fn in_folder(world: &World, folder: Folder, prepare: impl FnOnce() + Send) -> Running {
        let _ = fs::remove_file(folder.0.join("notify"));
        let notes = UnixDatagram::bind(folder.0.join("notify")).unwrap();
        notes.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let log = fs::File::create(folder.0.join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthopd"));
        command
            .args(["run", "--log-format", "json"])
            .arg("--config")
            .arg(folder.0.join("lasthopd.toml"))
            .arg("--socket")
            .arg(folder.0.join("socket"))
            .env("NOTIFY_SOCKET", folder.0.join("notify"))
            .env_remove("RUST_LOG")
            .stderr(log);
        let start = || {
            prepare();
            command.spawn()
        };
        let child = world.at(GATEWAY, start).unwrap();
        Running { child, folder, notes }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    /// Waits until the service manager is told this.
    pub(crate) fn told(&self, what: &str) {
        let mut buffer = [0; 500];
        loop {
            let len = self.notes.recv(&mut buffer).unwrap_or_else(|error| {
                panic!("{what}: {error}\n{}", fs::read_to_string(self.path("log")).unwrap())
            });
            if String::from_utf8_lossy(&buffer[..len]).lines().any(|line| line == what) {
                return;
            }
        }
    }

    /// Fills the queue of what the service manager is told, so that it takes no more.
    fn fill_notes(&self) {
        let other = UnixDatagram::unbound().unwrap();
        other.set_nonblocking(true).unwrap();
        while other.send_to(b"X", self.path("notify")).is_ok() {}
    }

    pub(crate) fn call(&self, world: &World, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthopd"));
        command.args(arguments).arg("--socket").arg(self.path("socket")).stdin(Stdio::null());
        world.at(GATEWAY, || command.output()).unwrap()
    }

    /// Waits for its end, and returns the messages of its log.
    pub(crate) fn ended(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.child.wait().unwrap();
        let log = fs::read_to_string(self.path("log")).unwrap();
        let message = |line: &str| {
            let event: serde_json::Value =
                serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            event["message"].as_str().unwrap().to_owned()
        };
        // Reports for people end it.
        let events = log.lines().take_while(|line| line.starts_with('{'));
        (status, events.map(message).collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_service_manager_hears_of_its_life_and_sigterm_ends_it() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "process") else { return };
        let running = Running::start(&world, "process");
        running.told("READY=1");
        running.told("WATCHDOG=1");
        running.told("WATCHDOG=1");
        exchange(&world, IpVersion::V4, [100_000, 100_000]);
        let status = running.call(&world, &["status", "--json"]);
        let state: gateway::Status = serde_json::from_slice(&status.stdout).unwrap();
        assert_eq!(state.pid, running.child.id());
        assert_eq!(state.counters["split connections"], 1);
        let config = running.path("lasthopd.toml");
        let doctor = running.call(&world, &["doctor", "--config", config.to_str().unwrap()]);
        let text = String::from_utf8_lossy(&doctor.stdout);
        assert!(doctor.status.success() && text.contains("lasthopd runs"), "{text}");
        let pid = Pid::from_child(&running.child);
        kill_process(pid, Signal::TERM).unwrap();
        running.told("STOPPING=1");
        let (status, messages) = running.ended();
        assert!(status.success());
        assert_eq!(messages, ["running", "ending"]);
        assert!(world.at(GATEWAY, || Netlink::open().unwrap().rules()).is_empty());
    });
}

#[test]
fn a_service_manager_that_does_not_read_holds_nothing_up() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "unread") else { return };
        let mut running = Running::start(&world, "unread");
        running.told("READY=1");
        let several_looks = Duration::from_millis(3500);
        running.fill_notes();
        std::thread::sleep(several_looks);
        fs::write(running.path("lasthopd.toml"), format!("{INTERFACES}rate = \"9 Mbit/s\"\n"))
            .unwrap();
        let pid = Pid::from_child(&running.child);
        kill_process(pid, Signal::HUP).unwrap();
        let reloaded = || fs::read_to_string(running.path("log")).unwrap().contains("reloaded");
        let soon = |mut done: Box<dyn FnMut() -> bool + '_>| {
            (0..100).any(|_| {
                std::thread::sleep(Duration::from_millis(50));
                done()
            })
        };
        assert!(soon(Box::new(reloaded)), "not reloaded");
        // When it reads again, it hears that the gateway lives.
        running.told("WATCHDOG=1");
        running.told("WATCHDOG=1");
        running.fill_notes();
        std::thread::sleep(several_looks);
        kill_process(pid, Signal::TERM).unwrap();
        assert!(soon(Box::new(|| running.child.try_wait().unwrap().is_some())), "it does not end");
        let (status, messages) = running.ended();
        assert!(status.success());
        assert_eq!(messages, ["running", "reloaded", "ending"]);
    });
}

#[test]
fn sighup_reloads_and_the_commands_drain_and_show_connections() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "commands") else { return };
        let running = Running::start(&world, "commands");
        running.told("READY=1");
        let rate = |expected: u64| {
            let state = gateway::status(&running.path("socket")).unwrap();
            state.counters["rate of the hop, bit/s"] == expected
        };
        assert!(rate(0));
        fs::write(running.path("lasthopd.toml"), format!("{INTERFACES}rate = \"9 Mbit/s\"\n"))
            .unwrap();
        kill_process(Pid::from_child(&running.child), Signal::HUP).unwrap();
        let changed = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            rate(9_000_000)
        });
        assert!(changed, "{}", fs::read_to_string(running.path("log")).unwrap());
        fs::write(running.path("lasthopd.toml"), "lan = 1\n").unwrap();
        let reload = running.call(&world, &["reload"]);
        let text = String::from_utf8_lossy(&reload.stderr);
        assert!(!reload.status.success() && text.contains("lasthopd.toml:1"), "{text}");
        let (listener, address) = world.listen(IpVersion::V4);
        let user = world.connect(address);
        let client = user.local_addr().unwrap().to_string();
        for command in [&["top"][..], &["status", "--connections"]] {
            let shown = running.call(&world, command);
            let text = String::from_utf8_lossy(&shown.stdout);
            assert!(shown.status.success() && text.contains(&client), "{text}");
        }
        let drained = running.call(&world, &["drain", "--timeout", "0"]);
        assert_eq!(drained.status.code(), Some(1));
        assert_eq!(drained.stdout, b"1 connections are left\n");
        assert!(running.call(&world, &["drain", "--undo"]).status.success());
        drop((listener, user));
    });
}

#[test]
fn a_device_that_is_removed_ends_it_with_an_error() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "removed") else { return };
        let running = Running::start(&world, "removed");
        running.told("READY=1");
        world.at(GATEWAY, || {
            let removed = Command::new("ip").args(["link", "delete", "lh-wan"]).status();
            assert!(removed.unwrap().success());
        });
        let (status, messages) = running.ended();
        assert_eq!(status.code(), Some(1));
        assert_eq!(messages, ["running", "a device was removed"]);
        // Packets pass without it.
        exchange(&world, IpVersion::V6, [100_000, 100_000]);
        assert!(world.at(GATEWAY, || Netlink::open().unwrap().rules()).is_empty());
    });
}

#[test]
fn without_a_gateway_each_command_that_asks_it_says_so() {
    let commands: [&[&str]; 6] = [
        &["status"],
        &["status", "--connections"],
        &["top"],
        &["drain"],
        &["reload"],
        &["capture", "192.0.2.1", "-o", "-"],
    ];
    for command in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_lasthopd"))
            .args(command)
            .args(["--socket", "/nowhere/socket"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8_lossy(&output.stderr);
        let says = "no gateway answers at /nowhere/socket: No such file";
        assert!(text.starts_with(says), "{command:?}: {text}");
    }
}
