//! What damages packets: the error models.

use super::super::quantity::Probability;
use crate::error::Problem;
use crate::shape::table;
use link::{ErrorModel, Uniform};
use toml::Spanned;

table! {
    /// Errors of one direction.
    pub(super) struct Errors {
        /// The probability that a bit is wrong, each on its own: a packet with a wrong bit arrives
        /// and is detected.
        bit: Probability;
        /// The probability that a packet vanishes.
        packet: Probability;
    }
}

pub(super) fn resolve(errors: &Spanned<Errors>) -> Result<ErrorModel, Problem> {
    let Errors { bit, packet } = errors.get_ref();
    let written = |p: &Option<Probability>| p.map_or(0.0, |p| p.0);
    Ok(Uniform { bit: written(bit), packet: written(packet) }.into())
}
