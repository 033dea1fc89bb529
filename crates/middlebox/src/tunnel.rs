//! ESP tunnels between gateways (RFC 4303 §3.1.2), and notices of corruption through them
//! (`bbn8333` §7.2).
//!
//! Nodes between the gateways see an outer IP header and the ESP header. Lengths and numbers are those
//! of AES-GCM with a 16-byte integrity check value (RFC 4106). Nothing is encrypted: the
//! [`Association`] of both gateways holds the inner packets.

mod association;
mod egress;
mod ingress;

pub use association::{Association, Ends};
pub use egress::Egress;
pub use ingress::Ingress;

#[cfg(test)]
mod tests;
