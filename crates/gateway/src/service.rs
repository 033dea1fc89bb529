//! A gateway with all by which it is watched: control socket, metrics, log, service manager.

use crate::control::Control;
use crate::handover::{self, Before};
use crate::logs::LossWatch;
use crate::manager::Manager;
use crate::metrics::Metrics;
use crate::state_files::StateFiles;
use crate::{Daemon, Error, Observation, Status, reload};
use base::{Duration, Time};
use live::Clock;
use scenario::{Gateway, Mode, Style};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tracing::{error, info};

/// How often the gateway is looked after.
const PERIOD: std::time::Duration = std::time::Duration::from_secs(1);

/// What clients ask and tell a running gateway.
pub(crate) struct Core {
    daemon: Daemon,
    clock: Clock,
    /// As it runs.
    gateway: Mutex<Gateway>,
    /// The file of its configuration.
    config: Option<PathBuf>,
    /// Where the program is that the process runs, if it does nothing else.
    program: Option<PathBuf>,
    metrics: Mutex<Option<Metrics>>,
}

/// Reaches a gateway as long as it runs.
#[derive(Clone)]
pub(crate) struct Handle(Weak<Core>);

impl Handle {
    pub(crate) fn upgrade(&self) -> Option<Arc<Core>> {
        self.0.upgrade()
    }

    /// The state of this moment.
    pub(crate) fn observe(&self) -> Result<(Status, Observation), Error> {
        self.upgrade().ok_or(live::Error::Stopped)?.observe()
    }
}

/// What a mutex protects is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    pub(crate) fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// The state of this moment.
    pub(crate) fn observe(&self) -> Result<(Status, Observation), Error> {
        let observation = self.daemon.observe()?;
        let uptime = self.clock.now().as_nanos() / 1_000_000_000;
        Ok((Status::new(&lock(&self.gateway), uptime, &observation), observation))
    }

    /// Lets the program that is now where that of this process was take its place, with all connections. It returns
    /// only if that is not possible, and says why.
    pub(crate) fn upgrade(&self) -> String {
        let Err(error) = self.try_upgrade();
        error!(error, "not upgraded");
        error
    }

    fn try_upgrade(&self) -> Result<Infallible, String> {
        let program = self.program.as_ref().ok_or("the process runs more than the gateway")?;
        let config = self.config.as_ref().ok_or("there is no file of the configuration")?;
        let running = lock(&self.gateway);
        match running.mode() {
            Mode::Station | Mode::Mobile => {
                return Err(
                    "who is attached where cannot be handed over to another program".to_owned()
                );
            }
            Mode::Spep | Mode::Notify => {
                let why = "it has no connections to hand over: systemctl restart lasthopd, and packets pass meanwhile";
                return Err(why.to_owned());
            }
            Mode::Spoof | Mode::Split | Mode::Pair => {}
        }
        reload::admit(&running, &reload::read(config, Style::Plain)?)?;
        drop(running);
        let shown = program.display();
        // It should say no while there is still one that runs.
        let asked = Command::new(program).arg(handover::QUESTION).output();
        let asked = asked.map_err(|error| format!("executing {shown}: {error}"))?;
        let (found, own) = (String::from_utf8_lossy(&asked.stdout), handover::format());
        if !asked.status.success() || found.trim() != own {
            return Err(format!(
                "{shown} cannot go on with connections of this version (it reads {:?}, and this one writes {own:?}); \
                 to change to it: lasthopd drain, and restart",
                found.trim()
            ));
        }
        info!(program = %shown, "upgrading");
        Err(self.daemon.hand_over(program).to_string())
    }

    fn serve_metrics(self: &Arc<Core>, address: SocketAddr) -> Result<Metrics, Error> {
        let handle = Handle(Arc::downgrade(self));
        Metrics::listen(address, handle).map_err(failed(address))
    }

    /// Reads the configuration again, and sets what has changed. If that is not possible, nothing changes, and the
    /// result is why.
    pub(crate) fn reload(self: &Arc<Core>) -> Result<(), String> {
        let path = self.config.as_ref().ok_or("there is no file of the configuration")?;
        let new = reload::read(path, Style::Plain)?;
        let mut running = lock(&self.gateway);
        reload::admit(&running, &new)?;
        // What may be refused comes first.
        let metrics = match new.metrics {
            Some(address) if new.metrics != running.metrics => {
                Some(self.serve_metrics(address).map_err(|error| error.to_string())?)
            }
            _ => None,
        };
        self.daemon.set(&new).map_err(|error| error.to_string())?;
        if new.metrics != running.metrics {
            *lock(&self.metrics) = metrics;
        }
        *running = new;
        info!("reloaded");
        Ok(())
    }
}

/// How a process starts a gateway.
#[derive(Default)]
struct Start {
    /// It goes on with the connections of this one.
    before: Option<Before>,
    /// [`Core::program`].
    program: Option<PathBuf>,
}

/// A running gateway and what tells about it.
pub struct Service {
    // No client asks any more when the gateway ends: fields are dropped in this order.
    control: Option<Control>,
    core: Arc<Core>,
    losses: LossWatch,
}

impl Service {
    /// Starts a gateway in the network namespace of the calling thread, with its control socket, if it is to have
    /// one, and its metrics. `config` is the file that is read when it is to reload.
    ///
    /// # Errors
    /// If the system does not let it; nothing is left changed then.
    pub fn start(
        gateway: &Gateway,
        config: Option<&Path>,
        socket: Option<&Path>,
    ) -> Result<Service, Error> {
        Service::start_after(gateway, config, socket, Start::default())
    }

    fn start_after(
        gateway: &Gateway,
        config: Option<&Path>,
        socket: Option<&Path>,
        Start { before, program }: Start,
    ) -> Result<Service, Error> {
        let state = socket.map(StateFiles::beside);
        let core = Arc::new(Core {
            daemon: Daemon::start_after(gateway, before, state.as_ref())?,
            clock: Clock::start(),
            gateway: Mutex::new(gateway.clone()),
            config: config.map(Path::to_owned),
            program,
            metrics: Mutex::new(None),
        });
        let mut service = Service { control: None, core, losses: LossWatch::default() };
        match service.listen(gateway, socket) {
            Ok(()) => Ok(service),
            Err(error) => {
                service.stop();
                Err(error)
            }
        }
    }

    fn listen(&mut self, gateway: &Gateway, socket: Option<&Path>) -> Result<(), Error> {
        if let Some(address) = gateway.metrics {
            *lock(&self.core.metrics) = Some(self.core.serve_metrics(address)?);
        }
        if let Some(path) = socket {
            let control = Control::listen(path, Handle(Arc::downgrade(&self.core)));
            self.control = Some(control.map_err(failed(path.display()))?);
        }
        Ok(())
    }

    /// The gateway.
    #[must_use]
    pub fn daemon(&self) -> &Daemon {
        &self.core.daemon
    }

    /// The address of the metrics, if there are any.
    #[must_use]
    pub fn metrics(&self) -> Option<SocketAddr> {
        lock(&self.core.metrics).as_ref().map(Metrics::address)
    }

    /// Looks after the gateway. Whether it is alive: its thread has answered.
    fn look(&mut self) -> bool {
        let Ok(observed) = self.core.daemon.observe_workers() else { return false };
        let now: Time = self.core.clock.now();
        self.losses.look(now, &observed);
        true
    }

    /// Ends it. Connections that it carries are reset.
    pub fn stop(self) {
        let Service { control, core, .. } = self;
        drop(control);
        drop(lock(&core.metrics).take());
        // A client may be asking its thread, which answers at once.
        let mut shared = core;
        loop {
            match Arc::try_unwrap(shared) {
                Ok(core) => return core.daemon.stop(),
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

/// Runs a gateway until the process gets SIGTERM or SIGINT. With SIGHUP, it reads the file of its configuration
/// again. The process is to do nothing else: an upgrade executes another program in it.
///
/// # Errors
/// If it cannot start, or if one of its devices was removed.
pub fn run(
    gateway: &Gateway,
    config: &Path,
    socket: Option<&Path>,
    before: Option<Before>,
) -> Result<(), Error> {
    let start = Start { program: std::env::current_exe().ok(), before };
    let goes_on = start.before.is_some();
    let (sender, signals) = mpsc::channel();
    let mut caught = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(Error::Signals)?;
    std::thread::spawn(move || caught.forever().try_for_each(|signal| sender.send(signal)));
    let mut service = Service::start_after(gateway, Some(config), socket, start)?;
    let lan = gateway.lan.join(" ");
    let said = if goes_on { "running, upgraded" } else { "running" };
    info!(lan, wan = gateway.wan, mode = crate::status::mode(gateway), "{said}");
    if let Some(address) = service.metrics() {
        info!(%address, "metrics");
    }
    let manager = Manager::start();
    manager.tell(&[NotifyState::Ready, NotifyState::Status("carries connections")]);
    let end = loop {
        match signals.recv_timeout(PERIOD) {
            Ok(SIGHUP) => {
                // It has said what it has done.
                if let Err(error) = service.core.reload() {
                    error!(error, "not reloaded");
                }
            }
            Ok(signal) => break End::Signal(signal),
            Err(RecvTimeoutError::Timeout) => {}
            // Without signals, it runs until it is killed.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(PERIOD),
        }
        // The service manager ends a gateway whose thread does not answer.
        if !service.look() {
            break End::Lost;
        }
        manager.tell(&[NotifyState::Watchdog]);
    };
    manager.tell(&[NotifyState::Stopping]);
    let result = match end {
        End::Signal(signal) => {
            info!(signal, "ending");
            Ok(())
        }
        End::Lost => {
            error!("a device was removed");
            Err(Error::Removed)
        }
    };
    service.stop();
    manager.end();
    result
}

/// Losses are told less often than they are looked for.
const _: () = assert!(LossWatch::QUIET.as_nanos() > Duration::from_secs(1).as_nanos());
