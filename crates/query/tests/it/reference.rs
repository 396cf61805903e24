//! The meaning of a question, in the plainest words.

use std::collections::BTreeSet;

use perflab_query::algebra::{Aggregate, Comparison, Condition, Dimension, Question, Test};
use perflab_query::testing::{Cell, Row};
use perflab_query::{AnswerRow, Value};
use regex::Regex;

pub(crate) fn answer(question: &Question, rows: &[Row]) -> Vec<AnswerRow> {
    let floats = float_names(rows);
    let mut groups: Vec<(Vec<Value>, Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| is_asked_for(question, row)) {
        let dimensions = question.group_by.iter();
        let group: Vec<Value> = dimensions.map(|d| group_value(d, row, &floats)).collect();
        match groups.iter_mut().find(|(other, _)| *other == group) {
            Some((_, members)) => members.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    if question.group_by.is_empty() && groups.is_empty() {
        groups.push((Vec::new(), Vec::new()));
    }
    let finish = |(group, members): (Vec<Value>, Vec<&Row>)| AnswerRow {
        group,
        values: question.aggregates.iter().map(|a| aggregate(a, &members, &floats)).collect(),
    };
    groups.into_iter().map(finish).collect()
}

/// The values of all rows together whose groups are meant.
pub(crate) fn together(
    question: &Question,
    rows: &[Row],
    is_meant: &dyn Fn(&[Value]) -> bool,
) -> Vec<Option<f64>> {
    let floats = float_names(rows);
    let group = |row: &Row| -> Vec<Value> {
        question.group_by.iter().map(|d| group_value(d, row, &floats)).collect()
    };
    let rows_meant: Vec<&Row> =
        rows.iter().filter(|row| is_asked_for(question, row) && is_meant(&group(row))).collect();
    question.aggregates.iter().map(|a| aggregate(a, &rows_meant, &floats)).collect()
}

fn is_asked_for(question: &Question, row: &Row) -> bool {
    let is_in_range = question.range.is_none_or(|(start, end)| (start..end).contains(&row.time));
    let meets = |conditions: &Vec<Condition>| conditions.iter().all(|c| is_met(c, row));
    is_in_range && (question.any_of.is_empty() || question.any_of.iter().any(meets))
}

fn is_met(condition: &Condition, row: &Row) -> bool {
    let any = |test: &dyn Fn(&Cell) -> bool| row.cells_named(&condition.column).any(test);
    match &condition.test {
        Test::In(values) => any(&|cell| is_in(cell, values)),
        Test::NotIn(values) => !any(&|cell| is_in(cell, values)),
        Test::Compare(comparison, bound) => any(&|cell| compares(cell, *comparison, bound)),
        Test::Regex(regex) => any(&|cell| finds(cell, regex)),
        Test::NotRegex(regex) => !any(&|cell| finds(cell, regex)),
        Test::Contains(part) => {
            any(&|cell| string(cell).is_some_and(|s| s.contains(part.as_str())))
        }
        Test::Prefix(start) => {
            any(&|cell| string(cell).is_some_and(|s| s.starts_with(start.as_str())))
        }
        Test::Null => !any(&|_| true),
        Test::NotNull => any(&|_| true),
        Test::Any(values) => {
            any(&|cell| items(cell).is_some_and(|l| l.iter().any(|i| values.contains(i))))
        }
        Test::None(values) => {
            !any(&|cell| items(cell).is_some_and(|l| l.iter().any(|i| values.contains(i))))
        }
        Test::All(values) => {
            any(&|cell| items(cell).is_some_and(|l| values.iter().all(|v| l.contains(v))))
        }
        Test::Exact(values) => any(&|cell| match cell {
            Cell::Vector(items) => items == values,
            Cell::Set(items) => {
                let mut values = values.clone();
                values.sort();
                values.dedup();
                *items == values
            }
            Cell::Int(_) | Cell::Float(_) | Cell::String(_) => false,
        }),
        Test::StartsWith(values) => {
            any(&|cell| matches!(cell, Cell::Vector(items) if items.starts_with(values)))
        }
        Test::ItemRegex(regex) => {
            let regex = Regex::new(regex).unwrap();
            any(&|cell| items(cell).is_some_and(|l| l.iter().any(|item| regex.is_match(item))))
        }
    }
}

fn string(cell: &Cell) -> Option<&str> {
    if let Cell::String(value) = cell { Some(value) } else { None }
}

fn items(cell: &Cell) -> Option<&Vec<String>> {
    if let Cell::Set(items) | Cell::Vector(items) = cell { Some(items) } else { None }
}

fn is_in(cell: &Cell, values: &[String]) -> bool {
    values.iter().any(|wanted| match cell {
        Cell::Int(value) => wanted.parse() == Ok(*value) || wanted.parse() == Ok(*value as f64),
        Cell::Float(value) => wanted.parse() == Ok(*value),
        Cell::String(value) => value == wanted,
        Cell::Set(items) | Cell::Vector(items) => items.contains(wanted),
    })
}

fn finds(cell: &Cell, regex: &str) -> bool {
    let regex = Regex::new(regex).unwrap();
    match cell {
        Cell::String(value) => regex.is_match(value),
        Cell::Set(items) | Cell::Vector(items) => items.iter().any(|item| regex.is_match(item)),
        Cell::Int(_) | Cell::Float(_) => false,
    }
}

fn compares(cell: &Cell, comparison: Comparison, bound: &str) -> bool {
    let ordering = match cell {
        Cell::Int(value) => match bound.parse::<i64>() {
            Ok(bound) => value.cmp(&bound),
            Err(_) => (*value as f64).partial_cmp(&bound.parse().unwrap()).unwrap(),
        },
        Cell::Float(value) => value.partial_cmp(&bound.parse().unwrap()).unwrap(),
        Cell::String(value) => value.as_bytes().cmp(bound.as_bytes()),
        Cell::Set(_) | Cell::Vector(_) => return false,
    };
    match comparison {
        Comparison::Less => ordering.is_lt(),
        Comparison::LessOrEqual => ordering.is_le(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::GreaterOrEqual => ordering.is_ge(),
    }
}

fn group_value(dimension: &Dimension, row: &Row, floats: &BTreeSet<&str>) -> Value {
    match dimension {
        Dimension::Column(name) => {
            row.cells_named(name).next().map_or(Value::Null, |cell| widened(name, cell, floats))
        }
        Dimension::Time(starts) => {
            let start = starts.iter().rev().find(|start| **start <= row.time);
            start.map_or(Value::Null, |start| Value::Time(*start))
        }
    }
}

/// The names that hold floats in any row.
fn float_names(rows: &[Row]) -> BTreeSet<&str> {
    let cells = rows.iter().flat_map(|row| &row.cells);
    let floats = cells.filter(|(_, cell)| matches!(cell, Cell::Float(_)));
    floats.map(|(name, _)| name.as_str()).collect()
}

/// An integer is a float where its name is both.
fn widened(name: &str, cell: &Cell, floats: &BTreeSet<&str>) -> Value {
    if let Cell::Int(value) = cell
        && floats.contains(name)
    {
        return Value::Float(*value as f64);
    }
    cell.value()
}

fn aggregate(aggregate: &Aggregate, members: &[&Row], floats: &BTreeSet<&str>) -> Option<f64> {
    let numbers = |name: &str| -> Vec<(f64, f64)> {
        let number = |row: &&Row| {
            let value = row.cells_named(name).find_map(Cell::number)?;
            Some((value, row.weight))
        };
        members.iter().filter_map(number).collect()
    };
    let fold = |name: &str, f: &dyn Fn(f64, f64) -> f64| {
        numbers(name).into_iter().map(|(value, _)| value).reduce(f)
    };
    let weight = |numbers: &[(f64, f64)]| numbers.iter().map(|(_, w)| w).sum::<f64>();
    let sum = |numbers: &[(f64, f64)]| numbers.iter().map(|(x, w)| x * w).sum::<f64>();
    match aggregate {
        Aggregate::Count => Some(members.iter().map(|row| row.weight).sum()),
        Aggregate::Samples => {
            let hits = |row: &&Row| row.cells_named("hits").find_map(Cell::number).unwrap_or(1.0);
            Some(members.iter().map(hits).sum())
        }
        Aggregate::Sum(name) => Some(numbers(name)).filter(|n| !n.is_empty()).map(|n| sum(&n)),
        Aggregate::Avg(name) => {
            Some(numbers(name)).filter(|n| weight(n) > 0.0).map(|n| sum(&n) / weight(&n))
        }
        Aggregate::Stddev(name) => Some(numbers(name)).filter(|n| weight(n) > 0.0).map(|n| {
            let mean = sum(&n) / weight(&n);
            let squares = n.iter().map(|(x, w)| w * (x - mean).powi(2)).sum::<f64>();
            (squares / weight(&n)).sqrt()
        }),
        Aggregate::EffectiveSize(name) => {
            let of_all = || members.iter().map(|row| (0.0, row.weight)).collect();
            let rows: Vec<(f64, f64)> = name.as_ref().map_or_else(of_all, |name| numbers(name));
            let squares: f64 = rows.iter().map(|(_, w)| w * w).sum();
            (squares > 0.0).then(|| weight(&rows).powi(2) / squares)
        }
        Aggregate::Min(name) => fold(name, &f64::min),
        Aggregate::Max(name) => fold(name, &f64::max),
        Aggregate::Distinct(name) => {
            let mut values: Vec<Value> = Vec::new();
            for row in members {
                let value = group_value(&Dimension::Column(name.clone()), row, floats);
                if value != Value::Null && !values.contains(&value) {
                    values.push(value);
                }
            }
            Some(values.len() as f64)
        }
        Aggregate::Percentile(part, name) => {
            let mut numbers = numbers(name);
            numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
            if weight(&numbers) == 0.0 {
                return None;
            }
            let wanted = weight(&numbers) * part;
            let mut below = 0.0;
            let last = numbers.last().map(|(value, _)| *value);
            let found = numbers.into_iter().find(|(_, weight)| {
                below += weight;
                below >= wanted
            });
            found.map(|(value, _)| value).or(last)
        }
    }
}
