//! Increase by K: a connection with a long round trip grows faster, to get its fair share
//! (`obanaik2003` §2.3.1).

use super::{AckSample, IncreaseFunction, positive};
use base::settings::Kind;
use serde::{Deserialize, Serialize};

base::settings! {
    /// K segments per window.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct IncreaseByK {
        /// Segments per window; the thesis says "up to 4".
        #[serde(deserialize_with = "positive")]
        pub k: f64 as Kind::Positive,
    }
}

impl IncreaseFunction for IncreaseByK {
    const DEFAULT: IncreaseByK = IncreaseByK { k: 4.0 };

    #[inline]
    fn per_ack(&mut self, window: f64, _ack: &AckSample) -> f64 {
        // Never faster than slow start.
        (self.k / window).min(1.0)
    }
}
