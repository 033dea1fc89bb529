//! The boxes that code flows.

use crate::flow::Corruption;
use crate::placement::{Placement, port};
use crate::scenario::Scenario;
use middlebox::fec::{self, Decoder, Encoder, PacketDecoder, PacketEncoder, SideChannel};

/// The flow with this index, as codes know it.
fn coded(scenario: &Scenario, index: usize, placement: &impl Placement) -> fec::Flow {
    let flow = &scenario.flows[index];
    let [source, destination] = [flow.from, flow.to].map(|node| placement.address(index, node));
    fec::Flow { source, destination, port: port(index) }
}

/// Codes in packets.
pub(super) fn install_packet_codes(scenario: &Scenario, placement: &mut impl Placement) {
    for (index, flow) in scenario.flows.iter().enumerate() {
        let Some(strength) = flow.packet_code else { continue };
        let coded = coded(scenario, index, placement);
        let encoder = PacketEncoder::new(coded, strength, scenario.meter.a);
        placement.add_box(flow.from, Box::new(encoder));
        placement.add_box(flow.to, Box::new(PacketDecoder::new(coded)));
    }
}

/// Codes across packets, behind all other boxes of the hosts.
pub(super) fn install_erasure_codes(
    scenario: &Scenario,
    placement: &mut impl Placement,
) -> Vec<Option<SideChannel>> {
    let flows = scenario.flows.iter().enumerate();
    let codings = flows.map(|(index, flow)| {
        let coding = flow.coding?;
        let coded = coded(scenario, index, placement);
        let side_channel = SideChannel::default();
        let mut encoder = Encoder::new(coded, coding.settings, side_channel.clone());
        let decoder = Decoder::new(coded, coding.settings, coding.signal, side_channel.clone());
        match coding.corruption {
            Corruption::Known(probability) => encoder.set_corruption(probability),
            Corruption::Reported => encoder.follow(scenario.meter.a),
        }
        placement.add_box(flow.from, Box::new(encoder));
        placement.add_box(flow.to, Box::new(decoder));
        Some(side_channel)
    });
    codings.collect()
}
