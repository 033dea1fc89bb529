use super::*;
use proptest::prelude::*;

/// A byte of stream 1 and its place are the octet of the same number, unless a test says otherwise.
fn piece(start: u64, len: u32) -> Payload {
    Payload { stream: 1, offset: start, len }
}

/// A queue with so many entries at most.
fn queue(limit: usize) -> Reassembly {
    Reassembly { limit, ..Reassembly::new(0) }
}

/// What there is, piece by piece.
fn pieces(queue: &Reassembly) -> Vec<(u64, Payload)> {
    let mut queue = queue.clone();
    core::iter::from_fn(|| queue.take_run(u64::MAX)).for_each(drop);
    core::iter::from_fn(|| queue.take_piece(u64::MAX)).collect()
}

#[test]
fn all_that_is_queued_is_listed() {
    let mut queue = queue(64);
    for (start, len) in [(10, 10), (50, 5), (55, 5), (60, 5), (12, 30)] {
        queue.keep(start, piece(start, len));
        let mut listed: Vec<u64> =
            queue.payloads().flat_map(|piece| piece.offset..piece.end()).collect();
        listed.sort_unstable();
        listed.dedup();
        let queued = pieces(&queue)
            .into_iter()
            .flat_map(|(start, piece)| start..start + u64::from(piece.len));
        assert_eq!(listed, queued.collect::<Vec<_>>());
    }
}

#[test]
fn entries_are_bounded_by_the_window() {
    assert_eq!(Reassembly::new(1 << 20).limit, 8192);
    assert_eq!(Reassembly::new(1000).limit, 64);
}

#[test]
fn a_full_queue_refuses_what_needs_an_entry_and_keeps_what_it_has() {
    let mut queue = queue(2);
    queue.keep(10, piece(10, 10));
    queue.keep(30, piece(30, 10));
    let before = pieces(&queue);
    assert_eq!(queue.keep(50, piece(50, 10)), Kept::default());
    assert_eq!(queue.keep(24, piece(24, 3)), Kept::default());
    assert_eq!(pieces(&queue), before);
    assert_eq!(queue.newest(), [(30, 40), (10, 20)]);
    // What lengthens a run needs none, at either end and between two.
    assert_eq!(queue.keep(40, piece(40, 5)).len, 5);
    assert_eq!(queue.keep(5, piece(5, 5)).len, 5);
    assert_eq!(queue.keep(20, piece(20, 10)).len, 10);
    assert_eq!(queue.newest(), [(5, 45)]);
    // Two runs have become one: there is room for another.
    assert_eq!(queue.keep(50, piece(50, 10)).len, 10);
}

#[test]
fn of_a_segment_that_finds_room_in_part_the_beginning_is_kept() {
    let mut queue = queue(1);
    queue.keep(10, piece(10, 10));
    // Of another stream: it cannot be joined to what is there.
    let other = Payload { stream: 2, offset: 0, len: 20 };
    assert_eq!(queue.keep(15, other), Kept { len: 5, duplicate: Some((15, 20)) });
    assert_eq!(pieces(&queue), [(10, piece(10, 10))]);
}

#[test]
fn a_segment_over_several_runs_fills_the_gaps_between_them() {
    let mut queue = queue(64);
    for start in [10, 30, 50, 70] {
        queue.keep(start, piece(start, 10));
    }
    assert_eq!(queue.keep(5, piece(5, 50)), Kept { len: 50, duplicate: Some((10, 20)) });
    assert_eq!(queue.newest(), [(5, 60), (70, 80)]);
    assert_eq!(pieces(&queue), [(5, piece(5, 55)), (70, piece(70, 10))]);
}

/// How many entries of the maps the costliest of these one-octet segments visits, and all of them.
fn steps(starts: impl Iterator<Item = u64>) -> (u64, u64) {
    let mut queue = queue(usize::MAX);
    let most = starts.map(|start| {
        let before = queue.steps;
        queue.keep(start, piece(start, 1));
        queue.steps - before
    });
    (most.max().unwrap(), queue.steps)
}

#[test]
fn a_segment_costs_the_same_however_much_is_in_the_queue() {
    const MANY: u64 = 40_000;
    let orders: [(&str, Vec<u64>); 5] = [
        ("descending", (1..MANY).rev().collect()),
        ("descending, with gaps", (1..MANY).rev().map(|n| 2 * n).collect()),
        ("ascending, with gaps", (1..MANY).map(|n| 2 * n).collect()),
        ("in disorder", (1..MANY).map(|n| 2 * (n * 7919 % MANY)).collect()),
        ("gaps filled", (2..MANY).step_by(2).chain((3..MANY).step_by(2)).collect()),
    ];
    for (name, order) in orders {
        let (most, _) = steps(order.into_iter());
        assert!(most <= 6, "{name}: {most}");
    }
    let (first, all) = steps(1..MANY);
    assert_eq!(first, all, "in order behind a gap, only the first looks anything up");
}

/// The same, octet by octet: its identity, and the runs by their last growth.
#[derive(Default)]
struct Model {
    octets: Vec<Option<(u32, u64)>>,
    runs: Vec<(u64, u64)>,
}

impl Model {
    /// Returns the first octets that were there before.
    fn keep(&mut self, start: u64, payload: Payload) -> Option<(u64, u64)> {
        let end = start + u64::from(payload.len);
        let held = |n: &u64| self.octets[*n as usize].is_some();
        let from = (start..end).find(held);
        let duplicate = from.map(|from| (from, (from..end).find(|n| !held(n)).unwrap_or(end)));
        for n in start..end {
            let octet = (payload.stream, payload.offset + (n - start));
            self.octets[n as usize].get_or_insert(octet);
        }
        let low = (0..start).rev().find(|n| self.octets[*n as usize].is_none()).unwrap() + 1;
        let high = (end..).find(|n| self.octets[*n as usize].is_none()).unwrap();
        self.runs.retain(|run| run.1 <= low || run.0 >= high);
        self.runs.insert(0, (low, high));
        duplicate
    }

    /// Everything before `nxt` is there: takes out what goes on from it.
    fn take(&mut self, nxt: u64) -> u64 {
        let end = (nxt..).find(|n| self.octets[*n as usize].is_none()).unwrap();
        self.octets[..end as usize].fill(None);
        self.runs.retain(|run| run.0 > nxt);
        end
    }
}

proptest! {
    #[test]
    fn it_holds_what_has_arrived_and_knows_what_grew_last(
        steps in prop::collection::vec((1u64..100, 1u32..12, 0u32..3, prop::bool::weighted(0.2)), 1..150)
    ) {
        let mut queue = queue(usize::MAX);
        let mut model = Model { octets: vec![None; 400], ..Model::default() };
        let mut nxt = 0;
        for (start, len, stream, take) in steps {
            let start = start.max(nxt + 1);
            if start + 12 >= 400 {
                break; // The model ends there.
            }
            if take {
                // What is missing arrives: up to there, all is in order.
                nxt = start;
                while let Some((_, end)) = queue.take_run(nxt) {
                    while let Some((start, piece)) = queue.take_piece(end) {
                        for n in start.max(nxt)..start + u64::from(piece.len) {
                            let octet = (piece.stream, piece.offset + (n - start));
                            prop_assert_eq!(model.octets[n as usize], Some(octet));
                        }
                    }
                    nxt = nxt.max(end);
                }
                prop_assert_eq!(nxt, model.take(start));
            } else {
                let payload = Payload { stream, offset: start, len };
                let duplicate = model.keep(start, payload);
                prop_assert_eq!(queue.keep(start, payload), Kept { len, duplicate });
            }
            let count = model.runs.len().min(SackBlocks::MAX);
            prop_assert_eq!(queue.newest(), &model.runs[..count]);
            prop_assert_eq!(queue.highest(), model.runs.iter().map(|run| run.1).max());
            prop_assert_eq!(queue.is_empty(), model.runs.is_empty());
            let held = model.octets.iter().flatten().count() as u64;
            prop_assert_eq!(queue.memory(), held + 128 * pieces(&queue).len() as u64);
            for n in 0..400 {
                let run = model.runs.iter().find(|run| (run.0..run.1).contains(&n));
                prop_assert_eq!(queue.end_of_run(n), run.map(|run| run.1));
            }
            let copy: Reassembly =
                serde_json::from_str(&serde_json::to_string(&queue).unwrap()).unwrap();
            let mut held = vec![None; 400];
            for (start, piece) in pieces(&copy) {
                for n in start..start + u64::from(piece.len) {
                    held[n as usize] = Some((piece.stream, piece.offset + (n - start)));
                }
            }
            prop_assert_eq!(held, model.octets.clone());
        }
    }

    /// At the bound, nothing that was kept is ever dropped, and no entry too many is made.
    #[test]
    fn a_bounded_queue_drops_nothing_that_it_has_kept(
        steps in prop::collection::vec((1u64..300, 1u32..40, 0u32..3), 1..150)
    ) {
        let mut queue = queue(5);
        let mut held = vec![None; 400];
        for (start, len, stream) in steps {
            let payload = Payload { stream, offset: start, len };
            let kept = queue.keep(start, payload);
            prop_assert!(kept.len <= len && queue.pieces.len() <= 5);
            for n in start..start + u64::from(kept.len) {
                held[n as usize].get_or_insert((stream, payload.offset + (n - start)));
            }
            let mut found = vec![None; 400];
            for (start, piece) in pieces(&queue) {
                for n in start..start + u64::from(piece.len) {
                    found[n as usize] = Some((piece.stream, piece.offset + (n - start)));
                }
            }
            prop_assert_eq!(&found, &held);
        }
    }
}
