//! Connections that begin in the middle of the path: a box has seen the handshake, and continues one
//! end's part of it.

use super::ecn::answered_ecn;
use super::timestamps::TimestampState;
use super::{Connection, Identity, Negotiated};
use crate::config::{Config, EcnMode, ReceiveWindow};
use crate::state::Side;
use base::Time;
use serde::{Deserialize, Serialize};
use wire::{Ecn, Options, Packet, Payload, Segment};

/// A handshake as seen on the path: the SYN and the SYN-ACK, each as it passed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshake {
    /// The SYN.
    pub syn: Segment,
    /// When it passed.
    pub syn_at: Time,
    /// The SYN-ACK.
    pub syn_ack: Segment,
    /// When it passed.
    pub syn_ack_at: Time,
    /// One of them passed more than once: which copy was answered is unknown, so that the handshake
    /// gives no round-trip sample (RFC 6298 §3).
    pub is_repeated: bool,
}

impl Handshake {
    /// Whether both ends have set an option.
    fn agrees(&self, has: impl Fn(&Options) -> bool) -> bool {
        has(&self.syn.options) && has(&self.syn_ack.options)
    }

    /// The options that both ends have agreed on.
    fn negotiated(&self) -> Negotiated {
        let mut agreed = Negotiated::empty();
        agreed.set(Negotiated::SACK, self.agrees(|options| options.sack_permitted));
        agreed.set(Negotiated::SCALE, self.agrees(|options| options.window_scale.is_some()));
        agreed.set(Negotiated::TIMESTAMPS, self.agrees(|options| options.timestamps.is_some()));
        agreed.set(Negotiated::ECN, self.ecn() != EcnMode::Off);
        agreed.set(Negotiated::ACCURATE_ECN, self.ecn() == EcnMode::Accurate);
        agreed
    }

    /// The form of ECN that both ends use (RFC 9768, table 2).
    fn ecn(&self) -> EcnMode {
        let [offer, answer] =
            [&self.syn, &self.syn_ack].map(|one| answered_ecn(EcnMode::Accurate, one.flags));
        match (offer, answer) {
            (Negotiated::ACCURATE_ECN, Negotiated::ACCURATE_ECN) => EcnMode::Accurate,
            (Negotiated::ECN | Negotiated::ACCURATE_ECN, Negotiated::ECN) => EcnMode::Classic,
            _ => EcnMode::Off,
        }
    }
}

impl Connection {
    /// The connection of the end `side` of a handshake, to be continued by a box on the path in that
    /// end's place: with its sequence numbers, its segment size, all that was negotiated, and timestamps that
    /// are not before those that the end has sent. The connection of the end that opened is
    /// established, and acknowledges the SYN-ACK; the other one waits for that acknowledgment.
    ///
    /// All else is as `config` says. Its receive window is at least the one that the end has
    /// announced, and at most what the negotiated scale can express. `is_ipv6` and `secret` are those
    /// of [`Identity`].
    #[must_use]
    pub fn from_handshake(
        config: &Config,
        side: Side,
        handshake: &Handshake,
        is_ipv6: bool,
        secret: u64,
    ) -> Connection {
        let Handshake { syn, syn_at, syn_ack, syn_ack_at, is_repeated } = handshake;
        let (own, own_at) = match side {
            Side::Active => (syn, *syn_at),
            Side::Passive => (syn_ack, *syn_ack_at),
        };
        let agreed = handshake.negotiated();
        let scale = own.options.window_scale.filter(|_| agreed.contains(Negotiated::SCALE));
        let shift = scale.unwrap_or(0).min(14);
        let within = |bytes: u32| bytes.clamp(own.window.into(), u32::from(u16::MAX) << shift);
        let ReceiveWindow { initial, maximum } = config.receive_window;
        let config = Config {
            // The default stands for what the other end assumes.
            mss: own.options.mss.unwrap_or(if is_ipv6 { 1220 } else { 536 }),
            receive_window: ReceiveWindow { initial: within(initial), maximum: within(maximum) },
            timestamps: agreed.contains(Negotiated::TIMESTAMPS),
            ecn: handshake.ecn(),
            fast_open: false,
            ..config.clone()
        };
        let stamp = own.options.timestamps.map_or(0, |stamps| stamps.value);
        let identity = Identity {
            local_port: own.source_port,
            remote_port: own.destination_port,
            iss: own.seq,
            timestamp_offset: stamp.wrapping_sub(TimestampState::new(0).value(own_at)),
            is_ipv6,
            secret,
        };
        let mut connection = Connection::new(&config, side, identity);
        connection.receive_shift = shift;
        connection.negotiated &= agreed;
        let nothing = Payload::default();
        let mut sent = Packet::BLANK;
        match side {
            Side::Active => {
                connection.poll_transmit(*syn_at, 1, &mut sent);
                if *is_repeated {
                    connection.sender.disable_rtt_samples();
                }
                connection.handle_segment(*syn_ack_at, syn_ack, nothing, Ecn::NotCapable);
            }
            Side::Passive => {
                connection.handle_segment(*syn_at, syn, nothing, Ecn::NotCapable);
                connection.poll_transmit(*syn_ack_at, 1, &mut sent);
                if *is_repeated {
                    connection.sender.disable_rtt_samples();
                }
            }
        }
        connection
    }
}
