//! Boxes on the path, which inspect, send or change packets.

mod attack;
mod contents;
mod detection;
pub mod fec;
mod left_alone;
mod link_mtu;
pub mod mhp;
mod remedy;
mod resets;
mod sending;
mod table;
mod tunnel;

pub use attack::{
    Aim, BlindAttacker, Changes, EspPackets, Forged, Forgery, Guesser, Notices, Target,
};
pub use ceten::{Meter, Traceback};
pub use contents::Contents;
pub use detection::{Headers, Reading};
pub use esp::LossCauses;
pub use eten::Reporter;
pub use false_echoes::EchoForger;
pub use false_fields::FieldForger;
pub use forward::{Forwarder, Transport};
pub use impairment::{Impaired, Protocol};
pub use link_mtu::LinkMtu;
pub use mobile::{HopTransport, MobileAgent};
pub use on_path_attacker::{DISCARD, Forger, Forges};
pub use pair::Gateway;
pub use remedy::{Hop, Place, Remedy};
pub use resets::Resets;
pub use snoop::Retransmitter;
pub use spoofer::{Connect, Splitter};
pub use station::BaseStation;
pub use table::{Neighbour, Settings, Site};
pub use tunnel::{Association, Egress, Ends, Ingress};

use host::Middlebox;
use tcp::mechanism::Needs;

// The table of boxes that stand in a node by themselves, as scenario files name them. A new one is
// a file in this directory and a line here. Groups of boxes that depend on each other (a tunnel, an
// erasure code, a blind attack) are installed by a key of their own.
table::boxes! {
    /// Notifies the senders of corrupted packets (`bbn8333` §2.1.2).
    eten::CorruptionReporter = "corruption-reporter";
    /// Notifies the receivers of corrupted packets (`bbn8333` §2.1.3).
    forward::CorruptionForwarder = "corruption-forwarder";
    /// Measures the losses of the node's links, and reports them in packet headers or by messages
    /// (Cumulative ETEN, `bbn8333` §2.2).
    ceten::LossMeter = "loss-meter";
    /// Lowers the MSS option of SYNs that pass.
    mss_clamp::MssClamp = "mss-clamp";
    /// Strips options from the headers of TCP segments that pass.
    strip_options::StripOptions = "strip-options";
    /// Loses, delays, duplicates and reorders chosen packets, such as the control messages of a
    /// protocol.
    impairment::Impairment = "impairment";
    /// Splits the TCP connections that pass, so that each of two paths has one of its own (TCP
    /// spoofing, `ishac2001`).
    spoofer::Spoofer = "spoofer";
    /// Carries the TCP connections that pass over a hop, together with the same box at its other end.
    pair::Pair = "pair";
    /// Repairs the losses of a wireless hop, and hides them from TCP senders (Snoop, Balakrishnan et al.
    /// 1995).
    snoop::Snoop = "snoop";
    /// Hides the transport of a host's flows by ESP, and finds out why packets were lost (RFC 4303,
    /// `obanaik2003` §4.2).
    esp::TransportEsp = "esp";
    /// Tells mobile hosts which packets were lost on the wireless hop, reading no transport (SPEP,
    /// `obanaik2003` §4.2).
    spep::SpepStation = "spep";
    /// A base station, which splits the connections of mobile hosts and hands them over to the next
    /// one (MHP, `yavatkar1994`).
    station::Station = "station";
    /// A mobile host, whose base stations split its connections (MHP, `yavatkar1994`).
    mobile::Mobile = "mobile";
    /// An attacker on the path of flows, which forges notices of corruption or changes of
    /// connectivity (`bbn8333` §7.1, `koutsianas2007` §3.6).
    on_path_attacker::OnPathAttacker = "on-path-attacker";
    /// A misbehaving receiver, which reports every gap as corruption (`bbn8333` §6.2).
    false_echoes::FalseEchoes = "false-echoes";
    /// A misbehaving receiver, which invents the losses of its path (`bbn8333` §7.1).
    false_fields::FalseFields = "false-fields";
}

impl BoxSettings {
    /// The names of flows that the settings mention.
    #[must_use]
    pub fn flows(&self) -> &[String] {
        self.settings().flows()
    }

    /// The name of a neighbour of the node that the settings mention.
    #[must_use]
    pub fn neighbour(&self) -> Option<&str> {
        self.settings().neighbour()
    }

    /// Checks the settings together, each of which is right by itself.
    ///
    /// # Errors
    /// If they contradict each other, with the reason.
    pub fn check(&self) -> Result<(), &'static str> {
        self.settings().check()
    }

    /// Whether the box runs TCP, with settings of its own ([`Site::tcp`]).
    #[must_use]
    pub fn runs_tcp(&self) -> bool {
        self.settings().runs_tcp()
    }

    /// Whether its work is to be told which packets arrived damaged at its node
    /// ([`host::LinkEvent::Corrupted`]).
    #[must_use]
    pub fn needs_damage_reports(&self) -> bool {
        self.settings().needs_damage_reports()
    }

    /// What it needs as a part of a remedy ([`BoxSettings::remedies`]).
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.settings().needs()
    }

    /// The box, at its place.
    #[must_use]
    pub fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        self.settings().build(site)
    }
}
