//! Times as people write them, ranges of time, and the buckets of a series.
//!
//! A time is a base, then steps from it: `yesterday @ 14:00 -2 hours`. Without a base, steps start
//! at now. Upper and lower case are the same, and spaces may be added anywhere between words.
//!
//! | base | meaning |
//! |---|---|
//! | `now` | the moment the query froze: one for all its times |
//! | `today`, `yesterday`, `tomorrow` | where that day starts in the zone |
//! | `monday`, `mon`, … | the most recent such day, which may be today |
//! | … `@ 14:30`, `@ 14:30:05.5` | at that time of that day; the `@` may be left out |
//! | `2026-11-15` | where that day starts in the zone |
//! | `2026-11-15 14:30`, `2026-11-15T14:30:05.5` | that time in the zone |
//! | `2026-11-15T14:30:05Z`, `… +01:00`, `… +0100`, `… UTC` | that time, whatever the zone |
//! | `1700000000`, `-5`, `1700000000.25` | Unix time: up to 10 digits are seconds |
//! | `1700000000000` | … 13 digits milliseconds, 16 microseconds, 19 nanoseconds |
//!
//! | step | meaning |
//! |---|---|
//! | `-30 days`, `+2h`, `- 1 quarter` | before and after |
//! | `30 days ago`, `1 week 2 hours ago` | before |
//!
//! Steps apply from left to right. Hours and what is shorter pass on the clock; days, weeks,
//! months, quarters and years keep the time of day in the zone, and a day that a month doesn't
//! have becomes its last. A time of day that is skipped when clocks go forward is moved by as much
//! as they are, and of one that comes twice the first is meant.
//!
//! A step with neither a sign nor `ago` is refused and not guessed: `+` arrives as a space from
//! those who forget to encode it in a URL.

mod bucket;
mod length;
mod parse;
mod scan;

pub use bucket::{BUCKETS_MAX, Bucket, POINTS_MAX, TooManyBuckets};
pub use parse::parse;

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use perflab_model::Nanos;

/// The longest text of a time. With it, the number of steps is limited too.
pub const TEXT_BYTES_MAX: usize = 256;

/// Why a text isn't a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    #[error("the time has {bytes} bytes, the limit is {TEXT_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("{}", describe(word, *position, *expected))]
    Word {
        /// Empty where the text ends too early.
        word: String,
        /// In characters, from 1.
        position: usize,
        expected: Expected,
    },
    #[error(
        "`{}` at character {position} does not say whether before or after; write `-7 days`, \
         `7 days ago` or `+7 days`",
        .step.escape_debug()
    )]
    Direction { step: String, position: usize },
    #[error(
        "`{}` at character {position} leads outside of {} to {}",
        .word.escape_debug(), Nanos(i64::MIN), Nanos(i64::MAX)
    )]
    OutOfRange { word: String, position: usize },
}

fn describe(word: &str, position: usize, expected: Expected) -> String {
    let (what, example) = (expected.what(), expected.example());
    if word.is_empty() {
        return format!("the text ends where {what} is missing, such as {example}");
    }
    format!("`{}` at character {position} is not {what}, such as {example}", word.escape_debug())
}

/// What belongs where something else was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Time,
    Step,
    Number,
    Unit,
    Date,
    TimeOfDay,
    UnixTime,
    Width,
}

impl Expected {
    fn what(self) -> &'static str {
        match self {
            Self::Time => "a time",
            Self::Step => "a step",
            Self::Number => "the number of a step",
            Self::Unit => "a unit of time",
            Self::Date => "a date",
            Self::TimeOfDay => "a time of day",
            Self::UnixTime => "a Unix time of 10 (s), 13 (ms), 16 (µs) or 19 (ns) digits",
            Self::Width => "a bucket of up to 200 years",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Time => "`now`, `-30 days`, `yesterday @ 14:30` or `2026-11-15 14:30`",
            Self::Step => "`-2 hours` or `3 days ago`",
            Self::Number => "`30` in `-30 days`",
            Self::Unit => "`s`, `min`, `hours`, `days`, `weeks`, `months`, `quarters` or `years`",
            Self::Date => "`2026-11-15`",
            Self::TimeOfDay => "`14:30` or `14:30:05`",
            Self::UnixTime => "`1700000000`",
            Self::Width => "`5m`, `1 hour` or `1 month`",
        }
    }
}

/// The times from `start` to just before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: Nanos,
    pub end: Nanos,
}

/// Why two texts aren't a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    #[error("the start of the range is not a time")]
    Start(#[source] TimeError),
    #[error("the end of the range is not a time")]
    End(#[source] TimeError),
    #[error("the range is empty: its start {start} is not before its end {end}")]
    Empty { start: Nanos, end: Nanos },
}

impl Range {
    pub fn new(start: Nanos, end: Nanos) -> Result<Self, RangeError> {
        if start < end { Ok(Self { start, end }) } else { Err(RangeError::Empty { start, end }) }
    }

    /// Both from the same `now`, so that `-1 day` to `now` is one day.
    pub fn parse(start: &str, end: &str, now: Nanos, zone: &TimeZone) -> Result<Self, RangeError> {
        let start = parse(start, now, zone).map_err(RangeError::Start)?;
        let end = parse(end, now, zone).map_err(RangeError::End)?;
        Self::new(start, end)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.start, self.end)
    }
}

/// A time as RFC 3339 with the zone's offset, to be shown and to be parsed again.
#[derive(Debug, Clone, Copy)]
pub struct InZone<'a> {
    pub time: Nanos,
    pub zone: &'a TimeZone,
}

impl fmt::Display for InZone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timestamp = timestamp_of(self.time);
        let offset = offset_at(self.zone, timestamp);
        // Before there was standard time, offsets had seconds, which RFC 3339 can't say.
        if offset.seconds() % 60 == 0 {
            f.pad(&timestamp.display_with_offset(offset).to_string())
        } else {
            self.time.fmt(f)
        }
    }
}

fn timestamp_of(time: Nanos) -> Timestamp {
    // Every `Nanos` is in the years -9999 to 9999 that jiff covers.
    Timestamp::from_nanosecond(i128::from(time.as_i64())).unwrap_or_default()
}

fn nanos_of(timestamp: Timestamp) -> Option<Nanos> {
    i64::try_from(timestamp.as_nanosecond()).ok().map(Nanos)
}

/// The first moment of a day; of a later one where the zone skipped this day. `None` at the ends
/// of jiff's calendar.
fn start_of_date(date: Date, zone: &TimeZone) -> Option<Timestamp> {
    let midnight = zone.to_ambiguous_timestamp(date.at(0, 0, 0, 0));
    let AmbiguousOffset::Gap { before, .. } = midnight.offset() else {
        return midnight.compatible().ok();
    };
    // No clock showed midnight. Where it would have been without the change is after the change,
    // and the change is the first moment: clocks may skip from 23:30 to 00:30.
    let without_change = before.to_timestamp(midnight.datetime()).ok()?;
    last_change(zone, without_change)
}

/// When the zone last changed its offset, at the latest at this time itself.
fn last_change(zone: &TimeZone, time: Timestamp) -> Option<Timestamp> {
    let next_second = Timestamp::from_second(whole_second(time).as_second() + 1).ok()?;
    zone.preceding(next_second).next().map(|change| change.timestamp())
}

/// When the zone changes its offset next after this time.
fn next_change(zone: &TimeZone, time: Timestamp) -> Option<Timestamp> {
    zone.following(whole_second(time)).next().map(|change| change.timestamp())
}

/// What clocks in the zone show at this time, as a difference to UTC.
fn offset_at(zone: &TimeZone, time: Timestamp) -> Offset {
    zone.to_offset(whole_second(time))
}

/// The second that this time lies in. Zones change at whole seconds, so that nothing is lost by
/// asking for one; jiff rounds what is before 1970 to the next second, which may be after a change.
fn whole_second(time: Timestamp) -> Timestamp {
    let is_after_second = time.subsec_nanosecond() < 0;
    Timestamp::from_second(time.as_second() - i64::from(is_after_second)).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;
    use proptest::prelude::*;
    use std::error::Error as _;

    const NOW: Nanos = Nanos(1_700_000_000_000_000_000);

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn range(start: &str, end: &str) -> Result<Range, RangeError> {
        Range::parse(start, end, NOW, &TimeZone::UTC)
    }

    #[test]
    fn zones_are_known_where_the_system_has_none() {
        assert!(TimeZoneDatabase::bundled().get("Australia/Lord_Howe").is_ok());
    }

    #[test]
    fn a_range_has_one_now() {
        let day = range("-1 day", "now").unwrap();
        assert_eq!(day, Range { start: Nanos(NOW.0 - 86_400_000_000_000), end: NOW });
        assert_eq!(day.to_string(), "2023-11-13T22:13:20Z to 2023-11-14T22:13:20Z");
    }

    #[test]
    fn reversed_and_empty_ranges_are_refused_with_both_times() {
        assert_eq!(
            range("now", "-1 day").unwrap_err().to_string(),
            "the range is empty: its start 2023-11-14T22:13:20Z is not before its end \
             2023-11-13T22:13:20Z"
        );
        assert_eq!(range("now", "now").unwrap_err(), RangeError::Empty { start: NOW, end: NOW });
    }

    #[test]
    fn a_range_says_which_of_its_times_is_wrong() {
        let source = |error: RangeError| error.source().map(ToString::to_string);
        let start = range("noon", "now").unwrap_err();
        assert_eq!(start.to_string(), "the start of the range is not a time");
        assert!(source(start).unwrap().starts_with("`noon` at character 1 is not a time, such as"));
        let end = range("-1 day", "").unwrap_err();
        assert_eq!(end.to_string(), "the end of the range is not a time");
        assert!(
            source(end)
                .unwrap()
                .starts_with("the text ends where a time is missing, such as `now`, ")
        );
    }

    #[test]
    fn a_time_prints_with_the_offset_of_its_zone() {
        let berlin = &zone("Europe/Berlin");
        let print = |time| InZone { time, zone: berlin }.to_string();
        assert_eq!(print(NOW), "2023-11-14T23:13:20+01:00");
        assert_eq!(print(Nanos(1_690_000_000_500_000_000)), "2023-07-22T06:26:40.5+02:00");
        assert_eq!(print(Nanos(i64::MIN)), "1677-09-21T00:12:43.145224192Z", "+00:53:28");
        assert_eq!(format!("{:<26}|", InZone { time: NOW, zone: berlin }), print(NOW) + " |");
    }

    #[test]
    fn a_day_starts_with_its_first_moment() {
        let first = |zone_name: &str, date: &str| {
            let zone = &zone(zone_name);
            let start = start_of_date(date.parse().unwrap(), zone).unwrap();
            InZone { time: nanos_of(start).unwrap(), zone }.to_string()
        };
        assert_eq!(first("Europe/Berlin", "2026-03-29"), "2026-03-29T00:00:00+01:00");
        // Midnight is skipped, is skipped in the middle, comes twice, and is skipped with its day.
        assert_eq!(first("America/Sao_Paulo", "2015-10-18"), "2015-10-18T01:00:00-02:00");
        assert_eq!(first("America/Toronto", "1919-03-31"), "1919-03-31T00:30:00-04:00");
        assert_eq!(first("America/Havana", "2025-11-02"), "2025-11-02T00:00:00-04:00");
        assert_eq!(first("Pacific/Apia", "2011-12-30"), "2011-12-31T00:00:00+14:00");
    }

    #[test]
    fn changes_before_1970_happen_when_they_do() {
        let zone = &zone("America/Havana");
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (before, change) = (at("1925-07-19T17:29:35.5Z"), at("1925-07-19T17:29:36Z"));
        assert_eq!(next_change(zone, before), Some(change));
        assert_eq!(last_change(zone, before), Some(at("1890-01-01T05:29:28Z")));
        assert_eq!(last_change(zone, change), Some(change));
        assert_eq!(offset_at(zone, before).seconds(), -19_776);
        assert_eq!(offset_at(zone, change).seconds(), -18_000);
    }

    proptest! {
        #[test]
        fn a_printed_time_is_parsed_again(
            time in any::<i64>().prop_map(Nanos),
            name in prop::sample::select(vec![
                "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu",
            ]),
        ) {
            let zone = &zone(name);
            prop_assert_eq!(parse(&time.to_string(), NOW, zone), Ok(time));
            prop_assert_eq!(parse(&InZone { time, zone }.to_string(), NOW, zone), Ok(time));
        }
    }
}
