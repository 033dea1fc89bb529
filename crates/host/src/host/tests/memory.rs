//! The limit of a host's memory.

use super::*;
use tcp::{Connection, Pressure, ReceiveWindow};
use wire::Payload;

/// Bytes that a connection takes by itself.
const EACH: u64 = size_of::<Connection>() as u64;

/// An application that reads nothing by itself.
struct Lazy;

impl Application for Lazy {
    fn handle(&mut self, _: Time, _: &mut Connection, _: Events) {}

    fn take(&mut self, _: Time, _: Payload) -> bool {
        false
    }
}

/// A server on port 80 with so much memory.
fn limited(memory: Option<u64>) -> Host<Lazy> {
    let mut server = Host::new(SERVER, Seed(1).stream("server"));
    server.set(Settings { memory, ..Settings::default() });
    let config = Config {
        receive_window: ReceiveWindow::fixed(60_000),
        delayed_ack: None,
        ..Config::default()
    };
    server.listen(80, move || (config.clone(), Lazy));
    server
}

fn answers<A: Application>(server: &mut Host<A>) -> Vec<Segment> {
    let mut tray = Tray { next: Packet::BLANK, sent: Vec::new() };
    let _ = server.transmit(Time::ZERO, &mut tray);
    tray.sent.iter().map(tcp_of).collect()
}

/// A connection from a port: its ACK, to be changed into other segments.
fn connect<A: Application>(server: &mut Host<A>, port: u16) -> Option<Packet> {
    let syn = changed(&syn(Time::ZERO, &mut host(CLIENT)), |segment| segment.source_port = port);
    server.handle_packet(Time::ZERO, &syn);
    let answer = answers(server).pop()?;
    let ack = changed(&syn, |segment| {
        segment.flags = Flags::ACK;
        segment.seq = segment.seq + 1;
        segment.ack = answer.seq + 1;
        segment.options = wire::Options::default();
    });
    server.handle_packet(Time::ZERO, &ack);
    answers(server);
    Some(ack)
}

/// The peer sends `len` octets at `offset` of its stream.
fn send<A: Application>(server: &mut Host<A>, ack: &Packet, offset: u32, len: u32) -> Segment {
    let mut data = changed(ack, |segment| segment.seq = segment.seq + offset);
    data.payload = Payload { stream: 0, offset: u64::from(offset), len };
    server.handle_packet(Time::ZERO, &data);
    answers(server).pop().unwrap()
}

#[test]
fn what_connections_take_is_counted_and_given_back() {
    let mut server = limited(Some(1 << 30));
    assert_eq!(server.memory(), 0);
    let acks: Vec<_> = (1..=3).map(|port| connect(&mut server, port).unwrap()).collect();
    assert_eq!(server.memory(), 3 * EACH);
    send(&mut server, &acks[0], 0, 1000);
    send(&mut server, &acks[1], 5000, 1000);
    assert_eq!(server.memory(), 3 * EACH + 1000 + 1000 + 128);
    let ids: Vec<_> = server.connections().map(|(id, ..)| id).collect();
    server.access(Time::ZERO, ids[0], |connection, _| connection.read());
    assert_eq!(server.memory(), 3 * EACH + 1000 + 128);
    server.access(Time::ZERO, ids[1], |connection, _| connection.write(0, 0, 3 * 1460));
    answers(&mut server);
    let sending = server.memory();
    assert!(sending > 3 * EACH + 1000 + 128, "records of three segments");
    for id in ids {
        server.access(Time::ZERO, id, |connection, _| connection.abort());
    }
    answers(&mut server);
    assert_eq!((server.memory(), server.connections().count()), (0, 0));
}

/// An application that keeps the bytes of its connection: twice as many as are unread, and 5000.
struct Keeper(u64, Option<Pressure>);

impl Application for Keeper {
    fn handle(&mut self, _: Time, connection: &mut Connection, _: Events) {
        self.0 = 5000 + 2 * connection.readable();
    }

    fn memory(&self) -> u64 {
        self.0
    }

    fn set_pressure(&mut self, pressure: Pressure) {
        self.1 = Some(pressure);
    }
}

#[test]
fn what_applications_keep_counts_and_unread_bytes_count_once() {
    let mut server = Host::new(SERVER, Seed(1).stream("server"));
    let limit = 4 * (EACH + 7000);
    server.set(Settings { memory: Some(limit), ..Settings::default() });
    let config = Config {
        receive_window: ReceiveWindow::fixed(60_000),
        delayed_ack: None,
        ..Config::default()
    };
    server.listen(80, move || (config.clone(), Keeper(0, None)));
    let mut acks = Vec::new();
    for port in 1..=3 {
        acks.push(connect(&mut server, port).unwrap());
    }
    assert_eq!(server.memory(), 3 * (EACH + 5000));
    send(&mut server, &acks[2], 0, 1000);
    assert_eq!(server.memory(), 3 * (EACH + 5000) + 2 * 1000);
    let pressures: Vec<_> = server.connections().map(|(_, _, keeper)| keeper.1).collect();
    assert_eq!(pressures[0], Some(Pressure::None));
    assert_eq!(pressures[2], Some(Pressure::OutOfOrder));
    for id in server.connections().map(|(id, ..)| id).collect::<Vec<_>>() {
        server.access(Time::ZERO, id, |connection, _| connection.abort());
    }
    assert_eq!(server.memory(), 0);
}

#[test]
fn a_limit_may_come_and_go_with_connections_there() {
    let mut server = limited(None);
    let ack = connect(&mut server, 1).unwrap();
    send(&mut server, &ack, 5000, 1000);
    assert_eq!(server.memory(), 0, "not counted");
    server.set(Settings { memory: Some(1), ..server.settings() });
    assert_eq!(server.memory(), EACH + 1128);
    assert!(send(&mut server, &ack, 9000, 1000).options.sack.as_slice().len() == 1);
    server.set(Settings { memory: None, ..server.settings() });
    assert!(send(&mut server, &ack, 9000, 1000).options.sack.as_slice().len() == 2);
}

#[test]
fn first_nothing_is_kept_out_of_order_then_windows_close_then_connections_are_refused() {
    let limit = 3 * EACH + 80_000;
    let mut server = limited(Some(limit));
    let [one, two, three] = [1, 2, 3].map(|port| connect(&mut server, port).unwrap());
    let reader = server.connections().last().unwrap().0;
    let blocks = |answer: &Segment| answer.options.sack.as_slice().len();
    // How far the window of the third reaches once it has read the next two thousand octets.
    let mut next = 0;
    let mut edge = |server: &mut Host<Lazy>| {
        send(server, &three, next, 2000);
        server.access(Time::ZERO, reader, |connection, _| connection.read());
        let empty = changed(&three, |segment| segment.seq = segment.seq + next); // Asks for an ACK.
        next += 2000;
        server.handle_packet(Time::ZERO, &empty);
        let answer = answers(server).pop().unwrap();
        answer.ack + u32::from(answer.window)
    };
    // Fills the server up to a share of its memory, with unread data.
    let mut unread = 0;
    let mut fill = |server: &mut Host<Lazy>, bytes: u64| {
        while server.memory() < bytes {
            let (peer, offset) =
                if unread < 60_000 { (&one, unread) } else { (&two, unread - 60_000) };
            let answer = send(server, peer, offset, 1000);
            assert_eq!(answer.ack, tcp_of(peer).seq + (offset + 1000), "what is in order is taken");
            unread += 1000;
        }
    };

    assert_eq!(blocks(&send(&mut server, &three, 30_000, 100)), 1);
    let mut last = edge(&mut server);
    let mut moves = |server: &mut Host<Lazy>| {
        let now = edge(server);
        now.beyond(core::mem::replace(&mut last, now))
    };
    assert!(moves(&mut server) > 0);
    fill(&mut server, limit / 2);
    assert_eq!(
        blocks(&send(&mut server, &three, 40_000, 100)),
        1,
        "dropped, and the first is kept"
    );
    assert!(moves(&mut server) > 0);
    assert!(connect(&mut server, 4).is_some());
    fill(&mut server, limit - limit / 4);
    assert_eq!(moves(&mut server), 0);
    assert_eq!(moves(&mut server), 0);
    fill(&mut server, limit);
    let before = server.connections().count();
    assert!(connect(&mut server, 5).is_none());
    assert_eq!((server.connections().count(), server.statistics().overflows), (before, 1));

    // It goes, and all is as ever.
    let hog = server.connections().next().unwrap().0;
    server.access(Time::ZERO, hog, |connection, _| connection.abort());
    answers(&mut server);
    assert!(connect(&mut server, 5).is_some());
    assert!(moves(&mut server) > 0);
    assert_eq!(blocks(&send(&mut server, &three, 40_000, 100)), 2);
}
