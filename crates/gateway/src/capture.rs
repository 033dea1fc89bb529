//! The packets of a user, in a pcapng file. The gateway sends copies over the control socket, and the command
//! writes the file.
//!
//! After the line that says that the gateway will, each packet is a byte that names its side ([`inline::Side`]), the time in
//! nanoseconds since 1970 (8 bytes), its length (4 bytes), and its bytes. The last one's side is [`END`]: its time is
//! the number of packets that are missing, and it has no bytes. Numbers are little-endian.

use crate::serving::Exchange;
use live::Clock;
use live::inline::{self, Captures};
use std::io::{self, BufReader, Read as _, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wire::pcapng::Section;

/// In place of a side.
const END: u8 = 0xff;

/// The names of the interfaces, by [`inline::Side`].
const NAMES: [&str; 2] = ["LAN", "hop"];

/// The most bytes of packets that are sent at once.
const BATCH: usize = 256 << 10;

/// How long packets are waited for until the client is looked at.
const PERIOD: Duration = Duration::from_millis(100);

/// Sends packets until the client has no more to say, or the gateway ends.
pub(crate) fn send(exchange: &mut Exchange, captures: &Captures, clock: Clock) -> io::Result<()> {
    let origin = unix_nanos().saturating_sub(clock.now().as_nanos());
    let mut batch = Vec::new();
    let put = |batch: &mut Vec<u8>, captured: &inline::Captured| {
        let at = origin + captured.at.as_nanos();
        head(batch, captured.side as u8, at, captured.bytes.len() as u32);
        batch.extend_from_slice(&captured.bytes);
    };
    let mut is_over = false;
    while !is_over {
        match captures.next(PERIOD) {
            Ok(Some(captured)) => put(&mut batch, &captured),
            Ok(None) => {}
            Err(_) => is_over = true,
        }
        while batch.len() < BATCH
            && let Ok(Some(captured)) = captures.next(Duration::ZERO)
        {
            put(&mut batch, &captured);
        }
        exchange.renew();
        exchange.write_all(&batch)?;
        batch.clear();
        is_over |= exchange.has_ended();
    }
    head(&mut batch, END, captures.dropped(), 0);
    exchange.write_all(&batch)
}

fn head(batch: &mut Vec<u8>, side: u8, nanos: u64, len: u32) {
    batch.push(side);
    batch.extend_from_slice(&nanos.to_le_bytes());
    batch.extend_from_slice(&len.to_le_bytes());
}

fn unix_nanos() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "files of packets are for other programs")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// What is in a file of packets, and what is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that are missing: too many waited to be written.
    pub missing: u64,
}

/// A capture in progress.
pub struct Capture {
    /// After the line of the answer.
    from: BufReader<UnixStream>,
}

/// Ends a capture, also from another thread.
pub struct Stop(UnixStream);

impl Stop {
    /// Ends it.
    pub fn stop(&self) {
        // It fails if it has ended.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

impl Capture {
    pub(crate) fn new(from: BufReader<UnixStream>) -> Capture {
        Capture { from }
    }

    /// What ends it.
    ///
    /// # Errors
    /// If there are too many open files.
    pub fn stopper(&self) -> io::Result<Stop> {
        self.from.get_ref().try_clone().map(Stop)
    }

    /// Writes packets into a file until it is stopped or the gateway ends.
    ///
    /// # Errors
    /// If the file cannot be written, or the gateway is gone.
    pub fn write(mut self, file: impl Write) -> io::Result<Captured> {
        let mut section = Section::start(file, "lasthopd capture")?;
        for name in NAMES {
            section.interface(name)?;
        }
        let mut packets = 0;
        let mut bytes = Vec::new();
        loop {
            // Another program that reads the file finds all that has arrived.
            if self.from.buffer().is_empty() {
                section.flush()?;
            }
            let [side] = self.array()?;
            let number = u64::from_le_bytes(self.array()?);
            let len = u32::from_le_bytes(self.array()?);
            if side == END {
                section.flush()?;
                return Ok(Captured { packets, missing: number });
            }
            let is_packet = usize::from(side) < NAMES.len() && len <= u32::from(u16::MAX) + 40;
            if !is_packet {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the gateway sends no packets",
                ));
            }
            bytes.resize(len as usize, 0);
            self.read(&mut bytes)?;
            section.packet(side.into(), number, &bytes)?;
            packets += 1;
        }
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut array = [0; N];
        self.read(&mut array)?;
        Ok(array)
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let gone =
            |error| io::Error::other(format!("the gateway does not answer any more: {error}"));
        self.from.read_exact(bytes).map_err(gone)
    }
}
