//! BPF: the instructions of our programs, and the system call that loads programs and makes maps. No crate that needs
//! neither clang nor libelf has them.

mod assembly;
pub(crate) mod siphash;

pub(crate) use assembly::Assembly;

use crate::Error;
use crate::error::Doing;
use rustix::io::Errno;
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// `struct bpf_insn`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Instruction {
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
pub(crate) const fn set(to: u8, immediate: i32) -> Instruction {
    instruction(0xb7, to, 0, 0, immediate)
}

/// `to = immediate`, of 64 bits
pub(crate) const fn set_64(to: u8, immediate: u64) -> [Instruction; 2] {
    let [lower, upper] = [immediate as i32, (immediate >> 32) as i32];
    [instruction(0x18, to, 0, 0, lower), instruction(0, 0, 0, 0, upper)]
}

/// `to = from`
pub(crate) const fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}

/// `to &= immediate`
pub(crate) const fn and(to: u8, immediate: i32) -> Instruction {
    instruction(0x57, to, 0, 0, immediate)
}

/// `to %= immediate`, without signs
pub(crate) const fn modulo(to: u8, immediate: i32) -> Instruction {
    instruction(0x97, to, 0, 0, immediate)
}

/// `to <<= immediate`
pub(crate) const fn shift_left(to: u8, immediate: i32) -> Instruction {
    instruction(0x67, to, 0, 0, immediate)
}

/// `to >>= immediate`
pub(crate) const fn shift_right(to: u8, immediate: i32) -> Instruction {
    instruction(0x77, to, 0, 0, immediate)
}

/// `r0 =` the byte at a place of the packet. As all loads from packets, it takes the packet from r6.
pub(crate) const fn load_byte(place: i32) -> Instruction {
    instruction(0x30, 0, 0, 0, place)
}

/// `r0 =` the byte at a place after that in a register.
pub(crate) const fn load_byte_after(register: u8, place: i32) -> Instruction {
    instruction(0x50, 0, register, 0, place)
}

/// `r0 =` the two bytes at a place of the packet.
pub(crate) const fn load_two_bytes(place: i32) -> Instruction {
    instruction(0x28, 0, 0, 0, place)
}

/// `r0 =` the two bytes at a place after that in a register.
pub(crate) const fn load_two_bytes_after(register: u8, place: i32) -> Instruction {
    instruction(0x48, 0, register, 0, place)
}

/// `r0 =` the four bytes at a place of the packet.
pub(crate) const fn load_four_bytes(place: i32) -> Instruction {
    instruction(0x20, 0, 0, 0, place)
}

/// Skips so many instructions.
pub(crate) const fn skip(count: i16) -> Instruction {
    instruction(0x05, 0, 0, count, 0)
}

/// Skips so many instructions if `register == immediate`.
pub(crate) const fn skip_if(register: u8, immediate: i32, count: i16) -> Instruction {
    instruction(0x15, register, 0, count, immediate)
}

/// Skips so many instructions if `register != immediate`.
pub(crate) const fn skip_unless(register: u8, immediate: i32, count: i16) -> Instruction {
    instruction(0x55, register, 0, count, immediate)
}

/// Returns r0.
pub(crate) const EXIT: Instruction = instruction(0x95, 0, 0, 0, 0);

/// `to += from`
pub(crate) const fn add(to: u8, from: u8) -> Instruction {
    instruction(0x0f, to, from, 0, 0)
}

/// `to += immediate`
pub(crate) const fn add_immediate(to: u8, immediate: i32) -> Instruction {
    instruction(0x07, to, 0, 0, immediate)
}

/// `to |= from`
pub(crate) const fn or(to: u8, from: u8) -> Instruction {
    instruction(0x4f, to, from, 0, 0)
}

/// `to ^= from`
pub(crate) const fn xor(to: u8, from: u8) -> Instruction {
    instruction(0xaf, to, from, 0, 0)
}

/// `to ^= immediate`
pub(crate) const fn xor_immediate(to: u8, immediate: i32) -> Instruction {
    instruction(0xa7, to, 0, 0, immediate)
}

/// `to = to_be(to)`, of the lower 32 bits.
pub(crate) const fn to_be_32(to: u8) -> Instruction {
    instruction(0xdc, to, 0, 0, 32)
}

/// `to = to_le(to)`
pub(crate) const fn to_le_64(to: u8) -> Instruction {
    instruction(0xd4, to, 0, 0, 64)
}

/// `to =` the 32 bits at an offset from an address.
pub(crate) const fn load_32(to: u8, address: u8, offset: i16) -> Instruction {
    instruction(0x61, to, address, offset, 0)
}

/// `to =` the 64 bits at an offset from an address.
pub(crate) const fn load_64(to: u8, address: u8, offset: i16) -> Instruction {
    instruction(0x79, to, address, offset, 0)
}

/// The 32 bits at an offset from an address `= from`.
pub(crate) const fn store_32(address: u8, offset: i16, from: u8) -> Instruction {
    instruction(0x63, address, from, offset, 0)
}

/// The 64 bits at an offset from an address `= from`.
pub(crate) const fn store_64(address: u8, offset: i16, from: u8) -> Instruction {
    instruction(0x7b, address, from, offset, 0)
}

/// Calls a helper of the kernel: r0 is its result; r1 to r5, its arguments, are undefined then.
pub(crate) const fn call(helper: i32) -> Instruction {
    instruction(0x85, 0, 0, 0, helper)
}

/// Skips so many instructions if `a == b`.
pub(crate) const fn skip_if_same(a: u8, b: u8, count: i16) -> Instruction {
    instruction(0x1d, a, b, count, 0)
}

/// Skips so many instructions if `a < b`, without signs.
pub(crate) const fn skip_if_below(a: u8, b: u8, count: i16) -> Instruction {
    instruction(0xad, a, b, count, 0)
}

/// `to =` a map, as helpers take it.
pub(crate) fn load_map(to: u8, map: &Map) -> [Instruction; 2] {
    const PSEUDO_MAP_FD: u8 = 1;
    let descriptor = map.0.as_raw_fd();
    [instruction(0x18, to, PSEUDO_MAP_FD, 0, descriptor), instruction(0, 0, 0, 0, 0)]
}

pub(crate) const R0: u8 = 0;
pub(crate) const R1: u8 = 1;
pub(crate) const R2: u8 = 2;
pub(crate) const R3: u8 = 3;
pub(crate) const R4: u8 = 4;
pub(crate) const R5: u8 = 5;
pub(crate) const R6: u8 = 6;
pub(crate) const R7: u8 = 7;
pub(crate) const R8: u8 = 8;
pub(crate) const R9: u8 = 9;
/// The end of the stack.
pub(crate) const R10: u8 = 10;

/// Commands of bpf(2).
mod command {
    use std::ffi::c_int;

    pub(super) const MAP_CREATE: c_int = 0;
    pub(super) const MAP_UPDATE: c_int = 2;
    pub(super) const MAP_DELETE: c_int = 3;
    pub(super) const PROG_LOAD: c_int = 5;
}

/// `BPF_PROG_TYPE_SOCKET_FILTER`.
const SOCKET_FILTER: u32 = 1;

/// The beginning of `union bpf_attr` for a program; all else is 0.
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

/// A program that reads packets, loaded into the kernel.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

impl Program {
    /// `what` it is for, in an error.
    pub(crate) fn load(instructions: &[Instruction], what: &str) -> Result<Program, Error> {
        let attributes = Load {
            kind: SOCKET_FILTER,
            instructions: instructions.len() as u32,
            first: instructions.as_ptr() as u64,
            license: c"Apache-2.0".as_ptr() as u64,
            log: [0; 2],
            kernel: 0,
            flags: 0,
        };
        #[expect(unsafe_code, reason = "what the attributes point to lives until the call returns")]
        let loaded = unsafe { bpf(command::PROG_LOAD, &attributes) };
        let descriptor = loaded.doing(|| format!("loading the BPF program for {what}"))?;
        #[expect(unsafe_code, reason = "the kernel has just opened it for this")]
        Ok(Program(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The same for a map.
#[repr(C)]
struct Create {
    kind: u32,
    key: u32,
    value: u32,
    most: u32,
    flags: u32,
}

/// The same for an element of one.
#[repr(C)]
struct Element {
    map: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A hash table that programs share with this process.
#[derive(Debug)]
pub(crate) struct Map(OwnedFd);

impl Map {
    /// One with at most so many keys of 32 bits, whose values have so many bytes.
    pub(crate) fn new(most: u32, value: u32) -> Result<Map, Error> {
        const HASH: u32 = 1;
        let attributes = Create { kind: HASH, key: 4, value, most, flags: 0 };
        #[expect(unsafe_code, reason = "the attributes point to nothing")]
        let created = unsafe { bpf(command::MAP_CREATE, &attributes) };
        let descriptor = created.doing(|| "making a BPF map".to_owned())?;
        #[expect(unsafe_code, reason = "the kernel has just opened it for this")]
        Ok(Map(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Sets the value of a key: as many bytes as the values of this map have.
    pub(crate) fn insert(&self, key: [u8; 4], value: &[u8]) -> Result<(), Error> {
        let element = self.element(&key, value.as_ptr() as u64);
        #[expect(unsafe_code, reason = "key and value live until the call returns")]
        let done = unsafe { bpf(command::MAP_UPDATE, &element) };
        done.map(drop).doing(|| "writing to a BPF map".to_owned())
    }

    /// Removes a key that is there.
    pub(crate) fn remove(&self, key: [u8; 4]) -> Result<(), Error> {
        let element = self.element(&key, 0);
        #[expect(unsafe_code, reason = "the key lives until the call returns")]
        let done = unsafe { bpf(command::MAP_DELETE, &element) };
        done.map(drop).doing(|| "removing from a BPF map".to_owned())
    }

    fn element(&self, key: &[u8; 4], value: u64) -> Element {
        Element { map: self.0.as_raw_fd() as u32, key: key.as_ptr() as u64, value, flags: 0 }
    }
}

/// bpf(2). What the attributes point to must be as the command expects it.
#[expect(unsafe_code, reason = "no crate that needs neither clang nor libelf has this call")]
pub(crate) unsafe fn bpf<T>(command: c_int, attributes: &T) -> Result<RawFd, Errno> {
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
