//! The options of a TCP header (RFC 9293 §3.2).
//!
//! They are laid out as Linux lays them out: MSS, SACK permitted, timestamps, window scale, SACK
//! blocks, each aligned to four bytes by no-operations in front; changes of connectivity, the echo
//! of a corruption and options of unknown kinds come last. If that exceeds the 40 bytes that a
//! header has for options, they are packed tightly, so that whatever was parsed can be written
//! again.
//!
//! What is in a header twice counts the last time, as in Linux. An option of an impossible length
//! is an error (RFC 9293 MUST-7 asks not to crash, and suggests to give the connection up).

use crate::ip::{u16_at, u32_at};
use crate::{
    ConnectivityChange, ConnectivityOption, CorruptionEcho, EmitError, Header, ParseError,
    SackBlock, SackBlocks, SeqNumber, UnparsedOptions,
};
use serde::{Deserialize, Serialize};

/// Bytes that a header has for options.
pub(crate) const MOST: usize = 40;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// A timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Timestamps {
    /// TSval: the sender's timestamp clock.
    pub value: u32,
    /// TSecr: the latest timestamp of the receiver that the sender echoes.
    pub echo: u32,
}

/// The options of a TCP header. Those of unknown kinds are in [`crate::UnparsedOptions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    /// Maximum segment size, on a SYN (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale, on a SYN (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// SACK permitted, on a SYN (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// A change of connectivity (`koutsianas2007` §3.1).
    pub connectivity: ConnectivityOption,
    /// The echo of a corruption report.
    pub corrupted: Option<CorruptionEcho>,
}

impl Options {
    /// Bytes that a header has for options.
    pub const ROOM: usize = MOST;

    /// Bytes of the timestamps option, aligned.
    pub const TIMESTAMPS: usize = 12;

    /// Bytes in the header, padding included: a multiple of four.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len_with(0)
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.has_only_timestamps() & self.timestamps.is_none()
    }

    /// Whether there are none but, perhaps, timestamps.
    #[must_use]
    #[inline]
    pub fn has_only_timestamps(&self) -> bool {
        // One look at all of them: most segments have none.
        !(self.mss.is_some()
            | self.window_scale.is_some()
            | self.sack_permitted
            | !self.sack.is_empty()
            | self.connectivity.is_some()
            | self.corrupted.is_some())
    }

    /// Forgets all options.
    #[inline]
    pub fn clear(&mut self) {
        self.mss = None;
        self.window_scale = None;
        self.sack_permitted = false;
        self.timestamps = None;
        self.sack.clear();
        self.connectivity = ConnectivityOption::NONE;
        self.corrupted = None;
    }

    /// Bytes in the header together with `unknown` bytes of options of unknown kinds.
    #[inline]
    pub(crate) fn len_with(&self, unknown: usize) -> usize {
        let aligned = (self.aligned() + unknown).next_multiple_of(4);
        if aligned <= MOST { aligned } else { (self.tight() + unknown).next_multiple_of(4) }
    }

    /// Bytes with every option aligned.
    #[inline]
    fn aligned(&self) -> usize {
        let mut len = 0;
        if self.mss.is_some() {
            len += 4;
        }
        if self.timestamps.is_some() {
            // SACK permitted takes the place of two no-operations.
            len += Options::TIMESTAMPS;
        } else if self.sack_permitted {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4;
        }
        if !self.sack.is_empty() {
            len += 4 + 8 * self.sack.as_slice().len();
        }
        if let Some(change) = self.connectivity.get() {
            len += change.encoding.aligned();
        }
        if self.corrupted.is_some() {
            len += 1 + CorruptionEcho::LEN;
        }
        len
    }

    /// Bytes without any padding.
    #[cold]
    fn tight(&self) -> usize {
        let sack = self.sack.as_slice().len();
        4 * usize::from(self.mss.is_some())
            + 3 * usize::from(self.window_scale.is_some())
            + 2 * usize::from(self.sack_permitted)
            + 10 * usize::from(self.timestamps.is_some())
            + if sack > 0 { 2 + 8 * sack } else { 0 }
            + self.connectivity.get().map_or(0, |change| change.encoding.size())
            + CorruptionEcho::LEN * usize::from(self.corrupted.is_some())
    }

    /// Writes the options, and the bytes of `unknown` ones behind them.
    pub(crate) fn emit(&self, unknown: &[u8], out: &mut Vec<u8>) -> Result<(), EmitError> {
        let len = self.len_with(unknown.len());
        if len > MOST {
            return Err(EmitError::TooLong { header: Header::Tcp, found: len, most: MOST });
        }
        let end = out.len() + len;
        let aligned = self.aligned() + unknown.len() <= MOST;
        let pad = |out: &mut Vec<u8>, nops: usize| {
            if aligned {
                out.extend_from_slice(&[NOP; 3][..nops]);
            }
        };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            out.extend_from_slice(&[MSS, 4, high, low]);
        }
        if self.sack_permitted {
            pad(out, if self.timestamps.is_some() { 0 } else { 2 });
            out.extend_from_slice(&[SACK_PERMITTED, 2]);
        }
        if let Some(timestamps) = self.timestamps {
            pad(out, if self.sack_permitted { 0 } else { 2 });
            out.extend_from_slice(&[TIMESTAMPS, 10]);
            out.extend_from_slice(&timestamps.value.to_be_bytes());
            out.extend_from_slice(&timestamps.echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            pad(out, 1);
            out.extend_from_slice(&[WINDOW_SCALE, 3, shift]);
        }
        let blocks = self.sack.as_slice();
        if !blocks.is_empty() {
            pad(out, 2);
            out.extend_from_slice(&[SACK, 2 + 8 * blocks.len() as u8]);
            for block in blocks {
                out.extend_from_slice(&block.start.0.to_be_bytes());
                out.extend_from_slice(&block.end.0.to_be_bytes());
            }
        }
        if let Some(change) = self.connectivity.get() {
            pad(out, change.encoding.aligned() - change.encoding.size());
            change.emit(out);
        }
        if let Some(echo) = &self.corrupted {
            pad(out, 1);
            echo.emit(out);
        }
        out.extend_from_slice(unknown);
        out.resize(end, END);
        Ok(())
    }
}

/// Reads the options of a header.
pub(crate) fn parse(
    bytes: &[u8],
    options: &mut Options,
    unparsed: &mut UnparsedOptions,
) -> Result<(), ParseError> {
    let mut rest = bytes;
    while let [kind, after @ ..] = rest {
        match *kind {
            END => break,
            NOP => {
                rest = after;
                continue;
            }
            _ => {}
        }
        let (kind, len) = (*kind, after.first().copied().unwrap_or(0));
        let wrong =
            |expected| ParseError::OptionLength { header: Header::Tcp, kind, found: len, expected };
        if len < 2 || usize::from(len) > rest.len() {
            return Err(wrong("2 or more, within the header"));
        }
        let (option, behind) = rest.split_at(usize::from(len));
        rest = behind;
        match (kind, len) {
            (MSS, 4) => options.mss = Some(u16_at(option, 2)),
            (MSS, _) => return Err(wrong("4")),
            (WINDOW_SCALE, 3) => options.window_scale = Some(option[2]),
            (WINDOW_SCALE, _) => return Err(wrong("3")),
            (SACK_PERMITTED, 2) => options.sack_permitted = true,
            (SACK_PERMITTED, _) => return Err(wrong("2")),
            (TIMESTAMPS, 10) => {
                let (value, echo) = (u32_at(option, 2), u32_at(option, 6));
                options.timestamps = Some(Timestamps { value, echo });
            }
            (TIMESTAMPS, _) => return Err(wrong("10")),
            (SACK, 10 | 18 | 26 | 34) => {
                options.sack.clear();
                for at in (2..option.len()).step_by(8) {
                    let start = SeqNumber(u32_at(option, at));
                    options.sack.push(SackBlock { start, end: SeqNumber(u32_at(option, at + 4)) });
                }
            }
            (SACK, _) => return Err(wrong("10, 18, 26 or 34")),
            _ => {
                if let Some(echo) = CorruptionEcho::parse(option) {
                    options.corrupted = Some(echo);
                } else if let Some(change) = ConnectivityChange::parse(option) {
                    options.connectivity = change.into();
                } else {
                    unparsed.keep_tcp(option)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CopyId, Encoding, LocalStatus};

    const CLOCK: Option<Timestamps> = Some(Timestamps { value: 0x01020304, echo: 0x05060708 });

    fn sack(blocks: u32) -> SackBlocks {
        let mut result = SackBlocks::default();
        for n in 0..blocks {
            result.push(SackBlock { start: SeqNumber(n), end: SeqNumber(n + 1) });
        }
        result
    }

    /// The written bytes; they have the announced length and parse to the same options.
    fn written(options: Options, unknown: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        options.emit(unknown, &mut bytes).unwrap();
        assert_eq!(bytes.len(), options.len_with(unknown.len()));
        let (mut read, mut kept) = (Options::default(), UnparsedOptions::NONE);
        parse(&bytes, &mut read, &mut kept).unwrap();
        assert_eq!((read, kept.tcp_options()), (options, unknown));
        bytes
    }

    #[test]
    fn a_syn_is_laid_out_as_by_linux() {
        let syn = Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: CLOCK,
            ..Options::default()
        };
        let bytes = [2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 3, 7];
        assert_eq!(written(syn, &[]), bytes);
        let without_clock = Options { timestamps: None, ..syn };
        assert_eq!(written(without_clock, &[]), [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7]);
        let without_sack = Options { sack_permitted: false, ..syn };
        assert_eq!(written(without_sack, &[])[4..8], [1, 1, 8, 10]);
    }

    #[test]
    fn an_acknowledgment_is_laid_out_as_by_linux() {
        assert_eq!(written(Options::default(), &[]), []);
        let clock = Options { timestamps: CLOCK, ..Options::default() };
        assert_eq!(written(clock, &[]), [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
        let holes = Options { sack: sack(1), ..Options::default() };
        assert_eq!(written(holes, &[]), [1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 1]);
        let both = Options { sack: sack(3), ..clock };
        let bytes = written(both, &[]);
        assert_eq!((bytes.len(), &bytes[12..16]), (40, &[1, 1, 5, 26][..]));
        assert_eq!(Options { sack: sack(4), ..Options::default() }.len(), 36);
    }

    #[test]
    fn an_echo_of_a_corruption_follows_what_all_know() {
        let copy = CopyId(0x0a0b0c0d);
        let echo = CorruptionEcho { seq: SeqNumber(0x01020304), copy, len: 536, alone: true };
        let options = Options { corrupted: Some(echo), ..Options::default() };
        let bytes = [1, 253, 15, 0xfe, 0x7e, 1, 2, 3, 4, 10, 11, 12, 13, 2, 24, 1];
        assert_eq!(written(options, &[]), bytes);
        assert_eq!(written(options, &[34, 2])[16..], [34, 2, 0, 0]);
        // Beside it there is room for two blocks, with timestamps for one.
        assert_eq!(written(Options { sack: sack(2), ..options }, &[]).len(), 36);
        assert_eq!(written(Options { sack: sack(1), timestamps: CLOCK, ..options }, &[]).len(), 40);
        for too_many in [
            Options { sack: sack(3), ..options },
            Options { sack: sack(2), timestamps: CLOCK, ..options },
        ] {
            assert!(too_many.len() > Options::ROOM);
        }
    }

    #[test]
    fn a_change_of_connectivity_takes_eight_bytes_and_in_the_reports_form_four() {
        let change = ConnectivityChange {
            c: true,
            ec: false,
            cs: LocalStatus::EchoAck,
            ecs: true,
            encoding: Encoding::Experimental,
        };
        let options = Options { connectivity: change.into(), ..Options::default() };
        assert_eq!(written(options, &[]), [1, 1, 1, 253, 5, 0xcc, 0x1d, 0b1_0101]);
        let draft = ConnectivityChange { encoding: Encoding::Draft, ..change };
        let options = Options { connectivity: draft.into(), ..Options::default() };
        assert_eq!(written(options, &[]), [1, 200, 3, 0b1_0101]);
        // Beside it and timestamps there is room for two blocks.
        assert_eq!(written(Options { sack: sack(2), timestamps: CLOCK, ..options }, &[]).len(), 36);
    }

    #[test]
    fn reserved_bits_of_a_change_of_connectivity_are_ignored_and_no_fourth_status_is_known() {
        let read = |bits: u8| {
            let (mut read, mut kept) = (Options::default(), UnparsedOptions::NONE);
            parse(&[253, 5, 0xcc, 0x1d, bits], &mut read, &mut kept).unwrap();
            read.connectivity.get()
        };
        assert_eq!(read(0b1110_0010).map(|change| change.cs), Some(LocalStatus::New));
        assert_eq!(read(0b0000_0110), None);
    }

    #[test]
    fn what_is_not_quite_an_echo_is_kept_as_it_is() {
        let echo = [253, 15, 0xfe, 0x7e, 1, 2, 3, 4, 10, 11, 12, 13, 2, 24, 1];
        let (mut longer, mut other, mut flags) = ([0; 16], echo, echo);
        longer[..15].copy_from_slice(&echo);
        (longer[1], other[3], flags[14]) = (16, 0x7f, 2);
        for option in [&longer[..], &other, &flags, &[253, 2], &[254, 4, 0xfe, 0x7e]] {
            let (mut read, mut kept) = (Options::default(), UnparsedOptions::NONE);
            parse(option, &mut read, &mut kept).unwrap();
            assert_eq!((read.corrupted, kept.tcp_options()), (None, option));
        }
    }

    #[test]
    fn what_does_not_fit_aligned_is_packed() {
        let full =
            Options { mss: Some(536), timestamps: CLOCK, sack: sack(3), ..Options::default() };
        assert_eq!(written(full, &[]).len(), 40);
        let mut bytes = Vec::new();
        let over = Options { window_scale: Some(1), ..full };
        let most = EmitError::TooLong { header: Header::Tcp, found: 44, most: 40 };
        assert_eq!(over.emit(&[], &mut bytes), Err(most));
    }

    #[test]
    fn unknown_options_come_last_and_are_padded() {
        let options = Options { mss: Some(1), ..Options::default() };
        let fast_open = [34, 6, 9, 9, 9, 9];
        assert_eq!(written(options, &fast_open), [2, 4, 0, 1, 34, 6, 9, 9, 9, 9, 0, 0]);
        let mut longest = [7; 40];
        longest[..2].copy_from_slice(&[253, 40]);
        assert_eq!(written(Options::default(), &longest), longest);
    }

    #[test]
    fn the_last_of_several_counts() {
        let (mut read, mut kept) = (Options::default(), UnparsedOptions::NONE);
        parse(&[3, 3, 1, 3, 3, 2, 0, 255], &mut read, &mut kept).unwrap();
        assert_eq!(read, Options { window_scale: Some(2), ..Options::default() });
    }

    #[test]
    fn impossible_lengths_are_named() {
        let error = |bytes: &[u8]| {
            let (mut read, mut kept) = (Options::default(), UnparsedOptions::NONE);
            parse(bytes, &mut read, &mut kept).unwrap_err().to_string()
        };
        assert_eq!(error(&[2, 3, 5]), "TCP: expected option 2 to have length 4, found 3");
        assert_eq!(
            error(&[5, 2, 1, 1]),
            "TCP: expected option 5 to have length 10, 18, 26 or 34, found 2"
        );
        for bytes in [&[1, 99][..], &[99, 0], &[99, 1], &[99, 5, 0, 0]] {
            assert!(error(bytes).contains("2 or more, within the header"), "{bytes:?}");
        }
        for bytes in [&[3, 4, 1, 1][..], &[4, 3, 1], &[8, 8, 0, 0, 0, 0, 0, 0]] {
            assert!(error(bytes).contains("to have length"), "{bytes:?}");
        }
    }
}
