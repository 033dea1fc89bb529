//! Paths between a host of ours and the kernel.

use base::{Duration, Rate, Seed};
use host::{Host, Settings};
use link::{Config, Queue};
use live::emulator::{Direction, Emulator, End, Report};
use live::stack::{self, Ended, Running, Stack};
use live::{Clock, Error, Namespace, Netlink, Offload, Stream, Tun, emulator, netlink};
use std::net::IpAddr;

use super::programs::Exchange;

pub(crate) const OURS: [&str; 2] = ["10.0.0.1", "fd00::1"];
pub(crate) const KERNELS: [&str; 2] = ["10.128.0.2", "fd00:0:0:1::2"];
const DEVICE: &str = "host";
const MTU: u16 = 1500;

/// An address of [`OURS`] or [`KERNELS`].
pub(crate) fn address(of: [&str; 2], v6: bool) -> IpAddr {
    of[usize::from(v6)].parse().expect("it is an address")
}

pub(crate) type OurHost = Host<Stream<Exchange>>;

/// A host of ours and a namespace whose kernel is the other end.
pub(crate) struct Path {
    /// Our stack; dropped first.
    pub(crate) stack: Option<Running<Stream<Exchange>>>,
    emulator: Option<emulator::Running>,
    /// Where the kernel's sockets are; behind the link, if there is one.
    pub(crate) kernel: Namespace,
    /// Where the device of our stack is, if that is another.
    pub(crate) near: Option<Namespace>,
}

/// A link at which nothing goes wrong.
pub(crate) fn link(rate: u64, delay: Duration) -> Config {
    let queue = Queue::Packets(300);
    Config { rate: Rate::from_bps(rate), delay, queue, ..Config::default() }
}

impl Path {
    /// Our host's device is in the kernel's namespace.
    pub(crate) fn direct(what: &str) -> Result<Path, Error> {
        let kernel = Namespace::create(what)?;
        let stack = kernel.run(|| {
            prepare(KERNELS)?;
            start(stack::device(DEVICE, MTU, 20_000, &addresses(OURS))?)
        })??;
        Ok(Path { stack: Some(stack), emulator: None, kernel, near: None })
    }

    /// There is an emulated link between, which flips bits where it corrupts.
    pub(crate) fn linked(what: &str, config: &Config, seed: Seed) -> Result<Path, Error> {
        let near = Namespace::create(&format!("{what}-near"))?;
        let kernel = Namespace::create(what)?;
        let (one, stack) = near.run(|| {
            prepare(["10.128.0.1", "fd00:0:0:1::1"])?;
            let tun = stack::device(DEVICE, MTU, 20_000, &addresses(OURS))?;
            Ok::<_, Error>((end(0, KERNELS)?, start(tun)?))
        })??;
        let other = kernel.run(|| {
            prepare(KERNELS)?;
            end(1, OURS)
        })??;
        let mut emulator = Emulator::new(Clock::start(), seed);
        let directions = ["link.stack->kernel", "link.kernel->stack"].map(|name| Direction {
            name: name.to_owned(),
            config: config.clone(),
            ..Direction::default()
        });
        emulator.add_link([one, other], directions);
        let emulator = Some(emulator.start()?);
        Ok(Path { stack: Some(stack), emulator, kernel, near: Some(near) })
    }

    /// Has something done by our host's thread.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        f: impl FnOnce(base::Time, &mut OurHost) -> R + Send + 'static,
    ) -> R {
        let stack = self.stack.as_ref().expect("it runs until it is stopped");
        stack.call(f).expect("it runs")
    }

    /// Ends it.
    pub(crate) fn stop(mut self) -> (Ended<Stream<Exchange>>, Option<Report>) {
        let stack = self.stack.take().expect("it runs until it is stopped");
        let ended = stack.stop(Duration::from_secs(2));
        (
            ended,
            self.emulator.take().map(|emulator| emulator.stop().expect("its devices are there")),
        )
    }

    /// The device of our stack goes down, or up again.
    pub(crate) fn set_up(&self, up: bool) -> Result<(), Error> {
        let namespace = self.near.as_ref().unwrap_or(&self.kernel);
        namespace.run(|| {
            let netlink = Netlink::open()?;
            if !up {
                return netlink.set_down(DEVICE);
            }
            netlink.set_up(DEVICE)?;
            for address in addresses(OURS) {
                let prefix = if address.is_ipv4() { 32 } else { 128 };
                netlink.add_route(address, prefix, DEVICE, None)?;
            }
            Ok(())
        })?
    }
}

fn addresses(of: [&str; 2]) -> [IpAddr; 2] {
    [address(of, false), address(of, true)]
}

/// Makes a node of the calling thread's namespace.
fn prepare(own: [&str; 2]) -> Result<(), Error> {
    netlink::prepare_node()?;
    // What a transfer needs, and more than a test can wait for.
    netlink::set_sysctl("net.ipv4.tcp_rmem", "4096 4194304 33554432")?;
    netlink::set_sysctl("net.ipv4.tcp_wmem", "4096 4194304 33554432")?;
    let netlink = Netlink::open()?;
    for (address, prefix) in addresses(own).into_iter().zip([32, 128]) {
        netlink.add_address("lo", address, prefix)?;
    }
    Ok(())
}

fn end(node: usize, far: [&str; 2]) -> Result<End, Error> {
    let tun = Tun::open("link0", Offload::None, MTU)?;
    let netlink = Netlink::open()?;
    netlink.set_queue_length("link0", 10_000)?;
    netlink.set_up("link0")?;
    for (address, prefix) in addresses(far).into_iter().zip([32, 128]) {
        netlink.add_route(address, prefix, "link0", None)?;
    }
    Ok(End { node, tun })
}

fn start(tun: Tun) -> Result<Running<Stream<Exchange>>, Error> {
    let mut host = Host::new(address(OURS, false), Seed(1).stream("host"));
    host.add_address(address(OURS, true));
    host.set(Settings { resets: 1000, ..Settings::default() });
    Stack::new(host, tun, Clock::start()).start()
}
