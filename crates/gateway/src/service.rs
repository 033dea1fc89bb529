//! A gateway with all by which it is watched: control socket, metrics, log, service manager.

use crate::logs::LossWatch;
use crate::{Control, Daemon, Error, Metrics, Observation, Status};
use base::{Duration, Time};
use live::Clock;
use scenario::Gateway;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use tracing::{error, info, warn};

/// Tells the state of a gateway.
pub type Observe = Arc<dyn Fn() -> Result<(Status, Observation), Error> + Send + Sync>;

/// How often the gateway is looked after.
const PERIOD: std::time::Duration = std::time::Duration::from_secs(1);

/// A running gateway and what tells about it.
pub struct Service {
    // No client asks any more when the gateway ends: fields are dropped in this order.
    control: Option<Control>,
    metrics: Option<Metrics>,
    daemon: Arc<Daemon>,
    clock: Clock,
    losses: LossWatch,
}

impl Service {
    /// Starts a gateway in the network namespace of the calling thread, with its control socket, if it is to have
    /// one, and its metrics.
    ///
    /// # Errors
    /// If the system does not let it; nothing is left changed then.
    pub fn start(gateway: &Gateway, socket: Option<&Path>) -> Result<Service, Error> {
        let daemon = Arc::new(Daemon::start(gateway)?);
        let clock = Clock::start();
        let observed = Arc::downgrade(&daemon);
        let about = gateway.clone();
        let observe: Observe = Arc::new(move || {
            let observation = observed.upgrade().ok_or(live::Error::Stopped)?.observe()?;
            let uptime = clock.now().as_nanos() / 1_000_000_000;
            Ok((Status::new(&about, uptime, &observation), observation))
        });
        let losses = LossWatch::default();
        let mut service = Service { control: None, metrics: None, daemon, clock, losses };
        match service.listen(gateway, socket, &observe) {
            Ok(()) => Ok(service),
            Err(error) => {
                service.stop();
                Err(error)
            }
        }
    }

    fn listen(
        &mut self,
        gateway: &Gateway,
        socket: Option<&Path>,
        observe: &Observe,
    ) -> Result<(), Error> {
        if let Some(address) = gateway.metrics {
            let metrics = Metrics::listen(address, Arc::clone(observe));
            self.metrics = Some(metrics.map_err(failed(address))?);
        }
        if let Some(path) = socket {
            let control = Control::listen(path, Arc::clone(observe));
            self.control = Some(control.map_err(failed(path.display()))?);
        }
        Ok(())
    }

    /// The gateway.
    #[must_use]
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// The address of the metrics, if there are any.
    #[must_use]
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(Metrics::address)
    }

    /// Looks after the gateway. Whether it is alive: its thread has answered.
    fn look(&mut self) -> bool {
        let Ok(observed) = self.daemon.observe() else { return false };
        let now: Time = self.clock.now();
        self.losses.look(now, &observed);
        true
    }

    /// Ends it. Connections that it carries are lost.
    pub fn stop(self) {
        let Service { control, metrics, daemon, .. } = self;
        drop((control, metrics));
        // A client may be asking its thread, which answers at once.
        let mut shared = daemon;
        loop {
            match Arc::try_unwrap(shared) {
                Ok(daemon) => return daemon.stop(),
                Err(still) => shared = still,
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

fn failed(place: impl ToString) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Listening { place: place.to_string(), source }
}

/// Why a gateway that ran has ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Signal(i32),
    Lost,
}

/// Runs a gateway until the process gets SIGTERM or SIGINT.
///
/// # Errors
/// If it cannot start, or if one of its devices was removed.
pub fn run(gateway: &Gateway, socket: Option<&Path>) -> Result<(), Error> {
    let (sender, signals) = mpsc::channel();
    let mut caught = Signals::new([SIGTERM, SIGINT]).map_err(Error::Signals)?;
    std::thread::spawn(move || caught.forever().try_for_each(|signal| sender.send(signal)));
    let mut service = Service::start(gateway, socket)?;
    let lan = gateway.lan.join(" ");
    info!(lan, wan = gateway.wan, mode = crate::status::mode(gateway), "running");
    if let Some(address) = service.metrics() {
        info!(%address, "metrics");
    }
    tell(&[NotifyState::Ready, NotifyState::Status("carries connections")]);
    let end = loop {
        match signals.recv_timeout(PERIOD) {
            Ok(signal) => break End::Signal(signal),
            Err(RecvTimeoutError::Timeout) => {}
            // Without signals, it runs until it is killed.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(PERIOD),
        }
        // The service manager ends a gateway whose thread does not answer.
        if !service.look() {
            break End::Lost;
        }
        tell(&[NotifyState::Watchdog]);
    };
    tell(&[NotifyState::Stopping]);
    match end {
        End::Signal(signal) => {
            info!(signal, "ending");
            service.stop();
            Ok(())
        }
        End::Lost => {
            error!("a device was removed");
            service.stop();
            Err(Error::Removed)
        }
    }
}

/// Tells the service manager, if there is one.
fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!(%error, "the service manager cannot be told");
    }
}

/// Losses are told less often than they are looked for.
const _: () = assert!(LossWatch::QUIET.as_nanos() > Duration::from_secs(1).as_nanos());
