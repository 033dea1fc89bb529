//! The lab: runs scenarios and sweeps, and returns rows of results.
//!
//! A scenario and a seed make a run ([`run`]), and a run an [`Outcome`]: rows, and time series on
//! request. An experiment makes many runs ([`sweep`]).
//!
//! This crate does not depend on publications; values derived from rows are computed elsewhere.

mod account;
mod capture;
mod deliveries;
mod failure;
mod ideal;
mod journal;
mod ledger;
mod log;
mod ordered;
mod outcome;
mod row;
mod run;
mod series;
mod supervise;
mod sweep;
mod table;
mod threads;
mod watch;
mod world;

pub use account::{Account, Counts, Pairing, Part};
pub use capture::Capture;
pub use failure::{RunError, SweepError};
pub use journal::{Journal, JournalError};
pub use ledger::{Accounts, Ledger};
pub use outcome::{BoxCount, BoxDrops, Outcome, Paths, Totals};
pub use row::{Delivery, Distributions, Row, Spread, Tail};
pub use run::run;
pub use series::Series;
pub use supervise::{Monitor, supervise};
pub use sweep::{Seeds, check, columns, part, record, sweep};
pub use table::{Column, Numbers, Table};
pub use watch::Watch;
