//! Traffic that does not respond: datagrams, sent whatever becomes of them.

use base::{Duration, Quantiles, Random, Rate, Time};
use core::net::IpAddr;
use wire::{Ip, Payload, Udp};

/// Who sends datagrams where, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DatagramFlow {
    /// Names the payload.
    pub stream: u32,
    /// The address that they go to.
    pub remote: IpAddr,
    /// Their destination port.
    pub remote_port: u16,
    /// Their source port.
    pub local_port: u16,
    /// Bytes of payload in each, at most what UDP can carry.
    pub payload: u32,
    /// Bits per second, IP and UDP headers included; while it is on, if it is not always.
    pub rate: Rate,
    /// When the first is sent.
    pub start: Time,
    /// From when on none is sent.
    pub stop: Time,
    /// Bursts and silence between them; `None` for a constant bit rate.
    pub bursts: Option<OnOff>,
}

/// Exponential on-off traffic: bursts and silence take turns, and a burst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// The mean length of a burst. The number of datagrams in it is geometric, at least 1.
    pub on: Duration,
    /// The mean silence, exponential.
    pub off: Duration,
}

/// A source of datagrams.
#[derive(Clone, Debug)]
pub struct DatagramSource {
    flow: DatagramFlow,
    /// From one datagram to the next.
    interval: Duration,
    /// Datagrams that are left of the burst.
    left: u64,
    next: Time,
    random: Random,
    /// Datagrams sent.
    pub sent: u64,
}

/// When the datagrams of a constant rate are due: by their place in the stream, so that none carries
/// a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departures {
    /// The first.
    start: Time,
    /// From one to the next.
    interval: Duration,
    /// Bytes of payload in each.
    payload: u32,
}

impl Departures {
    /// When the datagram with this payload is due.
    fn of(self, payload: Payload) -> Time {
        self.start + self.interval * (payload.offset / u64::from(self.payload.max(1)))
    }
}

/// What has arrived at a port.
#[derive(Clone, Debug, Default)]
pub struct DatagramSink {
    /// Datagrams, those that came twice included.
    pub received: u64,
    /// Bytes of payload in them.
    pub bytes: u64,
    /// Datagrams that came behind one that was sent later, or again.
    pub late: u64,
    /// The byte behind the last so far.
    end: u64,
    /// Their delays, if it is known when each is due.
    delays: Option<Box<Delays>>,
}

/// How long datagrams took.
#[derive(Clone, Debug)]
struct Delays {
    departures: Departures,
    /// Nanoseconds.
    times: Quantiles,
}

impl DatagramSource {
    /// A source with its own stream of randomness.
    #[must_use]
    pub fn new(flow: DatagramFlow, random: Random) -> DatagramSource {
        let headers = Ip::new(flow.remote, flow.remote).len() + Udp::HEADER;
        let interval = flow.rate.time_for(u64::from(flow.payload) + headers as u64);
        let interval = interval.max(Duration::from_nanos(1));
        let next = if flow.start < flow.stop { flow.start } else { Time::NEVER };
        let mut source = DatagramSource { flow, interval, left: 0, next, random, sent: 0 };
        source.begin_burst();
        source
    }

    /// Whose it is.
    #[must_use]
    pub fn flow(&self) -> &DatagramFlow {
        &self.flow
    }

    fn begin_burst(&mut self) {
        self.left = self.flow.bursts.map_or(u64::MAX, |bursts| {
            let mean = bursts.on.as_nanos() as f64 / self.interval.as_nanos() as f64;
            self.random.geometric(1.0 / mean).saturating_add(1)
        });
    }

    /// A burst is over.
    #[cold]
    fn pause(&mut self) {
        if let Some(bursts) = self.flow.bursts {
            self.next += self.random.exponential_span(bursts.off);
            self.begin_burst();
        }
    }

    /// When datagrams are due; `None` for bursts, which come at random.
    #[must_use]
    pub fn departures(&self) -> Option<Departures> {
        let DatagramFlow { start, payload, bursts, .. } = self.flow;
        let departures = Departures { start, interval: self.interval, payload };
        bursts.is_none().then_some(departures)
    }

    /// When the next is to be sent; [`Time::NEVER`] after the last.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// What the next datagram carries, which is sent now; the time of the one after it is then
    /// another.
    #[inline]
    pub fn take(&mut self) -> Payload {
        let DatagramFlow { stream, payload: len, .. } = self.flow;
        let payload = Payload { stream, offset: self.sent * u64::from(len), len };
        self.sent += 1;
        self.left -= 1;
        self.next += self.interval;
        if self.left == 0 {
            self.pause();
        }
        if self.next >= self.flow.stop {
            self.next = Time::NEVER;
        }
        payload
    }
}

impl DatagramSink {
    #[inline]
    pub(crate) fn take(&mut self, payload: Payload) {
        self.received += 1;
        self.bytes += u64::from(payload.len);
        self.late += u64::from(payload.offset < self.end);
        self.end = self.end.max(payload.end());
    }

    /// What it receives is due at these times.
    pub(crate) fn expect(&mut self, departures: Departures) {
        self.delays = Some(Box::new(Delays { departures, times: Quantiles::default() }));
    }

    /// Measures how long a datagram took.
    pub(crate) fn measure(&mut self, now: Time, payload: Payload) {
        if let Some(Delays { departures, times }) = self.delays.as_deref_mut() {
            times.record(now.since(departures.of(payload)).as_nanos());
        }
    }

    /// One-way delays of the datagrams of a constant rate, nanoseconds: none unless they were
    /// measured ([`crate::Settings::measure_latency`]).
    #[must_use]
    pub fn delays(&self) -> Option<&Quantiles> {
        self.delays.as_deref().map(|delays| &delays.times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    /// 210-byte packets at 1 Mbit/s: one every 1.68 ms.
    fn flow(bursts: Option<OnOff>) -> DatagramFlow {
        DatagramFlow {
            stream: 3,
            remote: IpAddr::from([10, 0, 0, 2]),
            remote_port: 9,
            local_port: 1009,
            payload: 182,
            rate: Rate::from_bps(1_000_000).unwrap(),
            start: Time::ZERO + Duration::from_millis(40),
            stop: Time::NEVER,
            bursts,
        }
    }

    /// When datagrams are sent, and which bytes are in them.
    fn datagrams(flow: DatagramFlow, until: Duration) -> Vec<(Time, Payload)> {
        let mut source = DatagramSource::new(flow, Seed(1).stream("datagrams"));
        let mut datagrams = Vec::new();
        while source.next() <= Time::ZERO + until {
            datagrams.push((source.next(), source.take()));
        }
        datagrams
    }

    #[test]
    fn a_constant_bit_rate_sends_at_equal_distances() {
        let datagrams = datagrams(flow(None), Duration::from_secs(1));
        for (number, (time, payload)) in datagrams.iter().enumerate() {
            let offset = 1_680_000 * number as u64;
            assert_eq!(*time, Time::from_nanos(40_000_000 + offset));
            assert_eq!(*payload, Payload { stream: 3, offset: 182 * number as u64, len: 182 });
        }
        assert_eq!(datagrams.len(), 572);
    }

    #[test]
    fn a_flow_ends_when_it_is_to_stop() {
        let stop = Time::ZERO + Duration::from_millis(50);
        let datagrams = datagrams(DatagramFlow { stop, ..flow(None) }, Duration::from_secs(9));
        assert_eq!(datagrams.len(), 6);
        let never = DatagramFlow { stop: Time::ZERO, ..flow(None) };
        assert!(self::datagrams(never, Duration::from_secs(9)).is_empty());
    }

    #[test]
    fn on_off_traffic_has_its_mean_rate_bursts_and_silence() {
        let [on, off] = [500, 1500].map(Duration::from_millis);
        let seconds = 20_000;
        let datagrams = datagrams(flow(Some(OnOff { on, off })), Duration::from_secs(seconds));
        let rate = datagrams.len() as f64 * 210.0 * 8.0 / seconds as f64;
        assert!((rate - 250_000.0).abs() < 7_500.0, "{rate}");
        let gaps = datagrams.windows(2).map(|pair| pair[1].0.since(pair[0].0).as_secs_f64());
        let silences: Vec<_> = gaps.filter(|&gap| gap > 0.00169).collect();
        let silence = silences.iter().sum::<f64>() / silences.len() as f64;
        assert!((silence - 1.5).abs() < 0.05, "{silence}");
        let burst = datagrams.len() as f64 / silences.len() as f64 * 0.00168;
        assert!((burst - 0.5).abs() < 0.015, "{burst}");
    }

    #[test]
    fn delays_are_those_since_each_datagram_was_due() {
        let mut source = DatagramSource::new(flow(None), Seed(1).stream("datagrams"));
        let mut sink = DatagramSink::default();
        sink.expect(source.departures().unwrap());
        let sent: Vec<_> = (0..3).map(|_| (source.next(), source.take())).collect();
        for (number, delay) in [(0, 5), (2, 5), (1, 30), (1, 40)] {
            let (time, payload) = sent[number];
            sink.measure(time + Duration::from_millis(delay), payload);
        }
        // To a thousandth.
        let millis = |q| (sink.delays().unwrap().quantile(q).unwrap() + 500_000) / 1_000_000;
        assert_eq!((millis(0.5), millis(0.75), millis(1.0)), (5, 30, 40));
        let bursts = OnOff { on: Duration::from_secs(1), off: Duration::from_secs(1) };
        let source = DatagramSource::new(flow(Some(bursts)), Seed(1).stream("datagrams"));
        assert_eq!(source.departures(), None);
    }

    #[test]
    fn a_sink_counts_late_and_duplicate_datagrams() {
        let mut sink = DatagramSink::default();
        for offset in [0, 100, 300, 200, 300, 400] {
            sink.take(Payload { stream: 0, offset, len: 100 });
        }
        assert_eq!((sink.received, sink.bytes, sink.late), (6, 600, 2));
    }
}
