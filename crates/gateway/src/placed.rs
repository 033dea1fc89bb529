//! Unix sockets at paths.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The place of a socket, which is removed when this is dropped.
pub(crate) struct Placed {
    path: PathBuf,
    /// The socket's device and inode.
    identity: (u64, u64),
}

impl Placed {
    /// Places the socket that `bind` makes at a path, where only the owner may connect. What a process that was killed
    /// has left there is replaced.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn bind<T>(
        path: &Path,
        bind: impl FnOnce(&Path) -> io::Result<T>,
    ) -> io::Result<(T, Placed)> {
        make_folder_of(path)?;
        // No client finds the socket before its mode is set.
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(format!(".{}", std::process::id()));
        let fresh = PathBuf::from(fresh);
        let socket = bind(&fresh)?;
        let placed = std::fs::set_permissions(&fresh, Permissions::from_mode(0o600))
            .and_then(|()| std::fs::rename(&fresh, path));
        if let Err(error) = placed {
            let _ = std::fs::remove_file(&fresh);
            return Err(error);
        }
        let identity = identity(path)?;
        Ok((socket, Placed { path: path.to_owned(), identity }))
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        // Another process may have replaced it.
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Makes the folder of a file, if there is none.
pub(crate) fn make_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::fs::create_dir_all(folder),
        _ => Ok(()),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}
