//! Stripping of TCP options, as some firewalls do it: connections through the node do without them.

use crate::table::{Settings, Site};
use base::Time;
use host::{Context, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use wire::{Body, ConnectivityOption, Packet};

base::settings! {
    /// Removes options from the headers of all TCP segments that pass the node. A connection does
    /// not use what neither SYN nor SYN-ACK has offered.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct StripOptions {
        /// Which options: `sack` is both the permission and the blocks, `unknown` are all kinds
        /// without a standard, such as those by which ends signal a corruption (`forward-eten`) or a
        /// change of connectivity (`rlci`).
        pub options: Vec<TcpOption>,
    }
}

/// TCP options that can be stripped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TcpOption {
    /// The maximum segment size: peers then send segments of 536 bytes (RFC 9293 §3.7.1).
    Mss,
    /// The window scale.
    WindowScale,
    /// SACK permitted, and SACK blocks.
    Sack,
    /// Timestamps.
    Timestamps,
    /// Options of all other kinds.
    Unknown,
}

base::words!(TcpOption);

impl Default for StripOptions {
    /// Only the option of RFC 793 passes.
    fn default() -> StripOptions {
        use TcpOption::{Sack, Timestamps, Unknown, WindowScale};
        StripOptions { options: vec![WindowScale, Sack, Timestamps, Unknown] }
    }
}

impl Settings for StripOptions {
    fn build(&self, _: &Site<'_>) -> Box<dyn Middlebox + Send> {
        Box::new(self.clone())
    }
}

impl Middlebox for StripOptions {
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
        let Body::Tcp(segment) = &mut packet.body else { return Verdict::Forward };
        for option in &self.options {
            match option {
                TcpOption::Mss => segment.options.mss = None,
                TcpOption::WindowScale => segment.options.window_scale = None,
                TcpOption::Sack => {
                    segment.options.sack_permitted = false;
                    segment.options.sack.clear();
                }
                TcpOption::Timestamps => segment.options.timestamps = None,
                TcpOption::Unknown => {
                    segment.options.connectivity = ConnectivityOption::NONE;
                    segment.options.corrupted = None;
                    // It cannot fail: no options are no wrong ones.
                    let _ = packet.unparsed.set_tcp_options(&[]);
                }
            }
        }
        Verdict::Forward
    }
}
