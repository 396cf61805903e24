//! Runs the examples of the guide: ```console blocks, in order, one home per page.
//!
//! A line `$ …` is a command for the shell, the lines after it are what it prints, stdout and
//! stderr together; `…` stands for anything within a line, and a line that is only `…` for any
//! lines. `# exits N` after a command is its exit code. Blocks of other languages are not run.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::{Lab, python, workspace};

struct Example {
    line: usize,
    command: String,
    code: i32,
    output: Vec<String>,
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut is_inside = false;
    for (number, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            is_inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_inside) {
            let (command, code) = match command.split_once("  # exits ") {
                Some((command, code)) => (command, code.parse().unwrap()),
                None => (command, 0),
            };
            let output = Vec::new();
            examples.push(Example { line: number + 1, command: command.to_owned(), code, output });
        } else if is_inside {
            let example = examples.last_mut().expect("a block starts with a command");
            example.output.push(line.to_owned());
        }
    }
    examples
}

fn matches_line(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

fn matches(expected: &[String], lines: &[&str]) -> bool {
    match (expected.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "…" => {
            (0..=lines.len()).any(|skipped| matches(rest, &lines[skipped..]))
        }
        (Some((first, rest)), Some((line, others))) => {
            matches_line(first, line) && matches(rest, others)
        }
        _ => false,
    }
}

/// `perflab`, its other names and `python` are found as a user would have them.
fn prepare(lab: &Lab) -> String {
    let bin = lab.dir().join("bin");
    fs::create_dir(&bin).unwrap();
    for name in ["perflab", "scribe_cat", "fburl"] {
        symlink(env!("CARGO_BIN_EXE_perflab"), bin.join(name)).unwrap();
    }
    // Not a link: Python finds its virtual environment by the path it is called by.
    let call = format!("#!/bin/sh\nexec '{}' \"$@\"\n", python().display());
    fs::write(bin.join("python"), call).unwrap();
    fs::set_permissions(bin.join("python"), Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default())
}

fn run_page(path: &Path) {
    let page = fs::read_to_string(path).unwrap();
    let lab = Lab::new();
    let search_path = prepare(&lab);
    let work = lab.dir().join("work");
    fs::create_dir(&work).unwrap();
    for example in examples(&page) {
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {}", example.command)])
            .env_clear()
            .env("PATH", &search_path)
            .env("HOME", lab.dir())
            .current_dir(&work)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().collect();
        let place = format!("{}:{}: $ {}", path.display(), example.line, example.command);
        assert_eq!(output.status.code(), Some(example.code), "{place}\n{text}");
        assert!(matches(&example.output, &lines), "{place}\nprinted:\n{text}");
    }
}

#[test]
fn every_example_of_the_guide_is_true() {
    let pages = fs::read_dir(workspace().join("docs/guide")).unwrap();
    let mut paths: Vec<_> = pages.map(|page| page.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    assert!(paths.len() >= 12, "{paths:?}");
    for path in paths {
        run_page(&path);
    }
}

#[test]
fn the_runner_sees_a_difference() {
    let page = "```console\n$ a\nx … z\n…\nend\n$ b  # exits 3\n```\n```sh\n$ c\n```\n";
    let found = examples(page);
    assert_eq!(found.len(), 2);
    assert_eq!((found[1].command.as_str(), found[1].code), ("b", 3));
    assert!(matches(&found[0].output, &["x y z", "any", "end"]));
    assert!(matches(&found[0].output, &["x y z", "end"]));
    assert!(!matches(&found[0].output, &["x y", "end"]));
    assert!(!matches(&found[0].output, &["x y z", "end", "more"]));
    assert!(!matches_line("abc", "abcd"));
}
