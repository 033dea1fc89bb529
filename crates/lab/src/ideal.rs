//! What a path would do at best: the measure of slowdown.

use crate::scenario::{Flow, IpVersion};
use base::{Duration, Rate};
use host::Dialogue;

/// A path without anybody else on it, as it is at the start of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ideal {
    /// Where data goes.
    pub(crate) forward: Way,
    /// Where acknowledgments, and requests, go.
    pub(crate) backward: Way,
}

/// One direction of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Propagation.
    delay: Duration,
    /// That of the slowest link; `None` if all are infinitely fast.
    rate: Option<Rate>,
}

/// TCP and IP headers without options, bytes.
pub(crate) fn headers(ip: IpVersion) -> u64 {
    match ip {
        IpVersion::V4 => 40,
        IpVersion::V6 => 60,
    }
}

impl Way {
    /// The way over links.
    pub(crate) fn over<'a>(links: impl Iterator<Item = &'a link::Config>) -> Way {
        links.fold(Way { delay: Duration::ZERO, rate: None }, |way, link| Way {
            delay: way.delay + link.delay,
            rate: link.rate.into_iter().chain(way.rate).min(),
        })
    }

    /// From the first byte's departure to the arrival of the last, in full segments.
    fn carries(self, size: u64, flow: &Flow) -> Duration {
        let segments = size.div_ceil(u64::from(flow.sender.mss));
        let bytes = size.saturating_add(segments.saturating_mul(headers(flow.ip)));
        self.delay + self.rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes))
    }
}

impl Ideal {
    /// The least time from the opening of a connection until so much has arrived.
    pub(crate) fn transfer(&self, size: u64, flow: &Flow) -> Duration {
        self.forward.delay + self.backward.delay + self.forward.carries(size, flow)
    }

    /// The least time from a request to the whole response.
    pub(crate) fn response(&self, dialogue: &Dialogue, flow: &Flow) -> Duration {
        self.backward.carries(dialogue.request, flow)
            + self.forward.carries(dialogue.response, flow)
    }
}
