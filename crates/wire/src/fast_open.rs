//! The Fast Open option of a SYN (RFC 7413 §4.1.1).
//!
//! Only SYNs have it, so it stays among the unparsed options, and costs the headers of other
//! segments nothing.

use crate::UnparsedOptions;
use core::fmt;
use serde::{Deserialize, Serialize};

/// The kind of the option.
const KIND: u8 = 34;

/// The cookie in a Fast Open option: 4 to 16 bytes, or none in a request for one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FastOpenCookie {
    len: u8,
    bytes: [u8; FastOpenCookie::MOST],
}

impl FastOpenCookie {
    /// The most bytes of a cookie.
    pub const MOST: usize = 16;

    /// The request for a cookie.
    pub const REQUEST: FastOpenCookie = FastOpenCookie { len: 0, bytes: [0; Self::MOST] };

    /// A cookie of an even number of bytes, 4 to 16, or the request; `None` for other lengths.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<FastOpenCookie> {
        if !matches!(bytes.len(), 0 | 4 | 6 | 8 | 10 | 12 | 14 | 16) {
            return None;
        }
        let mut cookie = FastOpenCookie { len: bytes.len() as u8, ..Self::REQUEST };
        cookie.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(cookie)
    }

    /// Its bytes; none in a request.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Whether it is the request for a cookie.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for FastOpenCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FastOpenCookie({:02x?})", self.as_bytes())
    }
}

impl UnparsedOptions {
    /// The Fast Open option; the last, if there are several. One of another length is ignored (RFC
    /// 7413 §4.1.1).
    #[must_use]
    pub fn fast_open(&self) -> Option<FastOpenCookie> {
        let mut rest = self.tcp_options();
        let mut found = None;
        while let [kind, len, ..] = *rest {
            // What was parsed has lengths of two or more, within the options.
            let (option, behind) = rest.split_at_checked(usize::from(len).max(2))?;
            if kind == KIND {
                found = FastOpenCookie::new(&option[2..]).or(found);
            }
            rest = behind;
        }
        found
    }

    /// Adds a Fast Open option; false, without effect, if there is no room for it.
    pub fn add_fast_open(&mut self, cookie: &FastOpenCookie) -> bool {
        let bytes = cookie.as_bytes();
        let mut option = [0; 2 + FastOpenCookie::MOST];
        option[..2].copy_from_slice(&[KIND, 2 + bytes.len() as u8]);
        option[2..2 + bytes.len()].copy_from_slice(bytes);
        self.keep_tcp(&option[..2 + bytes.len()]).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[u8]) -> Option<FastOpenCookie> {
        let mut unparsed = UnparsedOptions::NONE;
        unparsed.set_tcp_options(options).unwrap();
        unparsed.fast_open()
    }

    #[test]
    fn a_cookie_is_written_and_read() {
        for len in [0, 4, 6, 8, 10, 12, 14, 16] {
            let cookie = FastOpenCookie::new(&[7; 16][..len]).unwrap();
            let mut unparsed = UnparsedOptions::NONE;
            assert!(unparsed.add_fast_open(&cookie));
            assert_eq!(unparsed.tcp_options()[..2], [34, 2 + len as u8]);
            assert_eq!((unparsed.fast_open(), cookie.is_request()), (Some(cookie), len == 0));
        }
        let mut full = UnparsedOptions::NONE;
        full.set_tcp_options(&[[99, 20].as_slice(), &[0; 18]].concat().repeat(2)).unwrap();
        assert!(!full.add_fast_open(&FastOpenCookie::REQUEST));
    }

    #[test]
    fn a_cookie_of_an_invalid_length_is_ignored() {
        for len in [1, 2, 3, 5, 7, 17, 18] {
            assert_eq!(FastOpenCookie::new(&[0; 18][..len]), None);
            let option = [&[34, 2 + len as u8], &[0; 18][..len]].concat();
            assert_eq!(read(&option), None);
            assert_eq!(read(&[&[34, 6, 1, 2, 3, 4], &option[..]].concat()).unwrap().len, 4);
        }
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[99, 4, 34, 2]), None, "inside of another option");
        assert_eq!(read(&[99, 3, 0, 34, 2]), Some(FastOpenCookie::REQUEST));
    }
}
