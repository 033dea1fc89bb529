//! What a packet costs the kernel that marks it: nanoseconds, as the kernel measures runs of the program. As root.
//!
//! Prints one line of JSON for each kind of packet: one of IPv4, at which the program returns at once, so that this is
//! what it takes to run any; one without the option, as nearly all are; and one of a flow with the option, while so many
//! flows are known.

#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use base::Duration;
    use marker::{Marker, Settings};

    /// Runs of one packet.
    const TIMES: u32 = 1_000_000;

    let idle = Duration::from_secs(60);
    let settings = Settings { flows: 65_536, idle, interface: 0, link_header: 14 };
    let mut marker = Marker::load(&settings)?;
    let plain = frame(0, 6, &[]);
    let mut other = plain.clone();
    [other[12], other[13], other[14]] = [0x08, 0x00, 0x45];
    let mut left = vec![0; plain.len()];
    for (name, packet) in [("IPv4", other), ("without the option", plain)] {
        let each = marker.run(&packet, &mut left, TIMES)?.each.as_nanos();
        println!("{{\"packet\": \"{name}\", \"nanoseconds\": {each}}}");
    }
    let mut known = 0;
    for flows in [1, 1000, 60_000] {
        let mut marked = Vec::new();
        while known < flows {
            marked = frame(known, 60, &OPTION);
            left.resize(marked.len(), 0);
            marker.run(&marked, &mut left, 1)?;
            known += 1;
        }
        let each = marker.run(&marked, &mut left, TIMES)?.each.as_nanos();
        // The last of its runs has no more than this packet, which comes again and again.
        assert_eq!(left[14 + 40 + 20..14 + 40 + 28], [0, 0, 0, 1, 0, 0, 0, 1]);
        println!("{{\"packet\": \"marked\", \"flows\": {flows}, \"nanoseconds\": {each}}}");
    }
    Ok(())
}

/// The option, empty, in its header in front of ESP.
const OPTION: [u8; 32] = {
    let mut header = [0; 32];
    [header[0], header[1], header[2], header[3]] = [50, 3, 0x3e, 24];
    [header[28], header[29]] = [1, 2];
    header
};

/// A packet of a flow behind a header of Ethernet, of 1400 bytes in all, with the number 1 if it is one of ESP.
fn frame(label: u32, first: u8, extension: &[u8]) -> Vec<u8> {
    const LENGTH: usize = 1400;
    let mut frame = vec![2; 12];
    frame.extend([0x86, 0xdd]);
    frame.extend((6 << 28 | label).to_be_bytes());
    frame.extend((LENGTH as u16 - 54).to_be_bytes());
    frame.extend([first, 64]);
    for end in [1, 2] {
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
    }
    frame.extend(extension);
    frame.extend([0, 0, 1, 0, 0, 0, 0, 1]);
    frame.resize(LENGTH, 7);
    frame
}

#[cfg(not(target_os = "linux"))]
fn main() {}
