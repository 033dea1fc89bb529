//! Reading values: from the texts of a scenario to values with their places, and from these to what
//! a key can hold.

pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod nearest;
pub(crate) mod path;
pub(crate) mod quantity;
pub(crate) mod schedule;
pub(crate) mod shape;
pub(crate) mod source;
pub(crate) mod tagged;
pub(crate) mod words;
