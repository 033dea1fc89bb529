//! Cumulative ETEN (`bbn8333` §4): what packets say at the end of their path is the product of what
//! every node on it has measured until then.

use crate::common::{Hop, Path, mbps, noisy, plain, secs};
use base::Time;
use host::{Context, LinkEvent, Middlebox, Port, Verdict};
use link::Queue;
use middlebox::Meter;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tcp::mechanism::{CumulativeEten, Fields, Mechanism, Strategy};
use wire::{Body, Causes, CopyId, Packet, PathFields, PathForm, Probability};

const A: f64 = 0.2;

/// Stands behind a meter, keeps a list of everything that happened on each link, and works out from
/// it what each packet is to say.
struct Witness {
    last: bool,
    /// By the link: whether each packet survived, in order.
    arriving: BTreeMap<Port, Vec<bool>>,
    leaving: BTreeMap<Port, Vec<bool>>,
    path: Arc<Mutex<Claims>>,
}

#[derive(Default)]
struct Claims {
    /// What the packets of the flow should say.
    products: BTreeMap<CopyId, Causes<f64>>,
    checked: u32,
    /// The least that was seen of either.
    least: Option<Causes<f64>>,
}

/// The sum of the geometric weights of those that survived, and of the beginning.
fn average(outcomes: &[bool]) -> f64 {
    let (mut weight, mut sum) = (A, 0.0);
    for &survived in outcomes.iter().rev() {
        sum += if survived { weight } else { 0.0 };
        weight *= 1.0 - A;
    }
    sum + weight / A
}

fn copy(packet: &Packet) -> Option<CopyId> {
    match packet.body {
        Body::Tcp(segment) => Some(segment.copy).filter(|copy| *copy != CopyId(0)),
        _ => None,
    }
}

impl Middlebox for Witness {
    fn packet(
        &mut self,
        _: Time,
        from: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        let Some(port) = from else { return Verdict::Forward };
        let outcomes = self.arriving.entry(port).or_default();
        outcomes.push(true);
        let mut claims = self.path.lock().expect("not poisoned");
        if packet.payload.len == 0 {
            return Verdict::Forward;
        }
        let Some(product) = copy(packet).and_then(|copy| claims.products.get_mut(&copy)) else {
            panic!("{packet:?} has left no queue");
        };
        product.corruption *= average(outcomes);
        let expected = *product;
        if self.last {
            let Some(PathFields::Exact { forward, .. }) = PathFields::of(packet) else {
                panic!("{packet:?} says nothing");
            };
            let found = forward.map(Probability::get);
            assert!(
                (found.corruption - expected.corruption).abs() < 1e-8,
                "{found:?}, {expected:?}"
            );
            assert!(
                (found.congestion - expected.congestion).abs() < 1e-8,
                "{found:?}, {expected:?}"
            );
            claims.checked += 1;
            let least = claims.least.unwrap_or(found);
            claims.least = Some(Causes {
                corruption: least.corruption.min(found.corruption),
                congestion: least.congestion.min(found.congestion),
            });
        }
        Verdict::Forward
    }

    fn queued(&mut self, _: Time, to: Port, packet: &mut Packet, _: &mut Context<'_>) {
        let outcomes = self.leaving.entry(to).or_default();
        outcomes.push(true);
        let one = Causes { corruption: 1.0, congestion: 1.0 };
        if let Some(copy) = copy(packet) {
            let mut claims = self.path.lock().expect("not poisoned");
            claims.products.entry(copy).or_insert(one).congestion *= average(outcomes);
        }
    }

    fn link(&mut self, _: Time, port: Port, event: LinkEvent<'_>, _: &mut Context<'_>) {
        match event {
            LinkEvent::Corrupted(_) => self.arriving.entry(port).or_default().push(false),
            LinkEvent::Dropped(_) => self.leaving.entry(port).or_default().push(false),
            _ => {}
        }
    }
}

#[test]
fn over_three_hops_a_packet_gathers_the_product_of_all_estimates() {
    let hop = |megabits| Hop {
        rate: mbps(megabits),
        queue: Queue::Packets(8),
        forward: noisy(0.01, 1040),
        backward: noisy(0.01, 1040),
        ..Hop::default()
    };
    let mut path = Path { hops: vec![hop(10), hop(4), hop(6)], tcp: plain(), ..Path::default() };
    let ceten = CumulativeEten::new(Strategy::LossRatio, 1.0, Fields::Free);
    path.tcp.mechanisms = vec![Mechanism::CumulativeEten(ceten)];
    let mut lab = path.build();
    let claims = Arc::<Mutex<Claims>>::default();
    for node in lab.nodes.clone() {
        lab.world.add_box(node, Box::new(Meter::new(A, PathForm::Probability)));
        let (arriving, leaving) = Default::default();
        let (last, path) = (node == lab.receiver(), claims.clone());
        lab.world.add_box(node, Box::new(Witness { last, arriving, leaving, path }));
    }
    lab.world.run_until(secs(60));
    let claims = claims.lock().unwrap();
    assert!(claims.checked > 1000, "{}", claims.checked);
    // Both kinds of loss were there to be seen.
    let least = claims.least.unwrap();
    assert!(least.corruption < 0.9 && least.congestion < 0.9, "{least:?}");
    assert!(lab.received() > 1_000_000);
}
