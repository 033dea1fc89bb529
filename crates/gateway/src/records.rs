//! Records of connections that have ended: lines of JSON in a file, written by a thread of their own.

use crate::connections::Record;
use base::Time;
use live::Clock;
use relay::Ended;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::warn;

/// The most records that wait to be written.
const MOST: usize = 4096;

enum Message {
    Ended(Ended),
    /// To be answered once all before it are written.
    Flush(SyncSender<()>),
}

/// Where connections that have ended are sent. The file is closed once all copies are gone.
#[derive(Clone)]
pub(crate) struct Records {
    sender: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

impl Records {
    /// Appends to a file, which is made if there is none. `clock` is that of the connections, and `dropped` counts
    /// those that could not wait or could not be written.
    pub(crate) fn open(path: &Path, clock: Clock, dropped: Arc<AtomicU64>) -> io::Result<Records> {
        let file = OpenOptions::new().append(true).create(true).mode(0o640).open(path)?;
        let (sender, receiver) = mpsc::sync_channel(MOST);
        let lost = Arc::clone(&dropped);
        let builder = std::thread::Builder::new().name("records".to_owned());
        builder.spawn(move || write(file, &receiver, clock, &lost))?;
        Ok(Records { sender, dropped })
    }

    /// Takes note of a connection, or counts it if there is no room.
    pub(crate) fn note(&self, ended: Ended) {
        if self.sender.try_send(Message::Ended(ended)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all are written, but not for long.
    pub(crate) fn flush(&self) {
        const MOST: std::time::Duration = std::time::Duration::from_secs(1);
        let (sender, receiver) = mpsc::sync_channel(1);
        if self.sender.send(Message::Flush(sender)).is_ok() {
            let _ = receiver.recv_timeout(MOST);
        }
    }
}

fn write(file: File, receiver: &Receiver<Message>, clock: Clock, dropped: &AtomicU64) {
    let mut file = BufWriter::new(file);
    let mut failed = false;
    while let Ok(first) = receiver.recv() {
        let mut count = 0;
        let (mut written, mut waiting) = (Ok(()), Vec::new());
        for message in std::iter::once(first).chain(receiver.try_iter().take(MOST)) {
            let ended = match message {
                Message::Ended(ended) => ended,
                Message::Flush(sender) => {
                    waiting.push(sender);
                    continue;
                }
            };
            let record = Record::new(&ended, |time| unix(clock, time));
            let line = serde_json::to_writer(&mut file, &record).map_err(io::Error::from);
            written = written.and(line).and_then(|()| file.write_all(b"\n"));
            count += 1;
        }
        let done = written.and_then(|()| file.flush());
        if let Err(error) = &done {
            dropped.fetch_add(count, Ordering::Relaxed);
            if !failed {
                warn!(%error, "records cannot be written");
            }
        }
        failed = done.is_err();
        // One that has stopped waiting is not told.
        for sender in waiting {
            let _ = sender.try_send(());
        }
    }
}

/// The Unix time of a moment in the past, seconds, to a millisecond.
fn unix(clock: Clock, time: Time) -> f64 {
    #[expect(clippy::disallowed_methods, reason = "records are for people and other machines")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ago = clock.now().since(time).as_nanos() / 1_000_000;
    let milliseconds = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_sub(ago);
    milliseconds as f64 / 1000.0
}
