use super::*;
use base::Seed;
use core::net::IpAddr;
use host::Outbox;
use wire::{Body, Icmp, Ip, Segment};

/// A packet with fields that no node has updated.
fn fresh(form: PathForm) -> Packet {
    let [source, destination] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
    let body = Body::Tcp(Segment::default());
    let mut packet = Packet { ip: Ip::new(source, destination), body, ..Packet::BLANK };
    let fields = if form.is_exact() {
        PathFields::Exact { forward: Causes::SURVIVES, echoed: Causes::SURVIVES }
    } else {
        PathFields::Coded { forward: Causes::default(), echoed: Causes::default() }
    };
    fields.put(false, &mut packet.unparsed);
    packet
}

/// A meter and a packet of its link, again and again.
struct Node(Meter);

impl Node {
    fn new(a: f64, form: PathForm) -> Node {
        Node(Meter::new(a, form))
    }

    fn arrives(&mut self, packet: &mut Packet) {
        let mut outbox = Outbox::default();
        let mut cx = outbox.context();
        let passage = self.0.packet(Time::ZERO, Some(Port(3)), packet, &mut cx);
        assert_eq!(passage, Verdict::Forward);
    }

    fn on_link_event(&mut self, event: LinkEvent<'_>) {
        let mut outbox = Outbox::default();
        let mut cx = outbox.context();
        self.0.link(Time::ZERO, Port(3), event, &mut cx);
    }

    fn corrupts(&mut self) {
        self.on_link_event(LinkEvent::Corrupted(&Packet::BLANK));
    }

    fn code(&mut self) -> Code {
        let mut packet = fresh(self.0.form);
        self.arrives(&mut packet);
        let Some(PathFields::Coded { forward, .. }) = PathFields::of(&packet) else {
            panic!("the fields are gone");
        };
        forward.corruption
    }
}

fn forward(packet: &Packet) -> Causes<f64> {
    match PathFields::of(packet) {
        Some(PathFields::Exact { forward, echoed: Causes::SURVIVES }) => {
            forward.map(Probability::get)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_estimate_is_the_sum_of_its_geometric_weights() {
    let pattern = [true, true, false, true, false, false, true, true];
    for a in [0.01, 0.5, 0.9] {
        let mut node = Node::new(a, PathForm::Probability);
        for survived in pattern {
            if survived { node.arrives(&mut Packet::BLANK.clone()) } else { node.corrupts() }
        }
        // p_n = (1-a)^n + a * sum of (1-a)^(n-i) x_i
        let power = |n: usize| (0..n).fold(1.0, |product, _| product * (1.0 - a));
        let n = pattern.len();
        let weighed = pattern.iter().zip(1..).filter(|(x, _)| **x).map(|(_, i)| a * power(n - i));
        let expected = power(n) + weighed.sum::<f64>();
        let found = node.0.corruption(Port(3));
        assert!((found - expected).abs() < 1e-12, "{found}, {expected}");
        assert_eq!((node.0.congestion(Port(3)), node.0.corruption(Port(0))), (1.0, 1.0));
    }
}

#[test]
fn an_estimate_is_updated_before_it_is_written_into_the_packet() {
    let mut node = Node::new(0.5, PathForm::Probability);
    node.corrupts();
    node.on_link_event(LinkEvent::Dropped(&Packet::BLANK));
    node.on_link_event(LinkEvent::Dropped(&Packet::BLANK));
    let mut packet = fresh(PathForm::Probability);
    node.arrives(&mut packet);
    let mut outbox = Outbox::default();
    let mut cx = outbox.context();
    node.0.queued(Time::ZERO, Port(3), &mut packet, &mut cx);
    let Causes { corruption, congestion } = forward(&packet);
    assert!((corruption - 0.75).abs() < 1e-9 && (congestion - 0.625).abs() < 1e-9);
}

#[test]
fn three_hops_multiply() {
    let mut packet = fresh(PathForm::Probability);
    let mut product = 1.0;
    for losses in [1, 0, 2] {
        let mut node = Node::new(0.1, PathForm::Probability);
        (0..losses).for_each(|_| node.corrupts());
        node.arrives(&mut packet);
        product *= node.0.corruption(Port(3));
    }
    let found = forward(&packet);
    assert!((found.corruption - product).abs() < 1e-9 && product < 0.8);
    assert!((found.congestion - 1.0).abs() < 1e-9);
}

#[test]
fn what_starts_here_came_by_no_link_and_other_packets_stay_as_they_are() {
    let mut meter = Meter::new(0.5, PathForm::Probability);
    let mut outbox = Outbox::default();
    let mut cx = outbox.context();
    let mut packet = fresh(PathForm::Probability);
    meter.packet(Time::ZERO, None, &mut packet, &mut cx);
    assert_eq!(packet, fresh(PathForm::Probability));
    meter.link(Time::ZERO, Port(0), LinkEvent::Corrupted(&packet), &mut cx);
    let mut bare = Packet { unparsed: wire::UnparsedOptions::NONE, ..packet };
    let before = bare;
    meter.packet(Time::ZERO, Some(Port(0)), &mut bare, &mut cx);
    assert_eq!(bare, before);
}

#[test]
fn the_worst_link_gives_the_level() {
    for (form, worst) in [(PathForm::Levels, 2), (PathForm::Binary, 1)] {
        let mut node = Node::new(0.02, form);
        assert_eq!(node.code().as_level(), 0);
        node.corrupts();
        assert_eq!(node.code().as_level(), 1);
        (0..10).for_each(|_| node.corrupts());
        assert_eq!(node.code().as_level(), worst);
        // A better link changes nothing.
        let mut packet = fresh(form);
        node.arrives(&mut packet);
        let before = packet;
        Node::new(0.02, form).arrives(&mut packet);
        assert_eq!(packet, before);
    }
}

#[test]
fn relative_codes_add_up_to_the_level() {
    let mut node = Node::new(0.02, PathForm::Relative);
    let mut level = 0;
    let mut steps = |node: &mut Node, packets: u32| {
        for _ in 0..packets {
            level += node.code().as_step();
        }
        level
    };
    assert_eq!(steps(&mut node, 5), 0);
    (0..10).for_each(|_| node.corrupts());
    assert_eq!(steps(&mut node, 1), 1);
    assert_eq!(steps(&mut node, 5), 2);
    assert_eq!(steps(&mut node, 500), 0);
}

#[test]
fn a_step_waits_for_a_packet_with_room_for_it() {
    let mut nodes = [0, 1].map(|_| Node::new(0.5, PathForm::Relative));
    nodes.iter_mut().for_each(Node::corrupts);
    let mut sum = 0;
    for _ in 0..4 {
        let mut packet = fresh(PathForm::Relative);
        nodes.iter_mut().for_each(|node| node.arrives(&mut packet));
        let Some(PathFields::Coded { forward, .. }) = PathFields::of(&packet) else { panic!() };
        sum += forward.corruption.as_step();
    }
    // Both links are at the highest level, two steps up.
    let reported: Vec<u8> = nodes.iter().map(|node| node.0.arriving[3].reported).collect();
    assert_eq!(sum, reported.iter().sum::<u8>() as i8);
}

#[test]
fn the_source_gets_survival_notices_with_the_given_probability() {
    let [sender, receiver, node] = [1, 2, 3].map(|n| IpAddr::from([10, 0, 0, n]));
    let mut traceback = Traceback::new(vec![node], 0.1, Seed(1).stream("a node"));
    traceback.register(sender, receiver, 0);
    let mut meter = Meter::new(0.5, PathForm::Probability).with_traceback(traceback);
    let mut outbox = Outbox::default();
    for n in 0..1000 {
        let mut cx = outbox.context();
        let mut data =
            Packet { unparsed: wire::UnparsedOptions::NONE, ..fresh(PathForm::Probability) };
        if n % 2 == 0 {
            meter.link(Time::ZERO, Port(3), LinkEvent::Corrupted(&data), &mut cx);
        }
        meter.packet(Time::ZERO, Some(Port(3)), &mut data, &mut cx);
        meter.queued(Time::ZERO, Port(4), &mut data, &mut cx);
        // Acknowledgments, whose flow is not registered.
        let mut ack = Packet { ip: Ip::new(receiver, sender), ..data };
        meter.packet(Time::ZERO, Some(Port(5)), &mut ack, &mut cx);
    }
    let notices: Vec<_> = outbox
        .into_packets()
        .iter()
        .map(|packet| match packet.body {
            Body::Icmp(Icmp::Survival(notice)) => {
                assert_eq!((packet.ip.source, packet.ip.destination), (node, sender));
                assert_eq!((notice.destination, packet.len()), (receiver, 44));
                (notice.link, notice.survival.map(Probability::get))
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert!((150..250).contains(&notices.len()), "{}", notices.len());
    for (link, survival) in notices {
        match link {
            3 => assert!((0.5..0.9).contains(&survival.corruption) && survival.congestion == 1.0),
            4 => assert_eq!(survival, Causes { corruption: 1.0, congestion: 1.0 }),
            other => panic!("a notice about link {other}"),
        }
    }
}
