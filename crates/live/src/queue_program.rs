//! The BPF program that chooses the queue of a TUN device for each packet: that of the worker that owns its connection, and
//! for SYNs and RSTs another one of that worker's.
//!
//! A device with several queues puts a packet into the queue whose number such a program returns, modulo the number of
//! queues (`TUNSETSTEERINGEBPF`, Linux 4.16 and newer). The program gets the packet from its IP header on.

use crate::Error;
use crate::bpf::siphash::{self, V};
use crate::bpf::{
    EXIT, Instruction, Program, R0, R1, R2, R6, R7, R8, R9, R10, Step, add, add_immediate, and,
    assemble, copy, go_if, go_if_below, go_to, go_unless, load_64, load_byte, load_byte_after,
    load_four_bytes, load_two_bytes, load_two_bytes_after, modulo, or, set, set_64, shift_left,
    shift_right, store_64,
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

/// The places of both ends on the stack: the upper and the lower half of the address, and the port.
const ENDS: [i16; 2] = [-48, -24];
const LOWER: i16 = 8;
const PORT: i16 = 16;

/// Queues are in this order: those of all workers for other packets, for segments with SYN and without ACK, and for others with RST.
/// What is no TCP, or has the header of TCP elsewhere, is for the first one.
fn program(owners: &Owners) -> Vec<Instruction> {
    let workers = owners.workers() as i32;
    let mut steps = Vec::new();
    let mut add_all = |more: &[Step]| steps.extend_from_slice(more);
    // r7 = the length of the IP header.
    add_all(&[
        Step::Do(copy(R6, R1)),
        Step::Do(load_byte(0)),
        Step::Do(copy(R7, R0)),
        Step::Do(shift_right(R0, 4)),
        go_if(R0, 6, "IPv6"),
        go_unless(R0, 4, "other"),
        Step::Do(and(R7, 0xf)),
        Step::Do(shift_left(R7, 2)),
        Step::Do(load_byte(9)),
        go_unless(R0, TCP, "other"),
        // A later fragment has no TCP header.
        Step::Do(load_two_bytes(6)),
        Step::Do(and(R0, 0x1fff)),
        go_unless(R0, 0, "other"),
    ]);
    if workers > 1 {
        add_all(&ENDS.map(|end| store_ipv4(end).map(Step::Do)).concat());
    }
    add_all(&[
        go_to("TCP"),
        Step::Label("IPv6"),
        // Without extension headers.
        Step::Do(set(R7, 40)),
        Step::Do(load_byte(6)),
        go_unless(R0, TCP, "other"),
    ]);
    if workers > 1 {
        add_all(&ENDS.map(|end| store_ipv6(end).map(Step::Do)).concat());
    }
    // r8 = the first queue of the kind.
    add_all(&[
        Step::Label("TCP"),
        Step::Do(load_byte_after(R7, 13)),
        Step::Do(copy(R8, R0)),
        Step::Do(and(R0, SYN_ACK)),
        go_if(R0, SYN, "SYN"),
        Step::Do(and(R8, RST)),
        go_if(R8, RST, "RST"),
        Step::Do(set(R8, 0)),
        go_to("owner"),
        Step::Label("SYN"),
        Step::Do(set(R8, workers)),
        go_to("owner"),
        Step::Label("RST"),
        Step::Do(set(R8, 2 * workers)),
        Step::Label("owner"),
    ]);
    if workers > 1 {
        add_all(&add_owner(owners));
    }
    add_all(&[
        Step::Do(copy(R0, R8)),
        Step::Do(EXIT),
        Step::Label("other"),
        Step::Do(set(R0, 0)),
        Step::Do(EXIT),
    ]);
    assemble(&steps)
}

/// The place of an end's address among both in the packet.
fn number(end: i16) -> i32 {
    i32::from(end == ENDS[1])
}

/// Stores the IPv4 address of an end, mapped to IPv6 (RFC 4291 §2.5.5.2).
fn store_ipv4(end: i16) -> [Instruction; 7] {
    [
        load_four_bytes(12 + 4 * number(end)),
        set(R1, 0xffff),
        shift_left(R1, 32),
        or(R0, R1),
        store_64(R10, end + LOWER, R0),
        set(R1, 0),
        store_64(R10, end, R1),
    ]
}

/// Stores the IPv6 address of an end.
fn store_ipv6(end: i16) -> [Instruction; 12] {
    let place = 8 + 16 * number(end);
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
    let [a, b, c, d, e, f] = half(place, end);
    let [g, h, i, j, k, l] = half(place + 8, end + LOWER);
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

/// `r8 +=` the number of the connection's owner ([`Owners::of`]).
fn add_owner(owners: &Owners) -> Vec<Step> {
    let [one, other] = ENDS;
    let load = |part| [load_64(R1, R10, one + part), load_64(R2, R10, other + part)].map(Step::Do);
    let compare = [go_if_below(R1, R2, "one first"), go_if_below(R2, R1, "other first")];
    // r7 and r9 are to point to the ends in order.
    let point = |first, second| {
        [copy(R7, R10), add_immediate(R7, first), copy(R9, R10), add_immediate(R9, second)]
            .map(Step::Do)
    };
    let [hash, ..] = V;
    let state = V.into_iter().zip(siphash::state(owners.key()));
    let words = [(R7, 0), (R7, LOWER), (R9, 0), (R9, LOWER)];
    let hashed = [
        state.flat_map(|(register, word)| set_64(register, word)).collect::<Vec<_>>(),
        words
            .map(|(end, part)| {
                [vec![load_64(R0, end, part)], siphash::compress(R0, Owners::ROUNDS[0])].concat()
            })
            .concat(),
        // The ports, and the length of all.
        vec![
            load_64(R0, R7, PORT),
            load_64(R7, R9, PORT),
            shift_left(R7, 16),
            or(R0, R7),
            set(R7, Owners::LEN as i32),
            shift_left(R7, 56),
            or(R0, R7),
        ],
        siphash::compress(R0, Owners::ROUNDS[0]),
        siphash::finish(Owners::ROUNDS[1]),
        vec![modulo(hash, owners.workers() as i32), add(R8, hash)],
    ]
    .concat();
    let ports = [(0, one), (2, other)].map(|(place, end)| {
        [load_two_bytes_after(R7, place), store_64(R10, end + PORT, R0)].map(Step::Do)
    });
    [
        ports.concat(),
        [0, LOWER, PORT].map(|part| [load(part), compare].concat()).concat(),
        vec![Step::Label("one first")],
        point(one.into(), other.into()).to_vec(),
        vec![go_to("hash"), Step::Label("other first")],
        point(other.into(), one.into()).to_vec(),
        vec![Step::Label("hash")],
        hashed.into_iter().map(Step::Do).collect(),
    ]
    .concat()
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
