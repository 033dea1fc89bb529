//! Several workers, each with a part of the connections.

use crate::common::{CLEAN, GATEWAY, World, beside, configuration, exchange};
use crate::control_queues::{give_up_bpf, loads};
use gateway::Daemon;
use scenario::IpVersion;
use std::thread;
use std::time::Duration;

/// What all workers together say of a box.
fn count(daemon: &Daemon, name: &str) -> u64 {
    daemon.boxes().unwrap()[name]
}

#[test]
fn each_connection_is_carried_by_one_worker_whichever_queue_its_packets_come_to() {
    beside(|| {
        for (mode, has_program) in [("spoof", true), ("split", true), ("split", false)] {
            let Some(world) = World::new(CLEAN, "workers") else { return };
            let keys = format!("mode = \"{mode}\"\nworkers = 3\n[tcp]\ntime_wait = \"50 ms\"");
            let start = || {
                // Without the program, the kernel chooses the queues.
                let can_load = has_program || !give_up_bpf();
                (Daemon::start(&configuration(&keys)).unwrap(), can_load)
            };
            let (daemon, can_load) = world.at(GATEWAY, start);
            let has_program = can_load && loads("the queues of workers");
            thread::scope(|scope| {
                for number in 0..24 {
                    let ip = [IpVersion::V4, IpVersion::V6][number % 2];
                    scope.spawn({
                        let world = &world;
                        move || exchange(world, ip, [100_000, 300_000])
                    });
                }
            });
            assert_eq!(count(&daemon, "split connections"), 24, "{mode}");
            for _ in 0..100 {
                if count(&daemon, "split connections that are over") == 24 {
                    break;
                }
                thread::sleep(Duration::from_millis(50));
            }
            assert_eq!(count(&daemon, "split connections that are over"), 24, "{mode}");
            assert_eq!(daemon.connections().unwrap().total, 0);
            // Without it, the queue of a new flow is chosen by another hash than ours: two of three are wrong.
            let counts = daemon.counts().unwrap();
            assert_eq!(counts.handed_over == 0, has_program, "{counts:?}");
            assert_eq!(counts.overload + counts.without_bytes, 0, "{counts:?}");
            daemon.stop();
        }
    });
}
