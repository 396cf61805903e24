//! Texts of several parts, as in `--agg count,p99:latency`.

/// The parts of a text between commas, without the spaces around them. Commas in quotes or in
/// parentheses separate nothing.
pub fn split_list(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    split_where(text, 1, |rest| {
        match rest.as_bytes()[0] {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && rest.starts_with(',')
    })
}

/// The parts of a text between separators that are not in quotes.
pub(super) fn split_by<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    split_where(text, separator.len(), |rest| rest.starts_with(separator))
}

/// Asks of every place outside of quotes whether a separator, so many bytes long, begins there.
fn split_where(text: &str, length: usize, mut begins: impl FnMut(&str) -> bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, character) in text.char_indices() {
        let was_escaped = std::mem::take(&mut is_escaped);
        match character {
            '"' if !was_escaped => is_quoted = !is_quoted,
            '\\' if is_quoted => is_escaped = !was_escaped,
            _ if !is_quoted && at >= start && begins(&text[at..]) => {
                parts.push(text[start..at].trim());
                start = at + length;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_except_in_quotes_and_parentheses() {
        assert_eq!(split_list("count, p99:latency"), ["count", "p99:latency"]);
        assert_eq!(split_list("bucket(x, 10),job"), ["bucket(x, 10)", "job"]);
        assert_eq!(split_list(r#"sum:"a,\",b",c"#), [r#"sum:"a,\",b""#, "c"]);
        assert_eq!(split_list(r#""a\\",b"#), [r#""a\\""#, "b"]);
        assert_eq!(split_list(""), [""]);
        assert_eq!(split_list("a,"), ["a", ""]);
    }

    #[test]
    fn separators_of_several_characters_do_not_overlap() {
        assert_eq!(split_by("a || b||c", "||"), ["a", "b", "c"]);
        assert_eq!(split_by("a|||b", "||"), ["a", "|b"]);
        assert_eq!(split_by(r#"x="a||b"||ä"#, "||"), [r#"x="a||b""#, "ä"]);
    }
}
