//! MSS clamping: connections through the node use segments that fit a link or a tunnel behind it.

use crate::table::{Settings, Site};
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use wire::{Body, Flags, Packet};

/// Lowers the MSS option (RFC 9293 §3.7.1) of every SYN that passes the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MssClamp {
    /// The largest MSS that passes, bytes.
    pub mss: u16,
}

impl Default for MssClamp {
    /// What fits into a tunnel over Ethernet.
    fn default() -> MssClamp {
        MssClamp { mss: 1360 }
    }
}

impl Settings for MssClamp {
    fn check(&self) -> Result<(), (&'static str, String)> {
        match self.mss {
            0..48 => Err(("mss", "expected at least 48 bytes".to_owned())),
            _ => Ok(()),
        }
    }

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
