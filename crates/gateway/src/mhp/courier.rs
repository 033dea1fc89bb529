//! Carries requests and answers between base stations. Each request is a connection, whose answer comes back on it.

use super::mailbox::{Letter, Requester};
use super::sealed::Sealed;
use super::{Guests, NetworkKey};
use crate::plane::Plane;
use crate::serving::{Exchange, Server};
use live::inline::{Caller, Pieces};
use middlebox::mhp::{Answer, Keys, Received, Reply, Request, Transferred};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tracing::{info, warn};
use wire::{Mobility, MobilityMessage};

/// How long another base station may take to accept a connection.
const CONNECTING: Duration = Duration::from_secs(2);
/// How long the box may take to answer a request: it may have to ask a third one.
const ANSWERING: Duration = Duration::from_secs(4);
/// The longest request, and the longest answer, bytes.
const REQUEST: usize = 4096;
const ANSWER: usize = 1 << 30;

/// An answer with the bytes of its payloads: streams, places and lengths; the bytes follow.
#[derive(Serialize, Deserialize)]
struct Parcel {
    answer: Answer,
    pieces: Vec<(u32, u64, u32)>,
}

/// Answers that requesters wait for.
type Waiting = Arc<Mutex<HashMap<Requester, SyncSender<Vec<u8>>>>>;

/// What all threads share.
#[derive(Clone)]
struct Office {
    station: Caller<Plane>,
    key: NetworkKey,
    waiting: Waiting,
    guests: Arc<Guests>,
}

/// The threads, which end with this but for those that ask another base station; with it, the guests have no routes any
/// more.
pub(crate) struct Courier {
    guests: Arc<Guests>,
    _server: Server,
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.guests.end();
    }
}

impl Courier {
    /// Carries what a base station rings the bell for, and what others ask it, in the network namespace of the calling
    /// thread.
    pub(crate) fn start(
        station: Caller<Plane>,
        bells: Receiver<()>,
        key: NetworkKey,
        guests: Arc<Guests>,
    ) -> io::Result<Courier> {
        let kept = Arc::clone(&guests);
        let office = Office { station, key, waiting: Waiting::default(), guests };
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, Mobility::PORT))?;
        let asked = office.clone();
        let numbers = AtomicU64::new(0);
        let server = Server::start("stations", listener, move |exchange| {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            let served = asked.serve(exchange, number);
            if let Err(error) = &served {
                warn!(%error, "a request of another base station is not answered");
            }
            served
        })?;
        let carry = move || {
            // It ends with the box that has the bell.
            while bells.recv().is_ok() {
                office.carry();
            }
        };
        thread::Builder::new().name("courier".to_owned()).spawn(carry)?;
        Ok(Courier { guests: kept, _server: server })
    }
}

impl Office {
    /// Carries what there is.
    fn carry(&self) {
        let letters = self.station.pause(|moment| {
            let letters = moment.middlebox.mailbox().map(super::Mailbox::take).unwrap_or_default();
            let with_bytes = |letter| match letter {
                Letter::Answer(to, answer, data) => {
                    (Letter::Answer(to, answer, Vec::new()), moment.copies(&data))
                }
                letter @ Letter::Request(..) => (letter, Pieces::new()),
            };
            letters.into_iter().map(with_bytes).collect::<Vec<_>>()
        });
        for (letter, pieces) in letters.unwrap_or_default() {
            match letter {
                Letter::Request(request, from) => {
                    let office = self.clone();
                    // Without a thread, there is no answer.
                    let asking = thread::Builder::new().name("asking".to_owned());
                    if asking.spawn(move || office.ask(&request, from)).is_err() {
                        self.deliver_answer(request.mobile, None, Received::default());
                    }
                }
                Letter::Answer(to, answer, _) => self.answer(to, *answer, &pieces),
            }
        }
    }

    /// Hands an answer to the thread whose requester waits for it.
    fn answer(&self, to: Requester, answer: Answer, pieces: &Pieces) {
        if answer.reply == Reply::State {
            info!(mobile = %answer.mobile, connections = answer.relays.len(), "handed over");
            self.guests.leave(answer.mobile);
        }
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&to);
        let index =
            pieces.iter().map(|(stream, place, bytes)| (*stream, *place, bytes.len() as u32));
        let parcel = Parcel { answer, pieces: index.collect() };
        // Writing to memory fails only for types that have no representation.
        let text = rmp_serde::to_vec_named(&parcel).unwrap_or_default();
        let mut message = (text.len() as u64).to_be_bytes().to_vec();
        message.extend_from_slice(&text);
        pieces.iter().for_each(|(.., bytes)| message.extend_from_slice(bytes));
        // Its requester may be gone: then the state is lost.
        if waiting.is_none_or(|waiting| waiting.send(message).is_err()) {
            warn!("the base station that has asked is gone");
        }
    }

    /// Serves a request of another base station.
    fn serve(&self, exchange: &mut Exchange, number: Requester) -> io::Result<()> {
        let mut sealed = Sealed::respond(exchange, &self.key.preshared)?;
        let bytes = sealed.receive(REQUEST)?;
        let received = Received { state: bytes.len() as u64, data: 0 };
        let request = Request::from_text(&bytes).ok_or(ErrorKind::InvalidData)?;
        if !Keys::new(&self.key.secret).is_authentic(&request) {
            return Err(io::Error::other("it is not of a mobile host of this network"));
        }
        // The requester may have sent it from another one of its addresses.
        let MobilityMessage::Attach { station, .. } = request.attach.message else {
            return Err(ErrorKind::InvalidData.into());
        };
        let (sender, answer) = mpsc::sync_channel(1);
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(number, sender);
        let deliver = move |_, plane: &mut Plane, _: &_| {
            if let Some(mailbox) = plane.mailbox() {
                mailbox.deliver(Transferred::Request(request, station, number), received);
            }
        };
        let answered =
            self.station.call(deliver).map_err(io::Error::other).and_then(|()| {
                answer.recv_timeout(ANSWERING).map_err(|_| ErrorKind::TimedOut.into())
            });
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        sealed.send(&answered?)
    }

    /// Asks another base station, and delivers its answer.
    fn ask(&self, request: &Request, from: IpAddr) {
        let mobile = request.mobile;
        match self.fetch(request, from) {
            Ok((answer, pieces, received)) => {
                self.deliver_answer(mobile, Some((answer, pieces)), received);
            }
            Err(error) => {
                warn!(station = %from, %mobile, %error, "no answer of the base station before");
                self.deliver_answer(mobile, None, Received::default());
            }
        }
    }

    fn fetch(&self, request: &Request, from: IpAddr) -> io::Result<(Answer, Pieces, Received)> {
        let address = SocketAddr::new(from, Mobility::PORT);
        let stream = TcpStream::connect_timeout(&address, CONNECTING)?;
        stream.set_nodelay(true)?;
        let mut exchange = Exchange::new(Box::new(stream));
        let mut sealed = Sealed::initiate(&mut exchange, &self.key.preshared)?;
        sealed.send(&request.to_text())?;
        let message = sealed.receive(ANSWER)?;
        let (answer, pieces) = read(&message).ok_or(ErrorKind::InvalidData)?;
        if answer.mobile != request.mobile {
            return Err(io::Error::other("the answer is about another mobile host"));
        }
        let data = pieces.iter().map(|(.., bytes)| bytes.len() as u64).sum();
        let state = message.len() as u64 - data;
        Ok((answer, pieces, Received { state, data }))
    }

    fn deliver_answer(&self, mobile: IpAddr, found: Option<(Answer, Pieces)>, received: Received) {
        // One that has ended needs no answer.
        let _ = self.station.pause(move |mut moment| {
            let answer = found.and_then(|(answer, pieces)| {
                let has_memory = moment.adopt(pieces);
                if !has_memory {
                    warn!(%mobile, "no memory for the data of its connections");
                }
                has_memory.then_some(answer)
            });
            if let Some(mailbox) = moment.middlebox.mailbox() {
                mailbox.deliver(Transferred::Answer(mobile, answer), received);
            }
        });
    }
}

/// The parcel in a message.
fn read(message: &[u8]) -> Option<(Answer, Pieces)> {
    let (len, rest) = message.split_first_chunk()?;
    let (text, mut data) =
        rest.split_at_checked(usize::try_from(u64::from_be_bytes(*len)).ok()?)?;
    let Parcel { answer, pieces } = rmp_serde::from_slice(text).ok()?;
    let mut all = Pieces::new();
    for (stream, place, len) in pieces {
        let (bytes, later) = data.split_at_checked(len as usize)?;
        all.push((stream, place, bytes.into()));
        data = later;
    }
    data.is_empty().then_some((answer, all))
}
