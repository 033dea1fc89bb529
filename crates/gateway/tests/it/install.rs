//! The files of a service.

use crate::common::Folder;
use gateway::install::{Done, install, uninstall};
use std::fs;
use std::path::{Path, PathBuf};

const UNIT: &str = "etc/systemd/system/lasthopd.service";
const CONFIGURATION: &str = "etc/lasthop/lasthopd.toml";

fn program() -> &'static Path {
    Path::new("/opt/lasthop/lasthopd")
}

/// All files below a folder.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

#[test]
fn what_was_written_is_removed_and_nothing_else() {
    let folder = Folder::new("install");
    let root = &folder.0;
    let others = root.join("etc/systemd/system/other.service");
    fs::create_dir_all(others.parent().unwrap()).unwrap();
    fs::write(&others, "").unwrap();
    let done = install(root, program()).unwrap();
    assert_eq!(done, [Done::Written(root.join(UNIT)), Done::Written(root.join(CONFIGURATION))]);
    let unit = fs::read_to_string(root.join(UNIT)).unwrap();
    assert!(unit.contains("\nExecStart=/opt/lasthop/lasthopd run\n"), "{unit}");
    // Again, as after an update.
    assert_eq!(install(root, program()).unwrap(), done);
    let done = uninstall(root).unwrap();
    assert_eq!(done, [Done::Removed(root.join(CONFIGURATION)), Done::Removed(root.join(UNIT))]);
    assert_eq!(files(root), [others]);
    assert!(!root.join("etc/lasthop").exists() && !root.join("var/lib/lasthop").exists());
    assert_eq!(uninstall(root).unwrap(), []);
}

#[test]
fn what_was_changed_by_hand_stays() {
    let folder = Folder::new("changed");
    let root = &folder.0;
    install(root, program()).unwrap();
    fs::write(root.join(CONFIGURATION), "lan = \"eth0\"\nwan = \"eth1\"\n").unwrap();
    let done = install(root, program()).unwrap();
    assert_eq!(done, [Done::Written(root.join(UNIT)), Done::Kept(root.join(CONFIGURATION))]);
    fs::remove_file(root.join(UNIT)).unwrap();
    let done = uninstall(root).unwrap();
    assert_eq!(done, [Done::Changed(root.join(CONFIGURATION)), Done::Gone(root.join(UNIT))]);
    assert_eq!(files(root), [root.join(CONFIGURATION)]);
}

#[test]
fn a_configuration_that_was_there_is_neither_replaced_nor_removed() {
    let folder = Folder::new("there");
    let root = &folder.0;
    fs::create_dir_all(root.join("etc/lasthop")).unwrap();
    // Even if it is what would have been written.
    let content = include_str!("../../dist/lasthopd.toml");
    fs::write(root.join(CONFIGURATION), content).unwrap();
    let done = install(root, program()).unwrap();
    assert_eq!(done, [Done::Written(root.join(UNIT)), Done::Kept(root.join(CONFIGURATION))]);
    assert_eq!(uninstall(root).unwrap(), [Done::Removed(root.join(UNIT))]);
    assert_eq!(files(root), [root.join(CONFIGURATION)]);
}
