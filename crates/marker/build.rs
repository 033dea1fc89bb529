//! Compiles the program for BPF.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let object = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("spep.o");
    // -g: BTF, by which the loader knows the maps.
    let arguments = ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c"];
    let status =
        Command::new("clang").args(arguments).arg("bpf/spep.bpf.c").arg("-o").arg(object).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => println!("cargo::error=clang could not compile spep.bpf.c"),
        Err(error) => println!(
            "cargo::error=marking packets in BPF needs clang ({error}); on Debian: apt-get install clang libelf-dev; \
             lasthopd can be built without it, with --no-default-features"
        ),
    }
}
