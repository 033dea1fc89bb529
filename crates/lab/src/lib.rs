//! From scenario files to rows: what is run, how often, and what comes of it.
//!
//! - A [`Source`] is a scenario file (TOML), with what is put into it from outside;
//!   an [`Experiment`] is what it says.
//! - Its `[sweep]` makes *points* of it; each is a valid [`Scenario`].
//! - A scenario and a seed make a run, and a run an [`Outcome`]: rows, and time series on request.
//!
//! What is wrong in a file is told as a [`ScenarioError`], which points at the place. This crate
//! knows no publication; whatever is derived from rows is another's business.

mod account;
mod attacks;
mod capture;
mod document;
mod error;
mod experiment;
mod failure;
mod files;
mod grid;
mod ideal;
mod journal;
mod ledger;
mod line;
mod log;
mod nearest;
mod outcome;
mod path;
mod profile;
mod remedies;
mod reports;
mod row;
mod run;
mod scenario;
mod schema;
mod shape;
mod source;
mod stage;
mod supervise;
mod sweep;
mod table;
mod tunnels;
mod watch;
mod world;

pub use account::{Account, Counts, Pairing, Part};
pub use capture::Capture;
pub use error::{Finding, ScenarioError, Style};
pub use experiment::Experiment;
pub use failure::RunError;
pub use journal::{Journal, JournalError};
pub use ledger::{Accounts, Ledger};
pub use outcome::{Outcome, Paths, Series, Totals};
pub use profile::{Defaults, InitialSsthresh, Profile, Window};
pub use remedies::{Remedy, remedies};
pub use reports::at as reporters_at;
pub use row::{Delivery, Row, Spread};
pub use run::run;
pub use scenario::{
    Attachments, Attack, AttackKind, Ceten, Coding, Corrupted, Corruption, Datagrams, Flow,
    Headers, Hop, IpVersion, Link, Method, Pace, Report, Routes, Scenario, Sending, Stack, Stacks,
    Testbed, Traffic, Transfer, Transport, Tunnel, TunnelNotices, Workload,
};
pub use schema::schema;
pub use source::{Source, Value};
pub use stage::{End, Errand, Stage, bytes_of, enact, port};
pub use supervise::{Monitor, supervise};
pub use sweep::{Seeds, SweepError, check, columns, part, record, sweep};
pub use table::{Column, Table};
pub use watch::Watch;
