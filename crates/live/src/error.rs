//! Errors of the operating system.

use std::io;

/// An error of the operating system.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed, or the kernel refused a netlink request.
    #[error("{action}: {source}")]
    System {
        /// The action that failed.
        action: String,
        /// The cause.
        source: io::Error,
    },
    /// There is no such network device in the namespace.
    #[error("no network device is called {0:?} here")]
    NoDevice(String),
    /// A namespace's name is part of a path and of other names.
    #[error("expected a name of letters, digits, '-', '_' and '.', got {0:?}")]
    Name(String),
    /// The network device of a stack was removed, which has ended the stack and its connections.
    #[error("network device {0:?} was removed")]
    DeviceRemoved(String),
    /// The thread that was called has ended.
    #[error("the stack has stopped")]
    Stopped,
}

/// Adds the failed action to an error.
pub(crate) trait Doing<T> {
    /// `action` is called only on failure.
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|error| Error::System { action: action(), source: error.into() })
    }
}
