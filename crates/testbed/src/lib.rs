//! Scenarios on real packets.
//!
//! Every node of a scenario is a network namespace, every link is emulated between two TUN
//! devices in real time, and the ends of flows are those of the lab in hosts of our own stack, or
//! sockets of the kernel's. What comes of it has the lab's format, and says how far it can be
//! trusted.
//!
//! It takes Linux and root. Whatever happens, everything is removed at the end; what a crash left,
//! [`clean`] removes.

#[cfg(target_os = "linux")]
mod addresses;
mod error;
#[cfg(target_os = "linux")]
mod hosts;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod links;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod play;
mod report;
#[cfg(target_os = "linux")]
mod rights;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod settings;

pub use error::Error;
pub use report::{Health, Outcome};

use lab::Scenario;
use std::sync::atomic::AtomicBool;

/// Runs a scenario on real packets, for as long as it lasts, unless `cancelled` becomes true. The
/// seed decides what the links do with the packets that come, and what is random about the
/// traffic. Runs of a process come one after the other.
///
/// # Errors
/// If the platform is another, if the process may not do what it takes, if something of the
/// scenario cannot be set, or if it was cancelled.
pub fn run(scenario: &Scenario, seed: u64, cancelled: &AtomicBool) -> Result<Outcome, Error> {
    #[cfg(target_os = "linux")]
    return run::run(scenario, seed, cancelled);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (scenario, seed, cancelled);
        Err(Error::Platform)
    }
}

/// Removes what runs left that did not come to their end, and says what it removed. What belongs
/// to runs under way stays.
///
/// # Errors
/// If the platform is another, or if something cannot be removed.
pub fn clean() -> Result<Vec<String>, Error> {
    #[cfg(target_os = "linux")]
    {
        rights::check()?;
        let left = live::namespace::list()?.into_iter().filter(|listed| !listed.in_use);
        left.map(|left| Ok(live::namespace::remove(&left.name).map(|()| left.name)?)).collect()
    }
    #[cfg(not(target_os = "linux"))]
    Err(Error::Platform)
}
