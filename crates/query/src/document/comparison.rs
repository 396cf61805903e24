//! The comparison: stored measurements of two states of the code, judged benchmark by benchmark.
//!
//! ```json
//! { "dataset": "benchmarks", "before": "main", "after": "commit=1f3a9c", "value": "mean" }
//! ```
//!
//! Which columns are meant where nobody says so is a matter of names: those that benchmarks are
//! imported with, and those of PyTorch's uploader.

use perflab_model::{Kind, Nanos};
use perflab_store::segment::Snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::{Answered, AskError, stored_columns};
use super::table::unused;
use super::{
    ColumnKind, Columns, DOCUMENT_BYTES_MAX, DocumentError, Filter, Operator, Table, TableColumn,
    Times, fields, plan,
};
use crate::algebra::{Aggregate, Dimension, Order, Top};
use crate::compare::{Better, Judged, Rule, judge};
use crate::selection::Selection;
use crate::text::{all_of, is_name, parse_conditions};
use crate::{Limits, QueryError, Value, answer};

/// What the format field of a comparison says.
pub const COMPARISON_FORMAT: &str = "perflab.comparison/1";
/// Where measurements are, unless said otherwise.
pub const MEASUREMENTS: &str = "benchmarks";

/// Columns with names of commits, which may be cut short,
const COMMITS: [&str; 3] = ["commit", "commit_id", "pytorch_commit_id"];
/// of branches,
const BRANCHES: [&str; 2] = ["branch", "pytorch_branch"];
/// and of runs.
const RUNS: [&str; 3] = ["run_id", "run", "circle_build_num"];
/// Columns with the numbers; the first that is there is meant.
const VALUES: [&str; 3] = ["value", "median", "mean"];
/// Columns that tell one series from another, as far as they are there.
const SERIES: [&str; 9] = [
    "benchmark",
    "benchmark_name",
    "benchmark_executor",
    "benchmark_fuser",
    "parameters",
    "metric",
    "unit",
    "machine",
    "machine_hostname",
];
/// The column that says which numbers are better: `lower` or `higher`.
const BETTER: &str = "better";
const HIGHER: &str = "higher";

/// How many meanings of a name are told.
const MEANINGS_MAX: usize = 3;

/// Benchmarks take longer to come together than what people look at every day.
const SINCE: &str = "-30 days";

/// Which measurements are judged, and against which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    #[serde(default)]
    pub format: ComparisonFormat,
    #[serde(default = "measurements")]
    pub dataset: String,
    /// What is judged against: a commit, a branch or a run by its name, or conditions such as
    /// `commit=1f3a9c`.
    pub before: String,
    /// What is judged, written the same way.
    pub after: String,
    #[serde(default = "since")]
    pub since: String,
    #[serde(default = "super::until")]
    pub until: String,
    #[serde(default = "super::timezone", skip_serializing_if = "super::is_utc")]
    pub timezone: String,
    /// What the rows of both must meet: all conditions of any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Vec<Filter>>,
    /// The column with the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The columns that tell one series from another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// Which numbers are better. Without it, the column `better` says so for each row, and lower
    /// is better where it doesn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// Changes up to this are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub threshold_percent: Option<f64>,
}

/// The version of a comparison. There is one so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ComparisonFormat {
    #[default]
    #[serde(rename = "perflab.comparison/1")]
    One,
}

fn measurements() -> String {
    MEASUREMENTS.to_owned()
}

fn since() -> String {
    SINCE.to_owned()
}

/// Why measurements can't be compared.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    #[error(
        "no row of that time has `{}` as its {}: write conditions such as `commit=1f3a9c`, or \
         choose other times with `since`",
        .name.escape_debug(), .columns.join(", its ")
    )]
    Unknown { name: String, columns: Vec<&'static str> },
    #[error(
        "`{}` can't be looked up, as dataset `{dataset}` has no column for commits, branches or \
         runs; write conditions such as `build=12`",
        .name.escape_debug()
    )]
    NoNames { name: String, dataset: String },
    #[error("`{}` is {}: write one of these", .name.escape_debug(), .meanings.join(" or "))]
    Ambiguous { name: String, meanings: Vec<String> },
    #[error(transparent)]
    Text(#[from] crate::text::TextError),
    #[error(
        "dataset `{dataset}` has none of the columns {}: name {what} with `{field}`",
        .tried.join(", ")
    )]
    NoColumn {
        dataset: String,
        tried: &'static [&'static str],
        what: &'static str,
        field: &'static str,
    },
    #[error(
        "no row of that time has a number in `{value}` and meets `{}`: choose other times with \
         `since`, or look at the rows with a query",
        .side.escape_debug()
    )]
    NoMeasurements { value: String, side: String },
    #[error("a threshold of {0} %: it is a number from 0 on")]
    Threshold(f64),
}

impl Comparison {
    /// One of measurements where they usually are.
    pub fn new(before: impl Into<String>, after: impl Into<String>) -> Self {
        Self {
            format: ComparisonFormat::One,
            dataset: measurements(),
            before: before.into(),
            after: after.into(),
            since: since(),
            until: super::until(),
            timezone: super::timezone(),
            any_of: Vec::new(),
            value: None,
            series: Vec::new(),
            better: None,
            threshold_percent: None,
        }
    }

    /// Reads a comparison.
    pub fn from_json(json: &[u8]) -> Result<Self, DocumentError> {
        if json.len() > DOCUMENT_BYTES_MAX {
            return Err(DocumentError::TooLarge { bytes: json.len() });
        }
        let value = serde_json::from_slice(json).map_err(DocumentError::Json)?;
        fields::check_comparison(&value)?;
        serde_json::from_value(value).map_err(DocumentError::ComparisonForm)
    }
}

/// The times of the measurements that are compared, from the first to just before the second.
pub fn times_compared(comparison: &Comparison, now: Nanos) -> Result<(i64, i64), DocumentError> {
    let range = times(comparison, now)?.range;
    Ok((range.start.as_i64(), range.end.as_i64()))
}

fn times(comparison: &Comparison, now: Nanos) -> Result<Times, DocumentError> {
    let Comparison { since, until, timezone, .. } = comparison;
    Times::parse(since, until, timezone, now)
}

/// Judges what a comparison asks about: a row for each series with its verdict. The arguments are
/// those of [`super::answer_document`].
pub fn answer_comparison(
    comparison: &Comparison,
    snapshot: &Snapshot,
    recorded: &[(String, Kind)],
    now: Nanos,
    limits: &Limits,
) -> Result<Answered, AskError> {
    let times = times(comparison, now)?;
    let columns = stored_columns(snapshot, recorded);
    let range = Some((times.range.start.as_i64(), times.range.end.as_i64()));
    let judging = Judging { comparison, columns, range, snapshot, limits };
    let (table, rows_scanned) = judging.table()?;
    let Times { range, zone } = times;
    // Runs are looked at one by one, which nothing is remembered of.
    Ok(Answered { table, tree: None, range, zone, rows_scanned, rows_recalled: 0 })
}

/// An OR of ANDs.
type AnyOf = Vec<Vec<Filter>>;

struct Judging<'a> {
    comparison: &'a Comparison,
    columns: Columns,
    range: Option<(i64, i64)>,
    snapshot: &'a Snapshot,
    limits: &'a Limits,
}

impl Judging<'_> {
    fn table(&self) -> Result<(Table, u64), AskError> {
        let series = self.series()?;
        let value = self.value()?;
        let before = self.side(&self.comparison.before)?;
        let after = self.side(&self.comparison.after)?;
        let (mut judged, mut rows_scanned) = (Vec::new(), 0);
        for (rule, further) in self.rules()? {
            let before = self.selection(&[&before, &further])?;
            let after = self.selection(&[&after, &further])?;
            let found = judge(&series, &value, &before, &after, &rule, self.snapshot, self.limits)?;
            judged.extend(found.series);
            rows_scanned += found.rows_scanned;
        }
        self.check_measured(&judged, &value)?;
        judged.sort_by(|x, y| x.series.partial_cmp(&y.series).unwrap_or(std::cmp::Ordering::Equal));
        let rows = judged.into_iter().map(row).collect();
        Ok((Table::new(self.heads(&series), rows), rows_scanned))
    }

    /// A side without measurements is no comparison: it must not look like one that found nothing.
    fn check_measured(&self, judged: &[Judged], value: &str) -> Result<(), ComparisonError> {
        let before = judged.iter().any(|one| one.judgement.runs_before > 0);
        let after = judged.iter().any(|one| one.judgement.runs_after > 0);
        let side = match (before, after) {
            (true, true) => return Ok(()),
            (false, _) => &self.comparison.before,
            (true, false) => &self.comparison.after,
        };
        Err(ComparisonError::NoMeasurements { value: value.to_owned(), side: side.clone() })
    }

    fn series(&self) -> Result<Vec<String>, AskError> {
        let asked = &self.comparison.series;
        for column in asked {
            self.columns.kinds(&self.comparison.dataset, column)?;
        }
        let present = self.present(&SERIES).map(str::to_owned);
        let series: Vec<_> = if asked.is_empty() { present.collect() } else { asked.clone() };
        if series.is_empty() {
            return Err(self.no_column(&SERIES, "what tells benchmarks apart", "series").into());
        }
        Ok(series)
    }

    fn value(&self) -> Result<String, AskError> {
        let Some(asked) = &self.comparison.value else {
            let present = self.present(&VALUES).next().map(str::to_owned);
            let missing = || self.no_column(&VALUES, "the one with the numbers", "value");
            return Ok(present.ok_or_else(missing)?);
        };
        let kinds = self.columns.kinds(&self.comparison.dataset, asked)?;
        match kinds.iter().find(|kind| !matches!(kind, Kind::Int | Kind::Float)) {
            Some(&kind) if kinds.len() == 1 => {
                let (column, found) = (asked.clone(), crate::source::found(kind));
                Err(QueryError::NoNumbers { column, found }.into())
            }
            _ => Ok(asked.clone()),
        }
    }

    fn no_column(
        &self,
        tried: &'static [&'static str],
        what: &'static str,
        field: &'static str,
    ) -> ComparisonError {
        let dataset = self.comparison.dataset.clone();
        ComparisonError::NoColumn { dataset, tried, what, field }
    }

    fn present(&self, names: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
        names.iter().copied().filter(|name| self.columns.has(name))
    }

    /// What counts as a change, each with the conditions on the rows that it is for.
    fn rules(&self) -> Result<Vec<(Rule, AnyOf)>, ComparisonError> {
        let mut rule = Rule::default();
        if let Some(percent) = self.comparison.threshold_percent {
            if !(percent.is_finite() && percent >= 0.0) {
                return Err(ComparisonError::Threshold(percent));
            }
            rule.threshold = percent / 100.0;
        }
        let of = |better| Rule { better, ..rule };
        if let Some(better) = self.comparison.better {
            return Ok(vec![(of(better), Vec::new())]);
        }
        if !self.columns.has(BETTER) {
            return Ok(vec![(of(Better::Lower), Vec::new())]);
        }
        let with = |op| vec![vec![filter(BETTER, op, HIGHER)]];
        // "Is not" holds for rows without a value too.
        let lower = (of(Better::Lower), with(Operator::Neq));
        Ok(vec![lower, (of(Better::Higher), with(Operator::Eq))])
    }

    /// The rows of both sides, narrowed.
    fn selection(&self, further: &[&[Vec<Filter>]]) -> Result<Selection, AskError> {
        let all: Vec<_> =
            [&self.comparison.any_of[..]].iter().chain(further).map(|one| one.to_vec()).collect();
        let any_of = plan::conditions(&all_of(&all)?, &self.comparison.dataset, &self.columns)?;
        Ok(Selection { range: self.range, any_of })
    }

    /// The conditions that a text stands for.
    fn side(&self, text: &str) -> Result<AnyOf, AskError> {
        if is_name(text) {
            return Ok(vec![vec![self.named(text)?]]);
        }
        Ok(parse_conditions(text).map_err(ComparisonError::Text)?)
    }

    /// The commit, the branch or the run of this name.
    fn named(&self, name: &str) -> Result<Filter, AskError> {
        let columns: Vec<_> = self
            .present(&COMMITS)
            .chain(self.present(&BRANCHES))
            .chain(self.present(&RUNS))
            .collect();
        let name = name.to_owned();
        if columns.is_empty() {
            let dataset = self.comparison.dataset.clone();
            return Err(ComparisonError::NoNames { name, dataset }.into());
        }
        let mut meant = Vec::new();
        for column in &columns {
            meant.extend(self.values(&filter(column, Operator::Eq, &name))?);
        }
        if meant.is_empty() {
            for column in self.present(&COMMITS) {
                meant.extend(self.values(&filter(column, Operator::Prefix, &name))?);
            }
        }
        match <[Filter; 1]>::try_from(meant) {
            Ok([one]) => Ok(one),
            Err(none) if none.is_empty() => Err(ComparisonError::Unknown { name, columns }.into()),
            Err(several) => {
                let meaning = |one: &Filter| format!("`{}={}`", one.column, one.values[0]);
                let meanings = several.iter().take(MEANINGS_MAX).map(meaning).collect();
                Err(ComparisonError::Ambiguous { name, meanings }.into())
            }
        }
    }

    /// The values of a column that meet a condition on it, each as a condition of its own.
    fn values(&self, condition: &Filter) -> Result<Vec<Filter>, AskError> {
        let Filter { column, values, .. } = condition;
        let kinds = self.columns.kinds(&self.comparison.dataset, column)?;
        let is_text = kinds.contains(&Kind::String);
        if !is_text && (condition.op != Operator::Eq || values[0].parse::<i64>().is_err()) {
            return Ok(Vec::new());
        }
        let by = Dimension::Column(column.clone());
        let selection = self.selection(&[&[vec![condition.clone()]]])?;
        let mut question = selection.question(vec![by], vec![Aggregate::Count]);
        question.top = Some(Top { count: MEANINGS_MAX, by: 0, order: Order::Descending });
        let rows = answer(&question, self.snapshot, self.limits)?.rows;
        let text = |row: &crate::AnswerRow| match &row.group[0] {
            Value::String(text) => Some(text.clone()),
            Value::Int(number) => Some(number.to_string()),
            Value::Null | Value::Float(_) | Value::List(_) | Value::Time(_) => None,
        };
        Ok(rows.iter().filter_map(text).map(|text| filter(column, Operator::Eq, &text)).collect())
    }

    fn heads(&self, series: &[String]) -> Vec<TableColumn> {
        let mut heads = Vec::new();
        for name in series {
            heads.push(TableColumn::new(name, self.columns.kind_of(name)));
        }
        let further = [
            ("verdict", ColumnKind::String),
            ("before", ColumnKind::Float),
            ("after", ColumnKind::Float),
            ("percent", ColumnKind::Float),
            ("low", ColumnKind::Float),
            ("high", ColumnKind::Float),
            ("runs_before", ColumnKind::Int),
            ("runs_after", ColumnKind::Int),
        ];
        for (name, kind) in further {
            heads.push(TableColumn::new(unused(&heads, name.to_owned()), kind));
        }
        heads
    }
}

fn filter(column: &str, op: Operator, value: &str) -> Filter {
    Filter { column: column.to_owned(), op, values: vec![value.to_owned()] }
}

/// A series with its verdict, the medians of both sides, by how many percent they differ, in which
/// interval that lies, and how many runs each side has.
fn row(judged: Judged) -> Vec<Value> {
    let found = judged.judgement;
    let float = |number: Option<f64>| number.map_or(Value::Null, Value::Float);
    let percent = |part: Option<f64>| float(part.map(|part| 100.0 * part));
    let (low, high) = found.interval.unzip();
    let count = |runs: usize| i64::try_from(runs).map_or(Value::Null, Value::Int);
    let said = [
        Value::String(found.verdict.as_str().to_owned()),
        float(found.before),
        float(found.after),
        percent(found.change),
        percent(low),
        percent(high),
        count(found.runs_before),
        count(found.runs_after),
    ];
    judged.series.into_iter().chain(said).collect()
}
