//! The events of a run's connections, as lines of JSON.

use crate::failure::RunError;
use base::Time;
use host::ConnectionId;
use scenario::{End, Scenario};
use serde::Serialize;
use sim::{NodeId, World};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tcp::Event;

/// An event, when and where it happened.
#[derive(Serialize)]
struct Line<'a> {
    t_s: f64,
    node: &'a str,
    flow: &'a str,
    #[serde(flatten)]
    event: &'a Event,
}

/// The owners of connections: their nodes and flows.
pub(crate) type Owners = BTreeMap<(NodeId, ConnectionId), (usize, usize)>;

/// The connections at `nodes`, with their owners.
pub(crate) fn owners(
    world: &World<End>,
    nodes: &[NodeId],
) -> impl Iterator<Item = ((NodeId, ConnectionId), (usize, usize))> {
    nodes.iter().flat_map(move |&node| {
        let connections = world.host(node).connections();
        connections.map(move |(id, _, end)| ((node, id), (node.index(), end.flow)))
    })
}

/// Writes the log of a run.
pub(crate) fn write(
    file: &Path,
    scenario: &Scenario,
    owners: &Owners,
    events: &[(Time, NodeId, ConnectionId, Event)],
) -> Result<(), RunError> {
    let lines = || -> io::Result<()> {
        let mut out = BufWriter::new(File::create(file)?);
        for (at, node, id, event) in events {
            let Some(&(node, flow)) = owners.get(&(*node, *id)) else { continue };
            let line = Line {
                t_s: at.as_secs_f64(),
                node: &scenario.nodes[node],
                flow: &scenario.flows[flow].name,
                event,
            };
            serde_json::to_writer(&mut out, &line)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    };
    lines().map_err(|error| RunError::Write { file: file.to_owned(), problem: error.to_string() })
}
