use std::fs;

use crate::pairs::command_names;
use crate::support::Lab;

#[test]
fn the_page_names_every_command() {
    let page = Lab::new().run(["man"]).ok().stdout;
    assert!(page.contains(".TH perflab 1"), "{page}");
    for command in command_names() {
        assert!(page.contains(&command), "no {command}");
    }
}

#[test]
fn every_command_has_a_page() {
    let lab = Lab::new();
    let dir = lab.dir().join("man1");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("other.1"), "").unwrap();
    let ran = lab.run(["man".as_ref(), dir.as_os_str()]).ok().prints("");
    let pages = fs::read_dir(&dir).unwrap().count() - 1;
    ran.says(&format!("{pages} pages in"));
    for command in command_names() {
        let page = fs::read_to_string(dir.join(format!("perflab-{command}.1"))).unwrap();
        assert!(page.contains("SYNOPSIS"), "{command}");
    }
}
