//! Files of packets: pcapng (draft-ietf-opsawg-pcapng), little-endian on every machine.

use std::io::{self, Write};

/// A section of interfaces and their packets. All packets are whole, from the IP header on, and
/// times are in nanoseconds since 1970.
#[derive(Debug)]
pub struct Section<W> {
    file: W,
    /// The block that is being put together.
    block: Vec<u8>,
}

impl<W: Write> Section<W> {
    /// Starts a file, with a comment.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn start(file: W, comment: &str) -> io::Result<Section<W>> {
        let mut section = Section { file, block: Vec::new() };
        // Section Header Block (§4.1): byte order, version 1.0, a length that is left open.
        section.begin(0x0a0d_0d0a);
        section.u32(0x1a2b_3c4d);
        section.u16(1);
        section.u16(0);
        section.bytes(&[0xff; 8]);
        // opt_comment, shb_userappl
        section.option(1, comment.as_bytes());
        section.option(4, b"lasthop");
        section.end_options();
        section.end()?;
        Ok(section)
    }

    /// Adds an interface; they are counted from 0.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn interface(&mut self, name: &str) -> io::Result<()> {
        // Interface Description Block (§4.2): LINKTYPE_RAW, reserved, no limit of length.
        self.begin(1);
        self.u16(101);
        self.u16(0);
        self.u32(0);
        // if_name; if_tsresol: 10^-9 s
        self.option(2, name.as_bytes());
        self.option(9, &[9]);
        self.end_options();
        self.end()
    }

    /// Adds a packet of an interface.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn packet(&mut self, interface: u32, nanos: u64, bytes: &[u8]) -> io::Result<()> {
        let len = bytes.len() as u32;
        // Enhanced Packet Block (§4.3): the time's high half first; lengths captured and original.
        self.begin(6);
        self.u32(interface);
        self.u32((nanos >> 32) as u32);
        self.u32(nanos as u32);
        self.u32(len);
        self.u32(len);
        self.padded(bytes);
        self.end()
    }

    /// All that was added is in the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Starts a block: its type, and its length, which is not known yet (§3.1).
    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        self.u32(0);
    }

    /// Writes the block, with its length at both ends.
    fn end(&mut self) -> io::Result<()> {
        let len = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&len.to_le_bytes());
        self.u32(len);
        self.file.write_all(&self.block)
    }

    /// Adds an option (§3.5).
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(u16::MAX.into())];
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }

    /// opt_endofopt
    fn end_options(&mut self) {
        self.u32(0);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
    }
}
