//! Who sends next over the hop: deficit round robin (Shreedhar, Varghese, SIGCOMM 1995).

use super::FlowId;
use core::net::IpAddr;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The order in which flows send: users in turn, by the bytes that they have sent, and the flows of a
/// user in turn. A user is an address behind the hop.
///
/// As in Linux' `fq`, a user sends while its credit is above 0, so that the last segment may exceed
/// the credit; all operations take constant time.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    users: Vec<User>,
    vacant: Vec<u32>,
    by_address: FxHashMap<IpAddr, u32>,
    /// Users with flows that are ready, the next first.
    turns: VecDeque<u32>,
    /// By [`FlowId`].
    flows: Vec<Option<Flow>>,
    /// The number of flows that are [`State::Ready`].
    ready: u32,
}

#[derive(Debug)]
struct User {
    address: IpAddr,
    /// The number of its flows.
    flows: u32,
    /// Those that are ready, the next first.
    ready: VecDeque<FlowId>,
    /// Bytes that it may send before the others have their turn.
    credit: i64,
    has_turn: bool,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    user: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has nothing to send.
    Idle,
    /// It has something to send.
    Ready,
    /// Its half has data that its windows do not let it send.
    Blocked,
}

/// What a user may send in a turn: two packets of Ethernet, as in Linux' `fq`.
const QUANTUM: i64 = 2 * 1514;
/// The most that is remembered of what a user has sent without a turn: retransmissions,
/// acknowledgments.
const LARGEST_DEBT: i64 = 16 * QUANTUM;

impl Scheduler {
    /// Adds a flow of a user, which is idle.
    pub(super) fn add(&mut self, id: FlowId, address: IpAddr) {
        let user = *self.by_address.entry(address).or_insert_with(|| {
            let user = User {
                address,
                flows: 0,
                ready: VecDeque::new(),
                credit: QUANTUM,
                has_turn: false,
            };
            match self.vacant.pop() {
                Some(number) => {
                    self.users[number as usize] = user;
                    number
                }
                None => {
                    self.users.push(user);
                    self.users.len() as u32 - 1
                }
            }
        });
        self.users[user as usize].flows += 1;
        if self.flows.len() <= id.index() {
            self.flows.resize(id.index() + 1, None);
        }
        self.flows[id.index()] = Some(Flow { user, state: State::Idle });
    }

    /// Removes a flow, if there is one.
    pub(super) fn remove(&mut self, id: FlowId) {
        let Some(Flow { user, state }) = self.flows.get_mut(id.index()).and_then(Option::take)
        else {
            return;
        };
        self.ready -= u32::from(state == State::Ready);
        let User { flows, ready, has_turn, .. } = &mut self.users[user as usize];
        *flows -= 1;
        if state == State::Ready {
            ready.retain(|&other| other != id);
        }
        // One that has a turn is removed with it.
        if *flows == 0 && !*has_turn {
            self.forget(user);
        }
    }

    fn forget(&mut self, user: u32) {
        self.by_address.remove(&self.users[user as usize].address);
        self.vacant.push(user);
    }

    fn flow(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.flows.get_mut(id.index())?.as_mut()
    }

    /// Whether there is such a flow.
    pub(super) fn contains(&self, id: FlowId) -> bool {
        self.flows.get(id.index()).is_some_and(Option::is_some)
    }

    /// A flow has something to send, unless it is blocked.
    pub(super) fn make_ready(&mut self, id: FlowId) {
        let Some(flow) = self.flow(id).filter(|flow| flow.state == State::Idle) else { return };
        flow.state = State::Ready;
        let number = flow.user;
        self.ready += 1;
        let user = &mut self.users[number as usize];
        user.ready.push_back(id);
        if !user.has_turn {
            user.has_turn = true;
            self.turns.push_back(number);
        }
    }

    /// A flow that [`Scheduler::next`] has returned has data that its windows do not let it send.
    pub(super) fn block(&mut self, id: FlowId) {
        if let Some(flow) = self.flow(id).filter(|flow| flow.state == State::Idle) {
            flow.state = State::Blocked;
        }
    }

    /// If the flow is blocked, it is ready: it has sent.
    pub(super) fn unblock(&mut self, id: FlowId) {
        if let Some(flow) = self.flow(id).filter(|flow| flow.state == State::Blocked) {
            flow.state = State::Idle;
            self.make_ready(id);
        }
    }

    /// Whether a flow is ready.
    pub(super) fn has_ready(&self) -> bool {
        self.ready > 0
    }

    /// The flow that may send a segment next, which is idle then.
    pub(super) fn next(&mut self) -> Option<FlowId> {
        while let Some(&number) = self.turns.front() {
            let user = &mut self.users[number as usize];
            if user.ready.is_empty() {
                // What it has not used, it does not keep.
                user.credit = user.credit.min(0);
                user.has_turn = false;
                let is_gone = user.flows == 0;
                self.turns.pop_front();
                if is_gone {
                    self.forget(number);
                }
                continue;
            }
            if user.credit <= 0 {
                user.credit += QUANTUM;
                self.turns.rotate_left(1);
                continue;
            }
            let id = user.ready.pop_front()?;
            self.ready -= 1;
            if let Some(flow) = self.flow(id) {
                flow.state = State::Idle;
            }
            return Some(id);
        }
        None
    }

    /// A flow has sent so many bytes.
    pub(super) fn charge(&mut self, id: FlowId, bytes: u32) {
        if let Some(&mut Flow { user, .. }) = self.flow(id) {
            let user = &mut self.users[user as usize];
            user.credit = (user.credit - i64::from(bytes)).max(-LARGEST_DEBT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Side;
    use core::net::Ipv4Addr;

    fn flow(relay: u32) -> FlowId {
        FlowId::new(relay, Side::Client)
    }

    fn user(number: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, number))
    }

    /// The segments of each of `flows` flows, by their users, among `segments` if all have always
    /// something to send.
    fn shares(users: &[(IpAddr, u32)], segments: u32) -> Vec<u32> {
        let mut scheduler = Scheduler::default();
        for (relay, &(address, _)) in users.iter().enumerate() {
            scheduler.add(flow(relay as u32), address);
            scheduler.make_ready(flow(relay as u32));
        }
        let mut shares = vec![0; users.len()];
        for _ in 0..segments {
            let id = scheduler.next().unwrap();
            let bytes = users[id.relay() as usize].1;
            scheduler.charge(id, bytes);
            shares[id.relay() as usize] += bytes;
            scheduler.make_ready(id);
        }
        shares
    }

    #[test]
    fn users_get_equal_shares_whatever_their_connections_and_segments() {
        let mut flows = vec![(user(1), 1500); 10];
        flows.push((user(2), 500));
        let shares = shares(&flows, 4000);
        let first: u32 = shares[..10].iter().sum();
        let second = shares[10];
        assert!(first.abs_diff(second) <= 2 * QUANTUM as u32, "{first} {second}");
        // And the connections of one user get equal shares of its own.
        let [least, most] = [shares[..10].iter().min(), shares[..10].iter().max()];
        assert!(most.unwrap() - least.unwrap() <= 1500, "{shares:?}");
    }

    #[test]
    fn what_a_user_has_sent_without_a_turn_counts_up_to_a_bound() {
        let mut scheduler = Scheduler::default();
        for (relay, address) in [(0, user(1)), (1, user(2))] {
            scheduler.add(flow(relay), address);
        }
        scheduler.charge(flow(0), 10_000_000);
        (0..2).for_each(|relay| scheduler.make_ready(flow(relay)));
        let mut before = 0;
        loop {
            let id = scheduler.next().unwrap();
            if id.relay() == 0 {
                break;
            }
            scheduler.charge(id, 1500);
            scheduler.make_ready(id);
            before += 1500;
        }
        assert!((LARGEST_DEBT..=LARGEST_DEBT + 3 * QUANTUM).contains(&before), "{before}");
    }

    #[test]
    fn an_idle_user_does_not_save_credit() {
        let mut scheduler = Scheduler::default();
        for (relay, address) in [(0, user(1)), (1, user(2))] {
            scheduler.add(flow(relay), address);
        }
        for _ in 0..100 {
            scheduler.make_ready(flow(0));
            let id = scheduler.next().unwrap();
            scheduler.charge(id, 1);
            assert_eq!(scheduler.next(), None);
        }
        (0..2).for_each(|relay| scheduler.make_ready(flow(relay)));
        let mut sent = [0; 2];
        for _ in 0..100 {
            let id = scheduler.next().unwrap();
            scheduler.charge(id, 1000);
            scheduler.make_ready(id);
            sent[id.relay() as usize] += 1;
        }
        assert!(i32::abs(sent[0] - sent[1]) <= 4, "{sent:?}");
    }

    #[test]
    fn a_blocked_flow_is_passed_over_until_it_has_sent() {
        let mut scheduler = Scheduler::default();
        for relay in [0, 1] {
            scheduler.add(flow(relay), user(1));
            scheduler.make_ready(flow(relay));
        }
        assert_eq!(scheduler.next(), Some(flow(0)));
        scheduler.block(flow(0));
        scheduler.make_ready(flow(0));
        assert_eq!([scheduler.next(), scheduler.next()], [Some(flow(1)), None]);
        scheduler.unblock(flow(0));
        assert_eq!(scheduler.next(), Some(flow(0)));
    }

    #[test]
    fn removed_flows_and_their_users_are_forgotten() {
        let mut scheduler = Scheduler::default();
        for round in 0..100 {
            for relay in 0..4 {
                scheduler.add(flow(relay), user(relay as u8 + round));
                scheduler.make_ready(flow(relay));
            }
            let first = scheduler.next().unwrap();
            scheduler.block(first);
            (0..4).for_each(|relay| scheduler.remove(flow(relay)));
            assert_eq!(scheduler.next(), None);
            assert!(!scheduler.has_ready());
        }
        assert!(scheduler.by_address.is_empty() && scheduler.users.len() <= 4);
    }
}
