//! Whatever the network and the ends go through, each payload is opened at most once and only if it was
//! sealed (`World` checks this), and once the network works, payloads arrive again.

use crate::world::{Network, World, config, millis, secs};
use base::Duration;
use channel::Config;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize, usize),
    Run(u64),
    Network(Network),
    Outage(u64),
    /// With a clock that is right or not.
    Restart(usize, u64),
    Move,
    /// An end's clock goes on while it does not run.
    Jump(usize, u64),
    /// The attacker sends again what was sent.
    Replay(usize),
}

fn network() -> impl Strategy<Value = Network> {
    let share = || prop_oneof![Just(0.0), 0.0..0.6];
    let times = (1u64..1500, prop_oneof![Just(0u64), 0u64..2000]);
    (times, share(), share(), share(), 1200usize..1600).prop_map(
        |((delay, jitter), loss, duplication, corruption, longest)| Network {
            delay: millis(delay),
            jitter: millis(jitter),
            loss,
            duplication,
            corruption,
            longest,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let end = || 0usize..2;
    let clock = prop_oneof![Just(0u64), Just(1 << 60), Just(1 << 61), Just(u64::MAX - 5)];
    prop_oneof![
        20 => (end(), 0usize..4000).prop_map(|(end, length)| Step::Send(end, length)),
        12 => (0u64..3000).prop_map(Step::Run),
        3 => (3000u64..100_000).prop_map(Step::Run),
        3 => network().prop_map(Step::Network),
        2 => (0u64..300_000).prop_map(Step::Outage),
        2 => (end(), clock).prop_map(|(end, clock)| Step::Restart(end, clock)),
        2 => Just(Step::Move),
        2 => (end(), 0u64..400_000).prop_map(|(end, time)| Step::Jump(end, time)),
        6 => any::<usize>().prop_map(Step::Replay),
    ]
}

/// A keep-alive, the wait for its answer, a retry with jitter, twice the longest round trip of a network
/// that works, and another retry for the ends' initiations that cross.
const RECOVERY: Duration = Duration::from_millis(10_000 + 5_000 + 6_250 + 1_200 + 6_250);

fn check(world: &mut World, steps: Vec<Step>) {
    for step in steps {
        match step {
            Step::Send(end, length) => drop(world.send(end, length)),
            Step::Run(time) => world.run(millis(time)),
            Step::Network(network) => world.network = network,
            Step::Outage(time) => {
                let loss = std::mem::replace(&mut world.network.loss, 1.0);
                world.run(millis(time));
                world.network.loss = loss;
            }
            Step::Restart(end, clock) => world.restart(end, clock),
            // The first end is mobile; the second knows it by its packets.
            Step::Move => world.ends[0].place += 1,
            Step::Jump(end, time) => world.jump(end, millis(time)),
            Step::Replay(at) => {
                let (end, from, bytes) = world.recorded[at % world.recorded.len()].clone();
                world.deliver(end, from, bytes);
            }
        }
    }
    world.network = Network::GOOD;
    world.run(RECOVERY);
    let carried = world.exchange(millis(500), secs(200));
    // The session may be replaced, and nothing is lost then.
    assert_eq!(carried, [(400, 400); 2]);
    // Longer datagrams are tried again after ten minutes.
    world.run(secs(700));
    for end in &world.ends {
        let (base, most) = (*end.config.datagrams.start(), *end.config.datagrams.end());
        let arriving = most.min(world.network.longest as u16);
        let known = end.longest.last().copied().unwrap_or(base);
        assert!((arriving.saturating_sub(4)..=arriving).contains(&known), "{known} of {arriving}");
    }
}

fn cases() -> u32 {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default().cases,
        None => 60,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn payloads_arrive_once_and_again_after_any_trouble(
        seed in any::<u64>(),
        both_know in any::<bool>(),
        keep_alive in any::<bool>(),
        longest in 1200u16..1600,
        network in network(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let second = Config { address: config(1).address.filter(|_| both_know), ..config(1) };
        let configs = [config(0), second].map(|config| Config {
            // A short life of sessions, and the keep-alives that find a restart.
            rekey_after: secs(40),
            keep_alive: Some(secs(if keep_alive { 10 } else { 5 })),
            datagrams: 1200..=longest,
            ..config
        });
        let mut world = World::new(seed, configs);
        world.network = network;
        world.run(millis(1));
        check(&mut world, steps);
    }
}
