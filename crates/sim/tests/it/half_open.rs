//! Half-open connections and old duplicates (RFC 9293 §3.5.1): both ends come to rest.

use crate::common::boxes::{Blackout, segment};
use crate::common::*;
use base::Time;
use host::{Context, Middlebox, Opening, Port, Source, Traffic, Verdict};
use wire::{Flags, Packet};

/// Doubles the client's SYN, and delivers the copy behind the last acknowledgment of the
/// connection.
#[derive(Default)]
struct OldSyn {
    syn: Option<Packet>,
    server_finished: bool,
}

impl Middlebox for OldSyn {
    fn packet(
        &mut self,
        _: Time,
        _: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        let Some(segment) = segment(packet) else { return Verdict::Forward };
        if segment.flags == Flags::SYN {
            self.syn = Some(*packet);
        } else if segment.destination_port != PORT {
            self.server_finished |= segment.flags.contains(Flags::FIN);
        } else if self.server_finished {
            cx.send(*packet);
            self.syn.take().into_iter().for_each(|syn| cx.send(syn));
            return Verdict::Consume;
        }
        Verdict::Forward
    }
}

#[test]
fn an_old_syn_does_not_start_a_war_of_acknowledgments() {
    // It opens a connection that the client, in TIME-WAIT, knows nothing of. The client answers the
    // SYN-ACK with an acknowledgment (RFC 9293 §3.10.7.4), which acknowledges what the new
    // connection never sent. That may be answered with a reset (fifth, SYN-RECEIVED), but not with
    // an acknowledgment: it would lie outside of the client's window, be answered, and so on, at the
    // pace of the link, in a run that does not end if the link has no delay.
    for seed in 1..=4 {
        let mut lab = Path { size: Some(1000), seed, ..Path::default() }.build();
        lab.world.add_box(lab.receiver(), Box::new(OldSyn::default()));
        lab.world.run_until(secs(50));
        assert!(lab.world.events() < 100, "seed {seed}: {} events", lab.world.events());
    }
}

#[test]
fn a_last_acknowledgment_that_is_lost_for_as_long_as_time_wait_does_not_keep_the_sink_for_ever() {
    // The client has forgotten the connection: its host resets it (RFC 9293 §3.10.7.1), or the sink
    // gives up (§3.8.3, R2).
    let mut lab = Path { size: Some(1000), ..Path::default() }.build();
    lab.world.add_box(lab.receiver(), Box::new(Blackout { from: millis(340), until: secs(100) }));
    lab.run_to_peace(1000);
    assert_eq!(lab.receiving().0.state(), tcp::State::Closed);
}

#[test]
fn a_connection_without_a_listener_is_refused_or_given_up() {
    // RFC 9293 §3.10.7.1: a reset for a SYN to a port without a listener; else §3.8.3, R2.
    let mut lab = Path { size: Some(1000), ..Path::default() }.build();
    let (sender, receiver) = (lab.sender(), lab.receiver());
    lab.world.host_mut(sender).open(Opening {
        at: Time::ZERO,
        remote: receiver.address(),
        remote_port: PORT + 1,
        local: None,
        local_port: None,
        config: plain(),
        application: Traffic::Source(Source::new(1, Some(1000))),
    });
    lab.world.wake(sender);
    lab.run_to_peace(1000);
    let states: Vec<_> = lab.world.host(sender).connections().map(|(_, c, _)| c.state()).collect();
    assert_eq!(states, [tcp::State::Closed; 2]);
}
