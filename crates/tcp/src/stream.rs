//! What the application has asked to send: the identity of every octet, no bytes.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::Payload;

/// The send stream: runs of payload, addressed by absolute sequence number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stream {
    /// The run that is being sent; most connections have no other.
    front: Run,
    later: VecDeque<Run>,
    end: u64,
    /// More is to follow what was written last: a small segment at the end waits for it.
    unpushed: bool,
    /// More is to follow whatever is written.
    corked: bool,
    /// What lies before this is not held back.
    flushed: u64,
    closed: bool,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Run {
    start: u64,
    len: u64,
    stream: u32,
    offset: u64,
}

impl Run {
    #[inline]
    fn end(&self) -> u64 {
        self.start + self.len
    }
}

impl Stream {
    /// An empty stream; its first byte will be sequence number 1, after the SYN.
    pub(crate) fn new() -> Stream {
        Stream {
            front: Run::default(),
            later: VecDeque::new(),
            end: 1,
            unpushed: false,
            corked: false,
            flushed: 0,
            closed: false,
        }
    }

    /// Appends `len` bytes of `stream` from `offset` on; `pushed` unless more is to follow. Ignored
    /// once closed.
    pub(crate) fn write(&mut self, stream: u32, offset: u64, len: u64, pushed: bool) {
        if self.closed || len == 0 {
            return;
        }
        self.unpushed = !pushed;
        let run = Run { start: self.end, len, stream, offset };
        self.end += len;
        let last = self.later.back_mut().unwrap_or(&mut self.front);
        if last.len == 0 {
            *last = run;
        } else if last.stream == stream && last.offset + last.len == offset {
            last.len += len;
        } else {
            self.later.push_back(run);
        }
    }

    /// Whatever is written waits until it fills a segment, or no longer.
    pub(crate) fn cork(&mut self, corked: bool) {
        self.corked = corked;
        if !corked {
            self.flush();
        }
    }

    /// Nothing that was written waits for more.
    pub(crate) fn flush(&mut self) {
        self.flushed = self.end;
    }

    /// No more will be written: a FIN follows the last byte.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.unpushed = false;
        self.corked = false;
    }

    /// Whether a small segment at the end waits for more to be written.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        (self.unpushed || self.corked) && self.flushed < self.end
    }

    /// Whether a segment up to `end` is to carry the PSH flag (RFC 9293 §3.9.1.2, MUST-60, MUST-61):
    /// nothing is to follow, or not in the same segment.
    #[inline]
    pub(crate) fn is_pushed_before(&self, end: u64) -> bool {
        // Nothing ends within the run that is being sent, where nearly every segment is.
        end >= self.front.end() && self.is_pushed_behind(end)
    }

    /// What [`Stream::is_pushed_before`] says from the end of the run that is being sent on.
    #[inline(never)]
    fn is_pushed_behind(&self, end: u64) -> bool {
        if end >= self.end {
            return !self.unpushed;
        }
        end == self.front.end() || self.later.iter().any(|run| run.end() == end)
    }

    /// The sequence number after the last octet that may be sent, the FIN included.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end + u64::from(self.closed)
    }

    /// Bytes written.
    pub(crate) fn written(&self) -> u64 {
        self.end - 1
    }

    /// Whether no more will be written.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The run that holds `start`.
    #[inline]
    fn run(&self, start: u64) -> Option<&Run> {
        if start < self.front.end() {
            return Some(&self.front);
        }
        self.later.iter().find(|run| start < run.end())
    }

    /// Up to here, full-sized segments of the run that is being sent carry nothing but its data: not
    /// to its end where a FIN may go with the last of them.
    #[inline]
    pub(crate) fn run_end(&self) -> u64 {
        self.front.end().saturating_sub(u64::from(self.closed))
    }

    /// `len` bytes from `start` on, which lie in the run that is being sent.
    #[inline]
    pub(crate) fn front_payload(&self, start: u64, len: u32) -> Payload {
        let offset = self.front.offset + (start - self.front.start);
        Payload { stream: self.front.stream, offset, len }
    }

    /// Octets of data that one segment may take from `start` on, or the SYN: up to where the identity
    /// of the payload breaks off.
    #[inline]
    pub(crate) fn available(&self, start: u64) -> u64 {
        if start == 0 {
            return 1; // The SYN goes alone.
        }
        self.run(start).map_or(0, |run| run.end() - start)
    }

    /// Whether a FIN comes next after what ends at `end`.
    #[inline]
    pub(crate) fn has_fin_at(&self, end: u64) -> bool {
        self.closed && end == self.end
    }

    /// Whether `[.., end)` covers the FIN.
    #[inline]
    pub(crate) fn has_fin_before(&self, end: u64) -> bool {
        self.closed && end > self.end
    }

    /// The bytes from `start` on, `len` at most, fewer where the identity breaks off.
    #[inline]
    pub(crate) fn payload(&self, start: u64, len: u32) -> Payload {
        let Some(run) = self.run(start) else {
            return Payload::default();
        };
        let into = start - run.start;
        let len = u64::from(len).min(run.len - into) as u32;
        Payload { stream: run.stream, offset: run.offset + into, len }
    }

    /// Forgets what was acknowledged.
    #[inline]
    pub(crate) fn acknowledged(&mut self, una: u64) {
        while self.front.end() <= una
            && let Some(next) = self.later.pop_front()
        {
            self.front = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_writes_are_one_run_and_foreign_ones_are_not() {
        let mut stream = Stream::new();
        stream.write(1, 0, 100, true);
        stream.write(1, 100, 50, true);
        stream.write(2, 0, 10, true);
        assert_eq!(stream.payload(91, 100), Payload { stream: 1, offset: 90, len: 60 });
        assert_eq!(stream.payload(151, 100), Payload { stream: 2, offset: 0, len: 10 });
    }

    #[test]
    fn the_fin_takes_one_sequence_number_after_the_data() {
        let mut stream = Stream::new();
        stream.write(1, 0, 100, true);
        assert_eq!(stream.end(), 101);
        stream.close();
        stream.write(1, 100, 100, true);
        assert_eq!(stream.end(), 102);
        assert!(stream.has_fin_before(102) && !stream.has_fin_before(101));
    }
}
