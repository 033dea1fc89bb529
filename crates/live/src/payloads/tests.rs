use super::*;

const LEN: usize = 10_007;

/// The bytes of the n-th packet.
fn bytes(n: usize) -> Vec<u8> {
    (0..LEN).map(|i| (i * 7 + n * 13) as u8).collect()
}

fn fetch(payloads: &Payloads, payload: Payload) -> Option<Vec<u8>> {
    let mut out = vec![0xff; payload.len as usize];
    payloads.fetch(payload, &mut out).then_some(out)
}

fn free_all_but(payloads: &mut Payloads, kept: &[Payload]) {
    payloads.free_all_but(|held| kept.iter().for_each(|payload| held(*payload)));
}

#[test]
fn bytes_stay_as_long_as_a_box_holds_them_and_no_others_do() {
    let mut payloads = Payloads::default();
    let mut held: Vec<(usize, Payload)> = Vec::new();
    let mut most = 0;
    for n in 0..60_000 {
        if payloads.has_many() {
            let kept: Vec<_> = held.iter().map(|(_, payload)| *payload).collect();
            free_all_but(&mut payloads, &kept);
        }
        // One in 500 is held until there are 1000, of which the oldest is then let go.
        let payload = payloads.keep(&bytes(n)).unwrap();
        if n % 50 == 0 {
            held.push((n, payload));
        }
        if held.len() > 200 {
            held.remove(0);
        }
        most = most.max(payloads.memory());
    }
    for (n, payload) in &held {
        assert!(fetch(&payloads, *payload).is_some_and(|found| found == bytes(*n)), "{n}");
        // Part of a payload is somewhere in the middle.
        let part = payload.skip(3000).take(2000);
        assert!(fetch(&payloads, part).unwrap() == bytes(*n)[3000..5000], "{n}");
    }
    // What is held, and what is added until the next look.
    let few = (Payloads::FEW + 2) * Payloads::CHUNK;
    assert!(most <= few + 201 * LEN, "{most} bytes for 200 packets");
}

#[test]
fn another_program_goes_on_with_what_is_held() {
    let mut old = Payloads::default();
    let kept: Vec<_> = (0..500).map(|n| old.keep(&bytes(n)).unwrap()).collect();
    let is_held = |n: usize| n.is_multiple_of(3) || (100..200).contains(&n);
    let held = |each: &mut dyn FnMut(Payload)| {
        // In any order; some twice, some in part only.
        for n in (0..500).rev().filter(|&n| is_held(n)) {
            each(kept[n]);
            each(kept[n].skip(5000));
        }
    };
    let pieces = old.pieces(held);
    let total: usize = pieces.iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(total, LEN * (0..500).filter(|&n| is_held(n)).count());
    let mut new = Payloads::restored(pieces.into_iter().map(|(at, bytes)| (at, bytes.into())));
    let added: Vec<_> = (0..1000).map(|n| new.keep(&bytes(n + 7)).unwrap()).collect();
    for (n, &payload) in kept.iter().enumerate() {
        let expected = is_held(n).then(|| bytes(n));
        assert!(fetch(&new, payload) == expected, "{n}");
    }
    let all = kept.iter().enumerate().filter(|&(n, _)| is_held(n));
    let still: Vec<_> = all.clone().map(|(_, &payload)| payload).chain([added[500]]).collect();
    free_all_but(&mut new, &still);
    for (n, &payload) in all {
        assert!(fetch(&new, payload) == Some(bytes(n)), "{n}");
    }
    free_all_but(&mut new, &[kept[150], added[500]]);
    assert!(fetch(&new, kept[150]) == Some(bytes(150)));
    assert!(fetch(&new, added[500]) == Some(bytes(507)));
    assert!(new.memory() < 3 * Payloads::CHUNK, "{}", new.memory());
    assert!(Payloads::restored([]).memory() == 0);
}

#[test]
fn what_was_freed_is_not_there() {
    let mut payloads = Payloads::default();
    let kept: Vec<_> = (0..100).map(|n| payloads.keep(&bytes(n)).unwrap()).collect();
    free_all_but(&mut payloads, &kept[40..50]);
    for (n, payload) in kept.iter().enumerate() {
        let found = fetch(&payloads, *payload);
        assert!(found.as_ref().is_none_or(|found| *found == bytes(n)), "{n}");
        if (40..50).contains(&n) {
            assert!(found.is_some(), "{n}");
        }
        if n < 30 || (60..80).contains(&n) {
            assert!(found.is_none(), "{n}");
        }
    }
}

#[test]
fn without_memory_nothing_is_kept_until_something_is_freed() {
    let mut payloads = Payloads::new(3);
    let kept = core::iter::from_fn(|| payloads.keep(&bytes(0)));
    let kept: Vec<_> = kept.collect();
    // As long as there is room for the largest packet.
    let in_a_chunk = (Payloads::CHUNK - pool::LEN) / LEN + 1;
    assert_eq!(kept.len(), 3 * in_a_chunk);
    assert_eq!(payloads.keep(&bytes(0)), None);
    free_all_but(&mut payloads, &kept);
    assert_eq!(payloads.keep(&bytes(0)), None);
    free_all_but(&mut payloads, &kept[kept.len() - 1..]);
    let last = payloads.keep(&bytes(7)).unwrap();
    assert!(fetch(&payloads, last).is_some_and(|found| found == bytes(7)));
}

#[test]
fn the_chunk_that_is_read_into_stays_although_nothing_was_kept_there_yet() {
    let mut payloads = Payloads::default();
    for n in 0..200 {
        // A packet is read, and then it is seen that there are many chunks.
        assert!(payloads.make_room());
        free_all_but(&mut payloads, &[]);
        assert!(payloads.make_room());
        payloads.space()[..LEN].copy_from_slice(&bytes(n));
        let payload = payloads.keep_read(0..LEN);
        assert!(fetch(&payloads, payload).unwrap() == bytes(n), "{n}");
    }
}

#[test]
fn packets_are_read_in_place_and_small_ones_are_moved_together() {
    let mut payloads = Payloads::default();
    let mut read = |header: usize, n: usize, len: usize| {
        assert!(payloads.make_room());
        let space = payloads.space();
        space[header..header + len].copy_from_slice(&bytes(n)[..len]);
        (n, payloads.keep_read(header..header + len))
    };
    let all = [read(50, 0, 9000), read(40, 1, 100), read(60, 2, 1448), read(60, 3, 9000)];
    let payload = |n: usize| all[n].1;
    assert!(payload(0).continues(&payload(1)) && payload(1).continues(&payload(2)));
    assert!(!payload(2).continues(&payload(3)), "a large one stays where it was read");
    assert_eq!(payloads.keep_read(7..7), Payload::default());
    for (n, payload) in all {
        assert!(fetch(&payloads, payload).unwrap() == bytes(n)[..payload.len as usize], "{n}");
    }
    // Two that are one run.
    let both = Payload { len: 100 + 1448, ..payload(1) };
    assert!(fetch(&payloads, both).unwrap() == [&bytes(1)[..100], &bytes(2)[..1448]].concat());
}

#[test]
fn another_process_keeps_what_it_is_given_under_the_same_names_until_nothing_holds_it() {
    let mut first = Payloads::default();
    first.of_stream(1);
    let kept: Vec<_> = (0..300).map(|n| first.keep(&bytes(n)).unwrap()).collect();
    // Some twice, some in part only, in any order.
    let held = [kept[290], kept[20].skip(100), kept[20], kept[21], kept[3].take(50), kept[20]];
    let pieces = first.copies(&held);
    let total: usize = pieces.iter().map(|(_, _, bytes)| bytes.len()).sum();
    assert_eq!(total, 3 * LEN + 50);
    let mut second = Payloads::default();
    second.of_stream(2);
    let own: Vec<_> = (0..300).map(|n| second.keep(&bytes(n + 5)).unwrap()).collect();
    assert!(second.adopt(pieces.clone()));
    let bytes_of = |payload: Payload| {
        let mut out = Vec::new();
        second.lend(payload, &mut |piece| out.extend_from_slice(piece)).then_some(out)
    };
    for (n, payload) in [(290, kept[290]), (20, kept[20]), (21, kept[21])] {
        assert_eq!(bytes_of(payload), Some(bytes(n)), "{n}");
    }
    assert_eq!(bytes_of(kept[20].skip(7).take(100)), Some(bytes(20)[7..107].to_vec()));
    assert_eq!(bytes_of(kept[3].take(50)), Some(bytes(3)[..50].to_vec()));
    assert_eq!(bytes_of(kept[22]), None);
    assert_eq!(bytes_of(own[22]), Some(bytes(27)));
    // A third one gets them from the second one, with its own ones.
    let mut third = Payloads::default();
    third.of_stream(3);
    assert!(third.adopt(second.copies(&[kept[21], own[22]])));
    for (payload, expected) in [(kept[21], bytes(21)), (own[22], bytes(27))] {
        let mut out = Vec::new();
        assert!(third.lend(payload, &mut |piece| out.extend_from_slice(piece)));
        assert_eq!(out, expected);
    }
    let before = second.memory();
    free_all_but(&mut second, &[kept[21].skip(5), own[0]]);
    assert!(second.lend(kept[21], &mut |_| ()) && !second.lend(kept[290], &mut |_| ()));
    assert!(second.memory() < before);
    free_all_but(&mut second, &own);
    assert!(second.foreign.is_empty() && !second.lend(kept[21], &mut |_| ()));
    assert_eq!(second.in_pieces, second.chunks.iter().map(in_pieces).sum::<usize>());
    // What comes back may have been freed meanwhile, or be there still, in whole or in part.
    free_all_but(&mut first, &[kept[21].take(3000)]);
    assert!(first.adopt(pieces.clone()));
    for (n, payload) in [(290, kept[290]), (20, kept[20]), (21, kept[21])] {
        let mut out = Vec::new();
        assert!(first.lend(payload, &mut |piece| out.extend_from_slice(piece)), "{n}");
        assert_eq!(out, bytes(n));
    }
    free_all_but(&mut first, &[kept[21].skip(5000)]);
    assert!(first.lend(kept[21].skip(5000), &mut |_| ()) && first.foreign.len() <= 1);
    // One that has not read so much has the same name by chance.
    let mut other = Payloads::default();
    other.of_stream(1);
    assert!(!other.adopt(pieces.clone()));
    let mut full = Payloads::new(0);
    full.of_stream(4);
    assert!(!full.adopt(pieces));
}

fn in_pieces(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Whole(_) => 0,
        Chunk::Pieces(pieces) => total(pieces),
    }
}

#[test]
fn packets_of_boxes_have_the_bytes_that_they_stand_for() {
    let payload = Payload { stream: 3, offset: 5, len: 100 };
    let mut expected = vec![0; 100];
    payload.render(&mut expected);
    assert_eq!(fetch(&Payloads::default(), payload), Some(expected));
}
