//! x

mod channel;
mod config;
mod entropy;
mod handshake;
mod key;
mod liveness;
mod noise;
mod packet;
mod session;
mod sessions;
mod window;

pub use channel::Channel;
pub use config::{Config, ConfigError, Event, SealError, Statistics};
pub use entropy::{Entropy, system_entropy};
pub use key::{KeyError, PresharedKey, PublicKey, SecretKey};
pub use packet::HEADER;
pub use session::TAG;

/// Bytes that sealing adds to each payload.
pub const OVERHEAD: usize = HEADER + TAG;
