//! The authenticated, encrypted datagram channel between two gateways, as a plain state machine.
//!
//! Datagrams and the time go in; datagrams, opened payloads, events and the next deadline come out. It opens no
//! socket and reads no clock; randomness is an argument ([`Entropy`]). The caller drives a [`Channel`] so:
//! [`handle_datagram`](Channel::handle_datagram) for what arrives, [`seal`](Channel::seal) for what is to be
//! sent, [`handle_timeout`](Channel::handle_timeout) at [`poll_timeout`](Channel::poll_timeout), and after
//! each of them [`poll_event`](Channel::poll_event) and [`poll_transmit`](Channel::poll_transmit) until there
//! is nothing. Payloads may be lost, duplicated and reordered on their way; each is opened at most once.
//!
//! The design follows WireGuard (Donenfeld, NDSS 2017): a handshake of one round trip, numbered packets, a
//! window against replays, sessions that are replaced every two minutes, a peer that may move.
//!
//! # Handshake
//! `Noise_KKpsk0_25519_AESGCM_BLAKE2s`. Both static keys are known before (KK), so none is sent and only
//! the holder of a configured key is ever answered; IK is for a responder that learns who calls. The
//! preshared key (zeros if there is none) is mixed in first, and so protects both messages. Session keys
//! depend on ephemeral keys of both ends: recorded traffic stays secret when static keys leak later.
//! AES-256-GCM is chosen because it takes a third of the time of RustCrypto's ChaCha20-Poly1305 on
//! processors that have instructions for AES; without these it is in constant time, and slower.
//!
//! Either end may initiate, both at once, too. The initiator sends on the new session when it has the
//! response. The responder, which cannot know whether the initiation was a replay, does so when a
//! packet of the session has arrived; the initiator sends a probe at once. Packets of earlier sessions are
//! opened until these end: nothing is lost when sessions are replaced. That is after
//! [`Config::rekey_after`], after [`Config::rekey_after_packets`], and when the peer does not answer.
//!
//! Handshake messages carry the sender's *instance*, a random number that lasts as long as its state. A new
//! one is reported as [`Event::PeerRestarted`], and sessions with the earlier one end.
//!
//! # Format
//! Numbers are in network byte order. The first byte of a datagram is the version, 2; the second is the type.
//! Others are counted and ignored.
//!
//! | type | after version and type | bytes |
//! | --- | --- | --- |
//! | 1 initiation | timestamp 8, Noise message 60, code 16 | 86 |
//! | 2 response | receiver's index 4, Noise message 60, code 16 | 82 |
//! | 3 stale | code of the initiation 16, newest timestamp 8, code 16 | 42 |
//! | 4 data | receiver's index 4, number 4, code 4, payload, tag 16 | payload + 30 |
//! | 5 probe | the same | payload + 30 |
//! | 6 path probe | the same, with padding for payload | its length |
//! | 7 path answer | the same, with the length of a path probe, 2, for payload | 32 |
//! | 8 part | the same, with number 4, part 1 and parts 1 before the bytes | payload + 36 |
//!
//! - *Noise message*: ephemeral public key 32, then encrypted the index 4 that the sender chose for packets to
//!   it, and its instance 8, and the tag 16. The prologue is `lasthop channel 2` and the header of the
//!   initiation (version, type, timestamp).
//! - *code* of a handshake message: the first 16 bytes of HMAC-BLAKE2s over all that precedes it. Its key is
//!   HMAC(HMAC(X25519 of the static keys, `lasthop channel 2` and the preshared key), the sender's public key).
//! - *timestamp*: nanoseconds since 1970 by the initiator's clock, but more than in each initiation before.
//!   An end answers only initiations newer than each before. To one that is older it replies *stale*,
//!   so that a clock that is behind costs one more round trip and no more.
//! - *number*: that of the packet in its session and direction, from 0; it is the nonce (8 bytes of zero,
//!   then the number). The header, 14 bytes, is the associated data.
//! - *code* of the others: the lower half of SipHash-2-4 over index and number. Its key is the first 16 bytes of
//!   HMAC-BLAKE2s over `lasthop codes 2` with the direction's key. It saves the receiver the work of the tag, and
//!   a program in its kernel can check it ([`Channel::poll_sessions`]).
//! - A *probe* is answered with a packet, data without payload if there is nothing else. Packets without
//!   payload are not handed up.
//! - A *path probe* is answered with its length. No router may fragment it. Answers show how long datagrams may be
//!   (RFC 8899): [`Config::datagrams`].
//! - A payload that is too long for a datagram is sent in *parts*: its number, that of the part from 0 on, and how many
//!   there are. It is handed up when all have arrived; eight may be incomplete at a time.
//!
//! # What a flood costs
//! A datagram that its sender could not authenticate changes no state but a count, and allocates nothing.
//! In nanoseconds on one 2020s x86-64 core (`examples/speed.rs`):
//!
//! | datagram | work | ns |
//! | --- | --- | --- |
//! | unknown version, type or session, wrong length | none | 10 |
//! | number that has arrived | a look at a bitmap | 10 |
//! | forged data, with the index of a session, which only those on the path know | one code of 8 bytes | 30 |
//! | a packet of the peer's, with 1400 bytes, that was changed on its way | one tag | 600 |
//! | forged handshake message | one code of 70 bytes | 800 |
//! | replayed initiation | one code, and a reply of half its size with another | 1600 |
//! | recorded initiation after a restart of the receiver that had no handshake since | a response, at most 20 a second | 400,000 |
//!
//! Cookies, which WireGuard needs as anyone may know a public key and make it compute, have no use
//! here: without one of the two private keys, no code is right, and a code that is right makes an end
//! compute once. An attacker on the path can suppress packets, and can have packets sent to an address from
//! which it forwards the peer's packets, as long as it does so.
//!
//! # Addresses
//! Packets go to where the highest-numbered packet of the latest session came from. While
//! handshakes are not answered, every second initiation goes to [`Config::address`].
//!
//! # Memory of secrets
//! Static, preshared, ephemeral and session keys are wiped when they are dropped. snow keeps the preshared key and
//! a chaining key during a handshake and does not wipe them.

mod channel;
mod code;
mod config;
mod entropy;
mod handshake;
mod key;
mod liveness;
mod noise;
mod packet;
mod parts;
mod path_mtu;
mod session;
mod sessions;
pub mod stream;
mod window;

pub use channel::Channel;
pub use code::CodeKey;
pub use config::{Config, ConfigError, Event, SealError, Statistics};
pub use entropy::{Entropy, system_entropy};
pub use key::{KeyError, PresharedKey, PublicKey, SecretKey};
pub use noise::HANDSHAKE;
pub use packet::HEADER;
pub use session::{Recognition, TAG};

/// Bytes that sealing adds to each payload.
pub const OVERHEAD: usize = HEADER + TAG;
