//! Lists in one text, as in `--agg count,p99:latency`.

/// The parts of a text between commas, without the spaces around them. Commas in quotes or in
/// parentheses separate nothing.
pub fn split_list(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut is_quoted, mut is_escaped) = (0, 0_usize, false, false);
    for (at, character) in text.char_indices() {
        let was_escaped = std::mem::take(&mut is_escaped);
        match character {
            '"' if !was_escaped => is_quoted = !is_quoted,
            '\\' if is_quoted => is_escaped = !was_escaped,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth = depth.saturating_sub(1),
            ',' if !is_quoted && depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
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
}
