//! Descriptors that a process keeps when it executes another program.

use rustix::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use rustix::io::{FdFlags, Result, fcntl_setfd};

/// Lets the program that this process executes next have a descriptor, by this number; or, with `false`, not.
///
/// # Errors
/// Those of `fcntl`.
pub fn pass_on(descriptor: impl AsFd, passes: bool) -> Result<RawFd> {
    let flags = if passes { FdFlags::empty() } else { FdFlags::CLOEXEC };
    fcntl_setfd(&descriptor, flags)?;
    Ok(descriptor.as_fd().as_raw_fd())
}

/// A descriptor with which this program was executed ([`pass_on`]). The caller owns it: it is to be called once
/// for a number, before the process opens anything.
///
/// # Errors
/// If there is no such descriptor.
pub fn inherited(number: RawFd) -> Result<OwnedFd> {
    if number < 0 {
        return Err(rustix::io::Errno::BADF);
    }
    #[expect(unsafe_code, reason = "the number is all that an executed program has")]
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    // It fails if there is none.
    fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    #[expect(
        unsafe_code,
        reason = "it is open, and nothing else in this process has it: see above"
    )]
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::fcntl_getfd;

    #[test]
    fn what_is_not_open_is_not_inherited() {
        assert_eq!(inherited(-1).err(), Some(rustix::io::Errno::BADF));
        assert_eq!(inherited(1_000_000).err(), Some(rustix::io::Errno::BADF));
    }

    #[test]
    fn a_descriptor_is_passed_on_only_if_that_was_said() {
        let (read, _write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let number = pass_on(&read, true).unwrap();
        assert_eq!(number, read.as_raw_fd());
        assert_eq!(fcntl_getfd(&read).unwrap(), FdFlags::empty());
        pass_on(&read, false).unwrap();
        assert_eq!(fcntl_getfd(&read).unwrap(), FdFlags::CLOEXEC);
        // As by the executed program.
        let again = inherited(std::os::fd::IntoRawFd::into_raw_fd(read)).unwrap();
        assert_eq!((again.as_raw_fd(), fcntl_getfd(&again).unwrap()), (number, FdFlags::CLOEXEC));
    }
}
