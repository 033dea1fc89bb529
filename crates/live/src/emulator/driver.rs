//! A link's driver, which tells a program at the link's end what has arrived damaged ([`wire::LinkReport`]).

use base::{Duration, Time};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use wire::{FrameCounters, LinkReport};

/// The driver of the device at the end of a direction.
pub(super) struct Driver {
    /// `None` if there can be no socket: then nothing is told.
    socket: Option<UnixDatagram>,
    listener: PathBuf,
    counters: FrameCounters,
    /// When the counters are told next.
    due: Time,
    buffer: Vec<u8>,
    /// Reports that were not delivered: no program listens, or its buffer is full.
    pub(super) untold: u64,
}

impl Driver {
    /// How often it tells the counters, if packets arrive.
    const PERIOD: Duration = Duration::from_secs(1);

    /// Reports to the socket at this path, once one is there.
    pub(super) fn new(listener: PathBuf) -> Driver {
        let socket = UnixDatagram::unbound().ok().filter(|socket| {
            // The emulator waits for no one.
            socket.set_nonblocking(true).is_ok()
        });
        let counters = FrameCounters::default();
        Driver { socket, listener, counters, due: Time::ZERO, buffer: Vec::new(), untold: 0 }
    }

    /// A packet has arrived intact.
    pub(super) fn on_intact(&mut self, now: Time) {
        self.counters.received += 1;
        self.tell_counters(now);
    }

    /// A packet has arrived damaged. It can read the headers, as if a code of their own protected them.
    pub(super) fn on_damaged(&mut self, now: Time, packet: &[u8]) {
        self.counters.damaged += 1;
        let mut report = std::mem::take(&mut self.buffer);
        LinkReport::write_damaged(packet, &mut report);
        self.tell(&report);
        self.buffer = report;
        self.tell_counters(now);
    }

    fn tell_counters(&mut self, now: Time) {
        if self.due <= now {
            self.due = now + Driver::PERIOD;
            self.tell(&self.counters.to_bytes());
        }
    }

    fn tell(&mut self, report: &[u8]) {
        let sent = self.socket.as_ref().map(|socket| socket.send_to(report, &self.listener));
        self.untold += u64::from(!matches!(sent, Some(Ok(_))));
    }
}
