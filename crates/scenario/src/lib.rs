//! Scenario files: parsed, checked, and as a schema.
//!
//! - A [`Source`] is a scenario file (TOML) with the values that override its own;
//!   [`Experiment::read`] reads it.
//! - Its `[sweep]` makes *points*; each is a [`Scenario`].
//! - [`install`] installs the applications of a scenario's flows on hosts, [`install_boxes`] its boxes
//!   in nodes.
//!
//! The problems of a file are a [`ScenarioError`], which points at their places.

mod alone;
mod attachments;
mod attacks;
mod boxes;
mod ceten;
mod experiment;
mod flow;
mod gateway;
mod grid;
mod latency;
mod links;
mod loss_meters;
mod node_boxes;
mod nodes;
mod placement;
mod reading;
mod refusals;
mod remedies;
mod routes;
mod scenario;
mod schema;
mod testbed;
mod tunnels;

pub use alone::connection_settings;
pub use attacks::{Attack, Blind, Method};
pub use boxes::{Installed, install_boxes};
pub use experiment::Experiment;
pub use flow::{
    Coding, Corruption, Datagrams, Defaults, Flow, Headers, InitialSsthresh, IpVersion, Profile,
    RateControl, ReceiveBuffer, Report, Stack, Stacks, Traffic, Transport, Window, Workload,
};
pub use gateway::{DataPath, Esp, EspHost, Gateway, LabHop, Mode, Notifier, Peer, Work};
pub use grid::SweptValues;
pub use latency::Latency;
pub use links::{Link, Mtu};
pub use node_boxes::NodeBox;
pub use placement::{
    End, Endpoint, Placement, TransferSpec, address_number, bytes_of, install, port,
};
pub use reading::error::{Finding, ScenarioError, Style};
pub use reading::source::{Source, Value};
pub use remedies::{Means, Place, Remedy, Setting, box_remedies, queue_remedies, remedies};
pub use routes::{Hop, Routes};
pub use scenario::Scenario;
pub use schema::schema;
pub use testbed::{Corrupted, Testbed};
pub use tunnels::{Tunnel, TunnelNotices};
