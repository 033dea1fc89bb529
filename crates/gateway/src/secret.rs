//! The secret of a gateway's random numbers, which stays the same when it is started again.

use base::Seed;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The secret in a file, which is made if there is none that is whole. So the initial numbers of a connection go on
/// from those of the last one between the same ends (RFC 6528 §3), which a server may remember (TIME-WAIT).
pub(crate) fn of_file(path: &Path) -> io::Result<Seed> {
    match std::fs::read(path) {
        Ok(bytes) => {
            if let Ok(bytes) = bytes.try_into() {
                return Ok(Seed(u64::from_be_bytes(bytes)));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let secret = getrandom::u64().map_err(io::Error::other)?;
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&secret.to_be_bytes())?;
    Ok(Seed(secret))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn it_stays_the_same_and_one_that_is_not_whole_is_replaced() {
        let path = std::env::temp_dir().join(format!("lasthopd-secret-{}", std::process::id()));
        let first = of_file(&path).unwrap();
        assert_eq!(of_file(&path).unwrap(), first);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        let second = of_file(&path).unwrap();
        assert_ne!(second, first);
        assert_eq!(of_file(&path).unwrap(), second);
        std::fs::remove_file(&path).unwrap();
    }
}
