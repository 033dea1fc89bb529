//! Where packets wait: links carry handles.

/// A packet's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Handle(u32);

/// A packet's bytes, in front of what else fits there.
#[derive(Debug)]
struct Buffer {
    bytes: Box<[u8]>,
    len: usize,
}

/// Bytes of packets on their way. It grows to the largest number at any one time, then allocates
/// no more.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    buffers: Vec<Buffer>,
    vacant: Vec<Handle>,
}

/// Room for the longest packet of any device.
pub(super) const ROOM: usize = 65_536;

impl Buffers {
    /// Keeps a packet.
    pub(super) fn insert(&mut self, packet: &[u8]) -> Handle {
        let handle = self.vacant.pop().unwrap_or_else(|| {
            let handle = Handle(self.buffers.len() as u32);
            self.buffers.push(Buffer { bytes: Box::default(), len: 0 });
            handle
        });
        let buffer = &mut self.buffers[handle.0 as usize];
        if buffer.bytes.len() < packet.len() {
            // Most packets are either full-sized or small; a place serves both.
            buffer.bytes = vec![0; packet.len().max(1536)].into_boxed_slice();
        }
        buffer.bytes[..packet.len()].copy_from_slice(packet);
        buffer.len = packet.len();
        handle
    }

    /// The packet becomes another of the same length.
    pub(super) fn replace(&mut self, handle: Handle, packet: &[u8]) {
        let buffer = &mut self.buffers[handle.0 as usize];
        debug_assert_eq!(buffer.len, packet.len(), "its time on the link is decided");
        buffer.bytes[..packet.len()].copy_from_slice(packet);
    }

    /// The packet is gone.
    pub(super) fn release(&mut self, handle: Handle) {
        self.vacant.push(handle);
    }

    pub(super) fn get(&self, handle: Handle) -> &[u8] {
        let buffer = &self.buffers[handle.0 as usize];
        &buffer.bytes[..buffer.len]
    }

    /// Packets on their way.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.buffers.len() - self.vacant.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut buffers = Buffers::default();
        let one = buffers.insert(b"one");
        let two = buffers.insert(&[2; 3000]);
        assert_eq!((buffers.get(one), buffers.get(two)), (&b"one"[..], &[2; 3000][..]));
        buffers.release(one);
        let three = buffers.insert(&[3; 4000]);
        assert_eq!((three, buffers.get(three)), (one, &[3; 4000][..]));
        buffers.release(two);
        assert_eq!(buffers.insert(b"four"), two);
        assert_eq!(buffers.get(two), &b"four"[..]);
    }
}
