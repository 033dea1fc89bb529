//! The table of mechanisms: how TCP learns about a path what losses do not show, and how it reacts.
//!
//! A mechanism never changes the sender. It implements hooks at fixed points of the pipeline
//! ([`Rules`]), and the core carries out their answers in one place. A bitset says which hooks are
//! in use, so that a connection without mechanisms has no cost and *is* plain TCP.
//!
//! A new one is a file beside this page and a line in the table below.

mod hook_types;
mod list;

pub use hook_types::{AckTiming, Action, Arrival, Incoming, Loss, Outcome, Signal, Verdict, View};
pub(crate) use list::Mechanisms;

use crate::Identity;
use crate::indication::Indication;
use base::Time;
use bitflags::bitflags;
use wire::{CopyId, Packet, Segment};

bitflags! {
    /// The hooks that a mechanism implements.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    #[serde(transparent)]
    pub struct Hooks: u16 {
        /// [`Rules::indication`]
        const INDICATION = 1;
        /// [`Rules::loss`]
        const LOSS = 1 << 1;
        /// [`Rules::arrival`]
        const ARRIVAL = 1 << 2;
        /// [`Rules::outgoing`]
        const OUTGOING = 1 << 3;
        /// [`Rules::incoming`]
        const INCOMING = 1 << 4;
        /// [`Rules::admit`]
        const ADMISSION = 1 << 5;
        /// [`Rules::outcome`]
        const OUTCOME = 1 << 6;
        /// [`Rules::on_peer_syn`]
        const PEER_SYN = 1 << 7;
        /// [`Rules::deadline`], [`Rules::on_deadline`]
        const TIMER = 1 << 8;
    }
}

bitflags! {
    /// What a mechanism or a box needs: the nodes that must change, and its other conditions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Needs: u16 {
        /// The sender.
        const SENDER = 1;
        /// The receiver.
        const RECEIVER = 1 << 1;
        /// A node on the path.
        const MIDDLEBOX = 1 << 2;
        /// That node reads TCP headers, which IPsec encrypts.
        const CLEAR_HEADERS = 1 << 3;
        /// The end-to-end meaning of acknowledgments is given up.
        const SPLIT_CONNECTION = 1 << 4;
        /// Both directions of the path pass that node.
        const BOTH_DIRECTIONS = 1 << 5;
        /// The host at the end of the bad hop gets an agent.
        const HOST_AGENT = 1 << 6;
        /// The hop has a transport of its own, which ends in that agent.
        const HOP_TRANSPORT = 1 << 7;
        /// The host is warned before it loses its connectivity.
        const WARNING = 1 << 8;
        /// IPsec between the hosts: ESP in transport mode, over IPv6.
        const IPSEC = 1 << 9;
    }
}

/// The hooks. Every default is "no opinion"; a mechanism declares the hooks that it implements in
/// [`Rules::HOOKS`], and no other is called.
pub trait Rules {
    /// The hooks that it implements under any settings.
    const HOOKS: Hooks;
    /// What it needs.
    const NEEDS: Needs;

    /// The hooks that it implements with its present settings.
    fn hooks(&self) -> Hooks {
        Self::HOOKS
    }

    /// Initializes the mechanism for a new connection, with a secret of its own.
    fn begin(&mut self, identity: &Identity) {
        let _ = identity;
    }

    /// Called when the peer's SYN has arrived; `timestamps` is whether both ends have them.
    /// Afterwards [`Rules::hooks`] may change.
    fn on_peer_syn(&mut self, syn: &Segment, timestamps: bool) {
        let _ = (syn, timestamps);
    }

    /// Bytes that it may add to the headers of every segment, which reduce the room for data (RFC
    /// 6691 §3).
    fn overhead(&self) -> u32 {
        0
    }

    /// The reaction to an indication.
    fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
        let _ = (view, indication);
        None
    }

    /// The verdict on a loss.
    fn loss(&mut self, view: &View, loss: &Loss) -> Option<Verdict> {
        let _ = (view, loss);
        None
    }

    /// When to acknowledge an arriving segment.
    fn arrival(&mut self, arrival: &Arrival) -> Option<AckTiming> {
        let _ = arrival;
        None
    }

    /// Adds headers to an outgoing segment. All but the IP header is written, and the payload must
    /// stay as it is.
    fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        let _ = (view, packet);
    }

    /// Whether an option found no room in the last outgoing segment and is to go in an
    /// acknowledgment of its own.
    fn has_pending_option(&self) -> bool {
        false
    }

    /// Inspects an acceptable segment before it is processed.
    fn incoming(&mut self, view: &View, segment: &Segment) -> Option<Incoming> {
        let _ = (view, segment);
        None
    }

    /// Admits or refuses a notice that `copy` was lost, on which a mechanism wants to act: returns
    /// the copy by the sender's own number, or `None` to ignore the notice. All mechanisms with
    /// this hook must admit it.
    fn admit(&mut self, view: &View, copy: CopyId) -> Option<CopyId> {
        let _ = view;
        Some(copy)
    }

    /// Learns the outcome of a notice that was admitted.
    fn outcome(&mut self, view: &View, outcome: Outcome) {
        let _ = (view, outcome);
    }

    /// When [`Rules::on_deadline`] is to be called.
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// Handles its timer.
    fn on_deadline(&mut self, view: &View) -> Option<Action> {
        let _ = view;
        None
    }
}

macro_rules! mechanisms {
    ($($(#[$($doc:tt)*])* $module:ident :: $Mechanism:ident = $name:literal;)+) => {
        $(mod $module;)+
        $(pub use $module::$Mechanism;)+

        /// One of the mechanisms, with its settings and its state.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "mechanism")]
        pub enum Mechanism {
            $($(#[$($doc)*])* #[serde(rename = $name)] $Mechanism($Mechanism),)+
        }

        impl base::settings::Table for Mechanism {
            const TAG: &'static str = "mechanism";
            const ENTRIES: &'static [base::settings::Entry] =
                &[$(base::settings!(@entry $name $Mechanism $(#[$($doc)*])*)),+];
        }

        impl Mechanism {
            /// Every mechanism's name with what it needs.
            pub const NEEDS: &[(&str, Needs)] = &[$(($name, $Mechanism::NEEDS)),+];

            /// What it needs.
            #[must_use]
            pub fn needs(&self) -> Needs {
                match self { $(Mechanism::$Mechanism(_) => $Mechanism::NEEDS,)+ }
            }

            fn hooks(&self) -> Hooks {
                match self { $(Mechanism::$Mechanism(m) => m.hooks(),)+ }
            }

            fn begin(&mut self, identity: &Identity) {
                match self { $(Mechanism::$Mechanism(m) => m.begin(identity),)+ }
            }

            fn on_peer_syn(&mut self, syn: &Segment, timestamps: bool) {
                match self { $(Mechanism::$Mechanism(m) => m.on_peer_syn(syn, timestamps),)+ }
            }

            fn overhead(&self) -> u32 {
                match self { $(Mechanism::$Mechanism(m) => m.overhead(),)+ }
            }

            fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
                match self { $(Mechanism::$Mechanism(m) => m.indication(view, indication),)+ }
            }

            fn loss(&mut self, view: &View, loss: &Loss) -> Option<Verdict> {
                match self { $(Mechanism::$Mechanism(m) => m.loss(view, loss),)+ }
            }

            fn arrival(&mut self, arrival: &Arrival) -> Option<AckTiming> {
                match self { $(Mechanism::$Mechanism(m) => m.arrival(arrival),)+ }
            }

            fn outgoing(&mut self, view: &View, packet: &mut Packet) {
                match self { $(Mechanism::$Mechanism(m) => m.outgoing(view, packet),)+ }
            }

            fn has_pending_option(&self) -> bool {
                match self { $(Mechanism::$Mechanism(m) => m.has_pending_option(),)+ }
            }

            fn incoming(&mut self, view: &View, segment: &Segment) -> Option<Incoming> {
                match self { $(Mechanism::$Mechanism(m) => m.incoming(view, segment),)+ }
            }

            fn admit(&mut self, view: &View, copy: CopyId) -> Option<CopyId> {
                match self { $(Mechanism::$Mechanism(m) => m.admit(view, copy),)+ }
            }

            fn outcome(&mut self, view: &View, outcome: Outcome) {
                match self { $(Mechanism::$Mechanism(m) => m.outcome(view, outcome),)+ }
            }

            fn deadline(&self) -> Time {
                match self { $(Mechanism::$Mechanism(m) => m.deadline(),)+ }
            }

            fn on_deadline(&mut self, view: &View) -> Option<Action> {
                match self { $(Mechanism::$Mechanism(m) => m.on_deadline(view),)+ }
            }
        }
    };
}

mechanisms! {
    /// Explicit transport error notification, per packet (`bbn8333` §2.1).
    eten::Eten = "eten";
    /// Explicit transport error notification through the receiver (`bbn8333` §2.1.3).
    forward_eten::ForwardEten = "forward-eten";
    /// Explicit transport error notification, cumulative (`bbn8333` §2.2, §4).
    cumulative_eten::CumulativeEten = "cumulative-eten";
    /// Explicit loss notification: the receiver tells the cause of a loss (`obanaik2003` §4.2.3).
    eln::Eln = "eln";
    /// Duplicate acknowledgments held back by the receiver.
    delayed_dupacks::DelayedDupacks = "delayed-dupacks";
    /// Authentication and limits for notices.
    notice_authentication::NoticeAuthentication = "guard";
    /// Response to lower-layer connectivity-change indications (`koutsianas2007` §3).
    rlci::Rlci = "rlci";
    /// The receiver closes its window while it has no connectivity (Freeze-TCP).
    freeze::Freeze = "freeze";
}

pub use cumulative_eten::{Fields, Strategy, Transport};
pub use eten::Suppression;
