use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{Lab, Ran};

#[test]
fn the_names_are_links_that_work() {
    let lab = Lab::new();
    let _server = lab.serve();
    let dir = lab.dir().join("a/shims");
    for _ in 0..2 {
        lab.run(["shims".as_ref(), dir.as_os_str()]).ok().says("export PATH=");
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
    let mut command = Command::new(dir.join("scribe_cat"));
    command.env_clear().env("PERFLAB_HOME", lab.home()).args(["c", "through the link"]);
    Ran::from(command.output().unwrap()).ok().prints("");
    assert_eq!(lab.messages("c"), ["through the link"]);
}

#[test]
fn files_of_others_are_left_alone() {
    let lab = Lab::new();
    let dir = lab.dir().join("shims");
    fs::create_dir(&dir).unwrap();
    let path = dir.join("scribe_cat");
    fs::write(&path, "mine").unwrap();
    lab.run(["shims".as_ref(), dir.as_os_str()]).exits(1).says("is not perflab's");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fs::remove_file(&path).unwrap();
    symlink("/bin/cat", &path).unwrap();
    lab.run(["shims".as_ref(), dir.as_os_str()]).exits(1);
    assert_eq!(fs::read_link(&path).unwrap().to_str(), Some("/bin/cat"));
}

#[test]
fn a_link_of_an_earlier_installation_is_renewed() {
    let lab = Lab::new();
    let dir = lab.dir().join("shims");
    fs::create_dir(&dir).unwrap();
    symlink("/gone/perflab", dir.join("scribe_cat")).unwrap();
    lab.run(["shims".as_ref(), dir.as_os_str()]).ok();
    assert_ne!(fs::read_link(dir.join("scribe_cat")).unwrap().to_str(), Some("/gone/perflab"));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
}
