//! Mode `split`.

use crate::common::{SERVER, USER, World, beside, beside_few, exchange};
use live::Clock;
use scenario::IpVersion;
use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A hop with a round trip of 600 ms.
const LONG: &str = "rate = \"20 Mbit/s\"\ndelay = \"300 ms\"\nqueue = \"1000 packets\"";
const ROUND_TRIP: Duration = Duration::from_millis(600);
const AT_ONCE: &str = "mode = \"split\"\nconnect = \"at-once\"\nrate = \"20 Mbit/s\"";
const FIRST: &str = "mode = \"split\"\nrate = \"20 Mbit/s\"";

/// A TCP port of the server without a listener.
fn closed(world: &World) -> SocketAddr {
    let (listener, address) = world.listen(IpVersion::V4);
    drop(listener);
    address
}

/// How long the user takes to connect, and how it ends.
fn connect(world: &World, to: SocketAddr) -> (Duration, std::io::Result<TcpStream>) {
    let clock = Clock::start();
    let stream = world.at(USER, || TcpStream::connect(to));
    (Duration::from_nanos(clock.now().as_nanos()), stream)
}

#[test]
fn clients_are_accepted_at_once_and_streams_are_whole() {
    beside_few(|| {
        let Some(world) = World::new(LONG, "once") else { return };
        let daemon = world.gateway(AT_ONCE);
        let (listener, address): (TcpListener, _) = world.listen(IpVersion::V4);
        let (took, stream) = connect(&world, address);
        assert!(took < ROUND_TRIP / 3, "{took:?}");
        // The server is connected to, too.
        let (accepted, client) = listener.accept().unwrap();
        assert_eq!(client, stream.as_ref().unwrap().local_addr().unwrap());
        drop((accepted, stream));
        for ip in [IpVersion::V4, IpVersion::V6] {
            exchange(&world, ip, [500_000, 1_000_000]);
        }
        assert_eq!(daemon.boxes().unwrap().get("split connections"), Some(&3));
        daemon.stop();
    });
}

#[test]
fn a_client_that_was_accepted_at_once_is_reset_where_the_server_refuses() {
    beside_few(|| {
        let Some(world) = World::new(LONG, "reset") else { return };
        let daemon = world.gateway(AT_ONCE);
        let mut stream = connect(&world, closed(&world)).1.unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        daemon.stop();
    });
}

#[test]
fn clients_are_accepted_or_refused_as_the_server_does_it_where_it_is_asked_first() {
    beside_few(|| {
        let Some(world) = World::new(LONG, "first") else { return };
        let daemon = world.gateway(FIRST);
        let (_listener, address) = world.listen(IpVersion::V4);
        let (took, stream) = connect(&world, address);
        assert!(took >= ROUND_TRIP && stream.is_ok(), "{took:?} {stream:?}");
        let (took, stream) = connect(&world, closed(&world));
        assert!(took >= ROUND_TRIP, "{took:?}");
        assert_eq!(stream.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        exchange(&world, IpVersion::V6, [500_000, 1_000_000]);
        daemon.stop();
    });
}

#[test]
fn servers_behind_the_gateway_are_reached_from_beyond_the_hop() {
    beside(|| {
        let Some(world) = World::new(LONG, "inward") else { return };
        let daemon = world.gateway(AT_ONCE);
        let user = SocketAddr::new(world.address(USER, IpVersion::V4), 0);
        let listener = world.at(USER, || TcpListener::bind(user).unwrap());
        let to = listener.local_addr().unwrap();
        let stream = world.at(SERVER, || TcpStream::connect(to).unwrap());
        let (accepted, from) = listener.accept().unwrap();
        assert_eq!(from, stream.local_addr().unwrap());
        drop(accepted);
        daemon.stop();
    });
}
