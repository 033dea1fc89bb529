//! The BPF program that chooses the queue of a TUN device for each packet: that of the worker that owns its connection, and
//! for SYNs and RSTs another one of that worker's.
//!
//! A device with several queues puts a packet into the queue whose number such a program returns, modulo the number of
//! queues (`TUNSETSTEERINGEBPF`, Linux 4.16 and newer). The program gets the packet from its IP header on.

use crate::Error;
use crate::bpf::siphash::{self, V};
use crate::bpf::{
    Assembly, EXIT, Instruction, Program, R0, R1, R2, R6, R7, R8, R9, R10, add, add_immediate, and,
    copy, load_64, load_byte, load_byte_after, load_four_bytes, load_two_bytes,
    load_two_bytes_after, modulo, or, set, set_64, shift_left, shift_right, store_64,
};
use crate::steering::Owners;
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd as _};

/// The queues of a worker at a device: for SYNs, for RSTs, and for all other packets.
pub(crate) const QUEUES: usize = 3;

/// `IPPROTO_TCP`.
const TCP: i32 = 6;
/// SYN and ACK, in the byte of flags.
const SYN_ACK: i32 = 0x12;
const SYN: i32 = 0x02;
const RST: i32 = 0x04;

/// An end of a connection.
struct End {
    /// Where the headers of IPv4 and of IPv6 have its address.
    ipv4: i32,
    ipv6: i32,
    /// Where that of TCP has its port.
    port: i32,
    /// Its place on the stack: the upper and the lower half of the address, and the port.
    stack: i16,
}

const ENDS: [End; 2] = [
    End { ipv4: 12, ipv6: 8, port: 0, stack: -48 },
    End { ipv4: 16, ipv6: 24, port: 2, stack: -24 },
];
const LOWER: i16 = 8;
const PORT: i16 = 16;

/// Queues are in this order: those of all workers for other packets, for segments with SYN and without ACK, and for others
/// with RST. What is no TCP, or has the header of TCP elsewhere, is for the first one.
fn program(owners: &Owners) -> Vec<Instruction> {
    let workers = owners.workers() as i32;
    let has_owners = workers > 1;
    let mut code = Assembly::default();
    // r7 = the length of the IP header.
    code.run([copy(R6, R1), load_byte(0), copy(R7, R0), shift_right(R0, 4)]);
    code.go_if(R0, 6, "IPv6");
    code.go_unless(R0, 4, "other");
    code.run([and(R7, 0xf), shift_left(R7, 2), load_byte(9)]);
    code.go_unless(R0, TCP, "other");
    // A later fragment has no TCP header.
    code.run([load_two_bytes(6), and(R0, 0x1fff)]);
    code.go_unless(R0, 0, "other");
    if has_owners {
        ENDS.iter().for_each(|end| code.run(store_ipv4(end)));
    }
    code.go("TCP");
    // Without extension headers.
    code.label("IPv6");
    code.run([set(R7, 40), load_byte(6)]);
    code.go_unless(R0, TCP, "other");
    if has_owners {
        ENDS.iter().for_each(|end| code.run(store_ipv6(end)));
    }
    // r8 = the first queue of the kind.
    code.label("TCP");
    code.run([load_byte_after(R7, 13), copy(R8, R0), and(R0, SYN_ACK)]);
    code.go_if(R0, SYN, "SYN");
    code.run([and(R8, RST)]);
    code.go_if(R8, RST, "RST");
    code.run([set(R8, 0)]);
    code.go("owner");
    code.label("SYN");
    code.run([set(R8, workers)]);
    code.go("owner");
    code.label("RST");
    code.run([set(R8, 2 * workers)]);
    code.label("owner");
    if has_owners {
        add_owner(&mut code, owners);
    }
    code.run([copy(R0, R8), EXIT]);
    code.label("other");
    code.run([set(R0, 0), EXIT]);
    code.finish()
}

/// Stores the IPv4 address of an end, mapped to IPv6 (RFC 4291 §2.5.5.2).
fn store_ipv4(end: &End) -> [Instruction; 7] {
    [
        load_four_bytes(end.ipv4),
        set(R1, 0xffff),
        shift_left(R1, 32),
        or(R0, R1),
        store_64(R10, end.stack + LOWER, R0),
        set(R1, 0),
        store_64(R10, end.stack, R1),
    ]
}

/// Stores the IPv6 address of an end.
fn store_ipv6(end: &End) -> Vec<Instruction> {
    let half = |place, to| {
        [
            load_four_bytes(place),
            shift_left(R0, 32),
            copy(R9, R0),
            load_four_bytes(place + 4),
            or(R0, R9),
            store_64(R10, to, R0),
        ]
    };
    [half(end.ipv6, end.stack), half(end.ipv6 + 8, end.stack + LOWER)].concat()
}

/// `r8 +=` the number of the connection's owner ([`Owners::of`]).
fn add_owner(code: &mut Assembly, owners: &Owners) {
    for End { port, stack, .. } in ENDS {
        code.run([load_two_bytes_after(R7, port), store_64(R10, stack + PORT, R0)]);
    }
    // r7 and r9 point to the ends, the lesser one first.
    let [one, other] = ENDS.map(|end| end.stack);
    for part in [0, LOWER, PORT] {
        code.run([load_64(R1, R10, one + part), load_64(R2, R10, other + part)]);
        code.go_if_below(R1, R2, "in order");
        code.go_if_below(R2, R1, "in reverse");
    }
    let point = |to, place: i16| [copy(to, R10), add_immediate(to, place.into())];
    code.label("in order");
    code.run([point(R7, one), point(R9, other)].concat());
    code.go("ordered");
    code.label("in reverse");
    code.run([point(R7, other), point(R9, one)].concat());
    code.label("ordered");
    let [of_word, of_end] = Owners::ROUNDS;
    for (register, word) in V.into_iter().zip(siphash::state(owners.key())) {
        code.run(set_64(register, word));
    }
    for (end, part) in [(R7, 0), (R7, LOWER), (R9, 0), (R9, LOWER)] {
        code.run([load_64(R0, end, part)]);
        code.run(siphash::compress(R0, of_word));
    }
    // The ports, and the length of all.
    code.run([load_64(R0, R7, PORT), load_64(R7, R9, PORT), shift_left(R7, 16), or(R0, R7)]);
    code.run([set(R7, Owners::LEN as i32), shift_left(R7, 56), or(R0, R7)]);
    code.run(siphash::compress(R0, of_word));
    code.run(siphash::finish(of_end));
    let [hash, ..] = V;
    code.run([modulo(hash, owners.workers() as i32), add(R8, hash)]);
}

/// The program, loaded into the kernel.
#[derive(Debug)]
pub struct QueueProgram {
    program: Program,
    workers: usize,
}

impl QueueProgram {
    /// Loads it for these workers.
    ///
    /// # Errors
    /// If the process may not: it needs CAP_BPF where `kernel.unprivileged_bpf_disabled` is not 0. If the kernel has no
    /// BPF.
    pub fn load(owners: &Owners) -> Result<QueueProgram, Error> {
        let program = Program::load(&program(owners), "the queues of a device")?;
        Ok(QueueProgram { program, workers: owners.workers() })
    }

    /// The workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Lets it choose the queues of a TUN device.
    pub(crate) fn attach(&self, device: impl AsFd) -> Result<(), Errno> {
        const STEER: rustix::ioctl::Opcode = opcode::read::<c_int>(b'T', 224);
        #[expect(unsafe_code, reason = "TUNSETSTEERINGEBPF reads an int, and changes nothing else")]
        unsafe {
            ioctl(device, Setter::<STEER, c_int>::new(self.program.as_fd().as_raw_fd()))
        }
    }
}

#[cfg(test)]
mod tests;
