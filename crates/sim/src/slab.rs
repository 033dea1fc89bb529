//! The slab of all packets: links and events carry handles.

use wire::Packet;

/// A packet's place in the slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handle(u32);

/// Packets in flight. It grows to the largest number at any one time, then allocates no more.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    packets: Vec<Packet>,
    vacant: Vec<Handle>,
}

impl Slab {
    /// The place that [`Slab::take`] would take.
    #[inline]
    pub(crate) fn vacant(&mut self) -> Handle {
        match self.vacant.last() {
            Some(&handle) => handle,
            None => self.grow(),
        }
    }

    #[cold]
    fn grow(&mut self) -> Handle {
        let handle = Handle(self.packets.len() as u32);
        self.packets.push(Packet::BLANK);
        self.vacant.push(handle);
        handle
    }

    /// A slot whose packet is to be overwritten.
    #[inline]
    pub(crate) fn take(&mut self) -> Handle {
        let handle = self.vacant();
        self.vacant.pop();
        handle
    }

    /// Puts a packet into a place.
    pub(crate) fn insert(&mut self, packet: Packet) -> Handle {
        let handle = self.take();
        self.packets[handle.0 as usize] = packet;
        handle
    }

    /// Frees a packet's place.
    #[inline]
    pub(crate) fn release(&mut self, handle: Handle) {
        self.vacant.push(handle);
    }

    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> &Packet {
        &self.packets[handle.0 as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, handle: Handle) -> &mut Packet {
        &mut self.packets[handle.0 as usize]
    }

    /// Packets in flight.
    pub(crate) fn len(&self) -> usize {
        self.packets.len() - self.vacant.len()
    }
}
