//! Where reading starts: an offset, a time, or so long ago.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use perflab_log::ReadFrom;
use perflab_model::Nanos;

use crate::error::ApiError;

pub(super) fn parse_from(text: &str, now: Nanos) -> Result<ReadFrom, ApiError> {
    if let Ok(offset) = text.parse() {
        return Ok(ReadFrom::Seq(offset));
    }
    let time = absolute(text).or_else(|| relative(text, now)).ok_or_else(|| {
        let text = text.escape_debug();
        ApiError::bad_request(format!("`from` is `{text}`, which is no offset and no time"))
            .with_hint("an offset, 2026-11-15T20:00:00Z, or a time ago like -1h or -30 days")
    })?;
    let nanos = i64::try_from(time.as_nanosecond());
    Ok(ReadFrom::Time(nanos.unwrap_or(if time > Timestamp::UNIX_EPOCH {
        i64::MAX
    } else {
        i64::MIN
    })))
}

/// RFC 3339, or a date with or without a time in UTC.
fn absolute(text: &str) -> Option<Timestamp> {
    let in_utc = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
    text.parse().ok().or_else(|| Some(in_utc()?.timestamp()))
}

/// `-1h`, `-30 days`, `2 weeks ago`
fn relative(text: &str, now: Nanos) -> Option<Timestamp> {
    let span: Span = text.parse().ok()?;
    let now = Timestamp::from_nanosecond(i128::from(now.as_i64())).ok()?;
    // In a time zone, since only there days and months have lengths.
    let then = now.to_zoned(TimeZone::UTC).checked_add(span).ok()?;
    Some(then.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos(1_700_000_000_000_000_000);

    fn seconds(text: &str) -> i64 {
        match parse_from(text, NOW) {
            Ok(ReadFrom::Time(ns)) => ns / 1_000_000_000,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn offsets_times_and_times_ago_are_told_apart() {
        assert_eq!(parse_from("17", NOW).unwrap(), ReadFrom::Seq(17));
        assert_eq!(seconds("2023-11-14T22:13:20Z"), 1_700_000_000);
        assert_eq!(seconds("2023-11-14T23:13:20+01:00"), 1_700_000_000);
        assert_eq!(seconds("2023-11-14"), 1_699_920_000);
        assert_eq!(seconds("-1h"), 1_700_000_000 - 3600);
        assert_eq!(seconds("-30 days"), 1_700_000_000 - 30 * 86_400);
        assert_eq!(seconds("2 weeks ago"), 1_700_000_000 - 14 * 86_400);
        for bad in ["", "yesterday-ish", "12:00", "-1 lightyear", "-99999999999999 years"] {
            assert!(parse_from(bad, NOW).is_err(), "{bad}");
        }
    }
}
