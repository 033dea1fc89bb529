//! Connections whose handshake has passed, end to end: each half continues it.

use super::{Entry, HalfId, Relays, SIDES, towards};
use crate::hop::FlowId;
use crate::{Half, Policy, Relay, Side};
use base::{Duration, Time};
use host::FourTuple;
use tcp::{Config, Handshake, InitialWindow};
use wire::Segment;

/// How a connection is split.
#[derive(Clone, Debug)]
pub struct Split {
    /// The settings of the halves, by the [`Side`] that each speaks with.
    pub configs: [Config; 2],
    /// How its relay treats it.
    pub policy: Policy,
}

/// What was seen of a connection that is to be split.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Its name, as its client has it.
    pub client: FourTuple,
    /// Its handshake.
    pub handshake: Handshake,
    /// By [`Side`], whether that end is behind the hop ([`Relays::set_hop`]).
    pub behind_hop: [bool; 2],
}

impl Relays {
    /// The longest round trip over the hop that an initial window is made for: two satellites in a row.
    const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(2);

    /// Splits a connection whose handshake has passed. Returns false if there is such a connection, or
    /// if both its ends are one, or if no more are to be split ([`Relays::drain`]).
    pub fn split(&mut self, now: Time, seen: &Seen, split: &Split) -> bool {
        let Seen { client, handshake, .. } = seen;
        if self.is_draining || self.is_taken(client) {
            return false;
        }
        let number = self.next_number();
        let halves = SIDES.map(|side| {
            // Each half takes the place of the other end.
            let end = match side {
                Side::Client => tcp::Side::Passive,
                Side::Server => tcp::Side::Active,
            };
            let mut config = split.configs[side as usize].clone();
            if seen.behind_hop[side as usize] {
                config.initial_window = self.initial_window(now, side, seen, &config);
            }
            let half = Half::new(number, side);
            let tuple = towards(side, client);
            self.halves.host.adopt_handshake(now, tuple, (end, handshake), &config, half)
        });
        let [Some(to_client), Some(to_server)] = halves else {
            unreachable!("no connection has these 4-tuples")
        };
        let relay = Relay::new(split.policy);
        let ids = [to_client, to_server].map(HalfId::Tcp);
        for id in ids {
            self.halves.access(now, id, |half| relay.join(half));
        }
        let halves = ids.map(Some);
        self.put(number, Entry { relay, halves, ..Entry::new(now, *client) }, seen.behind_hop);
        self.statistics.split += 1;
        self.run(now);
        true
    }

    /// The initial window of a half over the hop, whose handshake was the client's and the server's.
    fn initial_window(&self, now: Time, side: Side, seen: &Seen, config: &Config) -> InitialWindow {
        let Handshake { syn, syn_at, syn_ack, syn_ack_at, .. } = &seen.handshake;
        // The last copy of what was answered: if it was an earlier one, the round trip is longer.
        let rtt = match side {
            Side::Client => now.since(*syn_ack_at),
            Side::Server => syn_ack_at.since(*syn_at),
        };
        let mss =
            [syn, syn_ack].map(|segment| segment.options.mss.unwrap_or(536)).into_iter().min();
        let mss = u32::from(mss.unwrap_or(536)).max(1);
        let is_ipv6 = seen.client.remote.is_ipv6();
        let of_hop = self.window_of_hop(rtt, mss, is_ipv6);
        of_hop
            .filter(|window| window.bytes(mss) > config.initial_window.bytes(mss))
            .unwrap_or(config.initial_window)
    }

    /// What the hop carries in a round trip, if its rate is known; its scheduler sends no faster. So nothing
    /// is to be found out by a slow start.
    fn window_of_hop(&self, rtt: Duration, mss: u32, is_ipv6: bool) -> Option<InitialWindow> {
        let rate = self.hop_rate()?.as_bps();
        let rtt = rtt.min(Relays::LONGEST_ROUND_TRIP).as_nanos();
        let bytes = u128::from(rate) * u128::from(rtt) / 8_000_000_000;
        let ip = if is_ipv6 { 40 } else { 20 };
        let packet = mss + ip + Segment::HEADER as u32;
        let segments = u32::try_from(bytes / u128::from(packet)).unwrap_or(u32::MAX);
        Some(InitialWindow::Segments(segments))
    }

    /// A half is connected by a handshake of its own. If it leads over the hop, it starts with
    /// what the hop carries in a round trip.
    pub(super) fn skip_slow_start(&mut self, now: Time, id: HalfId, flow: FlowId) {
        if !self.hop.as_ref().is_some_and(|hop| hop.contains(flow)) {
            return;
        }
        let HalfId::Tcp(id) = id else { return };
        let Some(half) = self.halves.host.connection(id) else { return };
        let (Some(rtt), mss) = (half.latest_rtt(), half.segment_size()) else { return };
        let is_ipv6 = self.halves.host.four_tuple(id).is_some_and(|ends| ends.remote.is_ipv6());
        if let Some(window) = self.window_of_hop(rtt, mss, is_ipv6) {
            self.halves.host.access(now, id, |half, _| half.raise_initial_window(window));
        }
    }
}
