//! The BPF program that gives SYNs and RSTs queues of their own in a TUN device.
//!
//! A device with several queues puts a packet into the queue whose number such a program returns, modulo the number of
//! queues (`TUNSETSTEERINGEBPF`, Linux 4.16 and newer). The program gets the packet from its IP header on. A load beyond
//! the end of the packet ends it with 0.

use crate::Error;
use crate::error::Doing;
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

/// `struct bpf_insn`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Instruction {
    code: u8,
    /// The registers, 4 bits each.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// An instruction of linux/bpf.h with these registers.
const fn instruction(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    // Bit fields begin at the other end there.
    let registers = if cfg!(target_endian = "big") { to << 4 | from } else { from << 4 | to };
    Instruction { code, registers, offset, immediate }
}

/// `to = immediate`
const fn set(to: u8, immediate: i32) -> Instruction {
    instruction(0xb7, to, 0, 0, immediate)
}

/// `to = from`
const fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}

/// `to &= immediate`
const fn and(to: u8, immediate: i32) -> Instruction {
    instruction(0x57, to, 0, 0, immediate)
}

/// `to <<= immediate`
const fn shift_left(to: u8, immediate: i32) -> Instruction {
    instruction(0x67, to, 0, 0, immediate)
}

/// `to >>= immediate`
const fn shift_right(to: u8, immediate: i32) -> Instruction {
    instruction(0x77, to, 0, 0, immediate)
}

/// `r0 =` the byte at a place of the packet. As all loads from packets, it takes the packet from r6.
const fn load_byte(place: i32) -> Instruction {
    instruction(0x30, 0, 0, 0, place)
}

/// `r0 =` the byte at a place after that in a register.
const fn load_byte_after(register: u8, place: i32) -> Instruction {
    instruction(0x50, 0, register, 0, place)
}

/// `r0 =` the two bytes at a place of the packet.
const fn load_two_bytes(place: i32) -> Instruction {
    instruction(0x28, 0, 0, 0, place)
}

/// Skips so many instructions.
const fn skip(count: i16) -> Instruction {
    instruction(0x05, 0, 0, count, 0)
}

/// Skips so many instructions if `register == immediate`.
const fn skip_if(register: u8, immediate: i32, count: i16) -> Instruction {
    instruction(0x15, register, 0, count, immediate)
}

/// Skips so many instructions if `register != immediate`.
const fn skip_unless(register: u8, immediate: i32, count: i16) -> Instruction {
    instruction(0x55, register, 0, count, immediate)
}

/// Returns r0.
const EXIT: Instruction = instruction(0x95, 0, 0, 0, 0);

const R0: u8 = 0;
const R1: u8 = 1;
const R6: u8 = 6;
/// The length of the IP header, and then the byte of flags.
const R7: u8 = 7;

/// `IPPROTO_TCP`.
const TCP: i32 = 6;
/// SYN and ACK, in the byte of flags.
const SYN_ACK: i32 = 0x12;
const SYN: i32 = 0x02;
const RST: i32 = 0x04;

/// Returns 1 for segments with SYN and without ACK, 2 for others with RST, and else 0.
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

/// `BPF_PROG_LOAD`.
const LOAD: c_int = 5;
/// `BPF_PROG_TYPE_SOCKET_FILTER`.
const SOCKET_FILTER: u32 = 1;

/// The beginning of `union bpf_attr` for [`LOAD`]; all else is 0.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    first: u64,
    license: u64,
    log: [u64; 2],
    kernel: u32,
    flags: u32,
}

/// The program, loaded into the kernel.
#[derive(Debug)]
pub struct ControlProgram(OwnedFd);

impl ControlProgram {
    /// Loads it.
    ///
    /// # Errors
    /// If the process may not: it needs CAP_BPF where `kernel.unprivileged_bpf_disabled` is not 0. If the kernel has no
    /// BPF.
    pub fn load() -> Result<ControlProgram, Error> {
        let attributes = Load {
            kind: SOCKET_FILTER,
            instructions: PROGRAM.len() as u32,
            first: PROGRAM.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
            log: [0; 2],
            kernel: 0,
            flags: 0,
        };
        #[expect(unsafe_code, reason = "what the attributes point to is constant")]
        let loaded = unsafe { bpf(LOAD, &attributes) };
        let descriptor = loaded.doing(|| "loading the BPF program for SYNs and RSTs".to_owned())?;
        #[expect(unsafe_code, reason = "the kernel has just opened it for this")]
        Ok(ControlProgram(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Lets it choose the queues of a TUN device.
    pub(crate) fn attach(&self, device: impl AsFd) -> Result<(), Errno> {
        const STEER: rustix::ioctl::Opcode = opcode::read::<c_int>(b'T', 224);
        #[expect(unsafe_code, reason = "TUNSETSTEERINGEBPF reads an int, and changes nothing else")]
        unsafe {
            ioctl(device, Setter::<STEER, c_int>::new(self.0.as_raw_fd()))
        }
    }
}

/// bpf(2). What the attributes point to must be as the command expects it.
#[expect(unsafe_code, reason = "no crate that needs neither clang nor libelf has this call")]
unsafe fn bpf<T>(command: c_int, attributes: &T) -> Result<RawFd, Errno> {
    // SAFETY: the kernel reads, and perhaps writes, so many bytes of the attributes, and what they point to, which is the
    // caller's to see to.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>())
    };
    match result {
        0.. => Ok(result as RawFd),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}

#[cfg(test)]
mod tests;
