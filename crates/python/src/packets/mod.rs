//! What sends real packets, besides the testbed's runs.

mod shell;
mod transfers;

pub(crate) use shell::Shell;
pub(crate) use transfers::{Wanted, run as transfer};
