//! Compiles the controls for BPF.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const CONTROLS: [&str; 5] = ["increase_by_k", "constant_rate", "canit", "auto", "westwood_plus"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for name in CONTROLS {
        let source = Path::new("bpf").join(name).with_extension("bpf.c");
        let object = out.join(name).with_extension("o");
        // -g: BTF, by which the kernel and the loader know the types.
        let arguments = ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c"];
        let status =
            Command::new("clang").args(arguments).arg(source).arg("-o").arg(object).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(_) => println!("cargo::error=clang could not compile {name}.bpf.c"),
            Err(error) => {
                println!(
                    "cargo::error=congestion controls in BPF need clang ({error}); on Debian: apt-get install clang \
                     libelf-dev; lasthopd can be built without them, with --no-default-features"
                );
                return;
            }
        }
    }
}
