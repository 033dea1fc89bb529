//! A stream of SRP is a transport like a TCP connection.

use ::srp::{Association, Config, Ends, StreamId};
use base::{Events, LowWater, Time};
use host::Transport;
use std::net::IpAddr;
use wire::Payload;

const NOW: Time = Time::from_nanos(1_000_000_000);

/// Two ends without anything between them.
fn exchange(ends: &mut [Association; 2]) {
    let mut is_quiet = false;
    while !is_quiet {
        is_quiet = true;
        for end in 0..2 {
            while let Some((srp, payload)) = ends[end].poll_transmit(NOW) {
                ends[1 - end].handle(NOW, &srp, payload);
                is_quiet = false;
            }
        }
    }
}

fn joined() -> ([Association; 2], [StreamId; 2]) {
    let config = Config { window: 5000, sack_every: 1, ..Config::default() };
    let mut opener = Association::connect(NOW, &config, 1);
    let (open, _) = opener.poll_transmit(NOW).expect("an OPEN");
    let mut ends = [opener, Association::accept(NOW, &config, &open).expect("it is one")];
    exchange(&mut ends);
    let address = IpAddr::from([10, 0, 0, 1]);
    let ports = Ends { client: address, server: address, client_port: 5000, server_port: 80 };
    let client = ends[0].open(NOW, ports).expect("there is room");
    exchange(&mut ends);
    let (server, found) = ends[1].poll_incoming().expect("the client's");
    assert_eq!(found, ports);
    ends[1].accept_stream(server);
    exchange(&mut ends);
    assert_eq!(events(&mut ends[0]), [(client, Events::CONNECTED)]);
    assert_eq!(events(&mut ends[1]), [(server, Events::CONNECTED)]);
    (ends, [client, server])
}

fn events(end: &mut Association) -> Vec<(StreamId, Events)> {
    core::iter::from_fn(|| end.poll_events()).collect()
}

/// What a relay does with a transport.
fn write(transport: &mut impl Transport, bytes: u64) {
    transport.write(9, 0, bytes);
    transport.notify_at(LowWater::Unacknowledged(0));
    assert_eq!((transport.unacknowledged(), transport.unsent()), (bytes, bytes));
}

fn read(transport: &mut impl Transport) -> u64 {
    let runs = core::iter::from_fn(|| transport.read_up_to(1000));
    runs.map(|run: Payload| u64::from(run.len)).sum()
}

#[test]
fn its_receiver_holds_its_sender_back_and_its_end_can_be_held() {
    let (mut ends, [client, server]) = joined();
    write(&mut ends[0].stream(client).unwrap(), 8000);
    exchange(&mut ends);
    let mut stream = ends[0].stream(client).unwrap();
    assert_eq!((stream.unacknowledged(), stream.unsent()), (3000, 3000), "the window is full");
    assert_eq!(Transport::segment_size(&stream), 1436);
    stream.close();
    let mut stream = ends[1].stream(server).unwrap();
    assert_eq!(Transport::readable(&stream), 5000);
    Transport::hold_end(&mut stream);
    assert_eq!(read(&mut stream), 5000);
    exchange(&mut ends);
    assert_eq!(read(&mut ends[1].stream(server).unwrap()), 3000);
    exchange(&mut ends);
    assert_eq!(events(&mut ends[0]), [(client, Events::WRITABLE)], "the end is not confirmed");
    let closing = Events::READABLE | Events::PEER_CLOSING;
    assert_eq!(events(&mut ends[1]), [(server, closing)]);
    Transport::release_end(&mut ends[1].stream(server).unwrap(), NOW);
    exchange(&mut ends);
    assert_eq!(events(&mut ends[0]), [(client, Events::FINISHED)]);
    assert_eq!(events(&mut ends[1]), [(server, Events::PEER_CLOSED)]);
    // The other direction is still open.
    ends[1].stream(server).unwrap().write(1, 0, 10);
    Transport::abort(&mut ends[1].stream(server).unwrap());
    exchange(&mut ends);
    assert_eq!(events(&mut ends[1]), [(server, Events::CLOSED)]);
    assert_eq!(events(&mut ends[0]), [(client, Events::CLOSED | Events::RESET)]);
    assert!(events(&mut ends[0]).is_empty() && events(&mut ends[1]).is_empty());
    assert_eq!(ends.map(|end| end.held_streams()), [0, 0]);
}
