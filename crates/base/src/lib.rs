//! Time, rates, sizes, human units, named random sub-streams, histograms, a ring, the schedule of
//! wakes, the events and the clock of transports, and what settings are.
//!
//! Everything here is pure: integers of nanoseconds and bytes in the code, human units only at
//! the edges ([`units`]), and randomness that depends on nothing but a seed and a name.

mod clock;
mod events;
mod histogram;
mod random;
mod rate;
mod ring;
mod schedule;
pub mod settings;
mod time;
pub mod units;

pub use clock::Clock;
pub use events::{Events, LowWater};
pub use histogram::{Histogram, Quantiles};
pub use random::{Random, Seed};
pub use rate::Rate;
pub use ring::Ring;
pub use schedule::Schedule;
pub use time::{Duration, Time};
