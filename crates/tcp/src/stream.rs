//! What the application has asked to send: the identity of every octet, no bytes.

use std::collections::VecDeque;
use wire::Payload;

/// The send stream: runs of payload, addressed by absolute sequence number.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    runs: VecDeque<Run>,
    end: u64,
    closed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    len: u64,
    stream: u32,
    offset: u64,
}

impl Run {
    fn end(&self) -> u64 {
        self.start + self.len
    }
}

impl Stream {
    /// An empty stream; its first byte will be sequence number 1, after the SYN.
    pub(crate) fn new() -> Stream {
        Stream { runs: VecDeque::new(), end: 1, closed: false }
    }

    /// Appends `len` bytes of `stream` from `offset` on. Ignored once closed.
    pub(crate) fn write(&mut self, stream: u32, offset: u64, len: u64) {
        if self.closed || len == 0 {
            return;
        }
        let start = self.end;
        self.end += len;
        match self.runs.back_mut() {
            Some(run) if run.stream == stream && run.offset + run.len == offset => run.len += len,
            _ => self.runs.push_back(Run { start, len, stream, offset }),
        }
    }

    /// No more will be written: a FIN follows the last byte.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// The sequence number after the last octet that may be sent, the FIN included.
    pub(crate) fn end(&self) -> u64 {
        self.end + u64::from(self.closed)
    }

    /// Octets that one segment may take from `start` on: up to where the identity of the payload
    /// breaks off, the FIN included if that is the end.
    #[inline]
    pub(crate) fn available(&self, start: u64) -> u64 {
        if start == 0 {
            return 1; // The SYN goes alone.
        }
        match self.runs.iter().find(|run| start < run.end()) {
            Some(run) if run.end() < self.end => run.end() - start,
            _ => self.end().saturating_sub(start),
        }
    }

    /// Whether `[.., end)` covers the FIN.
    pub(crate) fn has_fin_before(&self, end: u64) -> bool {
        self.closed && end > self.end
    }

    /// The bytes from `start` on, `len` at most, fewer where the identity breaks off.
    pub(crate) fn payload(&self, start: u64, len: u32) -> Payload {
        let Some(run) = self.runs.iter().find(|run| start < run.end()) else {
            return Payload::default();
        };
        let into = start - run.start;
        let len = u64::from(len).min(run.len - into) as u32;
        Payload { stream: run.stream, offset: run.offset + into, len }
    }

    /// Forgets what was acknowledged.
    pub(crate) fn acknowledged(&mut self, una: u64) {
        while self.runs.len() > 1 && self.runs[0].end() <= una {
            self.runs.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_writes_are_one_run_and_foreign_ones_are_not() {
        let mut stream = Stream::new();
        stream.write(1, 0, 100);
        stream.write(1, 100, 50);
        stream.write(2, 0, 10);
        assert_eq!(stream.payload(91, 100), Payload { stream: 1, offset: 90, len: 60 });
        assert_eq!(stream.payload(151, 100), Payload { stream: 2, offset: 0, len: 10 });
    }

    #[test]
    fn the_fin_takes_one_sequence_number_after_the_data() {
        let mut stream = Stream::new();
        stream.write(1, 0, 100);
        assert_eq!(stream.end(), 101);
        stream.close();
        stream.write(1, 100, 100);
        assert_eq!(stream.end(), 102);
        assert!(stream.has_fin_before(102) && !stream.has_fin_before(101));
    }
}
