//! The transfer of state between base stations of the lab.

use super::{Answer, Exchange, Keys, Received, Request, Transferred};
use crate::Contents;
use crate::sending::Sending;
use base::{Duration, Random, Time};
use core::net::IpAddr;
use host::{Application, ConnectionId, Context, Host, Listener, Opening};
use tcp::{Config, Connection, Events, KeepAlive};
use wire::{Body, Mobility, Packet, Payload};

/// Transfers between base stations, each a TCP connection at [`Mobility::PORT`]: a request one way, the
/// answer the other.
///
/// ```text
/// |  bytes of the text, 32 bits   |  bytes of the data, 32 bits   |
/// |                 authentication tag, 128 bits                  |
/// |                     text (MessagePack) ...                    |
/// |  data: what connections have received and not passed on, ...  |
/// ```
pub struct Transfers {
    host: Host<Transfer>,
    own: [IpAddr; 2],
    config: Config,
    contents: Contents,
    keys: Keys,
    received: Received,
}

/// One end of a transfer. Each end writes its message and closes; so a message is complete at the end of
/// the stream.
#[derive(Clone, Debug)]
struct Transfer {
    /// The mobile host that is asked for, at the end that asks.
    asks: Option<IpAddr>,
    contents: Contents,
    /// What is to be written: header and text, and data.
    message: Vec<Payload>,
    /// The bytes of header and text that have arrived.
    read: Vec<u8>,
    /// Bytes of data that have arrived.
    data: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The message of the other end has not arrived completely.
    Reading,
    /// It has arrived, or will not, and the owner is to be told.
    Due { is_whole: bool },
    /// The owner was told.
    Told,
}

/// Bytes before the text.
const HEADER: usize = 4 + Mobility::TAG;

impl Transfer {
    fn new(asks: Option<IpAddr>, contents: Contents, message: Vec<Payload>) -> Transfer {
        Transfer { asks, contents, message, read: Vec::new(), data: 0, state: State::Reading }
    }

    /// Tag and text of the message that has arrived.
    fn message(&self) -> Option<(&[u8], &[u8])> {
        let (len, rest) = self.read.split_first_chunk()?;
        let (tag, text) = rest.split_at_checked(Mobility::TAG)?;
        (text.len() == u32::from_be_bytes(*len) as usize).then_some((tag, text))
    }

    /// The longest text of a message to this end: a request is short, an answer may be about some
    /// thousands of connections.
    fn longest(&self) -> usize {
        if self.asks.is_some() { 64 << 20 } else { 1 << 12 }
    }

    /// The bytes of header and text that have not arrived yet.
    fn missing(&self) -> usize {
        let text = self.read.first_chunk().map_or(0, |len| u32::from_be_bytes(*len) as usize);
        let whole = if self.read.len() < 4 { 4 } else { HEADER + text.min(self.longest()) };
        whole.saturating_sub(self.read.len())
    }

    /// Takes in a payload of the other end. Data is not looked at: its payloads are those in the
    /// snapshots.
    fn take(&mut self, mut payload: Payload) {
        while payload.len > 0 {
            let head = payload.take(u32::try_from(self.missing()).unwrap_or(u32::MAX));
            if head.len == 0 || !self.contents.read(head, &mut self.read) {
                self.data += u64::from(payload.len);
                return;
            }
            payload = payload.skip(head.len);
        }
    }

    /// Forgets the bytes that were written.
    fn forget(&self) {
        if let Some(head) = self.message.first() {
            self.contents.remove(*head);
        }
    }

    fn write(&self, connection: &mut Connection) {
        for &Payload { stream, offset, len } in &self.message {
            connection.write(stream, offset, len.into());
        }
        connection.close();
    }
}

impl Application for Transfer {
    fn handle(&mut self, _: Time, connection: &mut Connection, events: Events) {
        if events.contains(Events::CONNECTED) && !self.message.is_empty() {
            self.write(connection);
        }
        while let Some(payload) = connection.read() {
            self.take(payload);
        }
        if events.intersects(Events::PEER_CLOSED | Events::CLOSED) && self.state == State::Reading {
            self.state = State::Due { is_whole: events.contains(Events::PEER_CLOSED) };
        }
        if events.contains(Events::CLOSED) {
            self.forget();
        }
    }

    fn requests(&self) -> bool {
        matches!(self.state, State::Due { .. })
    }
}

impl Transfers {
    /// Those of a base station with these addresses. `random` is for secrets.
    #[must_use]
    pub fn new(own: [IpAddr; 2], keys: Keys, contents: Contents, random: Random) -> Transfers {
        let mut host = Host::new(own[0], random);
        host.add_address(own[1]);
        let config = Config {
            nagle: false,
            // The other end answers at once, or is gone.
            user_timeout: Some(Duration::from_secs(10)),
            keep_alive: Some(KeepAlive {
                idle: Duration::from_secs(2),
                interval: Duration::from_secs(1),
                probes: 5,
            }),
            ..Config::default()
        };
        let (accepted, shared) = (config.clone(), contents.clone());
        host.add_listener(Listener::new(Mobility::PORT, move |_| {
            (accepted.clone(), Transfer::new(None, shared.clone(), Vec::new()))
        }));
        Transfers { host, own, config, contents, keys, received: Received::default() }
    }

    /// A message to another base station.
    fn message(&self, mobile: IpAddr, text: &[u8], data: &[Payload]) -> Vec<Payload> {
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.keys.tag(mobile, text));
        bytes.extend_from_slice(text);
        let head = self.contents.add(bytes);
        [head].into_iter().chain(data.iter().copied()).collect()
    }
}

impl Exchange for Transfers {
    type Requester = ConnectionId;

    fn anew(&self, random: Random) -> Transfers {
        Transfers::new(self.own, self.keys.clone(), self.contents.clone(), random)
    }

    fn ask(&mut self, now: Time, request: &Request, from: IpAddr) -> bool {
        let message = self.message(request.mobile, &request.to_text(), &[]);
        let head = message.first().copied();
        let opening = Opening {
            at: now,
            remote: from,
            remote_port: Mobility::PORT,
            local: None,
            local_port: None,
            config: self.config.clone(),
            application: Transfer::new(Some(request.mobile), self.contents.clone(), message),
        };
        let is_asked = self.host.connect(now, opening).is_some();
        if let Some(head) = head.filter(|_| !is_asked) {
            self.contents.remove(head);
        }
        is_asked
    }

    fn answer(&mut self, now: Time, to: ConnectionId, answer: Answer, data: Vec<Payload>) {
        // Its requester may be gone.
        let closed = tcp::State::Closed;
        if self.host.connection(to).is_none_or(|connection| connection.state() == closed) {
            return;
        }
        let message = self.message(answer.mobile, &answer.to_text(), &data);
        self.host.access(now, to, |connection, transfer| {
            transfer.message = message;
            transfer.write(connection);
        });
    }

    fn poll(&mut self, now: Time) -> Option<Transferred<ConnectionId>> {
        while let Some(id) = self.host.poll_request() {
            let remote = self.host.four_tuple(id).map(|tuple| tuple.remote);
            let (keys, received) = (&self.keys, &mut self.received);
            let arrived = self.host.access(now, id, |connection, transfer| {
                let is_whole = transfer.state == State::Due { is_whole: true };
                transfer.state = State::Told;
                received.state += transfer.read.len() as u64;
                received.data += transfer.data;
                let message = if is_whole { transfer.message() } else { None };
                match transfer.asks {
                    Some(mobile) => {
                        Some(Transferred::Answer(mobile, read_answer(keys, mobile, message)))
                    }
                    None => {
                        let request = read_request(keys, message);
                        if request.is_none() {
                            connection.abort();
                        }
                        Some(Transferred::Request(request?, remote?, id))
                    }
                }
            });
            if let Some(Some(arrived)) = arrived {
                return Some(arrived);
            }
        }
        None
    }

    fn handle_packet(&mut self, now: Time, packet: &Packet) -> bool {
        let Body::Tcp(segment) = &packet.body else { return false };
        let is_own = self.own.contains(&packet.ip.destination)
            && (segment.destination_port == Mobility::PORT
                || segment.source_port == Mobility::PORT);
        if is_own {
            self.host.handle_packet(now, packet);
        }
        is_own
    }

    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        for (_, connection, transfer) in self.host.connections() {
            connection.held_payloads().for_each(&mut *held);
            // The next station has taken the bytes, but not adopted the snapshots yet.
            transfer.message.iter().copied().for_each(&mut *held);
        }
    }

    fn open(&self) -> usize {
        self.host.open_connections()
    }

    fn received(&self) -> Received {
        self.received
    }

    fn poll_timeout(&self) -> Time {
        self.host.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.host.handle_timeout(now);
    }

    fn transmit(&mut self, now: Time, cx: &mut Context<'_>) {
        // The owner asks for the next deadline after each call anyway.
        let _ = self.host.transmit(now, &mut Sending::new(cx));
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.host.connections().for_each(|(_, _, transfer)| transfer.forget());
    }
}

/// The request in a message, if it is authentic: it contains the message of the mobile host, by whose
/// key both are authenticated.
fn read_request(keys: &Keys, message: Option<(&[u8], &[u8])>) -> Option<Request> {
    let (tag, text) = message?;
    let request = Request::from_text(text)?;
    let is_authentic = keys.is_tag(request.mobile, text, tag) && keys.is_authentic(&request);
    is_authentic.then_some(request)
}

/// The answer about a mobile host in a message, if it is authentic.
fn read_answer(keys: &Keys, mobile: IpAddr, message: Option<(&[u8], &[u8])>) -> Option<Answer> {
    let (tag, text) = message?;
    if !keys.is_tag(mobile, text, tag) {
        return None;
    }
    Answer::from_text(text).filter(|answer| answer.mobile == mobile)
}
