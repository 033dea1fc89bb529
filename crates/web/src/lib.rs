//! The lab for browsers, compiled to WebAssembly.
//!
//! The page and the module talk in JSON: [`answer`] takes the text of a request and returns that of
//! its answer. The exports ([`answer_request`]) carry these texts through the module's memory, so that no
//! generated glue is needed.

mod exports;
mod frames;
mod request;
mod run;

pub use exports::{answer_length, answer_request, request_buffer};
pub use request::answer;
