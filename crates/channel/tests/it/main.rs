//! Channels over a modelled network.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod behaviour;
mod exchange;
mod hostile;
mod path_mtu;
mod world;
