//! What is searched.

/// What is searched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// The end that opens each stream, and the segments of data from its opener and to it.
    pub(super) streams: &'static [(usize, [u64; 2])],
    /// The association is open when the search begins.
    pub(super) is_open: bool,
    /// The last stream is refused.
    pub(super) refuses: bool,
    /// Ends of streams are withheld until their data has been acknowledged farther on.
    pub(super) holds: bool,
    /// The window of each stream, segments.
    pub(super) window: u64,
    /// Of the PDUs in flight to an end, one of the first so many arrives next: one may be overtaken by
    /// any number, but not any number by one.
    pub(super) reordered: usize,
    pub(super) budget: Budget,
    /// The most moves.
    pub(super) depth: usize,
}

/// What may go wrong, so many times.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Budget {
    pub(super) losses: u8,
    pub(super) duplicates: u8,
    /// Deadlines that pass: of SACKs, of retransmissions, and of the opening.
    pub(super) deadlines: u8,
    /// Streams that are reset by a user.
    pub(super) resets: u8,
    pub(super) suspensions: u8,
    /// Handoffs after which the association is renewed, with or without another station at the other end.
    pub(super) renewals: u8,
    /// Associations that are ended.
    pub(super) aborts: u8,
    /// Ends that lose their memory.
    pub(super) crashes: u8,
}
