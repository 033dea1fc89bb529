//! An attacker on a device of its own: `flood DEVICE ADDRESS/LENGTH` makes a TUN device in its network namespace, and
//! sends packets into it until standard input ends.
//!
//! A line of standard input, `FILE RATE`, lets it send the packets of a file over and over again, so many a second,
//! or as fast as it can with a rate of 0; an empty line ends that, and is answered with a line: how many
//! were sent, and in how many seconds. In the file, each packet follows its length (two bytes, the higher first).

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use live::{Clock, Netlink, Offload, Tun};
    use std::io::BufRead as _;
    use std::sync::mpsc::{self, TryRecvError};
    use std::time::Duration;

    /// Packets between two looks at the clock and at standard input.
    const TURN: usize = 32;

    let mut arguments = std::env::args().skip(1);
    let device = arguments.next().ok_or("expected the name of a device")?;
    let address = arguments.next().ok_or("expected an address")?;
    let (address, prefix) = address.split_once('/').ok_or("expected ADDRESS/LENGTH")?;
    let tun = Tun::open(&device, Offload::None, 1500)?;
    let netlink = Netlink::open()?;
    netlink.add_address(&device, address.parse()?, prefix.parse()?)?;
    netlink.set_up(&device)?;
    println!("ready");
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines();
        lines.map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let clock = Clock::start();
    while let Ok(order) = lines.recv() {
        let Some((file, rate)) = order.rsplit_once(' ') else { continue };
        let (bytes, rate) = (std::fs::read(file)?, rate.parse::<u64>()?);
        let mut packets = Vec::new();
        let mut rest = &bytes[..];
        while let [high, low, packet @ ..] = rest {
            let len = usize::from(u16::from_be_bytes([*high, *low]));
            packets.push(packet.get(..len).ok_or("a packet is cut off")?);
            rest = &packet[len..];
        }
        if packets.is_empty() {
            return Err("no packets".into());
        }
        let (began, mut sent, mut next) = (clock.now(), 0_u64, packets.iter().cycle());
        while lines.try_recv() == Err(TryRecvError::Empty) {
            let elapsed = clock.now().since(began).as_nanos();
            if rate > 0 && sent as f64 > elapsed as f64 * 1e-9 * rate as f64 {
                std::thread::sleep(Duration::from_micros(200));
                continue;
            }
            for packet in next.by_ref().take(TURN) {
                tun.write(packet)?;
                sent += 1;
            }
        }
        println!("{sent} {}", clock.now().since(began).as_nanos() as f64 / 1e9);
    }
    Ok(())
}
