//! Tokens of associations that are over.

use base::{Duration, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The tokens of the associations that have ended last.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Until when each is remembered.
    tokens: FxHashMap<u32, Time>,
    /// In the order in which they are forgotten.
    queue: VecDeque<u32>,
}

impl Ended {
    /// No packet is older (the maximum segment lifetime of RFC 9293 §3.4.2).
    const LIFETIME: Duration = Duration::from_secs(120);
    const MOST: usize = 4096;

    pub(super) fn contains(&self, now: Time, token: u32) -> bool {
        self.tokens.get(&token).is_some_and(|&until| now < until)
    }

    pub(super) fn insert(&mut self, now: Time, token: u32) {
        if self.tokens.insert(token, now + Ended::LIFETIME).is_some() {
            self.queue.retain(|&queued| queued != token);
        }
        self.queue.push_back(token);
        while let Some(oldest) = self.queue.front()
            && (self.queue.len() > Ended::MOST || !self.contains(now, *oldest))
            && let Some(oldest) = self.queue.pop_front()
        {
            self.tokens.remove(&oldest);
        }
    }
}
