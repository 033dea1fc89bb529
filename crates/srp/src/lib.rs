//! SRP, a selective-repeat transport for one lossy hop (`yavatkar1994` §2.3), as a plain state machine.
//!
//! PDUs and the time go in; PDUs, events and the next deadline come out. It opens no socket, reads no
//! clock and draws no random number.
//!
//! An [`Association`] joins the two ends of the hop. It carries many streams, each of which stands for a
//! connection, as a transport of its own ([`Stream`]): with set-up, data in both directions, half-close, reset
//! and flow control by its receiver's free buffer. Segments are numbered, acknowledged and retransmitted
//! in the association, so that all streams together have one estimate of rate, loss and round trip; bytes
//! are put in order in each stream, so that a loss in one never delays another. A stream alone is the
//! published case.
//!
//! The receiver's selective acknowledgment names the segment that arrived last, and shows in a bitmap
//! which are missing. The sender retransmits all of these at once, except those whose last copy was sent
//! later than the one that arrived. Losses say nothing of congestion, for the hop is dedicated, unless
//! [`Config::share`] says otherwise: the sender keeps to the rate of the hop, which is known or measured.

mod association;
mod bits;
mod config;
mod pacing;
mod receiver;
mod rtt;
mod sender;
mod stream;

pub use association::{AdoptError, Association, Snapshot, Statistics, Stream};
pub use config::Config;
pub use stream::StreamId;
pub use wire::srp::{Ends, Reason};
