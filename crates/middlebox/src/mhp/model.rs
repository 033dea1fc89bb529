//! A bounded model check: a mobile host and its base stations, with every order of moves, losses,
//! duplicates and a crash, up to a depth.
//!
//! The state of the host's connections is a token. It is at one base station, on its way to one, or lost.
//! A base station that says *complete* must have it; a host must not be told so when it is lost.

use super::{Action, Attachment, Keys, Registry, Reply, Request};
use base::Time;
use core::net::IpAddr;
use std::collections::BTreeSet;
use wire::{Mobility, MobilityMessage, Outcome};

/// Where the state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// There is none: the host has no connections.
    None,
    At(usize),
    /// In the answer to this request.
    InAnswer(u32),
    Lost,
}

#[derive(Clone, Debug, PartialEq)]
enum Message {
    ToStation(usize, Mobility),
    ToMobile(usize, Mobility),
    /// A request with its number, from one base station to another.
    Request(u32, usize, usize, Request),
    /// The answer to a request, to the base station that sent it; none if it failed.
    Answer(u32, usize, Option<Reply>),
}

#[derive(Clone, Debug)]
struct Model {
    mobile: Attachment,
    /// Where the host is.
    place: Option<usize>,
    stations: Vec<Registry<u32>>,
    token: Token,
    network: Vec<Message>,
    /// Requests that are not answered: number, from, to.
    open: Vec<(u32, usize, usize)>,
    requests: u32,
    budget: Budget,
    now: Time,
    /// What has happened, for messages.
    history: Vec<String>,
}

/// What may still happen.
#[derive(Clone, Copy, Debug)]
struct Budget {
    moves: u32,
    tells: u32,
    losses: u32,
    duplicates: u32,
    crashes: u32,
}

fn station(n: usize) -> IpAddr {
    IpAddr::from([10, 0, 1, n as u8])
}

fn number(address: IpAddr) -> usize {
    let IpAddr::V4(address) = address else { panic!("{address}") };
    usize::from(address.octets()[3])
}

const MOBILE: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1));

fn registry(n: usize, incarnation: u32) -> Registry<u32> {
    let own = [station(n), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 1, n as u16])];
    Registry::new(own, incarnation)
}

impl Model {
    fn new(stations: usize, budget: Budget) -> Model {
        Model {
            mobile: Attachment::new(MOBILE, None, 0),
            place: None,
            stations: (0..stations).map(|n| registry(n, 0)).collect(),
            token: Token::None,
            network: Vec::new(),
            open: Vec::new(),
            requests: 0,
            budget,
            now: Time::ZERO,
            history: Vec::new(),
        }
    }

    /// What distinguishes the state from others.
    fn key(&self) -> String {
        format!("{:?}", Model { history: Vec::new(), ..self.clone() })
    }

    /// Every state that may follow.
    fn steps(&self) -> Vec<Model> {
        let mut next = Vec::new();
        let mut step = |change: &dyn Fn(&mut Model)| {
            let mut model = self.clone();
            change(&mut model);
            next.push(model);
        };
        for n in 0..self.stations.len() {
            if self.budget.moves > 0 && self.place != Some(n) {
                step(&|model| model.move_to(n));
            }
            if self.budget.crashes > 0 {
                step(&|model| model.crash(n));
            }
        }
        if self.budget.tells > 0 && self.mobile.poll_timeout() != Time::NEVER {
            step(&Model::tell);
        }
        for n in 0..self.network.len() {
            step(&|model| {
                let message = model.network.remove(n);
                model.deliver(message);
            });
            if !matches!(self.network[n], Message::ToStation(..) | Message::ToMobile(..)) {
                continue;
            }
            if self.budget.losses > 0 {
                step(&|model| {
                    model.budget.losses -= 1;
                    model.network.remove(n);
                });
            }
            if self.budget.duplicates > 0 {
                step(&|model| {
                    model.budget.duplicates -= 1;
                    let message = model.network[n].clone();
                    model.deliver(message);
                });
            }
        }
        next
    }

    fn move_to(&mut self, to: usize) {
        self.budget.moves -= 1;
        self.history.push(format!("the host moves to {to}"));
        if let Some(from) = self.place {
            self.mobile.on_detached(station(from));
        }
        self.place = Some(to);
        self.mobile.on_attached(self.now, station(to));
    }

    /// The host tells its base station, as is due.
    fn tell(&mut self) {
        self.budget.tells -= 1;
        self.now = self.now.max(self.mobile.poll_timeout());
        if let Some((to, message)) = self.mobile.poll(self.now) {
            self.history.push(format!("the host tells {to}: {:?}", message.message));
            self.network.push(Message::ToStation(number(to), message));
        }
    }

    fn crash(&mut self, n: usize) {
        self.budget.crashes -= 1;
        self.history.push(format!("{n} crashes"));
        self.stations[n] = registry(n, 1 + self.budget.crashes);
        // Its own requests are forgotten, and those to it fail.
        for &(request, from, to) in &self.open.clone() {
            if from == n || to == n {
                self.open.retain(|&(other, ..)| other != request);
                let is_of = |message: &Message| match message {
                    Message::Request(other, ..) | Message::Answer(other, ..) => *other == request,
                    _ => false,
                };
                self.network.retain(|message| !is_of(message));
                if self.token == Token::InAnswer(request) {
                    self.token = Token::Lost;
                }
                if from != n {
                    self.network.push(Message::Answer(request, from, None));
                }
            }
        }
        if self.token == Token::At(n) {
            self.token = Token::Lost;
        }
    }

    fn deliver(&mut self, message: Message) {
        self.history.push(format!("arrives: {message:?}"));
        match message {
            // It reaches the base station only over the hop.
            Message::ToStation(to, message) => {
                self.stations[to].on_attach(self.now, MOBILE, &message);
                self.carry_out(to);
            }
            Message::ToMobile(from, message) => {
                if self.place == Some(from) {
                    self.resume(from, &message);
                }
            }
            Message::Request(n, from, to, request) => {
                self.stations[to].on_request(self.now, &request, station(from), n);
                self.carry_out(to);
            }
            Message::Answer(n, to, reply) => {
                self.open.retain(|&(other, ..)| other != n);
                if self.token == Token::InAnswer(n) {
                    let takes = self.stations[to].fetches(MOBILE);
                    self.token = if takes { Token::At(to) } else { Token::Lost };
                }
                self.stations[to].on_reply(MOBILE, reply);
                self.carry_out(to);
            }
        }
    }

    /// The host learns the outcome of its attachment.
    fn resume(&mut self, from: usize, message: &Mobility) {
        let MobilityMessage::Resume { incarnation, .. } = message.message else { return };
        let has_crashed = incarnation != self.stations[from].incarnation();
        match self.mobile.on_message(self.now, message) {
            Some(Outcome::Complete) => match self.token {
                // From now on it has connections; if the base station has crashed since, without it.
                Token::None => {
                    self.token = if has_crashed { Token::Lost } else { Token::At(from) };
                }
                // It crashed after its answer: the host learns it by the next one.
                Token::Lost if has_crashed => {}
                token => assert_eq!(
                    token,
                    Token::At(from),
                    "the host goes on without its state: {:#?}",
                    self.history
                ),
            },
            Some(Outcome::Lost) => {
                // A base station that has crashed may have known where the state went: then it is given up
                // where it is, and both ends are reset.
                let is_known = self.stations.iter().all(|station| station.incarnation() == 0);
                assert!(
                    !(is_known && matches!(self.token, Token::At(_) | Token::InAnswer(_))),
                    "state is given up that is there: {:#?}",
                    self.history
                );
                self.token = Token::None;
            }
            None => {}
        }
    }

    fn carry_out(&mut self, n: usize) {
        while let Some(action) = self.stations[n].poll() {
            match action {
                Action::Confirm { attachment, outcome, .. } => {
                    let incarnation = self.stations[n].incarnation();
                    let message = MobilityMessage::Resume { outcome, incarnation };
                    let message = Mobility::new(attachment, message);
                    self.network.push(Message::ToMobile(n, message));
                }
                Action::Fetch { request, from } => {
                    self.requests += 1;
                    self.open.push((self.requests, n, number(from)));
                    let message = Message::Request(self.requests, n, number(from), request);
                    self.network.push(message);
                }
                Action::Give { to, .. } => {
                    if self.token == Token::At(n) {
                        self.token = Token::InAnswer(to);
                    }
                    self.answer(to, Reply::State);
                }
                Action::Answer { to, reply, .. } => self.answer(to, reply),
                Action::Release { .. } => {}
                Action::Forget { .. } => {
                    assert_ne!(self.token, Token::At(n), "state is forgotten");
                }
            }
        }
    }

    fn answer(&mut self, to: u32, reply: Reply) {
        if let Some(&(_, from, _)) = self.open.iter().find(|&&(request, ..)| request == to) {
            self.network.push(Message::Answer(to, from, Some(reply)));
        }
    }

    /// Whether the host's base station confirms it, if nothing is lost any more; and the host learns it if
    /// its state is lost.
    fn settles(mut self) -> bool {
        for _ in 0..100 {
            if !self.network.is_empty() {
                let message = self.network.remove(0);
                self.deliver(message);
            } else if self.mobile.is_waiting() || self.token == Token::Lost {
                self.budget.tells += 1;
                self.tell();
            } else {
                return self.open.is_empty();
            }
        }
        false
    }
}

/// Explores all states up to a depth; returns how many there are.
fn explore(stations: usize, budget: Budget, depth: usize) -> usize {
    let mut seen = BTreeSet::new();
    let mut front = vec![Model::new(stations, budget)];
    for _ in 0..depth {
        let mut next = Vec::new();
        for model in front {
            for after in model.steps() {
                if seen.insert(after.key()) {
                    assert!(after.clone().settles(), "it does not settle: {:#?}", after.history);
                    next.push(after);
                }
            }
        }
        front = next;
    }
    seen.len()
}

#[test]
fn the_state_is_where_the_host_is_told_that_it_is() {
    let budget = Budget { moves: 3, tells: 5, losses: 1, duplicates: 1, crashes: 0 };
    let states = explore(2, budget, 11);
    assert!(states > 50_000, "{states}");
}

#[test]
fn a_crash_loses_the_state_and_the_host_is_told() {
    let budget = Budget { moves: 3, tells: 4, losses: 0, duplicates: 0, crashes: 1 };
    let states = explore(3, budget, 11);
    assert!(states > 50_000, "{states}");
}

#[test]
fn a_host_that_moves_to_and_fro_before_any_station_has_answered_keeps_its_state() {
    // Without losses it takes more moves until two stations ask each other.
    let budget = Budget { moves: 4, tells: 4, losses: 0, duplicates: 0, crashes: 0 };
    let states = explore(2, budget, 15);
    assert!(states > 10_000, "{states}");
}

#[test]
fn messages_of_earlier_attachments_change_nothing() {
    let mut here = registry(0, 0);
    let attach = |attachment| {
        let message = MobilityMessage::Attach {
            other: None,
            station: station(0),
            previous: None,
            incarnation: None,
        };
        Keys::new("").sign(MOBILE, Mobility::new(attachment, message))
    };
    here.on_attach(Time::ZERO, MOBILE, &attach(7));
    assert!(matches!(here.poll(), Some(Action::Confirm { attachment: 7, .. })));
    here.on_attach(Time::ZERO, MOBILE, &attach(6));
    assert_eq!(here.poll(), None);
    // A request with it is too late as well.
    let request = |attachment| Request {
        mobile: MOBILE,
        attach: attach(attachment),
        expects: None,
        incarnation: 0,
    };
    here.on_request(Time::ZERO, &request(6), station(0), 1);
    let answer = Action::Answer { mobile: MOBILE, to: 1, reply: Reply::Superseded };
    assert_eq!((here.poll(), here.serves(MOBILE)), (Some(answer), true));
    // Nor may a base station ask for a host that is attached to another one.
    here.on_request(Time::ZERO, &request(8), station(1), 2);
    let answer = Action::Answer { mobile: MOBILE, to: 2, reply: Reply::Superseded };
    assert_eq!((here.poll(), here.serves(MOBILE)), (Some(answer), true));
}

#[test]
fn a_host_without_connections_is_forgotten_when_nothing_was_heard_of_it_for_long() {
    let mut here = registry(0, 0);
    let message = MobilityMessage::Attach {
        other: Some(station(9)),
        station: station(0),
        previous: None,
        incarnation: None,
    };
    here.on_attach(Time::ZERO, MOBILE, &Mobility::new(1, message));
    assert!(matches!(here.poll(), Some(Action::Confirm { .. })));
    let due = here.poll_timeout();
    assert_eq!(due, Time::ZERO + Registry::<u32>::LIFETIME);
    // As long as it has connections by any of its addresses, it is not.
    here.expire(due, |addresses| addresses.contains(&Some(station(9))));
    assert!(here.poll().is_none() && here.serves(MOBILE));
    let later = here.poll_timeout();
    assert_eq!(later, due + Registry::<u32>::LIFETIME);
    here.expire(later, |_| false);
    assert_eq!(here.poll(), Some(Action::Forget { mobile: MOBILE, other: Some(station(9)) }));
    assert_eq!((here.mobile(station(9)), here.poll_timeout()), (None, Time::NEVER));
}
