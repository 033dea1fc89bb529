//! Proportional rate reduction (RFC 6937): how much may be sent for each acknowledgment during a
//! reduction, so that the pipe falls to ssthresh in proportion to delivered data.

use serde::{Deserialize, Serialize};

/// The limit once the pipe is below ssthresh (RFC 6937 §3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// PRR-CRB, the conservative reduction bound: no more than what was delivered.
    Conservative,
    /// PRR-SSRB, the slow start reduction bound: a segment more for each acknowledgment. The RFC
    /// recommends it.
    #[default]
    SlowStart,
}

/// A reduction in progress.
///
/// RFC 9937 has since made the bound depend on the acknowledgment: slow start's if it advances
/// SND.UNA and reports no further loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prr {
    bound: Bound,
    /// prr_delivered: octets delivered since it began.
    delivered: u64,
    /// prr_out: octets sent since it began.
    out: u64,
    /// RecoverFS: octets in flight when it began.
    flight: u64,
    ssthresh: u64,
}

impl Prr {
    /// Begins a reduction with `flight` octets outstanding, to `ssthresh`.
    #[must_use]
    pub fn begin(bound: Bound, flight: u64, ssthresh: u64) -> Prr {
        Prr { bound, delivered: 0, out: 0, flight: flight.max(1), ssthresh }
    }

    /// Processes an acknowledgment that delivers `delivered` octets, cumulatively or selectively,
    /// and leaves `pipe` octets in the network; returns how many octets may be sent now (sndcnt).
    ///
    /// Octets not sent, because they are less than a segment, are part of the next result.
    #[must_use]
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, mss: u32) -> u64 {
        self.delivered += delivered;
        if pipe > self.ssthresh {
            let product = u128::from(self.delivered) * u128::from(self.ssthresh);
            let due = product.div_ceil(u128::from(self.flight));
            return u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.out);
        }
        let banked = self.delivered.saturating_sub(self.out);
        let limit = match self.bound {
            Bound::Conservative => banked,
            Bound::SlowStart => banked.max(delivered) + u64::from(mss),
        };
        limit.min(self.ssthresh - pipe)
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

    /// Delivers `deliveries` segments, one acknowledgment each, from `pipe` segments on, and sends
    /// whole segments; says how many each acknowledgment lets out, and what is in the pipe then.
    fn run(prr: &mut Prr, mut pipe: u64, deliveries: u32) -> (Vec<u64>, u64) {
        let segment = u64::from(MSS);
        let sent = (0..deliveries).map(|_| {
            pipe -= 1;
            let segments = prr.on_ack(segment, pipe * segment, MSS) / segment;
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
        let (sent, pipe) = run(&mut prr, 19, 14);
        assert_eq!(sent, [0, 1].repeat(7));
        assert_eq!(run(&mut prr, pipe, 5), (vec![0, 0, 1, 1, 1], 10));
    }

    #[test]
    fn after_heavy_losses_the_conservative_bound_sends_what_was_delivered() {
        let mut prr = Prr::begin(Bound::Conservative, 20_000, 10_000);
        let (sent, pipe) = run(&mut prr, 4, 8);
        assert_eq!((sent, pipe), (vec![1; 8], 4));
    }

    #[test]
    fn after_heavy_losses_the_slow_start_bound_climbs_back_to_ssthresh() {
        let mut prr = Prr::begin(Bound::SlowStart, 20_000, 10_000);
        let (sent, pipe) = run(&mut prr, 4, 8);
        assert_eq!((sent, pipe), (vec![2, 2, 2, 2, 2, 2, 1, 1], 10));
    }

    #[test]
    fn what_could_not_be_sent_is_banked() {
        let mut prr = Prr::begin(Bound::Conservative, 20_000, 10_000);
        assert_eq!(prr.on_ack(1000, 3000, MSS), 1000);
        assert_eq!(prr.on_ack(1000, 3000, MSS), 2000);
        prr.on_sent(2000);
        assert_eq!(prr.on_ack(300, 3000, MSS), 300);
        assert_eq!(prr.on_ack(0, 15_000, MSS), 0, "more than the share is out already");
    }

    #[test]
    fn the_share_of_an_octet_is_rounded_up() {
        let mut prr = Prr::begin(Bound::SlowStart, 20_000, 10_000);
        assert_eq!(prr.on_ack(1, 15_000, MSS), 1);
    }

    proptest! {
        /// RFC 6937 §3: the pipe never passes ssthresh from below, and what is sent from above never
        /// passes its share of what was delivered.
        #[test]
        fn a_reduction_keeps_its_bounds(
            slow_start: bool,
            flight in 1_u64..1 << 40,
            share in 0.0..1.0,
            steps in prop::collection::vec((0_u64..1 << 30, 0_u64..1 << 40, 0.0..=1.0), 0..50),
        ) {
            let bound = if slow_start { Bound::SlowStart } else { Bound::Conservative };
            let ssthresh = (flight as f64 * share) as u64;
            let mut prr = Prr::begin(bound, flight, ssthresh);
            let (mut delivered, mut out) = (0, 0);
            for (octets, pipe, used) in steps {
                let allowance = prr.on_ack(octets, pipe, MSS);
                delivered += octets;
                if pipe <= ssthresh {
                    prop_assert!(pipe + allowance <= ssthresh);
                    if bound == Bound::Conservative && out <= delivered {
                        prop_assert!(out + allowance <= delivered);
                    }
                } else if allowance > 0 {
                    prop_assert!(out + allowance <= delivered, "a share is less than the whole");
                }
                let sent = (allowance as f64 * used) as u64;
                prr.on_sent(sent);
                out += sent;
            }
        }
    }
}
