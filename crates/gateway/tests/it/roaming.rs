//! Modes `station` and `mobile`: a mobile host moves between base stations, and keeps its connections.

mod channel;
mod handoffs;
mod many;
mod network;
mod outages;
mod stations;
mod transfers;
