//! lasthop in real time: network namespaces, TUN devices, links emulated between them, hosts that run on
//! real packets, and transfers of files by such hosts.
//!
//! Linux only, and as root: everything here needs CAP_NET_ADMIN, and namespaces CAP_SYS_ADMIN.

#![cfg(target_os = "linux")]

mod bpf;
mod buffers;
mod chain;
mod clock;
mod commands;
mod copies;
mod device;
pub mod emulator;
mod error;
pub mod inherit;
pub mod inline;
pub mod namespace;
mod nat;
pub mod netlink;
mod payloads;
mod pool;
mod queue_program;
pub mod rights;
mod ring;
mod session_queue;
mod socket;
pub mod sockopt;
pub mod stack;
mod steering;
pub mod transfer;
pub mod tun;
mod udp_sender;
mod virtio;

pub use bytes::Bytes;
pub use clock::Clock;
pub use copies::Copies;
pub use device::DeviceUse;
pub use error::Error;
pub use namespace::Namespace;
pub use nat::Nat;
pub use netlink::Netlink;
pub use queue_program::QueueProgram;
pub use session_queue::SessionQueue;
pub use socket::{Program, Socket, Stream};
pub use tun::{Offload, Tun};
pub use udp_sender::UdpSender;
