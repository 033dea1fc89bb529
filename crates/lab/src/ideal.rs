//! The shortest possible times on a path, the reference of slowdown.

use base::{Duration, Rate};
use host::Dialogue;
use scenario::{Flow, IpVersion, Scenario};

/// A path without other traffic, as at the start of a run; a recorded rate counts by its mean,
/// which a short transfer may exceed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ideal {
    /// The direction of data.
    forward: Way,
    /// The direction of acknowledgments and requests.
    backward: Way,
}

/// One direction of a path.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Propagation.
    delay: Duration,
    /// The rate of the slowest link; `None` if all are infinitely fast.
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
    fn over<'a>(links: impl Iterator<Item = &'a link::Config>) -> Way {
        links.fold(Way { delay: Duration::ZERO, rate: None }, |way, link| Way {
            delay: way.delay + link.initial_delay(),
            rate: link.initial_rate().into_iter().chain(way.rate).min(),
        })
    }

    /// From the first byte's departure to the arrival of the last, in full segments.
    fn carries(self, size: u64, flow: &Flow) -> Duration {
        let segments = size.div_ceil(u64::from(flow.sender.mss));
        let bytes = size.saturating_add(segments.saturating_mul(headers(flow.ip)));
        self.delay + self.rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes))
    }
}

/// The ideal paths of the flows; `path` gives the links from a node to another.
pub(crate) fn ideals<'a>(
    scenario: &Scenario,
    path: impl Fn(usize, usize) -> Vec<&'a link::Config>,
) -> Vec<Ideal> {
    let way = |from, to| Way::over(path(from, to).into_iter());
    let ideal =
        |flow: &Flow| Ideal { forward: way(flow.from, flow.to), backward: way(flow.to, flow.from) };
    scenario.flows.iter().map(ideal).collect()
}

impl Ideal {
    /// The least time from the opening of a connection to the arrival of `size` bytes.
    pub(crate) fn transfer(&self, size: u64, flow: &Flow) -> Duration {
        self.forward.delay + self.backward.delay + self.forward.carries(size, flow)
    }

    /// The least time from a request to the whole response.
    pub(crate) fn response(&self, dialogue: &Dialogue, flow: &Flow) -> Duration {
        self.backward.carries(dialogue.request, flow)
            + self.forward.carries(dialogue.response, flow)
    }
}
