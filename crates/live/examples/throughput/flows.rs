//! Connections that carry so many bytes one way, at the same time.

use base::Time;
use host::Opening;
use live::{Bytes, Clock, Program, Socket, Stream};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{self, Sender};
use tcp::Events;

use crate::kernel;
use crate::path::{FAR, Path, config, congestion, cpu, ip};

const CHUNK: usize = 256 << 10;

/// Our end of a connection.
pub(crate) struct Bulk {
    send: u64,
    received: u64,
    block: &'static [u8],
    done: Sender<u64>,
}

impl Program for Bulk {
    fn handle(&mut self, _: Time, socket: &mut Socket<'_>, events: Events) {
        while let len @ 1.. = socket.chunk().len() {
            socket.consume(len);
            self.received += len as u64;
        }
        while self.send > 0 {
            let most = self.send.min(self.block.len() as u64) as usize;
            let len = socket.write_bytes(&mut Bytes::from_static(&self.block[..most]));
            self.send -= len as u64;
            if len < most {
                return;
            }
        }
        if events.intersects(Events::CONNECTED | Events::WRITABLE) && self.block.len() > 1 {
            socket.close();
        }
        if events.contains(Events::PEER_CLOSED) {
            socket.close();
            let _ = self.done.send(self.received);
        }
    }
}

fn send(mut stream: TcpStream, size: u64) {
    let block = vec![7; CHUNK];
    let mut left = size;
    while left > 0 {
        left -= stream.write(&block[..block.len().min(left as usize)]).unwrap() as u64;
    }
    stream.shutdown(Shutdown::Write).unwrap();
    let _ = stream.read(&mut [0]);
}

fn receive(mut stream: TcpStream) -> u64 {
    let mut buffer = vec![0; CHUNK];
    let mut received = 0;
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return received,
            len => received += len as u64,
        }
    }
}

/// A connection of the kernel's, in the calling thread. Returns the bytes received.
fn transfer(stream: TcpStream, sends: bool, size: u64) -> u64 {
    if sends {
        send(stream, size);
        return 0;
    }
    receive(stream)
}

/// The stack at the near end.
#[derive(Clone, Copy)]
pub(crate) enum Near {
    /// Ours with this number.
    Ours(usize),
    Kernel,
}

impl Near {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Near::Ours(_) => "ours",
            Near::Kernel => "kernel",
        }
    }

    /// The workers of our stack.
    pub(crate) fn workers(self, path: &Path) -> Option<usize> {
        match self {
            Near::Ours(stack) => Some(path.stacks[stack].hosts().len()),
            Near::Kernel => None,
        }
    }
}

/// One measurement.
pub(crate) struct Measurement {
    /// The far end's port.
    pub(crate) port: u16,
    pub(crate) near: Near,
    pub(crate) near_sends: bool,
    /// Connections at the same time.
    pub(crate) flows: usize,
    /// Bytes of all connections.
    pub(crate) bytes: u64,
}

impl Measurement {
    /// The bytes of each connection.
    fn size(&self) -> u64 {
        self.bytes / self.flows as u64
    }

    pub(crate) fn run(&self, path: &Path) -> Value {
        let far_end = SocketAddr::new(ip(FAR), self.port);
        let listener = path.far.run(|| kernel::listen(far_end, &congestion()).unwrap()).unwrap();
        let (start, before) = (Clock::start(), cpu());
        let (size, sends) = (self.size(), self.near_sends);
        let far = (0..self.flows).map(|_| {
            let listener = listener.try_clone().unwrap();
            std::thread::spawn(move || {
                transfer(kernel::accept(&listener, &congestion()).unwrap(), !sends, size)
            })
        });
        let far: Vec<_> = far.collect();
        let near: u64 = match self.near {
            Near::Ours(stack) => self.ours(path, stack),
            Near::Kernel => {
                let connect = || kernel::connect(far_end, &congestion()).unwrap();
                let near = (0..self.flows).map(|_| {
                    let stream = path.near.run(connect).unwrap();
                    std::thread::spawn(move || transfer(stream, sends, size))
                });
                let near: Vec<_> = near.collect();
                near.into_iter().map(|thread| thread.join().unwrap()).sum()
            }
        };
        let far: u64 = far.into_iter().map(|thread| thread.join().unwrap()).sum();
        let seconds = start.now().as_nanos() as f64 / 1e9;
        let after = cpu();
        let received = if sends { far } else { near };
        assert_eq!(received, size * self.flows as u64);
        let gigabytes = received as f64 / 1e9;
        json!({
            "stack": self.near.name(),
            "workers": self.near.workers(path),
            "flows": self.flows,
            "way": if sends { "sends" } else { "receives" },
            "gbps": gigabytes * 8.0 / seconds,
            "own_cpu_s_per_gb": (after.0 - before.0) / gigabytes,
            "machine_cpu_s_per_gb": (after.1 - before.1) / gigabytes,
        })
    }

    /// Opens connections of ours, and waits for their ends. Returns the bytes received.
    fn ours(&self, path: &Path, stack: usize) -> u64 {
        let (finished, done) = mpsc::channel();
        let config = config(self.flows);
        for _ in 0..self.flows {
            let program = Bulk {
                send: if self.near_sends { self.size() } else { 0 },
                received: 0,
                block: if self.near_sends { &[7; CHUNK] } else { &[7] },
                done: finished.clone(),
            };
            let opening = Opening {
                at: Time::ZERO,
                remote: ip(FAR),
                remote_port: self.port,
                local: None,
                local_port: None,
                config: config.clone(),
                application: Stream::new(program, config.receive_window.maximum.into()),
            };
            path.stacks[stack].connect(opening).unwrap().unwrap();
        }
        done.iter().take(self.flows).sum()
    }
}
