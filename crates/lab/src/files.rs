//! Files that a scenario names.

use link::{Damage, DamagedPacket, DeliveryTrace};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A file is no larger, bytes.
const LARGEST: u64 = 64 << 20;

/// The files that a scenario names, each read once, however many points of a sweep need it.
#[derive(Debug)]
pub(crate) struct Files {
    /// Names are relative to it.
    folder: PathBuf,
    packets: Cache<Vec<DamagedPacket>>,
    deliveries: Cache<DeliveryTrace>,
}

/// What is in a file, or what is wrong with it.
type Content<T> = Result<Arc<T>, String>;
type Cache<T> = Mutex<BTreeMap<String, Content<T>>>;

impl Files {
    /// The files of a scenario that is itself in the file `scenario`.
    pub(crate) fn beside(scenario: &str) -> Files {
        let folder = Path::new(scenario).parent().unwrap_or(Path::new(""));
        Files { folder: folder.to_owned(), packets: Cache::default(), deliveries: Cache::default() }
    }

    /// The damaged packets of a trace: one a line, its number, from 0, and perhaps what happens to
    /// it; numbers increase, and `#` begins a comment.
    pub(crate) fn damaged_packets(&self, name: &str) -> Content<Vec<DamagedPacket>> {
        self.cached(&self.packets, name, damaged_packets)
    }

    /// The opportunities of a trace of mahimahi.
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
        // A device has no end.
        File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let shown = path.display();
    let bytes = read().map_err(|error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => format!("there is no file `{shown}`"),
        kind => format!("cannot read `{shown}`: {kind}"),
    })?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("`{shown}` is larger than a trace, {} MiB", LARGEST >> 20));
    }
    String::from_utf8(bytes).map_err(|_| format!("`{shown}` is not a text file"))
}

/// The lines of a text that say something, with their numbers from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let said = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    (1..).zip(said).filter(|(_, line)| !line.is_empty())
}

/// What a line of a file says, as a message quotes it.
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
                "expected the number of a packet, from 0, and `loss` or `corruption` behind it; \
                 it is `loss` if nothing is there",
            ));
        };
        if let Some(last) = packets.last().filter(|last| index <= last.index) {
            return Err(wrong(&format!("expected more than {}, the packet before it", last.index)));
        }
        packets.push(DamagedPacket { index, damage });
    }
    Ok(packets)
}
