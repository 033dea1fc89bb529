//! The gateway on real packets, in namespaces whose links are emulated.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod attack;
mod capture;
#[cfg(feature = "controls")]
mod cc;
mod clients;
mod common;
mod configuration;
mod control;
mod control_queues;
mod datagrams;
mod doctor;
mod esp;
mod firewall;
mod hop;
mod install;
mod metrics;
mod notify;
mod operation;
mod package;
mod pair;
mod path_mtu;
mod process;
mod reload;
mod roaming;
mod spep;
mod split;
mod spoof;
mod top;
mod upgrade;
mod workers;
