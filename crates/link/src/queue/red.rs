//! Random early detection.

use base::{Duration, Random};

/// Random early detection (Floyd and Jacobson 1993; RFC 2309 recommends it): as the average queue
/// grows from `min` to `max`, more and more of the packets that arrive are dropped, or marked.
///
/// The average is an exponential one over arrivals; if the queue was empty, it decays as if small
/// packets had arrived meanwhile. Drops keep their distance from each other: from one to the next
/// it is uniform. The queue is measured in packets, the one in transmission included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Packets; with a shorter average queue nothing is dropped.
    pub min: f64,
    /// Packets, more than `min`.
    pub max: f64,
    /// The drop probability as the average queue reaches `max`, 0 to 1.
    pub max_probability: f64,
    /// The weight of a new sample in the average, 0 to 1.
    pub weight: f64,
    /// Bytes in a packet on average, from which follows how many could have been transmitted while
    /// the queue was empty.
    pub mean_packet: u32,
    /// From `max` to twice `max` the drop probability grows on to 1, instead of being 1 from `max`
    /// on (Floyd 2000).
    pub gentle: bool,
    /// Between two drops there are at least 1 / p packets, and at most twice as many; otherwise it
    /// is up to 1 / p from the first packet on. As `wait_` in ns-2.
    pub wait: bool,
    /// ECN-capable packets are marked (RFC 3168 §5) where others are dropped at random; where all
    /// are dropped, they are, too (§7).
    pub ecn: bool,
}

impl Default for Red {
    /// 5 to 15 packets, up to a tenth, gentle, without marks.
    fn default() -> Red {
        Red {
            min: 5.0,
            max: 15.0,
            max_probability: 0.1,
            weight: 0.002,
            mean_packet: 500,
            gentle: true,
            wait: false,
            ecn: false,
        }
    }
}

/// The decision about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Accept,
    Mark,
    Drop,
}

/// The state of the queue when a packet arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    /// Packets in the queue.
    pub(crate) queue: usize,
    /// For how long it has been empty, if it is.
    pub(crate) idle: Duration,
    /// How long a packet of mean size takes.
    pub(crate) mean_time: Duration,
    /// There is room for it.
    pub(crate) room: bool,
    /// It may be marked.
    pub(crate) capable: bool,
}

/// The average queue and what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Average {
    red: Red,
    average: f64,
    /// Packets since the last drop; `None` as long as the average is small.
    count: Option<u64>,
    random: Random,
}

impl Average {
    pub(crate) fn new(red: Red, random: Random) -> Average {
        Average { red, average: 0.0, count: None, random }
    }

    /// Bytes in a packet of mean size.
    pub(crate) fn mean_packet(&self) -> u32 {
        self.red.mean_packet
    }

    /// A packet arrives.
    pub(crate) fn choose(&mut self, meeting: &Meeting) -> Choice {
        self.update(meeting);
        if !meeting.room {
            self.count = Some(0);
            return Choice::Drop;
        }
        let Some(probability) = self.probability() else {
            self.count = None;
            return Choice::Accept;
        };
        if probability >= 1.0 {
            self.count = Some(0);
            return Choice::Drop;
        }
        let count = self.count.map_or(0, |count| count + 1);
        if self.random.uniform() > self.spread(probability, count) {
            self.count = Some(count);
            return Choice::Accept;
        }
        self.count = Some(0);
        if self.red.ecn && meeting.capable { Choice::Mark } else { Choice::Drop }
    }

    fn update(&mut self, meeting: &Meeting) {
        let weight = self.red.weight;
        if meeting.queue > 0 {
            self.average += weight * (meeting.queue as f64 - self.average);
        } else if meeting.mean_time > Duration::ZERO {
            let packets = meeting.idle.as_nanos() as f64 / meeting.mean_time.as_nanos() as f64;
            self.average *= libm::pow(1.0 - weight, packets);
        } else {
            self.average = 0.0;
        }
    }

    /// The drop probability that the average asks for; `None` if it is small.
    fn probability(&self) -> Option<f64> {
        let Red { min, max, max_probability, gentle, .. } = self.red;
        if self.average < min {
            None
        } else if self.average < max {
            Some(max_probability * (self.average - min) / (max - min))
        } else if gentle && self.average < 2.0 * max {
            Some(max_probability + (1.0 - max_probability) * (self.average - max) / max)
        } else {
            Some(1.0)
        }
    }

    /// The probability for this packet, so that the distance between drops is uniform.
    fn spread(&self, probability: f64, count: u64) -> f64 {
        let past = count as f64 * probability;
        let longest = if self.red.wait { 2.0 } else { 1.0 };
        if past < longest - 1.0 {
            0.0
        } else if past < longest {
            probability / (longest - past)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    const FULL: Meeting = Meeting {
        queue: 0,
        idle: Duration::ZERO,
        mean_time: Duration::from_millis(1),
        room: true,
        capable: false,
    };

    fn average(red: Red) -> Average {
        Average::new(red, Seed(2).stream("red"))
    }

    /// The distances between the packets that are not accepted, of 100,000 that find this queue.
    fn distances(red: Red, queue: usize) -> Vec<u64> {
        // The average is the queue itself.
        let mut average = average(Red { weight: 1.0, ..red });
        let mut distances = Vec::new();
        let mut distance = 0;
        for _ in 0..100_000 {
            distance += 1;
            if average.choose(&Meeting { queue, ..FULL }) != Choice::Accept {
                distances.push(distance);
                distance = 0;
            }
        }
        distances
    }

    fn mean(distances: &[u64]) -> f64 {
        distances.iter().sum::<u64>() as f64 / distances.len() as f64
    }

    #[test]
    fn the_average_follows_the_queue_as_in_the_paper() {
        let mut average = average(Red { min: 1e9, max: 2e9, ..Red::default() });
        // Section 6.1: from 0, L arrivals that raise the queue by one each give
        // L + 1 + ((1 - w)^(L + 1) - 1) / w.
        for queue in 1..=50 {
            average.choose(&Meeting { queue, ..FULL });
        }
        let expected = 51.0 + (libm::pow(0.998, 51.0) - 1.0) / 0.002;
        assert!((average.average - expected).abs() < 1e-9, "{}", average.average);
        // 100 ms without a packet are 100 packets of 1 ms.
        let before = average.average;
        average.choose(&Meeting { idle: Duration::from_millis(100), ..FULL });
        assert!((average.average - before * libm::pow(0.998, 100.0)).abs() < 1e-9);
    }

    #[test]
    fn the_drop_probability_grows_with_the_average() {
        let at = |value: f64, gentle: bool| {
            let mut average = average(Red { max_probability: 0.2, gentle, ..Red::default() });
            average.average = value;
            average.probability()
        };
        assert_eq!(at(4.9, true), None);
        assert_eq!(at(5.0, true), Some(0.0));
        assert_eq!(at(10.0, true), Some(0.1));
        assert_eq!(at(15.0, false), Some(1.0));
        assert_eq!(at(15.0, true), Some(0.2));
        assert_eq!(at(20.0, true), Some(0.2 + 0.8 * 5.0 / 15.0));
        assert_eq!(at(30.0, true), Some(1.0));
    }

    #[test]
    fn the_distance_between_drops_is_uniform_up_to_the_inverse_of_the_probability() {
        // p = 0.1 (10 - 5) / 10 = 1/20. After a drop the count goes on from 1: 1 to 19 packets.
        let distances = distances(Red::default(), 10);
        assert!((mean(&distances[1..]) - 10.0).abs() < 0.2, "{}", mean(&distances[1..]));
        assert!(distances.iter().all(|&distance| distance <= 20));
        let short = distances.iter().filter(|&&distance| distance <= 5).count() as f64;
        assert!((short / distances.len() as f64 - 5.0 / 19.0).abs() < 0.02);
    }

    #[test]
    fn with_wait_it_is_between_once_and_twice_that() {
        let distances = distances(Red { wait: true, ..Red::default() }, 10);
        assert!((mean(&distances[1..]) - 29.5).abs() < 0.4, "{}", mean(&distances[1..]));
        assert_eq!(distances.iter().min(), Some(&20));
    }

    #[test]
    fn capable_packets_are_marked_unless_everything_is_dropped() {
        let red = Red { weight: 1.0, max_probability: 1.0, ecn: true, ..Red::default() };
        let choices = |queue, capable| {
            let mut average = average(red);
            let choose = |_| average.choose(&Meeting { queue, capable, ..FULL });
            (0..1000).map(choose).filter(|&choice| choice != Choice::Accept).collect::<Vec<_>>()
        };
        let marks = choices(10, true);
        assert!(!marks.is_empty() && marks.iter().all(|&choice| choice == Choice::Mark));
        assert!(choices(10, false).iter().all(|&choice| choice == Choice::Drop));
        assert_eq!(choices(30, true), [Choice::Drop; 1000]);
    }

    #[test]
    fn a_full_queue_drops_whatever_the_average_is() {
        let mut average = average(Red::default());
        assert_eq!(average.choose(&Meeting { room: false, ..FULL }), Choice::Drop);
    }
}
