//! The standard's own increase.

use super::IncreaseFunction;
use base::Duration;

pub(super) struct Standard;

impl IncreaseFunction for Standard {
    #[inline]
    fn per_ack(&self, window: f64, _srtt: Option<Duration>) -> f64 {
        1.0 / window
    }
}
