//! The other end of a connection, as far as a test needs it.

use wire::{Body, Flags, Ip, Packet, Payload, Segment};

/// The bytes of what the peer sends in answer to a packet of the stack.
pub(crate) fn answer(to: &Packet, flags: Flags, bytes: &[u8]) -> Vec<u8> {
    let Body::Tcp(theirs) = to.body else { panic!("not TCP") };
    let mut answer = Packet::BLANK;
    answer.ip = Ip::new(to.ip.destination, to.ip.source);
    answer.payload = Payload { len: bytes.len() as u32, ..Payload::default() };
    let taken = to.payload.len + u32::from(theirs.flags.contains(Flags::SYN));
    *answer.make_tcp() = Segment {
        source_port: theirs.destination_port,
        destination_port: theirs.source_port,
        seq: theirs.ack,
        ack: theirs.seq + taken,
        flags,
        window: 1000,
        ..Segment::default()
    };
    let mut out = Vec::new();
    answer.emit(bytes, &mut out).unwrap();
    out
}
