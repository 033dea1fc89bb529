//! The congestion control of connections by their routes.

use super::{Family, Netlink};
use crate::Error;
use crate::error::Doing;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteType,
};

impl Netlink {
    /// Lets connections by all routes that there are to others, also those that peers open, have this congestion
    /// control unless they ask for another. Unlike the setting of a namespace, it may be one that not every user
    /// may choose.
    ///
    /// # Errors
    /// If the kernel has none of that name.
    pub fn set_congestion_control(&self, name: &str) -> Result<(), Error> {
        for family in Family::ALL {
            for route in self.routes(family.number()) {
                let is_main = route.header.table == RouteHeader::RT_TABLE_MAIN;
                if is_main && route.header.kind == RouteType::Unicast {
                    let message = RouteNetlinkMessage::NewRoute(with(name, route));
                    let changed = self.requests.change(message, NLM_F_CREATE | NLM_F_REPLACE);
                    changed.doing(|| format!("setting the congestion control {name:?}"))?;
                }
            }
        }
        Ok(())
    }
}

/// The same route with a congestion control.
fn with(name: &str, route: RouteMessage) -> RouteMessage {
    // Others say what the kernel knows of it.
    let is_set = |attribute: &RouteAttribute| {
        matches!(
            attribute,
            RouteAttribute::Destination(_)
                | RouteAttribute::Gateway(_)
                | RouteAttribute::Oif(_)
                | RouteAttribute::PrefSource(_)
                | RouteAttribute::Priority(_)
        )
    };
    let mut changed = RouteMessage::default();
    changed.header = route.header;
    changed.attributes = route.attributes.into_iter().filter(is_set).collect();
    let control = RouteMetric::CcAlgo(name.to_owned());
    changed.attributes.push(RouteAttribute::Metrics(vec![control]));
    changed
}
