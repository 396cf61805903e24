//! What a row has besides its columns: its time and its weight.

use super::error::{MessageError, TimeUnit, quote};
use crate::json::Number;
use perflab_model::{Nanos, RowError};
use std::time::Duration;

/// How far a row's time may be ahead of its arrival: more than any time zone mistake or wrong
/// clock explains, and it would hide at the end of every chart.
pub const TIME_AHEAD_MAX: Duration = Duration::from_hours(24);

/// 2000-01-01: a time in another unit than seconds is guessed to be after this.
const LIKELY_SECONDS_MIN: f64 = 946_684_800.0;

pub(crate) const TIME: &str = "time";
pub(crate) const WEIGHT: &str = "weight";
pub(crate) const SAMPLE_RATE: &str = "sample_rate";

/// The fields of a message that say something about its row as a whole.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    time: Field,
    /// A time that is exact already.
    instant: Option<Nanos>,
    weight: Field,
    sample_rate: Option<Number>,
}

#[derive(Debug, Default)]
enum Field {
    #[default]
    Absent,
    Null,
    Is(Number),
}

impl Field {
    fn set(&mut self, value: Option<Number>, name: &str) -> Result<(), RowError> {
        if !matches!(self, Self::Absent) {
            return Err(RowError::Twice { column: name.to_owned() });
        }
        *self = value.map_or(Self::Null, Self::Is);
        Ok(())
    }
}

impl Properties {
    /// Whether this field is a property of the row, and no column.
    #[inline]
    pub(crate) fn is_property(name: &str) -> bool {
        matches!(name, TIME | WEIGHT)
    }

    /// Takes a field for which [`Self::is_property`] holds.
    pub(crate) fn set(&mut self, name: &str, value: Option<Number>) -> Result<(), RowError> {
        match name {
            TIME => self.time.set(value, TIME),
            _ => self.weight.set(value, WEIGHT),
        }
    }

    /// Takes the time, where it is known to the nanosecond.
    pub(crate) fn set_instant(&mut self, time: Nanos) {
        self.instant = Some(time);
    }

    /// Whether this column says how many rows there were for each that was kept.
    pub(crate) fn is_sample_rate(name: &str) -> bool {
        name == SAMPLE_RATE
    }

    /// Looks at a numeric column, in case it is `sample_rate`.
    #[inline]
    pub(crate) fn note(&mut self, name: &str, value: Number) {
        if Self::is_sample_rate(name) {
            self.sample_rate = Some(value);
        }
    }

    /// The row's time and weight.
    pub(crate) fn resolve(&self, arrival: Nanos) -> Result<(Nanos, f64), MessageError> {
        let time = match (self.instant, &self.time) {
            (Some(time), _) => check_instant(time, arrival)?,
            (None, Field::Is(time)) => check_time(*time, arrival)?,
            (None, Field::Absent | Field::Null) => arrival,
        };
        let weight = match (&self.weight, self.sample_rate) {
            (Field::Is(weight), _) => check_weight(WEIGHT, *weight)?,
            (Field::Absent | Field::Null, Some(rate)) => check_weight(SAMPLE_RATE, rate)?,
            (Field::Absent | Field::Null, None) => 1.0,
        };
        Ok((time, weight))
    }
}

fn check_time(time: Number, arrival: Nanos) -> Result<Nanos, MessageError> {
    let (nanos, seconds) = match time {
        Number::Int(seconds) => (Nanos::from_seconds(seconds), seconds as f64),
        Number::Float(seconds) => (Nanos::from_fractional_seconds(seconds), seconds),
    };
    let latest = arrival.saturating_add(TIME_AHEAD_MAX);
    if let Some(nanos) = nanos
        && nanos <= latest
    {
        return Ok(nanos);
    }
    let value = match time {
        Number::Int(seconds) => quote(&seconds.to_string()),
        Number::Float(seconds) => quote(&seconds.to_string()),
    };
    if nanos.is_none() && seconds < 0.0 {
        return Err(MessageError::TimeRange { value });
    }
    Err(MessageError::TimeAhead { value, arrival, looks_like: guess_unit(seconds, latest) })
}

fn check_instant(time: Nanos, arrival: Nanos) -> Result<Nanos, MessageError> {
    if time <= arrival.saturating_add(TIME_AHEAD_MAX) {
        return Ok(time);
    }
    Err(MessageError::TimeAhead { value: time.to_string(), arrival, looks_like: None })
}

fn guess_unit(value: f64, latest: Nanos) -> Option<TimeUnit> {
    let latest_seconds = latest.as_i64() as f64 / 1e9;
    let units = [
        (TimeUnit::Milliseconds, 1e3),
        (TimeUnit::Microseconds, 1e6),
        (TimeUnit::Nanoseconds, 1e9),
    ];
    let is_likely = |scale: f64| (LIKELY_SECONDS_MIN..=latest_seconds).contains(&(value / scale));
    units.into_iter().find(|&(_, scale)| is_likely(scale)).map(|(unit, _)| unit)
}

fn check_weight(column: &'static str, weight: Number) -> Result<f64, MessageError> {
    let value = match weight {
        Number::Int(weight) => weight as f64,
        Number::Float(weight) => weight,
    };
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(MessageError::Weight { column, value })
}
