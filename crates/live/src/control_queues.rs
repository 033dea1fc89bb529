//! The BPF program that gives SYNs and RSTs queues of their own in a TUN device.
//!
//! A device with several queues puts a packet into the queue whose number such a program returns, modulo the number of
//! queues (`TUNSETSTEERINGEBPF`, Linux 4.16 and newer). The program gets the packet from its IP header on.

use crate::Error;
use crate::bpf::{
    EXIT, Instruction, Program, R0, R1, R6, R7, and, copy, load_byte, load_byte_after,
    load_two_bytes, set, shift_left, shift_right, skip, skip_if, skip_unless,
};
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd as _};

/// `IPPROTO_TCP`.
const TCP: i32 = 6;
/// SYN and ACK, in the byte of flags.
const SYN_ACK: i32 = 0x12;
const SYN: i32 = 0x02;
const RST: i32 = 0x04;

/// R7 is the length of the IP header, and then the byte of flags. Returns 1 for segments with SYN and without ACK, 2 for others with RST, and else 0.
const PROGRAM: [Instruction; 29] = [
    copy(R6, R1),
    load_byte(0),
    copy(R7, R0),
    shift_right(R0, 4),
    skip_if(R0, 6, 9),
    skip_unless(R0, 4, 17),
    // IPv4. A later fragment has no TCP header.
    and(R7, 0xf),
    shift_left(R7, 2),
    load_byte(9),
    skip_unless(R0, TCP, 13),
    load_two_bytes(6),
    and(R0, 0x1fff),
    skip_unless(R0, 0, 10),
    skip(3),
    // IPv6, without extension headers.
    set(R7, 40),
    load_byte(6),
    skip_unless(R0, TCP, 6),
    // TCP.
    load_byte_after(R7, 13),
    copy(R7, R0),
    and(R0, SYN_ACK),
    skip_if(R0, SYN, 4),
    and(R7, RST),
    skip_if(R7, RST, 4),
    set(R0, 0),
    EXIT,
    set(R0, 1),
    EXIT,
    set(R0, 2),
    EXIT,
];

/// The program, loaded into the kernel.
#[derive(Debug)]
pub struct ControlProgram(Program);

impl ControlProgram {
    /// Loads it.
    ///
    /// # Errors
    /// If the process may not: it needs CAP_BPF where `kernel.unprivileged_bpf_disabled` is not 0. If the kernel has no
    /// BPF.
    pub fn load() -> Result<ControlProgram, Error> {
        Program::load(&PROGRAM, "SYNs and RSTs").map(ControlProgram)
    }

    /// Lets it choose the queues of a TUN device.
    pub(crate) fn attach(&self, device: impl AsFd) -> Result<(), Errno> {
        const STEER: rustix::ioctl::Opcode = opcode::read::<c_int>(b'T', 224);
        #[expect(unsafe_code, reason = "TUNSETSTEERINGEBPF reads an int, and changes nothing else")]
        unsafe {
            ioctl(device, Setter::<STEER, c_int>::new(self.0.as_fd().as_raw_fd()))
        }
    }
}

#[cfg(test)]
mod tests;
