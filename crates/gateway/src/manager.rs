//! What the service manager is told.

use sd_notify::NotifyState;
use std::convert::Infallible;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;
use tracing::warn;

type States = &'static [NotifyState<'static>];

/// Tells the service manager, if there is one. A thread does it: where the manager does not read, sending waits.
pub(crate) struct Manager {
    states: SyncSender<States>,
    /// Nothing comes; it is closed when all is told.
    ended: Receiver<Infallible>,
}

impl Manager {
    /// How long the end waits for a manager that does not read.
    const PATIENCE: Duration = Duration::from_secs(1);

    pub(crate) fn start() -> Manager {
        let (states, to_tell) = sync_channel::<States>(1);
        let (end, ended) = channel();
        std::thread::spawn(move || {
            for state in to_tell {
                if let Err(error) = sd_notify::notify(state) {
                    warn!(%error, "the service manager cannot be told");
                }
            }
            drop(end);
        });
        Manager { states, ended }
    }

    /// Tells it this, unless it has not read what was before.
    pub(crate) fn tell(&self, states: States) {
        let _ = self.states.try_send(states);
    }

    /// Waits until it is told all, but not for long.
    pub(crate) fn end(self) {
        drop(self.states);
        let _ = self.ended.recv_timeout(Manager::PATIENCE);
    }
}
