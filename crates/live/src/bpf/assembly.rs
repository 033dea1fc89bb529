//! Programs whose jumps have labels.

use super::{Instruction, skip, skip_if, skip_if_below, skip_unless};

/// A program that is being written.
#[derive(Default)]
pub(crate) struct Assembly {
    written: Vec<Instruction>,
    /// The places of jumps whose labels are still to come.
    jumps: Vec<(usize, &'static str)>,
}

impl Assembly {
    /// Does these.
    pub(crate) fn run(&mut self, instructions: impl AsRef<[Instruction]>) {
        self.written.extend_from_slice(instructions.as_ref());
    }

    /// Goes on at the label, which is later.
    pub(crate) fn go(&mut self, label: &'static str) {
        self.jump(skip(0), label);
    }

    /// Goes on at the label if `register == immediate`.
    pub(crate) fn go_if(&mut self, register: u8, immediate: i32, label: &'static str) {
        self.jump(skip_if(register, immediate, 0), label);
    }

    /// Goes on at the label if `register != immediate`.
    pub(crate) fn go_unless(&mut self, register: u8, immediate: i32, label: &'static str) {
        self.jump(skip_unless(register, immediate, 0), label);
    }

    /// Goes on at the label if `a < b`, without signs.
    pub(crate) fn go_if_below(&mut self, a: u8, b: u8, label: &'static str) {
        self.jump(skip_if_below(a, b, 0), label);
    }

    fn jump(&mut self, instruction: Instruction, label: &'static str) {
        self.jumps.push((self.written.len(), label));
        self.written.push(instruction);
    }

    /// The place of a label.
    pub(crate) fn label(&mut self, label: &'static str) {
        let here = self.written.len();
        for (place, _) in self.jumps.extract_if(.., |(_, to)| *to == label) {
            self.written[place].offset = (here - place - 1) as i16;
        }
    }

    /// The whole program.
    ///
    /// # Panics
    /// If a label is missing.
    pub(crate) fn finish(self) -> Vec<Instruction> {
        assert!(self.jumps.is_empty(), "no labels for {:?}", self.jumps);
        self.written
    }
}
