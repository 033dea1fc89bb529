//! Fades.

use super::{Model, Process, Transmission, Uniform};
use crate::{Fate, Intervals};
use base::{Random, Time};

/// Intervals with other error rates. The time of a packet is the end of its transmission.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fades {
    /// When, and with which error rates.
    pub fades: Intervals<Uniform>,
    /// The error rates at all other times.
    pub otherwise: Uniform,
}

#[derive(Clone, Debug)]
pub(super) struct Course {
    model: Fades,
    present: <Uniform as Model>::Process,
    until: Time,
}

impl Model for Fades {
    type Process = Course;

    fn start(&self, random: &mut Random) -> Course {
        let (fade, until) = self.fades.at(Time::ZERO);
        let present = fade.unwrap_or(&self.otherwise).start(random);
        Course { model: self.clone(), present, until }
    }
}

impl Process for Course {
    fn next(&mut self, packet: Transmission, random: &mut Random) -> Fate {
        if packet.ended >= self.until {
            let (fade, until) = self.model.fades.at(packet.ended);
            // Errors are independent: nothing of the last distances is owed.
            self.present = fade.unwrap_or(&self.model.otherwise).start(random);
            self.until = until;
        }
        self.present.next(packet, random)
    }
}
