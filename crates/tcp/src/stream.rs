//! The send buffer: the identity of every octet to be sent, no bytes.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::Payload;

/// The send stream: runs of payload, addressed by absolute sequence number.
//
// What a segment on the fast path reads comes first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Stream {
    /// The run being sent; most connections have one.
    front: Run,
    end: u64,
    closed: bool,
    /// The last write announced more data: a small segment at the end waits for it.
    more_coming: bool,
    /// Corked: a small segment at the end waits for more data.
    corked: bool,
    /// Octets before this are not held back.
    flushed_until: u64,
    later: VecDeque<Run>,
    /// A segment may carry several runs.
    #[serde(skip)]
    gathers: bool,
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
            more_coming: false,
            corked: false,
            flushed_until: 0,
            closed: false,
            gathers: false,
        }
    }

    /// From now on, a segment may carry several runs.
    pub(crate) fn gather(&mut self) {
        self.gathers = true;
    }

    /// Appends `len` bytes of `stream` from `offset` on; `pushed` unless more is to follow. Ignored
    /// once closed.
    pub(crate) fn write(&mut self, stream: u32, offset: u64, len: u64, pushed: bool) {
        if self.closed || len == 0 {
            return;
        }
        self.more_coming = !pushed;
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

    /// Turns corking on or off.
    pub(crate) fn cork(&mut self, corked: bool) {
        self.corked = corked;
        if !corked {
            self.flush();
        }
    }

    /// Releases all data written so far.
    pub(crate) fn flush(&mut self) {
        self.flushed_until = self.end;
    }

    /// Closes the stream: a FIN follows the last byte.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.more_coming = false;
        self.corked = false;
    }

    /// Whether a small segment at the end waits for more to be written.
    #[inline]
    pub(crate) fn holds_small_segment(&self) -> bool {
        (self.more_coming || self.corked) && self.flushed_until < self.end
    }

    /// Whether a segment up to `end` is to carry the PSH flag (RFC 9293 §3.9.1.2, MUST-60, MUST-61):
    /// nothing is to follow, or not in the same segment.
    #[inline]
    pub(crate) fn needs_psh(&self, end: u64) -> bool {
        // Nothing ends within the run that is being sent, where nearly every segment is.
        end >= self.front.end() && self.needs_psh_at_run_end(end)
    }

    /// [`Stream::needs_psh`] at or after the end of the run being sent.
    #[inline(never)]
    fn needs_psh_at_run_end(&self, end: u64) -> bool {
        if end >= self.end {
            return !self.more_coming;
        }
        if self.gathers {
            return false;
        }
        end == self.front.end() || self.later.binary_search_by_key(&end, Run::end).is_ok()
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

    /// Whether the stream is closed.
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
        // A relay of many connections has a run for each packet.
        self.later.get(self.later.partition_point(|run| run.end() <= start))
    }

    /// The runs from `una` on that are not acknowledged, in order.
    pub(crate) fn payloads(&self, una: u64) -> impl Iterator<Item = Payload> {
        let runs = core::iter::once(&self.front).chain(&self.later);
        runs.flat_map(move |run| {
            let start = una.clamp(run.start, run.end());
            // A run may be longer than a payload.
            let starts = (start..run.end()).step_by(u32::MAX as usize);
            starts.map(|start| Payload {
                stream: run.stream,
                offset: run.offset + (start - run.start),
                len: u32::try_from(run.end() - start).unwrap_or(u32::MAX),
            })
        })
    }

    /// The octet up to which full-sized segments of the run being sent carry its data only: less
    /// than its end where a FIN may follow.
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

    /// Octets of data that one segment may carry from `start` on, or the SYN: up to where the
    /// payload identity changes, unless segments carry several runs.
    #[inline]
    pub(crate) fn available(&self, start: u64) -> u64 {
        if start == 0 {
            return 1; // The SYN goes alone.
        }
        match self.run(start) {
            Some(_) if self.gathers => self.end - start,
            Some(run) => run.end() - start,
            None => 0,
        }
    }

    /// Whether the FIN's number is `end`.
    #[inline]
    pub(crate) fn has_fin_at(&self, end: u64) -> bool {
        self.closed && end == self.end
    }

    /// Whether `[.., end)` covers the FIN.
    #[inline]
    pub(crate) fn has_fin_before(&self, end: u64) -> bool {
        self.closed && end > self.end
    }

    /// The payload from `start` on, at most `len` bytes, fewer where the identity changes. If segments carry
    /// several runs it has all bytes, and is [`Payload::GATHERED`] where the identity changes: its
    /// offset is `start` then.
    #[inline]
    pub(crate) fn payload(&self, start: u64, len: u32) -> Payload {
        let Some(run) = self.run(start) else {
            return Payload::default();
        };
        let into = start - run.start;
        if self.gathers && u64::from(len) > run.len - into {
            return Payload { stream: Payload::GATHERED, offset: start, len };
        }
        let len = u64::from(len).min(run.len - into) as u32;
        Payload { stream: run.stream, offset: run.offset + into, len }
    }

    /// Discards acknowledged runs.
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
    fn runs_are_listed_from_the_first_octet_that_is_not_acknowledged() {
        let mut stream = Stream::new();
        assert_eq!(stream.payloads(1).count(), 0);
        stream.write(1, 500, 100, true);
        stream.write(2, 0, 5 << 32, true);
        stream.write(3, 7, 1, true);
        let found: Vec<_> = stream.payloads(31).map(|p| (p.stream, p.offset, p.len)).collect();
        let most = u32::MAX;
        let rest = (5_u64 << 32) % u64::from(most);
        let long = (0..5).map(|n| (2, n * u64::from(most), most));
        let mut expected = vec![(1, 530, 70)];
        expected.extend(long.chain([(2, 5 * u64::from(most), rest as u32), (3, 7, 1)]));
        assert_eq!(found, expected);
        assert_eq!(stream.payloads(stream.end()).count(), 0);
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
