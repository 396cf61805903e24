//! Numbers.

use super::{JsonError, JsonProblem, Reader};
use crate::scan;

/// A number, with the difference that its writer made between `1` and `1.0`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    /// Also integers that don't fit 64 bits. Infinite when even this is too small for it.
    Float(f64),
}

/// Integers of this many digits fit an `i64`, whatever the digits are.
const DIGITS_SAFE: usize = 18;

impl<'t> Reader<'t> {
    #[inline]
    pub(crate) fn number(&mut self) -> Result<Number, JsonError> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let is_negative = bytes.get(start) == Some(&b'-');
        let digits_start = start + usize::from(is_negative);
        let mut at = digits_start;
        let mut value = 0_i64;
        while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            at += 1;
        }
        let digits = at - digits_start;
        if digits == 0 || (digits > 1 && bytes[digits_start] == b'0') {
            return Err(self.not_a_number(digits_start));
        }
        if matches!(bytes.get(at), Some(b'.' | b'e' | b'E')) {
            return self.float(at).map(Number::Float);
        }
        self.at = at;
        if digits > DIGITS_SAFE || (is_negative && value == 0) {
            return Ok(unusual_int(&self.text[start..at]));
        }
        Ok(Number::Int(if is_negative { -value } else { value }))
    }

    /// The text of the number that was taken last; for error texts.
    pub(crate) fn text_since(&self, start: usize) -> &'t str {
        &self.text[start..self.at]
    }

    /// A number with a fraction or an exponent, whose integer digits end at `at`.
    fn float(&mut self, mut at: usize) -> Result<f64, JsonError> {
        let bytes = self.text.as_bytes();
        if bytes[at] == b'.' {
            at = self.digits(at + 1)?;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let has_sign = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
            at = self.digits(at + 1 + usize::from(has_sign))?;
        }
        let start = std::mem::replace(&mut self.at, at);
        // Exact, unlike the default of JSON parsers: a row that is read back must be the row
        // that was sent.
        let parsed = self.text[start..at].parse();
        parsed.map_err(|_not_a_float| JsonError { at: start, problem: JsonProblem::Number })
    }

    /// Takes at least one digit, and gives the position after the last.
    #[inline]
    fn digits(&self, start: usize) -> Result<usize, JsonError> {
        let bytes = self.text.as_bytes();
        let mut at = scan::skip_plain(bytes, start, first_not_digit);
        while let Some(b'0'..=b'9') = bytes.get(at) {
            at += 1;
        }
        if at == start {
            return Err(JsonError { at, problem: JsonProblem::Number });
        }
        Ok(at)
    }

    #[cold]
    fn not_a_number(&self, at: usize) -> JsonError {
        let is_infinity = self.text.as_bytes()[at..].starts_with(b"Infinity");
        let problem = if is_infinity { JsonProblem::NotFinite } else { JsonProblem::Number };
        JsonError { at: self.at, problem }
    }
}

/// Minus zero, which only a float can hold, and integers that may not fit.
#[cold]
fn unusual_int(text: &str) -> Number {
    match text.parse::<i64>() {
        Ok(0) => Number::Float(-0.0),
        Ok(value) => Number::Int(value),
        Err(_) => Number::Float(text.parse().unwrap_or(f64::INFINITY)),
    }
}

/// Marks the first byte that isn't a digit: below `0`, or `:` and above.
#[inline]
fn first_not_digit(word: u64) -> u64 {
    scan::first_below(word, b'0') | !scan::below(word, b':')
}
