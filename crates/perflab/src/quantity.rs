//! Durations and sizes as people write them: `90d`, `24h`, `20G`.

use std::time::Duration;

/// Why a quantity could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuantityError {
    #[error("`{text}` does not start with a whole number")]
    NoNumber { text: String },
    #[error("`{unit}` is no unit; {expected}")]
    Unit { unit: String, expected: &'static str },
    #[error("`{text}` is too large")]
    TooLarge { text: String },
    #[error("`{text}` is nothing; give at least 1")]
    Zero { text: String },
}

const DURATION_UNITS: &str = "use s, m, h, d or w, as in 24h or 90d";
const SIZE_UNITS: &str = "use K, M, G or T (powers of 1024), as in 512M or 20G";

/// Reads a duration such as `90d`. It always has a unit: a bare `90` would be anyone's guess.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let (number, unit) = split(text)?;
    let seconds_per_unit = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        unit => return Err(unknown_unit(unit, DURATION_UNITS)),
    };
    multiply(text, number, seconds_per_unit).map(Duration::from_secs)
}

/// Reads a size in bytes such as `20G`; a bare number is bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text)?;
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "k" | "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(unknown_unit(unit, SIZE_UNITS)),
    };
    multiply(text, number, 1 << shift)
}

/// A size for people, to two or three digits.
pub(crate) fn show_size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let fits = |power: &usize| bytes >> (10 * power) > 0;
    match (1..=units.len()).rev().find(fits) {
        None => format!("{bytes} B"),
        Some(power) => {
            let unit = units[power - 1];
            let whole = bytes >> (10 * power);
            let tenths = ((bytes >> (10 * (power - 1))) % 1024) * 10 / 1024;
            if whole < 10 { format!("{whole}.{tenths} {unit}") } else { format!("{whole} {unit}") }
        }
    }
}

/// A duration for people, in its largest whole unit.
pub(crate) fn show_duration(seconds: u64) -> String {
    let units = [(24 * 3600, "d"), (3600, "h"), (60, "m")];
    match units.into_iter().find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", seconds / unit),
        None => format!("{seconds}s"),
    }
}

fn split(text: &str) -> Result<(u64, &str), QuantityError> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(QuantityError::NoNumber { text: text.to_owned() });
    }
    let number = number
        .parse::<u64>()
        .map_err(|_too_many_digits| QuantityError::TooLarge { text: text.to_owned() })?;
    match number {
        0 => Err(QuantityError::Zero { text: text.to_owned() }),
        number => Ok((number, unit.trim_start())),
    }
}

fn unknown_unit(unit: &str, expected: &'static str) -> QuantityError {
    QuantityError::Unit { unit: unit.to_owned(), expected }
}

fn multiply(text: &str, number: u64, unit: u64) -> Result<u64, QuantityError> {
    // The server and SQLite hold these as signed numbers.
    match number.checked_mul(unit) {
        Some(product) if i64::try_from(product).is_ok() => Ok(product),
        _ => Err(QuantityError::TooLarge { text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_write_is_read() {
        assert_eq!(parse_duration("90d"), Ok(Duration::from_secs(90 * 24 * 3600)));
        assert_eq!(parse_duration("24 h"), Ok(Duration::from_secs(24 * 3600)));
        assert_eq!(parse_size("20G"), Ok(20 << 30));
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("1KB"), Ok(1024));
        assert_eq!(parse_size("77"), Ok(77));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let duration = |text| parse_duration(text).unwrap_err().to_string();
        assert_eq!(duration("d"), "`d` does not start with a whole number");
        assert_eq!(duration("5"), "`` is no unit; use s, m, h, d or w, as in 24h or 90d");
        assert_eq!(duration("5y"), "`y` is no unit; use s, m, h, d or w, as in 24h or 90d");
        assert_eq!(duration("0d"), "`0d` is nothing; give at least 1");
        let size = |text| parse_size(text).unwrap_err().to_string();
        assert_eq!(size("-1G"), "`-1G` does not start with a whole number");
        assert_eq!(size("9999999T"), "`9999999T` is too large");
        assert_eq!(size("99999999999999999999"), "`99999999999999999999` is too large");
        assert_eq!(
            size("1.5G"),
            "`.5G` is no unit; use K, M, G or T (powers of 1024), as in 512M or 20G"
        );
    }

    #[test]
    fn they_are_shown_short() {
        let shown: Vec<_> =
            [0, 1023, 1024, 1536, 10 << 20, 64 << 30].into_iter().map(show_size).collect();
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "10 MiB", "64 GiB"]);
        let shown: Vec<_> = [0, 90, 3600, 172_800].into_iter().map(show_duration).collect();
        assert_eq!(shown, ["0s", "90s", "1h", "2d"]);
    }

    proptest! {
        #[test]
        fn a_shown_duration_reads_back(seconds in 1_u64..1 << 40) {
            prop_assert_eq!(
                parse_duration(&show_duration(seconds)),
                Ok(Duration::from_secs(seconds))
            );
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,24}") {
            let read = (parse_duration(&text).is_ok(), parse_size(&text).is_ok());
            let _ = read;
        }
    }
}
