//! One column of a batch.

use super::dictionary::Interned;
use super::{Dictionary, Kind, NO_COLUMN, Strings, Validity, Value};

/// A named column of one kind.
#[derive(Debug, Clone)]
pub struct Column {
    name: Box<str>,
    data: Data,
    validity: Validity,
    /// The column that came after this one in the row that last had both.
    pub(super) next: usize,
    /// Whether the batch has, or once had, a column of the same name and another kind.
    pub(super) shares_name: bool,
}

/// The values, with a placeholder where they are null.
#[derive(Debug, Clone)]
pub enum Data {
    Int(Vec<i64>),
    Float(Vec<f64>),
    /// Codes into the dictionary.
    String(Vec<u32>, Dictionary),
    Set(Lists),
    Vector(Lists),
}

/// Lists of strings, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// Where each list ends in `codes`; it starts where the one before it ends.
    ends: Vec<u32>,
    codes: Vec<u32>,
    dictionary: Dictionary,
}

impl Lists {
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    fn get(&self, row: usize) -> Strings<'_> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        Strings::new(&self.codes[start..self.ends[row] as usize], &self.dictionary)
    }

    fn end(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// Sorts the list that is being built, and drops duplicates.
    fn make_last_a_set(&mut self) {
        let mut list = self.codes.split_off(self.end());
        list.sort_unstable_by_key(|&code| self.dictionary.get(code));
        list.dedup();
        self.codes.append(&mut list);
    }

    /// `None` when the column is full.
    fn close_last(&mut self) -> Option<()> {
        self.ends.push(u32::try_from(self.codes.len()).ok()?);
        Some(())
    }
}

impl Column {
    pub(super) fn new(name: &str, kind: Kind) -> Self {
        let data = match kind {
            Kind::Int => Data::Int(Vec::new()),
            Kind::Float => Data::Float(Vec::new()),
            Kind::String => Data::String(Vec::new(), Dictionary::default()),
            Kind::Set => Data::Set(Lists::default()),
            Kind::Vector => Data::Vector(Lists::default()),
        };
        Self {
            name: name.into(),
            data,
            validity: Validity::default(),
            next: NO_COLUMN,
            shares_name: false,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn kind(&self) -> Kind {
        match self.data {
            Data::Int(_) => Kind::Int,
            Data::Float(_) => Kind::Float,
            Data::String(..) => Kind::String,
            Data::Set(_) => Kind::Set,
            Data::Vector(_) => Kind::Vector,
        }
    }

    /// The values of the first [`Validity::len`] rows of the batch; the rest is null.
    pub fn data(&self) -> &Data {
        &self.data
    }

    pub fn validity(&self) -> &Validity {
        &self.validity
    }

    /// `None` when the row has null here.
    pub fn value(&self, row: usize) -> Option<Value<'_>> {
        if !self.validity.is_valid(row) {
            return None;
        }
        Some(match &self.data {
            Data::Int(values) => Value::Int(values[row]),
            Data::Float(values) => Value::Float(values[row]),
            Data::String(codes, dictionary) => Value::String(dictionary.get(codes[row])),
            Data::Set(lists) => Value::Set(lists.get(row)),
            Data::Vector(lists) => Value::Vector(lists.get(row)),
        })
    }

    #[inline]
    pub(super) fn is(&self, name: &str, kind: Kind) -> bool {
        *self.name == *name && self.kind() == kind
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.validity.len()
    }

    /// Adds nulls until the column has this many values.
    #[inline]
    pub(super) fn pad_to(&mut self, len: usize) {
        if self.len() < len {
            self.pad(len);
        }
    }

    #[cold]
    fn pad(&mut self, len: usize) {
        self.validity.push_nulls(len - self.len());
        match &mut self.data {
            Data::Int(values) => values.resize(len, 0),
            Data::Float(values) => values.resize(len, 0.0),
            Data::String(codes, _) => codes.resize(len, 0),
            Data::Set(lists) | Data::Vector(lists) => {
                let end = lists.ends.last().copied().unwrap_or(0);
                lists.ends.resize(len, end);
            }
        }
    }

    #[inline]
    pub(super) fn push_int(&mut self, value: i64) {
        let Data::Int(values) = &mut self.data else { unreachable!("not an int column") };
        values.push(value);
        self.validity.push_valid();
    }

    #[inline]
    pub(super) fn push_float(&mut self, value: f64) {
        let Data::Float(values) = &mut self.data else { unreachable!("not a float column") };
        values.push(value);
        self.validity.push_valid();
    }

    /// Whether the string is new to the column; `None` when the column is full.
    #[inline]
    pub(super) fn push_string(&mut self, value: &str) -> Option<bool> {
        let Data::String(codes, dictionary) = &mut self.data else {
            unreachable!("not a string column")
        };
        let (code, is_new) = match dictionary.intern(value)? {
            Interned::Known(code) => (code, false),
            Interned::New(code) => (code, true),
        };
        codes.push(code);
        self.validity.push_valid();
        Some(is_new)
    }

    /// Adds a string to the list that is being built. Whether it is new to the column; `None`
    /// when the column is full.
    pub(super) fn push_item(&mut self, item: &str) -> Option<bool> {
        let (Data::Set(lists) | Data::Vector(lists)) = &mut self.data else {
            unreachable!("not a column of lists")
        };
        let (code, is_new) = match lists.dictionary.intern(item)? {
            Interned::Known(code) => (code, false),
            Interned::New(code) => (code, true),
        };
        lists.codes.push(code);
        Some(is_new)
    }

    /// Ends the list that is being built; `None` when the column is full.
    pub(super) fn end_list(&mut self) -> Option<()> {
        match &mut self.data {
            Data::Vector(lists) => lists.close_last()?,
            Data::Set(lists) => {
                lists.make_last_a_set();
                lists.close_last()?;
            }
            Data::Int(_) | Data::Float(_) | Data::String(..) => {
                unreachable!("not a column of lists")
            }
        }
        self.validity.push_valid();
        Some(())
    }

    pub(super) fn forget_last_string(&mut self) {
        match &mut self.data {
            Data::Int(_) | Data::Float(_) => {}
            Data::String(_, dictionary) => dictionary.forget_last(),
            Data::Set(lists) | Data::Vector(lists) => lists.dictionary.forget_last(),
        }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.validity.truncate(len);
        match &mut self.data {
            Data::Int(values) => values.truncate(len),
            Data::Float(values) => values.truncate(len),
            Data::String(codes, _) => codes.truncate(len),
            Data::Set(lists) | Data::Vector(lists) => {
                lists.ends.truncate(len);
                let end = lists.end();
                lists.codes.truncate(end);
            }
        }
    }
}
