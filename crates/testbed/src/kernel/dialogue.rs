//! Requests and responses between sockets.

use super::transfer::{Reader, Writer};
use super::{FlowEnd, client_port, leave};
use crate::state::Ended;
use base::{Histogram, Time};
use host::Dialogue;
use lab::{Account, Part};
use scenario::port;
use socket2::Socket;
use std::net::Shutdown;

/// What the requesting end counted.
#[derive(Default)]
struct Asked {
    received: u64,
    asked: u64,
    responses: Histogram,
    finished_at: Option<Time>,
    wrong: u64,
}

impl FlowEnd<'_> {
    /// Sends requests, each after the response to the previous one.
    pub(super) fn ask(&self, dialogue: Dialogue) {
        let mut told = Asked::default();
        let result = self.state.sleep_until(self.flow.start);
        let result = result.and_then(|()| self.connect(port(self.index))).and_then(|socket| {
            let result = self.ask_over(&socket, dialogue, &mut told);
            leave(self.state, &socket);
            result
        });
        let over = !matches!(result, Err(Ended::Over));
        let Asked { received, asked, responses, finished_at, wrong: misplaced } = told;
        let part = Part::Requester { received, asked, responses, finished_at };
        let transfer = u64::from(port(self.index));
        self.enter(Account { part, transfer, over, misplaced });
    }

    fn ask_over(&self, socket: &Socket, dialogue: Dialogue, told: &mut Asked) -> Result<(), Ended> {
        let Dialogue { request, response, think, rounds } = dialogue;
        let mut writer = Writer { state: self.state, socket, flow: self.index, asks: true, at: 0 };
        let mut reader = Reader::new(self.state, socket, self.index, false);
        while rounds.is_none_or(|rounds| told.asked < rounds) {
            if told.asked > 0 {
                self.state.sleep_until(self.state.clock.now() + think)?;
            }
            let asked_at = self.state.clock.now();
            told.asked += 1;
            writer.write(request)?;
            while reader.at < told.asked * response {
                let read = reader.read(told.asked * response - reader.at)?;
                (told.received, told.wrong) = (reader.at, reader.wrong);
                if read == 0 {
                    return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
                }
            }
            told.responses.record(self.state.clock.now().since(asked_at).as_nanos());
        }
        told.finished_at = Some(self.state.clock.now());
        socket.shutdown(Shutdown::Write)?;
        while reader.read(1)? > 0 {}
        Ok(())
    }

    /// Answers every complete request, until the end of the data.
    pub(super) fn answer(&self, socket: &Socket, dialogue: Dialogue) {
        let transfer = client_port(socket.peer_addr());
        let mut reader = Reader::new(self.state, socket, self.index, true);
        let result = self.answer_over(socket, dialogue, &mut reader);
        self.enter_sender(Some(socket), None, &result, transfer, reader.wrong);
    }

    fn answer_over(
        &self,
        socket: &Socket,
        Dialogue { request, response, .. }: Dialogue,
        reader: &mut Reader<'_>,
    ) -> Result<(), Ended> {
        let mut writer = Writer { state: self.state, socket, flow: self.index, asks: false, at: 0 };
        let mut answered = 0;
        while reader.read(u64::MAX)? > 0 {
            while reader.at >= (answered + 1) * request {
                writer.write(response)?;
                answered += 1;
            }
        }
        Ok(())
    }
}
