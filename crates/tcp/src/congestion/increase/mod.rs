//! The table of increase functions: the growth of the window in congestion avoidance.
//!
//! A new one is a file beside this one and a line in the table below. Its struct holds its
//! settings, by the names in scenario files, and its state.

mod settings;
#[cfg(test)]
mod tests;

pub use auto::Fast;
pub use settings::{Cap, RoundTrip};

use super::AckSample;
use settings::positive;

/// Growth of the congestion window in congestion avoidance.
pub trait IncreaseFunction: Copy {
    /// The settings that its name alone stands for.
    const DEFAULT: Self;

    /// Segments to add for one acknowledgment of new data, given the window in segments; with byte
    /// counting, for each acknowledged segment.
    fn per_ack(&mut self, window: f64, ack: &AckSample) -> f64;

    /// The round-trip time that it uses, if any.
    fn round_trip(&mut self) -> Option<&mut RoundTrip> {
        None
    }

    /// Discards the state of the old path.
    fn reset(&mut self) {}
}

macro_rules! increase_functions {
    ($($(#[$($doc:tt)*])* $module:ident :: $Function:ident = $name:literal;)+) => {
        $(mod $module;)+
        $(pub use $module::$Function;)+

        $(impl Default for $Function {
            fn default() -> $Function {
                $Function::DEFAULT
            }
        })+

        /// One of the increase functions, with its settings and its state.
        #[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "policy")]
        pub enum Increase {
            $($(#[$($doc)*])* #[serde(rename = $name)] $Function($Function),)+
        }

        impl Default for Increase {
            /// The first of the table.
            fn default() -> Increase {
                Increase::ALL[0].1
            }
        }

        impl base::settings::Table for Increase {
            const TAG: &'static str = "policy";
            const ENTRIES: &'static [base::settings::Entry] =
                &[$(base::settings!(@entry $name $Function $(#[$($doc)*])*)),+];
        }

        impl Increase {
            /// Every increase function, as its name alone stands for it in scenario files.
            pub const ALL: &[(&str, Increase)] =
                &[$(($name, Increase::$Function($Function::DEFAULT))),+];

            #[inline(always)]
            pub(super) fn per_ack(&mut self, window: f64, ack: &AckSample) -> f64 {
                // A copy for each, so that no sample is assembled for a function that does not read
                // it.
                match self { $(Increase::$Function(f) => f.per_ack(window, &{ *ack }),)+ }
            }

            pub(super) fn reset(&mut self) {
                match self { $(Increase::$Function(f) => f.reset(),)+ }
            }

            /// The round-trip time that it uses, if any.
            pub fn round_trip(&mut self) -> Option<&mut RoundTrip> {
                match self { $(Increase::$Function(f) => f.round_trip(),)+ }
            }
        }
    };
}

increase_functions! {
    /// One segment per window (RFC 5681 §3.1, equation 3).
    standard::Standard = "standard";
    /// K segments per window (`obanaik2003` §2.3.1).
    increase_by_k::IncreaseByK = "increase-by-k";
    /// `c r²` segments per window (`obanaik2003` §2.3.1).
    constant_rate::ConstantRate = "constant-rate";
    /// `r/NIT` segments per window (`obanaik2003` §2.3.1).
    canit::Canit = "canit";
    /// Another function while the bottleneck has room, else the standard's.
    auto::Auto = "auto";
}
