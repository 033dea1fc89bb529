//! What a flow carries, and how its ends write and read.

use super::datagrams::{self, Datagrams, DatagramsTable};
use super::ip::IpVersion;
use super::workload::{self, ArrivalsTable, SizesTable, Workload};
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Count, Written, bytes};
use crate::reading::shape::{Shape, Told as _, Tried, table, unexpected};
use base::Duration;
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
    /// UDP datagrams.
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
    /// How it is read; `None` at once.
    pub reading: Option<Pace>,
}

/// How data is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// All at once.
    Eager,
    /// Chunks at regular times.
    Paced(Pace),
    /// All at once into a send buffer of this many bytes, which holds the unacknowledged data.
    Buffered(u64),
}

/// Chunks at regular times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The size of a chunk, bytes.
    pub chunk: u64,
    /// From one chunk to the next.
    pub interval: Duration,
}

/// As written in a file.
#[derive(Debug, Default)]
pub(crate) enum Form {
    #[default]
    Bulk,
    Table(Box<Table>),
}

table! {
    /// What a flow carries, and how its ends write and read.
    pub(crate) struct Table {
        /// The amount of data; without end if absent.
        size: Tried<Spanned<Amount>>;
        /// The sender writes at regular times, the first when the connection is established; all at
        /// once if absent.
        paced: Spanned<PaceTable>;
        /// The send buffer, which limits unacknowledged data. Unlimited if absent.
        send_buffer: Spanned<Amount>;
        /// The receiver reads at regular times while there is data; at once if absent. Unread data
        /// takes room in the receive window.
        reader: PaceTable;
        /// Requests and responses instead: `to` requests, `from` responds.
        requests: Spanned<Requests>;
        /// UDP datagrams instead.
        udp: Spanned<DatagramsTable>;
        /// Many transfers instead, each over a connection of its own: when they start. `size` or
        /// `sizes` gives their sizes.
        arrivals: Spanned<ArrivalsTable>;
        /// The distribution of the sizes of transfers.
        sizes: Tried<Spanned<SizesTable>>;
        /// With `arrivals`: the largest number of transfers; no limit if absent.
        count: Spanned<Count>;
    }
}

table! {
    /// Chunks at regular times.
    pub(crate) struct PaceTable {
        /// The size of a chunk, bytes.
        chunk: Spanned<Amount>, needed;
        /// From one chunk to the next.
        interval: Spanned<Written<Duration>>, needed;
    }
}

table! {
    /// Requests over one connection, each after the response to the previous one.
    pub(crate) struct Requests {
        /// Bytes of a request.
        request: Spanned<Amount>, needed;
        /// Bytes of a response.
        response: Spanned<Amount>, needed;
        /// From the end of a response to the next request; none if absent.
        think: Written<Duration>;
        /// The number of requests; without end if absent.
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

/// What a flow carries, checked.
pub(crate) fn resolve(form: Form, ip: IpVersion, problems: &mut Vec<Problem>) -> Option<Traffic> {
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
        return workload::resolve(
            arrivals,
            table.size.as_ref(),
            table.sizes.as_ref(),
            table.count.as_ref(),
            problems,
        )
        .map(Traffic::Workload);
    }
    let sizes = table.sizes.and_then(|Tried(sizes)| sizes);
    for (key, span) in [
        ("sizes", sizes.map(|sizes| sizes.span())),
        ("count", table.count.as_ref().map(Spanned::span)),
    ] {
        let problem = |span| Problem::at(span, format!("expected `arrivals` beside `{key}`"));
        problems.extend(span.map(problem));
    }
    let size =
        table.size.map(|Tried(size)| bytes(&size?, "a transfer", Sizes::LARGEST).told(problems));
    let reading = table.reader.map(|reader| pace(&reader, u64::from(u32::MAX), problems));
    let sending = match (table.paced, table.send_buffer) {
        (None, None) => Some(Sending::Eager),
        (Some(paced), None) => pace(paced.get_ref(), Sizes::LARGEST, problems).map(Sending::Paced),
        (None, Some(buffer)) => {
            bytes(&buffer, "a buffer", Sizes::LARGEST).told(problems).map(Sending::Buffered)
        }
        (Some(_), Some(buffer)) => {
            problems.push(Problem::at(buffer.span(), "expected either `paced` or `send_buffer`"));
            None
        }
    };
    // The inner `None` is an invalid value.
    let (size, reading) = (size.map_or(Some(None), |s| s.map(Some)), reading);
    let reading = reading.map_or(Some(None), |pace| pace.map(Some));
    Some(Traffic::Transfer(Transfer { size: size?, sending: sending?, reading: reading? }))
}

/// Reports the keys that exclude another.
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
    let request = requests.request.as_ref().map(|size| bytes(size, "a request", Sizes::LARGEST));
    let response = requests.response.as_ref().map(|size| bytes(size, "a response", Sizes::LARGEST));
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
