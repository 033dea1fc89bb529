//! Why a control was not loaded, unloaded or listed.

use std::path::PathBuf;
use thiserror::Error;

/// Why a control was not loaded, unloaded or listed.
#[derive(Debug, Error)]
pub enum Error {
    /// The process may not load BPF programs.
    #[error("congestion controls in BPF need root (CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN)")]
    Forbidden,
    /// The kernel does not describe its types.
    #[error(
        "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which congestion controls in BPF need"
    )]
    NoBtf,
    /// The kernel accepts no such program.
    #[error(
        "the kernel refuses {name}, which needs Linux 6.4 or newer with CONFIG_BPF_JIT: {problem}"
    )]
    Refused {
        /// The control's name in the kernel.
        name: &'static str,
        /// What libbpf and the kernel say.
        problem: String,
    },
    /// There is a control of this name.
    #[error("{0} is loaded already; to change its settings, unload it first")]
    Loaded(&'static str),
    /// Another program has registered a control of this name.
    #[error("the kernel has a congestion control {0} that was not loaded by this command")]
    Foreign(&'static str),
    /// There is no control of this name.
    #[error("{0} is not loaded")]
    NotLoaded(&'static str),
    /// A setting that the programs cannot represent.
    #[error("{what} must be {range}")]
    Range {
        /// The setting.
        what: &'static str,
        /// Its range.
        range: &'static str,
    },
    /// A control would end with the command.
    #[error(
        "there is no BPF file system at {}, and one that this process mounts would end with it (as in `ip netns \
         exec`): load the control outside; it is for all network namespaces",
        crate::BPFFS
    )]
    MountNamespace,
    /// A system call failed.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// What the kernel says of a loaded control is not understood.
    #[error("reading {what}: {problem}")]
    Read {
        /// What was read.
        what: &'static str,
        /// What is wrong.
        problem: String,
    },
}
