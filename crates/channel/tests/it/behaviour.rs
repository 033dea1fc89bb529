//! Single properties of the channel. The network's round trip is 600 ms.

use crate::world::{World, address, config, entropy, millis, secret, secs};
use base::{Duration, Seed, Time};
use channel::{
    Channel, Config, ConfigError, Event, OVERHEAD, PresharedKey, Recognition, SealError,
};

/// Settings of two ends of which only the first knows where the other is.
fn one_sided() -> [Config; 2] {
    [config(0), Config { address: None, ..config(1) }]
}

#[test]
fn a_handshake_takes_one_round_trip() {
    let mut world = World::new(1, one_sided());
    world.run(millis(599));
    assert_eq!(world.send(0, 0), Err(SealError::NoSession));
    world.run(millis(1));
    assert_eq!(world.events(0), [Event::Connected]);
    assert_eq!(world.send(0, 0), Ok(()));
    // The payload arrives, and proves to the responder that the initiation was no replay.
    world.run(millis(299));
    assert_eq!((world.events(1), world.is_connected(1)), (vec![], false));
    world.run(millis(1));
    assert_eq!(world.events(1), [Event::Connected]);
    assert_eq!(world.ends[1].opened.len(), 1);
    assert_eq!(world.ends[1].channel.address(), Some(address(0, 0)));
    assert_eq!(world.exchange(millis(100), secs(10)), [(100, 100); 2]);
}

#[test]
fn both_ends_may_initiate_at_once() {
    let mut world = World::connected(1, [config(0), config(1)]);
    assert_eq!([world.events(0), world.events(1)], [[Event::Connected]; 2]);
    let responses = [0, 1].map(|end: usize| world.ends[end].channel.statistics().responses);
    assert_eq!(responses, [1, 1]);
    // Through several rekeyings, at which both may initiate again.
    assert_eq!(world.exchange(millis(100), secs(600)), [(6000, 6000); 2]);
}

#[test]
fn nothing_is_lost_when_sessions_are_replaced() {
    for (configs, jitter) in [(one_sided(), 0), (one_sided(), 500), ([config(0), config(1)], 500)] {
        let mut world = World::connected(2, configs);
        world.network.jitter = millis(jitter);
        assert_eq!(world.exchange(millis(100), secs(600)), [(6000, 6000); 2]);
        let sessions = world.ends[0].channel.statistics().sessions;
        assert!((5..=8).contains(&sessions), "every 120 s: {sessions}");
    }
}

#[test]
fn a_session_is_replaced_after_a_number_of_packets_too() {
    let configs = one_sided().map(|config| Config { rekey_after_packets: 100, ..config });
    let mut world = World::connected(2, configs);
    assert_eq!(world.exchange(millis(20), secs(60)), [(3000, 3000); 2]);
    let sessions = world.ends[0].channel.statistics().sessions;
    assert!((20..=30).contains(&sessions), "100 packets and those of a round trip: {sessions}");
}

/// What tells a packet from others: index and code of each session that opens it.
#[test]
fn the_peers_packets_can_be_told_by_the_codes_of_at_most_four_sessions() {
    for configs in [one_sided(), [config(0), config(1)]] {
        let configs = configs.map(|config| Config { rekey_after_packets: 50, ..config });
        let mut world = World::connected(2, configs);
        let mut known = [vec![], vec![]];
        let mut changes = 0;
        for _ in 0..500 {
            for end in [0, 1] {
                if let Some(sessions) = world.ends[end].channel.poll_sessions() {
                    known[end] = sessions.collect();
                    changes += 1;
                }
                assert!((1..=4).contains(&known[end].len()));
                assert!(world.ends[end].channel.poll_sessions().is_none());
            }
            for end in [0, 1] {
                world.recorded.clear();
                world.send(end, 0).unwrap();
                let packet = &world.recorded[0].2;
                let word = |at: usize| packet[at..at + 4].try_into().unwrap();
                let [index, number] = [word(2), word(6)].map(u32::from_be_bytes);
                let is_of = |session: &&Recognition| session.index == index;
                let session = known[1 - end].iter().find(is_of).unwrap();
                assert_eq!(session.codes.code(index, number), word(10));
            }
            world.run(millis(20));
        }
        assert!(changes > 20, "two for each of a dozen sessions: {changes}");
    }
}

#[test]
fn a_packet_whose_code_is_wrong_is_forged() {
    let mut world = World::connected(2, one_sided());
    world.network.loss = 1.0;
    world.send(0, 0).unwrap();
    let mut packet = world.recorded.last().unwrap().2.clone();
    packet[13] ^= 1;
    let before = world.ends[1].channel.statistics();
    assert!(!world.deliver(1, address(0, 0), packet));
    assert_eq!(world.ends[1].channel.statistics().forged, before.forged + 1);
}

#[test]
fn a_session_that_cannot_be_replaced_ends_half_as_old_again() {
    let mut world = World::connected(2, one_sided());
    world.network.loss = 1.0;
    // The session began 600 ms after the channel, 5 s ago.
    world.run(millis(180_000 - 4_400 - 1));
    assert_eq!(world.send(0, 0), Ok(()));
    // Even if the timeout is handled late.
    world.jump(0, millis(1));
    assert_eq!(world.send(0, 0), Err(SealError::NoSession));
    world.run(millis(1));
    assert_eq!(world.send(1, 0), Err(SealError::NoSession));
}

/// The longest time until both ends are connected again, where the one that was restarted does not know
/// where the other is: keep-alive, answer, retry with jitter, and two round trips.
const RECOVERY: Duration = Duration::from_millis(10_000 + 5_000 + 6_250 + 1_200);

#[test]
fn an_end_that_restarts_is_connected_again_and_the_other_told() {
    for (end, within) in [(0, millis(900)), (1, RECOVERY)] {
        let mut world = World::connected(3, one_sided());
        world.exchange(millis(100), secs(20));
        world.events(1 - end);
        world.restart(end, (1 << 60) + secs(100).as_nanos());
        world.run(within);
        assert_eq!(world.events(end), [Event::Connected], "{end}");
        assert_eq!(world.events(1 - end), [Event::PeerRestarted], "{end}");
        assert_eq!(world.exchange(millis(100), secs(20)), [(200, 200); 2]);
    }
}

#[test]
fn what_was_sealed_before_a_restart_is_not_opened_after_it() {
    let mut world = World::connected(3, one_sided());
    world.network.delay = secs(5);
    world.send(0, 0).unwrap();
    world.network.delay = millis(100);
    world.restart(0, 1 << 61);
    world.run(secs(1));
    assert_eq!(world.events(1), [Event::Connected, Event::PeerRestarted]);
    world.run(secs(5));
    assert!(world.ends[1].opened.is_empty());
}

#[test]
fn a_process_that_continues_another_is_no_restart() {
    let mut world = World::connected(3, one_sided());
    world.events(1);
    let instance = world.ends[0].channel.instance();
    world.ends[0].config.instance = Some(instance);
    world.restart(0, 1 << 61);
    world.run(secs(1));
    assert_eq!((world.events(0), world.events(1)), (vec![Event::Connected], vec![]));
    assert_eq!(world.ends[1].channel.peer_instance(), Some(instance));
}

#[test]
fn a_clock_that_is_behind_costs_one_more_round_trip() {
    let mut world = World::connected(3, one_sided());
    world.restart(0, 0);
    world.run(millis(1199));
    assert_eq!(world.events(0), []);
    world.run(millis(1));
    assert_eq!(world.events(0), [Event::Connected]);
    assert_eq!(world.ends[1].channel.statistics().stale, 1);
}

#[test]
fn packets_follow_an_end_that_moves() {
    let mut world = World::connected(4, one_sided());
    world.ends[0].place = 7;
    world.run(secs(11));
    assert_eq!(world.events(1), [Event::Connected, Event::AddressChanged(address(0, 7))]);
    assert_eq!(world.exchange(millis(100), secs(10)), [(100, 100); 2]);
}

#[test]
fn a_packet_that_others_have_overtaken_does_not_change_the_address() {
    let mut world = World::connected(4, one_sided());
    world.network.jitter = millis(200);
    for _ in 0..20 {
        world.send(0, 0).unwrap();
    }
    world.ends[0].place = 7;
    world.send(0, 0).unwrap();
    world.network.delay = millis(0);
    world.network.jitter = millis(0);
    world.ends[0].place = 8;
    world.send(0, 0).unwrap();
    world.run(secs(1));
    world.events(0);
    assert_eq!(world.events(1), [Event::Connected, Event::AddressChanged(address(0, 8))]);
    assert_eq!(world.ends[1].opened.len(), 22);
}

/// It moved, the peer followed, and it starts again where the peer's configuration says, without knowing where
/// that is.
#[test]
fn an_end_that_returns_to_its_configured_address_is_found() {
    let mut world = World::connected(4, [Config { address: None, ..config(0) }, config(1)]);
    world.ends[0].place = 7;
    world.run(secs(11));
    assert_eq!(world.ends[1].channel.address(), Some(address(0, 7)));
    world.ends[0].place = 0;
    world.restart(0, 0);
    world.run(RECOVERY + millis(6_250));
    assert_eq!(world.events(0), [Event::Connected]);
    assert_eq!(world.exchange(millis(100), secs(10)), [(100, 100); 2]);
}

#[test]
fn an_outage_is_reported_and_its_end() {
    let mut world = World::connected(5, one_sided());
    world.clear_events();
    world.network.loss = 1.0;
    // The last packet arrived at the latest 10 s ago; the next is sent 10 s after it.
    world.run(secs(29));
    assert_eq!([world.events(0), world.events(1)], [[], []]);
    world.run(secs(12));
    assert_eq!([world.events(0), world.events(1)], [[Event::Lost]; 2]);
    world.network.loss = 0.0;
    world.run(millis(6_250 + 600));
    assert_eq!([world.events(0), world.events(1)], [[Event::Resumed]; 2]);
    assert_eq!(world.exchange(millis(100), secs(10)), [(100, 100); 2]);
}

#[test]
fn an_end_that_hears_of_a_way_to_its_peer_asks_at_once() {
    let mut world = World::connected(5, one_sided());
    world.network.loss = 1.0;
    world.run(secs(41));
    world.clear_events();
    world.network.loss = 0.0;
    // Its last handshake was less than a second ago, and the next is due in 4 s or more.
    world.run(millis(700));
    assert_eq!(world.events(0), []);
    world.ends[0].channel.ask();
    let now = world.local(0);
    world.ends[0].channel.handle_timeout(now);
    world.settle(0);
    world.run(millis(600));
    assert_eq!([world.events(0), world.events(1)], [[Event::Resumed]; 2]);
}

#[test]
fn an_idle_channel_sends_little_and_without_keep_alives_only_handshakes() {
    let sent = |keep_alive| {
        let configs = one_sided().map(|config| Config { keep_alive, ..config });
        let mut world = World::connected(6, configs);
        world.recorded.clear();
        world.run(secs(1200));
        assert_eq!(world.events(0), [Event::Connected], "an idle peer is not lost");
        world.recorded.len()
    };
    // Every 10 s a probe and an answer; every 120 s two messages of a handshake, a probe and an answer.
    let (with, without) = (sent(Some(secs(10))), sent(None));
    assert!((2 * 110..=2 * 120 + 4 * 10).contains(&with), "{with}");
    assert!((4 * 9..=4 * 10).contains(&without), "{without}");
}

#[test]
fn without_keep_alives_a_payload_that_is_not_answered_finds_the_outage() {
    let configs = one_sided().map(|config| Config { keep_alive: None, ..config });
    let mut world = World::connected(6, configs);
    world.run(secs(60));
    // The peer seals nothing, but answers a probe.
    world.send(0, 0).unwrap();
    world.run(secs(40));
    assert_eq!(world.events(0), [Event::Connected]);
    world.network.loss = 1.0;
    world.send(0, 0).unwrap();
    world.run(millis(29_999));
    assert_eq!(world.events(0), []);
    world.run(millis(1));
    assert_eq!(world.events(0), [Event::Lost]);
}

#[test]
fn ends_whose_keys_do_not_fit_are_never_connected() {
    let preshared = PresharedKey::generate(&mut || Some([5; 32]));
    let stranger = secret(2).public();
    for second in [Config { preshared, ..config(1) }, Config { peer: stranger, ..config(1) }] {
        let mut world = World::new(7, [config(0), second]);
        world.run(secs(30));
        for end in [0, 1] {
            let statistics = world.ends[end].channel.statistics();
            assert_eq!((world.events(end), statistics.responses), (vec![], 0));
            assert!(statistics.forged >= 5, "{statistics:?}");
        }
    }
}

#[test]
fn keys_that_cannot_be_right_are_refused() {
    let new = |config, entropy: fn() -> Option<[u8; 32]>| Channel::new(Time::ZERO, config, entropy);
    let random = || Some([1; 32]);
    let own = Config { peer: secret(0).public(), ..config(0) };
    assert_eq!(new(own, random).unwrap_err(), ConfigError::OwnKey);
    let zeros = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".parse().unwrap();
    assert_eq!(new(Config { peer: zeros, ..config(0) }, random).unwrap_err(), ConfigError::WeakKey);
    assert_eq!(new(config(0), || None).unwrap_err(), ConfigError::Entropy);
    let shown = format!("{:?}{:?}", config(0), new(config(0), random));
    assert!(!shown.contains(&*secret(0).reveal()), "{shown}");
}

#[test]
fn a_packet_without_room_is_refused() {
    let mut world = World::connected(8, one_sided());
    let now = world.local(0);
    let channel = &mut world.ends[0].channel;
    assert_eq!(channel.seal(now, &mut [0; OVERHEAD - 1]), Err(SealError::TooShort));
    assert_eq!(channel.seal(now, &mut [0; OVERHEAD]), Ok(address(1, 0)));
}

#[test]
fn handshakes_wait_for_randomness() {
    let mut bytes = entropy(Seed(1).stream("entropy"));
    let mut left = 0;
    let mut world = World::new(9, one_sided());
    let scarce = move || {
        left += 1;
        // The instance's, and those from the fifth handshake on.
        if (2..10).contains(&left) { None } else { bytes() }
    };
    world.ends[0].channel = Channel::new(world.now, config(0), scarce).unwrap();
    world.run(secs(30));
    assert_eq!(world.events(0), [Event::Connected]);
    assert!(world.ends[0].channel.statistics().no_entropy >= 4);
}
