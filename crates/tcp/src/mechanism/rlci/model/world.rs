//! Two ends, and the segments between them.

use super::super::handshake::{Handshake, RemoteStatus};
use super::super::{Negotiation, Rlci};
use crate::Identity;
use crate::indication::{Connectivity, Indication};
use crate::mechanism::{Action, Rules, View};
use base::{Duration, Time};
use wire::{ConnectivityChange, Flags, LocalStatus, Packet, Segment, SeqNumber, Timestamps};

/// The limits of the state space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) strict: bool,
    /// Ends send at any time, not only when the rules ask for it.
    pub(super) chatty: bool,
    /// Segments may be sent within one tick of the clock.
    pub(super) equal_stamps: bool,
    /// Indications at each end.
    pub(super) indications: u8,
    pub(super) losses: u8,
    pub(super) doubles: u8,
    /// Segments in the network, beyond which none is repeated, doubled or sent unasked. Each that
    /// arrives leads to one at most, and each indication to one.
    pub(super) flying: usize,
}

/// Why the ends do not agree although no further event is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hole {
    /// (a) What carried an indication or an echo was lost, and nothing more is sent.
    Lost,
    /// (b) An end has nothing to send, so that it never acknowledges an echo.
    Idle,
    /// (c) An indication came while another was being signalled.
    Flapped,
}

/// An event. With `later`, the segment that an end sends for it has a later timestamp than the
/// end's previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Indicated { end: usize, later: bool },
    Sends { end: usize, later: bool },
    Wakes { end: usize, later: bool },
    Arrives { index: usize, later: bool },
    Lost { index: usize },
    Doubled { index: usize },
}

/// A segment that carries the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Flying {
    from: usize,
    stamp: u32,
    /// The number of its sender's indication, and of the other's that the sender has accepted.
    signalled: u8,
    accepted: u8,
    bits: (bool, bool, u8, bool),
}

/// One end, and what the check records of it.
#[derive(Clone, Debug, Hash)]
pub(super) struct End {
    pub(super) rlci: Rlci,
    clock: u32,
    indications: u8,
    /// The numbers of its own indication that it signals, and of the peer's that it has accepted.
    signalled: u8,
    accepted: u8,
    /// The state in which an indication was neither signalled nor remembered.
    ignored: Option<LocalStatus>,
}

#[derive(Clone, Debug, Hash)]
pub(super) struct World {
    pub(super) ends: [End; 2],
    pub(super) flying: Vec<Flying>,
    losses: u8,
    doubles: u8,
}

impl End {
    fn new(strict: bool) -> End {
        let mut rlci =
            Rlci { strict, suppress: Some(false), rate_limit: Some(false), ..Rlci::default() };
        rlci.begin(&Identity { iss: SeqNumber(0), ..Identity::default() });
        let mut syn = Segment { flags: Flags::SYN, ..Segment::default() };
        syn.options.timestamps = Some(Timestamps { value: 0, echo: 0 });
        syn.options.connectivity = ConnectivityChange::default().into();
        rlci.on_peer_syn(&syn, true);
        End { rlci, clock: 0, indications: 0, signalled: 0, accepted: 0, ignored: None }
    }

    pub(super) fn handshake(&mut self) -> &mut Handshake {
        match &mut self.rlci.state.negotiation {
            Negotiation::Agreed(handshake) => handshake,
            standing => panic!("{standing:?}"),
        }
    }

    /// Whether it signals or echoes an indication.
    fn speaks(&mut self) -> bool {
        !self.handshake().is_idle()
    }

    pub(super) fn waits(&self) -> bool {
        self.rlci.deadline() != Time::NEVER
    }
}

/// A view in which nothing is outstanding, and time stands still.
fn view() -> View {
    View { una: 1, nxt: 1, rto: Duration::from_secs(1), mss: 1000, ..View::default() }
}

fn status(bits: u8) -> LocalStatus {
    [LocalStatus::Idle, LocalStatus::New, LocalStatus::EchoAck][usize::from(bits)]
}

impl World {
    pub(super) fn new(bound: &Bound) -> World {
        let ends = [End::new(bound.strict), End::new(bound.strict)];
        World { ends, flying: Vec::new(), losses: 0, doubles: 0 }
    }

    /// All moves that are possible next.
    pub(super) fn moves(&mut self, bound: &Bound) -> Vec<Move> {
        let mut moves = Vec::new();
        let room = self.flying.len() < bound.flying;
        let laters: &[bool] = if bound.equal_stamps { &[true, false] } else { &[true] };
        for &later in laters {
            for end in 0..2 {
                if self.ends[end].indications < bound.indications {
                    moves.push(Move::Indicated { end, later });
                }
                if self.ends[end].waits() && room {
                    moves.push(Move::Wakes { end, later });
                }
                if bound.chatty && room && self.ends[end].speaks() {
                    moves.push(Move::Sends { end, later });
                }
            }
            moves.extend((0..self.flying.len()).map(|index| Move::Arrives { index, later }));
        }
        for index in 0..self.flying.len() {
            // Of two that are the same, it does not matter which.
            if index > 0 && self.flying[index] == self.flying[index - 1] {
                continue;
            }
            if self.losses < bound.losses {
                moves.push(Move::Lost { index });
            }
            if self.doubles < bound.doubles && room {
                moves.push(Move::Doubled { index });
            }
        }
        moves
    }

    /// Makes a move. Panics if an end accepts an option that it must not.
    pub(super) fn apply(&mut self, it: Move) {
        match it {
            Move::Indicated { end, later } => self.indicate(end, later),
            Move::Sends { end, later } => self.send(end, later),
            Move::Wakes { end, later } => {
                let action = self.ends[end].rlci.on_deadline(&view());
                self.act(end, action, later);
            }
            Move::Arrives { index, later } => self.arrive(index, later),
            Move::Lost { index } => {
                self.flying.remove(index);
                self.losses += 1;
            }
            Move::Doubled { index } => {
                self.flying.push(self.flying[index]);
                self.doubles += 1;
            }
        }
        self.normalise();
    }

    fn indicate(&mut self, at: usize, later: bool) {
        let end = &mut self.ends[at];
        end.indications += 1;
        let before = *end.handshake();
        let indication = Indication::Connectivity(Connectivity::Changed { window: None });
        let action = end.rlci.indication(&view(), &indication);
        let after = *end.handshake();
        if after.local_cci != before.local_cci {
            end.signalled += 1;
            end.ignored = None;
        } else if !after.pending {
            end.ignored = Some(before.local_cci_status);
        }
        self.act(at, action, later);
    }

    /// Everything that the rules ask for here leads to one segment.
    fn act(&mut self, at: usize, action: Option<Action>, later: bool) {
        match action {
            None => {}
            Some(Action::Reprobe { .. }) => self.send(at, true),
            Some(Action::ForceSend | Action::Acknowledge) => self.send(at, later),
            Some(other) => panic!("{other:?}"),
        }
    }

    fn send(&mut self, at: usize, later: bool) {
        let end = &mut self.ends[at];
        end.clock += u32::from(later);
        let mut packet = Packet::BLANK;
        let segment = packet.make_tcp();
        segment.flags = Flags::ACK;
        segment.options.timestamps = Some(Timestamps { value: end.clock, echo: 0 });
        let before = *end.handshake();
        let (signalled, accepted) = (end.signalled, end.accepted);
        end.rlci.outgoing(&view(), &mut packet);
        // An indication that had to wait is signalled from now on.
        end.signalled += u8::from(end.handshake().local_cci != before.local_cci);
        let segment = packet.tcp_mut().expect("it was made");
        if let Some(option) = segment.options.connectivity.get() {
            let bits = (option.c, option.ec, option.cs as u8, option.ecs);
            self.flying.push(Flying {
                from: at,
                stamp: self.ends[at].clock,
                signalled,
                accepted,
                bits,
            });
        }
    }

    fn arrive(&mut self, index: usize, later: bool) {
        let Flying { from, stamp, signalled, accepted, bits } = self.flying.remove(index);
        let at = 1 - from;
        let (c, ec, cs, ecs) = bits;
        let change = ConnectivityChange { c, ec, cs: status(cs), ecs, ..Default::default() };
        let mut segment = Segment { flags: Flags::ACK, ack: SeqNumber(1), ..Segment::default() };
        segment.options.timestamps = Some(Timestamps { value: stamp, echo: 0 });
        segment.options.connectivity = change.into();

        let end = &mut self.ends[at];
        let before = *end.handshake();
        let incoming = end.rlci.incoming(&view(), &segment);
        let after = *end.handshake();
        if after.remote_cci != before.remote_cci {
            assert!(
                signalled > end.accepted,
                "{signalled} was taken up twice, or is stale: {before:?}"
            );
            end.accepted = signalled;
        }
        if before.local_cci_status == LocalStatus::New && after.local_cci_status != LocalStatus::New
        {
            assert_eq!(accepted, end.signalled, "not the echo of that");
        }
        if before.remote_cci_status == RemoteStatus::Echo
            && after.remote_cci_status == RemoteStatus::Idle
        {
            assert_eq!(signalled, end.accepted, "not the acknowledgment of that echo");
        }
        self.act(at, incoming.and_then(|incoming| incoming.action), later);
    }

    /// Of timestamps only the order counts; how often something was repeated does not count, for it
    /// is repeated more often than anything is lost here; nor does whether an acknowledgment is of the
    /// present path.
    fn normalise(&mut self) {
        self.flying.sort_unstable();
        for from in 0..2 {
            let mut stamps: Vec<&mut u32> = Vec::new();
            let [one, two] = &mut self.ends;
            let (sender, receiver) = if from == 0 { (one, two) } else { (two, one) };
            sender.rlci.state.probe = None;
            sender.rlci.state.stamp = 0;
            if let Some(repeat) = &mut sender.rlci.state.repeat {
                *repeat = (Time::ZERO, 0);
            }
            let handshake = receiver.handshake();
            stamps.push(&mut sender.clock);
            stamps.push(&mut handshake.remote_cci_peer_time);
            stamps.push(&mut handshake.local_cci_peer_echo_time);
            let flying = self.flying.iter_mut().filter(|flying| flying.from == from);
            stamps.extend(flying.map(|flying| &mut flying.stamp));
            stamps.sort_unstable();
            let (mut rank, mut last) = (0, *stamps[0]);
            for stamp in stamps {
                rank += u32::from(*stamp != last);
                last = core::mem::replace(stamp, rank);
            }
        }
    }

    /// Whether only a new indication can cause anything more.
    pub(super) fn is_at_rest(&self) -> bool {
        self.flying.is_empty() && !self.ends.iter().any(End::waits)
    }

    /// Each end has accepted every indication that the other has signalled.
    fn agrees(&mut self) -> bool {
        let [one, two] = &mut self.ends;
        !one.speaks()
            && !two.speaks()
            && one.accepted == two.signalled
            && two.accepted == one.signalled
    }

    /// Why the ends do not agree at rest, if they do not.
    pub(super) fn hole(&mut self) -> Option<Hole> {
        let ignored = |status| self.ends.iter().any(|end| end.ignored == Some(status));
        let (flapped, idle) = (ignored(LocalStatus::New), ignored(LocalStatus::EchoAck));
        if flapped {
            return Some(Hole::Flapped);
        } else if idle {
            return Some(Hole::Idle);
        } else if self.agrees() {
            return None;
        }
        let waits = |end: &mut End| end.handshake().local_cci_status == LocalStatus::EchoAck;
        if self.ends.iter_mut().any(waits) {
            // Its next indication would be ignored.
            return None;
        }
        assert!(self.losses > 0, "nothing was lost, and they do not agree: {self:?}");
        Some(Hole::Lost)
    }

    /// Panics unless the ends come to agree when both keep sending and nothing is lost.
    pub(super) fn verify_agreement(&self) {
        let mut world = self.clone();
        for _ in 0..6 {
            while !world.flying.is_empty() {
                world.apply(Move::Arrives { index: 0, later: true });
            }
            if world.agrees() {
                return;
            }
            for end in 0..2 {
                world.apply(Move::Sends { end, later: true });
            }
        }
        panic!("they never agree: {self:?}");
    }

    /// Describes a move for people.
    pub(super) fn describe(&self, it: Move) -> String {
        const NAMES: [&str; 2] = ["first", "second"];
        let segment = |index: usize| {
            let from = self.flying[index].from;
            let place = self.flying[..index].iter().filter(|f| f.from == from).count();
            format!("{}'s segment {place}", NAMES[from])
        };
        match it {
            Move::Indicated { end, .. } => format!("{} gets an indication", NAMES[end]),
            Move::Sends { end, .. } => format!("{} sends", NAMES[end]),
            Move::Wakes { end, .. } => format!("{} repeats", NAMES[end]),
            Move::Arrives { index, .. } => format!("{} arrives", segment(index)),
            Move::Lost { index } => format!("{} is lost", segment(index)),
            Move::Doubled { index } => format!("{} is doubled", segment(index)),
        }
    }
}
