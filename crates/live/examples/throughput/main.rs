//! How fast our stack is without loss, beside the kernel's on the same path: one connection, and many
//! with one worker and with several.
//!
//! The path is a veth pair between two namespaces. The kernel's sockets are at its far end; at the
//! near end are the kernel's as well, or our stack on a TUN device, for which the near kernel
//! forwards. Prints and writes JSON.
//!
//! Arguments, all optional: the file to write or `-`, rounds, bytes of a measurement, the case
//! (`one` or `many`), and the stack and way (such as `ours-sends`).

#![allow(clippy::unwrap_used, reason = "a failure ends the program with its cause")]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    bench::main();
}

#[cfg(target_os = "linux")]
#[path = "../../tests/it/kernel.rs"]
mod kernel;

#[cfg(target_os = "linux")]
mod flows;

#[cfg(target_os = "linux")]
mod path;

#[cfg(target_os = "linux")]
mod bench {
    use super::flows::{Measurement, Near};
    use super::path::{Path, congestion};
    use serde_json::{Value, json};

    /// What is compared: so many connections at a time, at these near ends.
    struct Case {
        name: &'static str,
        flows: usize,
        near: Vec<Near>,
    }

    /// The least, the median and the largest.
    fn median(mut values: Vec<f64>) -> [f64; 3] {
        values.sort_by(f64::total_cmp);
        [values[0], values[values.len() / 2], values[values.len() - 1]]
    }

    /// The measurements of one way, and their ratio to the kernel's.
    fn summary(path: &Path, case: &Case, way: &str, rows: &[Value]) -> Value {
        let of = |near: Near, field: &str| {
            let workers = json!(near.workers(path));
            let own = |row: &&Value| {
                row["stack"] == near.name()
                    && row["workers"] == workers
                    && row["way"] == way
                    && row["flows"] == case.flows
            };
            median(rows.iter().filter(own).map(|row| row[field].as_f64().unwrap()).collect())
        };
        let [_, kernel, _] = of(Near::Kernel, "gbps");
        let stack = |&near: &Near| {
            let [lowest, gbps, highest] = of(near, "gbps");
            json!({
                "stack": near.name(), "workers": near.workers(path),
                "gbps": gbps, "lowest": lowest, "highest": highest, "ratio": gbps / kernel,
                "own_cpu_s_per_gb": of(near, "own_cpu_s_per_gb")[1],
                "machine_cpu_s_per_gb": of(near, "machine_cpu_s_per_gb")[1],
            })
        };
        let stacks: Vec<Value> = case.near.iter().map(stack).collect();
        json!({ "way": way, "flows": case.flows, "stacks": stacks })
    }

    pub(super) fn main() {
        let mut arguments = std::env::args().skip(1);
        let file = arguments.next().filter(|file| file != "-");
        let rounds: u64 = arguments.next().map_or(5, |n| n.parse().unwrap());
        let bytes: u64 = arguments.next().map_or(2_000_000_000, |n| n.parse().unwrap());
        let only_case = arguments.next();
        let only = arguments.next();
        let path = Path::build();
        let many = (0..path.stacks.len()).map(Near::Ours).chain([Near::Kernel]);
        let cases = [
            Case { name: "one", flows: 1, near: vec![Near::Ours(0), Near::Kernel] },
            Case { name: "many", flows: 64, near: many.collect() },
        ];
        let (mut rows, mut summaries, mut port) = (Vec::new(), Vec::new(), 6000);
        for case in &cases {
            if only_case.as_deref().is_some_and(|only| only != case.name) {
                continue;
            }
            for _ in 0..rounds {
                for way in ["sends", "receives"] {
                    for &near in &case.near {
                        let name = format!("{}-{way}", near.name());
                        if only.as_deref().is_some_and(|only| only != name) {
                            continue;
                        }
                        port += 1;
                        let near_sends = way == "sends";
                        let flows = case.flows;
                        let row = Measurement { port, near, near_sends, flows, bytes }.run(&path);
                        println!("{row}");
                        rows.push(row);
                    }
                }
            }
            if only.is_none() {
                let both = ["sends", "receives"].map(|way| summary(&path, case, way, &rows));
                both.iter().for_each(|summary| println!("{summary}"));
                summaries.extend(both);
            }
        }
        let steering = path.stop();
        println!("{}", Value::from(steering.clone()));
        if let Some(file) = file {
            let result = json!({
                "bytes": bytes, "rounds": rounds, "kernel_congestion_control": congestion(),
                "summary": summaries, "steering": steering, "rows": rows,
            });
            std::fs::write(file, serde_json::to_string_pretty(&result).unwrap() + "\n").unwrap();
        }
    }
}
