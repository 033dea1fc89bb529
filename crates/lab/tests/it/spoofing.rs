//! TCP spoofing: a gateway before a satellite link splits the connections that pass.

use crate::common::{error, run};
use lab::Row;

/// A server on the Internet, 30 ms from a gateway, and a user behind a satellite link of 10 Mbit/s
/// and 250 ms. `gateway` is what the gateway has, `flow` what the download has besides its ends.
fn download(gateway: &str, flow: &str) -> String {
    format!(
        "title = \"download\"\nduration = \"60 s\"\n[nodes]\nserver = {{}}\ngateway = {{ {gateway} }}\n\
         user = {{}}\n[[links]]\nbetween = [\"server\", \"gateway\"]\nrate = \"50 Mbit/s\"\n\
         delay = \"30 ms\"\nqueue = \"250 packets\"\n[[links]]\nbetween = [\"gateway\", \"user\"]\n\
         rate = \"10 Mbit/s\"\ndelay = \"250 ms\"\nqueue = \"420 packets\"\n[[flows]]\nfrom = \"server\"\n\
         to = \"user\"\n{flow}\n"
    )
}

fn spoofed(settings: &str, flow: &str) -> String {
    download(&format!("boxes = [{{ box = \"spoofer\"{settings} }}]"), flow)
}

const SIZED: &str = "traffic = { size = \"3 MB\" }";

fn row(text: &str) -> Row {
    run(text).rows.remove(0)
}

#[test]
fn a_split_transfer_is_whole_and_faster() {
    let (split, whole) = (row(&spoofed("", SIZED)), row(&download("", SIZED)));
    assert_eq!((split.payload_bytes, split.misplaced), (3_000_000, 0));
    let times = (split.completed_s, whole.completed_s);
    assert!(times.0 < times.1, "{times:?}");
}
