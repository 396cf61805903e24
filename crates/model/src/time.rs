//! Points in time, as nanoseconds since the Unix epoch.

use std::fmt;
use std::time::Duration;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Nanoseconds since 1970-01-01 UTC: from the year 1677 to 2262.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub i64);

impl Nanos {
    /// `None` when the time is outside what 64-bit nanoseconds hold.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        seconds.checked_mul(NANOS_PER_SECOND).map(Self)
    }

    /// `None` when the time isn't finite, or is outside what 64-bit nanoseconds hold.
    pub fn from_fractional_seconds(seconds: f64) -> Option<Self> {
        // Whole and fractional part apart: today's time in ns has more digits than an f64, so
        // one multiplication would round what the sender wrote.
        let whole = seconds.floor();
        let in_i64 = (-9.3e9..9.3e9).contains(&whole);
        if !in_i64 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked above")]
        let (whole, fraction) =
            (whole as i64, ((seconds - whole) * NANOS_PER_SECOND as f64).round() as i64);
        let nanos = i128::from(whole) * i128::from(NANOS_PER_SECOND) + i128::from(fraction);
        i64::try_from(nanos).ok().map(Self)
    }

    pub fn as_i64(self) -> i64 {
        self.0
    }

    /// Stops at the end of the range instead of wrapping around.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(nanos))
    }

    /// Stops at the end of the range instead of wrapping around.
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

/// RFC 3339 in UTC, with as many digits as needed.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(timestamp) => f.pad(&timestamp.to_string()),
            // Not reachable while jiff covers the years -9999 to 9999.
            Err(_) => write!(f, "{} ns", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_prints_as_rfc_3339() {
        assert_eq!(Nanos::from_seconds(1_700_000_000).unwrap().to_string(), "2023-11-14T22:13:20Z");
        assert_eq!(Nanos(1_500_000_000).to_string(), "1970-01-01T00:00:01.5Z");
        assert_eq!(Nanos(-1).to_string(), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(Nanos(i64::MAX).to_string(), "2262-04-11T23:47:16.854775807Z");
        assert_eq!(Nanos(i64::MIN).to_string(), "1677-09-21T00:12:43.145224192Z");
    }

    #[test]
    fn seconds_that_do_not_fit_are_none() {
        assert_eq!(Nanos::from_seconds(9_223_372_036), Some(Nanos(9_223_372_036_000_000_000)));
        assert_eq!(Nanos::from_seconds(9_223_372_037), None);
        for seconds in [f64::NAN, f64::INFINITY, -1e300, 9.23e9, -9.23e9, 1e18] {
            assert_eq!(Nanos::from_fractional_seconds(seconds), None, "{seconds}");
        }
    }

    #[test]
    fn fractions_keep_the_digits_that_were_sent() {
        assert_eq!(
            Nanos::from_fractional_seconds(1_700_000_000.25),
            Some(Nanos(1_700_000_000_250_000_000))
        );
        assert_eq!(Nanos::from_fractional_seconds(-0.25), Some(Nanos(-250_000_000)));
    }

    proptest! {
        #[test]
        fn whole_seconds_are_the_same_both_ways(seconds in -9_223_372_036_i64..=9_223_372_036) {
            prop_assert_eq!(
                Nanos::from_fractional_seconds(seconds as f64),
                Nanos::from_seconds(seconds)
            );
        }
    }
}
