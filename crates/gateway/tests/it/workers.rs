//! Several workers, each with a part of the connections.

use crate::common::{CLEAN, World, beside, exchange};
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
        for mode in ["spoof", "split"] {
            let Some(world) = World::new(CLEAN, "workers") else { return };
            let keys = format!("mode = \"{mode}\"\nworkers = 3\n[tcp]\ntime_wait = \"50 ms\"");
            let daemon = world.gateway(&keys);
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
            // The kernel chooses the queue of a new flow by another hash than ours: two of three are wrong.
            let counts = daemon.counts().unwrap();
            assert!(counts.handed_over > 0, "{counts:?}");
            assert_eq!(counts.overload + counts.without_bytes, 0, "{counts:?}");
            daemon.stop();
        }
    });
}
