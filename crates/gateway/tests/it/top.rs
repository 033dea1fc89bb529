//! `lasthopd top` at a terminal.

use crate::common::{CLEAN, World, beside};
use crate::operation::{Operated, talk};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{dup, read, write};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// A terminal of 80 columns and 24 lines with a program in it.
struct Terminal {
    keyboard: OwnedFd,
    /// Kept open, so that the terminal outlives the program.
    inside: OwnedFd,
    shown: Receiver<Vec<u8>>,
    child: Child,
}

impl Terminal {
    fn start(operated: &Operated) -> Terminal {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let inside = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&inside, size).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_lasthopd"))
            .args(["top", "--socket"])
            .arg(operated.socket())
            .env("TERM", "xterm")
            .stdin(dup(&inside).unwrap())
            .stdout(dup(&inside).unwrap())
            .stderr(dup(&inside).unwrap())
            .spawn()
            .unwrap();
        let (sender, shown) = channel();
        let screen = dup(&keyboard).unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = read(&screen, &mut buffer) {
                if sender.send(buffer[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { keyboard, inside, shown, child }
    }

    /// What is written until a text is, and it.
    fn until(&self, text: &str) -> String {
        let mut all = Vec::new();
        while !String::from_utf8_lossy(&all).contains(text) {
            match self.shown.recv_timeout(Duration::from_secs(10)) {
                Ok(more) => all.extend(more),
                Err(error) => panic!("no {text:?}, {error}: {}", String::from_utf8_lossy(&all)),
            }
        }
        String::from_utf8(all).unwrap()
    }

    fn press(&self, keys: &[u8]) {
        assert_eq!(write(&self.keyboard, keys).unwrap(), keys.len());
    }

    fn settings(&self) -> Termios {
        tcgetattr(&self.inside).unwrap()
    }

    fn ended(&mut self) -> ExitStatus {
        for _ in 0..100 {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("it does not end");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ENTERS: &str = "\u{1b}[?1049h";
const LEAVES: &str = "\u{1b}[?1049l";
const SHOWS_CURSOR: &str = "\u{1b}[?25h";

#[test]
fn top_shows_users_and_connections_at_a_terminal_until_a_key_ends_it() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "top") else { return };
        let operated = Operated::start(&world, "top", "");
        let [user, server] = talk(&world, 3000, 50_000);
        let [client, to] = [&user, &server].map(|end| end.local_addr().unwrap());
        // q, and Ctrl-C, which is a key like others meanwhile.
        for end in [b"q", b"\x03"] {
            let mut terminal = Terminal::start(&operated);
            let first = terminal.until("q ends");
            assert!(first.contains(ENTERS), "{first}");
            assert!(first.contains("1 connections of 1 users"), "{first}");
            // Each table begins with rates, and those of the next second are other ones.
            let rows: Vec<&str> = first.lines().collect();
            let row = |text: &str| rows.iter().find(|row| row.contains(text)).copied();
            assert!(row(&format!(" 1 {}", client.ip())).is_some(), "{first}");
            let row = row(&client.to_string()).unwrap_or_else(|| panic!("{first}"));
            assert!(row.contains(&format!("open    {client} {to}")), "{row}");
            let next = terminal.until("q ends");
            let row = next.lines().find(|row| row.contains(&client.to_string())).unwrap();
            let rates: Vec<_> = row.split_whitespace().take(2).collect();
            assert_eq!(rates, ["0", "0"], "{row}");
            let inside = terminal.settings();
            // Other keys do nothing.
            terminal.press(b"x");
            terminal.press(end);
            let last = terminal.until(LEAVES);
            assert!(last.contains(SHOWS_CURSOR), "{last}");
            assert!(terminal.ended().success());
            let after = terminal.settings();
            let of = |settings: &Termios| {
                (settings.local_modes, settings.input_modes, settings.output_modes)
            };
            let fresh = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
            assert_eq!(of(&after), of(&tcgetattr(&fresh).unwrap()));
            assert_ne!(of(&after), of(&inside));
        }
        operated.service.stop();
    });
}
