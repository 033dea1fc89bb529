//! Keep-alive probes.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Count, Written};
use crate::reading::shape::{Shape, table, unexpected};
use base::Duration;
use serde_json::{Value, json};
use toml::Spanned;

/// As written.
#[derive(Debug)]
pub(crate) enum KeepAlive {
    Off,
    On(Table),
}

table! {
    /// Keep-alive probes to a silent peer (RFC 9293 §3.8.4).
    pub(crate) struct Table {
        /// Silence before the first probe; two hours if absent.
        idle: Spanned<Written<Duration>>;
        /// Between probes; 75 seconds if absent.
        interval: Spanned<Written<Duration>>;
        /// Unanswered probes after which the connection is aborted; 9 if absent.
        probes: Spanned<Count>;
    }
}

impl Shape for KeepAlive {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<KeepAlive> {
        match node.get_ref().as_str() {
            Some("off") => Some(KeepAlive::Off),
            _ if node.get_ref().is_table() => Table::read(node, problems).map(KeepAlive::On),
            _ => unexpected(node, "\"off\" or { idle = \"2 h\", ... }", problems),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "const": "off" }, Table::schema()] })
    }
}

/// Keep-alive settings, checked; those that are left out are the RFC's.
pub(crate) fn resolve(written: Option<KeepAlive>) -> Result<Option<tcp::KeepAlive>, Problem> {
    let Some(KeepAlive::On(table)) = written else { return Ok(None) };
    let default = tcp::KeepAlive::default();
    let span = |written: Option<Spanned<Written<Duration>>>, default| match written {
        None => Ok(default),
        Some(written) if written.get_ref().0 == Duration::ZERO => {
            Err(Problem::at(written.span(), "expected more than 0 s"))
        }
        Some(written) => Ok(written.get_ref().0),
    };
    let probes = match table.probes {
        None => default.probes,
        Some(written) => u32::try_from(written.get_ref().0)
            .map_err(|_| Problem::at(written.span(), format!("expected at most {}", u32::MAX)))?,
    };
    Ok(Some(tcp::KeepAlive {
        idle: span(table.idle, default.idle)?,
        interval: span(table.interval, default.interval)?,
        probes,
    }))
}
