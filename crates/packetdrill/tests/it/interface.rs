//! The table of C functions, called as packetdrill calls it.
#![allow(unsafe_code, reason = "C functions are called")]

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use lasthop_packetdrill::interface::{Interface, getsockopt, packetdrill_interface_init};
use libc::{c_int, epoll_event, iovec, msghdr, sockaddr_in, socklen_t};
use wire::{Body, Flags, Packet};

struct Script(Interface);

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

fn address(port: u16, last: u8) -> sockaddr_in {
    sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([192, 0, 2, last]) },
        sin_zero: [0; 8],
    }
}

const SIZE: socklen_t = size_of::<sockaddr_in>() as socklen_t;

impl Script {
    fn new() -> Script {
        let mut table = MaybeUninit::uninit();
        // SAFETY: the function fills the table.
        unsafe {
            packetdrill_interface_init(c"profile=linux,mtu=1500".as_ptr(), table.as_mut_ptr());
            Script(table.assume_init())
        }
    }

    /// What the stack sends next.
    fn sent(&self) -> (Packet, Vec<u8>) {
        let (mut bytes, mut at) = (vec![0; 65_536], 0);
        let mut size = bytes.len();
        // SAFETY: the buffer has that size.
        let status = unsafe {
            (self.0.netdev_receive)(self.0.userdata, bytes.as_mut_ptr().cast(), &mut size, &mut at)
        };
        assert!(status == 0 && size > 0, "nothing was sent");
        let (packet, place) = Packet::parse(&bytes[..size]).unwrap();
        (packet, bytes[place].to_vec())
    }

    /// What the peer answers.
    fn answer(&self, to: &Packet, flags: Flags, bytes: &[u8]) {
        let out = crate::common::answer(to, flags, bytes);
        // SAFETY: the packet has that size.
        let status =
            unsafe { (self.0.netdev_send)(self.0.userdata, out.as_ptr().cast(), out.len()) };
        assert_eq!(status, 0);
    }
}

/// One test, because a process has one stack.
#[test]
#[allow(clippy::too_many_lines, reason = "it is read from top to bottom, as a script")]
fn a_script_of_system_calls() {
    let script = Script::new();
    let Interface { userdata: u, .. } = script.0;
    let table = &script.0;
    // SAFETY: every pointer is to something of the size that is given.
    unsafe {
        assert_eq!((table.socket)(u, libc::AF_UNIX, libc::SOCK_STREAM, 0), -1);
        assert_eq!(errno(), libc::EAFNOSUPPORT);
        assert_eq!((table.socket)(u, libc::AF_INET, libc::SOCK_DGRAM, 0), -1);
        let fd = (table.socket)(u, libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP);
        assert!(fd > 2, "a real descriptor");
        assert_eq!((table.fcntl)(u, fd, libc::F_GETFL, 0), libc::O_RDWR);
        assert_eq!((table.fcntl)(u, fd, libc::F_SETFL, libc::O_RDWR | libc::O_NONBLOCK), 0);
        assert_eq!((table.fcntl)(u, fd, libc::F_GETFL, 0), libc::O_RDWR | libc::O_NONBLOCK);

        let to = address(8080, 1);
        assert_eq!((table.connect)(u, fd, ptr::from_ref(&to).cast(), 4), -1);
        assert_eq!(errno(), libc::EINVAL);
        assert_eq!((table.connect)(u, fd, ptr::null(), SIZE), -1);
        assert_eq!(errno(), libc::EFAULT);
        assert_eq!((table.connect)(u, fd, ptr::from_ref(&to).cast(), SIZE), -1);
        assert_eq!(errno(), libc::EINPROGRESS);
        let (syn, _) = script.sent();
        script.answer(&syn, Flags::SYN | Flags::ACK, b"");
        let (ack, _) = script.sent();

        let epoll = (table.epoll_create)(u, 1);
        let events = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET) as u32;
        let mut event = epoll_event { events, u64: 77 };
        assert_eq!((table.epoll_ctl)(u, epoll, libc::EPOLL_CTL_ADD, fd, &mut event), 0);
        assert_eq!((table.epoll_ctl)(u, epoll, libc::EPOLL_CTL_ADD, fd, &mut event), -1);
        assert_eq!(errno(), libc::EEXIST);
        let mut ready = [epoll_event { events: 0, u64: 0 }; 4];
        assert_eq!((table.epoll_wait)(u, epoll, ready.as_mut_ptr(), 4, 0), 1);
        let (found, data) = (ready[0].events, ready[0].u64);
        assert_eq!((found, data), (libc::EPOLLOUT as u32, 77));
        assert_eq!(
            (table.epoll_wait)(u, epoll, ready.as_mut_ptr(), 4, 0),
            0,
            "an edge is seen once"
        );

        // Out, from two places.
        let parts = [&b"ping "[..], &b"pong"[..]]
            .map(|part| iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
        assert_eq!((table.writev)(u, fd, parts.as_ptr(), 2), 9);
        let (data, bytes) = script.sent();
        assert_eq!(bytes, b"ping pong");
        let mut count = 0;
        assert_eq!((table.ioctl)(u, fd, libc::TIOCOUTQ, &mut count), 0);
        assert_eq!(count, 9);
        assert_eq!((table.write)(u, fd, ptr::null(), 5), -1);
        assert_eq!(errno(), libc::EFAULT);

        // In, with an answer to what went out.
        script.answer(&data, Flags::ACK, b"here you are");
        assert_eq!((table.epoll_wait)(u, epoll, ready.as_mut_ptr(), 4, 0), 1);
        assert_eq!((table.ioctl)(u, fd, libc::FIONREAD, &mut count), 0);
        assert_eq!(count, 12);
        let on: c_int = 1;
        let result = (table.setsockopt)(
            u,
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INQ,
            ptr::from_ref(&on).cast(),
            4,
        );
        assert_eq!(result, 0);
        let mut into = [0_u8; 5];
        let mut part = iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let mut control = [0_u64; 8];
        let mut message: msghdr = core::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        assert_eq!((table.recvmsg)(u, fd, &mut message, 0), 5);
        assert_eq!(&into, b"here ");
        let header = libc::CMSG_FIRSTHDR(&message);
        assert_eq!(((*header).cmsg_level, (*header).cmsg_type), (libc::SOL_TCP, libc::TCP_CM_INQ));
        assert_eq!(ptr::read_unaligned(libc::CMSG_DATA(header).cast::<c_int>()), 7);
        let mut rest = [0_u8; 20];
        let into: *mut c_void = rest.as_mut_ptr().cast();
        assert_eq!((table.recv)(u, fd, into, 20, libc::MSG_PEEK), 7);
        assert_eq!((table.read)(u, fd, into, 20), 7);
        assert_eq!(&rest[..7], b"you are");
        assert_eq!((table.read)(u, fd, into, 20), -1);
        assert_eq!(errno(), libc::EAGAIN);
        assert_eq!((table.recv)(u, fd, into, 20, libc::MSG_OOB), -1);
        assert_eq!(errno(), libc::EOPNOTSUPP);

        // Past the table, for our socket and for the kernel's.
        let (mut info, mut size) = ([0_u8; 280], 280);
        let place: *mut c_void = info.as_mut_ptr().cast();
        let status = getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, place, &mut size);
        assert_eq!((status, size, info[0]), (0, 280, 1));
        let kernels = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        let (mut kind, mut size) = (0_i32, 4);
        let place: *mut c_void = ptr::from_mut(&mut kind).cast();
        assert_eq!(getsockopt(kernels, libc::SOL_SOCKET, libc::SO_TYPE, place, &mut size), 0);
        assert_eq!(kind, libc::SOCK_DGRAM);
        libc::close(kernels);

        // Time.
        let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
        (table.gettimeofday)(u, &mut time, ptr::null_mut());
        let before = (time.tv_sec, time.tv_usec);
        assert_eq!((table.usleep)(u, 2_000_000), 0);
        (table.gettimeofday)(u, &mut time, ptr::null_mut());
        assert_eq!((time.tv_sec, time.tv_usec), (before.0 + 2, before.1 + 1));

        assert_eq!((table.shutdown)(u, fd, 9), -1);
        assert_eq!((table.close)(u, epoll), 0);
        assert_eq!((table.close)(u, fd), 0);
        assert_eq!((table.close)(u, fd), -1);
        assert_eq!(errno(), libc::EBADF);
        let last = loop {
            let (packet, _) = script.sent();
            let Body::Tcp(segment) = packet.body else { panic!("not TCP") };
            if segment.flags.contains(Flags::FIN) {
                break packet;
            }
        };
        script.answer(&last, Flags::RST, b"");
        script.answer(&ack, Flags::ACK, b"the connection has ended");
        let (reset, _) = script.sent();
        let Body::Tcp(segment) = reset.body else { panic!("not TCP") };
        assert!(segment.flags.contains(Flags::RST));
        // Bytes that are not a packet are ignored.
        assert_eq!((table.netdev_send)(u, [0x45_u8; 40].as_ptr().cast(), 40), 0);
    }
}
