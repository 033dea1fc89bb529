//! Packets that only pass, when more come from a device than can be passed on.

use std::collections::VecDeque;

/// Packets of one side that are to pass as they were read.
///
/// Usually they are written at once. If many packets wait in the device, these have to wait here, so that those that
/// the middlebox consumes are not lost behind them: to write a packet takes the kernel, which forwards it meanwhile,
/// several times as long as to read one. A flood then loses most of its own packets, and the connections of the
/// middlebox none.
#[derive(Default)]
pub(super) struct Passing {
    waiting: VecDeque<Vec<u8>>,
    /// Memory for the next ones.
    spare: Vec<Vec<u8>>,
    /// Times in a row that there was more to be read.
    behind: u32,
    /// Connections that were opened this time.
    opened: usize,
}

impl Passing {
    /// The most that wait.
    pub(super) const MOST: usize = 1024;
    /// They have to wait when there was so often more to be read: that many packets wait in the device.
    const LONG: u32 = 32;
    /// Those that leave at a time while there is more to be read, and of 16 that are read then.
    const FEW: usize = 4;
    /// Buffers that are kept.
    const SPARE: usize = 64;

    /// Takes note of whether there is more to be read.
    pub(super) fn note(&mut self, more: bool) {
        self.behind = if more { self.behind.saturating_add(1) } else { 0 };
        self.opened = 0;
    }

    /// Whether the middlebox is to see one more packet that opens a connection. If many packets wait, it sees as many of
    /// them as can leave. Those that have a queue of their own come first, and are [`Passing::few`]: others open
    /// connections where there is no such queue, or behind extension headers.
    pub(super) fn admits_opening(&mut self) -> bool {
        self.opened += 1;
        !self.is_behind() || self.opened <= self.few()
    }

    /// Whether many packets wait in the device.
    fn is_behind(&self) -> bool {
        self.behind >= Passing::LONG
    }

    /// [`Passing::FEW`], and fewer if that does not help.
    pub(super) fn few(&self) -> usize {
        match self.behind / Passing::LONG {
            0 | 1 => Passing::FEW,
            2 | 3 => Passing::FEW / 2,
            _ => 1,
        }
    }

    /// Whether one that has just been read has to wait.
    pub(super) fn has_to_wait(&self) -> bool {
        self.is_behind() || !self.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Lets one wait. Returns false if there is no room, and it is lost.
    pub(super) fn push(&mut self, packet: &[u8]) -> bool {
        if self.waiting.len() == Passing::MOST {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(packet);
        self.waiting.push_back(buffer);
        true
    }

    /// Writes those whose time has come, the oldest first.
    pub(super) fn write(&mut self, mut write: impl FnMut(&[u8])) {
        let most = if self.behind > 0 { self.few() } else { 4 * Passing::FEW };
        for _ in 0..most.min(self.waiting.len()) {
            let Some(mut packet) = self.waiting.pop_front() else { return };
            write(&packet);
            if self.spare.len() < Passing::SPARE {
                packet.clear();
                self.spare.push(packet);
            }
        }
    }

    /// Writes all.
    pub(super) fn write_all(&mut self, mut write: impl FnMut(&[u8])) {
        self.waiting.drain(..).for_each(|packet| write(&packet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(passing: &mut Passing) -> Vec<u8> {
        let mut all = Vec::new();
        passing.write(|packet| all.push(packet[0]));
        all
    }

    #[test]
    fn they_wait_only_if_there_is_much_to_be_read_and_then_keep_their_order() {
        let mut passing = Passing::default();
        for _ in 1..Passing::LONG {
            passing.note(true);
            assert!(!passing.has_to_wait());
        }
        passing.note(true);
        assert!(passing.has_to_wait());
        for number in 0..30 {
            assert!(passing.push(&[number]));
        }
        assert_eq!(written(&mut passing), [0, 1, 2, 3]);
        passing.note(false);
        assert!(passing.has_to_wait(), "those before it have not left yet");
        assert_eq!(written(&mut passing), (4..20).collect::<Vec<_>>());
        assert_eq!(written(&mut passing), (20..30).collect::<Vec<_>>());
        assert!(passing.is_empty() && !passing.has_to_wait());
    }

    #[test]
    fn few_connections_are_opened_if_there_is_much_to_be_read() {
        let mut passing = Passing::default();
        assert!((0..100).all(|_| passing.admits_opening()));
        (0..Passing::LONG).for_each(|_| passing.note(true));
        assert_eq!((0..100).filter(|_| passing.admits_opening()).count(), Passing::FEW);
        passing.note(true);
        assert!(passing.admits_opening());
        (0..1000).for_each(|_| passing.note(true));
        assert_eq!((0..100).filter(|_| passing.admits_opening()).count(), 1);
        passing.note(false);
        assert!((0..100).all(|_| passing.admits_opening()));
    }

    #[test]
    fn there_are_not_more_than_there_may_be() {
        let mut passing = Passing::default();
        for _ in 0..Passing::MOST {
            assert!(passing.push(&[0; 100]));
        }
        assert!(!passing.push(&[0; 100]));
        let mut count = 0;
        passing.write_all(|packet| count += packet.len());
        assert_eq!(count, 100 * Passing::MOST);
        assert!(passing.is_empty());
    }
}
