//! `poll(2)` and `epoll(7)`.

use super::{User, nothing, now, reply, shared};
use crate::epoll::Change;
use crate::stack::Stack;
use base::Duration;
use core::ptr;
use libc::{c_int, epoll_event, nfds_t, pollfd};
use rustix::io::Errno;

/// A timeout in milliseconds; a negative one is none.
fn timeout(milliseconds: c_int) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// The default value for a result that is not there in time.
fn or_none<T: Default>(result: Result<T, Errno>) -> Result<T, Errno> {
    if matches!(result, Err(Errno::AGAIN)) { Ok(T::default()) } else { result }
}

pub(super) unsafe extern "C" fn poll(
    _: User,
    fds: *mut pollfd,
    count: nfds_t,
    milliseconds: c_int,
) -> c_int {
    // SAFETY: as of poll(2).
    let fds = match (fds.is_null(), count) {
        (true, 1..) => return nothing(Err(Errno::FAULT)),
        (true, 0) => &mut [],
        (false, _) => unsafe { core::slice::from_raw_parts_mut(fds, count as usize) },
    };
    let asked: Vec<_> = fds.iter().map(|entry| (entry.fd, entry.events as u32)).collect();
    let result = shared().and_then(|shared| {
        or_none(shared.wait_for(true, timeout(milliseconds), |stack| {
            let ready = stack.poll(&asked);
            if ready.iter().all(|ready| *ready == 0) { Err(Errno::AGAIN) } else { Ok(ready) }
        }))
    });
    let counted = result.map(|ready| {
        let ready = ready.into_iter().chain(core::iter::repeat(0));
        for (entry, ready) in fds.iter_mut().zip(ready) {
            entry.revents = ready as i16;
        }
        fds.iter().filter(|entry| entry.revents != 0).count() as i64
    });
    reply(counted)
}

pub(super) extern "C" fn epoll_create(_: User, size: c_int) -> c_int {
    let size = if size > 0 { Ok(()) } else { Err(Errno::INVAL) };
    reply(size.and_then(|()| now(Stack::epoll_create)).map(i64::from))
}

pub(super) unsafe extern "C" fn epoll_ctl(
    _: User,
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    if event.is_null() && operation != libc::EPOLL_CTL_DEL {
        return nothing(Err(Errno::FAULT));
    }
    let change = match operation {
        libc::EPOLL_CTL_DEL => Change::Delete,
        libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD => {
            // SAFETY: as of epoll_ctl(2).
            let epoll_event { events, u64: data } = unsafe { ptr::read_unaligned(event) };
            match operation {
                libc::EPOLL_CTL_ADD => Change::Add { events, data },
                _ => Change::Modify { events, data },
            }
        }
        _ => return nothing(Err(Errno::INVAL)),
    };
    nothing(now(|stack| stack.epoll_change(epoll, fd, change)))
}

pub(super) unsafe extern "C" fn epoll_wait(
    _: User,
    epoll: c_int,
    into: *mut epoll_event,
    most: c_int,
    milliseconds: c_int,
) -> c_int {
    let result =
        usize::try_from(most).ok().filter(|most| *most > 0).ok_or(Errno::INVAL).and_then(|most| {
            or_none(shared()?.wait_for(true, timeout(milliseconds), |stack| {
                let ready = stack.epoll_ready(epoll, most)?;
                if ready.is_empty() { Err(Errno::AGAIN) } else { Ok(ready) }
            }))
        });
    let counted = result.map(|ready| {
        for (index, &(events, data)) in ready.iter().enumerate() {
            // SAFETY: as of epoll_wait(2): there is room for `most`.
            unsafe { ptr::write_unaligned(into.add(index), epoll_event { events, u64: data }) };
        }
        ready.len() as i64
    });
    reply(counted)
}
