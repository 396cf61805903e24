//! Retention by age and by bytes, and what it must leave alone.

use perflab_log::{Keep, Log};

use crate::{SECOND, message, open};

fn fill(log: &Log, category: &str, seconds: std::ops::Range<i64>) {
    for second in seconds {
        log.append_and_wait(message(category, second * SECOND, &[b'x'; 1000])).unwrap();
    }
}

fn keep_age(category: &'static str, seconds: i64) -> impl Fn(&str) -> Keep {
    move |name| Keep { age_ns: (name == category).then_some(seconds * SECOND), bytes: None }
}

#[test]
fn old_records_of_a_busy_category_go_and_a_quiet_one_stays_whole() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    for start in (0..1000).step_by(50) {
        fill(&log, "busy", start..start + 50);
        fill(&log, "quiet", start..start + 1);
    }
    let before = log.categories();
    let retained = log.retain(1000 * SECOND, &keep_age("busy", 100), u64::MAX).unwrap();
    let after = log.categories();
    assert!(retained.files_rewritten > 0, "{retained:?}");
    assert_eq!(after["quiet"], before["quiet"], "nothing of the quiet one is touched");
    assert!(after["busy"].first_ns >= 780 * SECOND, "at most one file more than asked stays");
    assert_eq!(after["busy"].last_ns, 999 * SECOND);
    // A second run finds nothing left to do, and a new start sees the same.
    assert_eq!(
        log.retain(1000 * SECOND, &keep_age("busy", 100), u64::MAX).unwrap(),
        Default::default()
    );
    assert!(log.check(None).unwrap().is_clean());
    log.close();
    assert_eq!(open(dir.path()).categories(), after);
}

#[test]
fn bytes_are_limited_to_about_what_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    fill(&log, "c", 0..1000);
    let keep = |_: &str| Keep { age_ns: None, bytes: Some(200_000) };
    log.retain(0, &keep, u64::MAX).unwrap();
    let kept = log.categories()["c"];
    assert!((200_000..330_000).contains(&kept.bytes), "{kept:?}");
    assert_eq!(kept.last_seq, 999, "the newest stay");
}

#[test]
fn what_no_segment_holds_yet_is_never_removed() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    fill(&log, "c", 0..500);
    let everything_goes = keep_age("c", 0);
    let retained = log.retain(1_000_000 * SECOND, &everything_goes, 0).unwrap();
    assert_eq!(retained.records_removed, 0);
    log.retain(1_000_000 * SECOND, &everything_goes, 300).unwrap();
    let kept = log.categories()["c"];
    assert!(kept.first_seq <= 300 && kept.first_seq > 200, "{kept:?}");
    assert_eq!(kept.records, 500 - kept.first_seq, "and all from there on is there");
}

#[test]
fn sequences_and_keys_outlive_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path());
    let keyed = |seq: u64| {
        let mut group = perflab_log::Group::with_producer("c", "p", 0).unwrap();
        group.push(seq, &[&[b'k'; 1000]]).unwrap();
        group
    };
    for seq in 0..300 {
        log.append_and_wait(keyed(seq)).unwrap();
    }
    log.retain(1_000_000 * SECOND, &keep_age("c", 0), u64::MAX).unwrap();
    log.close();
    let log = open(dir.path());
    assert!(log.categories().get("c").is_none_or(|kept| kept.first_seq > 200));
    assert_eq!(
        log.append_and_wait(keyed(7)).unwrap().appended,
        0,
        "its record is gone, not its key"
    );
    assert_eq!(log.append_and_wait(keyed(300)).unwrap().first_seq, 300);
}
