//! The files of a service, written and removed: exactly those, and none that was changed since.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The unit for systemd.
const UNIT: &str = "etc/systemd/system/lasthopd.service";
/// The configuration.
const CONFIGURATION: &str = "etc/lasthop/lasthopd.toml";
/// What was written.
const RECORD: &str = "var/lib/lasthop/installed.json";

/// The program's path in the unit as it is kept here.
const PACKAGED: &str = "/usr/bin/lasthopd";

/// Why files were not written or removed.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct Error {
    path: PathBuf,
    source: io::Error,
}

/// What was done with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was written.
    Written(PathBuf),
    /// It was there, and was left as it is.
    Kept(PathBuf),
    /// It was removed.
    Removed(PathBuf),
    /// It was not removed, because it is not what was written.
    Changed(PathBuf),
    /// It was removed by another program.
    Gone(PathBuf),
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Done::Written(path) => write!(f, "wrote {}", path.display()),
            Done::Kept(path) => write!(f, "kept {}: it was there", path.display()),
            Done::Removed(path) => write!(f, "removed {}", path.display()),
            Done::Changed(path) => {
                write!(f, "kept {}: it was changed since it was written", path.display())
            }
            Done::Gone(path) => write!(f, "{} was not there any more", path.display()),
        }
    }
}

/// Files by their paths below the root, with the SHA-256 of what was written into them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    files: BTreeMap<String, String>,
}

/// Writes the unit and an example of a configuration below `root`, for a program at `program`. Files that are
/// there are kept, unless they are what was written before.
///
/// # Errors
/// If a file cannot be written. What was written until then is recorded.
pub fn install(root: &Path, program: &Path) -> Result<Vec<Done>, Error> {
    let program = program.display().to_string();
    let unit = include_str!("../dist/lasthopd.service").replace(PACKAGED, &program);
    let mut record = read_record(root)?;
    let mut done = Vec::new();
    for (name, content) in
        [(UNIT, unit.as_str()), (CONFIGURATION, include_str!("../dist/lasthopd.toml"))]
    {
        let path = root.join(name);
        let ours = match found(&path)? {
            None => true,
            Some(hash) => record.files.get(name) == Some(&hash),
        };
        if !ours {
            done.push(Done::Kept(path));
            continue;
        }
        // Recorded first: a file that is not recorded is never removed.
        record.files.insert(name.to_owned(), hash(content.as_bytes()));
        write_record(root, &record)?;
        write(&path, content.as_bytes())?;
        done.push(Done::Written(path));
    }
    Ok(done)
}

/// Removes what [`install`] has written below `root`, and the folders that are empty then.
///
/// # Errors
/// If a file cannot be removed.
pub fn uninstall(root: &Path) -> Result<Vec<Done>, Error> {
    let record = read_record(root)?;
    let mut done = Vec::new();
    for (name, written) in &record.files {
        let path = root.join(name);
        done.push(match found(&path)? {
            None => Done::Gone(path),
            Some(hash) if hash == *written => {
                remove(&path)?;
                Done::Removed(path)
            }
            Some(_) => Done::Changed(path),
        });
    }
    let path = root.join(RECORD);
    if !record.files.is_empty() {
        remove(&path)?;
    }
    for name in [CONFIGURATION, RECORD] {
        // One that holds other files stays.
        if let Some(folder) = root.join(name).parent() {
            let _ = std::fs::remove_dir(folder);
        }
    }
    Ok(done)
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of a file, if it is there.
fn found(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(hash(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error { path: path.to_owned(), source }),
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    std::fs::remove_file(path).map_err(|source| Error { path: path.to_owned(), source })
}

/// Writes a file whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |source| Error { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    std::fs::write(&fresh, bytes).map_err(failed)?;
    std::fs::rename(&fresh, path).map_err(failed)
}

fn read_record(root: &Path) -> Result<Record, Error> {
    let path = root.join(RECORD);
    let failed = |source| Error { path: path.clone(), source };
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Record::default()),
        Err(source) => Err(failed(source)),
    }
}

fn write_record(root: &Path, record: &Record) -> Result<(), Error> {
    let path = root.join(RECORD);
    let bytes = serde_json::to_vec_pretty(record)
        .map_err(|error| Error { path: path.clone(), source: error.into() })?;
    write(&path, &bytes)
}
