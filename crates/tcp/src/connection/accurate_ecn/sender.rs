//! The sending half of accurate ECN: how many marks an acknowledgment reports.

use super::receiver::index;
use crate::congestion::CeMarks;
use serde::{Deserialize, Serialize};
use wire::{Ecn, EcnCounters};

/// What the peer has reported of our packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Reported {
    /// s.cep: packets with CE, from 5 on.
    packets: u64,
    /// s.ceb, and the marked bytes that were estimated where options were missing.
    bytes: u64,
    /// The counters of the last option: ECT(1), ECT(0), CE.
    counters: [u32; 3],
    /// `packets` and `bytes` when it came, and our segments delivered since.
    at_option: CeMarks,
    delivered_since_option: u64,
    /// The latest feedback.
    place: Option<Place>,
    /// Segments that an acknowledgment delivers, on average, in sixteenths.
    usual_delivery: u64,
    /// The first option has come, or is known to be missing.
    knows_options: bool,
    /// The path clears the options: they are ignored (RFC 9768 §3.2.3.2.4).
    ignores_options: bool,
    /// Marks of the handshake are in `packets`.
    of_handshake: u64,
}

/// Where a segment stands in the order in which the peer has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The end of its payload.
    pub(super) start: u64,
    pub(super) ack: u64,
    pub(super) stamp: Option<u32>,
}

impl Place {
    /// Whether this segment was sent after the other, as far as their numbers show.
    fn is_after(&self, other: &Place) -> bool {
        let later = |(now, then): (u32, u32)| (now.wrapping_sub(then) as i32) > 0;
        self.ack > other.ack
            || self.start > other.start
            || self.stamp.zip(other.stamp).is_some_and(later)
    }
}

/// Our segments, and their bytes, that an acknowledgment newly delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NewlyDelivered {
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
}

/// The feedback in a segment.
pub(in crate::connection) struct Feedback {
    pub(super) place: Place,
    pub(super) ace: u8,
    pub(super) counters: Option<EcnCounters>,
    pub(super) delivered: NewlyDelivered,
    pub(super) mss: u32,
    /// We send ECT.
    pub(super) capable: bool,
}

/// What a segment's feedback means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// The marks that are new.
    pub(super) marks: CeMarks,
    /// Option and field contradict each other: one of them is mangled (RFC 9768 §3.2.3.2.5).
    pub(super) contradicts: bool,
}

impl Report {
    /// Whether there is no mark and nothing unusual.
    pub(super) fn is_plain(&self) -> bool {
        self.marks.packets == 0 && !self.contradicts
    }
}

const FIRST_PACKET: u64 = 5;
/// Values of the ACE field.
const MODULUS: u64 = 8;

impl Default for Reported {
    fn default() -> Reported {
        Reported {
            packets: FIRST_PACKET,
            bytes: 0,
            counters: [1, 1, 0],
            at_option: CeMarks { packets: FIRST_PACKET, bytes: 0 },
            delivered_since_option: 0,
            place: None,
            usual_delivery: 0,
            knows_options: false,
            ignores_options: false,
            of_handshake: 0,
        }
    }
}

impl Reported {
    /// Marks that the peer has reported.
    pub(super) fn marks(&self) -> CeMarks {
        CeMarks { packets: self.packets - FIRST_PACKET - self.of_handshake, bytes: self.bytes }
    }

    /// Whether no feedback has come yet.
    pub(super) fn is_first(&self) -> bool {
        self.place.is_none()
    }

    /// Begins with the acknowledgment of our SYN-ACK, which says whether that was `marked` (RFC 9768,
    /// table 4).
    pub(super) fn begin(&mut self, marked: bool) {
        self.of_handshake = u64::from(marked);
        self.packets = FIRST_PACKET + self.of_handshake;
        self.at_option.packets = self.packets;
    }

    /// Checks the option of the SYN-ACK, or of its acknowledgment: a first counter of zero was cleared
    /// on the path (RFC 9768 §3.2.3.2.4).
    pub(super) fn on_first_counters(&mut self, counters: Option<&EcnCounters>) {
        if core::mem::replace(&mut self.knows_options, true) {
            return;
        }
        let cleared = |codepoint| counters.and_then(|c| c.get(codepoint)) == Some(0);
        self.ignores_options = cleared(Ecn::Capable) || cleared(Ecn::Capable1);
    }

    /// Whether feedback surely reports no mark: [`Reported::on_feedback`] will say so.
    #[inline]
    pub(super) fn is_plain(&self, feedback: &Feedback) -> bool {
        let unambiguous = match &feedback.counters {
            Some(counters) if !self.ignores_options => {
                !self.is_older(counters)
                    && counters.get(Ecn::Congested).is_none_or(|marked| marked == self.counters[2])
            }
            _ => feedback.delivered.segments < MODULUS,
        };
        unambiguous && field_of(feedback.ace, self.packets) == 0
    }

    /// Processes the feedback of a segment; `None` if another has superseded it.
    pub(super) fn on_feedback(&mut self, feedback: &Feedback) -> Option<Report> {
        let Feedback { place, delivered, .. } = *feedback;
        let is_news = self.place.is_none_or(|last| place.is_after(&last));
        if !is_news && delivered.segments == 0 {
            return None;
        }
        let last = self.place.unwrap_or(place);
        self.place = Some(Place {
            start: last.start.max(place.start),
            ack: last.ack.max(place.ack),
            stamp: place.stamp,
        });
        self.delivered_since_option += delivered.segments;
        let usable = feedback.counters.filter(|_| !self.ignores_options);
        let report = match usable.and_then(|counters| self.newly_marked_bytes(&counters)) {
            Some(bytes) => self.on_option(feedback, bytes),
            None => self.without_option(feedback),
        };
        if delivered.segments > 0 {
            self.usual_delivery += delivered.segments;
            self.usual_delivery -= self.usual_delivery / 16;
        }
        Some(report)
    }

    /// Whether an option is older than the last.
    #[inline]
    fn is_older(&self, option: &EcnCounters) -> bool {
        option.iter().any(|(codepoint, counter)| {
            let known = index(codepoint).map_or(counter, |index| self.counters[index]);
            counter.wrapping_sub(known) % EcnCounters::MODULUS >= EcnCounters::MODULUS / 2
        })
    }

    /// The marked bytes since the last option; `None` if it is older than that.
    fn newly_marked_bytes(&mut self, option: &EcnCounters) -> Option<u64> {
        if self.is_older(option) {
            return None;
        }
        let before = self.counters[2];
        for (codepoint, counter) in option.iter() {
            if let Some(index) = index(codepoint) {
                self.counters[index] = counter;
            }
        }
        // A counter that is left out has not changed (§3.2.3).
        Some(u64::from(self.counters[2].wrapping_sub(before) % EcnCounters::MODULUS))
    }

    /// With an option the bytes are known. The packets are the fewest that the field allows and that can
    /// carry them: with full-sized segments, exactly those that were marked.
    //
    // RFC 9768 §A.2.2 is an example; it takes the safer number from the number of segments delivered,
    // and may count eight too few or too many.
    fn on_option(&mut self, feedback: &Feedback, bytes: u64) -> Report {
        let CeMarks { packets: base, bytes: known } = self.at_option;
        let counted = self.packets - base;
        let least = bytes.div_ceil(u64::from(feedback.mss.max(1)));
        let total = at_least(least.max(counted), field_of(feedback.ace, base));
        let contradicts =
            bytes > 0 && field_of(feedback.ace, base) == 0 && self.delivered_since_option < MODULUS;
        let packets = if contradicts { counted } else { total };
        let marks = CeMarks {
            packets: packets - counted,
            bytes: (known + bytes).saturating_sub(self.bytes),
        };
        self.packets = base + packets;
        self.bytes = known + bytes;
        self.at_option = CeMarks { packets: self.packets, bytes: self.bytes };
        self.delivered_since_option = 0;
        Report { marks, contradicts }
    }

    /// Without an option, more segments delivered than the field can count may all have been marked: the
    /// safest likely case (RFC 9768 §3.2.2.5.2, §A.2.1). It is unlikely where acknowledgments of so many
    /// segments are usual, for then no others were lost.
    fn without_option(&mut self, feedback: &Feedback) -> Report {
        let NewlyDelivered { segments, bytes } = feedback.delivered;
        let least = field_of(feedback.ace, self.packets);
        let usual = self.usual_delivery / 16 >= MODULUS;
        let packets = if segments < MODULUS || segments < least || usual || !feedback.capable {
            least
        } else {
            segments - (segments - least) % MODULUS
        };
        // §A.3; a control packet has no payload.
        let marks = CeMarks { packets, bytes: (packets * u64::from(feedback.mss)).min(bytes) };
        self.packets += marks.packets;
        self.bytes += marks.bytes;
        Report { marks, contradicts: false }
    }
}

/// The least increase of a count of packets that gives this field.
fn field_of(ace: u8, packets: u64) -> u64 {
    u64::from(ace).wrapping_sub(packets) % MODULUS
}

/// The least number of at least `least` that is `remainder` modulo eight.
fn at_least(least: u64, remainder: u64) -> u64 {
    least + remainder.wrapping_sub(least) % MODULUS
}
