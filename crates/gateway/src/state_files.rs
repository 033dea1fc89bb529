//! The files in which a gateway keeps what the next one needs.

use crate::error::Error;
use crate::journal::Journal;
use crate::placed::make_folder_of;
use crate::{host_settings, network, secret};
use base::Seed;
use std::io;
use std::path::{Path, PathBuf};

/// Takes back what a gateway that was killed has left in the network namespace of the calling thread: rules, and settings
/// of a mobile host, which are in a file beside its control socket. Returns how many rules there were.
///
/// # Errors
/// If the system does not let it.
pub fn clean_up(socket: &Path) -> Result<usize, Error> {
    StateFiles::beside(socket).clean_up()
}

/// The files in which a gateway keeps what the next one needs.
pub(crate) struct StateFiles {
    journal: PathBuf,
    secret: PathBuf,
    /// What was set of a mobile host before.
    pub(crate) host_settings: PathBuf,
}

impl StateFiles {
    /// Those beside a control socket.
    pub(crate) fn beside(socket: &Path) -> StateFiles {
        let [journal, secret, host_settings] =
            ["journal", "secret", "settings"].map(|end| socket.with_extension(end));
        StateFiles { journal, secret, host_settings }
    }

    /// Takes back what a gateway that was killed has left in the network namespace of the calling thread. Returns how many
    /// rules there were.
    pub(crate) fn clean_up(&self) -> Result<usize, Error> {
        host_settings::restore_left(&self.host_settings);
        Ok(network::remove_rules()?)
    }

    pub(crate) fn journal(&self) -> Result<Journal, Error> {
        Self::opened(&self.journal, Journal::open)
    }

    pub(crate) fn secret(&self) -> Result<Seed, Error> {
        Self::opened(&self.secret, secret::of_file)
    }

    fn opened<T>(path: &Path, open: fn(&Path) -> io::Result<T>) -> Result<T, Error> {
        let failed = |source| Error::State { path: path.display().to_string(), source };
        make_folder_of(path).and_then(|()| open(path)).map_err(failed)
    }
}
