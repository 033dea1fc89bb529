//! `TCP_INFO`, as in Linux's `linux/tcp.h`.

use crate::socket::Kind;
use crate::stack::Stack;
use base::Duration;
use rustix::io::Errno;
use std::os::fd::RawFd;
use tcp::{FastOpenResult, RecoveryState, State};

/// Bytes of the structure in Linux 6.18. Fields that the stack does not have are 0.
const LENGTH: usize = 280;

/// The offsets of the fields that the stack has.
mod at {
    pub(super) const STATE: usize = 0;
    pub(super) const CA_STATE: usize = 1;
    pub(super) const OPTIONS: usize = 5;
    pub(super) const WSCALE: usize = 6;
    pub(super) const RTO: usize = 8;
    pub(super) const SND_MSS: usize = 16;
    pub(super) const UNACKED: usize = 24;
    pub(super) const SACKED: usize = 28;
    pub(super) const LOST: usize = 32;
    pub(super) const RETRANS: usize = 36;
    pub(super) const LAST_DATA_RECV: usize = 52;
    pub(super) const PMTU: usize = 60;
    pub(super) const RTT: usize = 68;
    pub(super) const SND_SSTHRESH: usize = 76;
    pub(super) const SND_CWND: usize = 80;
    pub(super) const ADVMSS: usize = 84;
    pub(super) const REORDERING: usize = 88;
    pub(super) const TOTAL_RETRANS: usize = 100;
    pub(super) const BYTES_ACKED: usize = 120;
    pub(super) const BYTES_RECEIVED: usize = 128;
    pub(super) const SEGS_OUT: usize = 136;
    pub(super) const NOTSENT_BYTES: usize = 144;
    pub(super) const MIN_RTT: usize = 148;
    pub(super) const DELIVERED: usize = 192;
    pub(super) const DELIVERED_CE: usize = 196;
    pub(super) const DSACK_DUPS: usize = 216;
    pub(super) const SND_WND: usize = 228;
    pub(super) const RCV_WND: usize = 232;
    pub(super) const RECEIVED_CE: usize = 248;
    pub(super) const DELIVERED_CE_BYTES: usize = 260;
    pub(super) const RECEIVED_CE_BYTES: usize = 272;
}

/// Writes fields at their places.
struct Fields([u8; LENGTH]);

impl Fields {
    fn byte(&mut self, at: usize, value: u8) {
        self.0[at] = value;
    }

    /// Saturating: no count of a script comes near.
    fn word(&mut self, at: usize, value: u64) {
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    fn long(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
}

fn micros(time: Duration) -> u64 {
    time.as_nanos() / 1000
}

fn state(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => CLOSED,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

const CLOSED: u8 = 7;
const LISTEN: u8 = 10;

fn congestion_avoidance_state(state: RecoveryState) -> u8 {
    match state {
        RecoveryState::Open => 0,
        RecoveryState::Disorder => 1,
        RecoveryState::Reduced => 2,
        RecoveryState::Recovery => 3,
        RecoveryState::Loss => 4,
    }
}

impl Stack {
    /// The bytes of `struct tcp_info`.
    pub(crate) fn tcp_info(&self, fd: RawFd) -> Result<Vec<u8>, Errno> {
        let mut fields = Fields([0; LENGTH]);
        match self.find(fd)?.kind {
            Kind::Idle | Kind::Deferred(_) => fields.byte(at::STATE, CLOSED),
            Kind::Listening { .. } => fields.byte(at::STATE, LISTEN),
            Kind::Connected(_) => self.connection_info(fd, &mut fields)?,
        }
        Ok(fields.0.to_vec())
    }

    fn connection_info(&self, fd: RawFd, fields: &mut Fields) -> Result<(), Errno> {
        let place = self.place(fd)?;
        let connection = self.connection(place)?;
        let (info, vitals) = (connection.info(), connection.vitals());
        let statistics = connection.statistics();
        let segments = |bytes: u64| bytes.div_ceil(u64::from(info.mss.max(1)));
        fields.byte(at::STATE, state(connection.state()));
        fields.byte(at::CA_STATE, congestion_avoidance_state(info.recovery_state));
        let scaled = info.window_shifts.is_some();
        let host = self.host_ref(place.is_ipv6);
        let endpoint = host.application(place.id);
        // Data that went with our SYN, or came with the peer's.
        let accepted = connection.fast_open_result() == Some(FastOpenResult::Accepted);
        let syn_data = accepted || endpoint.is_some_and(|endpoint| endpoint.had_syn_data);
        let ecn = info.ecn || info.accurate_ecn;
        let options = [info.timestamps, info.sack, scaled, ecn, false, syn_data].map(u8::from);
        fields.byte(at::OPTIONS, options.iter().enumerate().map(|(bit, on)| on << bit).sum());
        let (send, receive) = info.window_shifts.unwrap_or((0, 0));
        fields.byte(at::WSCALE, send | receive << 4);
        fields.word(at::RTO, micros(vitals.rto));
        fields.word(at::SND_MSS, u64::from(info.mss));
        let outstanding = connection.outstanding_segments();
        fields.word(at::UNACKED, outstanding.all);
        fields.word(at::SACKED, outstanding.sacked);
        fields.word(at::LOST, outstanding.lost);
        fields.word(at::RETRANS, outstanding.retransmitted);
        let data_at = endpoint.and_then(|endpoint| endpoint.data_at);
        fields.word(at::LAST_DATA_RECV, data_at.map_or(0, |at| micros(self.now.since(at)) / 1000));
        fields.word(at::PMTU, u64::from(self.setup.mtu));
        fields.word(at::RTT, vitals.srtt.map_or(0, micros));
        fields.word(
            at::SND_SSTHRESH,
            if vitals.ssthresh == u64::MAX { 0x7fff_ffff } else { segments(vitals.ssthresh) },
        );
        fields.word(at::SND_CWND, vitals.window / u64::from(info.mss.max(1)));
        fields.word(at::ADVMSS, u64::from(info.offered_mss));
        fields.word(at::REORDERING, 3);
        fields.word(at::TOTAL_RETRANS, statistics.retransmissions);
        fields.long(at::BYTES_ACKED, info.written - connection.unacknowledged());
        fields.long(at::BYTES_RECEIVED, info.received);
        fields.word(at::SEGS_OUT, statistics.segments);
        fields.word(at::NOTSENT_BYTES, info.written - info.sent);
        fields.word(at::MIN_RTT, info.min_rtt.map_or(u64::MAX, micros));
        // Linux counts the SYN as a segment, but not beside data that went with it.
        let syn = u64::from(connection.is_confirmed());
        let alone = if accepted { 0 } else { syn };
        fields.word(at::DELIVERED, alone + segments(connection.delivered().saturating_sub(syn)));
        fields.word(at::DELIVERED_CE, info.delivered_marks.packets);
        fields.word(at::RECEIVED_CE, info.received_marks.packets);
        fields.word(at::DELIVERED_CE_BYTES, info.delivered_marks.bytes);
        fields.word(at::RECEIVED_CE_BYTES, info.received_marks.bytes);
        fields.word(at::DSACK_DUPS, statistics.dsacks);
        fields.word(at::SND_WND, info.peer_window);
        fields.word(at::RCV_WND, info.own_window);
        Ok(())
    }
}
