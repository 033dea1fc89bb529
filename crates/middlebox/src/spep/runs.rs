//! The runs of packets that a base station has received.

use wire::Spep;

/// The most recent runs of consecutive sequence numbers of a flow, in the order of their arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    blocks: [(u32, u32); Spep::BLOCKS],
    used: u8,
}

impl Runs {
    /// The runs, the latest last; unused places are zero.
    pub(super) fn blocks(&self) -> [(u32, u32); Spep::BLOCKS] {
        self.blocks
    }

    /// Notes a packet. One that continues the latest run extends it, any other begins a run, which pushes
    /// out the earliest if there is no place.
    pub(super) fn note(&mut self, sequence: u32) {
        let used = usize::from(self.used);
        if let Some(latest) = self.blocks[..used].last_mut()
            && latest.1.wrapping_add(1) == sequence
        {
            latest.1 = sequence;
            return;
        }
        if used == Spep::BLOCKS {
            self.blocks.rotate_left(1);
        } else {
            self.used += 1;
        }
        self.blocks[usize::from(self.used) - 1] = (sequence, sequence);
    }

    /// Notes a packet. One that touches any runs joins them, so that a packet that was late does not cost a place.
    pub(super) fn note_merged(&mut self, sequence: u32) {
        let used = usize::from(self.used);
        let (next, before) = (sequence.wrapping_add(1), sequence.wrapping_sub(1));
        let blocks = &mut self.blocks[..used];
        let follows = blocks.iter().position(|block| block.1 == before);
        let precedes = blocks.iter().position(|block| block.0 == next);
        match (follows, precedes) {
            (Some(left), Some(right)) => {
                let (first, last) = (blocks[left].0, blocks[right].1);
                blocks[left.max(right)] = (first, last);
                self.remove(left.min(right));
            }
            (Some(left), None) => blocks[left].1 = sequence,
            (None, Some(right)) => blocks[right].0 = sequence,
            (None, None) => {
                let holds = |&(first, last): &(u32, u32)| {
                    sequence.wrapping_sub(first) <= last.wrapping_sub(first)
                };
                if !blocks.iter().any(holds) {
                    self.note(sequence);
                }
            }
        }
    }

    fn remove(&mut self, index: usize) {
        self.blocks.copy_within(index + 1.., index);
        self.used -= 1;
        self.blocks[usize::from(self.used)] = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks in the packets that leave the base station when these arrive.
    fn marked(note: fn(&mut Runs, u32), sequences: &[u32]) -> Vec<Vec<(u32, u32)>> {
        let mut runs = Runs::default();
        let mut blocks = |&sequence: &u32| {
            note(&mut runs, sequence);
            runs.blocks().into_iter().filter(|&block| block != (0, 0)).collect()
        };
        sequences.iter().map(&mut blocks).collect()
    }

    #[test]
    fn figure_4_4() {
        let blocks = marked(Runs::note, &[1, 2, 4, 5]);
        assert_eq!(blocks[1..], [vec![(1, 2)], vec![(1, 2), (4, 4)], vec![(1, 2), (4, 5)]]);
    }

    #[test]
    fn table_4_2_with_reordering() {
        let expected = [
            vec![(1, 1)],
            vec![(1, 1), (3, 3)],
            vec![(1, 1), (3, 4)],
            vec![(1, 1), (3, 4), (2, 2)],
            vec![(3, 4), (2, 2), (5, 5)],
        ];
        assert_eq!(marked(Runs::note, &[1, 3, 4, 2, 5]), expected);
    }

    #[test]
    fn table_4_3_before_a_handoff() {
        // The thesis prints 3-3 in the last row, and 3 as the second packet's number: by its own rule it is
        // 1-3, and the packet is number 2.
        assert_eq!(marked(Runs::note, &[1, 2, 3]), [vec![(1, 1)], vec![(1, 2)], vec![(1, 3)]]);
    }

    #[test]
    fn table_4_4_after_a_handoff() {
        assert_eq!(marked(Runs::note, &[4, 5]), [vec![(4, 4)], vec![(4, 5)]]);
    }

    #[test]
    fn a_run_continues_where_sequence_numbers_wrap() {
        let blocks = marked(Runs::note, &[u32::MAX - 1, u32::MAX, 0, 1, 3]);
        assert_eq!(blocks.last(), Some(&vec![(u32::MAX - 1, 1), (3, 3)]));
    }

    #[test]
    fn merged_runs_need_no_place_for_what_was_late() {
        let blocks = marked(Runs::note_merged, &[1, 3, 4, 2, 5, 5]);
        let expected = [
            vec![(1, 1)],
            vec![(1, 1), (3, 3)],
            vec![(1, 1), (3, 4)],
            vec![(1, 4)],
            vec![(1, 5)],
            vec![(1, 5)],
        ];
        assert_eq!(blocks, expected);
        let blocks = marked(Runs::note_merged, &[1, 5, 9, 4, 13]);
        assert_eq!(blocks[3..], [vec![(1, 1), (4, 5), (9, 9)], vec![(4, 5), (9, 9), (13, 13)]]);
    }
}
