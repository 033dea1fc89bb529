//! What an operator does with a gateway that runs.

use crate::common::{
    CLEAN, Folder, GATEWAY, INTERFACES, World, beside, configuration, exchange,
    wait_for_devices_to_go,
};
use gateway::{Connection, How, Record, Service, State};
use scenario::IpVersion;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// A gateway whose configuration is in a file.
pub(crate) struct Operated {
    pub(crate) service: Service,
    folder: Folder,
}

/// A connection that is over should be so soon.
pub(crate) const TCP: &str = "[tcp]\ntime_wait = \"50 ms\"\n";

impl Operated {
    pub(crate) fn start(world: &World, label: &str, keys: &str) -> Operated {
        Operated::start_with(world, label, keys, TCP)
    }

    /// The same with these tables in place of [`TCP`].
    pub(crate) fn start_with(world: &World, label: &str, keys: &str, tables: &str) -> Operated {
        let folder = Folder::new(label);
        let keys = keys.replace("FOLDER", folder.0.to_str().unwrap());
        let config = folder.0.join("lasthopd.toml");
        fs::write(&config, format!("{INTERFACES}{keys}\n{tables}")).unwrap();
        let gateway = configuration(&format!("{keys}\n{tables}"));
        let socket = folder.0.join("socket");
        let service = world.at(GATEWAY, || {
            live::Netlink::open().unwrap().set_up("lo").unwrap();
            wait_for_devices_to_go();
            Service::start(&gateway, Some(&config), Some(&socket))
        });
        let service = service.unwrap_or_else(|error| panic!("{error}"));
        Operated { service, folder }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.0.join("socket")
    }

    pub(crate) fn write(&self, text: &str) {
        fs::write(self.folder.0.join("lasthopd.toml"), text).unwrap();
    }

    pub(crate) fn connections(&self) -> Vec<Connection> {
        gateway::connections(&self.socket()).unwrap().list
    }

    fn count(&self, name: &str) -> u64 {
        gateway::status(&self.socket()).unwrap().counters[name]
    }

    /// Waits until it carries so many connections.
    fn carries(&self, count: usize) {
        for _ in 0..200 {
            if self.connections().len() == count {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("{:?}", self.connections());
    }
}

/// Both ends of a connection, which has carried `up` and `down` bytes.
pub(crate) fn talk(world: &World, up: usize, down: usize) -> [TcpStream; 2] {
    let (listener, address) = world.listen(IpVersion::V4);
    let mut user = world.connect(address);
    let (mut server, _) = listener.accept().unwrap();
    pass(&mut user, &mut server, up);
    pass(&mut server, &mut user, down);
    [user, server]
}

pub(crate) fn pass(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) {
    from.write_all(&vec![1; bytes]).unwrap();
    to.read_exact(&mut vec![0; bytes]).unwrap();
}

#[test]
fn the_connections_that_are_carried_are_listed_with_what_their_ends_have_sent_and_got() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "list") else { return };
        for keys in ["", "rate = \"50 Mbit/s\""] {
            let operated = Operated::start(&world, "list", keys);
            assert_eq!(operated.connections(), []);
            let [user, server] = talk(&world, 3000, 50_000);
            // The last acknowledgment may be delayed.
            sleep(Duration::from_millis(500));
            let list = operated.connections();
            let [one] = list.as_slice() else { panic!("{list:?}") };
            assert_eq!(one.client, user.local_addr().unwrap());
            assert_eq!(one.server, server.local_addr().unwrap());
            assert_eq!((one.user, one.state), (one.client.ip(), State::Open));
            assert_eq!((one.received_from_client, one.received_from_server), (3000, 50_000));
            assert_eq!((one.acknowledged_by_server, one.acknowledged_by_client), (3000, 50_000));
            assert!(one.held == 0 && (500..20_000).contains(&one.age_milliseconds), "{one:?}");
            drop((user, server));
            operated.carries(0);
            operated.service.stop();
        }
    });
}

#[test]
fn a_gateway_that_drains_splits_no_more_connections_and_keeps_those_it_has() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "drain") else { return };
        let operated = Operated::start(&world, "drain", "");
        let [mut user, mut server] = talk(&world, 1000, 1000);
        gateway::drain(&operated.socket(), false).unwrap();
        assert!(gateway::status(&operated.socket()).unwrap().draining);
        exchange(&world, IpVersion::V4, [100_000, 100_000]);
        assert_eq!(operated.count("split connections"), 1);
        pass(&mut user, &mut server, 100_000);
        assert_eq!(operated.connections()[0].received_from_client, 101_000);
        drop((user, server));
        operated.carries(0);
        gateway::drain(&operated.socket(), true).unwrap();
        assert!(!gateway::status(&operated.socket()).unwrap().draining);
        exchange(&world, IpVersion::V4, [100_000, 100_000]);
        assert_eq!(operated.count("split connections"), 2);
        operated.service.stop();
    });
}

#[test]
fn a_configuration_that_is_read_again_changes_what_can_change_while_connections_go_on() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "reload") else { return };
        let operated = Operated::start(&world, "reload", "rate = \"50 Mbit/s\"");
        let [mut user, mut server] = talk(&world, 1000, 1000);
        assert_eq!(operated.service.metrics(), None);
        let keys = "rate = \"20 Mbit/s\"\nconnections = 1\nmetrics = \"127.0.0.1:0\"\n";
        operated.write(&format!("{INTERFACES}{keys}"));
        gateway::reload(&operated.socket()).unwrap();
        assert_eq!(operated.count("rate of the hop, bit/s"), 20_000_000);
        let address = operated.service.metrics().unwrap();
        world.at(GATEWAY, || TcpStream::connect(address)).unwrap();
        // No second connection is split.
        exchange(&world, IpVersion::V4, [100_000, 100_000]);
        assert_eq!(operated.count("split connections"), 1);
        pass(&mut user, &mut server, 100_000);
        // As read for the first time, it is what runs: without metrics again.
        operated.write(&format!("{INTERFACES}rate = \"20 Mbit/s\"\n"));
        gateway::reload(&operated.socket()).unwrap();
        assert!(world.at(GATEWAY, || TcpStream::connect(address)).is_err());
        exchange(&world, IpVersion::V4, [100_000, 100_000]);
        assert_eq!(operated.count("split connections"), 2);
        operated.service.stop();
    });
}

#[test]
fn a_configuration_that_cannot_be_taken_over_is_refused_with_the_reason_and_nothing_changes() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "refused") else { return };
        let operated = Operated::start(&world, "refused", "rate = \"50 Mbit/s\"");
        let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        drop(taken);
        for (text, reason) in [
            ("lan = \"link1\"\nwan = \"link0\"\nrate = \"1 Mbit/s\"\n", "`lan`, `wan`"),
            ("lan = \"link0\"\nwan = \"link1\"\nrate = \"measured\"\n", "`rate`"),
            (
                "lan = \"link0\"\nwan = \"link1\"\nrate = \"1 Mbit/s\"\nconections = 3\n",
                "lasthopd.toml:4",
            ),
            (
                "lan = \"link0\"\nwan = \"link1\"\nrate = \"1 Mbit/s\"\nrecords = \"/nowhere/at/all\"\n",
                "/nowhere/at/all",
            ),
            (
                "lan = \"link0\"\nwan = \"link1\"\nrate = \"1 Mbit/s\"\nmetrics = \"192.0.2.1:1\"\n",
                "192.0.2.1:1",
            ),
        ] {
            operated.write(text);
            let error = gateway::reload(&operated.socket()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert_eq!(operated.count("rate of the hop, bit/s"), 50_000_000, "{text}");
            assert_eq!(operated.service.metrics(), None);
        }
        operated.service.stop();
    });
}

#[test]
fn each_connection_that_ends_leaves_a_record_and_the_file_is_opened_again() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "records") else { return };
        let operated = Operated::start(&world, "records", "records = \"FOLDER/records\"");
        let file = operated.folder.0.join("records");
        let [user, server] = talk(&world, 3000, 50_000);
        let ends = [user.local_addr().unwrap(), server.local_addr().unwrap()];
        drop((user, server));
        operated.carries(0);
        sleep(Duration::from_millis(200));
        fs::rename(&file, operated.folder.0.join("records.1")).unwrap();
        gateway::reload(&operated.socket()).unwrap();
        let [user, server] = talk(&world, 10, 10);
        // With data that was not read, it is reset.
        (&server).write_all(&[0; 1000]).unwrap();
        sleep(Duration::from_millis(300));
        drop(user);
        operated.carries(0);
        sleep(Duration::from_millis(200));
        let records = |name: &str| -> Vec<Record> {
            let text = fs::read_to_string(operated.folder.0.join(name)).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let (first, second) = (records("records.1"), records("records"));
        let [one] = first.as_slice() else { panic!("{first:?}") };
        assert_eq!([one.client, one.server], ends);
        assert_eq!((one.received_from_client, one.received_from_server), (3000, 50_000));
        assert_eq!((one.acknowledged_by_server, one.acknowledged_by_client), (3000, 50_000));
        assert_eq!((one.ended, one.by), (How::Closed, None));
        assert!(one.retransmissions_to_client.is_some());
        assert!(one.begin <= one.end && one.end < one.begin + 20.0, "{one:?}");
        let [other] = second.as_slice() else { panic!("{second:?}") };
        assert_eq!((other.ended, other.by), (How::Reset, Some(gateway::By::Client)));
        assert_eq!(gateway::status(&operated.socket()).unwrap().unwritten, 0);
        operated.service.stop();
    });
}

#[test]
fn a_gateway_that_is_dropped_leaves_nothing() {
    beside(|| {
        let Some(world) = World::new(CLEAN, "dropped") else { return };
        drop(world.gateway(""));
        world.at(GATEWAY, wait_for_devices_to_go);
        exchange(&world, IpVersion::V4, [1000, 1000]);
    });
}
