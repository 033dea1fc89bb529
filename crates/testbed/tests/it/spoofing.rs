//! The spoofer of the lab, between two kernels.

use crate::common::{at_once, complete, run};

/// A server, a gateway and a user behind a link of 150 ms, over this version of IP.
fn download(gateway: &str, ip: &str) -> String {
    format!(
        "title = \"download\"\nduration = \"6 s\"\n[nodes]\nserver = {{}}\ngateway = {{ {gateway} }}\n\
         user = {{}}\n[[links]]\nbetween = [\"server\", \"gateway\"]\nrate = \"20 Mbit/s\"\n\
         delay = \"10 ms\"\nqueue = \"200 packets\"\n[[links]]\nbetween = [\"gateway\", \"user\"]\n\
         rate = \"4 Mbit/s\"\ndelay = \"150 ms\"\nqueue = \"100 packets\"\nerrors = {{ packet = 0.002 }}\n\
         [[flows]]\nfrom = \"server\"\nto = \"user\"\nstack = \"linux\"\nip = {ip}\n\
         traffic = {{ size = \"300 kB\" }}\n"
    )
}

#[test]
fn two_kernels_do_not_notice_that_their_connection_is_split() {
    let spoofer = "boxes = [{ box = \"spoofer\", cache = \"500 kB\" }]";
    let outcomes = at_once(["4", "6"], |ip| {
        run(&download(spoofer, ip)).inspect(|outcome| {
            complete(&outcome.run.rows[0], 300_000);
            let counts = &outcome.run.box_counts;
            let split = counts.iter().find(|one| one.name == "split connections");
            assert_eq!(split.map(|one| one.count), Some(1), "{ip}: {counts:?}");
        })
    });
    drop(outcomes);
}
