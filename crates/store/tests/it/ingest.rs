//! Entries in, outcomes out.

use std::sync::Arc;
use std::time::Duration;

use perflab_model::{CategoryName, Clock as _, ManualClock};
use perflab_store::{
    Access, Answer, Busy, CategorySettings, DATASETS_MAX, Door, Guarantee, Home, HomeSettings,
    Keys, Origin, RecordDecoder, Sequences,
};
use perflab_wire::{BodyForm, EntryCode, Limits, MessageForm, Request};
use tempfile::TempDir;

use crate::disk::FaultyDisk;
use crate::rig::{NOW, log, log_at, log_with_keys, messages, open, open_with};

#[test]
fn outcomes_say_where_entries_went() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    log(&home, "a", "0");
    let answer = log(&home, "b", "1\n{\n2");
    let offsets: Vec<_> = answer.outcomes.iter().map(|outcome| outcome.offset).collect();
    assert_eq!(offsets, [Some(1), None, Some(2)]);
    assert_eq!(answer.busy, None);
    assert_eq!(messages(&home, "perflab/rejected").len(), 1);
    assert_eq!(home.ingest_stats().rows, 4, "the rejected one is a row too");
}

#[test]
fn offsets_skip_duplicates() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    let keys = |listed: &[u64]| Keys {
        producer: "p".to_owned(),
        sequences: Sequences::Listed(listed.to_vec()),
    };
    log_with_keys(&home, "c", "a\nb", Some(&keys(&[1, 3])));
    let answer = log_with_keys(&home, "c", "x\na\ny\nb", Some(&keys(&[0, 1, 2, 3])));
    let found: Vec<_> =
        answer.outcomes.iter().map(|outcome| (outcome.is_duplicate, outcome.offset)).collect();
    assert_eq!(found, [(false, Some(2)), (true, None), (false, Some(3)), (true, None)]);
    assert_eq!(messages(&home, "c"), ["a", "b", "x", "y"]);
}

#[test]
fn keys_of_entries_that_arrived_long_ago_are_remembered_from_now_on() {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let settings = HomeSettings::default();
    let home = Home::open(dir.path(), settings, Arc::<ManualClock>::clone(&clock)).unwrap();
    clock.advance(Duration::from_hours(72));
    let (old, now) = (NOW, clock.now());
    let send = |lines: &str, listed: &[u64]| {
        let sequences = Sequences::Listed(listed.to_vec());
        let keys = Keys { producer: "far".to_owned(), sequences };
        log_at(&home, "c", lines, old, Some(&keys))
    };
    // Of the first attempt only a part was taken, and others write meanwhile.
    send("1\n3", &[1, 3]);
    let keys = Keys { producer: "other".to_owned(), sequences: Sequences::From(1) };
    log_at(&home, "d", "x", now, Some(&keys));
    let answer = send("1\n2\n3", &[1, 2, 3]);
    let duplicates: Vec<bool> = answer.outcomes.iter().map(|o| o.is_duplicate).collect();
    assert_eq!(duplicates, [true, false, true]);
    assert_eq!(messages(&home, "c"), ["1", "3", "2"]);
    assert!(messages(&home, "perflab/rejected").is_empty());
}

#[test]
fn a_fast_request_larger_than_the_queue_is_taken_whole() {
    let dir = TempDir::new().unwrap();
    let disk = FaultyDisk::default();
    let mut settings = HomeSettings { disk: Arc::new(disk.clone()), ..HomeSettings::default() };
    settings.log.queue_bytes_max = 2 << 20;
    let home = open_with(dir.path(), settings);
    let name = CategoryName::new("quick").unwrap();
    let fast = CategorySettings { guarantee: Guarantee::Fast, ..CategorySettings::default() };
    home.set_category_settings(&name, fast).unwrap();
    log(&home, "quick", "so that a file is there");
    disk.be_slow();
    let line = "x".repeat(500_000);
    let answer = log(&home, "quick", &[line.as_str(); 20].join("\n"));
    assert_eq!(answer.busy, None);
    home.close();
    assert_eq!(messages(&home, "quick").len(), 21);
}

/// A request with one entry for each of so many categories.
fn many_categories(home: &Home, categories: usize, message: &str) -> Answer {
    let entries: Vec<String> = (0..categories)
        .map(|n| format!("{{\"category\":\"c{n}\",\"message\":\"{message}\"}}"))
        .collect();
    let body = format!("{{\"logs\":[{}]}}", entries.join(","));
    let limits = Limits::default();
    let request =
        Request::decode(&BodyForm::Json, MessageForm::Plain, body.into(), &limits).unwrap();
    let access = &Access::Everything;
    let origin = Origin { access, door: Door::ScribeJson, arrival: NOW, keys: None };
    home.ingest(&request, &origin).wait().answer(home, |_| None)
}

#[test]
fn entries_that_are_all_refused_use_up_no_dataset() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    let answer = many_categories(&home, DATASETS_MAX, "{");
    assert_eq!(answer.count(EntryCode::Error), DATASETS_MAX);
    assert_eq!(log(&home, "good", "x").outcomes[0].code, EntryCode::Ok);
}

#[test]
fn a_closed_home_says_so() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    log(&home, "c", "x");
    home.close();
    let answer = log(&home, "c", "x\n{");
    assert_eq!(answer.busy, Some(Busy::Closing));
    assert_eq!(home.ingest_stats().rejected_lost, 1);
}

#[test]
fn records_decode_as_todays_schema_says_if_they_can() {
    let dir = TempDir::new().unwrap();
    let home = open(dir.path());
    let decode = |payload: &[u8]| {
        let mut decoder = RecordDecoder::new(&home);
        decoder.decode(&home, "c", NOW, payload).map(|batch| {
            batch.rows().flat_map(|row| row.fields().map(|(name, _)| name.to_owned())).collect()
        })
    };
    let before: Vec<String> = decode(b"\x01{\"normal\":{\"a\":\"None\",\"b\":\"x\"}}").unwrap();
    assert_eq!(before, ["a", "b"]);
    home.declare_schema("c", Some("{\"normal\":[\"a\",\"b\"],\"null\":\"None\"}")).unwrap();
    let after: Vec<String> = decode(b"\x01{\"normal\":{\"a\":\"None\",\"b\":\"x\"}}").unwrap();
    assert_eq!(after, ["b"]);
    let undeclared: Vec<String> = decode(b"\x01{\"int\":{\"z\":1}}").unwrap();
    assert_eq!(undeclared, ["z"], "taken in before the schema was");
    assert!(decode(b"").is_err());
    assert!(decode(b"\x09x").is_err());
}
