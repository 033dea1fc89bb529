//! A misbehaving receiver, which invents the survival probabilities of its path (`bbn8333` §7.1).

use crate::attack::{Forgery, OfEach, Target, times};
use crate::eten::Reporter;
use crate::table::{Settings, Site};
use base::Time;
use base::settings::{Kind, Span};
use host::{Context, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use wire::{Causes, Code, Packet, PathFields, PathForm, Probability};

/// The box at the receiver's node: replaces the path fields that its segments echo.
#[derive(Clone, Copy, Debug)]
pub struct FieldForger {
    forgery: Forgery,
    loss: Causes<f64>,
    start: Time,
    stop: Time,
}

impl FieldForger {
    /// The receiver of the victim's flow, which reports these loss probabilities from `start` to `stop`.
    #[must_use]
    pub fn new(forgery: Forgery, loss: Causes<f64>, (start, stop): (Time, Time)) -> FieldForger {
        FieldForger { forgery, loss, start, stop }
    }
}

impl Middlebox for FieldForger {
    fn packet(
        &mut self,
        now: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if !(self.start..self.stop).contains(&now) || self.forgery.acknowledgment(packet).is_none()
        {
            return Verdict::Forward;
        }
        let lie = match PathFields::of(packet) {
            Some(PathFields::Exact { forward, .. }) => {
                let echoed = self.loss.map(|loss| Probability::of(1.0 - loss));
                PathFields::Exact { forward, echoed }
            }
            Some(PathFields::Coded { forward, .. }) => {
                let echoed = self.loss.map(|loss| Code::level(PathForm::Levels.level(loss)));
                PathFields::Coded { forward, echoed }
            }
            None => return Verdict::Forward,
        };
        lie.renew(packet);
        Verdict::Forward
    }
}

base::settings! {
    /// Replaces the loss probabilities that the node echoes, where it receives flows with Cumulative
    /// ETEN.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct FalseFields {
        /// The names of the flows whose receiver it is; all if the list is empty.
        pub flows: Vec<String>,
        /// The probability of a loss by corruption that it claims.
        pub corruption: f64 as Kind::Number { least: 0.0, most: 1.0 },
        /// That of a loss by congestion.
        pub congestion: f64 as Kind::Number { least: 0.0, most: 1.0 },
        /// When it starts; at the start of the run if absent.
        pub start: Option<Span>,
        /// When it stops; at the end of the run if absent.
        pub stop: Option<Span>,
    }
}

impl Default for FalseFields {
    /// Certain corruption.
    fn default() -> FalseFields {
        let (flows, start, stop) = (Vec::new(), None, None);
        FalseFields { flows, corruption: 1.0, congestion: 0.0, start, stop }
    }
}

impl Settings for FalseFields {
    fn flows(&self) -> &[String] {
        &self.flows
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let loss = Causes { corruption: self.corruption, congestion: self.congestion };
        let forgers = site.flows(&self.flows).into_iter().map(|flow| {
            let forgery = Forgery::new(site, flow, Target::Sender, Reporter::SIZE_ICMP);
            FieldForger::new(forgery, loss, times(self.start, self.stop))
        });
        Box::new(OfEach(forgers.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;
    use host::Outbox;
    use wire::{Body, Segment};

    #[test]
    fn what_is_echoed_of_the_path_is_the_claim_and_the_rest_stays() {
        let [source, destination] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        let (attacker, target) = (destination, source);
        let forgery =
            Forgery { attacker, source, destination, destination_port: 5001, target, size: 180 };
        let claim = Causes { corruption: 1.0, congestion: 0.25 };
        let mut receiver = FieldForger::new(forgery, claim, (Time::ZERO, Time::NEVER));
        let mut packet = Packet::BLANK;
        (packet.ip.source, packet.ip.destination) = (forgery.destination, forgery.source);
        packet.body = Body::Tcp(Segment { source_port: 5001, ..Segment::default() });
        let forward = Causes { corruption: Probability::of(0.5), congestion: Probability::of(0.9) };
        PathFields::Exact { forward, echoed: Causes::SURVIVES }.put(false, &mut packet.unparsed);
        receiver.packet(Time::ZERO, None, &mut packet, &mut Outbox::default().context());
        let [corruption, congestion] = [0.0, 0.75].map(Probability::of);
        let echoed = Causes { corruption, congestion };
        assert_eq!(PathFields::of(&packet), Some(PathFields::Exact { forward, echoed }));
    }
}
