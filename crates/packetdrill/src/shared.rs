//! Calls that block, on a clock that does not.
//!
//! packetdrill plays a script on its main thread and makes system calls that may block on one more.
//! Time moves only where the main thread waits for it: in `usleep` and `netdev_receive`. So after
//! every step the main thread gives way to the call that is parked, and goes on when that is done
//! or has found that it must wait on. What the calls see is thus the same in every run, whatever
//! the scheduler does.

use crate::stack::{Sent, Stack};
use base::{Duration, Time};
use rustix::io::Errno;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// A stack that two threads use.
pub struct Shared {
    state: Mutex<State>,
    turn: Condvar,
    /// The one that moves the time.
    main: ThreadId,
}

struct State {
    stack: Stack,
    parked: Option<Parked>,
    /// A call that was parked has ended then, for the thread to read when it asks for the time.
    ended: Option<(ThreadId, Time)>,
}

/// A call that waits.
struct Parked {
    /// It wants to be asked at this time even if nothing happens.
    until: Time,
    its_turn: bool,
}

/// How long `netdev_receive` waits for a packet.
const PATIENCE: Duration = Duration::from_secs(600);

type Guard<'a> = MutexGuard<'a, State>;

impl Shared {
    /// The thread that calls this moves the time.
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

    /// The call that is parked has a look.
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

    /// Lets `time` go by.
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

    /// Moves on to what is due next, at most to `end`.
    fn step<'a>(&'a self, mut state: Guard<'a>, end: Time) -> Guard<'a> {
        let until = state.parked.as_ref().map_or(Time::NEVER, |parked| parked.until);
        let next = state.stack.due().min(until).min(end);
        state.stack.advance(next);
        self.give_way(state)
    }

    /// The time; it goes on by a microsecond whenever it is asked for. A thread whose call was
    /// parked is told, once, when that has ended.
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
