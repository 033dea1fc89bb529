use super::*;
use crate::tun::VIRTIO_HEADER_LEN;
use host::{Context, Verdict};
use std::time::Duration;
use wire::{Body, Flags, Ip, Packet, Payload};

const LEN: usize = 60_000;

/// Holds the payloads of all packets until one without comes.
#[derive(Default)]
struct Holder {
    held: Vec<Payload>,
    held_at_most: usize,
    without_payload: u32,
}

impl Middlebox for Holder {
    fn packet(
        &mut self,
        _: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if packet.payload.len > 0 {
            self.held.push(packet.payload);
            self.held_at_most = self.held_at_most.max(self.held.len());
        } else {
            self.held.clear();
            self.without_payload += 1;
        }
        Verdict::Consume
    }

    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    fn wake(&mut self, _: Time, _: &mut Context<'_>) {}

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        self.held.iter().for_each(|&payload| held(payload));
    }
}

/// A segment with so many bytes.
fn segment(len: usize) -> Vec<u8> {
    let [user, server] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
    let mut packet = Packet { ip: Ip::new(user, server), ..Packet::BLANK };
    packet.make_tcp();
    packet.payload.len = len as u32;
    let mut bytes = vec![0; VIRTIO_HEADER_LEN];
    packet.emit(&vec![7; len], &mut bytes).unwrap();
    bytes
}

/// Lets all that was sent be handled.
fn handled(running: &Running<Holder>, packets: u64) -> (Counts, usize, u32) {
    for _ in 0..5000 {
        let look = |_, holder: &mut Holder, counts: &Counts| {
            (*counts, holder.held_at_most, holder.without_payload)
        };
        let found = running.call(look).unwrap();
        if found.0.devices[Side::Lan as usize].read == packets {
            return found;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("packets are not read");
}

#[test]
fn without_memory_for_more_payloads_packets_without_payload_are_handled_and_give_it_back() {
    let ((lan, kernel), (wan, _)) = (Tun::pair(), Tun::pair());
    let inline = Inline::new(Holder::default(), [lan, wan], &[], Clock::start()).unwrap();
    let running = inline.with_memory(0).start().unwrap();
    let (data, acknowledgment) = (segment(LEN), segment(0));
    let send = |packet: &[u8]| assert_eq!(rustix::io::write(&kernel, packet), Ok(packet.len()));
    // The least that there is, whatever is said: 16 MiB.
    (0..400).for_each(|_| send(&data));
    let (counts, held, _) = handled(&running, 400);
    assert!((200..280).contains(&held), "{held}");
    assert_eq!(counts.consumed + counts.without_bytes, 400);
    assert_eq!(counts.consumed, held as u64);
    send(&acknowledgment);
    let (counts, _, without_payload) = handled(&running, 401);
    assert_eq!((counts.consumed, without_payload), (held as u64 + 1, 1));
    // Now or a little later, there is room again.
    (0..400).for_each(|_| send(&data));
    let before = counts.without_bytes;
    let (counts, _, _) = handled(&running, 801);
    assert!(counts.without_bytes < before + 300, "{counts:?}");
    assert!(counts.consumed > held as u64 + 100, "{counts:?}");
    drop(running);
}

/// Passes all packets, and has one to send once it is told to.
#[derive(Default)]
struct Told {
    has_to_send: bool,
}

impl Middlebox for Told {
    fn packet(&mut self, _: Time, _: Option<Port>, _: &mut Packet, _: &mut Context<'_>) -> Verdict {
        Verdict::Forward
    }

    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    fn wake(&mut self, _: Time, cx: &mut Context<'_>) {
        if std::mem::take(&mut self.has_to_send) {
            let mut packet = Packet { ip: Ip::new(LOCAL, LOCAL), ..Packet::BLANK };
            packet.make_tcp().flags = Flags::RST;
            cx.send(packet);
        }
    }
}

const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

#[test]
fn what_a_call_lets_the_middlebox_send_goes_before_packets_that_wait() {
    let ((lan, user), (wan, server)) = (Tun::pair(), Tun::pair());
    let lan_interface = ["lo".to_owned()];
    let inline = Inline::new(Told::default(), [lan, wan], &lan_interface, Clock::start()).unwrap();
    let running = inline.start().unwrap();
    let waiting = segment(10);
    let arrive_and_tell = move |_, told: &mut Told, _: &Counts| {
        assert_eq!(rustix::io::write(&server, &waiting), Ok(waiting.len()));
        told.has_to_send = true;
    };
    running.call(arrive_and_tell).unwrap();
    let mut buffer = [0; 1000];
    let resets = [0, 1].map(|_| {
        let len = rustix::io::read(&user, &mut buffer).unwrap();
        let (packet, _) = Packet::parse_trusted(&buffer[VIRTIO_HEADER_LEN..len]).unwrap();
        matches!(packet.body, Body::Tcp(segment) if segment.flags.contains(Flags::RST))
    });
    assert_eq!(resets, [true, false]);
}
