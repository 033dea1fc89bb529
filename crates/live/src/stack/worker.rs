//! The thread that drives a host.

use super::announced::Announced;
use super::port::Port;
use super::{Counts, Ended, Listener, Stack};
use crate::Clock;
use crate::pool;
use crate::steering::{PassedOn, Steering};
use crate::tun::VIRTIO_HEADER_LEN;
use crate::virtio;
use base::{Duration, Time};
use core::num::NonZeroU64;
use host::{Application, Bytes, Host, HostIndication};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use tcp::State;
use wire::Packet;

/// Packets that are read before anything is sent and timers are looked at.
const TURN: usize = 16;

/// A request to the host.
type Call<A> = Box<dyn FnOnce(Time, &mut Host<A>) + Send>;

/// What the thread is asked for.
pub(super) enum Command<A> {
    /// To pass on what the network knows.
    Indicate(HostIndication),
    /// To call something.
    Call(Call<A>),
    /// To end, after so long at the latest.
    Stop(Duration),
}

/// A packet that another worker has read, with the buffer that has it, and the place of its payload there.
pub(super) struct HandedOver {
    packet: Packet,
    buffer: Vec<u8>,
    payload: Range<usize>,
}

/// Everything that the thread has.
pub(super) struct Worker<A> {
    host: Host<A>,
    announced: Announced,
    port: Port,
    /// Those of the device are counted there.
    counts: Counts,
    clock: Clock,
    listener: Option<Listener>,
    commands: Receiver<Command<A>>,
    bell: Arc<OwnedFd>,
    /// When to end at the latest.
    end: Option<Time>,
    /// Says to the owner that the device was removed.
    removed: Arc<AtomicBool>,
    /// What it has to do with the other workers of its device, if there are any.
    steering: Option<Steering<HandedOver>>,
}

impl<A: Application + Bytes + Send> Worker<A> {
    pub(super) fn new(
        stack: Stack<A>,
        commands: Receiver<Command<A>>,
        bell: Arc<OwnedFd>,
        removed: Arc<AtomicBool>,
        steering: Option<Steering<HandedOver>>,
    ) -> Worker<A> {
        let Stack { host, tun, clock, listener, copies } = stack;
        let port = Port::new(tun, copies);
        let announced = Announced::default();
        Worker {
            host,
            announced,
            port,
            counts: Counts::default(),
            clock,
            listener,
            commands,
            bell,
            end: None,
            removed,
            steering,
        }
    }

    pub(super) fn run(mut self) -> Ended<A> {
        // Otherwise a timer may be 50 us late. It cannot fail for the calling thread.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut buffer = pool::take();
        loop {
            let more = self.take_handed_over() | self.read(&mut buffer);
            self.obey();
            let now = self.clock.now();
            if self.host.poll_timeout() <= now {
                self.host.handle_timeout(now);
            }
            self.port.device.flush();
            self.transmit(now);
            if self.port.device.removed {
                self.host.fail_connections(now);
                self.removed.store(true, Ordering::Release);
                return self.end(now);
            }
            if self.end.is_some_and(|end| end <= now || self.is_over()) {
                return self.end(now);
            }
            if !more {
                self.sleep(now);
            }
        }
    }

    /// Processes packets that other workers have read. Says whether there may be more. They come
    /// first: what is in the worker's own queue is probably later.
    fn take_handed_over(&mut self) -> bool {
        for _ in 0..TURN {
            let Some(handed_over) = self.steering.as_mut().and_then(Steering::next) else {
                return false;
            };
            let HandedOver { packet, buffer, payload } = handed_over;
            let _ = self.host.handle_buffer(self.clock.now(), &packet, buffer, payload);
        }
        true
    }

    /// Reads what is there. Says whether there may be more.
    fn read(&mut self, buffer: &mut Vec<u8>) -> bool {
        let mut more = true;
        for _ in 0..TURN {
            let Some(len) = self.port.device.read(buffer) else {
                more = false;
                break;
            };
            // What was announced of it was so before it was written.
            self.obey();
            self.take_in(buffer, len);
        }
        if let Some(steering) = &mut self.steering {
            steering.wake();
        }
        more
    }

    /// Processes a packet of `len` bytes in `buffer`, or hands it over to its worker. The buffer may
    /// be another then.
    fn take_in(&mut self, buffer: &mut Vec<u8>, len: usize) {
        let Some((header, bytes)) = buffer[..len].split_at_checked(VIRTIO_HEADER_LEN) else {
            return;
        };
        let parsed = match virtio::is_verified(header) {
            true => Packet::parse_trusted(bytes),
            false => Packet::parse(bytes),
        };
        let (mut packet, payload) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return self.host.refuse(&error),
        };
        if let Some(copies) = &self.port.copies {
            copies.mark(&mut packet);
        }
        let payload = VIRTIO_HEADER_LEN + payload.start..VIRTIO_HEADER_LEN + payload.end;
        if let Some(steering) = &mut self.steering {
            let hand_over = || {
                // Small packets are copied: what waits takes about the memory of its bytes.
                let buffer = match len < buffer.len() / 2 {
                    true => buffer[..len].to_vec(),
                    false => std::mem::replace(buffer, pool::take()),
                };
                HandedOver { packet, buffer, payload: payload.clone() }
            };
            match steering.pass_on(&packet, hand_over) {
                PassedOn::Own => {}
                PassedOn::HandedOver => return self.counts.handed_over += 1,
                PassedOn::Dropped => return self.counts.overflowed += 1,
            }
        }
        let (now, read) = (self.clock.now(), std::mem::take(buffer));
        self.announced.tell(now, &packet, &mut self.host);
        let read = self.host.handle_buffer(now, &packet, read, payload);
        *buffer = read.unwrap_or_else(pool::take);
    }

    /// Does what was asked for.
    fn obey(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Indicate(indication) => {
                    self.announced.take(self.clock.now(), &indication, &mut self.host);
                }
                Command::Call(call) => call(self.clock.now(), &mut self.host),
                Command::Stop(patience) => self.end = Some(self.clock.now() + patience),
            }
        }
    }

    fn transmit(&mut self, now: Time) {
        // When it wants to be woken is asked anyway.
        let _ = self.host.transmit(now, &mut self.port);
        while let Some((id, event)) = self.host.poll_event() {
            if let Some(listener) = &mut self.listener {
                listener(now, id, event);
            }
        }
    }

    /// Sleeps until there is something to do.
    fn sleep(&mut self, now: Time) {
        let due = self.host.poll_timeout().min(self.end.unwrap_or(Time::NEVER));
        let nanos = due.since(now).as_nanos();
        let timeout = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        let mut device = PollFlags::IN;
        device.set(PollFlags::OUT, self.port.device.is_blocked());
        let mut watched =
            [PollFd::new(&*self.bell, PollFlags::IN), PollFd::new(&self.port.device.tun, device)];
        // Whatever it says, everything is looked at: only for how long it sleeps matters.
        let _ = poll(&mut watched, (due < Time::NEVER).then_some(&timeout));
        let rings = !watched[0].revents().is_empty();
        self.counts.slept += 1;
        if rings {
            let _ = rustix::io::read(&*self.bell, &mut [0u8; 8]);
        }
    }

    /// Whether no connection has anything left to do.
    fn is_over(&self) -> bool {
        let over = |state| matches!(state, State::Closed | State::TimeWait);
        self.host.connections().all(|(_, connection, _)| over(connection.state()))
    }

    /// Resets what is not over.
    fn end(mut self, now: Time) -> Ended<A> {
        let all: Vec<_> =
            self.host.connections().map(|(id, connection, _)| (id, connection.state())).collect();
        let mut reset = 0;
        for (id, state) in all {
            reset += u64::from(!matches!(state, State::Closed | State::TimeWait));
            self.host.access(now, id, |connection, _| connection.abort());
        }
        self.transmit(now);
        self.port.device.flush();
        let counts = Counts { device: self.port.device.counts, ..self.counts };
        Ended { host: self.host, counts, reset, removed: self.port.device.removed }
    }
}
