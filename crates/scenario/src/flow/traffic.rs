//! What a flow carries, and how its ends write and read.

use super::datagrams::{self, Datagrams, DatagramsTable};
use super::ip::IpVersion;
use super::workload::{self, ArrivalsTable, SizesTable, Workload};
use crate::reading::document::Node;
use crate::reading::error::Problem;
use crate::reading::quantity::{Amount, Count, Written, bytes};
use crate::reading::shape::{OrReport as _, Shape, Tried, table, unexpected};
use crate::reading::tagged;
use base::Duration;
use base::settings::{Bytes, Span, Table as _};
use host::{ApplicationSettings, Pace, Requests, Sizes, Transfer};
use serde_json::{Value, json};
use toml::Spanned;

/// What a flow carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// What the applications at the ends of one connection send.
    Application(ApplicationSettings),
    /// Many transfers, each over a connection of its own.
    Workload(Workload),
    /// UDP datagrams.
    Datagrams(Datagrams),
}

impl Traffic {
    /// Whether one connection carries it all.
    #[must_use]
    pub fn is_one_connection(&self) -> bool {
        matches!(self, Traffic::Application(_))
    }

    /// Whether it consists of transfers, each timed from the opening of its connection.
    #[must_use]
    pub fn is_transfers(&self) -> bool {
        match self {
            Traffic::Application(application) => application.settings().is_transfer(),
            Traffic::Workload(_) => true,
            Traffic::Datagrams(_) => false,
        }
    }
}

/// As written in a file.
#[derive(Debug, Default)]
pub(crate) enum Form {
    #[default]
    Bulk,
    Table(Box<Table>),
    Application(Spanned<ApplicationSettings>),
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
        requests: Spanned<RequestsTable>;
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
    pub(crate) struct RequestsTable {
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
            _ if node.get_ref().get(ApplicationSettings::TAG).is_some() => {
                let settings = tagged::read(node, problems)?;
                Some(Form::Application(Spanned::new(node.span(), settings)))
            }
            _ if node.get_ref().is_table() => {
                Table::read(node, problems).map(|table| Form::Table(table.into()))
            }
            _ => unexpected(node, "\"bulk\" or { size = \"3 MB\" }", problems),
        }
    }

    fn schema() -> Value {
        let mut forms = vec![json!({ "const": "bulk" }), Table::schema()];
        forms.extend(tagged::schemas::<ApplicationSettings>());
        json!({ "anyOf": forms, "default": "bulk" })
    }
}

/// What a flow carries, checked.
pub(crate) fn resolve(form: Form, ip: IpVersion, problems: &mut Vec<Problem>) -> Option<Traffic> {
    let table = match form {
        Form::Bulk => Table::default(),
        Form::Table(table) => *table,
        Form::Application(written) => {
            let wrong = written.get_ref().settings().check();
            wrong.map_err(|wrong| Problem::at(written.span(), wrong)).or_report(problems)?;
            return Some(Traffic::Application(written.into_inner()));
        }
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
        let requests = requests_of(requests.get_ref(), problems)?;
        return Some(Traffic::Application(requests.into()));
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
    let size = table
        .size
        .map(|Tried(size)| bytes(&size?, "a transfer", Sizes::LARGEST).or_report(problems));
    let reader = table.reader.map(|reader| pace(&reader, u64::from(u32::MAX), problems));
    let paced = table.paced.map(|paced| pace(paced.get_ref(), Sizes::LARGEST, problems));
    let buffer = table.send_buffer.map(|buffer| {
        if paced.is_some() {
            problems.push(Problem::at(buffer.span(), "expected either `paced` or `send_buffer`"));
            return None;
        }
        bytes(&buffer, "a buffer", Sizes::LARGEST).or_report(problems)
    });
    // The inner `None` is an invalid value.
    let transfer = Transfer {
        size: settled(size)?.map(Bytes),
        paced: settled(paced)?,
        send_buffer: settled(buffer)?.map(Bytes),
        reader: settled(reader)?,
    };
    Some(Traffic::Application(transfer.into()))
}

/// A key that may be absent; `None` if its value is invalid.
fn settled<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    value.map_or(Some(None), |value| value.map(Some))
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

fn requests_of(written: &RequestsTable, problems: &mut Vec<Problem>) -> Option<Requests> {
    let request = written.request.as_ref().map(|size| bytes(size, "a request", Sizes::LARGEST));
    let response = written.response.as_ref().map(|size| bytes(size, "a response", Sizes::LARGEST));
    let request = request.and_then(|size| size.or_report(problems));
    let response = response.and_then(|size| size.or_report(problems));
    Some(Requests {
        request: Bytes(request?),
        response: Bytes(response?),
        think: written.think.map(|think| Span(think.0)).filter(|think| think.0 > Duration::ZERO),
        count: written.count.map(|count| count.0),
    })
}

fn pace(table: &PaceTable, most: u64, problems: &mut Vec<Problem>) -> Option<Pace> {
    let chunk = table.chunk.as_ref().map(|chunk| bytes(chunk, "a chunk", most));
    let interval = table.interval.as_ref().map(|interval| match interval.get_ref().0 {
        Duration::ZERO => Err(Problem::at(interval.span(), "expected more than 0 s")),
        span => Ok(span),
    });
    let chunk = chunk.and_then(|chunk| chunk.or_report(problems));
    let interval = interval.and_then(|interval| interval.or_report(problems));
    Some(Pace { chunk: Bytes(chunk?), interval: Span(interval?) })
}
