//! What a configuration that is read again changes for new connections, and leaves for those that there are.

use crate::common::{CLEAN, INTERFACES, USER, World, beside};
use crate::operation::{Operated, TCP, pass, talk};
use socket2::SockRef;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

/// More than the receive buffer of a server that does not read, and less than that and what may wait in the gateway, of
/// however large a cache.
const MUCH: usize = 300_000;

/// A connection whose user sends without end to a server that reads nothing: what of it the gateway holds in the end.
/// The thread ends with the connection.
fn held(world: &World, operated: &Operated) -> ([TcpStream; 2], u64) {
    let ends = talk(world, 1, 1);
    let (client, mut user) = (ends[0].local_addr().unwrap(), ends[0].try_clone().unwrap());
    thread::spawn(move || drop(user.write_all(&vec![7; 10 * MUCH])));
    let (mut last, mut since) = (0, 0);
    while since < 6 {
        thread::sleep(Duration::from_millis(250));
        let held = of(operated, client);
        since = if held == last { since + 1 } else { 0 };
        last = held;
    }
    (ends, last)
}

fn of(operated: &Operated, client: std::net::SocketAddr) -> u64 {
    let all = operated.connections();
    all.iter().find(|connection| connection.client == client).unwrap().held
}

#[test]
fn another_cache_is_that_of_new_connections() {
    beside(|| {
        for mode in ["spoof", "split"] {
            let Some(world) = World::new(CLEAN, "reload-cache") else { return };
            let keys = |cache: &str| format!("mode = \"{mode}\"\ncache = \"{cache}\"");
            // Besides the cache, there is what the receive window takes. One that tunes itself takes as much as chance
            // lets arrive at once.
            let tcp = format!("{TCP}receive_window = \"64 KiB\"\n");
            let operated = Operated::start_with(&world, "reload-cache", &keys("250 kB"), &tcp);
            let (old, before) = held(&world, &operated);
            assert!(before >= 250_000, "{mode}: {before}");
            operated.write(&format!("{INTERFACES}{}\n{}", keys("50 kB"), tcp));
            gateway::reload(&operated.socket()).unwrap();
            let (new, after) = held(&world, &operated);
            assert!((50_000..150_000).contains(&after), "{mode}: {before}, {after}");
            assert_eq!(of(&operated, old[0].local_addr().unwrap()), before);
            drop((old, new));
            operated.service.stop();
        }
    });
}

/// The state of a socket of the user's, as the kernel shows it.
fn state(world: &World, socket: &TcpStream) -> String {
    let port = format!(":{:04X}", socket.local_addr().unwrap().port());
    let table = world.at(USER, || fs::read_to_string("/proc/thread-self/net/tcp")).unwrap();
    let mut rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.find(|row| row[1].ends_with(&port)).unwrap()[3].to_owned()
}

const FIN_WAIT_1: &str = "04";
const FIN_WAIT_2: &str = "05";

/// The state of a user that has sent everything and has closed, half a second later, while the server reads nothing.
fn closed(world: &World) -> ([TcpStream; 2], String) {
    let [mut user, server] = talk(world, 1, 1);
    user.write_all(&vec![7; MUCH]).unwrap();
    user.shutdown(Shutdown::Write).unwrap();
    thread::sleep(Duration::from_millis(1500));
    let state = state(world, &user);
    ([user, server], state)
}

#[test]
fn another_teardown_is_that_of_new_connections() {
    beside(|| {
        for mode in ["spoof", "split"] {
            let Some(world) = World::new(CLEAN, "reload-end") else { return };
            let keys = |teardown: &str| {
                format!("mode = \"{mode}\"\ncache = \"8 MB\"\nteardown = \"{teardown}\"")
            };
            let operated = Operated::start(&world, "reload-end", &keys("spoofed"));
            let (first, state_of_first) = closed(&world);
            assert_eq!(state_of_first, FIN_WAIT_2, "{mode}");
            let open = talk(&world, 1, 1);
            operated.write(&format!("{INTERFACES}{}\n{}", keys("end-to-end"), TCP));
            gateway::reload(&operated.socket()).unwrap();
            let (second, state_of_second) = closed(&world);
            assert_eq!(state_of_second, FIN_WAIT_1, "{mode}");
            // Once the server has got it all, its user hears of it.
            let [user, mut server] = second;
            let mut got = Vec::new();
            server.read_to_end(&mut got).unwrap();
            assert_eq!(got.len(), MUCH);
            thread::sleep(Duration::from_millis(500));
            assert_eq!(state(&world, &user), FIN_WAIT_2, "{mode}");
            // The other one began before.
            let [mut user, server] = open;
            user.write_all(&vec![7; MUCH]).unwrap();
            user.shutdown(Shutdown::Write).unwrap();
            thread::sleep(Duration::from_millis(1500));
            assert_eq!(state(&world, &user), FIN_WAIT_2, "{mode}");
            drop((first, server));
            operated.service.stop();
        }
    });
}

#[test]
fn other_settings_of_tcp_are_those_of_new_connections() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "reload-tcp") else { return };
        let operated = Operated::start(&world, "reload-tcp", "mode = \"split\"");
        let mss = |socket: &TcpStream| SockRef::from(socket).tcp_mss().unwrap();
        let mut old = talk(&world, 1000, 1000);
        assert!(old.iter().all(|end| mss(end) > 1300), "{old:?}");
        let before = old.each_ref().map(mss);
        operated.write(&format!("{INTERFACES}mode = \"split\"\n{TCP}mss = 700\n"));
        gateway::reload(&operated.socket()).unwrap();
        let new = talk(&world, 1000, 1000);
        assert!(
            new.iter().all(|end| (600..=700).contains(&mss(end))),
            "{:?}",
            new.each_ref().map(mss)
        );
        let [user, server] = &mut old;
        pass(user, server, 100_000);
        assert_eq!(old.each_ref().map(mss), before);
        // As the first ones, once they are read again.
        operated.write(&format!("{INTERFACES}mode = \"split\"\n{TCP}"));
        gateway::reload(&operated.socket()).unwrap();
        let again = talk(&world, 1000, 1000);
        assert_eq!(again.each_ref().map(mss), before);
        drop((new, again));
        operated.service.stop();
    });
}
