//! SipHash in BPF (Aumasson and Bernstein, 2012).

use super::{
    Instruction, R1, R2, R3, R4, R5, add, copy, or, shift_left, shift_right, xor, xor_immediate,
};

/// The registers of its state. r5 is undefined after any of its steps.
pub(crate) const V: [u8; 4] = [R1, R2, R3, R4];

/// The state before the first word (section 2.1).
pub(crate) fn state(key: [u64; 2]) -> [u64; 4] {
    let [first, second] = key;
    [
        first ^ 0x736f_6d65_7073_6575,
        second ^ 0x646f_7261_6e64_6f6d,
        first ^ 0x6c79_6765_6e65_7261,
        second ^ 0x7465_6462_7974_6573,
    ]
}

/// Takes a word of the message, which is in this register, with so many rounds (section 2.2). The last word has the length of the
/// message in its highest byte.
pub(crate) fn compress(word: u8, count: usize) -> Vec<Instruction> {
    let [v0, _, _, v3] = V;
    [[xor(v3, word)].as_slice(), &rounds(count), &[xor(v0, word)]].concat()
}

/// The hash, in the first register, with so many rounds (section 2.3).
pub(crate) fn finish(count: usize) -> Vec<Instruction> {
    let [v0, v1, v2, v3] = V;
    let joined = [xor(v0, v1), xor(v2, v3), xor(v0, v2)];
    [[xor_immediate(v2, 0xff)].as_slice(), &rounds(count), &joined].concat()
}

/// `register <<<= bits`
fn rotate_left(register: u8, bits: i32) -> [Instruction; 4] {
    [copy(R5, register), shift_left(R5, bits), shift_right(register, 64 - bits), or(register, R5)]
}

/// So many rounds (section 2.4).
fn rounds(count: usize) -> Vec<Instruction> {
    let [v0, v1, v2, v3] = V;
    // a += b; b <<<= bits; b ^= a.
    let mix = |a, b, bits| [[add(a, b)].as_slice(), &rotate_left(b, bits), &[xor(b, a)]].concat();
    let round = [
        mix(v0, v1, 13).as_slice(),
        &rotate_left(v0, 32),
        &mix(v2, v3, 16),
        &mix(v0, v3, 21),
        &mix(v2, v1, 17),
        &rotate_left(v2, 32),
    ]
    .concat();
    round.repeat(count)
}
