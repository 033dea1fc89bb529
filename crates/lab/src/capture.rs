//! Packets of a run in a pcapng file.

use crate::failure::RunError;
use crate::world::Built;
use base::Time;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::PcapNgBlock;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use scenario::Scenario;
use sim::CapturePoint;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The packets to capture, and their file.
///
/// The file is of the pcapng format: packets are whole, from the IP header on, at simulated
/// nanoseconds since 1970. Every direction of a link is an interface by its name (`a->b`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The file.
    pub file: PathBuf,
    /// Directions of links (`a->b`), whose packets are captured as they are sent, and nodes (`a`),
    /// of which all packets sent and received are captured. If empty, all links.
    pub at: Vec<String>,
}

/// Starts a capture.
pub(crate) fn start(
    capture: &Capture,
    scenario: &Scenario,
    seed: u64,
    built: &mut Built,
) -> Result<(), RunError> {
    let points = points(&capture.at, scenario, built)?;
    let writer =
        Pcapng::create(&capture.file, &format!("{}, seed {seed}", scenario.title), &points)
            .map_err(|error| failed(&capture.file, &error))?;
    built.world.capture(points.into_iter().map(|(point, _)| point).collect(), writer);
    Ok(())
}

/// Ends a capture.
pub(crate) fn finish(capture: &Capture, built: &mut Built) -> Result<(), RunError> {
    built.world.finish_capture().map_err(|error| failed(&capture.file, &error))
}

fn failed(file: &Path, error: &io::Error) -> RunError {
    RunError::Write { file: file.to_owned(), problem: error.to_string() }
}

/// Points with the names of their interfaces.
type Points = Vec<(CapturePoint, String)>;

fn points(at: &[String], scenario: &Scenario, built: &Built) -> Result<Points, RunError> {
    let directions = scenario.links.iter().zip(&built.links).flat_map(|(link, &(there, back))| {
        let [forward, backward] = scenario.directions(link);
        [(forward, there, link.from, link.to), (backward, back, link.to, link.from)]
    });
    let mut points = Points::new();
    let mut used = vec![false; at.len()];
    for (name, link, from, to) in directions {
        let mut wanted = |node: usize, name: Option<&str>| {
            let mut any = at.is_empty() && name.is_some();
            for (place, used) in at.iter().zip(&mut used) {
                let meant =
                    *place == scenario.nodes[node] || name.is_some_and(|name| name == place);
                *used |= meant;
                any |= meant;
            }
            any
        };
        if wanted(from, Some(&name)) {
            points.push((CapturePoint::Sent(link), name.clone()));
        }
        if wanted(to, None) {
            points.push((CapturePoint::Received(link), format!("{name} received")));
        }
    }
    match at.iter().zip(used).find(|(_, used)| !used) {
        Some((place, _)) => Err(RunError::NoSuchPlace { place: place.clone() }),
        None => Ok(points),
    }
}

/// A pcapng file being written.
struct Pcapng {
    writer: PcapNgWriter<BufWriter<File>>,
}

impl Pcapng {
    fn create(file: &Path, comment: &str, points: &Points) -> io::Result<Pcapng> {
        let section = SectionHeaderBlock {
            // The same bytes on every machine.
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::Comment(Cow::Owned(comment.to_owned())),
                SectionHeaderOption::UserApplication(Cow::Borrowed("lasthop")),
            ],
            ..SectionHeaderBlock::default()
        };
        let file = BufWriter::new(File::create(file)?);
        let mut writer = PcapNgWriter::with_section_header(file, section).map_err(io_error)?;
        for (_, name) in points {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                    // Nanoseconds.
                    InterfaceDescriptionOption::IfTsResol(9),
                ],
            };
            writer.write_block(&interface.into_block()).map_err(io_error)?;
        }
        Ok(Pcapng { writer })
    }
}

impl sim::Capture for Pcapng {
    fn packet(&mut self, at: Time, point: usize, bytes: &[u8]) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: point as u32,
            timestamp: Duration::from_nanos(at.as_nanos()),
            original_len: bytes.len() as u32,
            data: Cow::Borrowed(bytes),
            options: Vec::new(),
        };
        self.writer.write_block(&block.into_block()).map_err(io_error).map(|_| ())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
