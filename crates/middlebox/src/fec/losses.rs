//! Loss detection in an encoded stream, by its sequence numbers.

use wire::Place;

/// The places of an encoded stream that have arrived.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// The place after the highest that has arrived.
    next: u64,
    /// Which of the preceding places have arrived, the highest in the lowest bit.
    seen: u32,
}

/// A place this far behind the highest that arrived is lost; a later one may still arrive
/// (RFC 5681 §3.2).
const REORDERED: u32 = 3;

impl Losses {
    /// An empty stream.
    pub(super) fn new() -> Losses {
        Losses { next: 0, seen: u32::MAX }
    }

    /// The place after the highest that has arrived.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Extends the low bits of a place that packets carry; `None` before the start.
    pub(super) fn unwrap(&self, place: Place) -> Option<u64> {
        let modulus = u64::from(Place::MODULUS);
        let ahead = u64::from(place.sequence).wrapping_sub(self.next) % modulus;
        if ahead < modulus / 2 {
            Some(self.next + ahead)
        } else {
            (self.next + ahead).checked_sub(modulus)
        }
    }

    /// Adds a packet; returns the number of newly detected losses.
    pub(super) fn arrived(&mut self, place: u64) -> u64 {
        if let Some(before) = self.next.checked_sub(place + 1) {
            if before < u64::from(REORDERED) {
                self.seen |= 1 << before;
            }
            return 0;
        }
        let mut lost = 0;
        while self.next <= place {
            lost += u64::from(self.seen >> (REORDERED - 1) & 1 == 0);
            self.seen <<= 1;
            self.next += 1;
        }
        self.seen |= 1;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(places: &[u64]) -> u64 {
        let mut losses = Losses::new();
        places.iter().map(|place| losses.arrived(*place)).sum()
    }

    #[test]
    fn a_gap_is_a_loss_once_three_places_behind_it_are_known() {
        assert_eq!(lost(&[0, 1, 3, 4]), 0);
        assert_eq!(lost(&[0, 1, 3, 4, 5]), 1);
        assert_eq!(lost(&[3]), 1);
        assert_eq!(lost(&[0, 10, 11, 12, 13]), 9);
    }

    #[test]
    fn what_comes_a_little_late_or_twice_is_no_loss() {
        assert_eq!(lost(&[0, 1, 3, 4, 2, 5, 6, 7, 8]), 0);
        assert_eq!(lost(&[0, 0, 1, 1, 2, 0, 3, 4, 5, 6]), 0);
    }

    #[test]
    fn sequence_numbers_go_on_where_their_field_ends() {
        let mut losses = Losses::new();
        let modulus = u64::from(Place::MODULUS);
        losses.next = 3 * modulus - 2;
        let place = |sequence| Place { sequence, index: 0 };
        assert_eq!(losses.unwrap(place(1)), Some(3 * modulus + 1));
        assert_eq!(losses.unwrap(place(Place::MODULUS - 5)), Some(3 * modulus - 5));
        assert_eq!(Losses::new().unwrap(place(Place::MODULUS - 1)), None);
    }
}
