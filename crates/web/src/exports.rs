//! What JavaScript calls. A module of WebAssembly passes numbers alone; texts are in its memory.
//!
//! The page asks for a buffer, writes a request there, and reads the answer from where it is told.

// Exports need names that the compiler does not change, which it takes for unsafe: two of one name
// would be confused. These are the only ones.
#![allow(unsafe_code)]

use crate::request::answer;
use std::cell::RefCell;

thread_local! {
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The address of a buffer for a request of so many bytes. The one before is gone.
#[unsafe(no_mangle)]
pub extern "C" fn request_buffer(length: usize) -> *mut u8 {
    REQUEST.with_borrow_mut(|request| {
        request.clear();
        request.resize(length, 0);
        request.as_mut_ptr()
    })
}

/// Answers the request that is in the buffer, and returns the answer's address. It stays until the
/// next.
#[unsafe(no_mangle)]
pub extern "C" fn answer_request() -> *const u8 {
    let text = REQUEST.with_borrow(|request| answer(&String::from_utf8_lossy(request)));
    ANSWER.with_borrow_mut(|answer| {
        *answer = text.into_bytes();
        answer.as_ptr()
    })
}

/// The bytes of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_length() -> usize {
    ANSWER.with_borrow(Vec::len)
}
