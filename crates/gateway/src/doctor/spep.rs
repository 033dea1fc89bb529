//! What mode `spep` needs of the kernel.

use super::Finding;
use crate::marking::{self, MarkingError};
use crate::network;
use scenario::{DataPath, Gateway, Work};

/// What this is about, in findings.
const MARKING: &str = "marking";

pub(super) fn examine(gateway: &Gateway, has_devices: bool, running: bool) -> Option<Finding> {
    let Work::Spep(station, path) = &gateway.work else { return None };
    let refusal = match path {
        DataPath::UserSpace => return Some(Finding::fine(MARKING, "in user space")),
        // It runs there because of what is asked for here.
        DataPath::Auto if !has_devices => None,
        // This process could: the one that runs may not.
        DataPath::Auto if running => {
            marking::refusal(&gateway.wan, station).or(Some(MarkingError::Forbidden))
        }
        DataPath::Auto | DataPath::Kernel => marking::refusal(&gateway.wan, station),
    };
    let Some(error) = refusal else { return Some(Finding::fine(MARKING, "in the kernel")) };
    let mend = match &error {
        MarkingError::Forbidden => network::bpf_rights("CAP_BPF CAP_PERFMON"),
        MarkingError::Absent => "build it with feature marker, as by default".to_owned(),
        MarkingError::Refused(_) | MarkingError::Live(_) => "data_path = \"user-space\"".to_owned(),
    };
    let mend = Some(mend);
    Some(match path {
        DataPath::Kernel => Finding::error(MARKING, error.to_string(), mend),
        _ => Finding::advice(MARKING, format!("in user space: {error}"), mend),
    })
}
