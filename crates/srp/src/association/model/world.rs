//! Two ends, their users, and what is in flight.

use super::bound::{Bound, Budget};
use super::user::User;
use crate::config::Config;
use crate::rtt::Rtt;
use crate::{Association, Ends, Reason, StreamId};
use base::{Duration, Events, Rate, Time};
use core::net::IpAddr;
use std::hash::{DefaultHasher, Hash, Hasher};
use wire::srp::Pdu;
use wire::{Payload, Srp};

/// What may happen next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Move {
    Deliver(usize),
    Duplicate(usize),
    Lose(usize),
    Deadline(usize),
    Reset(usize, usize),
    Suspend(usize),
    Resume(usize),
    /// The other end has moved to another station, or has not, and the opener makes the association anew, or
    /// resumes it.
    Handoff {
        has_moved: bool,
        is_new: bool,
    },
    Abort(usize),
    Crash(usize),
}

/// A PDU in flight, to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    to: usize,
    srp: Srp,
    payload: Payload,
}

#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) association: Option<Association>,
    pub(super) users: Vec<User>,
    /// Crashes so far: what it writes after one differs from what it wrote before.
    life: u32,
    /// It remembers that its association is over.
    has_ended: bool,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    bound: Bound,
    budget: Budget,
    pub(super) ends: [End; 2],
    pub(super) flying: Vec<Message>,
    /// Each SACK arrives twice, and with it a reset of another association.
    pub(super) checks: bool,
}

/// The time that stands still.
pub(super) const NOW: Time = Time::from_nanos(1_000_000_000_000);
const TOKEN: u32 = 7;
const SEGMENT: u64 = 10;
/// A deadline at which nothing is sent but to find out whether the peer is there.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(1000);

fn config(bound: &Bound) -> Config {
    Config {
        segment_size: SEGMENT as u32,
        window: bound.window * SEGMENT,
        segments: 64,
        streams: 8,
        rate: Rate::from_bps(u64::MAX),
        keep_alive: Some(KEEP_ALIVE),
        give_up: Duration::from_secs(1_000_000),
        ..Config::default()
    }
}

/// All that an association is, in bytes.
fn bytes_of(association: &Association) -> Vec<u8> {
    postcard::to_allocvec(association).expect("it is plain data")
}

pub(super) fn events(bits: u16) -> Events {
    Events::from_bits_retain(bits)
}

impl World {
    pub(super) fn new(bound: &Bound) -> Result<World, String> {
        let opener = Association::connect(NOW, &config(bound), TOKEN);
        let end = |association| End { association, users: Vec::new(), life: 0, has_ended: false };
        let mut world = World {
            bound: *bound,
            budget: bound.budget,
            ends: [end(Some(opener)), end(None)],
            flying: Vec::new(),
            checks: true,
        };
        if bound.is_open {
            world.settle(0)?;
            while !world.flying.is_empty() {
                world.deliver(0)?;
            }
        }
        for (stream, &(end, _)) in bound.streams.iter().enumerate() {
            world.open(end, stream)?;
        }
        Ok(world)
    }

    fn open(&mut self, end: usize, stream: usize) -> Result<(), String> {
        let address = IpAddr::from([10, 0, 0, 1]);
        let client_port = stream as u16;
        let ends = Ends { client: address, server: address, client_port, server_port: 80 };
        let association = self.ends[end].association.as_mut().ok_or("there is no association")?;
        let id = association.open(NOW, ends).ok_or("there is no room")?;
        self.begin(end, stream, id);
        self.settle(end)
    }

    /// A user of a stream writes all its data, and its end.
    fn begin(&mut self, end: usize, stream: usize, id: StreamId) {
        let (opener, segments) = self.bound.streams[stream];
        let user = User {
            stream,
            id: (id.slot, id.generation),
            to_write: SEGMENT * segments[usize::from(end != opener)],
            read: 0,
            reads: None,
            events: 0,
            aborted: false,
            holds: self.bound.holds,
        };
        let End { association, users, life, .. } = &mut self.ends[end];
        if let Some(mut half) = association.as_mut().and_then(|it| it.stream(id)) {
            if user.holds {
                half.hold_end();
            }
            half.write(*life * 100 + 10 * end as u32 + stream as u32, 0, user.to_write);
            half.close();
        }
        users.push(user);
    }

    /// Whether nothing is in flight.
    pub(super) fn is_quiet(&self) -> bool {
        self.flying.is_empty()
    }

    /// All that may happen.
    pub(super) fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for (n, message) in self.flying.iter().enumerate() {
            let before = self.flying[..n].iter().filter(|before| before.to == message.to);
            // Equal ones lead to equal states.
            if before.clone().count() >= self.bound.reordered || self.flying[..n].contains(message)
            {
                continue;
            }
            moves.push(Move::Deliver(n));
            if self.budget.duplicates > 0 {
                moves.push(Move::Duplicate(n));
            }
            if self.budget.losses > 0 {
                moves.push(Move::Lose(n));
            }
        }
        let opener = self.ends[0].association.as_ref();
        if self.budget.renewals > 0 && opener.is_some_and(|it| !it.is_closed()) {
            let all = [(false, true), (true, true), (true, false)];
            moves.extend(all.map(|(has_moved, is_new)| Move::Handoff { has_moved, is_new }));
        }
        for (n, end) in self.ends.iter().enumerate() {
            let Some(association) = &end.association else { continue };
            if self.budget.crashes > 0 {
                moves.push(Move::Crash(n));
            }
            if association.is_suspended() {
                moves.push(Move::Resume(n));
                continue;
            }
            if association.is_closed() {
                continue;
            }
            if self.budget.deadlines > 0 && association.poll_timeout() < NOW + KEEP_ALIVE {
                moves.push(Move::Deadline(n));
            }
            if self.budget.suspensions > 0 {
                moves.push(Move::Suspend(n));
            }
            if self.budget.aborts > 0 {
                moves.push(Move::Abort(n));
            }
            if self.budget.resets > 0 {
                let open = end.users.iter().enumerate();
                let open = open.filter(|(_, user)| !events(user.events).contains(Events::CLOSED));
                moves.extend(open.map(|(user, _)| Move::Reset(n, user)));
            }
        }
        moves
    }

    pub(super) fn describe(&self, it: Move) -> String {
        match it {
            Move::Deliver(n) | Move::Duplicate(n) | Move::Lose(n) => {
                let Message { to, srp, payload } = &self.flying[n];
                let verb = match it {
                    Move::Deliver(_) => "arrives at",
                    Move::Duplicate(_) => "arrives (and again later) at",
                    _ => "is lost on its way to",
                };
                format!("{:?} {}+{} {verb} {to}", srp.pdu, payload.offset, payload.len)
            }
            other => format!("{other:?}"),
        }
    }

    pub(super) fn apply(&mut self, it: Move) -> Result<(), String> {
        match it {
            Move::Deliver(n) => return self.deliver(n),
            Move::Duplicate(n) => {
                self.budget.duplicates -= 1;
                self.flying.push(self.flying[n]);
                return self.deliver(n);
            }
            Move::Lose(n) => {
                self.budget.losses -= 1;
                self.flying.remove(n);
            }
            Move::Deadline(end) => {
                self.budget.deadlines -= 1;
                return self.deadline(end);
            }
            Move::Reset(end, user) => {
                self.budget.resets -= 1;
                self.ends[end].users[user].aborted = true;
                let id = self.ends[end].users[user].id();
                if let Some(mut half) = self.association(end)?.stream(id) {
                    half.abort();
                }
                return self.settle(end);
            }
            Move::Suspend(end) => {
                self.budget.suspensions -= 1;
                self.association(end)?.suspend(NOW);
                return self.settle(end);
            }
            Move::Resume(end) => {
                self.association(end)?.resume(NOW);
                return self.settle(end);
            }
            Move::Handoff { has_moved, is_new } => {
                self.budget.renewals -= 1;
                if has_moved && let Some(association) = self.ends[1].association.take() {
                    let adopted = Association::adopt(association.snapshot(NOW), NOW);
                    let mut adopted = adopted.map_err(|error| error.to_string())?;
                    adopted.await_renewal(NOW);
                    self.ends[1].association = Some(adopted);
                    self.settle(1)?;
                }
                match is_new {
                    true => self.association(0)?.renew(NOW),
                    false => self.association(0)?.resume(NOW),
                }
                return self.settle(0);
            }
            Move::Abort(end) => {
                self.budget.aborts -= 1;
                self.association(end)?.abort();
                self.ends[end].users.iter_mut().for_each(|user| user.aborted = true);
                return self.settle(end);
            }
            Move::Crash(end) => {
                self.budget.crashes -= 1;
                let life = self.ends[end].life + 1;
                self.ends[end] =
                    End { association: None, users: Vec::new(), life, has_ended: false };
            }
        }
        Ok(())
    }

    pub(super) fn association(&mut self, end: usize) -> Result<&mut Association, String> {
        self.ends[end].association.as_mut().ok_or_else(|| "there is no association".to_owned())
    }

    pub(super) fn deliver(&mut self, n: usize) -> Result<(), String> {
        let Message { to, srp, payload } = self.flying.remove(n);
        let Some(association) = &mut self.ends[to].association else {
            if to == 1
                && !self.ends[to].has_ended
                && let Some(accepted) = Association::accept(NOW, &config(&self.bound), &srp)
            {
                self.ends[to].association = Some(accepted);
            } else if let Some(srp) = Association::refusal(&srp) {
                self.flying.push(Message { to: 1 - to, srp, payload: Payload::default() });
            }
            return self.settle(to);
        };
        association.handle(NOW, &srp, payload);
        self.settle(to)?;
        if self.checks && matches!(srp.pdu, Pdu::Sack(_)) {
            let (before, sent) = (self.fingerprint(), self.flying.len());
            let reset = Pdu::Reset { reason: Reason::Aborted };
            let other = Srp { token: TOKEN - 1, pdu: reset, ..srp };
            for srp in [srp, other] {
                self.association(to)?.handle(NOW, &srp, payload);
                self.settle(to)?;
            }
            if self.fingerprint() != before {
                return Err(format!(
                    "a SACK that arrives again, or a PDU of another association, changes something: {:?}",
                    &self.flying[sent..]
                ));
            }
        }
        Ok(())
    }

    pub(super) fn deadline(&mut self, end: usize) -> Result<(), String> {
        let association = self.association(end)?;
        let at = association.poll_timeout();
        association.handle_timeout(at);
        if association.receiver.due() <= at {
            association.receiver.request_sack(NOW);
        }
        if association.open_due <= at {
            association.open_due = NOW;
        }
        self.settle(end)
    }

    /// Takes events and sends, until an end has nothing more to do.
    pub(super) fn settle(&mut self, end: usize) -> Result<(), String> {
        for _ in 0..1000 {
            let Some(association) = self.ends[end].association.as_mut() else { return Ok(()) };
            if let Some((id, ends)) = association.poll_incoming() {
                let stream = usize::from(ends.client_port);
                if self.bound.refuses && stream + 1 == self.bound.streams.len() {
                    association.refuse(id, Reason::Refused);
                    continue;
                }
                if self.ends[end].users.iter().any(|user| user.stream == stream) {
                    return Err(format!("stream {stream} is opened twice"));
                }
                association.accept_stream(id);
                self.begin(end, stream, id);
                continue;
            }
            if let Some((id, events)) = association.poll_events() {
                self.on_events(end, id, events)?;
                continue;
            }
            let Some((srp, payload)) = association.poll_transmit(NOW) else {
                // Only if PDUs overtake each other does the sender take one for lost that is not.
                let Budget { losses, suspensions, .. } = self.bound.budget;
                let is_in_order = self.bound.reordered == 1 && losses + suspensions == 0;
                if is_in_order && association.statistics().retransmissions > 0 {
                    return Err("a needless retransmission".into());
                }
                association.stop_time();
                return self.forget_closed(end);
            };
            self.flying.push(Message { to: 1 - end, srp, payload });
        }
        Err(format!("end {end} does not settle"))
    }

    /// As its owner does, an end forgets an association that is over.
    fn forget_closed(&mut self, end: usize) -> Result<(), String> {
        let (is_over, end) = (self.ends[end].is_over(), &mut self.ends[end]);
        let Some(association) = end.association.take_if(|it| it.is_closed() && is_over) else {
            return Ok(());
        };
        if association.poll_timeout() < Time::NEVER {
            return Err("an association that is over has a deadline".into());
        }
        end.has_ended = true;
        association.holds_nothing()
    }

    fn on_events(&mut self, end: usize, id: StreamId, new: Events) -> Result<(), String> {
        let End { association, users, .. } = &mut self.ends[end];
        let user = users.iter_mut().find(|user| user.id() == id);
        let user = user.ok_or_else(|| format!("end {end} does not know {id:?}"))?;
        if events(user.events).contains(Events::CLOSED) {
            return Err(format!("stream {} has {new:?} after its end at {end}", user.stream));
        }
        user.events |= new.bits();
        let Some(mut half) = association.as_mut().and_then(|it| it.stream(id)) else {
            return Ok(());
        };
        while let Some(payload) = half.read_up_to(u32::MAX) {
            if payload.offset != user.read
                || *user.reads.get_or_insert(payload.stream) != payload.stream
            {
                return Err(format!("stream {} at {end}: {payload:?} after {user:?}", user.stream));
            }
            user.read += u64::from(payload.len);
        }
        if user.holds && new.contains(Events::PEER_CLOSING) {
            user.holds = false;
            half.release_end(NOW);
        }
        Ok(())
    }

    /// What distinguishes the state from others: 128 bits of hash.
    pub(super) fn fingerprint(&self) -> u128 {
        let bytes = [0, 1].map(|end| self.ends[end].association.as_ref().map(bytes_of));
        let [high, low] = [0_u8, 1].map(|salt| {
            // The order counts only among those to the same end.
            let flying = [0, 1].map(|end| {
                let mut hasher = DefaultHasher::new();
                let to_end = self.flying.iter().filter(|message| message.to == end);
                to_end.for_each(|message| message.hash(&mut hasher));
                hasher.finish()
            });
            let users = [0, 1].map(|end| {
                let End { users, life, has_ended, .. } = &self.ends[end];
                (users, life, has_ended)
            });
            let mut hasher = DefaultHasher::new();
            (salt, flying, self.budget, users, &bytes).hash(&mut hasher);
            u128::from(hasher.finish())
        });
        high << 64 | low
    }
}

impl Association {
    /// Makes states that differ only in times equal.
    fn stop_time(&mut self) {
        self.sender.rtt = Rtt::new(self.config.initial_timeout, self.config.minimum_margin);
        self.sender.pacing.on_path_change(NOW);
        self.statistics = crate::Statistics::default();
        if self.timer < Time::NEVER {
            self.timer = NOW + self.sender.rtt.timeout();
        }
        if self.open_due < Time::NEVER && self.opens_sent > 0 {
            self.open_due = NOW + self.config.initial_timeout;
        }
        self.opens_sent = self.opens_sent.min(1);
        self.waiting_since = None;
    }
}
