//! Ranges in flight that are larger than the path takes.

use super::{ProcessedBlock, Record, Scoreboard, State};
use base::Ring;

impl Scoreboard {
    /// Cuts ranges of more than `most` octets of data; `fin` is the number of the FIN, if there is one.
    /// Those of them that are not SACKed count as lost from now on, and as with corruption, not to
    /// congestion, unless they have already. Returns whether there are any; then the records have other
    /// numbers.
    pub(crate) fn split(&mut self, most: u32, fin: Option<u64>) -> bool {
        if self.records.iter().all(|record| record.data_len(fin) <= most) {
            return false;
        }
        let mut pieces = Vec::with_capacity(2 * self.records.len() as usize);
        for &record in self.records.iter() {
            let mut rest = record;
            if record.data_len(fin) > most && !record.state.contains(State::SACKED) {
                rest.state -= State::RESENT;
                if !record.state.contains(State::LOST) {
                    rest.state |= State::LOST | State::CORRUPTED;
                }
            }
            while rest.data_len(fin) > most {
                pieces.push(Record { len: most, ..rest });
                rest.start += u64::from(most);
                rest.len -= most;
            }
            pieces.push(rest);
        }
        self.replace(pieces);
        true
    }

    /// Replaces the records by others of the same octets.
    fn replace(&mut self, records: Vec<Record>) {
        let begin = self.records.begin();
        *self = Scoreboard { una: self.una, nxt: self.nxt, ..Scoreboard::default() };
        for record in &records {
            self.count::<true>(record.len, record.state);
        }
        let sacked = |record: &Record| record.state.contains(State::SACKED);
        let until = records.iter().rposition(sacked).map_or(0, |last| last + 1);
        let from = records[..until].iter().rposition(|record| !sacked(record)).map_or(0, |n| n + 1);
        if until > 0 {
            self.sacked_until = begin + until as u64;
            self.sacked_from = begin + from as u64;
        }
        self.pending_from = begin;
        self.losses_until = begin;
        *self.last_blocks = [ProcessedBlock::default(); wire::SackBlocks::MAX];
        self.records = Ring::from((begin, records));
    }
}
