//! Packets of a run in a pcapng file.

use crate::failure::RunError;
use crate::world::Built;
use base::Time;
use scenario::Scenario;
use sim::CapturePoint;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use wire::pcapng::Section;

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
    let writer = create(&capture.file, &format!("{}, seed {seed}", scenario.title), &points)
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

/// A file with these interfaces.
fn create(file: &Path, comment: &str, points: &Points) -> io::Result<Pcapng> {
    let mut section = Section::start(BufWriter::new(File::create(file)?), comment)?;
    for (_, name) in points {
        section.interface(name)?;
    }
    Ok(Pcapng(section))
}

/// A file being written.
struct Pcapng(Section<BufWriter<File>>);

impl sim::Capture for Pcapng {
    fn packet(&mut self, at: Time, point: usize, bytes: &[u8]) -> io::Result<()> {
        self.0.packet(point as u32, at.as_nanos(), bytes)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
