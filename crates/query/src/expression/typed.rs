//! What an expression means for a dataset: which of its parts are numbers and which are text.

use std::collections::{BTreeMap, BTreeSet};

use perflab_model::Kind;
use regex::{Regex, RegexBuilder};

use super::ExpressionError;
use super::parse::{Form, Function, Operator, Part};
use crate::error::REGEX_BYTES_MAX;
use crate::source::found;

/// The kinds that each name has in a dataset.
pub(super) type Kinds = BTreeMap<String, BTreeSet<Kind>>;

/// What is computed: numbers or text.
#[derive(Debug)]
pub(super) enum Typed {
    Number(Number),
    Text(Text),
}

/// A number of each row; NaN is null, and so is what can't be computed.
#[derive(Debug)]
pub(super) enum Number {
    Literal(f64),
    Column(String),
    Negate(Box<Self>),
    Not(Box<Self>),
    Pair(Operator, Box<Self>, Box<Self>),
    ComparedText(Operator, Box<Text>, Box<Text>),
    If(Box<Self>, Box<Self>, Box<Self>),
    Coalesce(Vec<Self>),
    Bucket(Box<Self>, Box<Self>),
    Length(Box<Text>),
    Of(Box<Text>),
}

/// A text of each row, or null.
#[derive(Debug)]
pub(super) enum Text {
    Null,
    Literal(String),
    Column(String),
    Of(Box<Number>),
    Lower(Box<Self>),
    Extract(Box<Self>, Regex, usize),
    Concat(Vec<Self>),
    If(Box<Number>, Box<Self>, Box<Self>),
    Coalesce(Vec<Self>),
}

impl Typed {
    pub(super) fn new(part: &Part, kinds: &Kinds) -> Result<Self, ExpressionError> {
        if is_text(part, kinds) {
            text(part, kinds).map(Self::Text)
        } else {
            number(part, kinds).map(Self::Number)
        }
    }
}

/// Of what could be both, numbers come first: a column that has numbers is one of numbers.
fn is_text(part: &Part, kinds: &Kinds) -> bool {
    match &part.form {
        Form::Text(_) => true,
        Form::Column(name) => {
            let has = |kind| kinds.get(name).is_some_and(|kinds| kinds.contains(&kind));
            has(Kind::String) && !has(Kind::Int) && !has(Kind::Float)
        }
        Form::Call(function, arguments) => match function {
            Function::Concat | Function::Lower | Function::RegexExtract => true,
            Function::If => arguments[1..].iter().any(|argument| is_text(argument, kinds)),
            Function::Coalesce => arguments.iter().any(|argument| is_text(argument, kinds)),
            Function::Length | Function::Number | Function::Bucket => false,
        },
        Form::Number(_) | Form::Null | Form::Negate(_) | Form::Not(_) | Form::Pair(..) => false,
    }
}

fn boxed(part: &Part, kinds: &Kinds) -> Result<Box<Number>, ExpressionError> {
    number(part, kinds).map(Box::new)
}

fn boxed_text(part: &Part, kinds: &Kinds) -> Result<Box<Text>, ExpressionError> {
    text(part, kinds).map(Box::new)
}

fn number(part: &Part, kinds: &Kinds) -> Result<Number, ExpressionError> {
    let wrong = || Err(ExpressionError::NotANumber { position: part.position });
    Ok(match &part.form {
        Form::Number(number) => Number::Literal(*number),
        Form::Null => Number::Literal(f64::NAN),
        Form::Text(_) => return wrong(),
        Form::Column(name) => {
            check_kind(name, &[Kind::Int, Kind::Float], "numbers", part, kinds)?;
            Number::Column(name.clone())
        }
        Form::Negate(of) => Number::Negate(boxed(of, kinds)?),
        Form::Not(of) => Number::Not(boxed(of, kinds)?),
        Form::Pair(operator, left, right) => pair(*operator, left, right, kinds)?,
        Form::Call(function, arguments) => match (function, &arguments[..]) {
            (Function::If, [condition, yes, no]) => {
                Number::If(boxed(condition, kinds)?, boxed(yes, kinds)?, boxed(no, kinds)?)
            }
            (Function::Coalesce, all) => Number::Coalesce(
                all.iter().map(|one| number(one, kinds)).collect::<Result<_, _>>()?,
            ),
            (Function::Bucket, [of, width]) => {
                Number::Bucket(boxed(of, kinds)?, boxed(width, kinds)?)
            }
            (Function::Length, [of]) => Number::Length(boxed_text(of, kinds)?),
            (Function::Number, [of]) => Number::Of(boxed_text(of, kinds)?),
            _ => return wrong(),
        },
    })
}

/// Texts are compared as such where one of the two is certainly text.
fn pair(
    operator: Operator,
    left: &Part,
    right: &Part,
    kinds: &Kinds,
) -> Result<Number, ExpressionError> {
    if operator.compares() && (is_text(left, kinds) || is_text(right, kinds)) {
        let (left, right) = (boxed_text(left, kinds)?, boxed_text(right, kinds)?);
        return Ok(Number::ComparedText(operator, left, right));
    }
    Ok(Number::Pair(operator, boxed(left, kinds)?, boxed(right, kinds)?))
}

fn text(part: &Part, kinds: &Kinds) -> Result<Text, ExpressionError> {
    let wrong = || Err(ExpressionError::NotText { position: part.position });
    Ok(match &part.form {
        Form::Text(text) => Text::Literal(text.clone()),
        Form::Null => Text::Null,
        Form::Column(name) => {
            check_kind(name, &[Kind::String], "strings", part, kinds)?;
            Text::Column(name.clone())
        }
        Form::Call(function, arguments) => match (function, &arguments[..]) {
            (Function::Lower, [of]) => Text::Lower(boxed_text(of, kinds)?),
            (Function::RegexExtract, [of, regex, group]) => {
                let (regex, group) = extraction(regex, group)?;
                Text::Extract(boxed_text(of, kinds)?, regex, group)
            }
            (Function::Concat, all) => {
                Text::Concat(all.iter().map(|one| written(one, kinds)).collect::<Result<_, _>>()?)
            }
            (Function::If, [condition, yes, no]) => {
                Text::If(boxed(condition, kinds)?, boxed_text(yes, kinds)?, boxed_text(no, kinds)?)
            }
            (Function::Coalesce, all) => {
                Text::Coalesce(all.iter().map(|one| text(one, kinds)).collect::<Result<_, _>>()?)
            }
            _ => return wrong(),
        },
        Form::Number(_) | Form::Negate(_) | Form::Not(_) | Form::Pair(..) => return wrong(),
    })
}

/// Text, also of a number.
fn written(part: &Part, kinds: &Kinds) -> Result<Text, ExpressionError> {
    if is_text(part, kinds) || part.form == Form::Null {
        return text(part, kinds);
    }
    Ok(Text::Of(boxed(part, kinds)?))
}

/// The regular expression and the number of a group in it, both written out.
fn extraction(regex: &Part, group: &Part) -> Result<(Regex, usize), ExpressionError> {
    let Form::Text(pattern) = &regex.form else {
        return Err(ExpressionError::Written {
            what: "the regular expression",
            position: regex.position,
        });
    };
    let built = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build();
    let failed = |error| ExpressionError::Regex { position: regex.position, error };
    let built = built.map_err(failed)?;
    let groups = built.captures_len() - 1;
    #[expect(clippy::cast_precision_loss, reason = "groups are few")]
    let is_it = |number: f64, wanted: usize| (number - wanted as f64).abs() < f64::EPSILON;
    let Form::Number(number) = &group.form else {
        let what = "the number of a group";
        return Err(ExpressionError::Written { what, position: group.position });
    };
    let number = (0..=groups).find(|&wanted| is_it(*number, wanted));
    let missing = ExpressionError::Group { position: group.position, groups };
    Ok((built, number.ok_or(missing)?))
}

/// A column that is there, but never as what is wanted, is a mistake; one that is nowhere is null.
fn check_kind(
    name: &str,
    wanted: &[Kind],
    takes: &'static str,
    part: &Part,
    kinds: &Kinds,
) -> Result<(), ExpressionError> {
    let Some(first) = kinds.get(name).and_then(BTreeSet::first) else { return Ok(()) };
    if wanted.iter().any(|kind| kinds[name].contains(kind)) {
        return Ok(());
    }
    let (column, position) = (name.to_owned(), part.position);
    Err(ExpressionError::Kind { column, position, found: found(*first), takes })
}
