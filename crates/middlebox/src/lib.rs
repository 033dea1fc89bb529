//! Boxes on the path that see, make or change packets.

mod attack;
mod ceten;
mod changes;
mod detection;
mod eten;
pub mod fec;
mod forward;
mod liar;
mod tunnel;

pub use attack::{Aim, Forger, Forgery, Guesser, Tap};
pub use ceten::{Meter, Traceback};
pub use changes::{ChangeForger, ChangeGuesser, ChangeTap};
pub use detection::Reading;
pub use eten::Reporter;
pub use forward::Forwarder;
pub use liar::{EchoLiar, FieldLiar};
pub use tunnel::{Association, Egress, Ends, Ingress};
