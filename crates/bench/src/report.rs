//! What is printed: Markdown tables and bars on stdout, talk on stderr.

use std::fmt;
use std::io::Write;

/// A line on stderr: what is going on.
pub(crate) fn say(line: &str) {
    // There is nobody left to tell that stderr is closed.
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// Text on stdout: the result.
pub(crate) fn print(text: &dyn fmt::Display) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{text}")
}

/// A Markdown table whose columns line up.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    pub(crate) fn add(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.rows[0].len(), "a row has a cell per column");
        self.rows.push(row);
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default().max(3)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, row) in self.rows.iter().enumerate() {
            for (column, cell) in row.iter().enumerate() {
                let width = self.width(column);
                // Names to the left, numbers to the right.
                match column {
                    0 => write!(f, "| {cell:<width$} ")?,
                    _ => write!(f, "| {cell:>width$} ")?,
                }
            }
            writeln!(f, "|")?;
            if index == 0 {
                for column in 0..row.len() {
                    let dashes = "-".repeat(self.width(column));
                    match column {
                        0 => write!(f, "| {dashes} ")?,
                        _ => write!(f, "| {}: ", &dashes[1..])?,
                    }
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// A promise and what was measured.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    pub(crate) what: String,
    pub(crate) measured: f64,
    pub(crate) limit: Limit,
    pub(crate) unit: &'static str,
}

/// On which side of the promise the measured value must be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    AtLeast(f64),
    AtMost(f64),
}

impl Bar {
    pub(crate) fn holds(&self) -> bool {
        match self.limit {
            Limit::AtLeast(limit) => self.measured >= limit,
            Limit::AtMost(limit) => self.measured <= limit,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.holds() { "PASS" } else { "FAIL" };
        let (sign, limit) = match self.limit {
            Limit::AtLeast(limit) => ("≥", limit),
            Limit::AtMost(limit) => ("≤", limit),
        };
        let Self { what, measured, unit, .. } = self;
        write!(f, "- {verdict}: {what}: {measured:.2}{unit} (bar {sign} {limit:.2}{unit})")
    }
}

/// A whole number with its thousands apart: `1,234,567`.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let mut table = Table::new(&["what", "rows/s"]);
        table.add(vec!["a".to_owned(), "1,000,000".to_owned()]);
        assert_eq!(
            table.to_string(),
            "| what |    rows/s |\n| ---- | --------: |\n| a    | 1,000,000 |\n"
        );
    }

    #[test]
    fn bars_say_on_which_side_they_are() {
        let bar = |measured, limit| Bar { what: "x".to_owned(), measured, limit, unit: "×" };
        let at_least = bar(0.5, Limit::AtLeast(0.5));
        assert_eq!(at_least.to_string(), "- PASS: x: 0.50× (bar ≥ 0.50×)");
        assert!(!bar(0.49, Limit::AtLeast(0.5)).holds());
        assert!(bar(3.0, Limit::AtMost(3.0)).holds());
        let at_most = bar(3.1, Limit::AtMost(3.0));
        assert_eq!(at_most.to_string(), "- FAIL: x: 3.10× (bar ≤ 3.00×)");
        assert!(!bar(f64::NAN, Limit::AtMost(3.0)).holds(), "not measured");
    }

    #[test]
    fn thousands_are_apart() {
        for (value, text) in [(0.0, "0"), (999.6, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(thousands(value), text);
        }
    }
}
