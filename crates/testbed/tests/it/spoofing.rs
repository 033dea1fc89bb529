//! The spoofer of the lab, between two kernels.

use crate::common::{at_once, complete, emulate, run};
use lab::BoxCount;
use scenario::IpVersion;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use testbed::Emulation;

/// A server, a gateway and a user behind a link of 150 ms, over this version of IP.
fn download(gateway: &str, ip: &str) -> String {
    format!(
        "title = \"download\"\nduration = \"6 s\"\n[nodes]\nserver = {{}}\ngateway = {{ {gateway} }}\n\
         user = {{}}\n[[links]]\nbetween = [\"server\", \"gateway\"]\nrate = \"20 Mbit/s\"\n\
         delay = \"10 ms\"\nqueue = \"200 packets\"\n[[links]]\nbetween = [\"gateway\", \"user\"]\n\
         rate = \"4 Mbit/s\"\ndelay = \"150 ms\"\nqueue = \"100 packets\"\nerrors = {{ packet = 0.002 }}\n\
         [[flows]]\nfrom = \"server\"\nto = \"user\"\nstack = \"linux\"\nip = {ip}\n\
         traffic = {{ size = \"300 kB\" }}\n"
    )
}

fn count(counts: &[BoxCount], name: &str) -> u64 {
    counts.iter().filter(|one| one.name == name).map(|one| one.count).sum()
}

#[test]
fn two_kernels_do_not_notice_that_their_connection_is_split() {
    let spoofer = "boxes = [{ box = \"spoofer\", cache = \"500 kB\" }]";
    let outcomes = at_once(["4", "6"], |ip| {
        run(&download(spoofer, ip)).inspect(|outcome| {
            complete(&outcome.run.rows[0], 300_000);
            let counts = &outcome.run.box_counts;
            assert_eq!(count(counts, "split connections"), 1, "{ip}: {counts:?}");
        })
    });
    drop(outcomes);
}

/// A hop of 4 Mbit/s whose queue holds 8 packets, a quarter of what it carries in a round trip.
fn over_a_short_queue(spoofer: &str) -> String {
    let gateway = format!("boxes = [{{ box = \"spoofer\"{spoofer} }}]");
    let text = download(&gateway, "4").replace("queue = \"100 packets\"", "queue = \"8 packets\"");
    text.replace("errors = { packet = 0.002 }\n", "")
        .replace("delay = \"150 ms\"", "delay = \"50 ms\"")
}

#[test]
fn with_the_rate_of_the_hop_its_queue_does_not_overflow_between_kernels() {
    let rate = ", cache = \"200 kB\", hop = \"user\", rate = \"4 Mbit/s\"";
    let outcomes = at_once(["", rate], |spoofer| {
        let outcome = run(&over_a_short_queue(spoofer))?;
        complete(&outcome.run.rows[0], 300_000);
        let hop = outcome.run.links.iter().find(|(name, _)| name == "gateway->user");
        let counts = &outcome.run.box_counts;
        let held = count(counts, "bytes held at most of one connection");
        let given = count(counts, "rate of the hop, bit/s");
        Some((hop.unwrap().1.dropped, held, given))
    });
    let [Some(plain), Some(paced)] = outcomes[..] else { return };
    assert!(plain.0 > 0, "{plain:?}");
    assert_eq!((paced.0, paced.2), (0, 4_000_000), "{paced:?}");
}

/// A fast path with a little loss, for connections of programs; flows of it are not started.
const CROWD: &str = r#"title = "a crowd"
duration = "1 s"
[nodes]
server = {}
gateway = { boxes = [{ box = "spoofer", cache = "50 kB", tcp = { time_wait = "300 ms" } }] }
user = {}
[[links]]
between = ["server", "gateway"]
rate = "100 Mbit/s"
delay = "2 ms"
queue = "1000 packets"
[[links]]
between = ["gateway", "user"]
rate = "40 Mbit/s"
delay = "20 ms"
queue = "1000 packets"
errors = { packet = 0.005 }
[[flows]]
from = "server"
to = "user"
stack = "linux"
traffic = "bulk"
"#;

/// Connections at the same time.
const CONNECTIONS: u64 = 200;
const PORT: u16 = 9000;

/// Bytes of one direction of a connection. Neither their number nor they are those of another.
fn content(of: u64) -> Vec<u8> {
    let len = (of * 7919) % 40_000;
    (0..len).map(|place| (place * 131 + place / 251 + of * 17) as u8).collect()
}

/// The server answers the `number` of the connection, once all of the request is there.
fn serve(mut stream: TcpStream) {
    let mut request = Vec::new();
    stream.read_to_end(&mut request).unwrap();
    let (number, rest) = request.split_first_chunk().unwrap();
    let number = u64::from_be_bytes(*number);
    assert!(rest == content(number), "request {number}");
    stream.write_all(&content(CONNECTIONS + number)).unwrap();
}

/// A connection whose ends close one after the other.
fn ask(server: SocketAddr, number: u64) {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(&number.to_be_bytes()).unwrap();
    stream.write_all(&content(number)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer == content(CONNECTIONS + number), "answer {number}");
}

/// Opens all connections at the same time, and waits for their end.
fn crowd(emulation: &Emulation, ip: IpVersion) {
    let server = SocketAddr::new(emulation.address(0, ip), PORT);
    let listener = emulation.namespace(0).run(|| TcpListener::bind(server)).unwrap().unwrap();
    let accepting = thread::spawn(move || {
        let streams = (0..CONNECTIONS).map(|_| listener.accept().unwrap().0);
        let serving: Vec<_> = streams.map(|stream| thread::spawn(|| serve(stream))).collect();
        serving.into_iter().for_each(|thread| thread.join().unwrap());
    });
    let all = || {
        thread::scope(|scope| {
            for number in 0..CONNECTIONS {
                scope.spawn(move || ask(server, number));
            }
        });
    };
    emulation.namespace(2).run(all).unwrap();
    accepting.join().unwrap();
}

#[test]
fn many_connections_that_come_and_go_are_whole_and_leave_nothing_behind() {
    at_once([(IpVersion::V4, "crowd-4"), (IpVersion::V6, "crowd-6")], |(ip, label)| {
        let Some(emulation) = emulate(CROWD, label) else { return };
        crowd(&emulation, ip);
        // The last acknowledgments, and TIME-WAIT.
        thread::sleep(Duration::from_secs(3));
        let counts = emulation.stop().unwrap().run.box_counts;
        let numbers = ["split connections", "split connections that are over"];
        assert_eq!(numbers.map(|name| count(&counts, name)), [CONNECTIONS; 2], "{counts:?}");
    });
}

/// A fast path, then a slower one, before which everything is held.
const HELD: &str = r#"title = "a full gateway"
duration = "1 s"
[nodes]
server = {}
gateway = { boxes = [{ box = "spoofer" }] }
user = {}
[[links]]
between = ["server", "gateway"]
rate = "300 Mbit/s"
delay = "2 ms"
queue = "1000 packets"
[[links]]
between = ["gateway", "user"]
rate = "40 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
[[flows]]
from = "server"
to = "user"
stack = "linux"
traffic = "bulk"
"#;

#[test]
fn what_the_gateway_holds_stays_as_it_was() {
    let Some(emulation) = emulate(HELD, "held") else { return };
    // The gateway keeps the bytes of packets for a while in any case: of fewer than these.
    let content: Vec<u8> = (0..10_000_000_u64).map(|place| (place ^ place >> 13) as u8).collect();
    let server = SocketAddr::new(emulation.address(0, IpVersion::V4), PORT);
    let listener = emulation.namespace(0).run(|| TcpListener::bind(server)).unwrap().unwrap();
    let sent = content.clone();
    let sending = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.read_exact(&mut [0; 6]).unwrap();
        stream.write_all(&sent).unwrap();
    });
    let receive = || {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(b"please").unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    };
    let received = emulation.namespace(2).run(receive).unwrap();
    sending.join().unwrap();
    assert!(received == content, "{} bytes", received.len());
    let outcome = emulation.stop().unwrap();
    assert_eq!(count(&outcome.run.box_counts, "split connections"), 1);
    let void = outcome.health.void.unwrap_or_default();
    assert!(!void.contains("bytes"), "{void}");
}
