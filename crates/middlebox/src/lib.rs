//! Boxes on the path that see, make or change packets.

mod attack;
mod ceten;
mod detection;
pub mod fec;
mod table;
mod tunnel;

pub use attack::{
    Aim, BlindAttacker, Changes, DISCARD, FalseEchoes, FalseFields, Forged, Forgery, Guesser,
    Notices, OnPathAttacker,
};
pub use ceten::{Meter, Traceback};
pub use detection::{Headers, Reading};
pub use eten::Reporter;
pub use forward::{Forwarder, Transport};
pub use table::{Settings, Site};
pub use tunnel::{Association, Egress, Ends, Ingress};

use host::Middlebox;

// THE table of boxes that stand in a node by themselves, as scenario files name them. A new one is a
// file beside this page and a line here. What takes several boxes that know each other (a tunnel, an
// erasure code, an attack) is installed by the key that describes them together.
table::boxes! {
    /// Notifies the senders of corrupted packets (`bbn8333` §2.1.2).
    eten::CorruptionReporter = "corruption-reporter";
    /// Notifies the receivers of corrupted packets (`bbn8333` §2.1.3).
    forward::CorruptionForwarder = "corruption-forwarder";
    /// Lowers the MSS option of SYNs that pass.
    mss_clamp::MssClamp = "mss-clamp";
}

impl BoxSettings {
    /// The names of flows that the settings mention.
    #[must_use]
    pub fn flows(&self) -> &[String] {
        self.settings().flows()
    }

    /// What is wrong with a setting: its key, and what was expected.
    ///
    /// # Errors
    /// If something is.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.settings().check()
    }

    /// The box, at its place.
    #[must_use]
    pub fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        self.settings().build(site)
    }
}
