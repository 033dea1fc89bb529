//! The throughput equation (RFC 5348 §3.1).

use base::Duration;

/// The rate that a TCP connection would have on average, bytes per second (`X_Bps`): with segments of
/// `segment` bytes, a round-trip time above 0, and a loss event rate above 0 and at most 1.
///
/// RFC 5348 §3.1 with one segment per acknowledgment (`b = 1`), and an RTO of four round-trip times.
pub(super) fn throughput(segment: u32, round_trip: Duration, loss_event_rate: f64) -> f64 {
    f64::from(segment) / (round_trip.as_secs_f64() * denominator(loss_event_rate))
}

/// The loss event rate for which [`throughput`] is nearest to `rate` bytes per second.
pub(super) fn loss_event_rate(segment: f64, round_trip: Duration, rate: f64) -> f64 {
    loss_event_rate_of(segment / (round_trip.as_secs_f64() * rate))
}

/// The loss event rate with this [`denominator`], which rises with it.
pub(super) fn loss_event_rate_of(wanted: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // To the precision of the field in feedback packets.
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if denominator(middle) < wanted { low = middle } else { high = middle }
    }
    high
}

/// The round-trip times that a segment takes.
fn denominator(p: f64) -> f64 {
    (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_has_the_values_of_linux() {
        // Millionths: loss event rate, denominator (net/dccp/ccids/lib/tfrc_equation.c).
        for (p, published) in [
            (100, 8172),
            (200, 11_567),
            (300, 14_180),
            (400, 16_388),
            (500, 18_339),
            (2_000, 37_172),
            (4_000, 53_499),
            (6_000, 66_664),
            (8_000, 78_298),
            (10_000, 89_021),
        ] {
            let found = 1e6 * denominator(f64::from(p) / 1e6);
            assert!((found - f64::from(published)).abs() < 1.0, "{p}: {found}, {published}");
        }
        // RFC 5348 §6.3.1 as Linux notes it: a segment per two round-trip times is at 20.64 %.
        assert!((loss_event_rate_of(2.0) - 0.2064).abs() < 5e-5);
    }

    #[test]
    fn one_loss_in_a_hundred_packets_gives_eleven_packets_per_round_trip() {
        let rate = throughput(1000, Duration::from_millis(100), 0.01);
        assert!((rate / 112_330.0 - 1.0).abs() < 1e-3, "{rate}");
    }

    proptest! {
        #[test]
        fn its_inverse_gives_the_rate_again(
            p in 1e-6..1.0f64,
            segment in 100u32..1500,
            millis in 1u64..2000,
        ) {
            let round_trip = Duration::from_millis(millis);
            let rate = throughput(segment, round_trip, p);
            let found = loss_event_rate(f64::from(segment), round_trip, rate);
            prop_assert!((found / p - 1.0).abs() < 1e-4, "{found} {p}");
        }

        #[test]
        fn it_falls_with_losses_and_with_the_round_trip_time(p in 1e-6..0.5f64) {
            let short = Duration::from_millis(10);
            prop_assert!(throughput(1000, short, p) > throughput(1000, short, 1.5 * p));
            let ratio = throughput(1000, short, p) / throughput(1000, short * 2, p);
            prop_assert!((ratio - 2.0).abs() < 1e-9);
        }
    }
}
