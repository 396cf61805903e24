//! From a text to a time: first the base, then the steps from it.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use perflab_model::Nanos;

use super::length::Length;
use super::scan::Scanner;
use super::{Expected, TimeError, nanos_of, start_of_date, timestamp_of};

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Reads a time in the grammar that this module's parent describes. `now` is the query's frozen
/// moment; days start and clocks tell the time in `zone`.
pub fn parse(text: &str, now: Nanos, zone: &TimeZone) -> Result<Nanos, TimeError> {
    let mut scanner = Scanner::new(text, Expected::Time)?;
    let whole = scanner;
    let now = timestamp_of(now).to_zoned(zone.clone());
    let mut time = read_base(&mut scanner, &now)?;
    for step in read_steps(&mut scanner)? {
        time = step.apply(&time)?;
    }
    nanos_of(time.timestamp()).ok_or_else(|| out_of_range(whole, scanner))
}

fn out_of_range(from: Scanner<'_>, to: Scanner<'_>) -> TimeError {
    TimeError::OutOfRange { word: to.since(from).to_owned(), position: from.position() }
}

/// What the steps start from: now, if the text starts with a step.
fn read_base(scanner: &mut Scanner<'_>, now: &Zoned) -> Result<Zoned, TimeError> {
    match scanner.peek() {
        Some('0'..='9') if is_date(*scanner) => read_date_time(scanner, now.time_zone()),
        Some('0'..='9' | '-') if !is_step(*scanner) => {
            Ok(read_unix_time(scanner)?.to_zoned(now.time_zone().clone()))
        }
        Some('0'..='9' | '-' | '+') => Ok(now.clone()),
        _ => read_named(scanner, now),
    }
}

fn is_date(mut ahead: Scanner<'_>) -> bool {
    ahead.digits().len() == 4 && ahead.eat('-')
}

/// Whether a word follows the number: without one, the number is a Unix time.
fn is_step(mut ahead: Scanner<'_>) -> bool {
    ahead.eat('-');
    ahead.skip_spaces();
    let has_number = !ahead.digits().is_empty();
    ahead.skip_spaces();
    !has_number || ahead.peek().is_some_and(char::is_alphabetic)
}

/// `now`, or a day by name with an optional time of day.
fn read_named(scanner: &mut Scanner<'_>, now: &Zoned) -> Result<Zoned, TimeError> {
    let from = *scanner;
    let name = scanner.letters().to_lowercase();
    if name == "now" {
        return Ok(now.clone());
    }
    let today = now.date();
    let date = match name.as_str() {
        "today" => Some(today),
        "yesterday" => today.yesterday().ok(),
        "tomorrow" => today.tomorrow().ok(),
        weekday => {
            let wanted = weekday_of(weekday).ok_or_else(|| from.unexpected(Expected::Time))?;
            let days_ago = today.weekday().since(wanted);
            Length::Days(-i64::from(days_ago)).span().and_then(|span| today.checked_add(span).ok())
        }
    };
    let time = read_time_after_date(scanner)?;
    let zoned = date.and_then(|date| in_zone(date, time, now.time_zone()));
    zoned.ok_or_else(|| out_of_range(from, *scanner))
}

fn weekday_of(name: &str) -> Option<Weekday> {
    Some(match name {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" | "tues" => Weekday::Tuesday,
        "wednesday" | "wed" => Weekday::Wednesday,
        "thursday" | "thu" | "thur" | "thurs" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return None,
    })
}

fn in_zone(date: Date, time: Option<Time>, zone: &TimeZone) -> Option<Zoned> {
    match time {
        Some(time) => date.to_datetime(time).to_zoned(zone.clone()).ok(),
        None => Some(start_of_date(date, zone)?.to_zoned(zone.clone())),
    }
}

/// `2026-11-15`, with or without a time of day, with or without an offset after that.
fn read_date_time(scanner: &mut Scanner<'_>, zone: &TimeZone) -> Result<Zoned, TimeError> {
    let from = *scanner;
    let date = read_date(scanner).ok_or_else(|| from.unexpected(Expected::Date))?;
    let time = read_time_after_date(scanner)?;
    let offset = time.and_then(|_| read_offset(scanner));
    let zoned = match (time, offset) {
        (Some(time), Some(offset)) => {
            let timestamp = offset.to_timestamp(date.to_datetime(time)).ok();
            timestamp.map(|timestamp| timestamp.to_zoned(zone.clone()))
        }
        _ => in_zone(date, time, zone),
    };
    zoned.ok_or_else(|| out_of_range(from, *scanner))
}

fn read_date(scanner: &mut Scanner<'_>) -> Option<Date> {
    let year = scanner.digits().parse().ok()?;
    let month = scanner.eat('-').then(|| read_two_digits(scanner))??;
    let day = scanner.eat('-').then(|| read_two_digits(scanner))??;
    Date::new(year, month, day).ok()
}

fn read_two_digits(scanner: &mut Scanner<'_>) -> Option<i8> {
    Some(scanner.digits()).filter(|digits| digits.len() == 2)?.parse().ok()
}

/// After `T`, `@` or spaces; `None` when something else follows, such as a step.
fn read_time_after_date(scanner: &mut Scanner<'_>) -> Result<Option<Time>, TimeError> {
    let mut ahead = *scanner;
    let mut is_time = ahead.eat('T');
    if !is_time {
        ahead.skip_spaces();
        is_time = ahead.eat('@');
        ahead.skip_spaces();
    }
    let from = ahead;
    if !is_time {
        let mut number = ahead;
        is_time = !number.digits().is_empty() && number.eat(':');
    }
    if !is_time {
        return Ok(None);
    }
    let time = read_time(&mut ahead).ok_or_else(|| from.unexpected(Expected::TimeOfDay))?;
    *scanner = ahead;
    Ok(Some(time))
}

/// `14:30`, `14:30:05`, `14:30:05.123456789`
fn read_time(scanner: &mut Scanner<'_>) -> Option<Time> {
    let hour = Some(scanner.digits()).filter(|digits| digits.len() <= 2)?.parse().ok()?;
    let minute = scanner.eat(':').then(|| read_two_digits(scanner))??;
    let (mut second, mut nanos) = (0, 0);
    if scanner.eat(':') {
        second = read_two_digits(scanner)?;
        nanos = read_fraction(scanner)?;
    }
    if second == 60 {
        // A leap second, which RFC 3339 allows and Unix time doesn't have.
        second = 59;
    }
    Time::new(hour, minute, second, nanos).ok()
}

/// The nanoseconds after the point, 0 without one. Digits past the ninth are cut off.
fn read_fraction(scanner: &mut Scanner<'_>) -> Option<i32> {
    if !scanner.eat('.') {
        return Some(0);
    }
    let digits = Some(scanner.digits()).filter(|digits| !digits.is_empty())?;
    format!("{digits:0<9}").get(..9)?.parse().ok()
}

/// `Z`, `UTC`, `+01:00` or `+0100`; `None`, and nothing read, when something else follows.
fn read_offset(scanner: &mut Scanner<'_>) -> Option<Offset> {
    if scanner.eat_word("z") || scanner.eat_word("utc") {
        return Some(Offset::UTC);
    }
    let mut ahead = *scanner;
    ahead.skip_spaces();
    let sign = if ahead.eat('-') { -1 } else { i32::from(ahead.eat('+')) };
    let digits = ahead.digits();
    let (hours, minutes) = match digits.len() {
        2 if ahead.eat(':') => (digits, ahead.digits()),
        // `+0100 hours` is a step.
        4 if !is_before_word(ahead) => digits.split_at(2),
        _ => return None,
    };
    let has_two_digits = minutes.len() == 2;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let is_valid = sign != 0 && hours < 24 && has_two_digits && minutes < 60;
    let offset = is_valid.then_some(sign * (hours * 60 + minutes) * 60)?;
    *scanner = ahead;
    Offset::from_seconds(offset).ok()
}

fn is_before_word(mut ahead: Scanner<'_>) -> bool {
    ahead.skip_spaces();
    ahead.peek().is_some_and(char::is_alphabetic)
}

fn read_unix_time(scanner: &mut Scanner<'_>) -> Result<Timestamp, TimeError> {
    let from = *scanner;
    let sign = if scanner.eat('-') { -1 } else { 1 };
    scanner.skip_spaces();
    let digits = scanner.digits();
    let unexpected = || from.unexpected(Expected::UnixTime);
    let (nanos_per_unit, fraction) = match digits.len() {
        1..=10 => (NANOS_PER_SECOND, read_fraction(scanner).ok_or_else(unexpected)?),
        13 => (1_000_000, 0),
        16 => (1_000, 0),
        19 => (1, 0),
        _ => return Err(unexpected()),
    };
    let count: i128 = digits.parse().ok().ok_or_else(unexpected)?;
    let nanos = sign * (count * nanos_per_unit + i128::from(fraction));
    Timestamp::from_nanosecond(nanos).ok().ok_or_else(|| out_of_range(from, *scanner))
}

/// A length of time to go, and where the text says so.
struct Step<'a> {
    from: Scanner<'a>,
    to: Scanner<'a>,
    direction: Option<Direction>,
    count: i64,
    unit: Length,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Back,
    Forward,
}

impl Step<'_> {
    fn apply(&self, time: &Zoned) -> Result<Zoned, TimeError> {
        let count = match self.direction {
            Some(Direction::Back) => -self.count,
            Some(Direction::Forward) => self.count,
            None => return Err(self.without_direction()),
        };
        let span = self.unit.times(count).and_then(Length::span);
        let then = span.and_then(|span| time.checked_add(span).ok());
        then.ok_or_else(|| out_of_range(self.from, self.to))
    }

    fn without_direction(&self) -> TimeError {
        let step = self.to.since(self.from).to_owned();
        TimeError::Direction { step, position: self.from.position() }
    }
}

fn read_steps<'a>(scanner: &mut Scanner<'a>) -> Result<Vec<Step<'a>>, TimeError> {
    let mut steps = Vec::new();
    scanner.skip_spaces();
    while !scanner.is_at_end() {
        steps.push(read_step(scanner)?);
        if scanner.eat_word("ago") {
            turn_back(&mut steps, *scanner)?;
        }
        scanner.skip_spaces();
    }
    Ok(steps)
}

fn read_step<'a>(scanner: &mut Scanner<'a>) -> Result<Step<'a>, TimeError> {
    let from = *scanner;
    let direction = if scanner.eat('-') {
        Some(Direction::Back)
    } else {
        scanner.eat('+').then_some(Direction::Forward)
    };
    scanner.skip_spaces();
    let expected = if direction.is_some() { Expected::Number } else { Expected::Step };
    let (count, unit) = read_length(scanner, expected)?;
    Ok(Step { from, to: *scanner, direction, count, unit })
}

/// A number and a unit; `expected` is what is missing when there is no number.
pub(super) fn read_length(
    scanner: &mut Scanner<'_>,
    expected: Expected,
) -> Result<(i64, Length), TimeError> {
    let from = *scanner;
    let digits = scanner.digits();
    if digits.is_empty() {
        return Err(from.unexpected(expected));
    }
    let count = digits.parse().ok().ok_or_else(|| out_of_range(from, *scanner))?;
    scanner.skip_spaces();
    let unit_from = *scanner;
    let unit = Length::of_unit(scanner.letters());
    Ok((count, unit.ok_or_else(|| unit_from.unexpected(Expected::Unit))?))
}

/// `ago` is about the last step and the ones right before it that have no sign of their own:
/// `1 week 2 hours ago`.
fn turn_back<'a>(steps: &mut [Step<'a>], after_ago: Scanner<'a>) -> Result<(), TimeError> {
    let Some((last, before)) = steps.split_last_mut() else { return Ok(()) };
    last.to = after_ago;
    if last.direction == Some(Direction::Forward) {
        return Err(last.without_direction());
    }
    last.direction = Some(Direction::Back);
    for step in before.iter_mut().rev().take_while(|step| step.direction.is_none()) {
        step.direction = Some(Direction::Back);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{InZone, TEXT_BYTES_MAX};
    use proptest::prelude::*;

    /// A Sunday, 21:13:20.5 in Berlin.
    const NOW: Nanos = Nanos(1_794_773_600_500_000_000);

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    fn check(examples: &[(&str, &str)]) {
        let zone = &berlin();
        for (text, expected) in examples {
            let time = parse(text, NOW, zone).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(InZone { time, zone }.to_string(), *expected, "{text}");
        }
    }

    fn error(text: &str) -> String {
        parse(text, NOW, &berlin()).unwrap_err().to_string()
    }

    #[test]
    fn days_by_name() {
        check(&[
            ("now", "2026-11-15T21:13:20.5+01:00"),
            ("today", "2026-11-15T00:00:00+01:00"),
            ("yesterday", "2026-11-14T00:00:00+01:00"),
            ("tomorrow", "2026-11-16T00:00:00+01:00"),
            ("sunday", "2026-11-15T00:00:00+01:00"),
            ("saturday", "2026-11-14T00:00:00+01:00"),
            ("monday", "2026-11-09T00:00:00+01:00"),
            ("Mon", "2026-11-09T00:00:00+01:00"),
            ("tues", "2026-11-10T00:00:00+01:00"),
            ("wed", "2026-11-11T00:00:00+01:00"),
            ("THURSDAY", "2026-11-12T00:00:00+01:00"),
            ("fri", "2026-11-13T00:00:00+01:00"),
            ("today @ 09:30", "2026-11-15T09:30:00+01:00"),
            ("Today@9:30:05", "2026-11-15T09:30:05+01:00"),
            ("yesterday 14:00:01.25", "2026-11-14T14:00:01.25+01:00"),
            ("sunday @ 23:00", "2026-11-15T23:00:00+01:00"),
        ]);
    }

    #[test]
    fn steps_on_the_clock_and_in_the_calendar() {
        check(&[
            ("-1 ns", "2026-11-15T21:13:20.499999999+01:00"),
            ("-500 ms", "2026-11-15T21:13:20+01:00"),
            ("+500µs", "2026-11-15T21:13:20.5005+01:00"),
            ("-20 s", "2026-11-15T21:13:00.5+01:00"),
            ("-1 sec", "2026-11-15T21:13:19.5+01:00"),
            ("+40 seconds", "2026-11-15T21:14:00.5+01:00"),
            ("-13 min", "2026-11-15T21:00:20.5+01:00"),
            ("-13m", "2026-11-15T21:00:20.5+01:00"),
            ("-1 minute", "2026-11-15T21:12:20.5+01:00"),
            ("-1h", "2026-11-15T20:13:20.5+01:00"),
            ("+3 hours", "2026-11-16T00:13:20.5+01:00"),
            ("-1d", "2026-11-14T21:13:20.5+01:00"),
            ("-30 days", "2026-10-16T21:13:20.5+02:00"),
            ("-720 hours", "2026-10-16T22:13:20.5+02:00"),
            ("-1 w", "2026-11-08T21:13:20.5+01:00"),
            ("-1 month", "2026-10-15T21:13:20.5+02:00"),
            ("-1 quarter", "2026-08-15T21:13:20.5+02:00"),
            ("-1 year", "2025-11-15T21:13:20.5+01:00"),
            ("3 days ago", "2026-11-12T21:13:20.5+01:00"),
            ("-3 days ago", "2026-11-12T21:13:20.5+01:00"),
            ("1 week 2 hours ago", "2026-11-08T19:13:20.5+01:00"),
            ("-1 week +2 hours", "2026-11-08T23:13:20.5+01:00"),
            ("-1w+2h", "2026-11-08T23:13:20.5+01:00"),
            ("+1 day 2 hours ago", "2026-11-16T19:13:20.5+01:00"),
            ("-0 days", "2026-11-15T21:13:20.5+01:00"),
        ]);
    }

    #[test]
    fn steps_after_a_base() {
        check(&[
            ("now -1 day", "2026-11-14T21:13:20.5+01:00"),
            ("now-1d", "2026-11-14T21:13:20.5+01:00"),
            ("now - 1 day", "2026-11-14T21:13:20.5+01:00"),
            ("yesterday +3 hours", "2026-11-14T03:00:00+01:00"),
            ("yesterday @ 12:00 -1 hour", "2026-11-14T11:00:00+01:00"),
            ("today 2 days ago", "2026-11-13T00:00:00+01:00"),
            ("2026-01-31 +1 month", "2026-02-28T00:00:00+01:00"),
            ("2024-02-29 +1 year", "2025-02-28T00:00:00+01:00"),
            ("2026-01-31 +1 month +1 month", "2026-03-28T00:00:00+01:00"),
            ("2026-11-15 10:00 -1h", "2026-11-15T09:00:00+01:00"),
            ("2026-11-15T10:00:00Z -1h", "2026-11-15T10:00:00+01:00"),
            ("2026-11-15 10:00 +0100 hours", "2026-11-19T14:00:00+01:00"),
            ("1700000000 +1 day", "2023-11-15T23:13:20+01:00"),
            ("1700000000-1d", "2023-11-13T23:13:20+01:00"),
            ("  \tNOW \n -  1   DAY   +2HOURS  ", "2026-11-14T23:13:20.5+01:00"),
        ]);
    }

    #[test]
    fn unix_times_by_their_digits() {
        check(&[
            ("0", "1970-01-01T01:00:00+01:00"),
            ("5", "1970-01-01T01:00:05+01:00"),
            ("-5", "1970-01-01T00:59:55+01:00"),
            ("1700000000", "2023-11-14T23:13:20+01:00"),
            ("1700000000.25", "2023-11-14T23:13:20.25+01:00"),
            ("-0.5", "1970-01-01T00:59:59.5+01:00"),
            ("1700000000000", "2023-11-14T23:13:20+01:00"),
            ("1700000000000001", "2023-11-14T23:13:20.000001+01:00"),
            ("1700000000000000001", "2023-11-14T23:13:20.000000001+01:00"),
            ("-1700000000", "1916-02-18T02:46:40+01:00"),
            ("-1700000000000", "1916-02-18T02:46:40+01:00"),
        ]);
    }

    #[test]
    fn dates_and_rfc_3339() {
        check(&[
            ("2026-11-15", "2026-11-15T00:00:00+01:00"),
            ("2026-07-15", "2026-07-15T00:00:00+02:00"),
            ("2026-11-15 20:00", "2026-11-15T20:00:00+01:00"),
            ("2026-11-15 @ 20:00", "2026-11-15T20:00:00+01:00"),
            ("2026-11-15T20:00", "2026-11-15T20:00:00+01:00"),
            ("2026-11-15 20:00:07", "2026-11-15T20:00:07+01:00"),
            ("2026-11-15T20:00:07.125", "2026-11-15T20:00:07.125+01:00"),
            ("2026-11-15T20:00:07.1234567899", "2026-11-15T20:00:07.123456789+01:00"),
            ("2026-11-15T20:00:07Z", "2026-11-15T21:00:07+01:00"),
            ("2026-11-15t20:00:07.5z", "2026-11-15T21:00:07.5+01:00"),
            ("2026-11-15 20:00 UTC", "2026-11-15T21:00:00+01:00"),
            ("2026-11-15T20:00:07-05:00", "2026-11-16T02:00:07+01:00"),
            ("2026-11-15 20:00:07 +0530", "2026-11-15T15:30:07+01:00"),
            ("2026-11-15T20:00:07-00:00", "2026-11-15T21:00:07+01:00"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:59:59+01:00"),
        ]);
    }

    #[test]
    fn days_keep_the_time_of_day_where_clocks_change() {
        check(&[
            ("2026-03-29 12:00 -1 day", "2026-03-28T12:00:00+01:00"),
            ("2026-03-29 12:00 -24 hours", "2026-03-28T11:00:00+01:00"),
            ("2026-03-29 02:30", "2026-03-29T03:30:00+02:00"),
            ("2026-10-25 02:30", "2026-10-25T02:30:00+02:00"),
            ("2026-10-25 02:30 +1 hour", "2026-10-25T02:30:00+01:00"),
            ("2026-10-24 02:30 +1 day", "2026-10-25T02:30:00+02:00"),
        ]);
    }

    #[test]
    fn errors_point_at_the_word_and_give_an_example() {
        let examples = [
            ("noon", "`noon` at character 1 is not a time, such as `now`"),
            ("@ 12:00", "`@` at character 1 is not a time, such as"),
            ("-1 lightyear", "`lightyear` at character 4 is not a unit of time, such as `s`, "),
            ("now -1", "the text ends where a unit of time is missing, such as `s`, "),
            ("now +", "the text ends where the number of a step is missing, such as `30`"),
            ("+5", "the text ends where a unit of time is missing"),
            ("yesterday-ish", "`ish` at character 11 is not the number of a step"),
            ("now then", "`then` at character 5 is not a step, such as `-2 hours`"),
            ("Größe", "`Größe` at character 1 is not a time"),
            ("now µ x", "`µ` at character 5 is not a step"),
            ("2026-13-01", "`2026-13-01` at character 1 is not a date, such as `2026-11-15`"),
            ("2026-1-1", "`2026-1-1` at character 1 is not a date"),
            ("2026-02-29", "`2026-02-29` at character 1 is not a date"),
            ("today @ noon", "`noon` at character 9 is not a time of day, such as `14:30`"),
            ("2026-11-15 25:00", "`25:00` at character 12 is not a time of day"),
            ("2026-11-15T", "the text ends where a time of day is missing"),
            ("2026-11-15 12:00 [UTC]", "`[UTC]` at character 18 is not a step"),
            ("12345678901", "`12345678901` at character 1 is not a Unix time of 10 (s), 13 (ms)"),
            ("1.", "`1.` at character 1 is not a Unix time"),
            ("7 days", "`7 days` at character 1 does not say whether before or after; write `-7"),
            ("-1 week 2 hours", "`2 hours` at character 9 does not say whether before or after"),
            ("+3 days ago", "`+3 days ago` at character 1 does not say whether before or after"),
            ("a\0\u{7}", "`a\\0\\u{7}` at character 1 is not a time"),
        ];
        for (text, expected) in examples {
            let error = error(text);
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        assert!(error(" ").starts_with("the text ends where a time is missing, such as `now`"));
        assert_eq!(
            error(&"now ".repeat(TEXT_BYTES_MAX)),
            "the time has 1024 bytes, the limit is 256"
        );
    }

    #[test]
    fn times_that_do_not_fit_are_refused() {
        let examples = [
            ("-1000 years", "-1000 years"),
            ("now  -99999999999999999999 s", "99999999999999999999"),
            ("now  -9999999999999999999 weeks", "9999999999999999999"),
            ("now +9223372036854775807 years", "+9223372036854775807 years"),
            ("9999-12-31", "9999-12-31"),
            ("9999-12-31 23:59 +1 day", "9999-12-31 23:59"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("9999999999", "9999999999"),
            ("9999999999999999999", "9999999999999999999"),
        ];
        for (text, word) in examples {
            let error = error(text);
            assert!(error.starts_with(&format!("`{word}` at character ")), "{text}: {error}");
            assert!(error.contains(" leads outside of 1677-09-21T"), "{text}: {error}");
        }
    }

    const PIECES: &[&str] = &[
        "now",
        "today",
        "monday",
        "tomorrow",
        "@",
        "12:30",
        ":",
        "-",
        "+",
        "1",
        "30",
        "9999",
        "2026-11-15",
        "T",
        "Z",
        "utc",
        "+01:00",
        ".5",
        "days",
        "h",
        "months",
        "years",
        "ago",
        "1700000000",
        "9223372036854775807",
        " ",
        "\u{a0}",
        "µs",
        "İ",
        "0000",
        "ns",
    ];

    fn zones() -> impl Strategy<Value = TimeZone> {
        prop::sample::select(vec!["UTC", "Europe/Berlin", "Pacific/Apia", "Australia/Lord_Howe"])
            .prop_map(|name| TimeZone::get(name).unwrap())
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), now in any::<i64>(), zone in zones()) {
            if let Err(error) = parse(&text, Nanos(now), &zone) {
                prop_assert!(!error.to_string().is_empty());
            }
        }

        #[test]
        fn no_text_of_known_pieces_panics(
            pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12),
            now in any::<i64>(),
            zone in zones(),
        ) {
            if let Err(error) = parse(&pieces.concat(), Nanos(now), &zone) {
                prop_assert!(!error.to_string().is_empty());
            }
        }

        #[test]
        fn seconds_are_exact(now in any::<i32>(), count in any::<i32>(), zone in zones()) {
            let now = Nanos(i64::from(now) * 1_000_000_000);
            let expected = Nanos(now.0 + i64::from(count) * 1_000_000_000);
            prop_assert_eq!(parse(&format!("{count:+} s"), now, &zone), Ok(expected));
        }
    }
}
