//! What the Debian package does when it is configured. `tests/package/try.sh` installs it in a system.

use crate::common::Folder;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Writes a program that records how it was called, and then does this.
fn program(folder: &Path, name: &str, then: &str) {
    let path = folder.join(name);
    let text = format!("#!/bin/sh\necho {name} \"$@\" >>{}/calls\n{then}\n", folder.display());
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What the script calls when it is called with these arguments, and what it says.
fn configured(arguments: &[&str], runs: bool, lasthopd: &str) -> (Vec<String>, String) {
    let folder = Folder::new("package");
    let path = &folder.0;
    let is_active = if runs { "exit 0" } else { "exit 3" };
    program(path, "systemctl", &format!("case $* in *is-active*) {is_active};; esac"));
    program(path, "deb-systemd-invoke", "");
    program(path, "lasthopd", lasthopd);
    // As if systemd ran.
    let script = include_str!("../../dist/deb/postinst");
    let script = script.replace("/run/systemd/system", path.to_str().unwrap());
    let output = Command::new("/bin/sh")
        .args(["-c", &script, "postinst"])
        .args(arguments)
        .env("PATH", path)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let calls = fs::read_to_string(path.join("calls")).unwrap_or_default();
    (calls.lines().map(str::to_owned).collect(), said)
}

const RELOAD: &str = "systemctl --system daemon-reload";
const ASK: &str = "systemctl --quiet is-active lasthopd.service";

#[test]
fn a_package_that_is_replaced_keeps_the_connections_of_a_running_gateway() {
    let (calls, said) = configured(&["configure", "1"], true, "");
    assert_eq!(calls, [RELOAD, ASK, "lasthopd upgrade"]);
    assert_eq!(said, "");
}

#[test]
fn a_package_neither_starts_a_gateway_nor_upgrades_one_that_does_not_run() {
    assert_eq!(configured(&["configure", ""], true, "").0, [RELOAD]);
    assert_eq!(configured(&["configure"], true, "").0, [RELOAD]);
    assert_eq!(configured(&["configure", "1"], false, "").0, [RELOAD, ASK]);
    // The package before is there again.
    assert_eq!(configured(&["abort-upgrade", "2"], true, "").0, [] as [&str; 0]);
}

#[test]
fn a_gateway_that_cannot_be_upgraded_is_restarted_only_if_it_can_start() {
    let refused = "case $1 in upgrade) exit 1;; esac";
    let (calls, said) = configured(&["configure", "1"], true, refused);
    let asked = [RELOAD, ASK, "lasthopd upgrade", "lasthopd check"];
    assert_eq!(calls[..4], asked);
    assert_eq!(calls[4..], ["deb-systemd-invoke try-restart lasthopd.service"]);
    assert!(said.contains("resets its connections"), "{said}");
    let (calls, said) = configured(&["configure", "1"], true, "exit 1");
    assert_eq!(calls, asked);
    assert!(said.contains("goes on with the program before"), "{said}");
}

#[test]
fn there_is_a_manual_page_for_each_command_that_a_page_names() {
    let folder = Folder::new("manuals");
    let written =
        Command::new(env!("CARGO_BIN_EXE_lasthopd")).arg("man").arg(&folder.0).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let mut commands = 0;
    for entry in fs::read_dir(&folder.0).unwrap() {
        let page = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in
            page.lines().filter(|line| line.starts_with("lasthopd") && line.ends_with("(8)"))
        {
            let name = line.replace('\\', "").replace("(8)", ".8");
            assert!(folder.0.join(&name).exists(), "there is no {name}");
            commands += 1;
        }
    }
    let help = Command::new(env!("CARGO_BIN_EXE_lasthopd")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed: Vec<_> = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(listed.len() > 10 && commands >= listed.len(), "{listed:?}");
    for name in listed {
        assert!(folder.0.join(format!("lasthopd-{name}.8")).exists(), "there is no page of {name}");
    }
}
