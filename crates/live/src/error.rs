//! What can go wrong with the system.

use std::io;

/// The system refused something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{action}: {source}")]
    System {
        /// What was to be done.
        action: String,
        /// Why it was not.
        source: io::Error,
    },
    /// The kernel answered a netlink request with an error.
    #[error("{action}: {source}")]
    Netlink {
        /// What was to be done.
        action: String,
        /// Why it was not.
        source: Box<rtnetlink::Error>,
    },
    /// There is no such network device in the namespace.
    #[error("no network device is called {0:?} here")]
    NoDevice(String),
    /// A namespace's name is part of a path and of other names.
    #[error("expected a name of letters, digits, '-', '_' and '.', got {0:?}")]
    Name(String),
    /// The thread that was asked has ended.
    #[error("the stack has stopped")]
    Stopped,
}

/// Says what was to be done when it failed.
pub(crate) trait Doing<T> {
    /// `action` is asked for only on failure.
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| Error::System { action: action(), source: error.into() })
    }
}
