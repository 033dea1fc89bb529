//! Proportional rate reduction (RFC 9937, and RFC 6937 before it): how much may be sent for each
//! acknowledgment during a reduction, so that the pipe falls to ssthresh in proportion to delivered
//! data.

use serde::{Deserialize, Serialize};

/// The limit once the pipe is below ssthresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The slow start reduction bound for an acknowledgment that shows progress, else the
    /// conservative one (RFC 9937 §6.2).
    #[default]
    PerAck,
    /// PRR-CRB, the conservative reduction bound: no more than what was delivered (RFC 6937 §3.1).
    Conservative,
    /// PRR-SSRB, the slow start reduction bound: a segment more for each acknowledgment (RFC 6937
    /// §3.1).
    SlowStart,
}

/// What an acknowledgment says about a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// DeliveredData: octets that it newly delivers, cumulatively or selectively.
    pub delivered: u64,
    /// Octets that remain in the network.
    pub pipe: u64,
    /// Octets not delivered before it: RecoverFS, if the reduction has just begun.
    pub flight: u64,
    /// SafeACK: it advances SND.UNA and indicates no further loss.
    pub safe: bool,
    /// What duplicates deliver is an estimate, which a receiver without SACK can forge.
    pub estimated: bool,
    /// Segment size, bytes.
    pub mss: u32,
}

/// A reduction in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prr {
    bound: Bound,
    /// prr_delivered: octets delivered since it began.
    delivered: u64,
    /// prr_out: octets sent since it began.
    out: u64,
    /// RecoverFS: octets in flight when it began. RFC 9937 does not count those that were SACKed
    /// before.
    flight: u64,
    ssthresh: u64,
}

impl Prr {
    /// Begins a reduction with `flight` octets outstanding, to `ssthresh`.
    #[must_use]
    pub fn begin(bound: Bound, flight: u64, ssthresh: u64) -> Prr {
        Prr { bound, delivered: 0, out: 0, flight: flight.max(1), ssthresh }
    }

    /// Processes an acknowledgment; returns how many octets may be sent now (SndCnt), or `None` if
    /// that is as before.
    ///
    /// Octets not sent, because they are less than a segment, are part of the next result.
    #[must_use]
    pub fn on_ack(&mut self, progress: &Progress) -> Option<u64> {
        match self.bound {
            Bound::PerAck => self.per_ack(progress),
            Bound::Conservative | Bound::SlowStart => Some(self.fixed_bound(progress)),
        }
    }

    /// RFC 9937 §6.2.
    fn per_ack(&mut self, progress: &Progress) -> Option<u64> {
        let Progress { mut delivered, pipe, mss, .. } = *progress;
        if self.delivered == 0 {
            self.flight = progress.flight.max(1);
        }
        if progress.estimated {
            delivered = delivered.min(self.flight.saturating_sub(self.delivered));
        }
        if delivered == 0 {
            return None;
        }
        self.delivered += delivered;
        let count = if pipe > self.ssthresh {
            self.proportional()
        } else {
            let more = if progress.safe { u64::from(mss) } else { 0 };
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + more;
            limit.min(self.ssthresh - pipe)
        };
        // The first segment of a reduction is sent in any case.
        Some(if self.out == 0 && count == 0 { u64::from(mss) } else { count })
    }

    /// RFC 6937 §3.
    fn fixed_bound(&mut self, progress: &Progress) -> u64 {
        let Progress { delivered, pipe, mss, .. } = *progress;
        self.delivered += delivered;
        if pipe > self.ssthresh {
            return self.proportional();
        }
        let banked = self.delivered.saturating_sub(self.out);
        let limit = match self.bound {
            Bound::Conservative => banked,
            _ => banked.max(delivered) + u64::from(mss),
        };
        limit.min(self.ssthresh - pipe)
    }

    /// The share of what was delivered that is not sent yet.
    fn proportional(&self) -> u64 {
        let product = u128::from(self.delivered) * u128::from(self.ssthresh);
        let due = product.div_ceil(u128::from(self.flight));
        u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.out)
    }

    /// Counts octets sent, new or retransmitted.
    pub fn on_sent(&mut self, octets: u64) {
        self.out += octets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u32 = 1000;

    /// An acknowledgment without an advance, of 20 segments that were in flight.
    fn ack(delivered: u64, pipe: u64) -> Progress {
        Progress { delivered, pipe, flight: 20_000, safe: false, estimated: false, mss: MSS }
    }

    /// Delivers `deliveries` segments, one acknowledgment each, from `pipe` segments on, and sends
    /// whole segments; says how many each acknowledgment lets out, and what is in the pipe then.
    fn run(prr: &mut Prr, mut pipe: u64, deliveries: u32, safe: bool) -> (Vec<u64>, u64) {
        let segment = u64::from(MSS);
        let sent = (0..deliveries).map(|_| {
            pipe -= 1;
            let progress = Progress { safe, ..ack(segment, pipe * segment) };
            let segments = prr.on_ack(&progress).unwrap() / segment;
            prr.on_sent(segments * segment);
            pipe += segments;
            segments
        });
        (sent.collect(), pipe)
    }

    #[test]
    fn a_single_loss_halves_the_rate_and_ends_at_ssthresh() {
        // Of 20 segments the first is lost: 19 acknowledgments, half as many transmissions.
        let mut prr = Prr::begin(Bound::SlowStart, 20_000, 10_000);
        let (sent, pipe) = run(&mut prr, 19, 14, false);
        assert_eq!(sent, [0, 1].repeat(7));
        assert_eq!(run(&mut prr, pipe, 5, false), (vec![0, 0, 1, 1, 1], 10));
    }

    #[test]
    fn after_heavy_losses_the_conservative_bound_sends_what_was_delivered() {
        for bound in [Bound::Conservative, Bound::PerAck] {
            let mut prr = Prr::begin(bound, 20_000, 10_000);
            let (sent, pipe) = run(&mut prr, 4, 8, false);
            assert_eq!((sent, pipe), (vec![1; 8], 4), "{bound:?}");
        }
    }

    #[test]
    fn after_heavy_losses_the_slow_start_bound_climbs_back_to_ssthresh() {
        for (bound, safe) in [(Bound::SlowStart, false), (Bound::PerAck, true)] {
            let mut prr = Prr::begin(bound, 20_000, 10_000);
            let (sent, pipe) = run(&mut prr, 4, 8, safe);
            assert_eq!((sent, pipe), (vec![2, 2, 2, 2, 2, 2, 1, 1], 10), "{bound:?}");
        }
    }

    #[test]
    fn what_could_not_be_sent_is_banked() {
        let mut prr = Prr::begin(Bound::Conservative, 20_000, 10_000);
        assert_eq!(prr.on_ack(&ack(1000, 3000)), Some(1000));
        assert_eq!(prr.on_ack(&ack(1000, 3000)), Some(2000));
        prr.on_sent(2000);
        assert_eq!(prr.on_ack(&ack(300, 3000)), Some(300));
        let more = prr.on_ack(&ack(0, 15_000));
        assert_eq!(more, Some(0), "more than the share is out already");
    }

    #[test]
    fn what_an_acknowledgment_delivers_may_be_sent_even_after_a_credit() {
        // RFC 9937 §6.2: MAX(prr_delivered - prr_out, DeliveredData).
        let mut prr = Prr::begin(Bound::PerAck, 20_000, 10_000);
        prr.on_sent(3000);
        assert_eq!(prr.on_ack(&ack(1000, 3000)), Some(1000));
    }

    #[test]
    fn the_share_of_an_octet_is_rounded_up() {
        for bound in [Bound::SlowStart, Bound::PerAck] {
            let mut prr = Prr::begin(bound, 20_000, 10_000);
            assert_eq!(prr.on_ack(&ack(1, 15_000)), Some(1), "{bound:?}");
        }
    }

    #[test]
    fn the_flight_is_what_was_not_delivered_when_the_reduction_began() {
        // RFC 9937 §6.1: ten of the twenty segments had been SACKed.
        let mut prr = Prr::begin(Bound::PerAck, 20_000, 5000);
        let first = Progress { flight: 10_000, ..ack(1000, 8000) };
        assert_eq!(prr.on_ack(&first), Some(500));
        assert_eq!(prr.on_ack(&ack(1000, 7000)), Some(1000), "it stays what it was");
    }

    #[test]
    fn a_reduction_sends_at_least_a_segment_at_its_start() {
        // RFC 9937 §6.2: the pipe is at ssthresh and leaves no room.
        let mut prr = Prr::begin(Bound::PerAck, 20_000, 10_000);
        assert_eq!(prr.on_ack(&ack(1000, 10_000)), Some(1000));
        prr.on_sent(1000);
        assert_eq!(prr.on_ack(&ack(1000, 10_000)), Some(0));
    }

    #[test]
    fn an_acknowledgment_that_delivers_nothing_changes_nothing() {
        let mut prr = Prr::begin(Bound::PerAck, 20_000, 10_000);
        assert_eq!(prr.on_ack(&Progress { safe: true, ..ack(0, 3000) }), None);
    }

    #[test]
    fn duplicates_cannot_deliver_more_than_was_in_flight() {
        // RFC 9937 §6.2, against a receiver without SACK that forges them.
        let mut prr = Prr::begin(Bound::PerAck, 2000, 10_000);
        let mut forge = || prr.on_ack(&Progress { flight: 2000, estimated: true, ..ack(1000, 0) });
        assert_eq!([forge(), forge(), forge()], [Some(1000), Some(2000), None]);
    }

    proptest! {
        /// RFC 9937 §4: the pipe never passes ssthresh from below, but for the first segment, and
        /// what is sent from above never passes its share of what was delivered.
        #[test]
        fn a_reduction_keeps_its_bounds(
            bound in prop::sample::select(vec![Bound::PerAck, Bound::Conservative, Bound::SlowStart]),
            flight in 1_u64..1 << 40,
            share in 0.0..1.0,
            steps in prop::collection::vec(
                (0_u64..1 << 30, 0_u64..1 << 40, 0.0..=1.0, any::<bool>()), 0..50,
            ),
        ) {
            let ssthresh = (flight as f64 * share) as u64;
            let mut prr = Prr::begin(bound, flight, ssthresh);
            let (mut delivered, mut out, mut last) = (0, 0, 0);
            for (octets, pipe, used, safe) in steps {
                let before = delivered;
                let progress = Progress { flight, safe, ..ack(octets, pipe) };
                let allowance = prr.on_ack(&progress);
                prop_assert_eq!(allowance.is_none(), bound == Bound::PerAck && octets == 0);
                delivered += octets;
                if let Some(allowance) = allowance {
                    let first = bound == Bound::PerAck && out == 0 && allowance == u64::from(MSS);
                    if pipe <= ssthresh && !first {
                        prop_assert!(pipe + allowance <= ssthresh);
                        let unsafe_ack = bound == Bound::PerAck && !safe;
                        if (bound == Bound::Conservative || unsafe_ack) && out <= before {
                            prop_assert!(out + allowance <= delivered);
                        }
                    } else if pipe > ssthresh && allowance > 0 && !first {
                        prop_assert!(out + allowance <= delivered, "a share is less than the whole");
                    }
                    last = allowance;
                }
                let sent = (last as f64 * used) as u64;
                prr.on_sent(sent);
                last -= sent;
                out += sent;
            }
        }
    }
}
