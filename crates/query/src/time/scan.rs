//! Reads a text piece by piece and knows where it is, so that an error can point at a word.

use super::{Expected, TEXT_BYTES_MAX, TimeError};

/// A place in a text that is at most [`TEXT_BYTES_MAX`] long. A copy looks ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    /// In bytes, always between two characters.
    at: usize,
}

impl<'a> Scanner<'a> {
    /// `expected` is what is missing when the text is empty.
    pub(super) fn new(text: &'a str, expected: Expected) -> Result<Self, TimeError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(TimeError::TooLong { bytes: text.len() });
        }
        let mut scanner = Self { text, at: 0 };
        scanner.skip_spaces();
        if scanner.is_at_end() { Err(scanner.unexpected(expected)) } else { Ok(scanner) }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn skip_spaces(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Goes past this character if it is next; ASCII letters in either case.
    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let Some(next) = self.peek().filter(|next| next.eq_ignore_ascii_case(&wanted)) else {
            return false;
        };
        self.at += next.len_utf8();
        true
    }

    /// The digits that are next; may be none.
    pub(super) fn digits(&mut self) -> &'a str {
        self.take_while(|next| next.is_ascii_digit())
    }

    /// The letters that are next; may be none.
    pub(super) fn letters(&mut self) -> &'a str {
        self.take_while(char::is_alphabetic)
    }

    /// Goes past this word if it is next, after spaces.
    pub(super) fn eat_word(&mut self, wanted: &str) -> bool {
        let mut ahead = *self;
        ahead.skip_spaces();
        let is_next = ahead.letters().eq_ignore_ascii_case(wanted);
        if is_next {
            *self = ahead;
        }
        is_next
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|next| !wanted(next)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// What was read since `from`, an earlier state of this scanner.
    pub(super) fn since(&self, from: Self) -> &'a str {
        self.text.get(from.at..self.at).unwrap_or_default().trim_end()
    }

    /// Counts characters from 1.
    pub(super) fn position(&self) -> usize {
        self.text.get(..self.at).unwrap_or_default().chars().count() + 1
    }

    /// The word that is next isn't what belongs here.
    pub(super) fn unexpected(&self, expected: Expected) -> TimeError {
        let word = self.rest().split(char::is_whitespace).next().unwrap_or_default();
        self.error(word, expected)
    }

    /// All that is left isn't what belongs here.
    pub(super) fn all_unexpected(&self, expected: Expected) -> TimeError {
        self.error(self.rest().trim_end(), expected)
    }

    fn error(&self, word: &str, expected: Expected) -> TimeError {
        TimeError::Word { word: word.to_owned(), position: self.position(), expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_words_and_positions() {
        let mut scanner = Scanner::new("  µs-12 Über x", Expected::Time).unwrap();
        let from = scanner;
        assert_eq!(scanner.letters(), "µs");
        assert!(scanner.eat('-') && !scanner.eat('-'));
        assert_eq!((scanner.digits(), scanner.digits()), ("12", ""));
        assert_eq!((scanner.since(from), scanner.position()), ("µs-12", 8));
        scanner.skip_spaces();
        assert_eq!(
            scanner.unexpected(Expected::Unit),
            TimeError::Word { word: "Über".to_owned(), position: 9, expected: Expected::Unit }
        );
        assert_eq!(scanner.letters(), "Über");
        assert!(!scanner.eat_word("y") && scanner.eat_word("X") && scanner.is_at_end());
    }

    #[test]
    fn a_text_has_an_end_and_a_beginning() {
        let new = |text: &str| Scanner::new(text, Expected::Time).map(|scanner| scanner.position());
        assert_eq!(
            new(" \t\n "),
            Err(TimeError::Word { word: String::new(), position: 5, expected: Expected::Time })
        );
        assert_eq!(new(&"x".repeat(TEXT_BYTES_MAX)), Ok(1));
        let bytes = TEXT_BYTES_MAX + 1;
        assert_eq!(new(&"x".repeat(bytes)), Err(TimeError::TooLong { bytes }));
    }
}
