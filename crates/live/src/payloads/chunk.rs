//! Bytes into which packets are read: whole, or what is left of them.

/// A chunk of bytes.
pub(super) enum Chunk {
    Whole(Box<[u8]>),
    /// The bytes from these places of the chunk on, in order. There may be none.
    Pieces(Vec<(usize, Box<[u8]>)>),
}

impl Chunk {
    /// The bytes from a place on, as many as there are and at most `most`; none, if they are gone.
    pub(super) fn from(&self, start: usize, most: usize) -> &[u8] {
        let bytes = match self {
            Chunk::Whole(bytes) => &bytes[start..],
            Chunk::Pieces(pieces) => {
                let after = pieces.partition_point(|&(place, _)| place <= start);
                let piece = after.checked_sub(1).map(|at| &pieces[at]);
                piece.and_then(|(place, bytes)| bytes.get(start - place..)).unwrap_or_default()
            }
        };
        &bytes[..most.min(bytes.len())]
    }
}

/// The bytes of pieces of a chunk.
pub(super) fn total(pieces: &[(usize, Box<[u8]>)]) -> usize {
    pieces.iter().map(|(_, bytes)| bytes.len()).sum()
}
