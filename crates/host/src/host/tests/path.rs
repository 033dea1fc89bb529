//! What packets say of their path reaches the connection, by whichever road they come in
//! (`bbn8333` §4.1).

use super::*;
use tcp::mechanism::{CumulativeEten, Fields, Strategy};
use wire::{Causes, PathFields, Probability};

/// What answers echo of the path that packets with these fields have taken, each in turn, if `take`
/// hands them to the host.
fn echoed(
    fields: &[Causes<Probability>],
    take: impl Fn(&mut Host<Traffic>, &mut Tray),
) -> Vec<Causes<Probability>> {
    let ceten = CumulativeEten::new(Strategy::LossRatio, 1.0, Fields::Free);
    let mechanisms = vec![Mechanism::CumulativeEten(ceten)];
    let config = Config { mechanisms, delayed_ack: None, ..Config::default() };
    let (mut client, mut server) = (host(CLIENT), host(SERVER));
    let accepted = config.clone();
    server.listen(80, move || (accepted.clone(), Traffic::Sink(Sink::new(0))));
    client.open(Opening { config, ..transfer(Time::ZERO, 80, 0, 100_000) });
    client.handle_timeout(Time::ZERO);
    shake_hands(&mut client, &mut server);
    let data = sent(&mut client, Time::ZERO);
    let answers = data.iter().zip(fields).flat_map(|(packet, &forward)| {
        let mut packet = *packet;
        let Some(PathFields::Exact { echoed, .. }) = PathFields::of(&packet) else {
            panic!("{packet:?} says nothing of its path");
        };
        PathFields::Exact { forward, echoed }.renew(&mut packet);
        let mut tray = Tray { next: packet, sent: Vec::new() };
        take(&mut server, &mut tray);
        tray.sent
    });
    let echoed = answers.map(|answer| match PathFields::of(&answer) {
        Some(PathFields::Exact { echoed, .. }) => echoed,
        other => panic!("{other:?}"),
    });
    echoed.collect()
}

/// Until the client may send data.
fn shake_hands(client: &mut Host<Traffic>, server: &mut Host<Traffic>) {
    for syn in sent(client, Time::ZERO) {
        server.handle_packet(Time::ZERO, &syn);
    }
    for answer in sent(server, Time::ZERO) {
        client.handle_packet(Time::ZERO, &answer);
    }
}

#[test]
fn fields_are_processed_on_the_fast_path_as_on_the_general_path() {
    let of = |corruption, congestion| Causes { corruption, congestion }.map(Probability::of);
    let fields = [of(0.9, 1.0), of(0.8, 0.7), of(0.6, 0.95)];
    let general = echoed(&fields, |host, tray| {
        host.handle_packet(millis(1), &tray.next.clone());
        let _ = host.transmit(millis(1), tray);
    });
    let fast = echoed(&fields, |host, tray| {
        tray.exchange(host, millis(1));
    });
    assert_eq!(general, fields);
    assert_eq!(fast, fields);
}
