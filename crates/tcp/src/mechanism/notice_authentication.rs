//! Authentication, reputation and a rate limit against forged notices (`bbn8333` §6.2, §7.1), for
//! any mechanism that acts on notices.

mod nonce;
mod reputation;

use super::{Hooks, Needs, Outcome, Rules, View};
use crate::Identity;
use base::{Duration, Time};
use nonce::Nonces;
use reputation::Reputation;
use serde::{Deserialize, Serialize};
use wire::{Body, CopyId, Packet};

base::settings! {
    /// The defences. Each is off unless it is turned on.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct NoticeAuthentication {
        /// Copies carry nonces that an off-path attacker cannot guess, and a notice without a valid
        /// nonce is refused.
        pub nonce: bool,
        /// Notices that prove false cost reputation; without reputation, notices are refused.
        pub trust: bool,
        /// The largest number of notices accepted in a round trip; 0 for no limit. Before the first
        /// round-trip sample, a second stands for a round trip.
        pub limit: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<State>,
    }
}

/// The state once the connection has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    nonces: Nonces,
    reputation: Reputation,
    /// Notices accepted since `since`.
    accepted: u32,
    since: Time,
}

impl NoticeAuthentication {
    /// Builds the given defences.
    #[must_use]
    pub fn new(nonce: bool, trust: bool, limit: u32) -> NoticeAuthentication {
        NoticeAuthentication { nonce, trust, limit, state: None }
    }
}

impl State {
    /// Whether the last counting period, a round trip, is over.
    fn is_new_period(&self, view: &View) -> bool {
        view.now.since(self.since) >= view.srtt.unwrap_or(Duration::from_secs(1))
    }
}

impl Rules for NoticeAuthentication {
    const HOOKS: Hooks = Hooks::ADMISSION;
    // It does not improve performance by itself.
    const NEEDS: Needs = Needs::empty();

    fn hooks(&self) -> Hooks {
        let mut hooks = Hooks::empty();
        hooks.set(Hooks::OUTGOING, self.nonce);
        hooks.set(Hooks::OUTCOME, self.trust || self.limit > 0);
        hooks.set(Hooks::ADMISSION, !hooks.is_empty());
        hooks
    }

    fn begin(&mut self, identity: &Identity) {
        self.state = Some(State {
            nonces: Nonces::new(identity.secret),
            reputation: Reputation::default(),
            accepted: 0,
            since: Time::ZERO,
        });
    }

    fn outgoing(&mut self, _view: &View, packet: &mut Packet) {
        if let (Some(state), Body::Tcp(segment)) = (&self.state, &mut packet.body)
            && segment.copy != CopyId::NONE
        {
            segment.copy = state.nonces.of(segment.copy);
        }
    }

    fn admit(&mut self, view: &View, copy: CopyId) -> Option<CopyId> {
        let state = self.state.as_ref()?;
        // Notices without effect change neither limit nor reputation: an attacker who cannot guess
        // the octets in flight cannot silence honest nodes.
        if self.limit > 0 && !state.is_new_period(view) && state.accepted >= self.limit {
            return None;
        }
        if self.trust && !state.reputation.accepts(view.now) {
            return None;
        }
        match copy {
            copy if !self.nonce => Some(copy),
            CopyId::NONE => None,
            nonce => Some(state.nonces.copy(nonce)),
        }
    }

    fn outcome(&mut self, view: &View, outcome: Outcome) {
        if let Some(state) = &mut self.state {
            if outcome == Outcome::Accepted {
                if state.is_new_period(view) {
                    (state.accepted, state.since) = (0, view.now);
                }
                state.accepted += 1;
            }
            state.reputation.on_outcome(view.now, outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Segment;

    fn at(millis: u64) -> View {
        View {
            now: Time::ZERO + Duration::from_millis(millis),
            una: 1,
            nxt: 10_000,
            srtt: Some(Duration::from_millis(100)),
            mss: 1000,
            ..View::default()
        }
    }

    fn guard(nonce: bool, trust: bool, limit: u32) -> NoticeAuthentication {
        let mut guard = NoticeAuthentication::new(nonce, trust, limit);
        guard.begin(&Identity { secret: 0x1234_5678_9abc_def0, ..Identity::default() });
        guard
    }

    #[test]
    fn without_defences_nothing_is_asked() {
        assert_eq!(guard(false, false, 0).hooks(), Hooks::empty());
    }

    #[test]
    fn a_nonce_comes_back_as_the_copy_that_carried_it_and_none_is_not_believed() {
        let mut guard = guard(true, false, 0);
        let mut packet = Packet::BLANK;
        packet.body = Body::Tcp(Segment { copy: CopyId(7), ..Segment::default() });
        guard.outgoing(&at(0), &mut packet);
        let Body::Tcp(Segment { copy: nonce, .. }) = packet.body else { panic!("no segment") };
        assert_ne!(nonce, CopyId(7));
        assert_eq!(guard.admit(&at(0), nonce), Some(CopyId(7)));
        assert_ne!(guard.admit(&at(0), CopyId(7)), Some(CopyId(7)));
        assert_eq!(guard.admit(&at(0), CopyId::NONE), None);
    }

    #[test]
    fn an_acknowledgment_has_no_copy_and_gets_no_nonce() {
        let mut packet = Packet::BLANK;
        packet.body = Body::Tcp(Segment::default());
        guard(true, false, 0).outgoing(&at(0), &mut packet);
        assert_eq!(packet.body, Body::Tcp(Segment::default()));
    }

    #[test]
    fn no_more_than_the_limit_are_believed_in_a_round_trip() {
        let mut guard = guard(false, false, 3);
        let mut believed = |millis| {
            let admitted = guard.admit(&at(millis), CopyId(1)).is_some();
            if admitted {
                guard.outcome(&at(millis), Outcome::Accepted);
            }
            admitted
        };
        let first = (0..10).filter(|&millis| believed(1000 + millis)).count();
        assert_eq!(first, 3);
        assert!(!believed(1099));
        assert!(believed(1100));
    }

    #[test]
    fn notices_that_come_to_nothing_change_no_decision() {
        let decisions = |forged: bool| {
            let mut guard = guard(false, true, 3);
            let mut decided = Vec::new();
            for millis in 0..2000 {
                if forged {
                    guard.admit(&at(millis), CopyId(2));
                }
                if millis % 7 == 0 {
                    let believed = guard.admit(&at(millis), CopyId(1)).is_some();
                    let outcome =
                        if millis % 21 == 0 { Outcome::Refuted } else { Outcome::Confirmed };
                    for outcome in [Outcome::Accepted, outcome].iter().filter(|_| believed) {
                        guard.outcome(&at(millis), *outcome);
                    }
                    decided.push(believed);
                }
            }
            decided
        };
        let undisturbed = decisions(false);
        assert!(undisturbed.contains(&true) && undisturbed.contains(&false));
        assert_eq!(decisions(true), undisturbed);
    }

    #[test]
    fn notices_that_come_to_nothing_do_not_use_up_the_limit() {
        let mut guard = guard(false, true, 1);
        for _ in 0..1000 {
            assert_eq!(guard.admit(&at(1), CopyId(1)), Some(CopyId(1)));
        }
    }
}
