//! The program in the kernel, at the interface of the hop.

use super::MarkingError;
use crate::Observation;
use crate::hop_watch::{self, HopWatch};
use crate::network;
use live::Netlink;
use marker::{Marker, Settings};
use middlebox::SpepStation;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::{error, info, warn};

/// The program at the interface of the hop. The kernel removes it when this is dropped, or when the process ends,
/// whatever ends it.
pub(crate) struct Marking {
    marker: Arc<Mutex<Marker>>,
    /// Ended before the program.
    _hop_watch: HopWatch,
}

/// What a mutex protects is whole between any two statements.
fn lock(marker: &Mutex<Marker>) -> MutexGuard<'_, Marker> {
    marker.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(error: marker::Error) -> MarkingError {
    match error {
        marker::Error::Forbidden => MarkingError::Forbidden,
        _ => MarkingError::Refused(error.to_string()),
    }
}

/// The program for an interface.
fn load(wan: &str, station: &SpepStation) -> Result<Marker, MarkingError> {
    let netlink = Netlink::open()?;
    let settings = Settings {
        flows: station.flows,
        idle: station.idle.0,
        interface: netlink.index(wan)?,
        link_header: netlink.link_header(wan)?,
    };
    Marker::load(&settings).map_err(refused)
}

/// The program at an interface.
fn at(wan: &str, station: &SpepStation) -> Result<Marker, MarkingError> {
    let mut marker = load(wan, station)?;
    marker.attach().map_err(refused)?;
    if !marker.sees_drops() {
        warn!(
            interface = wan,
            "what the queue of the interface drops will count as corruption: this kernel has no BTF to tell of it"
        );
    }
    Ok(marker)
}

/// Why this process cannot mark the packets that leave by an interface in this kernel, if so. Nothing is changed.
pub(crate) fn refusal(wan: &str, station: &SpepStation) -> Option<MarkingError> {
    load(wan, station).err()
}

impl Marking {
    /// Marks the packets that leave by an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// If the system does not let it; nothing is left changed then.
    pub(crate) fn start(wan: &str, station: &SpepStation) -> Result<Marking, MarkingError> {
        let marker = Arc::new(Mutex::new(at(wan, station)?));
        let (kept, name, station) = (Arc::clone(&marker), wan.to_owned(), station.clone());
        let follow = move || {
            let mut marker = lock(&kept);
            // One that was made again under this name is another one.
            if !marker.is_attached() {
                match at(&name, &station) {
                    Ok(again) => {
                        info!(interface = name, "marks packets again");
                        *marker = again;
                    }
                    Err(error) => error!(interface = name, %error, "packets are not marked"),
                }
            }
        };
        let hop_watch = HopWatch::start(wan, hop_watch::SETTLING, move |_| follow())?;
        // Those of a gateway that was killed send packets to devices that are gone.
        network::remove_rules()?;
        Ok(Marking { marker, _hop_watch: hop_watch })
    }

    /// Adds its counters and gauges.
    pub(crate) fn observe(&self, observed: &mut Observation) -> Result<(), MarkingError> {
        let marker = lock(&self.marker);
        let counts = marker.counts().map_err(refused)?;
        observed.counters.extend([
            ("marked", counts.marked),
            ("new_flows", counts.new_flows),
            ("expired_flows", counts.expired_flows),
            ("dropped_by_queue", counts.dropped),
            ("contended", counts.contended),
        ]);
        observed.gauges.extend([
            ("flows", marker.flows().map_err(refused)? as u64),
            ("marking_in_kernel", marker.is_attached().into()),
            ("sees_queue_drops", marker.sees_drops().into()),
        ]);
        Ok(())
    }
}
