//! Commands to a thread that sleeps.

use crate::Error;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// The queue of commands to a thread, with the counter that wakes it.
pub(crate) struct Commands<C> {
    pub(crate) sender: Sender<C>,
    pub(crate) bell: Arc<OwnedFd>,
}

impl<C> Clone for Commands<C> {
    fn clone(&self) -> Commands<C> {
        Commands { sender: self.sender.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<C> Commands<C> {
    pub(crate) fn send(&self, command: C) -> Result<(), Error> {
        self.sender.send(command).map_err(|_| Error::Stopped)?;
        // It can only fail if the counter is full; then the thread wakes anyway.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        Ok(())
    }
}
