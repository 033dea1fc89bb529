//! What Python asks for.

use std::net::IpAddr;

/// A transfer, as Python describes it.
#[cfg_attr(
    not(all(target_os = "linux", feature = "packets")),
    allow(dead_code, reason = "there are no transfers")
)]
pub(crate) struct Wanted {
    pub(crate) file: i32,
    pub(crate) sends: bool,
    /// The peer's address and port, or the port of ours to which it connects.
    pub(crate) peer: (Option<IpAddr>, u16),
    pub(crate) address: Option<IpAddr>,
    pub(crate) masquerade: bool,
}
