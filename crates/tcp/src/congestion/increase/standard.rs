//! The standard's own increase.

use super::{AckSample, IncreaseFunction};
use serde::{Deserialize, Serialize};

base::settings! {
    /// One segment per window.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Standard;
}

impl IncreaseFunction for Standard {
    const DEFAULT: Standard = Standard;

    #[inline]
    fn per_ack(&mut self, window: f64, _ack: &AckSample) -> f64 {
        1.0 / window
    }
}
