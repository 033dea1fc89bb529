//! Scenarios on real packets.
//!
//! Every node of a scenario is a network namespace, every link is emulated between two TUN
//! devices in real time, and the ends of flows are the lab's applications on hosts of our own stack, or
//! sockets of the kernel. The results have the lab's format, and say how well the machine kept up.
//!
//! The testbed needs Linux and root. A run removes everything that it made; [`clean`] removes what a
//! crash left.

mod error;
mod report;

macro_rules! packets {
    ($($item:item)*) => { $(#[cfg(all(target_os = "linux", feature = "packets"))] $item)* };
}

packets! {
    mod addresses;
    mod emulation;
    mod hosts;
    mod kernel;
    mod links;
    mod network;
    mod run;
    mod settings;
    mod shell;
    mod state;

    pub use emulation::Emulation;
    pub use links::LinkSockets;
    pub use shell::{End, Shell, Wanted};
}

pub use error::Error;
pub use report::{Health, Outcome};

use scenario::Scenario;
use std::sync::atomic::AtomicBool;

/// Runs a scenario on real packets, in real time, unless `cancelled` becomes true. The seed determines
/// the random behaviour of links and traffic. These runs of a process are sequential.
///
/// # Errors
/// If there is no testbed here, if the process lacks privileges, if the kernel rejects a setting of the
/// scenario, or if the run was cancelled.
pub fn run(scenario: &Scenario, seed: u64, cancelled: &AtomicBool) -> Result<Outcome, Error> {
    #[cfg(all(target_os = "linux", feature = "packets"))]
    return run::run(scenario, seed, cancelled);
    #[cfg(not(all(target_os = "linux", feature = "packets")))]
    {
        let _ = (scenario, seed, cancelled);
        Err(Error::Absent)
    }
}

/// Runs a scenario as [`run`] does, but at the same time as other runs of the process. The names of
/// its namespaces have this label, by which they differ from those of the other runs.
///
/// # Errors
/// As [`run`], and if a run with this label is in progress.
pub fn run_beside(
    scenario: &Scenario,
    seed: u64,
    label: &str,
    cancelled: &AtomicBool,
) -> Result<Outcome, Error> {
    #[cfg(all(target_os = "linux", feature = "packets"))]
    return run::run_beside(scenario, seed, Some(label), cancelled);
    #[cfg(not(all(target_os = "linux", feature = "packets")))]
    {
        let _ = (scenario, seed, label, cancelled);
        Err(Error::Absent)
    }
}

/// Removes what crashed runs and transfers left, and returns the names of what it removed. Those in
/// progress keep what is theirs.
///
/// # Errors
/// If there is no testbed here, or if something cannot be removed.
pub fn clean() -> Result<Vec<String>, Error> {
    #[cfg(all(target_os = "linux", feature = "packets"))]
    {
        run::check_rights()?;
        let left = live::namespace::list()?.into_iter().filter(|listed| !listed.in_use);
        // Programs that a killed `Shell` has left.
        const PATIENCE: base::Duration = base::Duration::from_secs(2);
        let clear = |name: &str| live::namespace::clear(name, PATIENCE);
        let removed = left.map(|left| Ok(clear(&left.name).map(|()| left.name)?));
        let mut removed = removed.collect::<Result<Vec<String>, Error>>()?;
        let undone = live::transfer::clean().map_err(|error| Error::System(error.to_string()))?;
        removed.extend(undone);
        Ok(removed)
    }
    #[cfg(not(all(target_os = "linux", feature = "packets")))]
    Err(Error::Absent)
}
