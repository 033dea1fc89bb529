//! A socket of their own for the datagrams of a channel's sessions, beside another one at the same port for all others, so
//! that a flood of others does not fill its queue.
//!
//! Both sockets are a group of `SO_REUSEPORT`, and a BPF program chooses the one with the number that it returns. The
//! program gets the payload of UDP. It finds there the index of a session, the number of the datagram, and a code, which is
//! the lower half of SipHash-2-4 over both: 4 bytes each from the third byte on, in network byte order.
//!
//! Datagrams that have left by one call arrive as one unit where no network card is between both ends, as between namespaces.
//! Of these the program sees the first. It has not seen the numbers of the others, so a copy of each passes once.

use crate::Error;
use crate::bpf::siphash::{self, V};
use crate::bpf::{
    EXIT, Instruction, Map, Program, R0, R1, R2, R3, R4, R5, R7, R8, R10, add, add_immediate, and,
    call, copy, load_32, load_64, load_map, set, shift_left, shift_right, skip_if, skip_if_below,
    skip_if_same, skip_unless, store_32, to_be_32, to_le_64,
};
use crate::error::Doing;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Chooses the second one of two sockets for the datagrams of sessions.
#[derive(Debug)]
pub struct SessionQueue {
    /// The sessions by index, for a program that checks codes. Without, one that only looks for the indices is replaced
    /// when they change.
    map: Option<Map>,
    /// The indices of the sessions.
    indices: Vec<u32>,
}

/// The place of the index.
const INDEX: i32 = 2;
/// Bytes of index, number and code.
const HEADER: i32 = 12;

/// The numbers that a program remembers of a session: for each remainder of the division by this, the highest.
const NUMBERS: usize = 8192;
/// Bytes of the state of SipHash, with which the value of a session begins.
const STATE: usize = 32;
/// Bytes of the value of a session: that state, and after it the numbers plus 1, 4 bytes each.
const VALUE: usize = STATE + 4 * NUMBERS;

impl SessionQueue {
    /// Sessions at a time.
    pub const MOST: usize = 8;

    /// Lets the kernel choose between two sockets at a port, of which this is one. The datagrams of a session are those
    /// with its index, a code that is right, and a number that was not there before.
    ///
    /// # Errors
    /// If the process may not: it needs CAP_BPF where `kernel.unprivileged_bpf_disabled` is not 0. If the kernel has no
    /// BPF.
    pub fn by_codes(socket: impl AsFd) -> Result<SessionQueue, Error> {
        let map = Map::new(SessionQueue::MOST as u32, VALUE as u32)?;
        let program = Program::load(&program(&map), "datagrams of sessions")?;
        let number = program.as_fd().as_raw_fd();
        attach(socket, libc::SO_ATTACH_REUSEPORT_EBPF, &number)?;
        Ok(SessionQueue { map: Some(map), indices: Vec::new() })
    }

    /// The same, by the index alone, which needs no rights. Replayed datagrams and forged ones with the index are taken
    /// for those of a session.
    #[must_use]
    pub const fn by_indices() -> SessionQueue {
        SessionQueue { map: None, indices: Vec::new() }
    }

    /// Whether codes are checked.
    #[must_use]
    pub const fn checks_codes(&self) -> bool {
        self.map.is_some()
    }

    /// Sets what sessions there are, by index, each with the key of its codes. `socket` is one of the two.
    ///
    /// # Errors
    /// If the kernel has no memory for them, there are more than [`SessionQueue::MOST`], or the socket is not one of two.
    pub fn set(
        &mut self,
        socket: impl AsFd,
        sessions: impl IntoIterator<Item = (u32, [u8; 16])>,
    ) -> Result<(), Error> {
        let before = std::mem::take(&mut self.indices);
        let sessions: Vec<_> = sessions.into_iter().collect();
        self.indices.extend(sessions.iter().map(|(index, _)| *index));
        let Some(map) = &self.map else { return attach_indices(socket, &self.indices) };
        for index in before.iter().filter(|index| !self.indices.contains(index)) {
            map.remove(index.to_be_bytes())?;
        }
        for (index, key) in sessions.iter().filter(|(index, _)| !before.contains(index)) {
            let mut value = [0; VALUE];
            let words = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|n| key[at + n])));
            for (place, word) in value.chunks_exact_mut(8).zip(siphash::state(words)) {
                place.copy_from_slice(&word.to_ne_bytes());
            }
            map.insert(index.to_be_bytes(), &value)?;
        }
        Ok(())
    }
}

/// Returns 1 for a datagram of a session that was not there before, and notes its number; else 0.
fn program(map: &Map) -> Vec<Instruction> {
    const SKB_LOAD_BYTES: i32 = 26;
    const MAP_LOOKUP: i32 = 1;
    // Index and number, a word of SipHash, are aligned as one on the stack, and the code is after them.
    const PLACE: i16 = -16;
    let [hash, ..] = V;
    [
        [
            set(R2, INDEX),
            copy(R3, R10),
            add_immediate(R3, PLACE.into()),
            set(R4, HEADER),
            call(SKB_LOAD_BYTES),
            // A datagram that is too short.
            skip_if(R0, 0, 2),
            set(R0, 0),
            EXIT,
        ]
        .as_slice(),
        // r7 = the value of the session.
        &load_map(R1, map),
        &[
            copy(R2, R10),
            add_immediate(R2, PLACE.into()),
            call(MAP_LOOKUP),
            skip_unless(R0, 0, 1),
            EXIT,
            copy(R7, R0),
        ],
        // The code.
        &[0, 1, 2, 3].map(|word| load_64(V[usize::from(word as u16)], R7, 8 * word)),
        &[load_64(R8, R10, PLACE), to_le_64(R8)],
        &siphash::compress(R8, 2),
        // The last word has no bytes of the message, and their count.
        &[set(R8, 8), shift_left(R8, 56)],
        &siphash::compress(R8, 2),
        &siphash::finish(4),
        &[
            shift_left(hash, 32),
            shift_right(hash, 32),
            load_32(R5, R10, PLACE + 8),
            to_be_32(R5),
            skip_if_same(hash, R5, 2),
            set(R0, 0),
            EXIT,
        ],
        // The number plus 1 is to be above what is noted in its place.
        &[
            load_32(R2, R10, PLACE + 4),
            to_be_32(R2),
            copy(R3, R2),
            and(R3, NUMBERS as i32 - 1),
            shift_left(R3, 2),
            copy(R4, R7),
            add(R4, R3),
            load_32(R5, R4, STATE as i16),
            add_immediate(R2, 1),
            set(R0, 0),
            skip_if_below(R5, R2, 1),
            EXIT,
            store_32(R4, STATE as i16, R2),
            set(R0, 1),
            EXIT,
        ],
    ]
    .concat()
}

/// Attaches a program of classic BPF that looks for the indices.
fn attach_indices(socket: impl AsFd, indices: &[u32]) -> Result<(), Error> {
    const LOAD_32: u16 = 0x20;
    const SKIP_IF: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let filter = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let left = (0..indices.len() as u8).rev();
    let mut filters = vec![filter(LOAD_32, 0, INDEX as u32)];
    filters.extend(indices.iter().zip(left).map(|(index, left)| filter(SKIP_IF, left + 1, *index)));
    filters.extend([filter(RETURN, 0, 0), filter(RETURN, 0, 1)]);
    let program = libc::sock_fprog { len: filters.len() as u16, filter: filters.as_mut_ptr() };
    attach(socket, libc::SO_ATTACH_REUSEPORT_CBPF, &program)
}

/// Sets an option that attaches a program.
fn attach<T>(socket: impl AsFd, option: libc::c_int, program: &T) -> Result<(), Error> {
    #[expect(
        unsafe_code,
        reason = "the kernel reads the value, and what it points to, during the call"
    )]
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(program).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    let done = if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    done.doing(|| "attaching a BPF program to sockets".to_owned())
}
