//! The resets of a gateway that ends are sent more than once: one may be lost on the hop, and an end that only receives
//! sends nothing that could be answered with another one.

use host::Context;
use wire::{Body, Flags, Packet};

/// The resets of a gateway that ends.
#[derive(Default)]
pub(crate) struct Ending {
    resets: Vec<Packet>,
    is_due: bool,
}

impl Ending {
    /// The resets that were sent are to be sent again.
    pub(crate) fn repeat(&mut self) {
        self.is_due = true;
    }

    /// Keeps the resets among the packets that were sent first, or sends them again.
    pub(crate) fn wake(&mut self, cx: &mut Context<'_>) {
        if self.is_due {
            self.is_due = false;
            self.resets.iter().for_each(|reset| cx.send(*reset));
        } else if self.resets.is_empty() {
            self.resets.extend(cx.sent().filter(is_reset));
        }
    }
}

fn is_reset(packet: &Packet) -> bool {
    matches!(&packet.body, Body::Tcp(segment) if segment.flags.contains(Flags::RST))
}
