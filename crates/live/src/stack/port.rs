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
            waiting: VecDeque::new(),
            copies,
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
                Err(_) => self.counts.failed += 1,
            }
            return true;
        }
    }

    /// Writes the packet whose payload is `pieces`, or lets it wait.
    fn send_pieces(&mut self, segment_size: u32, pieces: [&[u8]; 2]) {
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
        let [one, other] = pieces;
        if self.is_blocked()
            || !self.write(&[IoSlice::new(&headers), IoSlice::new(one), IoSlice::new(other)])
        {
            self.counts.delayed += 1;
            self.waiting.push_back([&headers, one, other].concat());
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
        if payload.len == 0 {
            return self.send_pieces(segment_size, [&[], &[]]);
        }
        if let Some(pieces) = application.and_then(|application| application.lend(payload)) {
            return self.send_pieces(segment_size, pieces);
        }
        let mut bytes = std::mem::take(&mut self.payload);
        bytes.clear();
        bytes.resize(payload.len as usize, 0);
        // A datagram's bytes are unspecified: they are sent as 0.
        if let Some(application) = application {
            application.fetch(payload, &mut bytes);
        }
        self.send_pieces(segment_size, [&bytes, &[]]);
        self.payload = bytes;
    }

    fn segments(&self) -> u16 {
        self.segments
    }
}
