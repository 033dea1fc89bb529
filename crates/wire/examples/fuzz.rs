//! Reads damaged packets for a while: `fuzz SECONDS [SEED]`.
//!
//! Whatever the bytes, they are a packet or a typed error; and what was read can be written, and is
//! then read as the same. Input starts from the corpus of the tests, is mutated, and mostly gets
//! its checksums repaired, so that the damage is not all found at the door.

#[path = "../tests/it/common/corpus.rs"]
#[allow(dead_code)] // Names and errors are for the tests.
mod corpus;

use base::{Random, Seed};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wire::{Header, LinkReport, Packet, ParseError, PathFields, Spep, UnparsedOptions};

#[allow(clippy::disallowed_methods)] // This is no part of a run: it works for a while of real time.
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Some(Ok(seconds)), seed) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: fuzz SECONDS [SEED]");
        return ExitCode::from(2);
    };
    let Ok(seed) = seed.unwrap_or(Ok(1)) else {
        eprintln!("fuzz: the seed is a number");
        return ExitCode::from(2);
    };
    let mut fuzzer = Fuzzer::new(seed);
    let (start, mut reported) = (Instant::now(), Instant::now());
    let end = start + Duration::from_secs(seconds);
    while Instant::now() < end {
        for _ in 0..10_000 {
            let input = fuzzer.input();
            match catch_unwind(|| check(&input)) {
                Ok(outcome) => fuzzer.count(outcome),
                Err(_) => {
                    println!("seed {seed}, input {}: {}", fuzzer.inputs + 1, hex(&input));
                    return ExitCode::FAILURE;
                }
            }
        }
        if reported.elapsed() > Duration::from_secs(60) {
            reported = Instant::now();
            println!("{} s: {}", start.elapsed().as_secs(), fuzzer.summary());
        }
    }
    println!("{seconds} s, seed {seed}: {}", fuzzer.summary());
    fuzzer.outcomes.iter().for_each(|(outcome, count)| println!("{count:>12} {outcome}"));
    ExitCode::SUCCESS
}

/// What became of an input; panics if it is not what it should be.
fn check(input: &[u8]) -> &'static str {
    check_report(input);
    let (packet, place) = match Packet::parse(input) {
        Ok(read) => read,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return match error {
                ParseError::Truncated { .. } => "truncated",
                ParseError::Field { .. } => "field",
                ParseError::Checksum { .. } => "checksum",
                ParseError::Fragment { .. } => "fragment",
                ParseError::Protocol { .. } => "protocol",
                ParseError::OptionLength { .. } => "length of an option",
                ParseError::SourceRoute { .. } => "source route",
                ParseError::TooLong { .. } => "too long to keep",
            };
        }
    };
    let payload = &input[place];
    let mut written = Vec::new();
    packet.emit(payload, &mut written).expect("what was read can be written");
    assert_eq!(written.len(), packet.len() as usize);
    let (again, place) = Packet::parse(&written).expect("what was written can be read");
    assert_eq!((again, &written[place]), (packet, payload));
    if let Some(cookie) = packet.unparsed.fast_open() {
        let mut same = UnparsedOptions::NONE;
        assert!(same.add_fast_open(&cookie) && same.fast_open() == Some(cookie));
    }
    if let Some(fields) = PathFields::of(&packet) {
        let mut same = packet;
        fields.renew(&mut same);
        assert_eq!(same, packet);
    }
    if let Some(spep) = Spep::of(&packet) {
        let mut same = packet;
        spep.renew(&mut same);
        assert_eq!(same, packet);
    }
    "read"
}

/// The input as the report of a damaged frame, and as any report: what is read of a packet's headers is what they
/// say.
fn check_report(input: &[u8]) {
    let mut report = Vec::new();
    LinkReport::write_damaged(input, &mut report);
    if let Ok(LinkReport::Damaged(Some(headers))) = LinkReport::parse(&report)
        && let Ok((packet, _)) = Packet::parse(input)
    {
        assert_eq!(*headers, packet);
    }
    let _ = LinkReport::parse(input);
}

struct Fuzzer {
    random: Random,
    corpus: Vec<Vec<u8>>,
    inputs: u64,
    outcomes: BTreeMap<&'static str, u64>,
}

impl Fuzzer {
    fn new(seed: u64) -> Fuzzer {
        Fuzzer {
            random: Seed(seed).stream("fuzz"),
            corpus: (corpus::cases().into_iter().chain(corpus::protected()))
                .map(|case| case.bytes)
                .collect(),
            inputs: 0,
            outcomes: BTreeMap::new(),
        }
    }

    fn count(&mut self, outcome: &'static str) {
        self.inputs += 1;
        *self.outcomes.entry(outcome).or_default() += 1;
    }

    fn summary(&self) -> String {
        let read = self.outcomes.get("read").copied().unwrap_or(0);
        format!("{} inputs, {read} of them packets, no failure", self.inputs)
    }

    fn input(&mut self) -> Vec<u8> {
        let mut bytes = self.pick().clone();
        for _ in 0..1 + self.below(6) {
            self.mutate(&mut bytes);
        }
        if self.below(8) > 0 {
            repair(&mut bytes);
        }
        bytes
    }

    fn pick(&mut self) -> &Vec<u8> {
        let index = self.below(self.corpus.len());
        &self.corpus[index]
    }

    /// A number below `end`; 0 if there is none.
    fn below(&mut self, end: usize) -> usize {
        (self.random.bits() % end.max(1) as u64) as usize
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        // Headers are where it hurts.
        let reach = if self.below(4) > 0 { bytes.len().min(80) } else { bytes.len() };
        let at = self.below(reach);
        let len = self.below(1 + (bytes.len() - at).min(24));
        match self.below(7) {
            _ if bytes.is_empty() => bytes.push(self.random.bits() as u8),
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.random.bits() as u8,
            2 => {
                const EDGES: [u8; 12] = [0, 1, 2, 3, 4, 5, 8, 10, 40, 44, 127, 255];
                bytes[at] = EDGES[self.below(EDGES.len())];
            }
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..at + len)),
            5 => {
                let copy = bytes[at..at + len].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                let other = self.pick().clone();
                let from = self.below(other.len());
                let piece = &other[from..(from + len).min(other.len())];
                bytes.splice(at..(at + piece.len()).min(bytes.len()), piece.iter().copied());
            }
        }
    }
}

/// Makes lengths and checksums right, as far as the headers can be made out.
fn repair(bytes: &mut [u8]) {
    let len = bytes.len() as u16;
    match bytes.first().map(|first| first >> 4) {
        Some(4) if bytes.len() >= 20 => bytes[2..4].copy_from_slice(&len.to_be_bytes()),
        Some(6) if bytes.len() >= 40 => bytes[4..6].copy_from_slice(&(len - 40).to_be_bytes()),
        _ => return,
    }
    // The parser says what is expected, first of IPv4, then of the transport.
    for _ in 0..2 {
        let Err(ParseError::Checksum { header, expected, .. }) = Packet::parse(bytes) else {
            return;
        };
        let at = match header {
            Header::Ipv4 => 10,
            Header::Tcp => transport(bytes) + 16,
            Header::Udp => transport(bytes) + 6,
            _ => transport(bytes) + 2,
        };
        bytes[at..at + 2].copy_from_slice(&expected.to_be_bytes());
    }
}

/// Where the transport starts, in a packet whose transport has been found.
fn transport(bytes: &[u8]) -> usize {
    if bytes[0] >> 4 == 4 {
        return usize::from(bytes[0] & 0xf) * 4;
    }
    let (mut next, mut at) = (bytes[6], 40);
    while [0, 43, 60].contains(&next) {
        next = bytes[at];
        at += 8 + 8 * usize::from(bytes[at + 1]);
    }
    at
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
