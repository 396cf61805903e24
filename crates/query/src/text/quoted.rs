//! Names and values in double quotes.

use super::TextError;

/// In quotes, whatever it holds.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Reads what is in quotes at the start of `rest`, a part of `text`, and returns what follows;
/// `None` when there is no quote.
pub(crate) fn take_quoted<'t>(
    text: &str,
    rest: &'t str,
) -> Result<Option<(String, &'t str)>, TextError> {
    let Some(inside) = rest.strip_prefix('"') else { return Ok(None) };
    let mut unquoted = String::new();
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok(Some((unquoted, &inside[at + 1..]))),
            '\\' => match inside[at + 1..].chars().next() {
                Some(escaped @ ('"' | '\\')) => {
                    unquoted.push(escaped);
                    characters.next();
                }
                _ => unquoted.push('\\'),
            },
            character => unquoted.push(character),
        }
    }
    Err(TextError::new(text, rest, "the quote is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_quotes_and_backslashes_are_escaped() {
        let take = |text| take_quoted(text, text).unwrap();
        assert_eq!(take(r#""a\d\"\\" rest"#), Some((r#"a\d"\"#.to_owned(), " rest")));
        assert_eq!(take("plain"), None);
        let open = r#"x="a\""#;
        assert_eq!(
            take_quoted(open, &open[2..]).unwrap_err().to_string(),
            r#"`x=\"a\\\"`: the quote is not closed (at character 3)"#
        );
    }

    proptest! {
        #[test]
        fn what_was_quoted_is_read_again(inside in "\\PC{0,12}", after in "\\PC{0,4}") {
            let text = quoted(&inside) + &after;
            prop_assert_eq!(take_quoted(&text, &text), Ok(Some((inside, after.as_str()))));
        }
    }
}
