//! Associations over a modelled hop.

mod exchange;
mod goodput;
mod hop;
mod hostile;
mod world;
