//! Boxes that may improve the flows that pass a bad hop, and where they stand.

use crate::BoxSettings;
use base::{Duration, Rate};
use tcp::mechanism::{Mechanism, Needs};

/// A bad hop, as far as it is known. A host that moves has several, of which this is the worst.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'a> {
    /// The name of the node behind it.
    pub neighbour: &'a str,
    /// Its rate, if that is a fixed one.
    pub rate: Option<Rate>,
    /// Its delay in one direction.
    pub delay: Option<Duration>,
    /// The largest packet that it takes, bytes.
    pub mtu: Option<u32>,
    /// The name of the flow that is to be improved, if there are others.
    pub flow: Option<&'a str>,
}

impl Hop<'_> {
    /// What is in flight over the hop in a round trip, bytes, if rate and delay are known.
    pub(crate) fn in_flight(&self) -> Option<u64> {
        let bits = u128::from(self.rate?.as_bps()) * 2 * u128::from(self.delay?.as_nanos());
        u64::try_from(bits / 8_000_000_000).ok()
    }
}

/// A node, by its place at the bad hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The node before the bad hop.
    BeforeHop,
    /// The host at the end of the bad hop: an end of the flow.
    Host,
    /// Every node to which that host is attached, at one time or another.
    Attachments,
    /// The other end of the flow.
    Peer,
}

/// Boxes that help together, perhaps with the flow's TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// What the literature calls them together, if there are several.
    pub name: Option<&'static str>,
    /// The boxes, and the nodes that get one.
    pub boxes: Vec<(Place, BoxSettings)>,
    /// The mechanisms of the flow's TCP that react to what they find.
    pub mechanisms: Vec<Mechanism>,
    /// Whether the flow must use IPv6.
    pub ipv6: bool,
    /// How long they are to be there before a flow starts, to know of each other.
    pub lead: Duration,
}

impl Remedy {
    /// A box before the hop.
    pub(crate) fn before_hop(settings: impl Into<BoxSettings>) -> Remedy {
        Remedy::new(None, vec![(Place::BeforeHop, settings.into())])
    }

    /// Boxes that are useful at once.
    pub(crate) fn new(name: Option<&'static str>, boxes: Vec<(Place, BoxSettings)>) -> Remedy {
        Remedy { name, boxes, mechanisms: Vec::new(), ipv6: false, lead: Duration::ZERO }
    }

    /// What the boxes need.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let boxes = self.boxes.iter().map(|(_, settings)| settings.needs());
        boxes.chain(self.mechanisms.iter().map(Mechanism::needs)).collect()
    }
}
