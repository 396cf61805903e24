//! Lengths of time as people count them: on the clock, in days, in months.

use std::fmt;

use jiff::Span;

const MICROSECOND: i64 = 1_000;
const MILLISECOND: i64 = 1_000 * MICROSECOND;
const SECOND: i64 = 1_000 * MILLISECOND;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A length in one of the three measures that can't be converted into each other: days have 23 to
/// 25 hours where clocks are changed, months have 28 to 31 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// Nanoseconds that pass on a clock.
    Clock(i64),
    Days(i64),
    Months(i64),
}

impl Length {
    pub(super) const fn seconds(count: i64) -> Self {
        Self::Clock(count * SECOND)
    }

    pub(super) const fn minutes(count: i64) -> Self {
        Self::Clock(count * MINUTE)
    }

    pub(super) const fn hours(count: i64) -> Self {
        Self::Clock(count * HOUR)
    }

    /// One of the unit with this name, upper case or lower.
    pub(super) fn of_unit(name: &str) -> Option<Self> {
        Some(match name.to_lowercase().as_str() {
            "ns" | "nanosecond" | "nanoseconds" => Self::Clock(1),
            // Two letters that look alike: the micro sign and the Greek mu. In lower case a micro
            // sign stays what it is.
            "us" | "µs" | "μs" | "microsecond" | "microseconds" => Self::Clock(MICROSECOND),
            "ms" | "millisecond" | "milliseconds" => Self::Clock(MILLISECOND),
            "s" | "sec" | "secs" | "second" | "seconds" => Self::seconds(1),
            "m" | "min" | "mins" | "minute" | "minutes" => Self::minutes(1),
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::hours(1),
            "d" | "day" | "days" => Self::Days(1),
            "w" | "wk" | "wks" | "week" | "weeks" => Self::Days(7),
            "mo" | "month" | "months" => Self::Months(1),
            "q" | "quarter" | "quarters" => Self::Months(3),
            "y" | "yr" | "yrs" | "year" | "years" => Self::Months(12),
            _ => return None,
        })
    }

    /// `None` when it is too long for 64 bits.
    pub(super) fn times(self, count: i64) -> Option<Self> {
        Some(match self {
            Self::Clock(one) => Self::Clock(one.checked_mul(count)?),
            Self::Days(one) => Self::Days(one.checked_mul(count)?),
            Self::Months(one) => Self::Months(one.checked_mul(count)?),
        })
    }

    /// `None` when it is longer than jiff's calendar.
    pub(super) fn span(self) -> Option<Span> {
        match self {
            Self::Clock(nanos) => Span::new().try_nanoseconds(nanos).ok(),
            Self::Days(days) => Span::new().try_days(days).ok(),
            Self::Months(months) => Span::new().try_months(months).ok(),
        }
    }

    /// How many nanoseconds it has, or can have where that depends on the calendar, leaving
    /// changes of the clock aside.
    pub(super) fn nanos_about(self) -> i128 {
        match self {
            Self::Clock(nanos) => i128::from(nanos),
            Self::Days(days) => i128::from(days) * i128::from(DAY),
            Self::Months(months) => i128::from(months) * 31 * i128::from(DAY),
        }
    }

    /// The largest unit of which this is a whole number.
    fn in_units(self) -> (i64, &'static str) {
        let (count, units): (i64, &[(i64, &str)]) = match self {
            Self::Clock(nanos) => (
                nanos,
                &[
                    (HOUR, "hour"),
                    (MINUTE, "minute"),
                    (SECOND, "second"),
                    (MILLISECOND, "millisecond"),
                    (MICROSECOND, "microsecond"),
                    (1, "nanosecond"),
                ],
            ),
            Self::Days(days) => (days, &[(7, "week"), (1, "day")]),
            Self::Months(months) => (months, &[(12, "year"), (3, "quarter"), (1, "month")]),
        };
        let whole = units.iter().find(|(size, _)| count % size == 0);
        whole.map_or((count, ""), |&(size, name)| (count / size, name))
    }
}

/// As it can be parsed again: `5 minutes`, `1 week`.
impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = self.in_units();
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "{count} {unit}{plural}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_short_and_long_names() {
        let units = [
            (Length::Clock(1), "ns nanosecond nanoseconds NS"),
            (Length::Clock(1_000), "us µs μs microsecond microseconds US ΜS"),
            (Length::Clock(1_000_000), "ms millisecond milliseconds MS"),
            (Length::Clock(1_000_000_000), "s sec secs second seconds S Sec"),
            (Length::Clock(60_000_000_000), "m min mins minute minutes M Minutes"),
            (Length::Clock(3_600_000_000_000), "h hr hrs hour hours H"),
            (Length::Days(1), "d day days DAY"),
            (Length::Days(7), "w wk wks week weeks"),
            (Length::Months(1), "mo month months"),
            (Length::Months(3), "q quarter quarters"),
            (Length::Months(12), "y yr yrs year years"),
        ];
        for (length, names) in units {
            for name in names.split(' ') {
                assert_eq!(Length::of_unit(name), Some(length), "{name}");
            }
        }
        for name in ["", "ss", "hs", "dayz", "fortnight", "mon"] {
            assert_eq!(Length::of_unit(name), None, "{name}");
        }
    }

    #[test]
    fn a_length_prints_in_its_largest_unit() {
        let lengths = [
            (Length::Clock(1), "1 nanosecond"),
            (Length::Clock(1_500_000_000), "1500 milliseconds"),
            (Length::minutes(90), "90 minutes"),
            (Length::hours(24), "24 hours"),
            (Length::Days(30), "30 days"),
            (Length::Days(14), "2 weeks"),
            (Length::Months(1), "1 month"),
            (Length::Months(6), "2 quarters"),
            (Length::Months(12), "1 year"),
        ];
        for (length, text) in lengths {
            assert_eq!(length.to_string(), text);
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_none() {
        assert_eq!(Length::hours(1).times(i64::MAX), None);
        assert_eq!(Length::Days(7).times(i64::MIN), None);
        assert!(Length::Days(i64::MAX).span().is_none());
        assert!(Length::Months(i64::MIN).span().is_none());
    }
}
