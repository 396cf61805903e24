//! Answers of queries, for people: tables, and lines drawn of series.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::output::{self, count, note};

/// Eighths of a character's height.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The widest line that is drawn; longer series are drawn by the largest of neighbouring points.
const LINE_CHARACTERS_MAX: usize = 60;

/// What the server answers to a query.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    columns: Vec<Column>,
    rows: Vec<Map<String, Value>>,
    other: Option<Map<String, Value>>,
    total: Option<Map<String, Value>>,
    stats: Stats,
}

#[derive(Debug, Deserialize)]
struct Column {
    name: String,
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Stats {
    rows_scanned: u64,
    complete: bool,
    missing: Vec<String>,
    /// Nothing where no range was asked about, as in SQL.
    since: Option<String>,
    until: Option<String>,
}

impl Column {
    fn is_number(&self) -> bool {
        matches!(self.kind.as_str(), "int" | "float")
    }
}

impl Answer {
    /// The texts of a column. Where a group has its name, the column itself comes after it, with a
    /// number.
    pub(crate) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let column = self.columns.iter().rev().find(|column| column.name.starts_with(name));
        let cells = column.map(|column| self.rows.iter().map(|row| &row[&column.name]));
        cells.into_iter().flatten().filter_map(Value::as_str)
    }
}

/// Prints an answer as CSV, as the server would.
pub(crate) fn print_csv(answer: &Answer) -> Result<(), Failure> {
    output::data(&output::csv_line(answer.columns.iter().map(|column| column.name.as_str()))?)?;
    for row in &answer.rows {
        let cells: Vec<_> = answer.columns.iter().map(|column| exact(&row[&column.name])).collect();
        output::data(&output::csv_line(cells.iter().map(String::as_str))?)?;
    }
    Ok(())
}

/// Prints an answer as a table.
pub(crate) fn print_table(answer: &Answer) -> Result<(), Failure> {
    if !answer.rows.is_empty() {
        let heads = answer.columns.iter().map(|column| (column.name.clone(), column.is_number()));
        let cells = |row: &Map<String, Value>| {
            answer.columns.iter().map(|column| shown(&row[&column.name])).collect()
        };
        output::data(&output::grid(heads.collect(), answer.rows.iter().map(cells)))?;
    }
    print_stats(answer);
    Ok(())
}

/// Prints a series as lines, one for each group and metric. The metrics come after the groups.
pub(crate) fn print_lines(answer: &Answer, metrics: usize) -> Result<(), Failure> {
    for line in lines(answer, metrics) {
        let most = line.points.iter().flatten().copied().reduce(f64::max);
        let most = most.map_or_else(|| "-".to_owned(), short);
        let bars = bars(&line.points);
        output::data(&format!("{bars}  to {most}  {}\n", output::visible(&line.name)))?;
    }
    print_stats(answer);
    Ok(())
}

fn print_stats(answer: &Answer) {
    for (what, row) in [("all others", &answer.other), ("all groups", &answer.total)] {
        if let Some(row) = row {
            let metrics: Vec<_> =
                row.iter().map(|(name, value)| format!("{name} {}", shown(value))).collect();
            note(&format!("{what}: {}", metrics.join(", ")));
        }
    }
    let Stats { rows_scanned, complete, missing, since, until } = &answer.stats;
    let rows = count(*rows_scanned, "row");
    match (since, until) {
        (Some(since), Some(until)) if *rows_scanned == 0 => {
            note(&format!("no rows from {since} to {until}: --since and --until choose others"));
        }
        (Some(since), Some(until)) => note(&format!("of {rows} from {since} to {until}")),
        (Some(_), None) | (None, _) => note(&format!("of {rows}")),
    }
    if !complete {
        warn_of_missing(&missing.join("; "));
    }
}

/// A value in full.
fn exact(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(String::new, |number| number.to_string())
        }
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Says that an answer is incomplete.
pub(crate) fn warn_of_missing(missing: &str) {
    note(&format!("warning: this is incomplete: {missing}"));
}

/// A value in a table, numbers to six digits.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), short),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn short(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    let digits = number.abs().log10().floor();
    if !(-5.0..15.0).contains(&digits) {
        return format!("{number:.5e}");
    }
    #[expect(clippy::cast_possible_truncation, reason = "from -5 to 14")]
    let places = usize::try_from(5 - digits as i64).unwrap_or(0);
    let text = format!("{number:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A line of a series: a point for each bucket that has rows.
#[derive(Debug, PartialEq)]
struct Line {
    name: String,
    points: Vec<Option<f64>>,
}

fn lines(answer: &Answer, metrics: usize) -> Vec<Line> {
    let (groups, metrics) = answer.columns.split_at(answer.columns.len() - metrics);
    let Some(time) = groups.iter().find(|column| column.kind == "time") else { return Vec::new() };
    let mut buckets: Vec<String> = answer.rows.iter().map(|row| shown(&row[&time.name])).collect();
    buckets.sort();
    buckets.dedup();
    let mut places = HashMap::new();
    let mut lines: Vec<Line> = Vec::new();
    for row in &answer.rows {
        let group = groups.iter().filter(|column| column.kind != "time");
        let group: Vec<_> = group.map(|column| shown(&row[&column.name])).collect();
        let Ok(bucket) = buckets.binary_search(&shown(&row[&time.name])) else { continue };
        for metric in metrics {
            let name = format!("{} {}", metric.name, group.join(" ")).trim_end().to_owned();
            let place = *places.entry(name.clone()).or_insert_with(|| {
                lines.push(Line { name, points: vec![None; buckets.len()] });
                lines.len() - 1
            });
            lines[place].points[bucket] = row[&metric.name].as_f64();
        }
    }
    lines
}

/// Points as bars from zero, or from the lowest below it, to the highest.
fn bars(points: &[Option<f64>]) -> String {
    let neighbours = points.len().div_ceil(LINE_CHARACTERS_MAX).max(1);
    let highest = |points: &[Option<f64>]| points.iter().flatten().copied().reduce(f64::max);
    let drawn: Vec<_> = points.chunks(neighbours).map(highest).collect();
    let known = drawn.iter().flatten().copied();
    let (low, high) = (known.clone().fold(0.0, f64::min), known.fold(0.0, f64::max));
    let bar = |point: &Option<f64>| match point {
        None => ' ',
        Some(_) if high <= low => BARS[0],
        Some(point) => {
            let eighths = ((point - low) / (high - low) * 7.0).round();
            #[expect(clippy::cast_possible_truncation, reason = "from 0 to 7")]
            #[expect(clippy::cast_sign_loss, reason = "from 0 to 7")]
            let eighths = eighths as usize;
            BARS[eighths.min(7)]
        }
    };
    drawn.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_short_and_not_wrong() {
        let texts: Vec<_> = [0.0, 3.0, -2.5, 1234.5678, 0.001_234_567, 1e-9, 123_456_789.25, 1e20]
            .map(short)
            .into();
        assert_eq!(
            texts,
            ["0", "3", "-2.5", "1234.57", "0.00123457", "1.00000e-9", "123456789", "1.00000e20"]
        );
    }

    #[test]
    fn a_line_is_drawn_from_zero() {
        let points = [Some(0.0), None, Some(3.5), Some(7.0)];
        assert_eq!(bars(&points), "▁ ▅█");
        assert_eq!(bars(&[Some(5.0)]), "█");
        assert_eq!(bars(&[Some(0.0)]), "▁");
        assert_eq!(bars(&[Some(-7.0), Some(0.0)]), "▁█");
        assert_eq!(bars(&[]), "");
        let long: Vec<_> = (0..1000).map(|point| Some(f64::from(point))).collect();
        assert!(bars(&long).chars().count() <= LINE_CHARACTERS_MAX);
    }

    #[test]
    fn a_series_has_a_line_per_group_and_metric_with_gaps() {
        let answer: Answer = serde_json::from_value(json!({
            "columns": [
                {"name": "time", "kind": "time"},
                {"name": "job", "kind": "string"},
                {"name": "count", "kind": "float"},
            ],
            "rows": [
                {"time": "1", "job": "a", "count": 1.0},
                {"time": "1", "job": "b", "count": 2.0},
                {"time": "2", "job": "b", "count": null},
                {"time": "3", "job": "a", "count": 3.0},
            ],
            "stats": {
                "rows_scanned": 4, "complete": true, "missing": [], "since": "", "until": "",
            },
        }))
        .unwrap();
        let line = |name: &str, points: [Option<f64>; 3]| Line {
            name: name.to_owned(),
            points: points.to_vec(),
        };
        assert_eq!(
            lines(&answer, 1),
            [
                line("count a", [Some(1.0), None, Some(3.0)]),
                line("count b", [Some(2.0), None, None]),
            ]
        );
    }
}
