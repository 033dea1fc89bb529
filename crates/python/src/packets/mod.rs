//! What sends real packets, besides the testbed's runs.

mod shell;
mod transfers;

pub(crate) use shell::Shell;
pub(crate) use transfers::run as transfer;
