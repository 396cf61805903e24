//! Every command has a test file and a page in the guide.

use std::fs;
use std::path::Path;

use crate::support::{Lab, workspace};

/// The commands, by their files.
pub(crate) fn command_names() -> Vec<String> {
    let dir = Path::new("src/commands");
    let files = fs::read_dir(dir).unwrap();
    let names =
        files.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    names.filter(|name| name != "mod").collect()
}

#[test]
fn every_command_has_a_test_file() {
    let tests = Path::new("tests/it");
    for command in command_names() {
        assert!(tests.join(format!("{command}.rs")).exists(), "no test file for `{command}`");
    }
}

#[test]
fn every_command_has_a_page_in_the_guide() {
    let guide = workspace().join("docs/guide");
    for command in command_names() {
        let page = fs::read_to_string(guide.join(format!("{command}.md"))).unwrap_or_default();
        assert!(page.contains("```console"), "`{command}` has no page with an example");
    }
}

#[test]
fn every_command_is_in_the_help() {
    let help = Lab::new().run(["--help"]).ok().stdout;
    for command in command_names() {
        let is_there =
            help.lines().any(|line| line.trim_start().starts_with(&format!("{command} ")));
        assert!(is_there, "`{command}` is not in --help:\n{help}");
    }
}
