//! The network of a scenario, for as long as standard input is open: `network FILE [SEED] [KEY=VALUE]...`.
//! Values of keys, such as `links.0.delay`, are JSON, and replace those of the file. `link_socket.LINK.NODE=PATH`
//! is the socket at which the driver at the end of a link reports what arrives damaged.
//!
//! It prints a line of JSON when the network is there, with the namespace and the addresses (IPv4,
//! IPv6) of each node, and another in the end: what the boxes counted, and why the run is void if it
//! is. The flows of the scenario are not started.

#[cfg(not(all(target_os = "linux", feature = "packets")))]
fn main() {}

#[cfg(all(target_os = "linux", feature = "packets"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use scenario::{Experiment, IpVersion, Source, Style};
    use serde_json::{Map, Value, json};
    use std::io::Read as _;

    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("expected the file of a scenario, and perhaps a seed")?;
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let text = std::fs::read_to_string(&file)?;
    let mut source = Source::new(&text, &file);
    let mut link_sockets = testbed::LinkSockets::new();
    for setting in arguments {
        let (key, value) = setting.split_once('=').ok_or("expected KEY=VALUE")?;
        if let Some(end) = key.strip_prefix("link_socket.") {
            let (link, node) = end.split_once('.').ok_or("expected link_socket.LINK.NODE")?;
            link_sockets.insert((link.parse()?, node.to_owned()), value.into());
            continue;
        }
        let put = source.put(key, &serde_json::from_str(value)?);
        put.map_err(|error| error.render(Style::Plain))?;
    }
    let scenario = Experiment::read(&source).and_then(|experiment| experiment.testbed_scenario());
    let scenario = scenario.map_err(|error| error.render(Style::Plain))?;
    let emulation = testbed::Emulation::start_with(&scenario, seed, "network", &link_sockets)?;
    let nodes = scenario.nodes.iter().enumerate().map(|(index, name)| {
        let addresses = [IpVersion::V4, IpVersion::V6].map(|ip| emulation.address(index, ip));
        let namespace = emulation.namespace(index).name();
        (name.clone(), json!({ "namespace": namespace, "addresses": addresses }))
    });
    println!("{}", Value::Object(nodes.collect::<Map<_, _>>()));
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let testbed::Outcome { run, health } = emulation.stop()?;
    let counts = run.box_counts.iter().map(|of| (of.name.to_owned(), of.count.into()));
    let counts: Map<_, _> = counts.collect();
    let report = json!({
        "counts": counts, "packets": health.packets, "late": health.late, "lost": health.lost,
        "void": health.void,
    });
    println!("{report}");
    Ok(())
}
