//! Computing an expression for the rows of a segment, a block at a time.
//!
//! Text is never looked at twice: every text is a code in a dictionary, and a function of text
//! remembers what it made of each code (or of each pair of codes, where it takes two).

use std::cmp::Ordering;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use perflab_model::Kind;
use perflab_store::segment::{Codes, ColumnData, Segment, Strings};
use regex::Regex;

use super::parse::Operator;
use super::typed::{Number, Text};
use crate::QueryError;
use crate::selection::RowNumbers;

/// The code of null.
pub(super) const NULL: u32 = u32::MAX;

/// What was made of each code.
type Known<K, V> = HashMap<K, V, RandomState>;
/// Null where there is no result.
type TextFunction = Box<dyn Fn(&str) -> Option<String>>;

/// A number of each row of a segment.
pub(super) enum Numbers {
    Literal(f64),
    Column(RowNumbers),
    One(fn(f64) -> f64, Box<Self>),
    Two(fn(f64, f64) -> f64, Box<Self>, Box<Self>),
    Compared(Operator, Box<Texts>, Box<Texts>, Known<(u32, u32), f64>),
    If(Box<Self>, Box<Self>, Box<Self>),
    Coalesce(Vec<Self>),
    OfText(fn(&str) -> f64, Box<Texts>, Known<u32, f64>),
}

impl Numbers {
    pub(super) fn new(number: &Number, segment: &Segment) -> Result<Self, QueryError> {
        let new = |number: &Number| Self::new(number, segment).map(Box::new);
        let text = |text: &Text| Texts::new(text, segment).map(Box::new);
        Ok(match number {
            Number::Literal(number) => Self::Literal(*number),
            Number::Column(name) => Self::Column(RowNumbers::new(name, segment)?),
            Number::Negate(of) => Self::One(|x| -x, new(of)?),
            Number::Not(of) => Self::One(not, new(of)?),
            Number::Pair(operator, left, right) => {
                Self::Two(arithmetic(*operator), new(left)?, new(right)?)
            }
            Number::Bucket(of, width) => Self::Two(bucket, new(of)?, new(width)?),
            Number::ComparedText(operator, left, right) => {
                Self::Compared(*operator, text(left)?, text(right)?, Known::default())
            }
            Number::If(condition, yes, no) => Self::If(new(condition)?, new(yes)?, new(no)?),
            Number::Coalesce(all) => Self::Coalesce(
                all.iter().map(|one| Self::new(one, segment)).collect::<Result<_, _>>()?,
            ),
            Number::Length(of) => Self::OfText(length, text(of)?, Known::default()),
            Number::Of(of) => Self::OfText(parsed, text(of)?, Known::default()),
        })
    }

    /// The numbers of a block of rows.
    pub(super) fn of(&mut self, rows: Range<usize>) -> Vec<f64> {
        match self {
            Self::Literal(number) => vec![*number; rows.len()],
            Self::Column(numbers) => rows.map(|row| numbers.get(row).unwrap_or(f64::NAN)).collect(),
            Self::One(function, of) => of.of(rows).into_iter().map(*function).collect(),
            Self::Two(function, left, right) => {
                let pairs = left.of(rows.clone()).into_iter().zip(right.of(rows));
                pairs.map(|(left, right)| function(left, right)).collect()
            }
            Self::Compared(operator, left, right, known) => {
                let pairs: Vec<_> = left.of(rows.clone()).into_iter().zip(right.of(rows)).collect();
                let compare = |(x, y)| compared_text(*operator, left.get(x), right.get(y));
                pairs
                    .into_iter()
                    .map(|pair| *known.entry(pair).or_insert_with(|| compare(pair)))
                    .collect()
            }
            Self::If(condition, yes, no) => {
                let branches = yes.of(rows.clone()).into_iter().zip(no.of(rows.clone()));
                let all = condition.of(rows).into_iter().zip(branches);
                all.map(|(condition, (yes, no))| if is_true(condition) { yes } else { no })
                    .collect()
            }
            Self::Coalesce(all) => {
                let mut found = vec![f64::NAN; rows.len()];
                for one in all {
                    for (found, number) in found.iter_mut().zip(one.of(rows.clone())) {
                        *found = if found.is_nan() { number } else { *found };
                    }
                }
                found
            }
            Self::OfText(function, of, known) => {
                let codes = of.of(rows);
                let apply = |code| of.get(code).map_or(f64::NAN, *function);
                codes
                    .into_iter()
                    .map(|code| *known.entry(code).or_insert_with(|| apply(code)))
                    .collect()
            }
        }
    }
}

/// Null is not true.
fn is_true(number: f64) -> bool {
    number != 0.0 && !number.is_nan()
}

fn truth(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

fn not(x: f64) -> f64 {
    if x.is_nan() { x } else { truth(x == 0.0) }
}

/// The largest multiple of the width that is not larger.
fn bucket(x: f64, width: f64) -> f64 {
    if width > 0.0 { finite((x / width).floor() * width) } else { f64::NAN }
}

/// What is beyond all numbers, as what is divided by zero, is null.
fn finite(x: f64) -> f64 {
    if x.is_finite() { x } else { f64::NAN }
}

#[expect(clippy::cast_precision_loss, reason = "texts are shorter than that")]
fn length(text: &str) -> f64 {
    text.chars().count() as f64
}

fn parsed(text: &str) -> f64 {
    text.trim().parse().map_or(f64::NAN, finite)
}

/// `and` and `or` say what they can though one side is null; all else is null where a side is.
fn arithmetic(operator: Operator) -> fn(f64, f64) -> f64 {
    match operator {
        Operator::Or => |x, y| match (is_true(x) || is_true(y), x.is_nan() || y.is_nan()) {
            (true, _) => 1.0,
            (false, true) => f64::NAN,
            (false, false) => 0.0,
        },
        Operator::And => |x, y| match (x == 0.0 || y == 0.0, x.is_nan() || y.is_nan()) {
            (true, _) => 0.0,
            (false, true) => f64::NAN,
            (false, false) => 1.0,
        },
        Operator::Equal => |x, y| compared(Operator::Equal, x.partial_cmp(&y)),
        Operator::NotEqual => |x, y| compared(Operator::NotEqual, x.partial_cmp(&y)),
        Operator::Less => |x, y| compared(Operator::Less, x.partial_cmp(&y)),
        Operator::LessOrEqual => |x, y| compared(Operator::LessOrEqual, x.partial_cmp(&y)),
        Operator::Greater => |x, y| compared(Operator::Greater, x.partial_cmp(&y)),
        Operator::GreaterOrEqual => |x, y| compared(Operator::GreaterOrEqual, x.partial_cmp(&y)),
        Operator::Add => |x, y| finite(x + y),
        Operator::Subtract => |x, y| finite(x - y),
        Operator::Multiply => |x, y| finite(x * y),
        Operator::Divide => |x, y| finite(x / y),
        Operator::Remainder => |x, y| finite(x % y),
    }
}

fn compared(operator: Operator, ordering: Option<Ordering>) -> f64 {
    let Some(ordering) = ordering else { return f64::NAN };
    match operator {
        Operator::Equal => truth(ordering.is_eq()),
        Operator::NotEqual => truth(ordering.is_ne()),
        Operator::Less => truth(ordering.is_lt()),
        Operator::LessOrEqual => truth(ordering.is_le()),
        Operator::Greater => truth(ordering.is_gt()),
        Operator::GreaterOrEqual => truth(ordering.is_ge()),
        Operator::Or
        | Operator::And
        | Operator::Add
        | Operator::Subtract
        | Operator::Multiply
        | Operator::Divide
        | Operator::Remainder => f64::NAN,
    }
}

fn compared_text(operator: Operator, left: Option<&str>, right: Option<&str>) -> f64 {
    compared(operator, left.zip(right).map(|(left, right)| left.as_bytes().cmp(right.as_bytes())))
}

/// Texts that were made, each once.
#[derive(Default)]
pub(super) struct Made {
    codes: Known<String, u32>,
    texts: Vec<String>,
}

impl Made {
    fn code(&mut self, text: Option<String>) -> u32 {
        let Some(text) = text else { return NULL };
        let texts = &mut self.texts;
        *self.codes.entry(text).or_insert_with_key(|text| {
            texts.push(text.clone());
            u32::try_from(texts.len() - 1).unwrap_or(NULL)
        })
    }

    fn get(&self, code: u32) -> Option<&str> {
        self.texts.get(code as usize).map(String::as_str)
    }
}

/// A text of each row of a segment: a code, and what it stands for.
pub(super) enum Texts {
    /// The same for all rows.
    Literal(Option<String>),
    Column(Codes, Strings),
    OfNumber(Box<Numbers>, Known<u64, u32>, Made),
    /// A function of one text.
    Mapped(TextFunction, Box<Self>, Known<u32, u32>, Made),
    /// All of them, one after the other.
    Concat(Vec<Self>, Known<Vec<u32>, u32>, Made),
    If(Box<Numbers>, Box<[Self; 2]>, Known<(usize, u32), u32>, Made),
    Coalesce(Vec<Self>, Known<(usize, u32), u32>, Made),
}

impl Texts {
    pub(super) fn new(text: &Text, segment: &Segment) -> Result<Self, QueryError> {
        let new = |text: &Text| Self::new(text, segment);
        let number = |number: &Number| Numbers::new(number, segment).map(Box::new);
        let all = |texts: &[Text]| texts.iter().map(new).collect::<Result<Vec<_>, _>>();
        Ok(match text {
            Text::Null => Self::Literal(None),
            Text::Literal(text) => Self::Literal(Some(text.clone())),
            Text::Column(name) => Self::column(name, segment)?,
            Text::Of(of) => Self::OfNumber(number(of)?, Known::default(), Made::default()),
            Text::Lower(of) => Self::mapped(|text| Some(text.to_lowercase()), new(of)?),
            Text::Extract(of, regex, group) => {
                let (regex, group) = (regex.clone(), *group);
                Self::mapped(move |text| extracted(&regex, group, text), new(of)?)
            }
            Text::Concat(parts) => Self::Concat(all(parts)?, Known::default(), Made::default()),
            Text::If(condition, yes, no) => {
                let branches = Box::new([new(yes)?, new(no)?]);
                Self::If(number(condition)?, branches, Known::default(), Made::default())
            }
            Text::Coalesce(parts) => Self::Coalesce(all(parts)?, Known::default(), Made::default()),
        })
    }

    fn column(name: &str, segment: &Segment) -> Result<Self, QueryError> {
        let Some(column) = segment.column(name, Kind::String) else {
            return Ok(Self::Literal(None));
        };
        match column.data()? {
            ColumnData::String { codes, strings } => Ok(Self::Column(codes, strings)),
            ColumnData::Int { .. } | ColumnData::Float { .. } | ColumnData::List { .. } => {
                Ok(Self::Literal(None))
            }
        }
    }

    fn mapped(function: impl Fn(&str) -> Option<String> + 'static, of: Self) -> Self {
        Self::Mapped(Box::new(function), Box::new(of), Known::default(), Made::default())
    }

    /// What a code stands for; `None` for that of null.
    pub(super) fn get(&self, code: u32) -> Option<&str> {
        match self {
            Self::Literal(text) => text.as_deref().filter(|_| code != NULL),
            Self::Column(_, strings) => {
                ((code as usize) < strings.len()).then(|| strings.get(code))
            }
            Self::OfNumber(_, _, made)
            | Self::Mapped(_, _, _, made)
            | Self::Concat(_, _, made)
            | Self::If(_, _, _, made)
            | Self::Coalesce(_, _, made) => made.get(code),
        }
    }

    /// The codes of a block of rows.
    pub(super) fn of(&mut self, rows: Range<usize>) -> Vec<u32> {
        match self {
            Self::Literal(text) => vec![if text.is_some() { 0 } else { NULL }; rows.len()],
            Self::Column(codes, strings) => rows
                .map(|row| codes.get(row))
                .map(|code| if (code as usize) < strings.len() { code } else { NULL })
                .collect(),
            Self::OfNumber(numbers, known, made) => {
                let text = |number: f64| (!number.is_nan()).then(|| number.to_string());
                let code = |number: f64| {
                    *known.entry(number.to_bits()).or_insert_with(|| made.code(text(number)))
                };
                numbers.of(rows).into_iter().map(code).collect()
            }
            Self::Mapped(function, of, known, made) => {
                let codes = of.of(rows);
                let apply = |code| of.get(code).and_then(&*function);
                let code = |code| *known.entry(code).or_insert_with(|| made.code(apply(code)));
                codes.into_iter().map(code).collect()
            }
            Self::Concat(parts, known, made) => {
                let codes: Vec<_> = parts.iter_mut().map(|part| part.of(rows.clone())).collect();
                let joined = |key: &[u32]| {
                    let texts = parts.iter().zip(key).map(|(part, &code)| part.get(code));
                    texts.collect::<Option<String>>()
                };
                let key = |row: usize| codes.iter().map(|codes| codes[row]).collect::<Vec<u32>>();
                let code = |key: Vec<u32>| {
                    *known.entry(key).or_insert_with_key(|key| made.code(joined(key)))
                };
                (0..rows.len()).map(key).map(code).collect()
            }
            Self::If(condition, branches, known, made) => {
                let codes = branches.each_mut().map(|branch| branch.of(rows.clone()));
                let chosen: Vec<_> =
                    condition.of(rows).into_iter().map(|x| usize::from(!is_true(x))).collect();
                let pairs = chosen
                    .into_iter()
                    .enumerate()
                    .map(|(row, branch)| (branch, codes[branch][row]));
                pairs.map(|pair| chosen_code(pair, &branches[..], known, made)).collect()
            }
            Self::Coalesce(parts, known, made) => {
                let codes: Vec<_> = parts.iter_mut().map(|part| part.of(rows.clone())).collect();
                let first = |row: usize| {
                    let mut all = codes.iter().map(|codes| codes[row]).enumerate();
                    all.find(|(_, code)| *code != NULL).unwrap_or((0, NULL))
                };
                (0..rows.len())
                    .map(first)
                    .map(|pair| chosen_code(pair, parts, known, made))
                    .collect()
            }
        }
    }
}

/// The code of a text that is one of several parts'.
fn chosen_code(
    pair: (usize, u32),
    parts: &[Texts],
    known: &mut Known<(usize, u32), u32>,
    made: &mut Made,
) -> u32 {
    let (part, code) = pair;
    *known.entry(pair).or_insert_with(|| made.code(parts[part].get(code).map(str::to_owned)))
}

fn extracted(regex: &Regex, group: usize, text: &str) -> Option<String> {
    regex.captures(text)?.get(group).map(|found| found.as_str().to_owned())
}
