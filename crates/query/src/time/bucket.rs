//! The buckets of a series: where they start in a zone.
//!
//! Buckets of days, weeks, months and years start with a local day; weeks start on Monday, and
//! several days count from a Monday, several months from the year 0. Shorter buckets start
//! whenever clocks in the zone show a multiple of their width, or skip one: where clocks change,
//! a bucket is shorter or longer, and the hour that comes twice is two buckets of an hour.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use perflab_model::Nanos;

use super::length::Length;
use super::parse::read_length;
use super::scan::Scanner;
use super::{
    Expected, Range, TimeError, last_change, nanos_of, next_change, offset_at, start_of_date,
    timestamp_of,
};

/// How many points an automatic bucket leaves at most.
pub const POINTS_MAX: usize = 800;

/// How many buckets of a given width a range may have.
pub const BUCKETS_MAX: usize = 100_000;

/// The widest bucket: 200 years of 12 months of 31 days. Dates then stay well inside jiff's
/// calendar.
const WIDTH_NANOS_MAX: i128 = 200 * 12 * 31 * 86_400 * 1_000_000_000;

/// What an automatic bucket chooses from. The last is wide enough for all the time there is.
const AUTOMATIC: [Length; 16] = [
    Length::seconds(1),
    Length::seconds(5),
    Length::seconds(10),
    Length::seconds(30),
    Length::minutes(1),
    Length::minutes(5),
    Length::minutes(10),
    Length::minutes(30),
    Length::hours(1),
    Length::hours(3),
    Length::hours(6),
    Length::hours(12),
    Length::Days(1),
    Length::Days(7),
    Length::Days(30),
    Length::Months(12),
];

/// Where days are counted from, so that 7 of them are a week.
const MONDAY: Date = date(1969, 12, 29);

/// Where months are counted from, so that 120 of them are the twenties.
const YEAR_0: Date = date(0, 1, 1);

/// A start and the next one; `None` where jiff's calendar ends.
type Bounds = (Option<Timestamp>, Option<Timestamp>);

/// How time is cut into buckets: their width, and the zone they are aligned in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    width: Length,
    zone: TimeZone,
}

/// A range has more buckets than anyone can look at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{range} has more than {BUCKETS_MAX} buckets of {bucket}; choose wider ones, such as {wider}"
)]
pub struct TooManyBuckets {
    pub range: Range,
    pub bucket: Bucket,
    pub wider: Bucket,
}

impl Bucket {
    /// The narrowest that cuts the range into at most [`POINTS_MAX`].
    pub fn automatic(range: Range, zone: &TimeZone) -> Self {
        let [narrower @ .., widest] = AUTOMATIC;
        let bucket = |width| Self { width, zone: zone.clone() };
        let fits = |bucket: &Self| bucket.starts_up_to(POINTS_MAX, range).is_some();
        narrower.into_iter().map(bucket).find(fits).unwrap_or_else(|| bucket(widest))
    }

    /// `5m`, `1 hour`, `2 weeks`, `1 month`: a number and a unit as in the steps of a time.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self, TimeError> {
        let mut scanner = Scanner::new(text, Expected::Width)?;
        let from = scanner;
        let (count, unit) = read_length(&mut scanner, Expected::Width)?;
        scanner.skip_spaces();
        if !scanner.is_at_end() {
            return Err(scanner.unexpected(Expected::Width));
        }
        let is_allowed = |width: &Length| (1..=WIDTH_NANOS_MAX).contains(&width.nanos_about());
        let width = unit.times(count).filter(is_allowed);
        let width = width.ok_or_else(|| from.all_unexpected(Expected::Width))?;
        Ok(Self { width, zone: zone.clone() })
    }

    /// Where the bucket starts that `time` lies in.
    pub fn start_of(&self, time: Nanos) -> Nanos {
        // The first bucket starts before the first time there is.
        self.bounds(time).0.and_then(nanos_of).unwrap_or(Nanos(i64::MIN))
    }

    /// Where the next bucket starts after the one that `time` lies in. `None` when that is after
    /// the last time there is.
    pub fn next_start(&self, time: Nanos) -> Option<Nanos> {
        self.bounds(time).1.and_then(nanos_of)
    }

    /// Where the buckets start that cover the range: the first at its start or before.
    pub fn starts(&self, range: Range) -> Result<Vec<Nanos>, TooManyBuckets> {
        self.starts_up_to(BUCKETS_MAX, range).ok_or_else(|| TooManyBuckets {
            range,
            bucket: self.clone(),
            wider: Self::automatic(range, &self.zone),
        })
    }

    /// `None` when there are more than `max`.
    fn starts_up_to(&self, max: usize, range: Range) -> Option<Vec<Nanos>> {
        if range.start >= range.end {
            return Some(Vec::new());
        }
        let length = i128::from(range.end.as_i64()) - i128::from(range.start.as_i64());
        // A change of the clocks at most doubles a bucket, so there are no fewer than this.
        if length / (2 * self.width.nanos_about()) > max as i128 {
            return None;
        }
        let mut starts = vec![self.start_of(range.start)];
        let mut at = range.start;
        while let Some(next) = self.next_start(at).filter(|&next| next < range.end) {
            if starts.len() == max {
                return None;
            }
            starts.push(next);
            at = next;
        }
        Some(starts)
    }

    /// Where the bucket starts that `time` lies in, and where the next one does.
    fn bounds(&self, time: Nanos) -> Bounds {
        let time = timestamp_of(time);
        let day = offset_at(&self.zone, time).to_datetime(time).date();
        match self.width {
            Length::Clock(nanos) => {
                let width = i128::from(nanos);
                (self.clock_start(time, width), self.clock_next(time, width))
            }
            Length::Days(days) => {
                let days_since_origin = day.duration_since(MONDAY).as_hours() / 24;
                self.date_bounds(time, MONDAY, days_since_origin.div_euclid(days))
            }
            Length::Months(months) => {
                let months_since_origin = i64::from(day.year()) * 12 + i64::from(day.month()) - 1;
                self.date_bounds(time, YEAR_0, months_since_origin.div_euclid(months))
            }
        }
    }

    /// Buckets of days and months are numbered from an origin, and the first moment of a number
    /// is looked up. `number` is the one with the date that clocks show at `time`.
    fn date_bounds(&self, time: Timestamp, origin: Date, mut number: i64) -> Bounds {
        let start_at = |number| {
            let first = origin.checked_add(self.width.times(number)?.span()?).ok()?;
            start_of_date(first, &self.zone)
        };
        loop {
            let next = start_at(number + 1);
            if next.is_none_or(|next| time < next) {
                return (start_at(number), next);
            }
            // When clocks go back over midnight, the old day goes on after the new one has
            // started. That hour belongs to the new one: buckets don't interleave.
            number += 1;
        }
    }
}

/// Buckets on the clock: between two changes of the zone's offset they are evenly spaced.
impl Bucket {
    fn clock_start(&self, mut at: Timestamp, width: i128) -> Option<Timestamp> {
        loop {
            let start = at.as_nanosecond() - self.shown_at(at).rem_euclid(width);
            let start = Timestamp::from_nanosecond(start).ok()?;
            let Some(change) = last_change(&self.zone, at).filter(|&change| start < change) else {
                return Some(start);
            };
            if self.is_start_at_change(change, width) {
                return Some(change);
            }
            at = just_before(change)?;
        }
    }

    fn clock_next(&self, mut at: Timestamp, width: i128) -> Option<Timestamp> {
        loop {
            let next = at.as_nanosecond() - self.shown_at(at).rem_euclid(width) + width;
            let next = Timestamp::from_nanosecond(next).ok()?;
            let change = next_change(&self.zone, at);
            let Some(change) = change.filter(|&change| at < change && change <= next) else {
                return Some(next);
            };
            if self.is_start_at_change(change, width) {
                return Some(change);
            }
            at = change;
        }
    }

    /// Whether the clocks that are changed show a multiple of the width, or skip one.
    fn is_start_at_change(&self, change: Timestamp, width: i128) -> bool {
        let after = self.shown_at(change);
        let before = just_before(change).map_or(after, |before| self.shown_at(before));
        after.rem_euclid(width) == 0 || before.div_euclid(width) < after.div_euclid(width)
    }

    /// What clocks in the zone show, in nanoseconds since they showed 1970-01-01 00:00.
    fn shown_at(&self, time: Timestamp) -> i128 {
        let offset_seconds = offset_at(&self.zone, time).seconds();
        time.as_nanosecond() + i128::from(offset_seconds) * 1_000_000_000
    }
}

fn just_before(time: Timestamp) -> Option<Timestamp> {
    Timestamp::from_nanosecond(time.as_nanosecond() - 1).ok()
}

/// The width, as it can be parsed again.
impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.width.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{InZone, parse};
    use jiff::civil::Weekday;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;
    const MINUTE: i64 = 60 * SECOND;
    const HOUR: i64 = 60 * MINUTE;
    const NANOS_PER_MINUTE: usize = 60_000_000_000;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    fn range(start: &str, end: &str, zone: &TimeZone) -> Range {
        Range::parse(start, end, Nanos(0), zone).unwrap()
    }

    fn bucket(width: &str, zone: &TimeZone) -> Bucket {
        Bucket::parse(width, zone).unwrap_or_else(|error| panic!("{width}: {error}"))
    }

    /// The starts in the range, without the seconds.
    fn starts(width: &str, zone_name: &str, start: &str, end: &str) -> Vec<String> {
        let zone = &zone(zone_name);
        let starts = bucket(width, zone).starts(range(start, end, zone)).unwrap();
        let print = |time| InZone { time, zone }.to_string().replacen(":00", "", 1);
        starts.into_iter().map(print).collect()
    }

    #[test]
    fn days_have_23_and_25_hours_where_clocks_change() {
        assert_eq!(
            starts("1 day", "Europe/Berlin", "2026-03-28 12:00", "2026-03-30 00:00:01"),
            ["2026-03-28T00:00+01:00", "2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00"]
        );
        assert_eq!(
            starts("1 day", "America/New_York", "2026-10-31 12:00", "2026-11-02 00:00:01"),
            ["2026-10-31T00:00-04:00", "2026-11-01T00:00-04:00", "2026-11-02T00:00-05:00"]
        );
    }

    #[test]
    fn weeks_months_quarters_and_years_start_with_a_local_day() {
        assert_eq!(
            starts("1w", "Europe/Berlin", "2026-11-15", "2026-11-17"),
            ["2026-11-09T00:00+01:00", "2026-11-16T00:00+01:00"]
        );
        assert_eq!(
            starts("1 month", "Europe/Berlin", "2026-02-15", "2026-04-02"),
            ["2026-02-01T00:00+01:00", "2026-03-01T00:00+01:00", "2026-04-01T00:00+02:00"]
        );
        assert_eq!(
            starts("1 quarter", "Europe/Berlin", "2026-03-31", "2026-04-02"),
            ["2026-01-01T00:00+01:00", "2026-04-01T00:00+02:00"]
        );
        assert_eq!(
            starts("10 years", "UTC", "2026-03-31", "2030-01-02"),
            ["2020-01-01T00:00+00:00", "2030-01-01T00:00+00:00"]
        );
    }

    #[test]
    fn hours_follow_the_clock_on_the_wall() {
        assert_eq!(
            starts("1h", "Europe/Berlin", "2026-03-29 01:00", "2026-03-29 05:00"),
            ["2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"]
        );
        assert_eq!(
            starts("1h", "Europe/Berlin", "2026-10-25 01:30", "2026-10-25 03:30"),
            [
                "2026-10-25T01:00+02:00",
                "2026-10-25T02:00+02:00",
                "2026-10-25T02:00+01:00",
                "2026-10-25T03:00+01:00"
            ]
        );
        // 4 hours from midnight to 3 o'clock.
        assert_eq!(
            starts("3h", "Europe/Berlin", "2026-10-25", "2026-10-25 04:00"),
            ["2026-10-25T00:00+02:00", "2026-10-25T03:00+01:00"]
        );
    }

    #[test]
    fn hours_stay_whole_where_clocks_change_by_half_of_one() {
        assert_eq!(
            starts("1h", "Australia/Lord_Howe", "2026-04-05 01:00", "2026-04-05 03:30"),
            ["2026-04-05T01:00+11:00", "2026-04-05T02:00+10:30", "2026-04-05T03:00+10:30"]
        );
        // From 02:00 to 02:30: the bucket of two o'clock starts half-way.
        assert_eq!(
            starts("1h", "Australia/Lord_Howe", "2026-10-04 01:00", "2026-10-04 03:30"),
            ["2026-10-04T01:00+10:30", "2026-10-04T02:30+11:00", "2026-10-04T03:00+11:00"]
        );
    }

    #[test]
    fn a_day_that_comes_twice_or_never_has_one_bucket_or_none() {
        // From 00:01 back to 23:01.
        assert_eq!(
            starts("1d", "America/St_Johns", "2010-11-06 12:00", "2010-11-07 12:00"),
            ["2010-11-06T00:00-02:30", "2010-11-07T00:00-02:30"]
        );
        let zone = &zone("America/St_Johns");
        let second_time = parse("2010-11-06T23:30:00-03:30", Nanos(0), zone).unwrap();
        let start = bucket("1d", zone).start_of(second_time);
        assert_eq!(InZone { time: start, zone }.to_string(), "2010-11-07T00:00:00-02:30");
        assert_eq!(
            starts("1d", "Pacific/Apia", "2011-12-29", "2012-01-01"),
            ["2011-12-29T00:00-10:00", "2011-12-31T00:00+14:00"]
        );
    }

    #[test]
    fn an_automatic_bucket_leaves_at_most_800_points() {
        let zone = &zone("Europe/Berlin");
        let examples = [
            ("1 ns", "1 second"),
            ("800 s", "1 second"),
            ("801 s", "5 seconds"),
            ("1h", "5 seconds"),
            ("2h", "10 seconds"),
            ("6h", "30 seconds"),
            ("12h", "1 minute"),
            ("1 day", "5 minutes"),
            ("4 days", "10 minutes"),
            ("7 days", "30 minutes"),
            ("30 days", "1 hour"),
            ("90 days", "3 hours"),
            ("180 days", "6 hours"),
            ("1 year", "12 hours"),
            ("2 years", "1 day"),
            ("3 years", "1 week"),
            ("15 years", "1 week"),
            ("16 years", "30 days"),
            ("66 years", "1 year"),
        ];
        for (length, expected) in examples {
            let range = range("2026-01-01", &format!("2026-01-01 +{length}"), zone);
            assert_eq!(Bucket::automatic(range, zone).to_string(), expected, "{length}");
        }
        // One more where the range doesn't start with a bucket.
        let shifted = range("1700000000.5", "1700000800.5", zone);
        assert_eq!(Bucket::automatic(shifted, zone).to_string(), "5 seconds");
        let all = Range { start: Nanos(i64::MIN), end: Nanos(i64::MAX) };
        let widest = Bucket::automatic(all, zone);
        assert_eq!(widest.to_string(), "1 year");
        assert!(widest.starts(all).unwrap().len() <= POINTS_MAX);
    }

    #[test]
    fn too_many_buckets_are_refused_with_a_proposal() {
        let zone = &TimeZone::UTC;
        let month = range("2026-01-01", "2026-02-01", zone);
        assert_eq!(
            bucket("1s", zone).starts(month).unwrap_err().to_string(),
            "2026-01-01T00:00:00Z to 2026-02-01T00:00:00Z has more than 100000 buckets of \
             1 second; choose wider ones, such as 1 hour"
        );
        let most = range("0", "100000", zone);
        assert_eq!(bucket("1s", zone).starts(most).unwrap().len(), BUCKETS_MAX);
        assert!(bucket("1s", zone).starts(range("0", "100001", zone)).is_err());
    }

    #[test]
    fn a_range_without_time_has_no_buckets() {
        let reversed = Range { start: Nanos(1), end: Nanos(0) };
        assert_eq!(bucket("1s", &TimeZone::UTC).starts(reversed), Ok(Vec::new()));
    }

    #[test]
    fn widths_are_parsed_and_printed() {
        let zone = &TimeZone::UTC;
        let examples = [
            ("5m", "5 minutes"),
            ("1h", "1 hour"),
            (" 1  DAY ", "1 day"),
            ("7d", "1 week"),
            ("1 month", "1 month"),
            ("12 months", "1 year"),
            ("250ms", "250 milliseconds"),
            ("200 years", "200 years"),
        ];
        for (text, printed) in examples {
            let parsed = bucket(text, zone);
            assert_eq!(parsed.to_string(), printed);
            assert_eq!(bucket(printed, zone), parsed);
        }
        let errors = [
            ("", "the text ends where a bucket of up to 200 years is missing"),
            ("day", "`day` at character 1 is not a bucket of up to"),
            ("-5m", "`-5m` at character 1 is not a bucket of up to"),
            ("0 s", "`0 s` at character 1 is not a bucket of up to"),
            ("3 blinks", "`blinks` at character 3 is not a unit of time"),
            ("5m now", "`now` at character 4 is not a bucket of up to"),
            ("201 years", "`201 years` at character 1 is not a bucket of up to"),
            ("9223372036854775807h", "`9223372036854775807h` at character 1 is not a bucket"),
        ];
        for (text, expected) in errors {
            let error = Bucket::parse(text, zone).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    const ZONES: &[&str] = &["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"];
    /// Where clocks skipped or repeated midnights, days and odd numbers of seconds.
    const ODD_ZONES: &[&str] = &[
        "America/St_Johns",
        "America/Havana",
        "America/Toronto",
        "America/Juneau",
        "Africa/Monrovia",
        "Asia/Manila",
        "Pacific/Apia",
    ];
    const CLOCK_WIDTHS: &[&str] = &["1m", "7m", "30m", "1h", "3h", "5h", "12h", "36h"];
    const DATE_WIDTHS: &[&str] =
        &["1d", "2d", "1w", "30d", "1 month", "5 months", "1 quarter", "1 year", "7 years"];

    fn any_zone() -> impl Strategy<Value = TimeZone> {
        let names = [ZONES, ODD_ZONES].concat();
        prop::sample::select(names).prop_map(zone)
    }

    fn any_width() -> impl Strategy<Value = &'static str> {
        let exotic = &["1ns", "10us", "1s", "100 years", "1000000 hours", "200 years"][..];
        prop::sample::select([CLOCK_WIDTHS, DATE_WIDTHS, exotic].concat())
    }

    /// Any time in 1970 to 2037, half of them within a day of a change of the clocks.
    fn time_near_change() -> impl Strategy<Value = (TimeZone, Nanos)> {
        let seconds = 0..2_145_916_800_i64;
        (prop::sample::select(ZONES).prop_map(zone), seconds, any::<bool>(), -86_400..86_400_i64)
            .prop_map(|(zone, seconds, is_near, distance)| {
                let time = timestamp_of(Nanos(seconds * SECOND));
                let change = zone.following(time).next().filter(|_| is_near);
                let near = change.map(|change| change.timestamp().as_second() + distance);
                (zone, Nanos(near.unwrap_or(seconds) * SECOND))
            })
    }

    /// Walks from minute to minute and looks at the clock.
    fn clock_starts_by_walking(zone: &TimeZone, width: i64, range: Range) -> Vec<Nanos> {
        let shown = |time: i64| {
            let shown = zone.to_datetime(timestamp_of(Nanos(time)));
            let since_epoch = shown.duration_since(date(1970, 1, 1).at(0, 0, 0, 0));
            i64::try_from(since_epoch.as_nanos()).unwrap()
        };
        let is_start = |time: i64| {
            let (before, now) = (shown(time - MINUTE), shown(time));
            let skipped = (before + MINUTE..now).step_by(NANOS_PER_MINUTE);
            skipped.chain([now]).any(|shown| shown % width == 0)
        };
        let first_minute = range.start.0.div_euclid(MINUTE) * MINUTE;
        let mut back = (0..).map(|minutes| first_minute - minutes * MINUTE);
        let first = back.find(|&time| is_start(time)).unwrap();
        let minutes = (first..range.end.0).step_by(NANOS_PER_MINUTE);
        minutes.filter(|&time| is_start(time)).map(Nanos).collect()
    }

    /// Goes from day to day and takes those on which a bucket starts.
    fn date_starts_day_by_day(
        zone: &TimeZone,
        range: Range,
        is_start: impl Fn(Date) -> bool,
    ) -> Vec<Nanos> {
        let mut day = zone.to_datetime(timestamp_of(range.start)).date();
        while !is_start(day) {
            day = day.yesterday().unwrap();
        }
        let days = std::iter::successors(Some(day), |day| day.tomorrow().ok());
        let starts = days
            .filter(|&day| is_start(day))
            .map(|day| nanos_of(day.to_zoned(zone.clone()).unwrap().timestamp()).unwrap());
        starts.take_while(|&start| start < range.end).collect()
    }

    proptest! {
        #[test]
        fn every_time_lies_in_its_bucket(
            time in any::<i64>().prop_map(Nanos),
            zone in any_zone(),
            width in any_width(),
        ) {
            let bucket = bucket(width, &zone);
            let start = bucket.start_of(time);
            prop_assert!(start <= time);
            prop_assert_eq!(bucket.start_of(start), start);
            let next = bucket.next_start(time);
            prop_assert_eq!(bucket.next_start(start), next);
            if let Some(next) = next {
                prop_assert!(time < next);
                prop_assert_eq!(bucket.start_of(next), next);
                prop_assert_eq!(bucket.start_of(Nanos(next.0 - 1)), start);
            }
        }

        #[test]
        fn starts_ascend_and_cover_the_range(
            start in any::<i64>(),
            buckets in 0..500_i64,
            zone in any_zone(),
            width in any_width(),
        ) {
            let bucket = bucket(width, &zone);
            let about = i64::try_from(bucket.width.nanos_about()).unwrap();
            let length = about.saturating_mul(buckets).max(1);
            let range = Range { start: Nanos(start), end: Nanos(start.saturating_add(length)) };
            prop_assume!(range.start < range.end);
            let starts = bucket.starts(range).unwrap();
            prop_assert!(starts.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(starts[0], bucket.start_of(range.start));
            prop_assert!(starts[0] <= range.start && *starts.last().unwrap() < range.end);
            let last = Nanos(range.end.0 - 1);
            prop_assert_eq!(*starts.last().unwrap(), bucket.start_of(last));
            for pair in starts.windows(2) {
                prop_assert_eq!(bucket.next_start(pair[0]), Some(pair[1]));
            }
        }

        #[test]
        fn automatic_buckets_are_few_but_not_fewer_than_needed(
            start in -(1_i64 << 61)..1 << 61,
            length_bits in 0..62_u32,
            zone in any_zone(),
        ) {
            let range = Range { start: Nanos(start), end: Nanos(start + (1 << length_bits)) };
            let chosen = Bucket::automatic(range, &zone);
            prop_assert!(chosen.starts(range).unwrap().len() <= POINTS_MAX);
            let narrower = AUTOMATIC.iter().take_while(|&&width| width != chosen.width).last();
            if let Some(&width) = narrower {
                let starts = Bucket { width, zone }.starts(range);
                prop_assert!(starts.is_ok_and(|starts| starts.len() > POINTS_MAX));
            }
        }

        #[test]
        fn clock_buckets_are_those_of_a_walk(
            (zone, start) in time_near_change(),
            hours in 1..72_i64,
            width in prop::sample::select(CLOCK_WIDTHS),
        ) {
            let bucket = bucket(width, &zone);
            let range = Range { start, end: Nanos(start.0 + hours * HOUR) };
            let nanos = i64::try_from(bucket.width.nanos_about()).unwrap();
            let expected = clock_starts_by_walking(&zone, nanos, range);
            prop_assert_eq!(bucket.starts(range).unwrap(), expected);
        }

        #[test]
        fn date_buckets_are_those_of_every_day(
            (zone, start) in time_near_change(),
            days in 1..500_i64,
        ) {
            let range = Range { start, end: Nanos(start.0 + days * 24 * HOUR) };
            let check = |width, is_start: fn(Date) -> bool| {
                let starts = bucket(width, &zone).starts(range).unwrap();
                prop_assert_eq!(starts, date_starts_day_by_day(&zone, range, is_start));
                Ok(())
            };
            check("1 day", |_| true)?;
            check("1 week", |day| day.weekday() == Weekday::Monday)?;
            check("1 month", |day| day.day() == 1)?;
            check("1 quarter", |day| day.day() == 1 && day.month() % 3 == 1)?;
            check("1 year", |day| day.day_of_year() == 1)?;
        }
    }
}
