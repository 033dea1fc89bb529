//! Watches the interface of the hop. Connections learn at once when packets can pass again, or by another way: their
//! timers have backed off meanwhile (`koutsianas2007` §1).

use live::netlink::{Attachment, Monitor};
use live::{Error, Netlink};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tracing::info;

/// The kernel tells of carrier, addresses and routes one after the other: a hop is judged once so much time has passed.
pub(crate) const SETTLING: Duration = Duration::from_millis(20);

/// A thread that watches, until this is dropped.
pub(crate) struct HopWatch {
    /// `None` once it is to end.
    running: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl HopWatch {
    /// Calls `tell` whenever packets can pass an interface of the calling thread's network namespace that could not
    /// before, or can pass by another way; and when they cannot any more. It looks when `settling` has
    /// passed after the kernel has told of anything.
    pub(crate) fn start(
        interface: &str,
        settling: Duration,
        tell: impl Fn(&Attachment) + Send + 'static,
    ) -> Result<HopWatch, Error> {
        let interface = interface.to_owned();
        let action = format!("watching {interface}");
        let failed = move |source| Error::System { action: action.clone(), source };
        let (monitor, netlink) = (Monitor::open()?, Netlink::open()?);
        let (running, stop) = UnixStream::pair().map_err(&failed)?;
        let watch = move || {
            let mut before = netlink.attachment(&interface);
            while monitor.wait(stop.as_fd()) {
                thread::sleep(settling);
                let now = netlink.attachment(&interface);
                if now.gains_over(&before) {
                    info!(interface, "the hop is there again, or leads elsewhere");
                    tell(&now);
                } else if before.is_usable() && !now.is_usable() {
                    info!(interface, "the hop is down");
                    tell(&now);
                }
                before = now;
            }
        };
        let spawned = thread::Builder::new().name("hop".to_owned()).spawn(watch);
        Ok(HopWatch { running: Some(running), thread: Some(spawned.map_err(failed)?) })
    }
}

impl Drop for HopWatch {
    fn drop(&mut self) {
        self.running = None;
        // It ends by itself, and a panic has been reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
