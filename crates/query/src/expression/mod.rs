//! Columns that are computed from the other columns of a row: `latency_ms / 1000`,
//! `if(status = 'ok', 0, weight)`, `concat(host, ':', port)`.
//!
//! | form | meaning |
//! |---|---|
//! | `1000`, `1e-9`, `'text'`, `null` | written out; a `'` inside of text is doubled |
//! | `latency`, `a.b`, `"any name"` | a column; of one with several kinds, its numbers where numbers are wanted and its strings where text is |
//! | `+ - * / %`, `-x` | numbers, as floats; what has no result, such as `1 / 0`, is null |
//! | `= != < <= > >=` | 1 or 0; two numbers, or two texts by their bytes |
//! | `and`, `or`, `not` | 1 or 0; everything but 0 and null is true |
//! | `if(condition, a, b)` | `b` also where the condition is null |
//! | `coalesce(a, b, …)` | the first that is not null |
//! | `concat(a, b, …)` | texts and numbers one after the other |
//! | `lower(text)`, `length(text)`, `number(text)` | lower case; characters; the number that it is, or null |
//! | `regex_extract(text, 're', n)` | what group `n` of the first match found, 0 being all of it |
//! | `bucket(x, width)` | the largest multiple of the width that is not above `x` |
//!
//! What is computed from null is null, except where the table says otherwise.

mod evaluate;
mod parse;
mod typed;

pub use parse::EXPRESSION_BYTES_MAX;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use perflab_model::Kind;
use perflab_store::segment::{Computed, Segment, Snapshot, Vocabularies};

use crate::limits::Budget;
use crate::selection::{Selection, blocks, of_segments};
use crate::{Limits, QueryError};
use evaluate::{NULL, Numbers, Texts};
use parse::{DEPTH_MAX, Form, Part};
use typed::{Kinds, Typed};

/// The most values that are computed for one question, over all rows and expressions.
pub const COMPUTED_MAX: usize = 1 << 27;

/// Why a text is not an expression, or can't be computed from a dataset.
#[derive(Debug, thiserror::Error)]
pub enum ExpressionError {
    #[error("the expression has {bytes} bytes, the limit is {EXPRESSION_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("more than {DEPTH_MAX} expressions inside each other at character {position}")]
    TooDeep { position: usize },
    #[error("{}", unexpected(found, *position, expected))]
    Unexpected { found: String, position: usize, expected: &'static str },
    #[error("the {quote} at character {position} is never closed")]
    Quote { quote: char, position: usize },
    #[error("`{function}` at character {position} takes {expected} arguments, not {found}")]
    Arguments { function: String, position: usize, expected: usize, found: usize },
    #[error("at character {position} is text where a number is needed")]
    NotANumber { position: usize },
    #[error("at character {position} is a number where text is needed; `concat` makes text of it")]
    NotText { position: usize },
    #[error("column `{column}` at character {position} holds {found}, and this takes {takes}")]
    Kind { column: String, position: usize, found: &'static str, takes: &'static str },
    #[error("{what} at character {position} must be written out")]
    Written { what: &'static str, position: usize },
    #[error("the regular expression at character {position} can't be used")]
    Regex {
        position: usize,
        #[source]
        error: regex::Error,
    },
    #[error("at character {position} is no group: the regular expression has 0 to {groups}")]
    Group { position: usize, groups: usize },
}

fn unexpected(found: &str, position: usize, expected: &str) -> String {
    if found.is_empty() {
        return format!("the expression ends where there should be {expected}");
    }
    format!("`{}` at character {position} is not {expected}", found.escape_debug())
}

/// An expression over the columns of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression(Part);

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        parse::parse(text).map(Self)
    }

    /// The columns that it is computed from, sorted.
    pub fn columns(&self) -> BTreeSet<&str> {
        let (mut columns, mut ahead) = (BTreeSet::new(), vec![&self.0]);
        while let Some(part) = ahead.pop() {
            match &part.form {
                Form::Column(name) => {
                    columns.insert(name.as_str());
                }
                Form::Negate(of) | Form::Not(of) => ahead.push(of),
                Form::Pair(_, left, right) => ahead.extend([&**left, &**right]),
                Form::Call(_, arguments) => ahead.extend(arguments),
                Form::Number(_) | Form::Text(_) | Form::Null => {}
            }
        }
        columns
    }
}

/// The same rows with further columns, each computed from the stored ones.
///
/// Only rows of the range have them: questions about the new snapshot must ask for the same range,
/// or for less. Columns that are stored are shared with the old snapshot, not copied. A name that
/// is stored already is refused.
pub fn derived(
    snapshot: &Snapshot,
    range: Option<(i64, i64)>,
    expressions: &[(String, Expression)],
    limits: &Limits,
) -> Result<Snapshot, QueryError> {
    for (name, _) in expressions {
        let is_stored = |segment: &Arc<Segment>| segment.columns_named(name).next().is_some();
        let of_name = expressions.iter().filter(|(other, _)| other == name);
        if snapshot.segments.iter().any(is_stored) || of_name.count() > 1 {
            return Err(QueryError::NameTaken { column: name.clone() });
        }
    }
    let selection = Selection { range, any_of: Vec::new() };
    let mut computed = 0;
    for segment in &snapshot.segments {
        computed += selection.rows(segment)?.len() * expressions.len();
    }
    if computed > COMPUTED_MAX {
        return Err(QueryError::TooMuchComputed);
    }
    let mut typed = Vec::new();
    for (name, expression) in expressions {
        let found = Typed::new(&expression.0, &kinds(expression, snapshot));
        let failed = |error| QueryError::Expression { column: name.clone(), error };
        typed.push((name, found.map_err(failed)?));
    }
    let budget = Budget::of(limits);
    let with_columns = |segment: &Segment| with_columns(segment, &typed, &selection, &budget);
    let made = of_segments(snapshot, with_columns)?;
    let both = snapshot.segments.iter().zip(made);
    // The dataset never forgets a string that it has numbered: it gets none of the computed ones.
    let names = expressions.iter().map(|(name, _)| name.clone());
    let vocabularies = Vocabularies::beside(Arc::clone(&snapshot.vocabularies), names);
    Ok(Snapshot {
        segments: both.map(|(old, new)| new.map_or_else(|| Arc::clone(old), Arc::new)).collect(),
        missing: snapshot.missing.clone(),
        vocabularies: Arc::new(vocabularies),
    })
}

/// The kinds of the columns of an expression.
fn kinds(expression: &Expression, snapshot: &Snapshot) -> Kinds {
    let of_name = |name: &&str| -> BTreeSet<Kind> {
        let columns = snapshot.segments.iter().flat_map(|segment| segment.columns_named(name));
        columns.map(|column| column.kind()).collect()
    };
    expression.columns().into_iter().map(|name| (name.to_owned(), of_name(&name))).collect()
}

/// `None` where the segment has no row of the range.
fn with_columns(
    segment: &Segment,
    typed: &[(&String, Typed)],
    selection: &Selection,
    budget: &Budget<'_>,
) -> Result<Option<Segment>, QueryError> {
    let rows = selection.rows(segment)?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut columns = Vec::new();
    for (name, typed) in typed {
        let column = match typed {
            Typed::Number(number) => {
                numbers(Numbers::new(number, segment)?, &rows, segment.rows(), budget)?
            }
            Typed::Text(text) => texts(Texts::new(text, segment)?, &rows, segment.rows(), budget)?,
        };
        columns.push(((*name).clone(), column));
    }
    Ok(Some(segment.with_columns(columns)?))
}

fn numbers(
    mut numbers: Numbers,
    rows: &Range<usize>,
    count: usize,
    budget: &Budget<'_>,
) -> Result<Computed, QueryError> {
    budget.take(count * size_of::<f64>())?;
    let mut values = vec![f64::NAN; count];
    for block in blocks(rows) {
        budget.check()?;
        values[block.clone()].copy_from_slice(&numbers.of(block));
    }
    Ok(Computed::Float(values))
}

fn texts(
    mut texts: Texts,
    rows: &Range<usize>,
    count: usize,
    budget: &Budget<'_>,
) -> Result<Computed, QueryError> {
    budget.take(count * size_of::<(u32, Option<u32>)>())?;
    let mut codes = vec![NULL; count];
    for block in blocks(rows) {
        budget.check()?;
        codes[block.clone()].copy_from_slice(&texts.of(block));
    }
    let last = codes.iter().filter(|&&code| code != NULL).max();
    // For each code, its place among the sorted texts that rows have.
    let mut places: Vec<Option<u32>> = vec![None; last.map_or(0, |&last| last as usize + 1)];
    codes.iter().filter(|&&code| code != NULL).for_each(|&code| places[code as usize] = Some(0));
    let used = (0_u32..).zip(&places).filter(|(_, place)| place.is_some());
    let mut sorted: Vec<(&str, u32)> =
        used.filter_map(|(code, _)| Some((texts.get(code)?, code))).collect();
    sorted.sort_unstable();
    for (place, (_, code)) in (0_u32..).zip(&sorted) {
        places[*code as usize] = Some(place);
    }
    budget.take(sorted.iter().map(|(text, _)| size_of::<String>() + text.len()).sum())?;
    let strings = sorted.iter().map(|(text, _)| (*text).to_owned()).collect();
    let place = |code: u32| places.get(code as usize).copied().flatten();
    Ok(Computed::String { codes: codes.into_iter().map(place).collect(), strings })
}
