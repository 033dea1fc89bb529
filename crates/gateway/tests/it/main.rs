//! The gateway on real packets, in namespaces whose links are emulated.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod attack;
mod capture;
mod clients;
mod common;
mod configuration;
mod control;
mod doctor;
mod install;
mod metrics;
mod operation;
mod pair;
mod process;
mod split;
mod spoof;
mod upgrade;
