//! Conditions as people type them.

use std::fmt;

use super::{TextError, quoted, take_quoted};
use crate::document::{Filter, Operator};
use crate::nearest::did_you_mean;

/// Operators of signs. A longer one comes before its beginning.
const SIGNS: [(&str, Operator); 10] = [
    ("==", Operator::Eq),
    ("!=", Operator::Neq),
    ("!~", Operator::NotRegex),
    (">=", Operator::Gte),
    ("<=", Operator::Lte),
    ("=~", Operator::Regex),
    ("=", Operator::Eq),
    (">", Operator::Gt),
    ("<", Operator::Lt),
    ("~", Operator::Regex),
];

/// Operators of several words, which no other name stands for.
const PHRASES: [(&str, Operator); 4] = [
    ("is not null", Operator::NotNull),
    ("is null", Operator::Null),
    ("not in", Operator::Neq),
    ("in", Operator::Eq),
];

/// What ends a column that is not in quotes.
const ENDS_COLUMN: [char; 5] = ['=', '!', '<', '>', '~'];

/// Whether a text can only be a name: it has no operator, of signs or of words.
pub(crate) fn is_name(text: &str) -> bool {
    !text.contains(|c: char| c.is_whitespace() || ENDS_COLUMN.contains(&c))
}

/// Reads a condition, such as `status=failed` or `tags all a,b`.
pub fn parse_condition(text: &str) -> Result<Filter, TextError> {
    let (column, rest) = take_column(text)?;
    let rest = rest.trim_start();
    if let Some((sign, op)) = SIGNS.into_iter().find(|(sign, _)| rest.starts_with(sign)) {
        let values = vec![take_value(text, rest[sign.len()..].trim())?];
        return Ok(Filter { column, op, values });
    }
    let (op, rest) = take_word_operator(text, rest)?;
    let values = match op.values_max() {
        0 if rest.is_empty() => Vec::new(),
        0 => return Err(TextError::new(text, rest, "nothing belongs here")),
        1 => vec![take_value(text, rest)?],
        _ => take_values(text, rest)?,
    };
    Ok(Filter { column, op, values })
}

fn take_column(text: &str) -> Result<(String, &str), TextError> {
    let start = text.trim_start();
    if let Some(taken) = take_quoted(text, start)? {
        return Ok(taken);
    }
    let is_end = |c: char| c.is_whitespace() || ENDS_COLUMN.contains(&c);
    let (column, rest) = start.split_at(start.find(is_end).unwrap_or(start.len()));
    if column.is_empty() {
        return Err(TextError::new(text, start, "a column belongs here, as in `status=failed`"));
    }
    Ok((column.to_owned(), rest))
}

fn take_word_operator<'t>(text: &str, rest: &'t str) -> Result<(Operator, &'t str), TextError> {
    for (phrase, op) in PHRASES {
        if let Some(rest) = after_words(rest, phrase) {
            return Ok((op, rest));
        }
    }
    let word = rest.split_whitespace().next().unwrap_or_default();
    match word.to_lowercase().parse::<Operator>() {
        Ok(op) => Ok((op, rest[word.len()..].trim())),
        Err(unknown) => {
            let meant = did_you_mean(unknown.nearest);
            let problem = format!("an operator belongs here, such as `=`, `~` or `in`{meant}");
            Err(TextError::new(text, rest, problem))
        }
    }
}

/// What follows these words, in any case and with any spaces between them.
fn after_words<'t>(text: &'t str, words: &str) -> Option<&'t str> {
    let mut rest = text;
    for word in words.split(' ') {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (found, after) = rest.split_at(end);
        if !found.eq_ignore_ascii_case(word) {
            return None;
        }
        rest = after.trim_start();
    }
    Some(rest.trim_end())
}

/// One value: all that is left, or what is in quotes.
fn take_value(text: &str, rest: &str) -> Result<String, TextError> {
    match take_quoted(text, rest)? {
        Some((value, "")) => Ok(value),
        Some((_, after)) => Err(TextError::new(text, after, "nothing belongs after the quote")),
        None if rest.is_empty() => {
            let problem = format!("a value is missing; {} is the empty text", quoted(""));
            Err(TextError::new(text, rest, problem))
        }
        None => Ok(rest.to_owned()),
    }
}

fn take_values(text: &str, rest: &str) -> Result<Vec<String>, TextError> {
    super::split_list(rest).into_iter().map(|part| take_value(text, part)).collect()
}

/// The text that is read as this condition.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain =
            !self.column.is_empty() && is_name(&self.column) && !is_special(&self.column);
        match is_plain {
            true => f.write_str(&self.column)?,
            false => f.write_str(&quoted(&self.column))?,
        }
        let signs = SIGNS.into_iter().filter(|(sign, _)| !matches!(*sign, "==" | "=~"));
        let sign = signs.into_iter().find(|(_, op)| *op == self.op);
        if let (Some((sign, _)), [value]) = (sign, &self.values[..]) {
            return write!(f, "{sign}{}", written(value));
        }
        let phrase = PHRASES.into_iter().find(|(_, op)| *op == self.op);
        write!(f, " {}", phrase.map_or(self.op.as_str(), |(phrase, _)| phrase))?;
        for (place, value) in self.values.iter().enumerate() {
            let before = if place == 0 { " " } else { "," };
            write!(f, "{before}{}", written(value))?;
        }
        Ok(())
    }
}

/// A value, in quotes where it would be misread.
fn written(value: &str) -> String {
    let is_plain = !value.is_empty() && value.trim() == value && !is_special(value);
    if is_plain { value.to_owned() } else { quoted(value) }
}

/// Whether something in a text could be taken for what separates or quotes.
fn is_special(text: &str) -> bool {
    text.contains(['"', ',', '(', ')', '=', '~', '>', '<'])
        || text.contains("&&")
        || text.contains("||")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, column: &str, op: Operator, values: &[&str]) {
        let values = values.iter().map(ToString::to_string).collect();
        let expected = Filter { column: column.to_owned(), op, values };
        assert_eq!(parse_condition(text), Ok(expected), "{text}");
    }

    #[test]
    fn what_people_type_is_read() {
        check("status=failed", "status", Operator::Eq, &["failed"]);
        check(" status == a=b ", "status", Operator::Eq, &["a=b"]);
        check("test~^nn", "test", Operator::Regex, &["^nn"]);
        check("test =~ ^nn, x", "test", Operator::Regex, &["^nn, x"]);
        check(r#"test~"^\w+\\d""#, "test", Operator::Regex, &[r"^\w+\d"]);
        check("test !~ slow$", "test", Operator::NotRegex, &["slow$"]);
        check("latency>=10", "latency", Operator::Gte, &["10"]);
        check("latency < -1.5", "latency", Operator::Lt, &["-1.5"]);
        check("a!=b", "a", Operator::Neq, &["b"]);
        check("x in a,b", "x", Operator::Eq, &["a", "b"]);
        check(r#"x NOT  IN a , "b,c""#, "x", Operator::Neq, &["a", "b,c"]);
        check("tags all a,b", "tags", Operator::All, &["a", "b"]);
        check("name is null", "name", Operator::Null, &[]);
        check("name is  not null ", "name", Operator::NotNull, &[]);
        check("name contains in x", "name", Operator::Contains, &["in x"]);
        check(r#""job name" = """#, "job name", Operator::Eq, &[""]);
        check("stack starts_with main,run", "stack", Operator::StartsWith, &["main", "run"]);
        check("größe>1", "größe", Operator::Gt, &["1"]);
    }

    #[test]
    fn errors_point_at_the_place() {
        let error = |text| parse_condition(text).unwrap_err().to_string();
        assert_eq!(
            error("status failed"),
            "`status failed`: an operator belongs here, such as `=`, `~` or `in` (at character 8)"
        );
        assert_eq!(
            error("größe contans x"),
            "`größe contans x`: an operator belongs here, such as `=`, `~` or `in`; did you mean \
             `contains`? (at character 7)"
        );
        assert_eq!(
            error("status="),
            "`status=`: a value is missing; \"\" is the empty text (at the end)"
        );
        assert_eq!(
            error("=x"),
            "`=x`: a column belongs here, as in `status=failed` (at character 1)"
        );
        assert_eq!(
            error("x in a,,b"),
            "`x in a,,b`: a value is missing; \"\" is the empty text (at character 8)"
        );
        assert_eq!(
            error(r#"x = "a" b"#),
            r#"`x = \"a\" b`: nothing belongs after the quote (at character 8)"#
        );
        assert_eq!(error("x is null y"), "`x is null y`: nothing belongs here (at character 11)");
        assert!(error("").ends_with("(at the end)"));
    }

    proptest! {
        #[test]
        fn quoted_columns_and_values_are_kept(
            column in "\\PC{1,8}",
            values in prop::collection::vec("\\PC{0,8}", 1..4),
        ) {
            let listed: Vec<_> = values.iter().map(|value| quoted(value)).collect();
            let text = format!("{} in {}", quoted(&column), listed.join(" , "));
            let expected = Filter { column, op: Operator::Eq, values };
            prop_assert_eq!(parse_condition(&text), Ok(expected));
        }

        #[test]
        fn what_is_written_is_read_again(
            column in "\\PC{1,8}|is|in",
            op in prop::sample::select(Operator::ALL.to_vec()),
            values in prop::collection::vec("\\PC{0,8}|a \\|\\| b|=x", 1..4),
        ) {
            let count = op.values_max().min(values.len());
            let filter = Filter { column, op, values: values[..count].to_vec() };
            let text = filter.to_string();
            prop_assert_eq!(crate::text::parse_conditions(&text), Ok(vec![vec![filter]]), "{}", text);
        }

        #[test]
        fn no_text_panics(text in "[a-z\"\\\\ =!<>~,é]{0,24}") {
            if let Err(error) = parse_condition(&text) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
