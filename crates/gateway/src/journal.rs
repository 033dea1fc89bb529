//! The journal: the connections that the gateway carries, in a file that is still there after the process was
//! killed. The next one resets their ends, which otherwise would wait for bytes that are lost.

use host::FourTuple;
use rustc_hash::FxHashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::warn;

/// What the file begins with: its version.
const MAGIC: [u8; 16] = *b"lasthop journal1";
/// The length of a place, bytes: whether it is taken, the ports, and the addresses of client and server.
const PLACE: usize = 40;
/// The most places that are read.
const MOST: usize = 1 << 17;

/// Connections in a file, by places.
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    places: FxHashMap<FourTuple, u32>,
    vacant: Vec<u32>,
    /// Writing has failed, and that was said.
    is_broken: bool,
    /// The next process needs it.
    is_kept: bool,
}

/// A journal of several threads. What it protects is whole between any two statements.
pub(crate) fn lock(journal: &Mutex<Journal>) -> MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Journal {
    /// Opens a journal, which is made if there is none, with the connections that are left in it.
    pub(crate) fn open(path: &Path) -> io::Result<Journal> {
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let mut bytes = Vec::new();
        let most = MAGIC.len() + MOST * PLACE;
        (&mut file).take(most as u64).read_to_end(&mut bytes)?;
        let mut journal = Journal {
            file,
            path: path.to_owned(),
            places: FxHashMap::default(),
            vacant: Vec::new(),
            is_broken: false,
            is_kept: false,
        };
        match bytes.strip_prefix(&MAGIC) {
            Some(places) => journal.read(places),
            None => {
                if !bytes.is_empty() {
                    warn!(path = %path.display(), "not a journal, or one of another version");
                }
                journal.file.set_len(0)?;
                journal.file.write_all_at(&MAGIC, 0)?;
            }
        }
        Ok(journal)
    }

    fn read(&mut self, places: &[u8]) {
        for (number, place) in (0..).zip(places.as_chunks::<PLACE>().0) {
            match from_place(place) {
                // In a file that was damaged, one may be there twice.
                Some(connection) => self.vacant.extend(self.places.insert(connection, number)),
                None => self.vacant.push(number),
            }
        }
    }

    /// The connections in it, as their clients name them.
    pub(crate) fn connections(&self) -> impl Iterator<Item = &FourTuple> {
        self.places.keys()
    }

    /// A connection has begun.
    pub(crate) fn add(&mut self, connection: FourTuple) {
        if self.places.contains_key(&connection) {
            return;
        }
        let number = self.vacant.pop().unwrap_or(self.places.len() as u32);
        self.places.insert(connection, number);
        self.write(number, &to_place(&connection));
    }

    /// A connection is over.
    pub(crate) fn remove(&mut self, connection: &FourTuple) {
        if let Some(number) = self.places.remove(connection) {
            self.vacant.push(number);
            // The rest of the place does not matter.
            self.write(number, &[0]);
        }
    }

    fn write(&mut self, number: u32, bytes: &[u8]) {
        let at = MAGIC.len() as u64 + u64::from(number) * PLACE as u64;
        let written = self.file.write_all_at(bytes, at);
        if let Err(error) = &written
            && !self.is_broken
        {
            warn!(path = %self.path.display(), %error, "the journal cannot be written");
        }
        self.is_broken = written.is_err();
    }

    /// Connections are left to be reset.
    pub(crate) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Removes the file, unless it was to be kept.
    pub(crate) fn discard(self) {
        if self.is_kept {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            warn!(path = %self.path.display(), %error, "the journal is left behind");
        }
    }
}

fn to_place(connection: &FourTuple) -> [u8; PLACE] {
    let FourTuple { local, local_port, remote, remote_port } = connection;
    let octets = |address: &IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let mut place = [0; PLACE];
    place[0] = 1;
    place[4..6].copy_from_slice(&local_port.to_be_bytes());
    place[6..8].copy_from_slice(&remote_port.to_be_bytes());
    place[8..24].copy_from_slice(&octets(local));
    place[24..40].copy_from_slice(&octets(remote));
    place
}

/// The connection at a place that is taken.
fn from_place(place: &[u8]) -> Option<FourTuple> {
    let [1, _, _, _, rest @ ..] = place else { return None };
    let (local_port, rest) = rest.split_first_chunk()?;
    let (remote_port, rest) = rest.split_first_chunk()?;
    let (local, rest) = rest.split_first_chunk::<16>()?;
    let remote = rest.first_chunk::<16>()?;
    let address = |octets: &[u8; 16]| Ipv6Addr::from(*octets).to_canonical();
    Some(FourTuple {
        local: address(local),
        local_port: u16::from_be_bytes(*local_port),
        remote: address(remote),
        remote_port: u16::from_be_bytes(*remote_port),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn connection(port: u16) -> FourTuple {
        let [local, remote] = match port % 2 {
            0 => ["192.0.2.1", "198.51.100.7"],
            _ => ["2001:db8::1", "2001:db8:7::2"],
        }
        .map(|address| address.parse().unwrap());
        FourTuple { local, local_port: port, remote, remote_port: 443 }
    }

    fn ports(journal: &Journal) -> BTreeSet<u16> {
        assert!(journal.connections().all(|found| *found == connection(found.local_port)));
        journal.connections().map(|connection| connection.local_port).collect()
    }

    fn path(label: &str) -> PathBuf {
        std::env::temp_dir().join(format!("lasthopd-journal-{}-{label}", std::process::id()))
    }

    #[test]
    fn the_next_process_finds_the_connections_that_were_not_over() {
        let path = path("next");
        let mut journal = Journal::open(&path).unwrap();
        (1..=100).for_each(|port| journal.add(connection(port)));
        (1..=90).for_each(|port| journal.remove(&connection(port)));
        // Places are used again, and what is there or gone already changes nothing.
        (50..=60).for_each(|port| journal.add(connection(port)));
        journal.add(connection(95));
        journal.remove(&connection(1));
        drop(journal);
        let length = std::fs::metadata(&path).unwrap().len();
        assert_eq!(length, (MAGIC.len() + 100 * PLACE) as u64);
        let mut journal = Journal::open(&path).unwrap();
        assert_eq!(ports(&journal), (50..=60).chain(91..=100).collect());
        // It goes on at the places that are vacant, and then behind the others.
        (1000..1100).for_each(|port| journal.add(connection(port)));
        drop(journal);
        let journal = Journal::open(&path).unwrap();
        assert_eq!(ports(&journal), (50..=60).chain(91..=100).chain(1000..1100).collect());
        journal.discard();
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_no_journal_becomes_one_and_a_place_that_is_cut_off_is_vacant() {
        let path = path("other");
        std::fs::write(&path, "something else").unwrap();
        let mut journal = Journal::open(&path).unwrap();
        assert_eq!(ports(&journal), BTreeSet::new());
        journal.add(connection(2));
        journal.add(connection(3));
        drop(journal);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        assert_eq!(ports(&journal), BTreeSet::from([2]));
        journal.add(connection(5));
        drop(journal);
        let journal = Journal::open(&path).unwrap();
        assert_eq!(ports(&journal), BTreeSet::from([2, 5]));
        journal.discard();
    }
}
