//! The finished runs of a sweep, in a file that survives an interruption.

use crate::failure::RunError;
use crate::table::{Table, quote};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A file of rows, run by run. Its first line identifies the sweep, its second names the columns, in
/// CSV: `run`, the number of the run, and those of the rows.
///
/// A run counts once its last row is written; an incomplete run, as a crash may leave it, is removed
/// when the file is opened again.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Bytes, up to the last whole run.
    len: u64,
    runs: u64,
}

/// Why a journal cannot be continued.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The file belongs to another sweep, or is not a journal.
    #[error("{}: holds something other than runs of this sweep", .path.display())]
    Other {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read or written.
    #[error("{}: {problem}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        problem: io::Error,
    },
}

impl Journal {
    /// Opens the file, or creates it. `about` is one line that identifies the sweep; `columns` are those
    /// of its rows.
    ///
    /// # Errors
    /// If it belongs to another sweep, or cannot be read or written.
    pub fn open(path: &Path, about: &str, columns: &Table) -> Result<Journal, JournalError> {
        let opened = Journal::begin(path, about, columns);
        let path = path.to_owned();
        match opened {
            Ok(Some(journal)) => Ok(journal),
            Ok(None) => Err(JournalError::Other { path }),
            Err(problem) => Err(JournalError::File { path, problem }),
        }
    }

    /// The number of its runs, which are the first of the sweep.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs
    }

    fn begin(path: &Path, about: &str, columns: &Table) -> io::Result<Option<Journal>> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut head = format!("{about}\nrun").into_bytes();
        for (name, _) in columns.columns() {
            head.push(b',');
            quote(name, &mut head);
        }
        head.push(b'\n');
        let mut found = Vec::new();
        (&mut file).take(head.len() as u64).read_to_end(&mut found)?;
        if !head.starts_with(&found) {
            return Ok(None);
        }
        let (len, runs) = match found.len() < head.len() {
            true => {
                file.rewind()?;
                file.write_all(&head)?;
                (head.len() as u64, 0)
            }
            false => {
                let (bytes, runs) = whole_runs(&mut BufReader::new(&file))?;
                (head.len() as u64 + bytes, runs)
            }
        };
        file.set_len(len)?;
        file.seek(SeekFrom::Start(len))?;
        Ok(Some(Journal { path: path.to_owned(), file, len, runs }))
    }

    /// Adds the rows of the next run.
    pub(crate) fn append(&mut self, run: u64, rows: &Table) -> Result<(), RunError> {
        debug_assert_eq!(run, self.runs);
        let bytes = lines(run, rows);
        if let Err(problem) = self.file.write_all(&bytes) {
            // A partial run is useless.
            let _ = self.file.set_len(self.len);
            let (file, problem) = (self.path.clone(), problem.to_string());
            return Err(RunError::Write { file, problem });
        }
        self.len += bytes.len() as u64;
        self.runs += 1;
        Ok(())
    }
}

/// The rows of a run, in the format of a journal.
pub(crate) fn lines(run: u64, rows: &Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in 0..rows.height() {
        bytes.extend_from_slice(run.to_string().as_bytes());
        for (_, column) in rows.columns() {
            bytes.push(b',');
            column.write(row, &mut bytes);
        }
        bytes.push(b'\n');
    }
    bytes
}

/// The bytes of complete runs, and their number. The last run may be incomplete and does not count.
fn whole_runs(rows: &mut impl BufRead) -> io::Result<(u64, u64)> {
    let (mut bytes, mut whole, mut runs) = (0, 0, 0);
    let mut row = Vec::new();
    let mut quoted = false;
    loop {
        let line = rows.read_until(b'\n', &mut row)?;
        let read = &row[row.len() - line..];
        if !read.ends_with(b"\n") {
            return Ok((whole, runs));
        }
        quoted ^= read.iter().filter(|&&byte| byte == b'"').count() % 2 == 1;
        if quoted {
            // A line break in a text.
            continue;
        }
        let number = row.split(|&byte| byte == b',').next().unwrap_or_default();
        match std::str::from_utf8(number).ok().and_then(|number| number.parse::<u64>().ok()) {
            Some(run) if run == runs => {}
            Some(run) if run == runs + 1 => (whole, runs) = (bytes, run),
            _ => return Ok((whole, runs)),
        }
        bytes += row.len() as u64;
        row.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(rows: &str) -> (u64, u64) {
        whole_runs(&mut rows.as_bytes()).expect("bytes can be read")
    }

    #[test]
    fn the_last_run_is_never_taken_for_whole() {
        assert_eq!(whole(""), (0, 0));
        assert_eq!(whole("0,1\n"), (0, 0));
        assert_eq!(whole("0,1\n0,2\n1,1\n"), (8, 1));
        assert_eq!(whole("0,1\n0,2\n1,1\n1,"), (8, 1));
        assert_eq!(whole("0,1\n1,1\n2,1\n"), (8, 2));
    }

    #[test]
    fn a_text_may_have_line_breaks_and_quotes() {
        assert_eq!(whole("0,\"a\n1,b\"\n1,\"\"\"\n\"\n2"), (10, 1));
        assert_eq!(whole("0,\"a\n1,b"), (0, 0));
    }

    #[test]
    fn what_is_no_row_ends_what_is_whole() {
        assert_eq!(whole("0,1\n1,1\nx\n2,1\n"), (4, 1));
        assert_eq!(whole("0,1\n2,1\n3,1\n"), (0, 0));
    }
}
