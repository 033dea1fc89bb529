//! Associations over a modelled hop.

mod behaviour;
mod exchange;
mod goodput;
mod hop;
mod hostile;
mod renewal;
mod world;
