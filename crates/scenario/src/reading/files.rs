//! Files that a scenario names.

use link::{Damage, DamagedPacket, DeliveryTrace};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The largest file that is read, bytes.
const LARGEST: u64 = 64 << 20;

/// The files that a scenario names, each read once for all points of a sweep.
#[derive(Debug)]
pub(crate) struct Files {
    /// The folder that names are relative to.
    folder: PathBuf,
    packets: Cache<Vec<DamagedPacket>>,
    deliveries: Cache<DeliveryTrace>,
}

/// The content of a file, or its problem.
type Content<T> = Result<Arc<T>, String>;
type Cache<T> = Mutex<BTreeMap<String, Content<T>>>;

impl Files {
    /// The files of the scenario in the file `scenario`.
    pub(crate) fn beside(scenario: &str) -> Files {
        let folder = Path::new(scenario).parent().unwrap_or(Path::new(""));
        Files { folder: folder.to_owned(), packets: Cache::default(), deliveries: Cache::default() }
    }

    /// The damaged packets of a trace. Each line is the number of a packet, from 0 and increasing,
    /// and optionally its damage; `#` begins a comment.
    pub(crate) fn damaged_packets(&self, name: &str) -> Content<Vec<DamagedPacket>> {
        self.cached(&self.packets, name, damaged_packets)
    }

    /// The transmission opportunities of a mahimahi trace.
    pub(crate) fn deliveries(&self, name: &str) -> Content<DeliveryTrace> {
        let parse = |text: &str| DeliveryTrace::parse(text).map_err(|error| error.to_string());
        self.cached(&self.deliveries, name, parse)
    }

    fn cached<T>(
        &self,
        cache: &Cache<T>,
        name: &str,
        parse: fn(&str) -> Result<T, String>,
    ) -> Content<T> {
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(content) = cache.get(name) {
            return content.clone();
        }
        let path = self.folder.join(name);
        let content = text(&path).and_then(|text| {
            parse(&text).map(Arc::new).map_err(|wrong| format!("`{}`, {wrong}", path.display()))
        });
        cache.insert(name.to_owned(), content.clone());
        content
    }
}

/// The text of a file.
fn text(path: &Path) -> Result<String, String> {
    let read = || {
        let mut bytes = Vec::new();
        // A device file has no end.
        File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let shown = path.display();
    let bytes = read().map_err(|error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => format!("there is no file `{shown}`"),
        kind => format!("cannot read `{shown}`: {kind}"),
    })?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("`{shown}` is too large: expected at most {} MiB", LARGEST >> 20));
    }
    String::from_utf8(bytes).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + sound.iter().filter(|byte| **byte == b'\n').count();
        format!("`{shown}` is not UTF-8: see line {line}")
    })
}

/// The lines of a text that are not empty, with their numbers from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let said = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    (1..).zip(said).filter(|(_, line)| !line.is_empty())
}

/// A line of a file, as a message quotes it.
fn quoted(line: &str) -> String {
    const LONGEST: usize = 40;
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}...`", &line[..end]),
        None => format!("`{line}`"),
    }
}

fn damaged_packets(text: &str) -> Result<Vec<DamagedPacket>, String> {
    let mut packets: Vec<DamagedPacket> = Vec::new();
    for (number, line) in lines(text) {
        let wrong = |expected: &str| format!("line {number}, {}: {expected}", quoted(line));
        let mut words = line.split_whitespace();
        let index = words.next().and_then(|word| word.parse().ok());
        let damage = match words.next() {
            None | Some("loss") => Some(Damage::Loss),
            Some("corruption") => Some(Damage::Corruption),
            Some(_) => None,
        };
        let (Some(index), Some(damage), None) = (index, damage, words.next()) else {
            return Err(wrong(
                "expected the number of a packet, from 0, followed by `loss`, `corruption` or \
                 nothing, which is `loss`",
            ));
        };
        if let Some(last) = packets.last().filter(|last| index <= last.index) {
            return Err(wrong(&format!("expected more than {}, the number before it", last.index)));
        }
        packets.push(DamagedPacket { index, damage });
    }
    Ok(packets)
}
