//! MSS clamping: connections through the node use segments that fit a link or a tunnel behind it.

use crate::table::{Settings, Site};
use base::Time;
use base::settings::Kind;
use host::{Context, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use wire::{Body, Flags, Packet};

base::settings! {
    /// Lowers the MSS option (RFC 9293 §3.7.1) of every SYN that passes the node.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct MssClamp {
        /// The largest maximum segment size that SYNs announce behind it, bytes.
        pub mss: u16 as Kind::at_least(MssClamp::LEAST),
    }
}

impl MssClamp {
    /// The smallest setting, bytes.
    pub(crate) const LEAST: u16 = 48;
}

impl Default for MssClamp {
    /// The MSS for a tunnel over Ethernet.
    fn default() -> MssClamp {
        MssClamp { mss: 1360 }
    }
}

impl Settings for MssClamp {
    fn build(&self, _: &Site<'_>) -> Box<dyn Middlebox + Send> {
        Box::new(*self)
    }
}

impl Middlebox for MssClamp {
    fn shares_state(&self) -> bool {
        false
    }

    fn packet(
        &mut self,
        _: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if let Body::Tcp(segment) = &mut packet.body
            && segment.flags.contains(Flags::SYN)
            && let Some(mss) = &mut segment.options.mss
        {
            *mss = self.mss.min(*mss);
        }
        Verdict::Forward
    }
}
