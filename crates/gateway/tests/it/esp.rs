//! `esp`: a gateway beside the fixed host and one beside the mobile host, ESP between them, and a base station that marks
//! it (`obanaik2003` ch. 4). The hosts have TCP of the kernel, and know nothing of it.

use crate::common::{FAR, Folder, GATEWAY, INTERFACES, SERVER, USER, World, beside, content};
use gateway::Daemon;
use scenario::IpVersion;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The node of the base station.
const STATION: usize = 4;
const STATION_INTERFACES: &str = "lan = \"link1\"\nwan = \"link2\"\n";
const FAR_INTERFACES: &str = "lan = \"link3\"\nwan = \"link2\"\n";

/// A fixed host with its gateway, a link that loses packets, the base station, a hop that damages others, and a mobile
/// host with its gateway.
const PATH: &str = r#"title = "under ESP between gateways"
duration = "1 s"
[nodes]
user = {}
gateway = {}
server = {}
far = {}
station = {}
[[links]]
between = ["user", "gateway"]
rate = "100 Mbit/s"
delay = "0.1 ms"
[[links]]
between = ["gateway", "station"]
rate = "20 Mbit/s"
delay = "10 ms"
forward = { errors = { packet = 0.001 } }
[[links]]
between = ["station", "far"]
rate = "10 Mbit/s"
delay = "1 ms"
forward = { errors = { bursts = { gap = "32 KiB", length = 1, damage = "corruption" } } }
[[links]]
between = ["far", "server"]
rate = "100 Mbit/s"
delay = "0.1 ms"
[[flows]]
from = "user"
to = "server"
ip = 6
stack = "linux"
"#;

/// The port of the flow.
const PORT: u16 = 5001;
const PATIENCE: Duration = Duration::from_secs(60);
const BYTES: usize = 1_500_000;

/// A folder with a key.
struct Key(Folder);

impl Key {
    fn new(label: &str) -> Key {
        let key = Key(Folder::new(label));
        gateway::make_network_key(&key.path()).unwrap();
        key
    }

    fn path(&self) -> PathBuf {
        self.0.0.join("esp.key")
    }
}

fn keys(host: &str, key: &Path) -> String {
    format!("mode = \"split\"\nesp = \"{host}\"\nesp_key = \"{}\"\n", key.display())
}

/// The gateways beside both hosts.
fn ends(world: &World, [fixed, mobile]: [&Key; 2]) -> [Daemon; 2] {
    [
        world.gateway_at(GATEWAY, INTERFACES, &keys("fixed", &fixed.path())),
        world.gateway_at(FAR, FAR_INTERFACES, &keys("mobile", &mobile.path())),
    ]
}

fn station(world: &World) -> Daemon {
    let keys = "mode = \"spep\"\ndata_path = \"user-space\"";
    world.gateway_at(STATION, STATION_INTERFACES, keys)
}

/// The fixed host sends bytes to the mobile one.
fn download(world: &World, len: usize) {
    let server = SocketAddr::new(world.address(SERVER, IpVersion::V6), PORT);
    let listener = world.at(SERVER, || TcpListener::bind(server)).unwrap();
    let receiving = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    let send = || TcpStream::connect_timeout(&server, PATIENCE)?.write_all(&content(1, len));
    world.at(USER, send).unwrap();
    assert!(receiving.join().unwrap() == content(1, len));
}

#[test]
fn a_download_passes_both_gateways_and_the_base_station_under_esp() {
    beside(|| {
        let Some(world) = World::of(PATH, "esp") else { return };
        let key = Key::new("esp");
        let [fixed, mobile] = ends(&world, [&key, &key]);
        let station = station(&world);
        let before = std::time::Instant::now();
        download(&world, BYTES);
        eprintln!("took {:?}", before.elapsed());
        eprintln!("{:?}\n{:?}\n{:?}", fixed.observe().unwrap(), station.observe().unwrap(), mobile.observe().unwrap());
        let run = world.stop();
        eprintln!("{:?}", run.run.links);
    });
}
