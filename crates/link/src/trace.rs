//! Recorded capacity: links that transmit at the times of a trace.

use base::{Duration, Rate, Time};
use std::sync::Arc;
use thiserror::Error;

/// When a link may transmit: the trace format of mahimahi (Netravali et al. 2015), in which every
/// line is an opportunity to deliver 1500 bytes, as a number of milliseconds from the start. After
/// the last line the trace begins again.
///
/// A packet may take several opportunities, and packets may share one. Opportunities without a
/// waiting packet are lost: a packet is served by the opportunities after its arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// From the start of a pass, the last of which is its length.
    opportunities: Arc<[Duration]>,
    period: Duration,
}

/// Why a text is no trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeliveryTraceError {
    /// A line is no number.
    #[error("line {line}: {found:?}: expected a whole number of milliseconds")]
    Number {
        /// From 1.
        line: usize,
        /// What it says, or how that begins.
        found: String,
    },
    /// A line is earlier than the one before.
    #[error("line {line}: {found} after {last}: expected milliseconds that do not decrease")]
    Order {
        /// From 1.
        line: usize,
        /// Milliseconds.
        found: u64,
        /// Those of the line before.
        last: u64,
    },
    /// A line's time is out of range.
    #[error("line {line}: {found}: expected at most {most} milliseconds")]
    Late {
        /// From 1.
        line: usize,
        /// Milliseconds.
        found: u64,
        /// What is allowed.
        most: u64,
    },
    /// There is no line, or no time passes until the last.
    #[error("a trace that takes no time: expected a last line of at least 1 millisecond")]
    Short,
}

impl DeliveryTrace {
    /// Bytes in an opportunity.
    pub const OPPORTUNITY: u32 = 1500;

    /// Some 30 years.
    const MOST_MILLIS: u64 = 1_000_000_000_000;

    /// Reads a trace. White space around a number is ignored.
    ///
    /// # Errors
    /// Names the first line that makes no sense.
    pub fn parse(text: &str) -> Result<DeliveryTrace, DeliveryTraceError> {
        let mut opportunities = Vec::new();
        let mut last = 0;
        for (index, text) in text.trim_ascii_end().lines().enumerate() {
            let line = index + 1;
            let number = text.trim_ascii();
            let Ok(found) = number.parse() else {
                let found = number.chars().take(20).collect();
                return Err(DeliveryTraceError::Number { line, found });
            };
            if found < last {
                return Err(DeliveryTraceError::Order { line, found, last });
            }
            if found > Self::MOST_MILLIS {
                let most = Self::MOST_MILLIS;
                return Err(DeliveryTraceError::Late { line, found, most });
            }
            opportunities.push(Duration::from_millis(found));
            last = found;
        }
        if last == 0 {
            return Err(DeliveryTraceError::Short);
        }
        let period = Duration::from_millis(last);
        Ok(DeliveryTrace { opportunities: opportunities.into(), period })
    }

    /// After how long it begins again.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Its mean rate.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let bits = 8 * u128::from(Self::OPPORTUNITY) * self.opportunities.len() as u128;
        let bps = bits * 1_000_000_000 / u128::from(self.period.as_nanos());
        Rate::from_bps(bps.clamp(1, u128::from(u64::MAX)) as u64).unwrap_or(Rate::MIN)
    }

    fn per_pass(&self) -> u64 {
        self.opportunities.len() as u64
    }

    /// When an opportunity is, by its number over all passes.
    fn time(&self, number: u64) -> Time {
        let (pass, index) = (number / self.per_pass(), number % self.per_pass());
        Time::ZERO + self.period * pass + self.opportunities[index as usize]
    }

    /// The number of the first opportunity after `now`.
    fn first_after(&self, now: Time) -> u64 {
        let (pass, place) =
            (now.as_nanos() / self.period.as_nanos(), now.as_nanos() % self.period.as_nanos());
        let passed = self.opportunities.partition_point(|at| at.as_nanos() <= place);
        pass * self.per_pass() + passed as u64
    }
}

/// A link's position in a trace.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    pub(crate) trace: DeliveryTrace,
    /// The next that is not begun; `None` while nothing waits.
    next: Option<u64>,
    /// Bytes left of the one before.
    left: u64,
}

impl Opportunities {
    pub(crate) fn new(trace: DeliveryTrace) -> Opportunities {
        Opportunities { trace, next: None, left: 0 }
    }

    /// When `len` bytes have been transmitted that begin at `now`: at the end of the transmission
    /// before, if there is no [`Opportunities::pause`] between.
    pub(crate) fn transmit(&mut self, now: Time, len: u32) -> Time {
        const SIZE: u64 = DeliveryTrace::OPPORTUNITY as u64;
        let next = self.next.unwrap_or_else(|| self.trace.first_after(now));
        let more = u64::from(len).saturating_sub(self.left).div_ceil(SIZE);
        self.left = self.left + more * SIZE - u64::from(len);
        let next = next + more;
        self.next = Some(next);
        self.trace.time(next.saturating_sub(1))
    }

    /// Discards the rest of the opportunity: no packet waits, or none can be sent.
    pub(crate) fn pause(&mut self) {
        self.next = None;
        self.left = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(millis: &[u64]) -> String {
        millis.iter().map(|millis| format!("{millis}\n")).collect()
    }

    #[test]
    fn a_trace_is_a_line_an_opportunity_and_begins_again() {
        let trace = DeliveryTrace::parse("0\n3\n 3\r\n10").unwrap();
        let times: Vec<_> = (0..9).map(|n| trace.time(n).as_nanos() / 1_000_000).collect();
        assert_eq!(times, [0, 3, 3, 10, 10, 13, 13, 20, 20]);
        // 6000 bytes in 10 ms.
        assert_eq!(trace.mean_rate(), Rate::from_bps(4_800_000).unwrap());
        assert_eq!(trace.period(), Duration::from_millis(10));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_line_value_and_expectation() {
        let error = |text: &str| DeliveryTrace::parse(text).unwrap_err().to_string();
        assert_eq!(error("1\n2 ms\n"), "line 2: \"2 ms\": expected a whole number of milliseconds");
        assert_eq!(error("1\n\n2\n"), "line 2: \"\": expected a whole number of milliseconds");
        assert_eq!(error("-1"), "line 1: \"-1\": expected a whole number of milliseconds");
        assert_eq!(
            error("5\n4\n"),
            "line 2: 4 after 5: expected milliseconds that do not decrease"
        );
        assert_eq!(
            error("9999999999999"),
            "line 1: 9999999999999: expected at most 1000000000000 milliseconds"
        );
        let short = "a trace that takes no time: expected a last line of at least 1 millisecond";
        assert_eq!(error(""), short);
        assert_eq!(error("0\n0\n"), short);
        assert!(error(&"x".repeat(1000)).len() < 100);
    }

    #[test]
    fn packets_share_opportunities_and_large_ones_take_several() {
        let trace = DeliveryTrace::parse("1\n1\n5\n").unwrap();
        let mut opportunities = Opportunities::new(trace);
        let mut now = Time::ZERO;
        let mut sent = |len| {
            now = opportunities.transmit(now, len);
            now.as_nanos() / 1_000_000
        };
        assert_eq!([sent(1000), sent(1000), sent(1000)], [1, 1, 1]);
        assert_eq!([sent(1), sent(1499), sent(4000)], [5, 5, 10]);
    }

    #[test]
    fn what_is_not_used_is_gone() {
        let trace = DeliveryTrace::parse("1\n1\n5\n").unwrap();
        let mut opportunities = Opportunities::new(trace);
        let first = opportunities.transmit(Time::ZERO, 100);
        opportunities.pause();
        // Neither the rest of the first opportunity nor the second, at the same time.
        assert_eq!(opportunities.transmit(first, 100), Time::ZERO + Duration::from_millis(5));
    }

    /// When packets of these sizes, each as it comes, have been sent: every opportunity one after
    /// the other, as mahimahi does.
    fn plainly(trace: &DeliveryTrace, packets: &[(Time, u32)]) -> Vec<Time> {
        let mut sent = Vec::new();
        let mut left = packets.first().map_or(0, |packet| packet.1);
        for number in 0.. {
            let time = trace.time(number);
            let mut room = DeliveryTrace::OPPORTUNITY;
            while sent.len() < packets.len() && packets[sent.len()].0 < time && room > 0 {
                let used = room.min(left);
                room -= used;
                left -= used;
                if left == 0 {
                    sent.push(time);
                    left = packets.get(sent.len()).map_or(0, |packet| packet.1);
                }
            }
            if sent.len() == packets.len() {
                break;
            }
        }
        sent
    }

    proptest! {
        #[test]
        fn no_text_does_harm(text in "\\PC*") {
            let _ = DeliveryTrace::parse(&text);
        }

        #[test]
        fn no_lines_do_harm(lines in prop::collection::vec("[ \t]*-?[0-9]{0,20}[ \r]*", 0..20)) {
            if let Ok(trace) = DeliveryTrace::parse(&lines.join("\n")) {
                prop_assert!(trace.first_after(trace.time(5)) > 5);
                prop_assert!(trace.mean_rate() >= Rate::MIN);
            }
        }

        #[test]
        fn numbers_are_read_as_they_were_written(
            mut millis in prop::collection::vec(0u64..10_000, 1..50),
        ) {
            millis.sort_unstable();
            *millis.last_mut().unwrap() += 1;
            let trace = DeliveryTrace::parse(&lines(&millis)).unwrap();
            let read: Vec<_> =
                trace.opportunities.iter().map(|at| at.as_nanos() / 1_000_000).collect();
            prop_assert_eq!(read, millis);
        }

        #[test]
        fn packets_leave_as_if_every_opportunity_were_looked_at(
            mut millis in prop::collection::vec(0u64..50, 1..10),
            packets in prop::collection::vec((0u64..20_000_000, 1u32..4000), 1..30),
        ) {
            millis.sort_unstable();
            *millis.last_mut().unwrap() += 1;
            let trace = DeliveryTrace::parse(&lines(&millis)).unwrap();
            let mut at = Time::ZERO;
            let packets: Vec<_> = packets.into_iter().map(|(gap, len)| {
                at += Duration::from_nanos(gap);
                (at, len)
            }).collect();
            let mut opportunities = Opportunities::new(trace.clone());
            let mut free_at = Time::ZERO;
            let mut sent = Vec::new();
            for &(at, len) in &packets {
                if at >= free_at {
                    opportunities.pause();
                }
                free_at = opportunities.transmit(at.max(free_at), len);
                sent.push(free_at);
            }
            prop_assert_eq!(sent, plainly(&trace, &packets));
        }
    }
}
