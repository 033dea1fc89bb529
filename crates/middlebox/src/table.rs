//! What boxes that stand in a node by themselves have in common: settings, and a site.

use crate::fec::Flow;
use crate::{Association, Contents, Ends, Hop, Remedy};
use base::Random;
use core::net::IpAddr;
use host::{Middlebox, Port};
use std::collections::BTreeMap;
use tcp::mechanism::Needs;

/// Where a box stands, and what it may need to know there.
pub struct Site<'a> {
    /// The node's addresses in IPv4 and in IPv6.
    pub own: [IpAddr; 2],
    /// The node's neighbours: one for each link.
    pub neighbours: &'a [Neighbour<'a>],
    /// The address of the node to which the node is attached at the start, if it is attached by one
    /// link only.
    pub attached: Option<IpAddr>,
    /// All flows, by their names.
    pub flows: &'a BTreeMap<&'a str, Flow>,
    /// The directions of tunnels through which the data of flows pass, by the flow.
    pub tunnels: &'a [(Flow, Ends)],
    /// The directions of tunnels whose packets every node can read.
    pub readable: &'a [Association],
    /// The settings of the box's own TCP, if it runs TCP.
    pub tcp: &'a tcp::Config,
    /// Payload has the identity of its place in an application's stream. Otherwise it has that of the packet that
    /// brought it.
    pub has_streams: bool,
    /// The bytes of what the boxes of the world write themselves.
    pub contents: &'a Contents,
    /// A stream of randomness that nothing else uses.
    pub random: &'a dyn Fn() -> Random,
}

/// A neighbour of a node.
#[derive(Clone, Copy, Debug)]
pub struct Neighbour<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its address, from which its boxes send.
    pub address: IpAddr,
    /// The port at which its packets arrive.
    pub port: Port,
}

impl Site<'_> {
    /// The node's address of a version of IP.
    pub fn address(&self, is_ipv6: bool) -> IpAddr {
        self.own[usize::from(is_ipv6)]
    }

    /// The ports at which the packets of a neighbour arrive: one for each link to it.
    pub fn ports_from(&self, neighbour: &str) -> Vec<Port> {
        let neighbours = self.neighbours.iter().filter(|known| known.name == neighbour);
        neighbours.map(|known| known.port).collect()
    }

    /// The address of a neighbour.
    pub fn address_of(&self, neighbour: &str) -> Option<IpAddr> {
        let mut neighbours = self.neighbours.iter();
        neighbours.find(|known| known.name == neighbour).map(|known| known.address)
    }

    /// The flows with these names; all if there are no names.
    pub fn flows(&self, names: &[String]) -> Vec<Flow> {
        if names.is_empty() {
            return self.flows.values().copied().collect();
        }
        names.iter().filter_map(|name| self.flows.get(name.as_str()).copied()).collect()
    }
}

/// The settings of a kind of box.
pub trait Settings {
    /// The names of flows that they mention.
    fn flows(&self) -> &[String] {
        &[]
    }

    /// The name of a neighbour of the node that they mention.
    fn neighbour(&self) -> Option<&str> {
        None
    }

    /// Checks them together, each of which is right by itself.
    ///
    /// # Errors
    /// If they contradict each other, with the reason.
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// Whether the box runs TCP, with [`Site::tcp`].
    fn runs_tcp(&self) -> bool {
        false
    }

    /// Whether its work is to be told which packets arrived damaged at its node
    /// ([`host::LinkEvent::Corrupted`]).
    fn needs_damage_reports(&self) -> bool {
        false
    }

    /// The ways in which it may improve the flows that pass a bad hop, perhaps together with other
    /// boxes. None if it is no remedy.
    fn remedies(hop: &Hop<'_>) -> Vec<Remedy>
    where
        Self: Sized,
    {
        let _ = hop;
        Vec::new()
    }

    /// What it needs as a part of a remedy.
    fn needs(&self) -> Needs {
        Needs::empty()
    }

    /// The box.
    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send>;
}

macro_rules! boxes {
    ($($(#[$($doc:tt)*])* $module:ident :: $Settings:ident = $name:literal;)+) => {
        $(mod $module;)+
        $(pub use $module::$Settings;)+

        /// One of the boxes, with its settings.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "box")]
        pub enum BoxSettings {
            $($(#[$($doc)*])* #[serde(rename = $name)] $Settings($Settings),)+
        }

        $(impl From<$Settings> for BoxSettings {
            fn from(settings: $Settings) -> BoxSettings {
                BoxSettings::$Settings(settings)
            }
        })+

        impl base::settings::Table for BoxSettings {
            const TAG: &'static str = "box";
            const ENTRIES: &'static [base::settings::Entry] =
                &[$(base::settings!(@entry $name $Settings $(#[$($doc)*])*)),+];
        }

        impl BoxSettings {
            /// The boxes, with settings, that may improve the flows that pass a bad hop.
            #[must_use]
            pub fn remedies(hop: &Hop<'_>) -> Vec<Remedy> {
                let mut remedies = Vec::new();
                $(remedies.extend(<$Settings as table::Settings>::remedies(hop));)+
                remedies
            }

            fn settings(&self) -> &dyn table::Settings {
                match self { $(BoxSettings::$Settings(settings) => settings,)+ }
            }
        }
    };
}

pub(crate) use boxes;
