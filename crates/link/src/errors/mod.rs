//! The table of error models.
//!
//! A new model is a file in this directory and a line in the table below.

use crate::Fate;
use base::{Random, Time};

/// What an error model does to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// It is lost without an indication.
    #[default]
    Loss,
    /// It arrives, and the node at the end detects the damage.
    Corruption,
}

impl From<Damage> for Fate {
    fn from(damage: Damage) -> Fate {
        match damage {
            Damage::Loss => Fate::Lost,
            Damage::Corruption => Fate::Corrupted,
        }
    }
}

/// A packet that has been transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// When its first bit was sent.
    pub began: Time,
    /// When its last bit was sent.
    pub ended: Time,
    /// Its bytes.
    pub len: u32,
    /// The number of wrong bytes that its own code corrects. No code corrects the damage of models
    /// that damage whole packets.
    pub corrects: u8,
}

/// The settings of an error process.
trait Model {
    type Process: Process;

    /// The process from time zero on.
    fn start(&self, random: &mut Random) -> Self::Process;
}

/// The fates of successive packets.
///
/// Instead of a random number per packet, processes draw the distance to the next error wherever
/// there is one.
trait Process {
    /// The fate of the next packet.
    fn next(&mut self, packet: Transmission, random: &mut Random) -> Fate;

    /// How many of the next packets, if all have `len` bytes, are certain to be intact, whenever
    /// they are sent.
    fn clear(&self, _len: u32) -> u64 {
        0
    }

    /// Advances by this number of sent packets, at most [`Process::clear`].
    fn skip(&mut self, _packets: u64, _len: u32) {}
}

macro_rules! error_models {
    ($($(#[$doc:meta])* $module:ident :: $Model:ident = $name:literal;)+) => {
        $(mod $module;)+
        $(pub use $module::$Model;)+

        /// The errors of one direction of a link.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ErrorModel {
            $($(#[$doc])* $Model($Model),)+
        }

        impl ErrorModel {
            /// Every model's name.
            pub const NAMES: &[&str] = &[$($name),+];

            /// This model's name.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(ErrorModel::$Model(_) => $name,)+ }
            }

            fn start(&self, random: &mut Random) -> Running {
                match self { $(ErrorModel::$Model(model) => Running::$Model(model.start(random)),)+ }
            }
        }

        $(impl From<$Model> for ErrorModel {
            fn from(model: $Model) -> ErrorModel {
                ErrorModel::$Model(model)
            }
        })+

        #[derive(Clone, Debug)]
        enum Running {
            $($Model(<$Model as Model>::Process),)+
        }

        impl Running {
            #[inline(never)]
            fn next(&mut self, packet: Transmission, random: &mut Random) -> Fate {
                match self { $(Running::$Model(process) => process.next(packet, random),)+ }
            }

            #[inline(never)]
            fn clear(&self, len: u32) -> u64 {
                match self { $(Running::$Model(process) => process.clear(len),)+ }
            }

            #[inline(never)]
            fn skip(&mut self, packets: u64, len: u32) {
                match self { $(Running::$Model(process) => process.skip(packets, len),)+ }
            }
        }
    };
}

error_models! {
    /// Every bit and every packet on its own.
    uniform::Uniform = "uniform";
    /// A channel with a good and a bad state.
    gilbert_elliott::GilbertElliott = "gilbert-elliott";
    /// Runs of damaged packets, with gaps between them.
    bursts::Bursts = "bursts";
    /// Times of another error rate.
    fades::Fades = "fades";
    /// Which packets are damaged, one by one.
    trace::PacketTrace = "trace";
}

pub use bursts::Gap;
pub use trace::{DamagedPacket, PacketTraceError};

impl Default for ErrorModel {
    /// No errors.
    fn default() -> ErrorModel {
        ErrorModel::Uniform(Uniform::default())
    }
}

/// The error process of one direction.
#[derive(Clone, Debug)]
pub struct Errors {
    running: Running,
    /// No error is possible.
    never: bool,
    random: Random,
}

impl Errors {
    /// The process with its own stream of randomness.
    #[must_use]
    pub fn new(model: &ErrorModel, mut random: Random) -> Errors {
        let running = model.start(&mut random);
        Errors { running, never: *model == ErrorModel::default(), random }
    }

    /// How many of the next packets, if all are of `len` bytes, are certain to be intact.
    #[inline]
    pub(crate) fn clear(&self, len: u32) -> u64 {
        match &self.running {
            _ if self.never => u64::MAX,
            Running::Uniform(process) => process.clear(len),
            running => running.clear(len),
        }
    }

    /// The next so many packets of `len` bytes, no more than [`Errors::clear`] says, have been
    /// transmitted without asking for their fates.
    #[inline]
    pub(crate) fn skip(&mut self, packets: u64, len: u32) {
        match &mut self.running {
            _ if self.never => {}
            Running::Uniform(process) => process.skip(packets, len),
            running => running.skip(packets, len),
        }
    }

    /// The fate of the next packet, which has been transmitted after the last: whether it is intact,
    /// corrected, corrupted or lost.
    #[inline]
    pub fn next(&mut self, packet: Transmission) -> Fate {
        if self.never {
            return Fate::Intact;
        }
        match &mut self.running {
            // The usual one is not worth a call.
            Running::Uniform(process) => process.next(packet, &mut self.random),
            running => running.next(packet, &mut self.random),
        }
    }
}

#[cfg(test)]
mod tests;
