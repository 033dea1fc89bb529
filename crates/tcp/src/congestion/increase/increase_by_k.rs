//! Increase by K: a connection with a long round trip grows faster, to get its fair share
//! (`obanaik2003` §2.2).

use super::IncreaseFunction;
use base::Duration;

pub(super) struct IncreaseByK;

/// Segments per window; the thesis says "up to 4".
const K: f64 = 4.0;

impl IncreaseFunction for IncreaseByK {
    #[inline]
    fn per_ack(&self, window: f64, _srtt: Option<Duration>) -> f64 {
        // Never faster than slow start.
        (K / window).min(1.0)
    }
}
