//! TUN devices: IP packets as the kernel sends them, to be read and written.

use crate::error::Doing;
use crate::netlink::DeviceCounts;
use crate::queue_program::QUEUES;
use crate::{Error, Netlink, QueueProgram};
use rustix::io::Errno;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use tun_rs::{DeviceBuilder, SyncDevice};

/// Length of the `virtio_net_hdr` before every packet of a device with [`Offload::Full`].
pub const VIRTIO_HEADER_LEN: usize = 10;

/// What is left to the reader and the writer of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Nothing: packets are whole and no longer than the MTU.
    None,
    /// Checksums, and cutting TCP units of up to 64 kB into segments. Every read and write has a
    /// `virtio_net_hdr` of [`VIRTIO_HEADER_LEN`] bytes in front, in the machine's byte order, that
    /// says what is still to be done.
    Full,
}

/// A TUN device, or one of its queues. The device is gone when this is dropped.
pub struct Tun {
    descriptor: OwnedFd,
    /// The queues of SYNs and of RSTs, if they have some.
    control: Option<[OwnedFd; 2]>,
    name: String,
    /// The network of the device's namespace.
    netlink: Netlink,
}

impl Tun {
    /// Makes a device in the network namespace of the calling thread. It is down and has no
    /// address (see [`Netlink`]).
    ///
    /// # Errors
    /// If the name is taken or longer than 15 bytes, the MTU is none, or the process may not make
    /// devices (CAP_NET_ADMIN).
    pub fn open(name: &str, offload: Offload, mtu: u16) -> Result<Tun, Error> {
        let one = Tun::open_queues(name, offload, mtu, NonZeroUsize::MIN)?.pop();
        Ok(one.unwrap_or_else(|| unreachable!("there is one")))
    }

    /// Makes a device like [`Tun::open`] with three queues for each worker: for segments with SYN and without ACK, for
    /// others with RST, and for all else ([`Tun::control_queues`]). Each has room for as many packets as any, so that a
    /// flood of SYNs takes the room of SYNs alone, and one of RSTs that of RSTs. Packets of a connection are for its owner. The
    /// program is the device's until it is gone.
    ///
    /// # Errors
    /// As [`Tun::open_queues`], and if the kernel has no such programs for devices (before Linux 4.16).
    pub fn open_with_program(
        name: &str,
        offload: Offload,
        mtu: u16,
        program: &QueueProgram,
    ) -> Result<Vec<Tun>, Error> {
        let workers = program.workers();
        let queues = NonZeroUsize::new(QUEUES * workers).unwrap_or(NonZeroUsize::MIN);
        let mut tuns = Tun::open_queues(name, offload, mtu, queues)?;
        let mut rsts = tuns.split_off(2 * workers).into_iter();
        let mut syns = tuns.split_off(workers).into_iter();
        for tun in &mut tuns {
            let control = [syns.next(), rsts.next()].map(|tun| tun.map(|tun| tun.descriptor));
            if let [Some(syns), Some(rsts)] = control {
                tun.control = Some([syns, rsts]);
            }
        }
        let action = || format!("choosing the queues of TUN device {name} by a BPF program");
        tuns.first().map_or(Ok(()), |tun| program.attach(tun)).doing(action)?;
        Ok(tuns)
    }

    /// The device that another program has made in the network namespace of the calling thread, and whose
    /// descriptors, those of its queues of SYNs and RSTs among them, it has passed on ([`crate::inherit`]).
    ///
    /// # Errors
    /// If it is none.
    pub fn inherit(
        descriptor: OwnedFd,
        control: Option<[OwnedFd; 2]>,
        name: &str,
    ) -> Result<Tun, Error> {
        for descriptor in [&descriptor].into_iter().chain(control.iter().flatten()) {
            let action = || format!("taking over TUN device {name}");
            let about = format!("/proc/self/fdinfo/{}", descriptor.as_raw_fd());
            let about = std::fs::read_to_string(about).doing(action)?;
            // Of another kind of file, this is not said.
            let found = about.lines().find_map(|line| line.strip_prefix("iff:"));
            if found.map(str::trim) != Some(name) {
                let error = io::Error::other("the descriptor is not that of the device");
                return Err(error).doing(action);
            }
        }
        Ok(Tun { descriptor, control, name: name.to_owned(), netlink: Netlink::open()? })
    }

    /// A socket that is read and written as a device is, and the kernel's side of it.
    #[cfg(test)]
    pub(crate) fn pair() -> (Tun, OwnedFd) {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (descriptor, kernel) = socketpair(family, kind, SocketFlags::empty(), None).unwrap();
        rustix::io::ioctl_fionbio(&descriptor, true).unwrap();
        let netlink = Netlink::open().unwrap();
        (Tun { descriptor, control: None, name: "pair".to_owned(), netlink }, kernel)
    }

    /// Makes a device like [`Tun::open`] with several queues, each to be read and written by a thread
    /// of its own. The kernel puts a packet into the queue by which the last packet of its flow was
    /// written; if there was none in the last three seconds, a hash of the flow chooses. The device
    /// is gone when all are dropped.
    ///
    /// # Errors
    /// As [`Tun::open`], and if there are more queues than the kernel allows (256).
    pub fn open_queues(
        name: &str,
        offload: Offload,
        mtu: u16,
        queues: NonZeroUsize,
    ) -> Result<Vec<Tun>, Error> {
        let several = queues > NonZeroUsize::MIN;
        // The kernel would add queues to a device that has several.
        if several && Netlink::open()?.index(name).is_ok() {
            return Err(io::Error::from(Errno::BUSY)).doing(|| format!("making TUN device {name}"));
        }
        // Nothing but the descriptor is wanted of tun-rs: no addresses, and of its reads and
        // writes those that neither cut units nor put them together.
        let builder = DeviceBuilder::new().name(name).mtu(mtu).enable(false);
        let builder = builder.with(|linux| {
            linux.offload(offload == Offload::Full).packet_information(false);
            linux.multi_queue(several);
        });
        let action = || format!("making TUN device {name}");
        let mut devices = vec![builder.build_sync().doing(action)?];
        for _ in 1..queues.get() {
            devices.push(devices[0].try_clone().doing(action)?);
        }
        let queue = |device: SyncDevice| {
            device.set_nonblocking(true).doing(action)?;
            let descriptor = device.as_fd().try_clone_to_owned().doing(action)?;
            Ok(Tun { descriptor, control: None, name: name.to_owned(), netlink: Netlink::open()? })
        };
        devices.into_iter().map(queue).collect()
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the kernel counted at the device.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn counts(&self) -> Result<DeviceCounts, Error> {
        self.netlink.counts(&self.name)
    }

    /// Reads a packet into `buffer` and returns how many bytes there are; the rest of one that is
    /// longer is lost.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.descriptor, buffer)?)
    }

    /// The descriptors of the queues of SYNs and of RSTs, if they have some; then they are in no other queue. They are
    /// read as the device is.
    #[must_use]
    pub fn control_queues(&self) -> Option<[BorrowedFd<'_>; 2]> {
        self.control.as_ref().map(|queues| queues.each_ref().map(AsFd::as_fd))
    }

    /// Gives the kernel a packet.
    ///
    /// # Errors
    /// If the kernel does not take it, for instance because the device is down.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.descriptor, packet)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
