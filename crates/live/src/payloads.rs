//! The bytes of payloads that boxes have seen.

mod chunk;
#[cfg(test)]
mod tests;

use crate::pool;
use chunk::{Chunk, total};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use wire::Payload;

/// The bytes of payloads, for as long as a box holds a packet with them. Boxes have packets without
/// bytes; the payload of such a packet is the place of its bytes here, instead of in a stream.
///
/// Bytes are in chunks, into which packets can be read directly. Once there are many, the boxes are asked
/// which payloads they hold, and all other chunks are freed: at the cost of one look at each packet that is
/// held, whenever a quarter as many bytes were added as are held. Of a chunk with few bytes that are held, only these
/// are kept. Packets without payload can be read however little memory there is, and acknowledge what is held.
pub(crate) struct Payloads {
    /// The stream of the places.
    stream: u32,
    /// Bytes that others have kept, by stream and place. What went there and comes back is of the own stream, and may have
    /// been freed here meanwhile.
    foreign: BTreeMap<(u32, u64), Box<[u8]>>,
    /// The last is being filled.
    chunks: VecDeque<Chunk>,
    /// The number of chunks before `chunks`.
    first: u64,
    /// The place of the next byte.
    end: u64,
    /// Chunks that are whole.
    used: usize,
    /// Bytes of chunks that are not, and of others.
    in_pieces: usize,
    /// Chunks without content.
    spare: Vec<Box<[u8]>>,
    /// There are many chunks from this number on.
    many: usize,
    /// The most chunks.
    most: usize,
    /// For a packet that is read without room for more bytes.
    reserve: Box<[u8]>,
    /// Such packets, since there were so many chunks.
    unkept: u32,
}

impl Default for Payloads {
    fn default() -> Payloads {
        Payloads::new(Payloads::MOST)
    }
}

impl Payloads {
    /// The stream of such places, which no box's own packets have.
    const STREAM: u32 = u32::MAX - 1;
    /// The size of a chunk, bytes: it holds a few of the largest packets.
    const CHUNK: usize = 1 << 18;
    /// Chunks that are no reason to ask boxes: 4 MiB, which stay in a processor's cache.
    const FEW: usize = 1 << 4;
    /// The most chunks, if nothing is said of it: 1 GiB.
    const MOST: usize = 1 << 12;
    /// Without room for more bytes, boxes are asked again after so many packets.
    const PATIENCE: u32 = 1 << 8;
    /// A payload of at most so many bytes is moved next to the one before it: then the two are one run,
    /// if they are of one stream.
    const SMALL: usize = 1 << 12;

    fn new(most: usize) -> Payloads {
        Payloads {
            stream: Payloads::STREAM,
            foreign: BTreeMap::new(),
            chunks: VecDeque::new(),
            first: 0,
            end: 0,
            used: 0,
            in_pieces: 0,
            spare: Vec::new(),
            many: Payloads::FEW,
            most,
            reserve: vec![0; pool::LEN].into_boxed_slice(),
            unkept: 0,
        }
    }

    /// There is room for boxes that hold so many bytes: chunks that are held in part take twice as many at most.
    pub(crate) fn limit(&mut self, held: u64) {
        let held = usize::try_from(held).unwrap_or(usize::MAX).div_ceil(Payloads::CHUNK);
        let most = held.saturating_mul(2).saturating_add(4 * Payloads::FEW);
        // Their bytes are to be a number, too.
        self.most = most.min(usize::MAX / Payloads::CHUNK);
    }

    /// Nothing is kept yet, and places are to be of this stream, which no one has with whom payloads are exchanged.
    pub(crate) fn of_stream(&mut self, stream: u32) {
        debug_assert!(self.chunks.is_empty());
        self.stream = stream;
    }

    /// The place in its chunk of the next byte.
    fn place(&self) -> usize {
        (self.end % Payloads::CHUNK as u64) as usize
    }

    /// Makes room for a packet to be read and kept. Says whether there is; if not, packets can still be read.
    pub(crate) fn make_room(&mut self) -> bool {
        if self.has_room() {
            return true;
        }
        self.end = self.end.next_multiple_of(Payloads::CHUNK as u64);
        // It may be there, and nothing be kept in it.
        let has_room = self.has_room() || self.add_chunk();
        self.unkept = if has_room { 0 } else { self.unkept + 1 };
        has_room
    }

    /// Whether what is read next can be kept.
    pub(crate) fn has_room(&self) -> bool {
        self.end < (self.first + self.chunks.len() as u64) * Payloads::CHUNK as u64
            && self.place() + pool::LEN <= Payloads::CHUNK
    }

    /// Memory for a packet to be read into, of [`pool::LEN`] bytes. What is read is lost unless
    /// [`Payloads::keep_read`] follows, for which there must be room.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        let (place, has_room) = (self.place(), self.has_room());
        match self.chunks.back_mut() {
            Some(Chunk::Whole(bytes)) if has_room => &mut bytes[place..place + pool::LEN],
            _ => &mut self.reserve,
        }
    }

    /// The payload that a range of [`Payloads::space`] becomes if it is kept.
    pub(crate) fn identity(&self, range: &Range<usize>) -> Payload {
        let len = range.len();
        let offset = match len {
            0 => return Payload::default(),
            1..=Payloads::SMALL => self.end,
            _ => self.end + range.start as u64,
        };
        Payload { stream: self.stream, offset, len: len as u32 }
    }

    /// Keeps a range of [`Payloads::space`]. What else was read there is lost.
    pub(crate) fn keep_read(&mut self, range: Range<usize>) -> Payload {
        let payload = self.identity(&range);
        if payload.len == 0 {
            return payload;
        }
        let place = self.place();
        if payload.offset == self.end
            && let Some(Chunk::Whole(bytes)) = self.chunks.back_mut()
        {
            bytes.copy_within(place + range.start..place + range.end, place);
        }
        self.end = payload.end();
        payload
    }

    /// Keeps a copy of the bytes of a packet; `None` if there is no memory for them.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Option<Payload> {
        if bytes.is_empty() {
            return Some(Payload::default());
        }
        if !self.make_room() {
            return None;
        }
        self.space()[..bytes.len()].copy_from_slice(bytes);
        Some(self.keep_read(0..bytes.len()))
    }

    fn add_chunk(&mut self) -> bool {
        if self.memory() >= self.most * Payloads::CHUNK {
            return false;
        }
        let fresh = || vec![0; Payloads::CHUNK].into_boxed_slice();
        self.chunks.push_back(Chunk::Whole(self.spare.pop().unwrap_or_else(fresh)));
        self.used += 1;
        true
    }

    /// Bytes of memory in use.
    fn memory(&self) -> usize {
        self.used * Payloads::CHUNK + self.in_pieces
    }

    /// Whether it is time for [`Payloads::free_all_but`].
    pub(crate) fn has_many(&self) -> bool {
        match self.unkept {
            0 => self.used >= self.many,
            unkept => unkept % Payloads::PATIENCE == 1,
        }
    }

    /// Frees the memory of payloads, except for those that `held` passes to its argument.
    pub(crate) fn free_all_but(&mut self, held: impl FnOnce(&mut dyn FnMut(Payload))) {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut foreign: Vec<Payload> = Vec::new();
        held(&mut |payload| {
            if payload.stream == self.stream && payload.len > 0 {
                match ranges.last_mut() {
                    Some(last) if last.end == payload.offset => last.end = payload.end(),
                    _ => ranges.push(payload.offset..payload.end()),
                }
            }
            if payload.len > 0 && !self.foreign.is_empty() {
                foreign.push(payload);
            }
        });
        self.keep_foreign(foreign);
        ranges.sort_unstable_by_key(|range| range.start);
        let mut ranges = ranges.into_iter().peekable();
        // Packets are read there next.
        let filling = Some((self.end / Payloads::CHUNK as u64 - self.first) as usize);
        for index in 0..self.chunks.len() {
            let start = (self.first + index as u64) * Payloads::CHUNK as u64;
            let end = start + Payloads::CHUNK as u64;
            // What is held of this chunk. What is no longer here is noticed when it is to be sent.
            let mut needed: Vec<Range<usize>> = Vec::new();
            while let Some(range) = ranges.peek_mut().filter(|range| range.start < end) {
                let within = range.start.max(start)..range.end.min(end);
                let (from, to) = (
                    (within.start - start) as usize,
                    (within.end.max(within.start) - start) as usize,
                );
                match needed.last_mut() {
                    Some(last) if from <= last.end => last.end = last.end.max(to),
                    _ => needed.push(from..to),
                }
                if range.end > end {
                    range.start = end;
                    break;
                }
                ranges.next();
            }
            if filling != Some(index) {
                self.keep_of(index, &needed);
            }
        }
        while let Some(Chunk::Pieces(pieces)) = self.chunks.front()
            && pieces.is_empty()
        {
            self.chunks.pop_front();
            self.first += 1;
        }
        let held = self.memory().div_ceil(Payloads::CHUNK);
        self.many = self.used + (held / 4).max(Payloads::FEW);
        // As many as are used before the next time.
        self.spare.truncate(self.many.saturating_sub(self.used));
    }

    /// Keeps bytes of others that one of these payloads has.
    fn keep_foreign(&mut self, mut held: Vec<Payload>) {
        if self.foreign.is_empty() {
            return;
        }
        held.sort_unstable_by_key(|payload| (payload.stream, payload.offset));
        let mut runs: Vec<((u32, u64), u64)> = Vec::new();
        for payload in held {
            match runs.last_mut() {
                Some(((stream, _), end)) if *stream == payload.stream && payload.offset <= *end => {
                    *end = payload.end().max(*end);
                }
                _ => runs.push(((payload.stream, payload.offset), payload.end())),
            }
        }
        let in_pieces = &mut self.in_pieces;
        self.foreign.retain(|&(stream, place), bytes| {
            let end = place + bytes.len() as u64;
            let before = runs.partition_point(|(start, _)| *start < (stream, end));
            let last = before.checked_sub(1).map(|at| runs[at]);
            let is_needed = last.is_some_and(|((of, _), until)| of == stream && until > place);
            *in_pieces -= if is_needed { 0 } else { bytes.len() };
            is_needed
        });
    }

    /// The bytes of others from a place on, as many as are in one piece and at most `most`; `None` if there are none.
    #[cold]
    fn foreign_at(&self, stream: u32, place: u64, most: usize) -> Option<&[u8]> {
        let mut before = self.foreign.range((stream, 0)..=(stream, place)).rev();
        let (start, bytes) = before.find_map(|(&(_, start), bytes)| {
            (place < start + bytes.len() as u64).then_some((start, bytes))
        })?;
        let bytes = &bytes[(place - start) as usize..];
        Some(&bytes[..most.min(bytes.len())])
    }

    /// Keeps bytes that another one has kept under these streams and places ([`Payloads::copies`]). Returns false, and
    /// keeps none, if there is no memory for them, or if they have its stream, and cannot have been here.
    pub(crate) fn adopt(&mut self, pieces: Vec<(u32, u64, Box<[u8]>)>) -> bool {
        let bytes: usize = pieces.iter().map(|(_, _, bytes)| bytes.len()).sum();
        let was_here = |(stream, place, bytes): &(u32, u64, Box<[u8]>)| {
            *stream != self.stream || place + bytes.len() as u64 <= self.end
        };
        if self.memory().saturating_add(bytes) > self.most.saturating_mul(Payloads::CHUNK)
            || !pieces.iter().all(was_here)
        {
            return false;
        }
        for (stream, place, bytes) in pieces {
            self.in_pieces += bytes.len();
            if let Some(before) = self.foreign.insert((stream, place), bytes) {
                self.in_pieces -= before.len();
            }
        }
        true
    }

    /// Copies of the bytes of payloads, with their streams and places, for [`Payloads::adopt`]. Bytes that are in
    /// several payloads are in one piece.
    pub(crate) fn copies(&self, payloads: &[Payload]) -> Vec<(u32, u64, Box<[u8]>)> {
        let mut payloads: Vec<_> = payloads.iter().filter(|payload| payload.len > 0).collect();
        payloads.sort_unstable_by_key(|payload| (payload.stream, payload.offset));
        let mut pieces = Vec::new();
        let mut done = (0, 0);
        for payload in payloads {
            let (stream, until) = done;
            let mut place = payload.offset.max(if stream == payload.stream { until } else { 0 });
            while place < payload.end()
                && let Some(bytes) =
                    self.at(payload.stream, place, (payload.end() - place) as usize)
            {
                pieces.push((payload.stream, place, bytes.into()));
                place += bytes.len() as u64;
            }
            done = (payload.stream, place);
        }
        pieces
    }

    /// Whether a payload is of bytes that were read here.
    pub(crate) fn has(&self, payload: Payload) -> bool {
        payload.stream == self.stream
    }

    /// Whether half of the memory is in use: then it counts for more than the time that it takes to copy what is held of
    /// chunks.
    fn is_tight(&self) -> bool {
        self.memory() > self.most * Payloads::CHUNK / 2
    }

    /// Keeps these ranges of a chunk, or all of it if they are much of it.
    fn keep_of(&mut self, index: usize, needed: &[Range<usize>]) {
        let bytes: usize = needed.iter().map(Range::len).sum();
        let much = if self.is_tight() { 3 * Payloads::CHUNK / 4 } else { Payloads::CHUNK / 4 };
        let chunk = &mut self.chunks[index];
        match chunk {
            Chunk::Whole(_) if bytes > much => return,
            Chunk::Pieces(pieces) if bytes == total(pieces) => return,
            _ => {}
        }
        // What was freed before, and has come back, is not in the chunk.
        let pieces = needed.iter().map(|range| (range.start, chunk.from(range.start, range.len())));
        let pieces = pieces.filter(|(_, bytes)| !bytes.is_empty());
        let pieces: Vec<(usize, Box<[u8]>)> =
            pieces.map(|(place, bytes)| (place, bytes.into())).collect();
        self.in_pieces += total(&pieces);
        match std::mem::replace(chunk, Chunk::Pieces(pieces)) {
            Chunk::Whole(whole) => {
                self.used -= 1;
                self.spare.push(whole);
            }
            Chunk::Pieces(old) => {
                self.in_pieces -= total(&old);
            }
        }
    }

    /// The bytes from a place on, as many as are in one piece and at most `most`; `None` if there are none.
    #[inline]
    fn at(&self, stream: u32, place: u64, most: usize) -> Option<&[u8]> {
        if stream != self.stream {
            return self.foreign_at(stream, place, most);
        }
        self.own_at(place, most).or_else(|| self.foreign_at(stream, place, most))
    }

    /// The same of bytes that were read here.
    #[inline]
    fn own_at(&self, place: u64, most: usize) -> Option<&[u8]> {
        let number = (place / Payloads::CHUNK as u64).checked_sub(self.first)?;
        let chunk = self.chunks.get(usize::try_from(number).ok()?)?;
        let bytes = chunk.from((place % Payloads::CHUNK as u64) as usize, most);
        Some(bytes).filter(|bytes| !bytes.is_empty())
    }

    /// Calls `piece` with the bytes of a payload that was kept, one piece after the other. Returns false if they
    /// are no longer there.
    pub(crate) fn lend<'a>(&'a self, payload: Payload, piece: &mut dyn FnMut(&'a [u8])) -> bool {
        let mut place = payload.offset;
        while place < payload.end() {
            let Some(bytes) = self.at(payload.stream, place, (payload.end() - place) as usize)
            else {
                return false;
            };
            piece(bytes);
            place += bytes.len() as u64;
        }
        true
    }

    /// The bytes of those payloads that `held` passes to its argument, and their places, in order.
    pub(crate) fn pieces(&self, held: impl FnOnce(&mut dyn FnMut(Payload))) -> Vec<(u64, &[u8])> {
        let mut payloads = Vec::new();
        held(&mut |payload| {
            if payload.stream == self.stream && payload.len > 0 {
                payloads.push(payload);
            }
        });
        payloads.sort_unstable_by_key(|payload| payload.offset);
        // No piece continues another one of its chunk: see `keep_of`.
        let mut runs: Vec<Range<u64>> = Vec::new();
        for payload in payloads {
            match runs.last_mut() {
                Some(run) if payload.offset <= run.end => run.end = run.end.max(payload.end()),
                _ => runs.push(payload.offset..payload.end()),
            }
        }
        let mut pieces = Vec::new();
        for Range { start, end } in runs {
            let mut place = start;
            while let Some(bytes) = self.at(self.stream, place, (end - place) as usize) {
                pieces.push((place, bytes));
                place += bytes.len() as u64;
            }
        }
        pieces
    }

    /// Those of a program before this one that had [`Payloads::pieces`] at these places; each is within a chunk,
    /// and they are in order.
    pub(crate) fn restored(pieces: impl IntoIterator<Item = (u64, Box<[u8]>)>) -> Payloads {
        let mut payloads = Payloads::default();
        for (place, bytes) in pieces {
            let number = place / Payloads::CHUNK as u64;
            if payloads.chunks.is_empty() {
                payloads.first = number;
            }
            let last = payloads.first + payloads.chunks.len() as u64;
            for _ in last..=number {
                payloads.chunks.push_back(Chunk::Pieces(Vec::new()));
            }
            payloads.in_pieces += bytes.len();
            payloads.end = place + bytes.len() as u64;
            if let Some(Chunk::Pieces(pieces)) = payloads.chunks.back_mut() {
                pieces.push(((place % Payloads::CHUNK as u64) as usize, bytes));
            }
        }
        // What is read next is in a chunk of its own.
        payloads.end = (payloads.first + payloads.chunks.len() as u64) * Payloads::CHUNK as u64;
        payloads
    }

    /// Writes the bytes of a payload: those that were kept, or for a box's own packet those that its
    /// identity stands for. Returns false if they are no longer there.
    pub(crate) fn fetch(&self, payload: Payload, out: &mut [u8]) -> bool {
        if payload.stream != self.stream {
            payload.render(out);
            return true;
        }
        let mut left = out;
        self.lend(payload, &mut |piece| {
            let (now, later) = std::mem::take(&mut left).split_at_mut(piece.len());
            now.copy_from_slice(piece);
            left = later;
        })
    }
}
