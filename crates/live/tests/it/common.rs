//! What tests with namespaces share.

use live::Namespace;
use std::io::Write as _;

/// Whether namespaces may be made here. If not, a test that needs them says so loudly and ends.
pub(crate) fn permitted(test: &str) -> bool {
    match Namespace::create(&format!("probe-{test}")) {
        Ok(_) => true,
        Err(error) => {
            // What is printed is not shown of tests that pass, but what is written is.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED {test}: needs namespaces and /dev/net/tun, as root ({error})"
            );
            false
        }
    }
}
