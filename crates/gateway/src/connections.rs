//! The connections that a gateway carries, as `lasthopd status --connections`, `lasthopd top` and its records
//! show them.

use base::Time;
use relay::{Carried, End, Ended, Ending, Side, Stage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Connections that a gateway carries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// How many there are.
    pub total: usize,
    /// Those of them that have moved most bytes, at most [`Connections::MOST`].
    pub list: Vec<Connection>,
}

impl Connections {
    /// The most in the list.
    pub const MOST: usize = 2048;

    pub(crate) fn new(mut all: Vec<Connection>) -> Connections {
        let total = all.len();
        all.sort_by_key(|connection| std::cmp::Reverse(connection.bytes()));
        all.truncate(Connections::MOST);
        Connections { total, list: all }
    }
}

/// A connection that a gateway carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The end that has opened it.
    pub client: SocketAddr,
    /// The end that has accepted it, or is to.
    pub server: SocketAddr,
    /// The address of the end that is not behind the hop.
    pub user: IpAddr,
    /// Since it is carried.
    pub age_milliseconds: u64,
    /// Bytes that have arrived from the client.
    pub received_from_client: u64,
    /// Bytes that have arrived from the server.
    pub received_from_server: u64,
    /// Bytes that the client has acknowledged.
    pub acknowledged_by_client: u64,
    /// Bytes that the server has acknowledged.
    pub acknowledged_by_server: u64,
    /// Bytes that the gateway holds.
    pub held: u64,
    /// How far it is.
    pub state: State,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The server has not accepted it yet.
    Opening,
    /// Both ends may send.
    Open,
    /// An end has closed it.
    Closing,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Opening => "opening",
            State::Open => "open",
            State::Closing => "closing",
        })
    }
}

impl Connection {
    pub(crate) fn new(now: Time, carried: &Carried) -> Connection {
        let [client, server] = addresses(carried);
        let [from_client, from_server] = carried.ends;
        Connection {
            client,
            server,
            user: [client, server][carried.user as usize].ip(),
            age_milliseconds: now.since(carried.began).as_nanos() / 1_000_000,
            received_from_client: from_client.received,
            received_from_server: from_server.received,
            acknowledged_by_client: from_client.acknowledged,
            acknowledged_by_server: from_server.acknowledged,
            held: carried.held,
            state: match carried.stage {
                Stage::Opening => State::Opening,
                Stage::Open => State::Open,
                Stage::Closing => State::Closing,
            },
        }
    }

    /// Bytes that have arrived from either end.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.received_from_client + self.received_from_server
    }

    /// Bytes that have arrived from the user, and that were acknowledged by him.
    #[must_use]
    pub fn up_and_down(&self) -> [u64; 2] {
        match self.user == self.client.ip() {
            true => [self.received_from_client, self.acknowledged_by_client],
            false => [self.received_from_server, self.acknowledged_by_server],
        }
    }
}

/// The client's and the server's.
fn addresses(carried: &Carried) -> [SocketAddr; 2] {
    let client = &carried.client;
    [
        SocketAddr::new(client.local, client.local_port),
        SocketAddr::new(client.remote, client.remote_port),
    ]
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<24} {:<24} {:<8} {:>9} {:>12} {:>12} {:>12} {:>12} {:>10}",
            "client",
            "server",
            "state",
            "age, s",
            "from client",
            "to server",
            "from server",
            "to client",
            "held"
        )?;
        for connection in &self.list {
            writeln!(
                f,
                "{:<24} {:<24} {:<8} {:>9} {:>12} {:>12} {:>12} {:>12} {:>10}",
                connection.client.to_string(),
                connection.server.to_string(),
                connection.state,
                connection.age_milliseconds / 1000,
                connection.received_from_client,
                connection.acknowledged_by_server,
                connection.received_from_server,
                connection.acknowledged_by_client,
                connection.held,
            )?;
        }
        let left = self.total - self.list.len().min(self.total);
        if left > 0 {
            writeln!(f, "and {left} that have moved fewer bytes")?;
        }
        Ok(())
    }
}

/// A line of the records: a connection that has ended. Times are in seconds of Unix time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When it was split.
    pub begin: f64,
    /// When the last of its ends did something.
    pub end: f64,
    /// The end that has opened it.
    pub client: SocketAddr,
    /// The end that has accepted it, or was to.
    pub server: SocketAddr,
    /// Bytes that have arrived from the client.
    pub received_from_client: u64,
    /// Bytes that have arrived from the server.
    pub received_from_server: u64,
    /// Bytes that the client has acknowledged.
    pub acknowledged_by_client: u64,
    /// Bytes that the server has acknowledged.
    pub acknowledged_by_server: u64,
    /// Segments that were sent again to the client, if it was not reached by SRP.
    pub retransmissions_to_client: Option<u64>,
    /// Segments that were sent again to the server, if it was not reached by SRP.
    pub retransmissions_to_server: Option<u64>,
    /// How it has ended.
    pub ended: How,
    /// The end that is the cause, if one is.
    pub by: Option<By>,
}

/// How a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Both ends have closed it.
    Closed,
    /// An end has reset or refused it.
    Reset,
    /// An end did not answer any more.
    TimedOut,
    /// There was no way to an end.
    Unreachable,
    /// The gateway has reset it.
    Abandoned,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The one that has opened it.
    Client,
    /// The other one.
    Server,
}

impl Record {
    /// `unix` tells the Unix time of a moment, seconds.
    pub(crate) fn new(ended: &Ended, unix: impl Fn(Time) -> f64) -> Record {
        let Ended { carried, at, ending } = ended;
        let [client, server] = addresses(carried);
        let [End { received, acknowledged, retransmissions }, of_server] = carried.ends;
        let (how, by) = match ending {
            Ending::Closed => (How::Closed, None),
            Ending::Reset(side) => (How::Reset, Some(side)),
            Ending::TimedOut(side) => (How::TimedOut, Some(side)),
            Ending::Unreachable(side) => (How::Unreachable, Some(side)),
            Ending::Abandoned => (How::Abandoned, None),
        };
        Record {
            begin: unix(carried.began),
            end: unix(*at),
            client,
            server,
            received_from_client: received,
            received_from_server: of_server.received,
            acknowledged_by_client: acknowledged,
            acknowledged_by_server: of_server.acknowledged,
            retransmissions_to_client: retransmissions,
            retransmissions_to_server: of_server.retransmissions,
            ended: how,
            by: by.map(|side| match side {
                Side::Client => By::Client,
                Side::Server => By::Server,
            }),
        }
    }
}

/// A user of a gateway, over all his connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// How many he has.
    pub connections: u64,
    /// Bytes a second that have arrived from him.
    pub up: u64,
    /// Bytes a second that he has acknowledged.
    pub down: u64,
    /// Bytes that the gateway holds.
    pub held: u64,
}

/// The bytes up and down of a connection by its ends.
type Before = BTreeMap<(SocketAddr, SocketAddr), (u64, [u64; 2])>;

/// The users and, in the order of a list, the rates of its connections up and down, bytes a second.
pub type Seen = (BTreeMap<IpAddr, User>, Vec<[u64; 2]>);

/// What was seen of connections before, for rates.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    before: Before,
}

impl Rates {
    /// What is to be seen now.
    pub fn next(&mut self, now: &Connections) -> Seen {
        let mut users: BTreeMap<IpAddr, User> = BTreeMap::new();
        let mut after = Before::new();
        let mut rates = Vec::new();
        for connection in &now.list {
            let (age, bytes) = (connection.age_milliseconds, connection.up_and_down());
            let ends = (connection.client, connection.server);
            // A younger one between the same ends is another one.
            let before = self.before.get(&ends).filter(|(before, _)| *before < age);
            let (since, old) = before.copied().unwrap_or_default();
            let elapsed = (age - since).max(1);
            let [up, down] = [0, 1].map(|way| bytes[way].saturating_sub(old[way]) * 1000 / elapsed);
            after.insert(ends, (age, bytes));
            rates.push([up, down]);
            let user = users.entry(connection.user).or_default();
            user.connections += 1;
            user.held += connection.held;
            (user.up, user.down) = (user.up + up, user.down + down);
        }
        self.before = after;
        (users, rates)
    }
}
