//! THE table of increase functions: how fast the window grows in congestion avoidance.
//!
//! A new one is a file beside this page and a line in the table below.

use base::Duration;

/// Growth of the congestion window in congestion avoidance.
pub trait IncreaseFunction {
    /// Segments to add for one acknowledgment, given the window in segments and the smoothed
    /// round trip, once there is one.
    fn per_ack(&self, window: f64, srtt: Option<Duration>) -> f64;
}

macro_rules! increase_functions {
    ($($(#[$doc:meta])* $module:ident :: $Function:ident = $name:literal;)+) => {
        $(mod $module;)+

        /// One of the increase functions, by value.
        #[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        pub enum Increase {
            $($(#[$doc])* #[serde(rename = $name)] $Function,)+
        }

        impl Default for Increase {
            /// The first of the table.
            fn default() -> Increase {
                Increase::ALL[0].1
            }
        }

        impl Increase {
            /// Every increase function with the name it has in scenario files.
            pub const ALL: &[(&str, Increase)] = &[$(($name, Increase::$Function)),+];
        }

        impl IncreaseFunction for Increase {
            #[inline]
            fn per_ack(&self, window: f64, srtt: Option<Duration>) -> f64 {
                match self {
                    $(Increase::$Function => $module::$Function.per_ack(window, srtt),)+
                }
            }
        }
    };
}

increase_functions! {
    /// One segment per window (RFC 5681 §3.1, equation 3).
    standard::Standard = "standard";
    /// Four segments per window (`obanaik2003` §2.2).
    increase_by_k::IncreaseByK = "increase-by-k";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contract that every increase function keeps.
    #[test]
    fn growth_is_finite_and_never_negative() {
        for (name, increase) in Increase::ALL {
            for window in [1.0, 1.5, 2.0, 20.0, 1e3, 1e6] {
                for srtt in
                    [None, Some(1), Some(10_000_000), Some(640_000_000), Some(10_000_000_000)]
                {
                    let step = increase.per_ack(window, srtt.map(Duration::from_nanos));
                    assert!(
                        step.is_finite() && step >= 0.0,
                        "{name}: {step} at {window}, {srtt:?}"
                    );
                }
            }
        }
    }
}
