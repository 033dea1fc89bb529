//! Hints at the connections of segments, by which most are found without a look-up in the table.

use wire::Ports;

/// The connections of the last segments, by their ports. They are to be verified: segments of
/// several connections may share a hint.
pub(super) struct Hints(Vec<u32>);

impl Hints {
    /// With so many, even a few dozen connections seldom share one.
    const FEWEST: usize = 1024;
    /// Hints for each connection, if there are more; a power of two.
    const PER_CONNECTION: usize = 4;
    /// As many as the ports of segments tell apart.
    const MOST: usize = 1 << 18;

    pub(super) fn new() -> Hints {
        Hints(vec![0; Hints::FEWEST])
    }

    /// The number of the connection that a segment probably is for.
    #[inline]
    pub(super) fn get(&self, ports: Ports) -> u32 {
        self.0[self.place(ports)]
    }

    /// Notes which connection a segment is for.
    pub(super) fn set(&mut self, ports: Ports, id: u32) {
        let wanted = Hints::PER_CONNECTION * id as usize;
        if self.0.len() < wanted && self.0.len() < Hints::MOST {
            *self = Hints(vec![0; wanted.next_power_of_two().min(Hints::MOST)]);
        }
        let place = self.place(ports);
        self.0[place] = id;
    }

    /// Different connections of a host mostly have different ones.
    #[inline]
    fn place(&self, ports: Ports) -> usize {
        let sum = usize::from(ports.source()) + 2 * usize::from(ports.destination());
        sum & (self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_every_connection_of_thousands_has_a_hint_of_its_own() {
        let ports = |id: u32| Ports::new(5000 + id as u16, (40_503 * id) as u16);
        let mut hints = Hints::new();
        for _ in 0..2 {
            (0..5000).for_each(|id| hints.set(ports(id), id));
        }
        let right = (0..5000).filter(|&id| hints.get(ports(id)) == id).count();
        assert!(right > 4000, "{right} of 5000");
    }
}
