//! The version of IP.

use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::shape::{Shape, integer, unexpected};
use serde_json::{Value, json};

/// A version of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(into = "u8")]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl From<IpVersion> for u8 {
    fn from(version: IpVersion) -> u8 {
        match version {
            IpVersion::V4 => 4,
            IpVersion::V6 => 6,
        }
    }
}

impl Shape for IpVersion {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<IpVersion> {
        match integer(node) {
            Some(4) => Some(IpVersion::V4),
            Some(6) => Some(IpVersion::V6),
            _ => unexpected(node, "4 or 6", problems),
        }
    }

    fn schema() -> Value {
        json!({ "enum": [4, 6] })
    }
}
