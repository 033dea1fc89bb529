//! Errors of the testbed.

use thiserror::Error;

/// Why a scenario was not run on real packets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The platform is not Linux, or this was compiled without feature `packets`.
    #[cfg_attr(
        target_os = "linux",
        error(
            "this lasthop was built for the lab alone: `make setup` adds what sends real packets"
        )
    )]
    #[cfg_attr(
        not(target_os = "linux"),
        error("real packets need Linux: its network namespaces and TUN devices")
    )]
    Absent,
    /// The process lacks a privilege.
    #[error(
        "the testbed needs root, to make network namespaces and TUN devices: this process lacks {0}"
    )]
    Forbidden(String),
    /// The run was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// Something of the scenario belongs to its flows.
    #[error("{what} cannot be run with programs of yours: {why}")]
    Refused {
        /// What it is, and where.
        what: String,
        /// The reason.
        why: String,
    },
    /// Two flows need different values of one setting of a node's kernel.
    #[error(
        "the kernel has one setting `{setting}` for the whole of node `{node}`: expected the same in \
         flows `{first}` and `{second}`"
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
    #[error("flow `{flow}`: the kernel does not accept {what}: {problem}")]
    Setting {
        /// The flow's name.
        flow: String,
        /// The setting.
        what: String,
        /// The kernel's error.
        problem: String,
    },
    /// The system refused something else.
    #[error("{0}")]
    System(String),
}

#[cfg(all(target_os = "linux", feature = "packets"))]
impl From<live::Error> for Error {
    fn from(error: live::Error) -> Error {
        Error::System(error.to_string())
    }
}
