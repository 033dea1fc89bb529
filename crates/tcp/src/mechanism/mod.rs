//! THE table of mechanisms: what may tell TCP of a path what losses do not, and what to make of it.
//!
//! A mechanism never touches the sender. It answers questions at fixed points of the pipeline
//! ([`Rules`]), and the core acts in one place. Most have no opinion at most points; a bitset says
//! which points are in use, so that no mechanism costs nothing and *is* plain TCP.
//!
//! A new one is a file beside this page and a line in the table below.

mod list;
mod terms;

pub(crate) use list::Mechanisms;
pub use terms::{AckTiming, Action, Arrival, Incoming, Loss, Outcome, Signal, Verdict, View};

use crate::Identity;
use crate::indication::Indication;
use base::Time;
use bitflags::bitflags;
use wire::{CopyId, Packet, Segment};

bitflags! {
    /// The questions that a mechanism answers.
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
        /// [`Rules::agree`]
        const AGREEMENT = 1 << 7;
        /// [`Rules::wake`], [`Rules::on_wake`]
        const TIMER = 1 << 8;
    }
}

bitflags! {
    /// What a mechanism takes: who must change, and what it cannot do without.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Needs: u8 {
        /// The sender.
        const SENDER = 1;
        /// The receiver.
        const RECEIVER = 1 << 1;
        /// A node on the path.
        const MIDDLEBOX = 1 << 2;
        /// That node reads TCP headers: IPsec hides them.
        const CLEAR_HEADERS = 1 << 3;
        /// An acknowledgment no longer says that the receiver has the data.
        const SPLIT_CONNECTION = 1 << 4;
    }
}

/// The questions. Every default is "no opinion"; a mechanism declares in [`Rules::HOOKS`] which it
/// answers and is asked no other.
pub trait Rules {
    /// The questions that it answers, whatever its settings.
    const HOOKS: Hooks;
    /// What it takes.
    const NEEDS: Needs;

    /// The questions that it answers with its settings.
    fn hooks(&self) -> Hooks {
        Self::HOOKS
    }

    /// The connection begins. Its secret is one that nothing else of the connection has.
    fn begin(&mut self, identity: &Identity) {
        let _ = identity;
    }

    /// The peer's SYN has arrived, and it is known whether both ends have `timestamps`. What it
    /// answers from now on may depend on it.
    fn agree(&mut self, syn: &Segment, timestamps: bool) {
        let _ = (syn, timestamps);
    }

    /// Bytes that it adds, or may add, to the headers of every segment: there is so much less room
    /// for data (RFC 6691 §3).
    fn overhead(&self) -> u32 {
        0
    }

    /// A layer below, a peer or a router has said something.
    fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
        let _ = (view, indication);
        None
    }

    /// A range is held to be lost: what does that mean?
    fn loss(&mut self, view: &View, loss: &Loss) -> Option<Verdict> {
        let _ = (view, loss);
        None
    }

    /// A segment that must be acknowledged has arrived: when?
    fn arrival(&mut self, arrival: &Arrival) -> Option<AckTiming> {
        let _ = arrival;
        None
    }

    /// A segment is about to go out: headers may be added to it. All but the IP header is written,
    /// and the payload must stay as it is.
    fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        let _ = (view, packet);
    }

    /// Whether something found no room in the last outgoing segment and is to go in an
    /// acknowledgment of its own.
    fn is_waiting(&self) -> bool {
        false
    }

    /// An acceptable segment has arrived and is about to be taken in.
    fn incoming(&mut self, view: &View, segment: &Segment) -> Option<Incoming> {
        let _ = (view, segment);
        None
    }

    /// Somebody says that `copy` was lost, and a mechanism would act on that: the copy by the
    /// sender's own number, or `None` if it is not to be believed. All that answer must agree.
    fn admit(&mut self, view: &View, copy: CopyId) -> Option<CopyId> {
        let _ = view;
        Some(copy)
    }

    /// What became of something that was admitted.
    fn outcome(&mut self, view: &View, outcome: Outcome) {
        let _ = (view, outcome);
    }

    /// When it has something to do by itself.
    fn wake(&self) -> Time {
        Time::NEVER
    }

    /// That time has come.
    fn on_wake(&mut self, view: &View) -> Option<Action> {
        let _ = view;
        None
    }
}

macro_rules! mechanisms {
    ($($(#[$doc:meta])* $module:ident :: $Mechanism:ident = $name:literal;)+) => {
        $(mod $module;)+
        $(pub use $module::$Mechanism;)+

        /// One of the mechanisms, with its settings and its state.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "mechanism")]
        pub enum Mechanism {
            $($(#[$doc])* #[serde(rename = $name)] $Mechanism($Mechanism),)+
        }

        impl Mechanism {
            /// Every mechanism's name, as in scenario files.
            pub const NAMES: &[&str] = &[$($name),+];
            /// The same with what each takes.
            pub const NEEDS: &[(&str, Needs)] = &[$(($name, $Mechanism::NEEDS)),+];

            /// What it takes.
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

            fn agree(&mut self, syn: &Segment, timestamps: bool) {
                match self { $(Mechanism::$Mechanism(m) => m.agree(syn, timestamps),)+ }
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

            fn is_waiting(&self) -> bool {
                match self { $(Mechanism::$Mechanism(m) => m.is_waiting(),)+ }
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

            fn wake(&self) -> Time {
                match self { $(Mechanism::$Mechanism(m) => m.wake(),)+ }
            }

            fn on_wake(&mut self, view: &View) -> Option<Action> {
                match self { $(Mechanism::$Mechanism(m) => m.on_wake(view),)+ }
            }
        }
    };
}

mechanisms! {
    /// Explicit transport error notification, per packet (`bbn8333` §2.1).
    eten::Eten = "eten";
    /// The same by way of the receiver (`bbn8333` §2.1.3).
    forward_eten::ForwardEten = "forward-eten";
    /// Explicit transport error notification, cumulative (`bbn8333` §2.2, §4).
    cumulative_eten::CumulativeEten = "cumulative-eten";
    /// Duplicate acknowledgments held back by the receiver.
    delayed_dupacks::DelayedDupacks = "delayed-dupacks";
    /// Notices believed within bounds.
    guard::Guard = "guard";
    /// Response to lower-layer connectivity-change indications (`koutsianas2007` §3).
    rlci::Rlci = "rlci";
    /// The receiver closes its window while it has no connectivity (Freeze-TCP).
    freeze::Freeze = "freeze";
}

pub use cumulative_eten::{Fields, Network, Strategy, Transport};
pub use eten::Suppression;
