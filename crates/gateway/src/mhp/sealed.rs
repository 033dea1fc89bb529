//! Messages over a connection, encrypted and authenticated by the key of the network.

use crate::serving::Exchange;
use channel::stream::{self, Secured};
use channel::{HANDSHAKE, PresharedKey, TAG, system_entropy};
use std::io::{self, ErrorKind, Read as _, Write as _};

/// An end of a connection after the handshake. A message is records with the length, 16 bits, in front of each; the last
/// one has no text, so that a message that was cut off is noticed.
pub(crate) struct Sealed<'a> {
    exchange: &'a mut Exchange,
    secured: Secured,
}

/// The longest text of a record.
const LONGEST: usize = u16::MAX as usize - TAG;

fn refused() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "the other end does not have the network's key")
}

fn no_randomness() -> io::Error {
    io::Error::other("no random numbers")
}

impl<'a> Sealed<'a> {
    /// The end that has opened the connection.
    pub(crate) fn initiate(
        exchange: &'a mut Exchange,
        key: &PresharedKey,
    ) -> io::Result<Sealed<'a>> {
        let (initiator, message) =
            stream::initiate(key, &mut system_entropy).ok_or_else(no_randomness)?;
        exchange.write_all(&message)?;
        let mut answer = [0; HANDSHAKE];
        exchange.read_exact(&mut answer)?;
        let secured = initiator.finish(&answer).ok_or_else(refused)?;
        Ok(Sealed { exchange, secured })
    }

    /// The end that has accepted it.
    pub(crate) fn respond(
        exchange: &'a mut Exchange,
        key: &PresharedKey,
    ) -> io::Result<Sealed<'a>> {
        let mut message = [0; HANDSHAKE];
        exchange.read_exact(&mut message)?;
        let (secured, answer) =
            stream::respond(key, &message, &mut system_entropy).ok_or_else(refused)?;
        exchange.write_all(&answer)?;
        Ok(Sealed { exchange, secured })
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let end: &[u8] = &[];
        for text in message.chunks(LONGEST).chain([end]) {
            let mut record = text.to_vec();
            self.secured.seal(&mut record).ok_or_else(refused)?;
            self.exchange.write_all(&(record.len() as u16).to_be_bytes())?;
            self.exchange.write_all(&record)?;
        }
        self.exchange.flush()
    }

    /// Receives a message of at most `most` bytes.
    pub(crate) fn receive(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut message = Vec::new();
        loop {
            let mut len = [0; 2];
            self.exchange.read_exact(&mut len)?;
            let mut record = vec![0; u16::from_be_bytes(len).into()];
            self.exchange.read_exact(&mut record)?;
            self.secured.open(&mut record).ok_or_else(refused)?;
            if record.is_empty() {
                return Ok(message);
            }
            if message.len() + record.len() > most {
                let text = format!("a message of more than {most} bytes");
                return Err(io::Error::new(ErrorKind::InvalidData, text));
            }
            message.extend_from_slice(&record);
        }
    }
}
