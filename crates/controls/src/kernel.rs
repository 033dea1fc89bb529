//! What the kernel can do, and what it says of a control.

use crate::Error;
use crate::settings::Settings;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle, PrintLevel};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Refuses a kernel without BTF.
pub(crate) fn check() -> Result<(), Error> {
    if Path::new("/sys/kernel/btf/vmlinux").exists() { Ok(()) } else { Err(Error::NoBtf) }
}

/// Refuses a process that may not ask the kernel for its BPF maps: it would find none.
pub(crate) fn check_rights() -> Result<(), Error> {
    // No map has this number.
    match MapHandle::from_map_id(u32::MAX) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(Error::Forbidden),
        _ => Ok(()),
    }
}

/// The last warnings of libbpf: they say more than its error codes.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn keep(_: PrintLevel, text: String) {
    const MOST: usize = 100;
    let mut warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if warnings.len() < MOST {
        warnings.extend(text.lines().map(str::to_owned));
    }
}

/// Keeps the warnings of libbpf for [`refusal`], instead of printing them.
pub(crate) fn keep_warnings() {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
}

/// Why the kernel does not take a control.
pub(crate) fn refusal(name: &'static str, error: &libbpf_rs::Error) -> Error {
    match error.kind() {
        ErrorKind::PermissionDenied => Error::Forbidden,
        ErrorKind::AlreadyExists => Error::Foreign(name),
        _ => {
            let warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
            Error::Refused { name, problem: format!("{error}\n{warnings}").trim().to_owned() }
        }
    }
}

/// What the kernel says of a control.
pub(crate) struct State {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    /// About how many sockets, sysctls of network namespaces and links have it.
    pub(crate) users: u32,
}

/// The control of a map of type `struct_ops`.
pub(crate) fn state(map: u32) -> Result<State, Error> {
    let failed = |error: libbpf_rs::Error| Error::Read {
        what: "a congestion control",
        problem: error.to_string(),
    };
    let unknown =
        |problem: &str| Error::Read { what: "a congestion control", problem: problem.to_owned() };
    let key = 0_u32.to_ne_bytes();
    let value_of = |map: &MapHandle| -> Result<Vec<u8>, Error> {
        map.lookup(&key, MapFlags::ANY).map_err(failed)?.ok_or_else(|| unknown("no value"))
    };
    let value = value_of(&MapHandle::from_map_id(map).map_err(failed)?)?;
    let kernel = Btf::from_vmlinux().map_err(failed)?;
    let offset = |of: &str, member: &str| -> Result<usize, Error> {
        let of = kernel.type_by_name::<Struct<'_>>(of).ok_or_else(|| unknown("no type"))?;
        let found = of.iter().find(|one| one.name.is_some_and(|name| name == member));
        match found.map(|one| one.attr) {
            Some(libbpf_rs::btf::types::MemberAttr::Normal { offset }) => Ok(offset as usize / 8),
            _ => Err(unknown("no member")),
        }
    };
    let data = offset("bpf_struct_ops_tcp_congestion_ops", "data")?;
    let field = |member, length| -> Result<&[u8], Error> {
        let start = data + offset("tcp_congestion_ops", member)?;
        value.get(start..start + length).ok_or_else(|| unknown("a short value"))
    };
    let name = field("name", 16)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or(name);
    // In place of pointers to functions, the kernel shows the numbers of programs.
    let mut programs = BTreeSet::new();
    for member in ["cong_avoid", "in_ack_event"] {
        let pointer = field(member, 8)?.try_into().map_or(0, u64::from_ne_bytes);
        programs.insert(pointer);
    }
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let maps = ProgInfoIter::with_query_opts(options)
        .filter(|program| programs.contains(&program.id.into()))
        .flat_map(|program| program.map_ids);
    let settings = maps
        .filter_map(|id| MapHandle::from_map_id(id).ok())
        .find_map(|map| Settings::from_bytes(&value_of(&map).ok()?))
        .ok_or_else(|| unknown("no settings"))?;
    // The first field of the value: see bpf_struct_ops_map_sys_lookup_elem in the kernel.
    let users = value.first_chunk().map_or(0, |users| u32::from_ne_bytes(*users));
    Ok(State { name: String::from_utf8_lossy(name).into_owned(), settings, users })
}
