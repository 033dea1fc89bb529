//! lasthop's TCP as a shared object for [packetdrill](https://github.com/google/packetdrill).
//!
//! packetdrill plays scripts against a TCP stack: system calls from above, packets from below. A
//! stack in a shared object takes the place of the kernel's; then time is virtual, too. This one is
//! a [`host::Host`] for IPv4 and one for IPv6, with BSD sockets on top.
//!
//! - [`Stack`]: the hosts, their clock, and system calls on connections.
//! - [`Shared`]: calls that block, and the second thread on which packetdrill makes them.
//! - [`interface`]: the table of C functions.
//!
//! Nothing here depends on a script. The behaviour of the stack is determined by its [`Profile`],
//! which consists of ordinary settings.

mod endpoint;
mod epoll;
mod info;
pub mod interface;
mod memory;
mod options;
mod profile;
mod readiness;
mod shared;
mod socket;
mod sockets;
mod stack;
mod transfer;

pub use profile::{FlagsError, Profile, Setup};
pub use shared::Shared;
pub use socket::{Family, Name};
pub use sockets::Shutdown;
pub use stack::{Sent, Stack};
pub use transfer::{Reading, Writing};
