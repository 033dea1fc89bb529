//! What a flow carries, and how its ends go about it.

use super::IpVersion;
use super::datagrams::{self, Datagrams, DatagramsTable};
use super::quantity::{Amount, Count, Written};
use super::workload::{self, ArrivalsTable, SizesTable, Workload};
use crate::document::Node;
use crate::error::Problem;
use crate::shape::{Shape, Told as _, Tried, table, unexpected};
use base::Duration;
use base::units::Size;
use host::{Dialogue, Sizes};
use serde_json::{Value, json};
use toml::Spanned;

/// What a flow carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// Data in one direction.
    Transfer(Transfer),
    /// Requests of the node that receives, and responses.
    Requests(Dialogue),
    /// Many transfers, each over a connection of its own.
    Workload(Workload),
    /// Datagrams, and no TCP at all.
    Datagrams(Datagrams),
}

impl Traffic {
    /// Whether one connection carries it all.
    #[must_use]
    pub fn is_one_connection(&self) -> bool {
        matches!(self, Traffic::Transfer(_) | Traffic::Requests(_))
    }
}

/// Data in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// How much, bytes; `None` never ends.
    pub size: Option<u64>,
    /// How it is written.
    pub sending: Sending,
    /// How it is read, if not at once.
    pub reading: Option<Pace>,
}

/// How data is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// All at once.
    Eager,
    /// At regular times.
    Paced(Pace),
    /// So that no more is unacknowledged than a buffer of so many bytes holds.
    Buffered(u64),
}

/// Something at regular times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How much each time, bytes.
    pub chunk: u64,
    /// From one time to the next.
    pub interval: Duration,
}

/// How it is written in a file.
#[derive(Debug, Default)]
pub(super) enum Form {
    #[default]
    Bulk,
    Table(Box<Table>),
}

table! {
    /// What it carries, and how its ends go about it.
    pub(super) struct Table {
        /// How much; without end if absent.
        size: Tried<Spanned<Amount>>;
        /// The sender writes at regular times, the first when the connection is established; all at
        /// once if absent.
        paced: Spanned<PaceTable>;
        /// What the sender's socket holds: no more than that is ever unacknowledged. Unlimited if
        /// absent.
        send_buffer: Spanned<Amount>;
        /// The receiver reads at regular times while there is something; at once if absent. What is
        /// not read stays in the receive window.
        reader: PaceTable;
        /// Requests and responses instead: `to` asks, `from` answers.
        requests: Spanned<Requests>;
        /// Datagrams of UDP instead, whatever becomes of them.
        udp: Spanned<DatagramsTable>;
        /// Many transfers instead, each over a connection of its own: when they are started. `size`
        /// or `sizes` says how large they are.
        arrivals: Spanned<ArrivalsTable>;
        /// Sizes of transfers that differ, by their distribution.
        sizes: Tried<Spanned<SizesTable>>;
        /// How many transfers there are at most, where there are many; no limit if absent.
        count: Spanned<Count>;
    }
}

table! {
    /// A chunk at regular times.
    pub(super) struct PaceTable {
        /// How much each time, bytes.
        chunk: Spanned<Amount>, needed;
        /// From one time to the next.
        interval: Spanned<Written<Duration>>, needed;
    }
}

table! {
    /// Requests over one connection, each after the response to the last.
    pub(super) struct Requests {
        /// Bytes of a request.
        request: Spanned<Amount>, needed;
        /// Bytes of a response.
        response: Spanned<Amount>, needed;
        /// From the end of a response to the next request; none if absent.
        think: Written<Duration>;
        /// How many; without end if absent.
        count: Count;
    }
}

impl Shape for Form {
    fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<Form> {
        match node.get_ref().as_str() {
            Some("bulk") => Some(Form::Bulk),
            _ if node.get_ref().is_table() => {
                Table::read(node, problems).map(|table| Form::Table(table.into()))
            }
            _ => unexpected(node, "\"bulk\" or { size = \"3 MB\" }", problems),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "const": "bulk" }, Table::schema()], "default": "bulk" })
    }
}

/// What is carried, checked.
pub(super) fn resolve(form: Form, ip: IpVersion, problems: &mut Vec<Problem>) -> Option<Traffic> {
    let table = match form {
        Form::Bulk => Table::default(),
        Form::Table(table) => *table,
    };
    let others = [
        ("paced", table.paced.is_some()),
        ("send_buffer", table.send_buffer.is_some()),
        ("reader", table.reader.is_some()),
    ];
    let many = [("sizes", table.sizes.is_some()), ("count", table.count.is_some())];
    if let Some(udp) = &table.udp {
        let tcp = [
            ("size", table.size.is_some()),
            ("requests", table.requests.is_some()),
            ("arrivals", table.arrivals.is_some()),
        ];
        exclude("udp", udp.span(), tcp.iter().chain(&many).chain(&others), problems);
        return datagrams::resolve(udp, ip, problems).map(Traffic::Datagrams);
    }
    if let Some(requests) = &table.requests {
        let transfers = [("size", table.size.is_some()), ("arrivals", table.arrivals.is_some())];
        exclude(
            "requests",
            requests.span(),
            transfers.iter().chain(&many).chain(&others),
            problems,
        );
        return dialogue(requests.get_ref(), problems).map(Traffic::Requests);
    }
    if let Some(arrivals) = &table.arrivals {
        exclude("arrivals", arrivals.span(), others.iter(), problems);
        return workload::resolve(&table, arrivals, problems).map(Traffic::Workload);
    }
    let sizes = table.sizes.and_then(|Tried(sizes)| sizes);
    for (key, span) in [
        ("sizes", sizes.map(|sizes| sizes.span())),
        ("count", table.count.as_ref().map(Spanned::span)),
    ] {
        let problem = |span| Problem::at(span, format!("expected `arrivals` beside `{key}`"));
        problems.extend(span.map(problem));
    }
    let size = table.size.map(|Tried(size)| bytes(&size?, "a transfer", MOST).told(problems));
    let reading = table.reader.map(|reader| pace(&reader, u64::from(u32::MAX), problems));
    let sending = match (table.paced, table.send_buffer) {
        (None, None) => Some(Sending::Eager),
        (Some(paced), None) => pace(paced.get_ref(), MOST, problems).map(Sending::Paced),
        (None, Some(buffer)) => {
            bytes(&buffer, "a buffer", MOST).told(problems).map(Sending::Buffered)
        }
        (Some(_), Some(buffer)) => {
            problems.push(Problem::at(buffer.span(), "expected either `paced` or `send_buffer`"));
            None
        }
    };
    // `None` inside is what could not be understood.
    let (size, reading) = (size.map_or(Some(None), |s| s.map(Some)), reading);
    let reading = reading.map_or(Some(None), |pace| pace.map(Some));
    Some(Traffic::Transfer(Transfer { size: size?, sending: sending?, reading: reading? }))
}

/// Says what cannot be beside a key.
fn exclude<'a>(
    key: &str,
    span: core::ops::Range<usize>,
    others: impl Iterator<Item = &'a (&'a str, bool)>,
    problems: &mut Vec<Problem>,
) {
    for (other, _) in others.filter(|(_, there)| *there) {
        let message = format!("expected either `{key}` or `{other}`");
        problems.push(Problem::at(span.clone(), message));
    }
}

fn dialogue(requests: &Requests, problems: &mut Vec<Problem>) -> Option<Dialogue> {
    let request = requests.request.as_ref().map(|size| bytes(size, "a request", MOST));
    let response = requests.response.as_ref().map(|size| bytes(size, "a response", MOST));
    let request = request.and_then(|size| size.told(problems));
    let response = response.and_then(|size| size.told(problems));
    Some(Dialogue {
        request: request?,
        response: response?,
        think: requests.think.map_or(Duration::ZERO, |think| think.0),
        rounds: requests.count.map(|count| count.0),
    })
}

fn pace(table: &PaceTable, most: u64, problems: &mut Vec<Problem>) -> Option<Pace> {
    let chunk = table.chunk.as_ref().map(|chunk| bytes(chunk, "a chunk", most));
    let interval = table.interval.as_ref().map(|interval| match interval.get_ref().0 {
        Duration::ZERO => Err(Problem::at(interval.span(), "expected more than 0 s")),
        span => Ok(span),
    });
    let chunk = chunk.and_then(|chunk| chunk.told(problems));
    let interval = interval.and_then(|interval| interval.told(problems));
    Some(Pace { chunk: chunk?, interval: interval? })
}

/// Far beyond what any run delivers.
const MOST: u64 = Sizes::LARGEST;

/// A number of bytes, at least 1.
pub(super) fn bytes(size: &Spanned<Amount>, what: &str, most: u64) -> Result<u64, Problem> {
    match size.get_ref().0 {
        Size::Bytes(bytes) if (1..=most).contains(&bytes) => Ok(bytes),
        Size::Bytes(_) => {
            let most = if most == MOST { "1 EiB".to_owned() } else { format!("{most} bytes") };
            Err(Problem::at(size.span(), format!("expected at least 1 byte and at most {most}")))
        }
        Size::Packets(_) | Size::Segments(_) => {
            let message = format!("{what} is a number of bytes: expected a size such as \"3 MB\"");
            Err(Problem::at(size.span(), message))
        }
    }
}
