//! ESP tunnels between gateways (RFC 4303 §3.1.2), and notices of corruption through them
//! (`bbn8333` §7.2).
//!
//! Nodes between the gateways see an outer IP header and that of ESP. Lengths and numbers are those
//! of AES-GCM with an integrity check value of 16 bytes (RFC 4106); nothing is encrypted: the inner
//! packet is kept beside the outer one, in the [`Association`] of both gateways.

mod association;
mod egress;
mod ingress;

pub use association::{Association, Ends};
pub use egress::Egress;
pub use ingress::Ingress;

#[cfg(test)]
mod tests;
