//! A TUN device with offload, as something that packets are read from and written to.

use crate::Tun;
use crate::inline::tap::Tap;
use crate::pool;
use crate::tun::VIRTIO_HEADER_LEN;
use crate::virtio::{self, Cut};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Add;
use wire::{Body, Flags, Packet};

/// The length of the largest headers: IPv6 and TCP with all options.
const HEADERS: u16 = 40 + 60;

/// The most pieces of memory from which a packet is written without a copy.
const PIECES: usize = 64;

/// The most packets that wait until the kernel takes them: 64 MiB.
const WAITING: usize = 1024;

/// The payload of a packet in pieces, after a place for the headers.
pub(crate) struct Pieces<'a> {
    slices: [IoSlice<'a>; 1 + PIECES],
    count: usize,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new() -> Pieces<'a> {
        Pieces { slices: [IoSlice::new(&[]); 1 + PIECES], count: 1 }
    }

    /// Adds a piece; see [`Pieces::are_whole`].
    pub(crate) fn add(&mut self, bytes: &'a [u8]) {
        if let Some(slice) = self.slices.get_mut(self.count) {
            *slice = IoSlice::new(bytes);
        }
        self.count += 1;
    }

    /// Whether there was a place for each piece.
    pub(crate) fn are_whole(&self) -> bool {
        self.count <= self.slices.len()
    }
}

/// The counters of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Packets that were read, units of several segments among them.
    pub read: u64,
    /// Units of several segments that were read.
    pub units_read: u64,
    /// Packets that were written, units of several segments among them.
    pub written: u64,
    /// Units of several segments that were written.
    pub units_written: u64,
    /// Packets that had to wait because the kernel took none.
    pub delayed: u64,
    /// Packets that the kernel refused, or for which there was no room to wait, and that are lost.
    pub failed: u64,
}

impl Add for DeviceUse {
    type Output = DeviceUse;

    fn add(self, other: DeviceUse) -> DeviceUse {
        DeviceUse {
            read: self.read + other.read,
            units_read: self.units_read + other.units_read,
            written: self.written + other.written,
            units_written: self.units_written + other.units_written,
            delayed: self.delayed + other.delayed,
            failed: self.failed + other.failed,
        }
    }
}

/// A device with [`crate::Offload::Full`].
pub(crate) struct Device {
    pub(crate) tun: Tun,
    pub(crate) counts: DeviceUse,
    /// A capture in progress.
    pub(crate) tap: Option<Tap>,
    /// The header for the device and those of the packet.
    headers: Vec<u8>,
    /// The device was removed.
    pub(crate) removed: bool,
    /// Packets that the kernel has not taken yet.
    waiting: VecDeque<Vec<u8>>,
}

impl Device {
    pub(crate) fn new(tun: Tun) -> Device {
        Device {
            tun,
            counts: DeviceUse::default(),
            tap: None,
            headers: Vec::with_capacity(VIRTIO_HEADER_LEN + usize::from(HEADERS)),
            removed: false,
            waiting: VecDeque::new(),
        }
    }

    /// Reads a packet, with the device's header in front, into `buffer` of [`pool::LEN`] bytes, and returns its
    /// length; `None` if there is none now.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let result = rustix::io::read(&self.tun, &mut *buffer);
        self.on_read(result, buffer)
    }

    /// Reads a SYN like [`Device::read`], if SYNs have a queue of their own.
    pub(crate) fn read_syn(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let [syns, _] = self.tun.control_queues()?;
        let result = rustix::io::read(syns, &mut *buffer);
        self.on_read(result, buffer)
    }

    /// The same of an RST.
    pub(crate) fn read_rst(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let [_, rsts] = self.tun.control_queues()?;
        let result = rustix::io::read(rsts, &mut *buffer);
        self.on_read(result, buffer)
    }

    fn on_read(&mut self, result: Result<usize, Errno>, buffer: &[u8]) -> Option<usize> {
        debug_assert!(buffer.len() >= pool::LEN);
        match result {
            // A device writes its header, at least.
            Ok(len) if len < VIRTIO_HEADER_LEN => None,
            Ok(len) => {
                self.counts.read += 1;
                self.counts.units_read += u64::from(virtio::is_unit(buffer));
                self.show(&[IoSlice::new(&buffer[..len])]);
                Some(len)
            }
            Err(error) => {
                // The descriptor of a device that was removed has no device (EBADFD).
                self.removed |= error == Errno::BADFD;
                None
            }
        }
    }

    /// Gives a capture a copy of a packet.
    fn show(&mut self, pieces: &[IoSlice<'_>]) {
        if self.tap.as_ref().is_some_and(|tap| !tap.take(pieces, VIRTIO_HEADER_LEN)) {
            self.tap = None;
        }
    }

    /// Whether packets wait until the kernel takes them.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes what waits, as far as the kernel takes it.
    pub(crate) fn flush(&mut self) {
        while let Some(packet) = self.waiting.pop_front() {
            if self.try_write(&[IoSlice::new(&packet)]) {
                continue;
            }
            self.waiting.push_front(packet);
            return;
        }
    }

    /// Writes a packet as it was read.
    pub(crate) fn write(&mut self, packet: &[u8]) {
        self.counts.units_written += u64::from(virtio::is_unit(packet));
        self.write_or_wait(&[IoSlice::new(packet)]);
    }

    /// Writes the packet whose payload is `pieces`, in segments of so many bytes.
    pub(crate) fn send(&mut self, packet: &Packet, segment_size: u32, pieces: Pieces<'_>) {
        self.headers.clear();
        self.headers.resize(VIRTIO_HEADER_LEN, 0);
        let Ok(checksum) = packet.emit_headers(&mut self.headers) else {
            self.counts.failed += 1;
            return;
        };
        let cut = (packet.payload.len > segment_size).then(|| Cut {
            segment_size: segment_size as u16,
            v6: packet.ip.source.is_ipv6(),
            cwr: matches!(&packet.body, Body::Tcp(tcp) if tcp.flags.contains(Flags::CWR)),
        });
        self.counts.units_written += u64::from(cut.is_some());
        let headers = (self.headers.len() - VIRTIO_HEADER_LEN) as u16;
        self.headers[..VIRTIO_HEADER_LEN].copy_from_slice(&virtio::header(checksum, headers, cut));
        let headers = std::mem::take(&mut self.headers);
        let Pieces { mut slices, count } = pieces;
        slices[0] = IoSlice::new(&headers);
        self.write_or_wait(&slices[..count]);
        self.headers = headers;
    }

    fn write_or_wait(&mut self, pieces: &[IoSlice<'_>]) {
        self.show(pieces);
        if !self.is_blocked() && self.try_write(pieces) {
            return;
        }
        if self.waiting.len() == WAITING {
            self.counts.failed += 1;
            return;
        }
        self.counts.delayed += 1;
        self.waiting.push_back(pieces.iter().flat_map(|piece| piece.iter().copied()).collect());
    }

    /// Writes a packet. Says whether that is done, or else the kernel takes none now.
    fn try_write(&mut self, pieces: &[IoSlice<'_>]) -> bool {
        loop {
            match rustix::io::writev(&self.tun, pieces) {
                Ok(_) => self.counts.written += 1,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return false,
                Err(error) => {
                    self.removed |= error == Errno::BADFD;
                    self.counts.failed += 1;
                }
            }
            return true;
        }
    }
}
