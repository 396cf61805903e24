//! Questions of the algebra in SQL.

use std::collections::{BTreeMap, BTreeSet};

use perflab_model::Kind;
use perflab_query::algebra::{Aggregate, Comparison, Condition, Dimension, Question, Test};
use perflab_store::segment::Snapshot;

/// Between the items of a list that is shown as one text: in no text of the tests.
const SEPARATOR: &str = "\n";

/// The kinds of the names of a dataset, and so its columns.
pub(crate) struct Names(BTreeMap<String, BTreeSet<Kind>>);

impl Names {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let mut names: BTreeMap<String, BTreeSet<Kind>> = BTreeMap::new();
        for column in snapshot.segments.iter().flat_map(|segment| segment.columns()) {
            names.entry(column.name().to_owned()).or_default().insert(column.kind());
        }
        Self(names)
    }

    fn kinds(&self, name: &str) -> BTreeSet<Kind> {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// The column of a name's values of one kind.
    fn column(&self, name: &str, kind: Kind) -> String {
        let is_one = self.kinds(name).len() == 1;
        if is_one { format!("\"{name}\"") } else { format!("\"{name}:{kind}\"") }
    }

    /// The numbers of a name: null when it has none.
    fn numbers(&self, name: &str) -> String {
        let is_number = |kind: &Kind| matches!(kind, Kind::Int | Kind::Float);
        let has_any = self.kinds(name).iter().any(is_number);
        if has_any { format!("\"{name}\"") } else { "CAST(NULL AS DOUBLE)".to_owned() }
    }

    /// What the value of a name is in: numbers, strings or lists, one of them not null.
    pub(crate) fn parts(&self, name: &str) -> Vec<String> {
        let kinds = self.kinds(name);
        let mut parts = Vec::new();
        if kinds.contains(&Kind::Int) || kinds.contains(&Kind::Float) {
            parts.push(self.numbers(name));
        }
        if kinds.contains(&Kind::String) {
            parts.push(self.column(name, Kind::String));
        }
        let lists = [Kind::Set, Kind::Vector].into_iter().filter(|kind| kinds.contains(kind));
        let lists: Vec<_> = lists.map(|kind| self.column(name, kind)).collect();
        match &lists[..] {
            [] => {}
            [list] => parts.push(list.clone()),
            _ => parts.push(format!("coalesce({})", lists.join(", "))),
        }
        let mut before: Vec<String> = Vec::new();
        let mut first = |part: String| {
            let is_first: Vec<_> = before.iter().map(|part| format!("{part} IS NULL")).collect();
            before.push(part.clone());
            match &is_first[..] {
                [] => part,
                _ => format!("CASE WHEN {} THEN {part} END", is_first.join(" AND ")),
            }
        };
        parts.into_iter().map(&mut first).collect()
    }
}

/// A question as a query: its groups, part by part, then its aggregates.
pub(crate) fn query(question: &Question, names: &Names) -> String {
    let groups: Vec<String> =
        question.group_by.iter().flat_map(|dimension| group(dimension, names)).collect();
    let aggregates = question.aggregates.iter().map(|one| aggregate(one, names));
    let shown: Vec<String> = groups.iter().cloned().chain(aggregates).collect();
    let shown: Vec<String> =
        shown.iter().enumerate().map(|(n, what)| format!("{what} AS c{n}")).collect();
    let which = if !groups.is_empty() {
        format!("GROUP BY {}", groups.join(", "))
    } else if !question.group_by.is_empty() {
        // One group of what is null everywhere, but only if there are rows.
        "HAVING count(*) > 0".to_owned()
    } else {
        String::new()
    };
    format!("SELECT {} FROM d WHERE {} {which}", shown.join(", "), filter(question, names))
}

fn group(dimension: &Dimension, names: &Names) -> Vec<String> {
    match dimension {
        Dimension::Column(name) => names.parts(name),
        Dimension::Time(starts) => {
            let bucket = |start: &i64| format!("WHEN CAST(time AS BIGINT) >= {start} THEN {start}");
            let buckets: Vec<_> = starts.iter().rev().map(bucket).collect();
            vec![format!("CASE {} END", buckets.join(" "))]
        }
    }
}

fn aggregate(aggregate: &Aggregate, names: &Names) -> String {
    let weighted = |name: &str| {
        let numbers = names.numbers(name);
        let weight = format!("nullif(sum(weight) FILTER (WHERE {numbers} IS NOT NULL), 0)");
        (format!("sum({numbers} * weight)"), weight, numbers)
    };
    match aggregate {
        Aggregate::Count => "coalesce(sum(weight), 0)".to_owned(),
        Aggregate::Samples => {
            format!("coalesce(sum(coalesce({}, 1)), 0)", names.numbers("hits"))
        }
        Aggregate::Sum(name) => weighted(name).0,
        Aggregate::Avg(name) => {
            let (sum, weight, _) = weighted(name);
            format!("{sum} / {weight}")
        }
        Aggregate::Stddev(name) => {
            let (sum, weight, numbers) = weighted(name);
            let squares = format!("sum(CAST({numbers} AS DOUBLE) * {numbers} * weight)");
            format!("sqrt(abs({squares} / {weight} - power({sum} / {weight}, 2)))")
        }
        Aggregate::Min(name) => format!("min({})", names.numbers(name)),
        Aggregate::Max(name) => format!("max({})", names.numbers(name)),
        Aggregate::Distinct(name) => distinct(name, names),
        Aggregate::EffectiveSize(name) => {
            let is_counted = name.as_ref().map_or_else(
                || "true".to_owned(),
                |name| format!("{} IS NOT NULL", names.numbers(name)),
            );
            let sum = |what| format!("sum({what}) FILTER (WHERE {is_counted})");
            format!("power({}, 2) / nullif({}, 0)", sum("weight"), sum("weight * weight"))
        }
        Aggregate::Percentile(part, name) => {
            format!("percentile({}, {part:?}, weight)", names.numbers(name))
        }
    }
}

fn distinct(name: &str, names: &Names) -> String {
    let texts = names.kinds(name).into_iter().map(|kind| match kind {
        Kind::Int | Kind::Float => {
            format!("concat('n', CAST({} AS VARCHAR))", names.numbers(name))
        }
        Kind::String => format!("concat('s', {})", names.column(name, kind)),
        Kind::Set | Kind::Vector => {
            let list = names.column(name, kind);
            format!("concat('l', {}, {})", length(&list), joined(&list))
        }
    });
    let columns = names.kinds(name).into_iter().map(|kind| names.column(name, kind));
    // `concat` makes text of null, too.
    let values =
        columns.zip(texts).map(|(column, text)| format!("WHEN {column} IS NOT NULL THEN {text}"));
    let values: Vec<_> = values.collect();
    if values.is_empty() {
        return "count(DISTINCT CAST(NULL AS DOUBLE))".to_owned();
    }
    format!("count(DISTINCT CASE {} END)", values.join(" "))
}

fn filter(question: &Question, names: &Names) -> String {
    let mut parts = Vec::new();
    if let Some((start, end)) = question.range {
        parts.push(format!("time >= to_timestamp_nanos({start})"));
        parts.push(format!("time < to_timestamp_nanos({end})"));
    }
    let all = |conditions: &Vec<Condition>| {
        let parts: Vec<_> = conditions.iter().map(|one| condition(one, names)).collect();
        if parts.is_empty() { "true".to_owned() } else { format!("({})", parts.join(" AND ")) }
    };
    let any: Vec<_> = question.any_of.iter().map(all).collect();
    if !any.is_empty() {
        parts.push(format!("({})", any.join(" OR ")));
    }
    if parts.is_empty() { "true".to_owned() } else { parts.join(" AND ") }
}

fn condition(condition: &Condition, names: &Names) -> String {
    let any = |test: &Test| {
        let kinds = names.kinds(&condition.column);
        let met = |kind| is_met(test, kind, &names.column(&condition.column, kind));
        let parts: Vec<_> = kinds.into_iter().filter_map(met).collect();
        if parts.is_empty() { "false".to_owned() } else { format!("({})", parts.join(" OR ")) }
    };
    let none = |test: &Test| format!("NOT coalesce({}, false)", any(test));
    match &condition.test {
        Test::NotIn(values) => none(&Test::In(values.clone())),
        Test::NotRegex(regex) => none(&Test::Regex(regex.clone())),
        Test::None(values) => none(&Test::Any(values.clone())),
        Test::Null => none(&Test::NotNull),
        Test::In(_)
        | Test::Compare(..)
        | Test::Regex(_)
        | Test::Contains(_)
        | Test::Prefix(_)
        | Test::NotNull
        | Test::Any(_)
        | Test::All(_)
        | Test::Exact(_)
        | Test::ItemRegex(_)
        | Test::StartsWith(_) => any(&condition.test),
    }
}

/// A test of a column; `None` when no value of its kind meets it.
fn is_met(test: &Test, kind: Kind, column: &str) -> Option<String> {
    if matches!(test, Test::NotNull) {
        return Some(format!("{column} IS NOT NULL"));
    }
    match kind {
        Kind::Int | Kind::Float => number_test(test, kind, column),
        Kind::String => string_test(test, column),
        Kind::Set | Kind::Vector => list_test(test, kind, column),
    }
}

fn number_test(test: &Test, kind: Kind, column: &str) -> Option<String> {
    if let Test::In(values) = test {
        let numbers = values.iter().filter_map(|text| text.parse::<f64>().ok());
        let is_whole = |number: &f64| kind == Kind::Float || number.fract() == 0.0;
        let numbers: Vec<_> = numbers.filter(is_whole).map(|n| n.to_string()).collect();
        return (!numbers.is_empty()).then(|| format!("{column} IN ({})", numbers.join(", ")));
    }
    let Test::Compare(comparison, bound) = test else { return None };
    Some(format!("{column} {} {bound}", operator(*comparison)))
}

fn string_test(test: &Test, column: &str) -> Option<String> {
    if let Test::In(values) = test {
        let texts: Vec<_> = values.iter().map(|value| text(value)).collect();
        return (!texts.is_empty()).then(|| format!("{column} IN ({})", texts.join(", ")));
    }
    if let Test::Compare(comparison, bound) = test {
        return Some(format!("{column} {} {}", operator(*comparison), text(bound)));
    }
    if let Test::Regex(regex) = test {
        return Some(format!("regexp_like({column}, {})", text(regex)));
    }
    if let Test::Contains(part) = test {
        return Some(format!("contains({column}, {})", text(part)));
    }
    let Test::Prefix(start) = test else { return None };
    Some(format!("starts_with({column}, {})", text(start)))
}

fn list_test(test: &Test, kind: Kind, column: &str) -> Option<String> {
    let has = |value: &String| format!("coalesce(array_has({column}, {}), false)", text(value));
    if let Test::In(values) | Test::Any(values) = test {
        let parts: Vec<_> = values.iter().map(has).collect();
        return (!parts.is_empty()).then(|| format!("({})", parts.join(" OR ")));
    }
    if let Test::All(values) = test {
        let not_null = format!("{column} IS NOT NULL");
        let parts: Vec<_> = values.iter().map(has).chain([not_null]).collect();
        return Some(format!("({})", parts.join(" AND ")));
    }
    if let Test::Exact(values) = test {
        let mut values = values.clone();
        if kind == Kind::Set {
            values.sort();
            values.dedup();
        }
        let (count, all) = (values.len(), text(&values.join(SEPARATOR)));
        let (length, joined) = (length(column), joined(column));
        return Some(format!("({column} IS NOT NULL AND {length} = {count} AND {joined} = {all})"));
    }
    if let Test::Regex(regex) | Test::ItemRegex(regex) = test {
        // Each item is a line.
        let lines = text(&format!("(?m){regex}"));
        return Some(format!(
            "({} > 0 AND regexp_like({}, {lines}))",
            length(column),
            joined(column)
        ));
    }
    let Test::StartsWith(values) = test else { return None };
    let is_item = |(n, value): (usize, &String)| format!("{column}[{}] = {}", n + 1, text(value));
    let not_null = format!("{column} IS NOT NULL");
    let parts: Vec<_> = values.iter().enumerate().map(is_item).chain([not_null]).collect();
    (kind == Kind::Vector).then(|| format!("({})", parts.join(" AND ")))
}

fn length(list: &str) -> String {
    format!("coalesce(array_length({list}), 0)")
}

fn joined(list: &str) -> String {
    format!("coalesce(array_to_string({list}, {}), '')", text(SEPARATOR))
}

fn operator(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
