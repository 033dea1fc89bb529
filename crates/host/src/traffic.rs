//! The table of applications: what the two ends of a flow's connection do. Besides, datagrams, which
//! need no connection.
//!
//! A new one is a file beside this page and a line in the table below: the settings, with the names
//! that scenario files give them, and the programs at the two ends.

mod bulk;
mod datagrams;

pub use bulk::{Sink, Source};
pub use datagrams::{DatagramFlow, DatagramSink, DatagramSource, Departures, OnOff};
pub use transfer::Pace;

use crate::{Application, Transport};
use base::{Duration, Histogram, Time};
use serde::{Deserialize, Serialize};
use tcp::Events;
use wire::Payload;

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The end whose data the flow is about.
    Sender,
    /// The end that the data is for.
    Receiver,
}

impl Role {
    /// The end on the other side.
    #[must_use]
    pub fn other(self) -> Role {
        match self {
            Role::Sender => Role::Receiver,
            Role::Receiver => Role::Sender,
        }
    }
}

/// Where an application runs.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The name of the bytes in either direction.
    pub stream: u32,
    /// Whether packets carry it.
    pub is_carried: bool,
    /// The start of the flow.
    pub start: Time,
}

impl Place {
    /// A sink for the bytes.
    #[must_use]
    pub fn sink(&self) -> Sink {
        if self.is_carried { Sink::new(self.stream) } else { Sink::of_any() }
    }
}

/// The settings of a kind of application.
pub trait Ends {
    /// The programs at the sender and the receiver.
    fn ends(&self, place: &Place) -> [Traffic; 2];

    /// What is wrong with settings together, each of which is right.
    ///
    /// # Errors
    /// If something is.
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// Which end opens the connection.
    fn opener(&self) -> Role {
        Role::Sender
    }

    /// Whether the whole connection is one transfer, which is timed from its opening to the arrival
    /// of the last byte; the times of others are those in their [`Progress`].
    fn is_transfer(&self) -> bool {
        false
    }

    /// How much a transfer carries, bytes; `None` for no end.
    fn size(&self) -> Option<u64> {
        None
    }

    /// The least that any of its times can be, the reference of slowdown. `carry` gives the time
    /// in which an otherwise idle path carries a number of bytes from an end to the other.
    fn least_time(&self, carry: &dyn Fn(Role, u64) -> Duration) -> Option<Duration> {
        let _ = carry;
        None
    }
}

/// What an application has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress<'a> {
    /// The bytes that have arrived.
    pub sink: Option<&'a Sink>,
    /// Requests or messages that this end has begun.
    pub started: u64,
    /// The times of those of which this end has seen the end, nanoseconds.
    pub times: Option<&'a Histogram>,
}

/// An application that says what it has done.
pub trait Reports {
    /// What it has done so far.
    fn progress(&self) -> Progress<'_> {
        Progress::default()
    }
}

macro_rules! applications {
    ($(
        $(#[$($doc:tt)*])*
        $module:ident :: $Settings:ident { $($End:ident),+ } = $name:literal;
    )+) => {
        $(mod $module;)+
        $(pub use $module::{$Settings, $($End),+};)+

        /// One of the applications, with its settings.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "application")]
        pub enum ApplicationSettings {
            $($(#[$($doc)*])* #[serde(rename = $name)] $Settings($Settings),)+
        }

        impl base::settings::Table for ApplicationSettings {
            const TAG: &'static str = "application";
            const ENTRIES: &'static [base::settings::Entry] =
                &[$(base::settings!(@entry $name $Settings $(#[$($doc)*])*)),+];
        }

        impl ApplicationSettings {
            /// The settings.
            #[must_use]
            pub fn settings(&self) -> &dyn Ends {
                match self { $(ApplicationSettings::$Settings(settings) => settings,)+ }
            }
        }

        $(impl From<$Settings> for ApplicationSettings {
            fn from(settings: $Settings) -> ApplicationSettings {
                ApplicationSettings::$Settings(settings)
            }
        })+

        /// The program at an end of a connection. Those of most connections are at hand, others in
        /// a box.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "the structs have them")]
        pub enum Traffic {
            Source(Source),
            Sink(Sink),
            $($($End(Box<$End>),)+)+
        }

        $($(impl From<$End> for Traffic {
            fn from(end: $End) -> Traffic {
                Traffic::$End(end.into())
            }
        })+)+

        impl Reports for Traffic {
            fn progress(&self) -> Progress<'_> {
                match self {
                    Traffic::Source(end) => end.progress(),
                    Traffic::Sink(end) => end.progress(),
                    $($(Traffic::$End(end) => end.progress(),)+)+
                }
            }
        }

        impl<C: Transport> Application<C> for Traffic {
            #[inline]
            fn handle(&mut self, now: Time, connection: &mut C, events: Events) {
                match self {
                    Traffic::Source(end) => end.handle(now, connection, events),
                    Traffic::Sink(end) => end.handle(now, connection, events),
                    $($(Traffic::$End(end) => end.handle(now, connection, events),)+)+
                }
            }

            #[inline(always)]
            fn take(&mut self, now: Time, payload: Payload) -> bool {
                match self {
                    Traffic::Sink(end) => Application::<C>::take(end, now, payload),
                    // Applications that limit themselves get every event.
                    _ => false,
                }
            }

            #[inline]
            fn next_wake(&self) -> Time {
                match self {
                    Traffic::Source(_) | Traffic::Sink(_) => Time::NEVER,
                    $($(Traffic::$End(end) => Application::<C>::next_wake(&**end),)+)+
                }
            }

            fn wake(&mut self, now: Time, connection: &mut C) {
                match self {
                    Traffic::Source(_) | Traffic::Sink(_) => {}
                    $($(Traffic::$End(end) => end.wake(now, connection),)+)+
                }
            }
        }
    };
}

applications! {
    /// Data in one direction.
    transfer::Transfer { PacedSource, BufferedSource, SlowSink } = "transfer";
    /// Requests over one connection, each after the response to the previous one.
    requests::Requests { Requester, Responder } = "requests";
    /// Messages at regular times, whose delay counts.
    messages::Messages { MessageSource, MessageSink } = "messages";
}

impl From<Source> for Traffic {
    fn from(source: Source) -> Traffic {
        Traffic::Source(source)
    }
}

impl From<Sink> for Traffic {
    fn from(sink: Sink) -> Traffic {
        Traffic::Sink(sink)
    }
}

impl Traffic {
    /// What has arrived.
    #[must_use]
    pub fn sink(&self) -> Option<&Sink> {
        self.progress().sink
    }
}

/// A stream that no simulation exhausts.
const ENDLESS: u64 = 1 << 62;

/// How much of a stream of `size` bytes is left.
fn left(size: Option<u64>, written: u64) -> u64 {
    size.unwrap_or(ENDLESS) - written
}
