//! Our stack and the kernel's, one at either end of a path: `make interop`.
//!
//! Prints a table, and writes what it found as JSON to the file that it is given.

#![allow(clippy::unwrap_used, reason = "a failure ends the program with its cause")]
#![allow(dead_code, reason = "what is shared with the tests is not all used here")]

#[cfg(target_os = "linux")]
#[path = "../tests/it/interop/cases.rs"]
mod cases;
#[cfg(target_os = "linux")]
#[path = "../tests/it/kernel.rs"]
mod kernel;
#[cfg(target_os = "linux")]
#[path = "../tests/it/interop/path.rs"]
mod path;
#[cfg(target_os = "linux")]
#[path = "../tests/it/interop/programs.rs"]
mod programs;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    matrix::main()
}

#[cfg(target_os = "linux")]
mod matrix {
    use super::cases::{self, CONGESTION_CONTROL, Meeting};
    use super::path::{OURS, Path, link};
    use base::{Duration, Seed};
    use link::{Config, Impairments, Reordering, Uniform};
    use live::Namespace;
    use live::emulator::Report;
    use serde_json::{Value, json};
    use std::process::{Command, ExitCode, Stdio};
    use std::time::Duration as Span;

    /// Sends and receives, by both versions of IP and both ways of opening a connection.
    const WAYS: [(Meeting, bool); 4] = [
        (Meeting { v6: false, we_open: true }, true),
        (Meeting { v6: true, we_open: false }, true),
        (Meeting { v6: false, we_open: false }, false),
        (Meeting { v6: true, we_open: true }, false),
    ];

    #[derive(Default)]
    struct Table {
        rows: Vec<Value>,
        failures: usize,
    }

    impl Table {
        fn row(
            &mut self,
            case: &str,
            meeting: Meeting,
            way: &str,
            size: Option<u64>,
            run: impl FnOnce() -> Option<String>,
        ) {
            let clock = live::Clock::start();
            let fault = run();
            let seconds = clock.now().as_nanos() as f64 / 1e9;
            let ip = if meeting.v6 { "IPv6" } else { "IPv4" };
            let opener = if meeting.we_open { "ours" } else { "kernel" };
            let rate = size.map(|size| size as f64 * 8e-6 / seconds);
            let shown = rate.map_or(String::new(), |rate| format!("{rate:.0} Mb/s"));
            let verdict = fault.as_deref().unwrap_or("ok");
            println!(
                "{case:34} {ip}  {way:8} opened by {opener:6} {seconds:7.2} s {shown:>10}  {verdict}"
            );
            self.failures += usize::from(fault.is_some());
            self.rows.push(json!({
                "case": case, "ip": ip, "way": way, "opened_by": opener, "bytes": size,
                "seconds": seconds, "mbps": rate, "ok": fault.is_none(), "fault": fault,
            }));
        }

        /// A transfer each way.
        fn transfers(&mut self, case: &str, path: Path, size: u64) {
            for (meeting, we_send) in WAYS {
                let way = if we_send { "sends" } else { "receives" };
                self.row(case, meeting, way, Some(size), || {
                    cases::transfer(&path, meeting, size, we_send)
                });
            }
            self.end(case, path);
        }

        /// The same case for all meetings.
        fn each(
            &mut self,
            case: &str,
            path: &Path,
            way: &str,
            run: impl Fn(&Path, Meeting) -> Option<String>,
        ) {
            for meeting in Meeting::ALL {
                self.row(case, meeting, way, None, || run(path, meeting));
            }
        }

        fn end(&mut self, case: &str, path: Path) {
            let (ended, report) = path.stop();
            let counts = ended.counts;
            if counts.device.failed > 0 || counts.device.delayed > 0 {
                println!("{case}: {counts:?}");
            }
            if let Some(report) = report {
                self.link(case, &report);
            }
        }

        /// What the link did; that it kept its time is not what is asked here.
        fn link(&mut self, case: &str, report: &Report) {
            let packets: u64 = report.directions.iter().map(|d| d.read).sum();
            let sum = |of: fn(&link::Statistics) -> u64| -> u64 {
                report.directions.iter().map(|direction| of(&direction.link)).sum()
            };
            let row = json!({
                "case": case, "packets": packets, "lost": sum(|s| s.lost),
                "corrupted": sum(|s| s.corrupted), "duplicated": sum(|s| s.duplicated),
                "reordered": sum(|s| s.reordered), "queue_dropped": sum(|s| s.dropped),
                "verdict": format!("{:?}", report.verdict()),
            });
            println!("  the link: {row}");
            self.rows.push(row);
        }
    }

    fn linked(what: &str, change: impl FnOnce(&mut Config)) -> Path {
        let mut config = link(500_000_000, Duration::from_micros(200));
        change(&mut config);
        Path::linked(what, &config, Seed(1)).unwrap()
    }

    fn lossy(what: &str, packet: f64) -> Path {
        linked(what, |config| config.errors = Uniform { bit: 0.0, packet }.into())
    }

    /// Seconds that a capture takes.
    const CAPTURE: u32 = 8;

    /// Packets of ours that tshark sees behind a link, and how many of them have a bad checksum.
    fn tshark(table: &mut Table) -> Option<Value> {
        let path = linked("tshark", |_| {});
        let file = std::env::temp_dir().join(format!("lasthop-{}.pcapng", std::process::id()));
        let capture = spawn(&path.kernel, CAPTURE, &file);
        let Ok(mut capture) = capture else {
            println!("no dumpcap here: checksums are not verified by others");
            return None;
        };
        std::thread::sleep(Span::from_millis(1500));
        for (meeting, we_send) in WAYS {
            cases::transfer(&path, meeting, 2_000_000, we_send);
            cases::reset(&path, meeting, we_send);
            cases::refused(&path, meeting);
        }
        let _ = capture.wait();
        table.end("captured", path);
        let ours = format!("ip.src == {} or ipv6.src == {}", OURS[0], OURS[1]);
        let output = Command::new("tshark")
            .args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y", &ours])
            .args(["-T", "fields", "-e", "ip.checksum.status", "-e", "tcp.checksum.status", "-r"])
            .arg(&file)
            .output();
        let _ = std::fs::remove_file(&file);
        let text = String::from_utf8(output.ok()?.stdout).ok()?;
        // "1" is good, and IPv6 has none of its own.
        let statuses: Vec<Vec<&str>> =
            text.lines().map(|line| line.split('\t').collect()).collect();
        let bad = statuses.iter().filter(|s| s.iter().any(|&s| !matches!(s, "" | "1"))).count();
        let good = statuses.iter().filter(|s| s.last() == Some(&"1")).count();
        println!(
            "tshark: {} packets of ours, {good} with a good TCP checksum, {bad} bad",
            statuses.len()
        );
        if bad > 0 || good == 0 || good != statuses.len() {
            table.failures += 1;
        }
        Some(json!({ "packets": statuses.len(), "good": good, "bad": bad }))
    }

    fn spawn(
        namespace: &Namespace,
        seconds: u32,
        file: &std::path::Path,
    ) -> std::io::Result<std::process::Child> {
        let run = || {
            Command::new("dumpcap")
                .args(["-q", "-i", "link0", "-a", &format!("duration:{seconds}"), "-w"])
                .arg(file)
                .stderr(Stdio::null())
                .spawn()
        };
        namespace.run(run).map_err(std::io::Error::other)?
    }

    pub(super) fn main() -> ExitCode {
        let file = std::env::args().nth(1);
        let only = std::env::args().nth(2);
        let mut table = Table::default();
        let t = &mut table;
        let wanted = |case: &str| only.as_deref().is_none_or(|only| case.contains(only));
        if wanted("clean") {
            t.transfers("1 GB clean", Path::direct("clean").unwrap(), 1_000_000_000);
        }
        for (case, size, loss) in [
            ("100 MB, 1 % lost", 100, 0.01),
            ("10 MB, 5 % lost", 10, 0.05),
            ("3 MB, 10 % lost", 3, 0.1),
        ] {
            if wanted(case) {
                t.transfers(case, lossy("loss", loss), size * 1_000_000);
            }
        }
        if wanted("reordered") {
            let reordering = Reordering { probability: 0.02, delay: Duration::from_micros(500) };
            let changed = Impairments { reordering, ..Impairments::default() };
            t.transfers(
                "100 MB, 2 % reordered",
                linked("order", |c| c.impairments = changed),
                100_000_000,
            );
        }
        if wanted("twice") {
            let changed = Impairments { duplication: 0.02, ..Impairments::default() };
            t.transfers(
                "100 MB, 2 % twice",
                linked("twice", |c| c.impairments = changed),
                100_000_000,
            );
        }
        if wanted("flipped") {
            let errors = Uniform { bit: 1e-6, packet: 0.0 };
            t.transfers(
                "100 MB, a bit in 10^6 flipped",
                linked("flips", |c| c.errors = errors.into()),
                100_000_000,
            );
        }
        if wanted("at once") {
            let path = Path::direct("many").unwrap();
            t.each("1,000 connections at once", &path, "both", |path, meeting| {
                cases::many(path, meeting, 1000, 100_000)
            });
            t.end("at once", path);
        }
        if wanted("conversations") {
            let path = Path::direct("talk").unwrap();
            for (we, way) in [(true, "ours"), (false, "kernel's")] {
                t.each("reset", &path, way, |path, meeting| cases::reset(path, meeting, we));
                t.each("half-close", &path, way, |path, meeting| {
                    cases::half_close(path, meeting, we, 10_000_000)
                });
                let pause = Duration::from_secs(3);
                let way = if we { "sends" } else { "receives" };
                t.each("zero window for 3 s", &path, way, |path, meeting| {
                    cases::zero_window(path, meeting, we, pause)
                });
            }
            t.each("refused", &path, "opener", cases::refused);
            for meeting in [Meeting::ALL[0], Meeting::ALL[1]] {
                t.row("keep-alive", meeting, "both", None, || {
                    cases::keep_alive(&path, meeting, Span::from_secs(5))
                });
            }
            t.end("conversations", path);
            let path = Path::linked("close", &link(100_000_000, cases::CROSSING), Seed(1)).unwrap();
            t.each("simultaneous close", &path, "both", |path, meeting| {
                // Whether the FINs cross depends on the machine: it may take several.
                let crossed =
                    (0..10).find_map(|_| match cases::simultaneous_close(path, meeting) {
                        Ok(true) => Some(None),
                        Ok(false) => None,
                        Err(fault) => Some(Some(fault)),
                    });
                crossed.unwrap_or(Some("the FINs have never crossed".to_owned()))
            });
            t.end("simultaneous close", path);
        }
        let checksums = if wanted("tshark") { tshark(t) } else { None };
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let result = json!({
            "kernel": kernel.trim(), "kernel_congestion_control": CONGESTION_CONTROL,
            "rows": table.rows, "tshark": checksums, "failures": table.failures,
        });
        if let Some(file) = file {
            std::fs::write(file, serde_json::to_string_pretty(&result).unwrap() + "\n").unwrap();
        }
        println!("{} failures", table.failures);
        if table.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
