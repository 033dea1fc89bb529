//! Randomness, which the caller provides.

/// A cryptographically secure source of random bytes: keys are made of them.
pub trait Entropy {
    /// 32 bytes, or `None` if there are none now; the channel tries again later.
    fn draw(&mut self) -> Option<[u8; 32]>;
}

impl<F: FnMut() -> Option<[u8; 32]>> Entropy for F {
    fn draw(&mut self) -> Option<[u8; 32]> {
        self()
    }
}

/// Random bytes of the operating system: the [`Entropy`] of every channel outside tests.
#[must_use]
pub fn system_entropy() -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok().map(|()| bytes)
}
