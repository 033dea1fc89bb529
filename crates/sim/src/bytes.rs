//! Packets as bytes: byte mode, and captures.

use crate::LinkId;
use base::Time;
use std::io;
use thiserror::Error;
use wire::{Body, EmitError, EspKeys, OpenError, Packet, ParseError, Payload, Protected, Segment};

/// An error in the conversion of a packet to bytes and back. Each is a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ByteFault {
    /// A packet could not be written.
    #[error("a packet cannot be written as bytes: {0}")]
    Emit(#[from] EmitError),
    /// The written bytes could not be parsed.
    #[error("the bytes of a packet cannot be read: {0}")]
    Parse(#[from] ParseError),
    /// The written bytes of an ESP packet could not be decrypted.
    #[error("the bytes of an ESP packet cannot be read: {0}")]
    Open(#[from] OpenError),
    /// A packet did not have the announced length.
    #[error("a packet of {expected} bytes was written as {found}")]
    Length {
        /// The announced length, bytes.
        expected: u32,
        /// Bytes.
        found: usize,
    },
    /// Payload bytes were not those of their place in the stream.
    #[error("wrong payload bytes of stream {} from byte {} on", .0.stream, .0.offset)]
    Payload(Payload),
}

/// Where packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturePoint {
    /// As a link accepts them; packets that its queue refuses are not captured.
    Sent(LinkId),
    /// As they arrive at the link's end; damaged and lost packets are not captured.
    Received(LinkId),
}

/// A consumer of captured packets.
pub trait Capture: Send {
    /// A packet passed a point, which is named by its index in the list of points. Times never
    /// decrease.
    ///
    /// # Errors
    /// If it cannot be kept. The capture ends then.
    fn packet(&mut self, at: Time, point: usize, bytes: &[u8]) -> io::Result<()>;

    /// Ends the capture.
    ///
    /// # Errors
    /// If a packet could not be stored after all.
    fn finish(&mut self) -> io::Result<()>;
}

/// Writes packets with the bytes of their payload.
#[derive(Debug)]
struct Renderer {
    payload: Vec<u8>,
    bytes: Vec<u8>,
    keys: EspKeys,
}

impl Default for Renderer {
    fn default() -> Renderer {
        Renderer { payload: Vec::new(), bytes: Vec::new(), keys: EspKeys::of_lab() }
    }
}

impl Renderer {
    fn render(&mut self, packet: &Packet) -> Result<(), ByteFault> {
        self.payload.resize(packet.payload.len as usize, 0);
        packet.payload.render(&mut self.payload);
        self.bytes.clear();
        self.keys.emit(packet, &self.payload, &mut self.bytes)?;
        let (expected, found) = (packet.len(), self.bytes.len());
        if expected as usize == found { Ok(()) } else { Err(ByteFault::Length { expected, found }) }
    }

    /// Reads the packet of [`Renderer::render`] from its bytes. What was hidden is decrypted, as its
    /// receiver would.
    fn read(&mut self, packet: &Packet) -> Result<Packet, ByteFault> {
        let (mut read, place) = Packet::parse(&self.bytes)?;
        let mut payload = &mut self.bytes[place];
        if let Body::EspTransport(_) = packet.body {
            let (opened, place) = self.keys.open(&read, 0, payload)?;
            (read, payload) = (opened, &mut payload[place]);
        }
        if payload == self.payload { Ok(read) } else { Err(ByteFault::Payload(packet.payload)) }
    }
}

/// A capture under way.
struct Capturing {
    points: Vec<CapturePoint>,
    sink: Box<dyn Capture>,
    result: io::Result<()>,
}

/// A consumer of packets as bytes.
#[derive(Default)]
pub(crate) struct Bytes {
    renderer: Renderer,
    /// Whether every packet is replaced by the packet parsed from its bytes.
    pub(crate) replace: bool,
    capturing: Option<Capturing>,
    /// The first fault.
    pub(crate) fault: Option<ByteFault>,
}

impl Bytes {
    pub(crate) fn capture(&mut self, points: Vec<CapturePoint>, sink: Box<dyn Capture>) {
        self.capturing = Some(Capturing { points, sink, result: Ok(()) });
    }

    pub(crate) fn finish_capture(&mut self) -> io::Result<()> {
        let Some(mut capturing) = self.capturing.take() else { return Ok(()) };
        capturing.result.and_then(|()| capturing.sink.finish())
    }

    /// Byte mode: converts the packet to bytes and back. Fields that are not on the wire are kept:
    /// the identity of its payload and of the transmitted copy, options of zero size, and the
    /// number of bytes that its own code corrects.
    pub(crate) fn pass(&mut self, packet: &mut Packet) {
        if self.replace
            && let Err(fault) = self.replace(packet)
        {
            self.fault.get_or_insert(fault);
        }
    }

    fn replace(&mut self, packet: &mut Packet) -> Result<(), ByteFault> {
        self.renderer.render(packet)?;
        let mut read = self.renderer.read(packet)?;
        read.payload = packet.payload;
        if let (Some(sent), Some(read)) = (segment(&mut packet.body), segment(&mut read.body)) {
            read.copy = sent.copy;
        }
        if packet.unparsed.is_zero_size() {
            read.unparsed = packet.unparsed;
        }
        read.unparsed.set_corrects(packet.unparsed.corrects());
        *packet = read;
        Ok(())
    }

    /// Captures a packet at a point.
    pub(crate) fn seen(&mut self, now: Time, at: CapturePoint, packet: &Packet) {
        let Some(capturing) = &mut self.capturing else { return };
        let Some(index) = capturing.points.iter().position(|point| *point == at) else { return };
        if capturing.result.is_ok() {
            match self.renderer.render(packet) {
                Ok(()) => {
                    let bytes = &self.renderer.bytes;
                    capturing.result = capturing.sink.packet(now, index, bytes);
                }
                Err(fault) => {
                    self.fault.get_or_insert(fault);
                }
            }
        }
    }
}

/// The segment of a packet, hidden or not.
fn segment(body: &mut Body) -> Option<&mut Segment> {
    match body {
        Body::Tcp(segment) | Body::EspTransport(Protected::Tcp(segment)) => Some(segment),
        _ => None,
    }
}
