use std::fs;

use crate::support::{Lab, run_with_input};

/// A log whose first commit is damaged.
fn damaged() -> Lab {
    let lab = Lab::new();
    for message in ["a message that will be damaged", "a message after it"] {
        lab.run(["log", "c", message]).ok();
        lab.run(["categories"]).ok();
    }
    let log = lab.home().join("log");
    let mut flipped = 0;
    for entry in fs::read_dir(log).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(7).position(|window| window == b"damaged") {
            bytes[at] ^= 1;
            fs::write(&path, bytes).unwrap();
            flipped += 1;
        }
    }
    assert_eq!(flipped, 1);
    lab
}

#[test]
fn a_whole_log_is_clean() {
    let lab = Lab::new();
    lab.run(["log", "c", "m"]).ok();
    lab.run(["check"]).ok().prints("").says("1 record in 1 file").says("no damage");
    let document = lab.run(["check", "--format", "json"]).ok().json();
    assert_eq!(document["format"], "perflab.check/1");
    assert_eq!(document["clean"], true);
}

#[test]
fn damage_is_located_and_the_answer_is_no() {
    let lab = damaged();
    let ran = lab.run(["check"]).exits(1).says("1 place damaged");
    assert!(ran.stdout.starts_with("FILE"), "{}", ran.stdout);
    let document = lab.run(["check", "--format", "json"]).exits(1).json();
    assert_eq!(document["damage"][0]["lost_records"], 1);
    let csv = lab.run(["check", "--format", "csv"]).exits(1).stdout;
    assert_eq!(csv.lines().count(), 2);
    assert_eq!(lab.messages_and_damage("c"), (1, 1));
}

#[test]
fn damage_in_the_file_being_written_stays() {
    let lab = damaged();
    lab.run(["check", "--quarantine"]).exits(1).says("stays there until the file is full");
    assert!(!lab.home().join("quarantine").exists());
}

#[test]
fn quarantine_moves_the_damage_away() {
    let lab = damaged();
    // Enough for the damaged file to be sealed.
    let line = "x".repeat(1_000_000) + "\n";
    run_with_input(lab.command().args(["log", "c"]), line.repeat(70).as_bytes()).ok();
    lab.run(["check", "--quarantine"]).exits(1).says("moved to");
    assert_eq!(fs::read_dir(lab.home().join("quarantine")).unwrap().count(), 1);
    lab.run(["check"]).ok();
    assert_eq!(lab.messages("c").len(), 71);
}

impl Lab {
    fn messages_and_damage(&self, category: &str) -> (usize, usize) {
        let lines = self.run(["tail", category, "--format", "json"]).json_lines();
        let damage = lines.iter().filter(|line| line.get("damage").is_some()).count();
        (lines.len() - damage, damage)
    }
}
