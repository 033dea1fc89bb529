//! The largest packet that a link takes.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::Amount;
use crate::reading::schedule::Schedule;
use crate::reading::shape::{Shape, table};
use base::units::Size;
use link::Intervals;
use serde_json::Value;
use toml::Spanned;

/// The largest packet that a link takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Mtu {
    /// Bytes.
    pub bytes: u32,
    /// Times with another one.
    pub changes: Intervals<u32>,
    /// A packet that is larger is answered by an ICMP message. Otherwise the link is a black hole
    /// for it.
    pub icmp: bool,
}

table! {
    /// Another MTU.
    struct Change {
        /// The largest packet, bytes.
        size: Spanned<Amount>, needed;
    }
}

table! {
    /// The largest packet that a link takes.
    struct Table {
        /// The largest packet, bytes: 68 or more. IPv6 needs 1280.
        size: Spanned<Amount>, needed;
        /// Times with another one.
        changes: Schedule<Change>;
        /// Whether the sender of a larger packet is told. Without ICMP messages, the link is a black
        /// hole for it.
        icmp: bool = true;
    }
}

/// A size, or a table.
#[derive(Debug)]
pub(super) struct Written(Table);

impl Written {
    pub(super) fn resolve(&self) -> Result<Mtu, Problem> {
        let Table { size, changes, icmp } = &self.0;
        let changes = changes.as_ref().map(|changes| changes.resolve(|change| bytes(&change.size)));
        let changes = changes.unwrap_or_else(|| Ok(Intervals::default()))?;
        Ok(Mtu { bytes: bytes(size)?, changes, icmp: *icmp })
    }
}

/// RFC 791 §3.2: every link takes 68 bytes.
fn bytes(size: &Option<Spanned<Amount>>) -> Result<u32, Problem> {
    const EXPECTED: &str = "expected a size from 68 to 65535 bytes, such as \"576 B\"";
    let Some(size) = size else { return Ok(u32::from(u16::MAX)) }; // Reported where it was read.
    match size.get_ref().0 {
        Size::Bytes(bytes @ 68..=65_535) => Ok(bytes as u32),
        _ => Err(Problem::at(size.span(), EXPECTED)),
    }
}

impl Shape for Written {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Written> {
        if node.get_ref().is_table() {
            return Table::read(node, problems).map(Written);
        }
        let size = Some(Spanned::<Amount>::read(node, problems)?);
        Some(Written(Table { size, ..Table::default() }))
    }

    fn schema() -> Value {
        let mut schema = Amount::schema();
        if let Some(forms) = schema["anyOf"].as_array_mut() {
            forms.push(Table::schema());
        }
        schema
    }
}
