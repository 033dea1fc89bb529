//! Transfers whose content is checked.

use crate::common::content;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Answers each connection: so many bytes each way, as its first bytes say.
pub(super) fn serve(listener: &TcpListener) {
    for stream in listener.incoming().map_while(Result::ok) {
        thread::spawn(move || {
            let _ = answer(stream);
        });
    }
}

/// How long a transfer may stand still. The kernel's TCP at its ends waits for up to two minutes between its
/// retransmissions (TCP_RTO_MAX), and here most of what would let them pass may be lost for as long.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = [0; 16];
    stream.read_exact(&mut head)?;
    let [number, len] = [&head[..8], &head[8..]].map(|b| u64::from_be_bytes(b.try_into().unwrap()));
    let mut sending = stream.try_clone()?;
    let writing = thread::spawn(move || {
        let sent = sending.write_all(&content(number + 1, len as usize));
        sent.and_then(|()| sending.shutdown(Shutdown::Write))
    });
    let mut got = vec![0; len as usize];
    stream.read_exact(&mut got)?;
    assert!(got == content(number, len as usize), "the upload {number} is wrong");
    writing.join().unwrap()
}

/// A transfer in both directions. Returns whether it is whole; it may be reset instead.
pub(super) fn transfer(stream: TcpStream, number: u64, len: usize) -> bool {
    slow_transfer(stream, number, len, Duration::ZERO)
}

/// One that lasts so long at least.
pub(super) fn slow_transfer(stream: TcpStream, number: u64, len: usize, lasts: Duration) -> bool {
    let run = || -> std::io::Result<()> {
        let mut sending = stream.try_clone()?;
        let writing = thread::spawn(move || {
            let head = [number.to_be_bytes(), (len as u64).to_be_bytes()].concat();
            sending.write_all(&head)?;
            for part in content(number, len).chunks(len.div_ceil(50).max(1)) {
                sending.write_all(part)?;
                thread::sleep(lasts / 50);
            }
            Ok::<(), std::io::Error>(())
        });
        let mut got = Vec::new();
        let read = (&stream).take(len as u64 + 1).read_to_end(&mut got);
        // Of the two, only one is told of a reset.
        writing.join().unwrap()?;
        read?;
        assert!(
            got == content(number + 1, len),
            "{} of {len} bytes of {number}, port {}",
            got.len(),
            stream.local_addr()?.port()
        );
        Ok(())
    };
    match run() {
        Ok(()) => true,
        Err(error) => {
            let may_be = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
            assert!(
                may_be.contains(&error.kind()),
                "transfer {number}, {:?}: {error}",
                stream.local_addr()
            );
            false
        }
    }
}
