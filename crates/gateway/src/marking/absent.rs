//! A program that was built without the one for the kernel.

use super::MarkingError;
use crate::Observation;
use middlebox::SpepStation;

/// There is none.
pub(crate) enum Marking {}

pub(crate) fn refusal(_: &str, _: &SpepStation) -> Option<MarkingError> {
    Some(MarkingError::Absent)
}

impl Marking {
    pub(crate) fn start(_: &str, _: &SpepStation) -> Result<Marking, MarkingError> {
        Err(MarkingError::Absent)
    }

    pub(crate) fn observe(&self, _: &mut Observation) -> Result<(), MarkingError> {
        match *self {}
    }
}
