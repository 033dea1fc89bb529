//! Calls that block, on a clock that does not.
//!
//! packetdrill plays a script on its main thread, and makes system calls that may block on a second
//! thread. Time advances only where the main thread waits: in `usleep` and `netdev_receive`. After
//! every step the main thread yields to the parked call, and continues when the call has ended or
//! still has to wait. The calls thus have the same results in every run, whatever the scheduler
//! does.

use crate::stack::{Sent, Stack};
use base::{Duration, Time};
use rustix::io::Errno;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// A stack that two threads use.
pub struct Shared {
    state: Mutex<State>,
    turn: Condvar,
    /// The thread that advances the time.
    main: ThreadId,
}

struct State {
    stack: Stack,
    parked: Option<Parked>,
    /// When a parked call ended, for its thread's next reading of the time.
    ended: Option<(ThreadId, Time)>,
}

/// A call that waits.
struct Parked {
    /// It is to be retried at this time even without an event.
    until: Time,
    its_turn: bool,
}

/// How long `netdev_receive` waits for a packet.
const PATIENCE: Duration = Duration::from_secs(600);

type Guard<'a> = MutexGuard<'a, State>;

impl Shared {
    /// A shared stack; the calling thread advances the time.
    #[must_use]
    pub fn new(stack: Stack) -> Shared {
        let state = State { stack, parked: None, ended: None };
        Shared { state: Mutex::new(state), turn: Condvar::new(), main: thread::current().id() }
    }

    fn lock(&self) -> Guard<'_> {
        // A panic elsewhere has been reported; the stack is whole between two calls.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, guard: Guard<'a>) -> Guard<'a> {
        self.turn.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that does not block.
    pub fn call<T>(&self, call: impl FnOnce(&mut Stack) -> T) -> T {
        let mut state = self.lock();
        let result = call(&mut state.stack);
        drop(self.give_way(state));
        result
    }

    /// A call that blocks as long as it answers `AGAIN`, if `blocks`: until `timeout` is over, or
    /// for ever. On the main thread nothing blocks.
    ///
    /// # Errors
    /// The call's.
    pub fn wait_for<T>(
        &self,
        blocks: bool,
        timeout: Option<Duration>,
        mut call: impl FnMut(&mut Stack) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let thread = thread::current().id();
        let mut state = self.lock();
        let until = timeout.map_or(Time::NEVER, |timeout| state.stack.now() + timeout);
        loop {
            let result = call(&mut state.stack);
            let now = state.stack.now();
            let waits = blocks && thread != self.main && now < until;
            if !waits || result.as_ref().err() != Some(&Errno::AGAIN) {
                if state.parked.take().is_some() {
                    state.ended = Some((thread, now));
                    self.turn.notify_all();
                }
                return result;
            }
            state.parked = Some(Parked { until, its_turn: false });
            self.turn.notify_all();
            while state.parked.as_ref().is_some_and(|parked| !parked.its_turn) {
                state = self.wait(state);
            }
        }
    }

    /// Whether a call is parked.
    pub fn is_waiting(&self) -> bool {
        self.lock().parked.is_some()
    }

    /// Lets the parked call retry.
    fn give_way<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        if thread::current().id() == self.main
            && let Some(parked) = &mut state.parked
        {
            parked.its_turn = true;
            self.turn.notify_all();
            while state.parked.as_ref().is_some_and(|parked| parked.its_turn) {
                state = self.wait(state);
            }
        }
        state
    }

    /// A packet from the network.
    pub fn receive(&self, bytes: &[u8]) {
        self.call(|stack| stack.receive(bytes));
    }

    /// Advances the time by `time`.
    pub fn sleep(&self, time: Duration) {
        let mut state = self.lock();
        let end = state.stack.now() + time;
        while state.stack.now() < end {
            state = self.step(state, end);
        }
    }

    /// The next packet that the stack sends; none if it sends none for ten minutes.
    pub fn sent(&self) -> Option<Sent> {
        let mut state = self.lock();
        let end = state.stack.now() + PATIENCE;
        while !state.stack.has_sent() && state.stack.now() < end {
            state = self.step(state, end);
        }
        state.stack.sent()
    }

    /// Advances to the next deadline, at most to `end`.
    fn step<'a>(&'a self, mut state: Guard<'a>, end: Time) -> Guard<'a> {
        let until = state.parked.as_ref().map_or(Time::NEVER, |parked| parked.until);
        let next = state.stack.due().min(until).min(end);
        state.stack.advance(next);
        self.give_way(state)
    }

    /// The time; each call advances it by a microsecond. A thread whose call was parked gets, once,
    /// the time at which that call ended.
    pub fn time(&self) -> Time {
        let mut state = self.lock();
        match state.ended {
            Some((thread, at)) if thread == thread::current().id() => {
                state.ended = None;
                at
            }
            _ => {
                state.stack.tick(Duration::from_micros(1));
                state.stack.now()
            }
        }
    }
}
