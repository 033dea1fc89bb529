use super::*;
use crate::{Interval, Intervals};
use base::{Duration, Seed};

const MS: u64 = 1_000_000;

/// The transmission of 1000 bytes in the n-th millisecond.
fn packet(n: u64) -> Transmission {
    let [began, ended] = [n, n + 1].map(|n| Time::from_nanos(n * MS));
    Transmission { began, ended, len: 1000, corrects: 0 }
}

/// The fates of packets of 1000 bytes, one every millisecond.
fn fates(model: impl Into<ErrorModel>, count: u64) -> Vec<Fate> {
    let mut errors = Errors::new(&model.into(), Seed(5).stream("errors"));
    (0..count).map(|n| errors.next(packet(n))).collect()
}

/// The share of damaged packets.
fn share(fates: &[Fate]) -> f64 {
    fates.iter().filter(|&&fate| fate != Fate::Intact).count() as f64 / fates.len() as f64
}

/// The mean lengths of runs of damaged packets and of those between them.
fn runs(fates: &[Fate]) -> (f64, f64) {
    let runs: Vec<_> = fates.chunk_by(|a, b| a == b).collect();
    let mean = |damaged: bool| {
        let lengths: Vec<_> = runs
            .iter()
            .filter(|run| (run[0] != Fate::Intact) == damaged)
            .map(|r| r.len())
            .collect();
        lengths.iter().sum::<usize>() as f64 / lengths.len() as f64
    };
    (mean(true), mean(false))
}

#[track_caller]
fn assert_near(measured: f64, expected: f64, tolerance: f64) {
    assert!((measured - expected).abs() <= tolerance * expected, "{measured}, not {expected}");
}

#[test]
fn every_name_is_its_models() {
    let models: [ErrorModel; 5] = [
        Uniform::default().into(),
        GilbertElliott::default().into(),
        Bursts { gap: Gap::Packets(1.0), length: 1.0, damage: Damage::Loss }.into(),
        Fades::default().into(),
        PacketTrace::new([], None).unwrap().into(),
    ];
    assert_eq!(models.map(|model| model.name()), ErrorModel::NAMES);
}

#[test]
fn gilberts_channel_has_the_loss_and_the_bursts_of_its_chain() {
    let gilbert = GilbertElliott { p: 0.02, r: 0.25, ..GilbertElliott::default() };
    let fates = fates(gilbert, 2_000_000);
    // p / (p + r) = 7.407 %; runs of 1 / r = 4, gaps of 1 / p = 50.
    assert_near(share(&fates), 0.02 / 0.27, 0.03);
    let (burst, gap) = runs(&fates);
    assert_near(burst, 4.0, 0.02);
    assert_near(gap, 50.0, 0.02);
}

#[test]
fn elliotts_channel_loses_in_both_states() {
    let elliott = GilbertElliott { p: 0.01, r: 0.1, h: 0.6, k: 0.98, damage: Damage::Corruption };
    let fates = fates(elliott, 2_000_000);
    // ((1 - k) r + (1 - h) p) / (p + r) = (0.002 + 0.004) / 0.11
    assert_near(share(&fates), 0.006 / 0.11, 0.03);
    assert!(!fates.contains(&Fate::Lost));
}

#[test]
fn a_chain_starts_as_it_goes_on() {
    // The first packet's loss over many seeds is the mean loss, p / (p + r) = 1/3.
    let model = GilbertElliott { p: 0.01, r: 0.02, ..GilbertElliott::default() }.into();
    let lost = (0..20_000).filter(|&seed| {
        let mut errors = Errors::new(&model, Seed(seed).stream("errors"));
        errors.next(packet(0)) == Fate::Lost
    });
    assert_near(lost.count() as f64 / 20_000.0, 1.0 / 3.0, 0.04);
}

#[test]
fn a_state_that_is_never_left_lasts() {
    let bad = GilbertElliott { p: 1.0, r: 0.0, ..GilbertElliott::default() };
    assert_eq!(share(&fates(bad, 1000)), 1.0);
    assert_eq!(share(&fates(GilbertElliott { r: 0.0, ..GilbertElliott::default() }, 1000)), 0.0);
    // Every other packet.
    let both = GilbertElliott { p: 1.0, r: 1.0, ..GilbertElliott::default() };
    assert_eq!(share(&fates(both, 1000)), 0.5);
}

#[test]
fn bursts_have_their_mean_length_and_gap_in_packets() {
    let model = Bursts { gap: Gap::Packets(38.0), length: 2.0, damage: Damage::Loss };
    let fates = fates(model, 2_000_000);
    assert_near(share(&fates), 2.0 / 40.0, 0.03);
    // A gap of no packet joins two bursts, with probability 1/39.
    let (burst, gap) = runs(&fates);
    assert_near(burst, 2.0 * 39.0 / 38.0, 0.02);
    assert_near(gap, 39.0, 0.02);
}

#[test]
fn bursts_have_their_mean_gap_in_bytes() {
    let model = Bursts { gap: Gap::Bytes(16_384.0), length: 1.0, damage: Damage::Corruption };
    // As bit errors: 1 - (1 - 1/16385)^1000.
    assert_near(share(&fates(model, 1_000_000)), 0.059206, 0.02);
}

#[test]
fn bursts_have_their_mean_gap_in_time() {
    let gap = Gap::Time(Duration::from_millis(50));
    let fates = fates(Bursts { gap, length: 3.0, damage: Damage::Loss }, 2_000_000);
    let (burst, gap) = runs(&fates);
    // Packets come once a millisecond: of an exponential gap of 50 ms, the whole milliseconds. There
    // is none with probability 1 - exp(-1/50), which joins two bursts.
    let joined = 1.0 - libm::exp(-1.0 / 50.0);
    assert_near(burst, 3.0 / (1.0 - joined), 0.02);
    assert_near(gap, 1.0 / joined, 0.02);
}

#[test]
fn a_burst_while_nothing_is_transmitted_does_no_harm() {
    // A packet of 1 ms every 10 seconds, a burst about every 50 ms.
    let gap = Gap::Time(Duration::from_millis(50));
    let model = Bursts { gap, length: 1.0, damage: Damage::Loss }.into();
    let mut errors = Errors::new(&model, Seed(5).stream("errors"));
    let lost = (0..200_000).filter(|n| errors.next(packet(n * 10_000)) == Fate::Lost);
    assert_near(lost.count() as f64 / 200_000.0, 1.0 - libm::exp(-1.0 / 50.0), 0.05);
}

#[test]
fn a_fade_damages_what_is_transmitted_in_it() {
    let fade = |start, end, bit, packet| Interval {
        start: Duration::from_millis(start),
        end: Duration::from_millis(end),
        value: Uniform { bit, packet },
    };
    let fades = Intervals::new([fade(10, 20, 0.0, 1.0), fade(20, 30, 1.0, 0.0)], None).unwrap();
    let fates = fates(Fades { fades, ..Fades::default() }, 100);
    // The n-th packet is transmitted at n + 1 milliseconds.
    for (n, fate) in fates.into_iter().enumerate() {
        let expected = match n + 1 {
            10..20 => Fate::Lost,
            20..30 => Fate::Corrupted,
            _ => Fate::Intact,
        };
        assert_eq!(fate, expected, "packet {n}");
    }
}

#[test]
fn periodic_fades_give_the_mean_of_their_rates() {
    let value = Uniform { bit: 0.0, packet: 0.2 };
    let fade =
        Interval { start: Duration::from_millis(70), end: Duration::from_millis(100), value };
    let fades = Intervals::new([fade], Some(Duration::from_millis(100))).unwrap();
    let fates = fates(Fades { fades, otherwise: Uniform { bit: 0.0, packet: 0.01 } }, 1_000_000);
    assert_near(share(&fates), 0.3 * 0.2 + 0.7 * 0.01, 0.02);
}

#[test]
fn a_trace_damages_the_packets_that_it_names() {
    let packet = |index, damage| DamagedPacket { index, damage };
    let damaged = [packet(1, Damage::Loss), packet(3, Damage::Corruption)];
    let (good, lost, bad) = (Fate::Intact, Fate::Lost, Fate::Corrupted);
    let once = PacketTrace::new(damaged, None).unwrap();
    assert_eq!(fates(once, 8), [good, lost, good, bad, good, good, good, good]);
    let again = PacketTrace::new(damaged, Some(5)).unwrap();
    assert_eq!(fates(again, 9), [good, lost, good, bad, good, good, lost, good, bad]);
}

#[test]
fn a_trace_in_disorder_is_refused() {
    let packet = |index| DamagedPacket { index, damage: Damage::Loss };
    let error = |indices: [u64; 2], length| {
        PacketTrace::new(indices.map(packet), length).unwrap_err().to_string()
    };
    assert_eq!(
        error([3, 3], None),
        "entry 1: packet 3 after packet 3: expected numbers that increase"
    );
    assert_eq!(
        error([3, 4], Some(4)),
        "repeated after 4 packets: expected more than its last damaged one, 4"
    );
}

/// The probability that more than `corrects` of `bytes` are wrong, each with probability `p`: the sum
/// over the rest of the binomial distribution.
fn beyond(bytes: u32, corrects: u8, p: f64) -> f64 {
    let q = 1.0 - p;
    let mut exactly = libm::pow(q, f64::from(bytes));
    let mut at_most = exactly;
    for wrong in 0..u32::from(corrects) {
        exactly *= f64::from(bytes - wrong) / f64::from(wrong + 1) * (p / q);
        at_most += exactly;
    }
    1.0 - at_most
}

#[test]
fn of_coded_packets_as_many_are_damaged_as_have_more_wrong_bytes_than_their_codes_correct() {
    // What there is one behind the other, so that no packet inherits anything from the last.
    let kinds: Vec<(u32, u8)> = [40, 576, 1040, 1500]
        .into_iter()
        .flat_map(|len| [0, 1, 2, 5, 15].map(|corrects| (len, corrects)))
        .collect();
    const EACH: u32 = 100_000;
    for bit in [1e-6, 1e-5, 1e-4, 1e-3, 5e-3] {
        let byte = 1.0 - libm::pow(1.0 - bit, 8.0);
        let uniform = Uniform { bit, packet: 0.0 };
        let always =
            Interval { start: Duration::ZERO, end: Duration::from_secs(1), value: uniform };
        let fades = Intervals::new([always], Some(Duration::from_secs(1))).unwrap();
        for model in [uniform.into(), Fades { fades, ..Fades::default() }.into()] {
            let mut errors = Errors::new(&model, Seed(7).stream("errors"));
            let mut found = vec![(0.0, 0.0); kinds.len()];
            for _ in 0..EACH {
                for (&(len, corrects), (damaged, corrected)) in kinds.iter().zip(&mut found) {
                    match errors.next(Transmission { len, corrects, ..packet(1) }) {
                        Fate::Intact => {}
                        Fate::Corrupted => *damaged += 1.0,
                        Fate::Corrected { marked: false } => *corrected += 1.0,
                        other => panic!("{other:?}"),
                    }
                }
            }
            for (&(len, corrects), &(damaged, corrected)) in kinds.iter().zip(&found) {
                let [none, all] = [beyond(len, 0, byte), beyond(len, corrects, byte)];
                for (found, expected) in [(damaged, all), (corrected, none - all)] {
                    let mean = expected.max(0.0) * f64::from(EACH);
                    // Five standard deviations of the binomial distribution, and some for rare events.
                    let most = 5.0 * libm::sqrt(mean * (1.0 - expected).max(0.0)) + 3.0;
                    let distance = (found - mean).abs();
                    assert!(distance <= most, "{bit} {len} {corrects}: {found}, not {mean}");
                }
            }
        }
    }
}

#[test]
fn no_code_repairs_a_packet_that_is_damaged_as_a_whole() {
    let models: [ErrorModel; 4] = [
        GilbertElliott { p: 0.1, r: 0.5, damage: Damage::Corruption, ..GilbertElliott::default() }
            .into(),
        Bursts { gap: Gap::Packets(5.0), length: 2.0, damage: Damage::Corruption }.into(),
        PacketTrace::new([DamagedPacket { index: 3, damage: Damage::Corruption }], Some(7))
            .unwrap()
            .into(),
        Uniform { bit: 0.0, packet: 0.3 }.into(),
    ];
    for model in models {
        let fates = |corrects| -> Vec<Fate> {
            let mut errors = Errors::new(&model, Seed(5).stream("errors"));
            (0..1000).map(|n| errors.next(Transmission { corrects, ..packet(n) })).collect()
        };
        assert_eq!(fates(15), fates(0));
        assert!(share(&fates(0)) > 0.1);
    }
}
