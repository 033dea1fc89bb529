//! THE table of mechanisms: what may tell a loss by corruption from a loss by congestion.
//!
//! A mechanism never touches the sender. It answers questions at fixed points of the pipeline
//! ([`Rules`]), and the core acts in one place. Most have no opinion at most points; a bitset says
//! which points are in use, so that no mechanism costs nothing and *is* plain TCP.
//!
//! A new one is a file beside this page and a line in the table below.

use crate::indication::Indication;
use crate::{Identity, Statistics};
use base::{Duration, Time};
use bitflags::bitflags;
use wire::{CopyId, Packet, Segment, SeqNumber};

/// What a mechanism may know of the connection when it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// The time.
    pub now: Time,
    /// The first octet not acknowledged (absolute: 0 is the SYN, 1 the first byte).
    pub una: u64,
    /// The next octet to be sent for the first time.
    pub nxt: u64,
    /// The smoothed round trip.
    pub srtt: Option<Duration>,
    /// The retransmission timeout, back-off included.
    pub rto: Duration,
    /// What was sent again after a timeout has not been acknowledged yet.
    pub stalled: bool,
    /// The congestion window, bytes.
    pub window: u64,
    /// What it is at the start of a connection.
    pub initial_window: u64,
    /// Bytes of payload in a full-sized segment.
    pub mss: u32,
    /// What the sender did so far.
    pub statistics: Statistics,
}

/// How a loss was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// By duplicate acknowledgments, or an acknowledgment that stops at the next hole.
    Dupack,
    /// By what the receiver holds above it (RFC 6675).
    Sack,
    /// By the retransmission timer.
    Rto,
    /// By an indication that named it.
    Notice,
    /// Not lost: the peer says that it met congestion (RFC 3168).
    Ecn,
}

/// A range that is held to be lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Its first octet.
    pub start: u64,
    /// The octet after its last.
    pub end: u64,
    /// The lost copy.
    pub copy: CopyId,
    /// When that copy was sent.
    pub sent_at: Time,
    /// How it was noticed.
    pub signal: Signal,
}

/// What a loss means.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The network is congested: retransmit, and reduce the window once per episode.
    Congestion {
        /// Leave the slow-start threshold alone.
        keep_ssthresh: bool,
    },
    /// Reduce the window to this share of the flight instead of half.
    Decrease(f64),
    /// The network is not congested: retransmit, nothing else.
    Corruption,
}

impl Verdict {
    /// What TCP makes of a loss when nobody knows better.
    pub const STANDARD: Verdict = Verdict::Congestion { keep_ssthresh: false };
}

/// What a mechanism asks of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The copy of this range is lost: give it a verdict and retransmit at once.
    Lost {
        /// The first octet.
        seq: SeqNumber,
        /// The lost copy; ignored unless it is the latest of its range.
        copy: CopyId,
    },
    /// Send this range again at once and draw no other conclusion.
    RetransmitNow {
        /// The first octet.
        seq: SeqNumber,
        /// The copy to replace; ignored unless it is the latest of its range.
        copy: CopyId,
    },
    /// Send an acknowledgment at once.
    Acknowledge,
    /// Send a segment of new data at once, whatever the congestion window says; an acknowledgment
    /// if there is none or the peer has no room for it.
    SendNow,
    /// The path is another one: forget what was known of the old one, start with this many segments
    /// (`None`: the initial window), and send at once. Timestamps tell what is sent from now on
    /// from what was sent before.
    Reprobe {
        /// The window, segments.
        window: Option<u32>,
        /// Hold everything outstanding for lost and send it again.
        resend: bool,
    },
    /// What the path can take is known: leave slow start.
    EndSlowStart,
    /// Announce a window of zero until told otherwise.
    CloseWindow,
    /// Announce the window again, three times.
    OpenWindow,
}

/// What a mechanism makes of a segment that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// What is to be done before the segment is taken in.
    pub action: Option<Action>,
    /// Whether it may count as a duplicate acknowledgment, if it is one (RFC 5681 §2).
    pub may_count: bool,
    /// Whether it answers what was sent over the present path: the window may grow by it, and a
    /// round trip be measured.
    pub is_current: bool,
    /// If it is one of the first two duplicates, it lets out a segment of new data, however much is
    /// outstanding (`koutsianas2007` §3.5.3).
    pub lets_out: bool,
}

impl Incoming {
    /// Nobody has an opinion.
    pub const PLAIN: Incoming =
        Incoming { action: None, may_count: true, is_current: true, lets_out: false };

    /// Two opinions of one segment; what is to be done is done already.
    pub(crate) fn and(self, other: Incoming) -> Incoming {
        Incoming {
            action: None,
            may_count: self.may_count && other.may_count,
            is_current: self.is_current && other.is_current,
            lets_out: self.lets_out || other.lets_out,
        }
    }
}

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

/// A segment has arrived, and the receiver is about to acknowledge it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The acknowledgment would repeat the last one: the segment came after a gap, or again.
    pub duplicate_ack: bool,
    /// How many such acknowledgments in a row this would be.
    pub duplicates: u32,
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckTiming {
    /// At once.
    Now,
    /// After this long, unless the next in-order segment makes it needless.
    After(Duration),
}

/// What became of somebody's word that a copy was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It led to a retransmission.
    Believed,
    /// The retransmission was acknowledged, in a time that it may have taken, and something sent
    /// after it, too: nothing says that it was needless.
    Confirmed,
    /// What was said to be lost has arrived: the peer reports the range twice (RFC 2883), or has
    /// acknowledged it too soon for that to be the retransmission's doing.
    Refuted,
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

/// The mechanisms of one connection, asked in order. The first opinion counts, but for what all of
/// them take in.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Mechanisms {
    list: Vec<Mechanism>,
    hooks: Hooks,
}

impl Mechanisms {
    pub(crate) fn new(mut list: Vec<Mechanism>, identity: &Identity) -> Mechanisms {
        for (mechanism, number) in list.iter_mut().zip(0..) {
            let secret = identity.secret.wrapping_add(number);
            mechanism.begin(&Identity { secret, ..*identity });
        }
        let mut mechanisms = Mechanisms { list, hooks: Hooks::empty() };
        mechanisms.gather();
        mechanisms
    }

    /// Learns who answers what.
    fn gather(&mut self) {
        self.hooks = self.list.iter().fold(Hooks::empty(), |hooks, m| hooks | m.hooks());
    }

    pub(crate) fn agree(&mut self, syn: &Segment, timestamps: bool) {
        if self.answer(Hooks::AGREEMENT) {
            for mechanism in &mut self.list {
                mechanism.agree(syn, timestamps);
            }
            self.gather();
        }
    }

    /// Bytes of headers that all of them add to every segment.
    pub(crate) fn overhead(&self) -> u32 {
        self.list.iter().map(Mechanism::overhead).sum()
    }

    /// Whether anybody answers one of the questions.
    #[inline]
    pub(crate) fn answer(&self, hooks: Hooks) -> bool {
        self.hooks.intersects(hooks)
    }

    fn first<T>(&mut self, hook: Hooks, ask: impl FnMut(&mut Mechanism) -> Option<T>) -> Option<T> {
        if !self.hooks.contains(hook) {
            return None;
        }
        self.list.iter_mut().filter(|m| m.hooks().contains(hook)).find_map(ask)
    }

    /// The connection is over: nothing is due any more.
    pub(crate) fn stop(&mut self) {
        self.hooks -= Hooks::TIMER;
    }

    pub(crate) fn indication(&mut self, view: &View, indication: &Indication) -> Option<Action> {
        self.first(Hooks::INDICATION, |m| m.indication(view, indication))
    }

    /// How many there are, for what is told them one by one.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// What one of them makes of what concerns them all.
    pub(crate) fn indication_to(
        &mut self,
        index: usize,
        view: &View,
        indication: &Indication,
    ) -> Option<Action> {
        let hears = |m: &&mut Mechanism| m.hooks().contains(Hooks::INDICATION);
        self.list.get_mut(index).filter(hears)?.indication(view, indication)
    }

    pub(crate) fn loss(&mut self, view: &View, loss: &Loss) -> Verdict {
        self.first(Hooks::LOSS, |m| m.loss(view, loss)).unwrap_or(Verdict::STANDARD)
    }

    pub(crate) fn arrival(&mut self, arrival: &Arrival) -> Option<AckTiming> {
        self.first(Hooks::ARRIVAL, |m| m.arrival(arrival))
    }

    /// All that answer write what they have to say.
    pub(crate) fn outgoing(&mut self, view: &View, packet: &mut Packet) {
        for mechanism in self.list.iter_mut().filter(|m| m.hooks().contains(Hooks::OUTGOING)) {
            mechanism.outgoing(view, packet);
        }
    }

    pub(crate) fn are_waiting(&self) -> bool {
        self.list.iter().any(Mechanism::is_waiting)
    }

    /// What one of them makes of a segment: it may be of several.
    pub(crate) fn incoming_to(
        &mut self,
        index: usize,
        view: &View,
        segment: &Segment,
    ) -> Option<Incoming> {
        let looks = |m: &&mut Mechanism| m.hooks().contains(Hooks::INCOMING);
        self.list.get_mut(index).filter(looks)?.incoming(view, segment)
    }

    /// The copy that somebody names, by the sender's own number, if it is to be believed.
    pub(crate) fn admit(&mut self, view: &View, copy: CopyId) -> Option<CopyId> {
        let mut asked = self.list.iter_mut().filter(|m| m.hooks().contains(Hooks::ADMISSION));
        asked.try_fold(copy, |copy, mechanism| mechanism.admit(view, copy))
    }

    pub(crate) fn outcome(&mut self, view: &View, outcome: Outcome) {
        for mechanism in self.list.iter_mut().filter(|m| m.hooks().contains(Hooks::OUTCOME)) {
            mechanism.outcome(view, outcome);
        }
    }

    /// When the first of them has something to do by itself.
    #[inline]
    pub(crate) fn wake(&self) -> Time {
        if !self.answer(Hooks::TIMER) {
            return Time::NEVER;
        }
        self.list.iter().map(Mechanism::wake).fold(Time::NEVER, Time::min)
    }

    /// Wakes the first for which it is time.
    pub(crate) fn on_wake(&mut self, view: &View) -> Option<Action> {
        let due = self.list.iter_mut().find(|mechanism| mechanism.wake() <= view.now)?;
        due.on_wake(view)
    }
}
