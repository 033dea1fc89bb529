//! How a sender behaves on a bad path, judged by the segments that it sends and receives.

use crate::common::boxes::{Muddle, Tap, segment};
use crate::common::*;
use base::{Duration, Seed, Time};
use sim::FlowSample;
use tcp::Recovery;
use tcp::mechanism::Suppression;
use wire::{Flags, Packet, SeqNumber};

/// The scoreboard that RFC 6675 derives from the acknowledgments that a sender has received.
struct Auditor {
    /// Sequence number of the first byte of data.
    first: SeqNumber,
    una: u32,
    nxt: u32,
    /// Per byte range between `una` and `nxt`.
    ranges: Vec<Range>,
    /// The sender receives corruption notices, so that a retransmission replaces the lost copy.
    gets_notices: bool,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u32,
    end: u32,
    sacked: bool,
    /// A timeout has declared it lost.
    timed_out: bool,
    sent_again: bool,
}

impl Auditor {
    fn new(syn: SeqNumber, gets_notices: bool) -> Auditor {
        Auditor { first: syn + 1, una: 0, nxt: 0, ranges: Vec::new(), gets_notices }
    }

    fn on_ack(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        if ack < self.una {
            return;
        }
        self.una = ack;
        self.ranges.retain(|range| range.end > ack);
        for &(start, end) in blocks {
            for range in &mut self.ranges {
                range.sacked |= start <= range.start && range.end <= end;
            }
        }
    }

    fn on_timeout(&mut self) {
        for range in &mut self.ranges {
            range.timed_out = true;
            range.sent_again = false;
        }
    }

    /// RFC 6675 §4, SetPipe. A range is lost if three separate runs, or more than two segments, have
    /// arrived above it (IsLost).
    fn pipe(&self) -> u64 {
        let (mut pipe, mut runs, mut bytes, mut in_run) = (0, 0, 0, false);
        for range in self.ranges.iter().rev() {
            let len = u64::from(range.end - range.start);
            let lost = runs >= 3 || bytes > 2 * MSS;
            pipe += len
                * match range {
                    Range { sacked: true, .. } => 0,
                    Range { timed_out: true, sent_again, .. } => u64::from(*sent_again),
                    Range { sent_again: true, .. } if self.gets_notices => 1,
                    Range { sent_again, .. } => u64::from(!lost) + u64::from(*sent_again),
                };
            if range.sacked {
                bytes += len;
                runs += u64::from(!in_run);
            }
            in_run = range.sacked;
        }
        pipe
    }

    /// Data leaves the sender, whose window is `window`.
    fn on_data(&mut self, start: u32, end: u32, window: u64) {
        if start == self.nxt {
            let (pipe, len) = (self.pipe(), u64::from(end - start));
            assert!(pipe + len <= window, "new data: {pipe} + {len} in a window of {window}");
            self.nxt = end;
            let range = Range { start, end, sacked: false, timed_out: false, sent_again: false };
            self.ranges.push(range);
            return;
        }
        for range in self.ranges.iter_mut().filter(|r| start < r.end && r.start < end) {
            assert!(!range.sacked, "{range:?} has arrived and is sent again");
            range.sent_again = true;
        }
    }
}

/// Goes through what passed the sender, together with its windows at those times; returns how many
/// segments it judged.
fn audit(path: &Path, seen: &[(Time, Packet)], samples: &[FlowSample]) -> u64 {
    let mut auditor: Option<Auditor> = None;
    let mut judged = 0;
    for (at, packet) in seen {
        let Some(segment) = segment(packet) else { continue };
        let own = segment.destination_port == PORT;
        if own && segment.flags.contains(Flags::SYN) {
            auditor = Some(Auditor::new(segment.seq, path.report != Report::None));
        }
        let until = |now: Time| samples.partition_point(|sample| sample.at <= now).checked_sub(1);
        let before = until(*at - Duration::from_nanos(1)).map(|index| samples[index].vitals);
        let after = until(*at).map(|index| samples[index].vitals);
        let (Some(auditor), Some(before), Some(after)) = (&mut auditor, before, after) else {
            continue;
        };
        let offset = |seq: SeqNumber| seq - auditor.first;
        if own && packet.payload.len > 0 {
            let backed_off = after.rto > before.rto || before.window > MSS;
            if backed_off && after.window <= MSS {
                auditor.on_timeout();
            }
            // A notice may come in the same instant as an acknowledgment, and before it.
            let earlier = if auditor.gets_notices { before.window } else { 0 };
            let window = after.window.max(earlier);
            let start = segment.seq - auditor.first;
            auditor.on_data(start, start + packet.payload.len, window);
            judged += 1;
        } else if !own && segment.flags.contains(Flags::ACK) {
            let blocks = segment.options.sack.as_slice().iter();
            let blocks: Vec<_> = blocks.map(|b| (offset(b.start), offset(b.end))).collect();
            auditor.on_ack(segment.ack - auditor.first, &blocks);
        }
    }
    judged
}

/// Runs a path and audits it.
fn judge(path: &Path, muddle: bool) -> u64 {
    let mut lab = path.build();
    lab.trace();
    let tap = Tap::default();
    lab.world.add_box(lab.sender(), Box::new(tap.clone()));
    if muddle {
        let random = Seed(path.seed).stream("muddle");
        lab.world.add_box(lab.receiver(), Box::new(Muddle::new(random, 0.02, 0.05)));
    }
    lab.world.run_until(secs(300));
    assert!(lab.received() > 0);
    audit(path, &tap.seen(), &lab.samples())
}

/// Loses in either direction, whole or by corruption.
fn bad(p: f64) -> Hop {
    let errors = link::Uniform { packet: p / 2.0, ..noisy(p / 2.0, 1040) };
    Hop {
        rate: mbps(2),
        delay: Duration::from_millis(40),
        queue: link::Queue::Packets(20),
        forward: errors,
        backward: errors,
    }
}

#[test]
fn a_sack_sender_keeps_the_pipe_within_its_window_and_sends_nothing_again_that_has_arrived() {
    let mut judged = 0;
    for seed in 1..=4 {
        for p in [0.0, 0.003, 0.02, 0.1] {
            for report in [Report::None, Report::Oracle, Report::Backward] {
                let mut path = Path { seed, report, ..Path::over(bad(p)) };
                path.tcp.initial_window = tcp::InitialWindow::Segments(10);
                path.tcp.mechanisms =
                    if report == Report::None { vec![] } else { eten(Suppression::All) };
                judged += judge(&path, false);
            }
        }
    }
    assert!(judged > 100_000, "{judged} segments");
}

#[test]
fn so_it_does_when_packets_are_doubled_and_overtake_each_other() {
    for seed in 1..=4 {
        for p in [0.0, 0.02] {
            judge(&Path { seed, ..Path::over(bad(p)) }, true);
        }
    }
}

#[test]
fn the_windows_of_the_other_algorithms_bound_what_they_send() {
    // What has left the network shows in the series as `dupacked`; the hole that was sent again
    // takes the place of the copy that was lost.
    for recovery in [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno] {
        for seed in 1..=4 {
            let mut path = Path { seed, ..Path::over(bad(0.01)) };
            path.tcp.recovery = recovery;
            let mut lab = path.build();
            lab.trace();
            lab.world.run_until(secs(300));
            assert!(lab.received() > 0);
            let samples = lab.samples();
            for pair in samples.windows(2) {
                let [old, new] = [pair[0].vitals, pair[1].vitals];
                // It has sent something new, and there is no going back under way.
                if new.flight > old.flight && new.window >= new.ssthresh {
                    assert!(
                        new.flight <= new.window + new.dupack_credit,
                        "{recovery:?} at {}: {new:?}",
                        pair[1].at
                    );
                }
            }
        }
    }
}

#[test]
fn the_stream_is_whole_at_the_sink_however_bad_the_path() {
    for recovery in RECOVERIES {
        for seed in 1..=3 {
            let size = 500_000;
            let mut path = Path { seed, size: Some(size), ..Path::over(bad(0.05)) };
            path.tcp.recovery = recovery;
            let lab = path.run(secs(3000));
            let (connection, sink) = lab.receiving();
            assert_eq!((lab.received(), connection.state()), (size, tcp::State::Closed));
            assert!(sink.finished_at.is_some());
        }
    }
}
