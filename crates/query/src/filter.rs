//! Conditions against a segment: each becomes a test of codes or numbers, and fills a mask with
//! one byte per row, 1 where it holds. Bytes, not bits: compilers turn such loops into vector
//! code, and a block of them stays in the nearest cache.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use arrow::buffer::{BooleanBuffer, ScalarBuffer};
use perflab_model::Kind;
use perflab_store::segment::{
    Codes, ColumnData, Ints, ListTable, Segment, SegmentColumn, Strings, Vocabularies, Vocabulary,
};
use regex::bytes::{Regex, RegexBuilder};

use crate::QueryError;
use crate::algebra::{Comparison, Condition, Test};
use crate::error::REGEX_BYTES_MAX;
use crate::kernels::Code;

/// The conditions of a question, ready for all segments.
#[derive(Debug)]
pub(crate) struct Conditions<'q> {
    any_of: Vec<Vec<Matcher<'q>>>,
}

impl<'q> Conditions<'q> {
    pub(crate) fn new(
        any_of: &'q [Vec<Condition>],
        vocabularies: &Vocabularies,
    ) -> Result<Self, QueryError> {
        let mut alternatives = Vec::new();
        for conditions in any_of {
            let matchers = conditions.iter().map(|one| Matcher::new(one, vocabularies));
            alternatives.push(matchers.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(Self { any_of: alternatives })
    }
}

/// The conditions of a question, ready for one segment.
#[derive(Debug)]
pub(crate) struct Filter {
    any_of: Vec<Vec<Leaf>>,
}

/// Room for the masks of a block, of the question, a conjunction, and a leaf, and for the places of
/// its rows.
#[derive(Debug, Default)]
pub(crate) struct Masks {
    any: Vec<u8>,
    all: Vec<u8>,
    leaf: Vec<u8>,
    selected: Vec<u32>,
}

impl Filter {
    /// `None` when no row of the segment can meet them.
    pub(crate) fn new(
        conditions: &Conditions<'_>,
        segment: &Segment,
    ) -> Result<Option<Self>, QueryError> {
        let mut alternatives = Vec::new();
        for matchers in &conditions.any_of {
            let mut leaves = Vec::new();
            for matcher in matchers {
                let leaf = Leaf::new(matcher, segment)?;
                if !matches!(leaf, Leaf::All) {
                    leaves.push(leaf);
                }
            }
            if !leaves.iter().any(|leaf| matches!(leaf, Leaf::Nothing)) {
                alternatives.push(leaves);
            }
        }
        let is_nothing = alternatives.is_empty() && !conditions.any_of.is_empty();
        Ok((!is_nothing).then_some(Self { any_of: alternatives }))
    }

    /// Whether every row meets it.
    pub(crate) fn is_all(&self) -> bool {
        self.any_of.is_empty() || self.any_of.iter().any(Vec::is_empty)
    }

    /// The places of the rows that meet it, counted from the start of the block.
    pub(crate) fn select<'m>(&self, rows: Range<usize>, masks: &'m mut Masks) -> &'m [u32] {
        let Masks { any, all, leaf: leaf_mask, selected } = masks;
        for mask in [&mut *any, all, leaf_mask] {
            mask.resize(rows.len(), 0);
        }
        for (n, leaves) in self.any_of.iter().enumerate() {
            // The first needs not be put together with others.
            let mask = if n == 0 { &mut *any } else { &mut *all };
            fill_all(leaves, rows.clone(), mask, leaf_mask);
            if n > 0 {
                any.iter_mut().zip(&*all).for_each(|(any, &mask)| *any |= mask);
            }
        }
        compress(any, selected)
    }
}

/// Fills the mask of rows that meet all of these.
fn fill_all(leaves: &[Leaf], rows: Range<usize>, mask: &mut [u8], leaf_mask: &mut [u8]) {
    let Some((first, rest)) = leaves.split_first() else { return mask.fill(1) };
    first.fill(rows.clone(), mask);
    for leaf in rest {
        if mask.iter().fold(0, |any, &byte| any | byte) == 0 {
            return;
        }
        leaf.fill(rows.clone(), leaf_mask);
        mask.iter_mut().zip(&*leaf_mask).for_each(|(mask, &leaf)| *mask &= leaf);
    }
}

/// Rows are looked at so many at a time, and passed over where none of them is chosen.
const STEP: usize = 8;

/// The places of the ones. Without branches for single rows: which of them meet a condition
/// can't be foreseen.
fn compress<'m>(mask: &[u8], selected: &'m mut Vec<u32>) -> &'m [u32] {
    // What was there before need not be cleared.
    selected.resize(mask.len() + STEP, 0);
    let (steps, rest) = mask.as_chunks::<STEP>();
    let (mut found, mut place) = (0, 0_u32);
    for step in steps {
        if u64::from_ne_bytes(*step) != 0 {
            let places = &mut selected[found..found + STEP];
            let mut here = 0;
            for (at, &byte) in (place..).zip(step) {
                places[here % STEP] = at;
                here += usize::from(byte);
            }
            found += here;
        }
        place += 8;
    }
    for (at, &byte) in (place..).zip(rest) {
        selected[found] = at;
        found += usize::from(byte);
    }
    &selected[..found]
}

/// A test of one or several columns of a segment.
#[derive(Debug)]
enum Leaf {
    All,
    Nothing,
    /// Codes from `first` on, this many.
    CodeRange {
        codes: Codes,
        first: u32,
        len: u32,
    },
    /// Codes whose entry is 1. There are entries for all codes of that width, or up to null's.
    CodeTable {
        codes: Codes,
        accepted: Vec<u8>,
    },
    Int {
        values: Ints,
        valid: Option<BooleanBuffer>,
        test: IntTest,
    },
    Float {
        values: ScalarBuffer<f64>,
        test: FloatTest,
    },
    /// For the kinds of one name.
    Either(Vec<Self>),
    Not(Box<Self>),
}

/// Never holds for null.
#[derive(Debug)]
enum IntTest {
    From(i64, i64),
    In(Vec<i64>),
}

/// Never holds for null, which is NaN.
#[derive(Debug)]
enum FloatTest {
    Compare(Comparison, f64),
    In(Vec<f64>),
    NotNull,
}

impl Leaf {
    fn new(matcher: &Matcher<'_>, segment: &Segment) -> Result<Self, QueryError> {
        let mut kinds = Vec::new();
        for column in segment.columns_named(matcher.column) {
            let leaf = matcher.leaf(segment, column)?;
            if !matches!(leaf, Self::Nothing) {
                kinds.push(leaf);
            }
        }
        let leaf = match kinds.len() {
            0 => Self::Nothing,
            1 => kinds.remove(0),
            _ => Self::Either(kinds),
        };
        Ok(match (leaf, matcher.is_negated) {
            (leaf, false) => leaf,
            (Self::Nothing, true) => Self::All,
            (Self::All, true) => Self::Nothing,
            (leaf, true) => Self::Not(Box::new(leaf)),
        })
    }

    /// Fills the mask of a block of rows.
    fn fill(&self, rows: Range<usize>, mask: &mut [u8]) {
        match self {
            Self::All => mask.fill(1),
            Self::Nothing => mask.fill(0),
            Self::CodeRange { codes, first, len } => match codes {
                Codes::U8(codes) => fill_range(&codes[rows], *first, *len, mask),
                Codes::U16(codes) => fill_range(&codes[rows], *first, *len, mask),
                Codes::U32(codes) => fill_range(&codes[rows], *first, *len, mask),
            },
            Self::CodeTable { codes, accepted } => match codes {
                Codes::U8(codes) => fill_table::<0x100, _>(&codes[rows], accepted, mask),
                Codes::U16(codes) => fill_table::<0x1_0000, _>(&codes[rows], accepted, mask),
                Codes::U32(codes) => fill_long_table(&codes[rows], accepted, mask),
            },
            Self::Int { values, valid, test } => {
                match values {
                    Ints::I8(values) => test.fill(&values[rows.clone()], mask),
                    Ints::I16(values) => test.fill(&values[rows.clone()], mask),
                    Ints::I32(values) => test.fill(&values[rows.clone()], mask),
                    Ints::I64(values) => test.fill(&values[rows.clone()], mask),
                }
                if let Some(valid) = valid {
                    let bits = valid.slice(rows.start, rows.len());
                    let both = mask.iter_mut().zip(bits.iter());
                    both.for_each(|(mask, bit)| *mask &= u8::from(bit));
                }
            }
            Self::Float { values, test } => test.fill(&values[rows], mask),
            Self::Either(leaves) => {
                mask.fill(0);
                let mut one = vec![0; mask.len()];
                for leaf in leaves {
                    leaf.fill(rows.clone(), &mut one);
                    mask.iter_mut().zip(&one).for_each(|(mask, &one)| *mask |= one);
                }
            }
            Self::Not(leaf) => {
                leaf.fill(rows, mask);
                mask.iter_mut().for_each(|mask| *mask ^= 1);
            }
        }
    }
}

/// Compares as narrow as the codes are, which is that many more at a time.
fn fill_range<C: Code + TryFrom<u32> + PartialOrd>(
    codes: &[C],
    first: u32,
    len: u32,
    mask: &mut [u8],
) {
    let pairs = mask.iter_mut().zip(codes);
    match (C::try_from(first), C::try_from(first + (len - 1))) {
        (Ok(only), _) if len == 1 => {
            pairs.for_each(|(mask, &code)| *mask = u8::from(code == only));
        }
        (Ok(first), Ok(last)) => pairs.for_each(|(mask, &code)| {
            *mask = u8::from(code >= first) & u8::from(code <= last);
        }),
        // The last does not fit, as where nothing is null: the codes end before.
        (Ok(first), Err(_)) => pairs.for_each(|(mask, &code)| *mask = u8::from(code >= first)),
        (Err(_), _) => mask.fill(0),
    }
}

/// The table has an entry for every code of that width: none has to be checked.
fn fill_table<const N: usize, C: Copy + Into<usize>>(
    codes: &[C],
    accepted: &[u8],
    mask: &mut [u8],
) {
    let accepted: &[u8; N] = accepted.first_chunk().expect("tables are as long as codes are wide");
    for (mask, &code) in mask.iter_mut().zip(codes) {
        *mask = accepted[code.into()];
    }
}

fn fill_long_table(codes: &[u32], accepted: &[u8], mask: &mut [u8]) {
    for (mask, &code) in mask.iter_mut().zip(codes) {
        *mask = accepted[code as usize];
    }
}

impl IntTest {
    /// Whether it may hold for numbers from the least to the most.
    fn can_hold(&self, (least, most): (i64, i64)) -> bool {
        match self {
            Self::From(from, to) => *from <= most && least <= *to,
            Self::In(wanted) => wanted.iter().any(|one| (least..=most).contains(one)),
        }
    }

    fn fill<T: Copy + Into<i64>>(&self, values: &[T], mask: &mut [u8]) {
        match self {
            Self::From(least, most) => {
                for (mask, &value) in mask.iter_mut().zip(values) {
                    let value = value.into();
                    *mask = u8::from(value >= *least) & u8::from(value <= *most);
                }
            }
            Self::In(wanted) => {
                for (mask, &value) in mask.iter_mut().zip(values) {
                    *mask = u8::from(wanted.contains(&value.into()));
                }
            }
        }
    }
}

impl FloatTest {
    /// Whether it may hold for numbers from the least to the most.
    fn can_hold(&self, (least, most): (f64, f64)) -> bool {
        match self {
            Self::Compare(Comparison::Less, bound) => least < *bound,
            Self::Compare(Comparison::LessOrEqual, bound) => least <= *bound,
            Self::Compare(Comparison::Greater, bound) => most > *bound,
            Self::Compare(Comparison::GreaterOrEqual, bound) => most >= *bound,
            Self::In(wanted) => wanted.iter().any(|one| (least..=most).contains(one)),
            Self::NotNull => true,
        }
    }

    fn fill(&self, values: &[f64], mask: &mut [u8]) {
        match self {
            Self::Compare(Comparison::Less, bound) => fill_floats(values, mask, |v| v < *bound),
            Self::Compare(Comparison::LessOrEqual, bound) => {
                fill_floats(values, mask, |v| v <= *bound);
            }
            Self::Compare(Comparison::Greater, bound) => fill_floats(values, mask, |v| v > *bound),
            Self::Compare(Comparison::GreaterOrEqual, bound) => {
                fill_floats(values, mask, |v| v >= *bound);
            }
            Self::In(wanted) => fill_floats(values, mask, |v| wanted.contains(&v)),
            Self::NotNull => fill_floats(values, mask, |v| !v.is_nan()),
        }
    }
}

fn fill_floats(values: &[f64], mask: &mut [u8], test: impl Fn(f64) -> bool) {
    mask.iter_mut().zip(values).for_each(|(mask, &value)| *mask = u8::from(test(value)));
}

/// A test, prepared once for all kinds and all segments of a column.
#[derive(Debug)]
struct Matcher<'c> {
    column: &'c str,
    test: Test,
    is_negated: bool,
    regex: Option<Regex>,
    /// For tests that look at every string.
    verdicts: Option<Verdicts>,
}

/// What was found of strings, by their numbers in the vocabulary: each is looked at only once,
/// however many segments have it.
#[derive(Debug)]
struct Verdicts {
    vocabulary: Arc<Vocabulary>,
    known: Vec<AtomicU8>,
}

const UNKNOWN: u8 = 2;

impl Verdicts {
    /// Of the strings that the vocabulary has now.
    fn new(vocabulary: Arc<Vocabulary>) -> Self {
        let count = vocabulary.strings().count();
        Self { vocabulary, known: (0..count).map(|_| AtomicU8::new(UNKNOWN)).collect() }
    }

    fn get(&self, id: u32, test: impl FnOnce() -> bool) -> bool {
        let Some(known) = self.known.get(id as usize) else { return test() };
        match known.load(Ordering::Relaxed) {
            UNKNOWN => {
                let verdict = test();
                known.store(u8::from(verdict), Ordering::Relaxed);
                verdict
            }
            verdict => verdict == 1,
        }
    }
}

impl<'c> Matcher<'c> {
    fn new(condition: &'c Condition, vocabularies: &Vocabularies) -> Result<Self, QueryError> {
        let column = condition.column.as_str();
        let opposite = condition.test.opposite();
        let is_negated = opposite.is_some();
        let test = opposite.unwrap_or_else(|| condition.test.clone());
        let regex = if let Test::Regex(text) | Test::ItemRegex(text) = &test {
            let built = RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
            let failed = |error| QueryError::Regex { column: column.to_owned(), error };
            Some(built.map_err(failed)?)
        } else {
            None
        };
        let looks_at_all = matches!(test, Test::Regex(_) | Test::Contains(_) | Test::Prefix(_));
        let verdicts = looks_at_all.then(|| Verdicts::new(vocabularies.of(column)));
        Ok(Self { column, test, is_negated, regex, verdicts })
    }

    fn leaf(&self, segment: &Segment, column: &SegmentColumn) -> Result<Leaf, QueryError> {
        if self.is_ruled_out(column)? {
            return Ok(Leaf::Nothing);
        }
        match column.data()? {
            ColumnData::Int { values, validity } => {
                let leaf = |test| Leaf::Int { values, valid: validity, test };
                Ok(self.int_test()?.map_or(Leaf::Nothing, leaf))
            }
            ColumnData::Float { values } => {
                let leaf = |test| Leaf::Float { values, test };
                Ok(self.float_test()?.map_or(Leaf::Nothing, leaf))
            }
            ColumnData::String { codes, strings } => {
                let ids = match &self.verdicts {
                    Some(verdicts) => column.ids(&verdicts.vocabulary)?,
                    None => None,
                };
                Ok(self.string_leaf(&codes, &strings, ids.as_deref()))
            }
            ColumnData::List { ids } => {
                let Some(lists) = segment.lists() else { return Ok(Leaf::Nothing) };
                lists.check()?;
                self.list_leaf(&ids, lists, column)
            }
        }
    }

    /// Whether the smallest and the largest number of a column say that none of them passes: then
    /// the column is not even read.
    fn is_ruled_out(&self, column: &SegmentColumn) -> Result<bool, QueryError> {
        let can_hold = match column.kind() {
            Kind::Int => {
                let both = self.int_test()?.zip(column.int_range());
                both.is_some_and(|(test, range)| test.can_hold(range))
            }
            Kind::Float => {
                let both = self.float_test()?.zip(column.number_range());
                both.is_some_and(|(test, range)| test.can_hold(range))
            }
            Kind::String | Kind::Set | Kind::Vector => true,
        };
        Ok(!can_hold)
    }

    fn number(&self, text: &str) -> Result<f64, QueryError> {
        let number = text.trim().parse().ok().filter(|number: &f64| !number.is_nan());
        let (column, text) = (self.column.to_owned(), text.to_owned());
        number.ok_or(QueryError::NotANumber { column, text })
    }

    /// `None`: holds for no number.
    fn int_test(&self) -> Result<Option<IntTest>, QueryError> {
        if let Test::In(values) = &self.test {
            // A text that is no number equals none; another kind of the name may have it.
            let wanted = values.iter().filter_map(|text| whole(text)).collect();
            return Ok(Some(IntTest::In(wanted)));
        }
        if let Test::Compare(comparison, text) = &self.test {
            let (least, most) = int_bounds(*comparison, self.number(text)?, text);
            return Ok((least <= most).then_some(IntTest::From(least, most)));
        }
        let is_any = matches!(self.test, Test::NotNull);
        Ok(is_any.then_some(IntTest::From(i64::MIN, i64::MAX)))
    }

    fn float_test(&self) -> Result<Option<FloatTest>, QueryError> {
        if let Test::In(values) = &self.test {
            let wanted = values.iter().filter_map(|text| text.trim().parse().ok()).collect();
            return Ok(Some(FloatTest::In(wanted)));
        }
        if let Test::Compare(comparison, text) = &self.test {
            return Ok(Some(FloatTest::Compare(*comparison, self.number(text)?)));
        }
        Ok(matches!(self.test, Test::NotNull).then_some(FloatTest::NotNull))
    }

    fn string_leaf(&self, codes: &Codes, strings: &Strings, ids: Option<&[u32]>) -> Leaf {
        let all = u32::try_from(strings.len()).unwrap_or(u32::MAX);
        let range = |first: u32, end: u32| match end.saturating_sub(first) {
            0 => Leaf::Nothing,
            len => Leaf::CodeRange { codes: codes.clone(), first, len },
        };
        let table = |test: &dyn Fn(&[u8]) -> bool| {
            let test = |code: u32| test(strings.bytes(code));
            let accepted = (0..all).map(|code| match (&self.verdicts, ids) {
                (Some(verdicts), Some(ids)) => verdicts.get(ids[code as usize], || test(code)),
                _ => test(code),
            });
            code_table(codes, accepted)
        };
        match (&self.test, &self.regex) {
            (Test::In(values), _) => {
                let found: Vec<u32> =
                    values.iter().filter_map(|value| strings.code(value.as_bytes())).collect();
                match found[..] {
                    [] => Leaf::Nothing,
                    [code] => range(code, code + 1),
                    _ => code_table(codes, (0..all).map(|code| found.contains(&code))),
                }
            }
            (Test::Compare(comparison, bound), _) => {
                let below = strings.first_from(bound.as_bytes());
                let is_there = strings.code(bound.as_bytes()).is_some();
                let through = below + u32::from(is_there);
                match comparison {
                    Comparison::Less => range(0, below),
                    Comparison::LessOrEqual => range(0, through),
                    Comparison::Greater => range(through, all),
                    Comparison::GreaterOrEqual => range(below, all),
                }
            }
            (Test::Prefix(prefix), _) => table(&|string| string.starts_with(prefix.as_bytes())),
            (Test::Contains(part), _) => {
                let finder = memchr::memmem::Finder::new(part.as_bytes());
                table(&|string| finder.find(string).is_some())
            }
            (Test::Regex(_), Some(regex)) => table(&|string| regex.is_match(string)),
            (Test::NotNull, _) => range(0, all),
            _ => Leaf::Nothing,
        }
    }

    /// Once per distinct list that the column has.
    fn list_leaf(
        &self,
        ids: &Codes,
        lists: &ListTable,
        column: &SegmentColumn,
    ) -> Result<Leaf, QueryError> {
        let count = lists.len();
        if matches!(self.test, Test::NotNull) {
            return Ok(match u32::try_from(count).unwrap_or(u32::MAX) {
                0 => Leaf::Nothing,
                len => Leaf::CodeRange { codes: ids.clone(), first: 0, len },
            });
        }
        let used = column.lists_used(lists)?;
        let used = &used[..used.partition_point(|&id| (id as usize) < count)];
        let table = |test: &dyn Fn(u32) -> bool| {
            let mut accepted = vec![0; count + 1];
            used.iter().for_each(|&id| accepted[id as usize] = u8::from(test(id)));
            shortest(ids, accepted)
        };
        let is_vector = column.kind() == Kind::Vector;
        Ok(match (&self.test, &self.regex) {
            (Test::Any(values) | Test::In(values), _) => {
                let wanted = item_codes(lists, values);
                table(&|id| lists.codes(id).any(|code| wanted.contains(&Some(code))))
            }
            (Test::All(values), _) => {
                let wanted = item_codes(lists, values);
                let has = |id, wanted: &Option<u32>| lists.codes(id).any(|c| Some(c) == *wanted);
                table(&|id| wanted.iter().all(|wanted| has(id, wanted)))
            }
            (Test::Exact(values), _) => {
                let mut wanted = item_codes(lists, values);
                if !is_vector {
                    wanted.sort_unstable();
                    wanted.dedup();
                }
                table(&|id| lists.codes(id).map(Some).eq(wanted.iter().copied()))
            }
            (Test::StartsWith(values), _) if is_vector => {
                let wanted = item_codes(lists, values);
                table(&|id| {
                    lists.codes(id).len() >= wanted.len()
                        && lists.codes(id).zip(&wanted).all(|(code, wanted)| Some(code) == *wanted)
                })
            }
            (Test::ItemRegex(_) | Test::Regex(_), Some(regex)) => {
                let items = lists.items();
                let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
                let found: Vec<bool> =
                    (0..count).map(|code| regex.is_match(items.bytes(code))).collect();
                table(&|id| lists.codes(id).any(|code| found[code as usize]))
            }
            _ => Leaf::Nothing,
        })
    }
}

fn item_codes(lists: &ListTable, values: &[String]) -> Vec<Option<u32>> {
    values.iter().map(|value| lists.items().code(value.as_bytes())).collect()
}

fn code_table(codes: &Codes, accepted: impl Iterator<Item = bool>) -> Leaf {
    // Null, whose code is after the last, is never accepted.
    shortest(codes, accepted.map(u8::from).chain([0]).collect())
}

/// A table, or what is faster: nothing, or one run of codes.
fn shortest(codes: &Codes, mut accepted: Vec<u8>) -> Leaf {
    let Some(first) = accepted.iter().position(|&byte| byte == 1) else { return Leaf::Nothing };
    let len = accepted[first..].iter().take_while(|&&byte| byte == 1).count();
    if accepted[first + len..].contains(&1) {
        let entries = match codes {
            Codes::U8(_) => 0x100,
            Codes::U16(_) => 0x1_0000,
            Codes::U32(_) => accepted.len(),
        };
        accepted.resize(entries.max(accepted.len()), 0);
        return Leaf::CodeTable { codes: codes.clone(), accepted };
    }
    let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
    Leaf::CodeRange { codes: codes.clone(), first: narrow(first), len: narrow(len) }
}

/// The integer that a text is, also when it is written as `3.0`.
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "checked by going back")]
        let whole = number as i64;
        #[expect(
            clippy::cast_precision_loss,
            clippy::float_cmp,
            reason = "only a number that is the same there and back is whole"
        )]
        let is_same = whole as f64 == number;
        is_same.then_some(whole)
    })
}

/// The integers that stand so to a number: from the first to the second, both included; none
/// when the first is larger.
fn int_bounds(comparison: Comparison, number: f64, text: &str) -> (i64, i64) {
    const NONE: (i64, i64) = (1, 0);
    let wants_less = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
    // Beyond all integers; 2^63 itself is the first float that is.
    if number.abs() >= 9_223_372_036_854_775_808.0 && text.trim().parse::<i64>().is_err() {
        return if wants_less == (number > 0.0) { (i64::MIN, i64::MAX) } else { NONE };
    }
    #[expect(clippy::cast_possible_truncation, reason = "between the ends")]
    let (below, above) = match text.trim().parse() {
        Ok(exact) => (exact, exact),
        Err(_no_integer) => (number.floor() as i64, number.ceil() as i64),
    };
    let is_whole = below == above;
    match comparison {
        Comparison::Less if is_whole => below.checked_sub(1).map_or(NONE, |most| (i64::MIN, most)),
        Comparison::Less | Comparison::LessOrEqual => (i64::MIN, below),
        Comparison::Greater if is_whole => {
            above.checked_add(1).map_or(NONE, |least| (least, i64::MAX))
        }
        Comparison::Greater | Comparison::GreaterOrEqual => (above, i64::MAX),
    }
}
