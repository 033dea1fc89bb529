//! What counts besides the box.

/// Counters that are read from another thread than that of the packets.
pub(crate) trait Counted: Send + Sync {
    /// Calls `count` with the name and value of each.
    fn each(&self, count: &mut dyn FnMut(&'static str, u64));
}
