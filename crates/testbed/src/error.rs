//! Why there is no result.

use thiserror::Error;

/// Why a scenario was not run on real packets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The platform is another.
    #[error("the testbed needs Linux: it is made of network namespaces and TUN devices")]
    Platform,
    /// The process may not do what it takes.
    #[error(
        "the testbed needs root, to make network namespaces and TUN devices: this process lacks {0}"
    )]
    Forbidden(String),
    /// Somebody asked the run to end.
    #[error("the run was cancelled")]
    Cancelled,
    /// Two flows want one setting of a node's kernel to be two things.
    #[error(
        "the kernel has one setting `{setting}` for the whole of node `{node}`: flows `{first}` and \
         `{second}` differ"
    )]
    Conflict {
        /// The node's name.
        node: String,
        /// The key of the flows' `tcp`.
        setting: &'static str,
        /// A flow's name.
        first: String,
        /// Another's.
        second: String,
    },
    /// The kernel refused a setting.
    #[error("flow `{flow}`: the kernel does not take {what}: {problem}")]
    Setting {
        /// The flow's name.
        flow: String,
        /// What it does not take.
        what: String,
        /// What it says.
        problem: String,
    },
    /// The system refused something else.
    #[error("{0}")]
    System(String),
}

#[cfg(target_os = "linux")]
impl From<live::Error> for Error {
    fn from(error: live::Error) -> Error {
        Error::System(error.to_string())
    }
}
