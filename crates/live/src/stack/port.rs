//! Where a host's packets go: the device.

use super::Counts;
use super::virtio::{self, Cut};
use crate::tun::VIRTIO_HEADER_LEN;
use crate::{Copies, Tun};
use host::{Bytes, Outlet};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::IoSlice;
use wire::{Body, Flags, Packet};

/// What a unit may have, its headers included.
const UNIT: u16 = u16::MAX;
/// What headers may have: IPv6 and TCP with all options.
const HEADERS: u16 = 40 + 60;

/// The most pieces of memory from which a packet is written without a copy.
const PIECES: usize = 32;

/// The payload of a packet in pieces, after a place for the headers.
struct Pieces<'a> {
    slices: [IoSlice<'a>; 1 + PIECES],
    count: usize,
}

impl<'a> Pieces<'a> {
    fn new() -> Pieces<'a> {
        Pieces { slices: [IoSlice::new(&[]); 1 + PIECES], count: 1 }
    }

    /// Adds a piece; see [`Pieces::are_whole`].
    fn add(&mut self, bytes: &'a [u8]) {
        if let Some(slice) = self.slices.get_mut(self.count) {
            *slice = IoSlice::new(bytes);
        }
        self.count += 1;
    }

    /// Whether there was a place for each piece.
    fn are_whole(&self) -> bool {
        self.count <= self.slices.len()
    }
}

/// The device, as something to be written to.
pub(super) struct Port {
    pub(super) tun: Tun,
    pub(super) counts: Counts,
    packet: Packet,
    segments: u16,
    /// The header for the device and those of the packet.
    headers: Vec<u8>,
    /// Bytes that are not kept anywhere.
    payload: Vec<u8>,
    /// The device was removed.
    pub(super) removed: bool,
    /// Packets that the kernel has not taken yet.
    waiting: VecDeque<Vec<u8>>,
    /// Where it is said which copy of a segment a packet carries.
    pub(super) copies: Option<Copies>,
}

impl Port {
    pub(super) fn new(tun: Tun, mtu: u16, copies: Option<Copies>) -> Port {
        // Segments are no longer than the MTU allows, without any options.
        let segment = mtu.saturating_sub(40).clamp(1, UNIT - HEADERS);
        Port {
            tun,
            counts: Counts::default(),
            packet: Packet::BLANK,
            // The segments of a unit are different copies.
            segments: if copies.is_some() { 1 } else { (UNIT - HEADERS) / segment },
            headers: Vec::with_capacity(VIRTIO_HEADER_LEN + usize::from(HEADERS)),
            payload: Vec::new(),
            removed: false,
            waiting: VecDeque::new(),
            copies,
        }
    }

    /// Reads a packet into `buffer`, and returns its length; `None` if there is none now.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        match rustix::io::read(&self.tun, buffer) {
            Ok(len) => Some(len),
            Err(error) => {
                // The descriptor of a device that was removed has no device (EBADFD).
                self.removed |= error == Errno::BADFD;
                None
            }
        }
    }

    /// Whether packets wait until the kernel takes them.
    pub(super) fn is_blocked(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes what waits, as far as the kernel takes it.
    pub(super) fn flush(&mut self) {
        while let Some(packet) = self.waiting.pop_front() {
            if self.write(&[IoSlice::new(&packet)]) {
                continue;
            }
            self.waiting.push_front(packet);
            return;
        }
    }

    /// Writes a packet. Says whether that is done, or else the kernel takes none now.
    fn write(&mut self, pieces: &[IoSlice<'_>]) -> bool {
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

    /// Writes the packet whose payload is `pieces`, or lets it wait.
    fn send_pieces(&mut self, segment_size: u32, pieces: Pieces<'_>) {
        let packet = &self.packet;
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
        let pieces = &slices[..count];
        if self.is_blocked() || !self.write(pieces) {
            self.counts.delayed += 1;
            self.waiting.push_back(pieces.iter().flat_map(|piece| piece.iter().copied()).collect());
        }
        self.headers = headers;
    }
}

impl<A: Bytes> Outlet<A> for Port {
    fn packet(&mut self) -> &mut Packet {
        &mut self.packet
    }

    fn send(&mut self, segment_size: u32, _: &mut Option<u32>, application: Option<&A>) {
        if let Some(copies) = &self.copies {
            copies.note(&self.packet);
        }
        let payload = self.packet.payload;
        let mut pieces = Pieces::new();
        let lent = payload.len == 0
            || application.is_some_and(|application| {
                application.lend(payload, &mut |piece| pieces.add(piece))
            });
        if lent && pieces.are_whole() {
            return self.send_pieces(segment_size, pieces);
        }
        let mut bytes = std::mem::take(&mut self.payload);
        bytes.clear();
        bytes.resize(payload.len as usize, 0);
        // A datagram's bytes are unspecified: they are sent as 0.
        if let Some(application) = application {
            application.fetch(payload, &mut bytes);
        }
        let mut pieces = Pieces::new();
        pieces.add(&bytes);
        self.send_pieces(segment_size, pieces);
        self.payload = bytes;
    }

    fn segments(&self) -> u16 {
        self.segments
    }
}
