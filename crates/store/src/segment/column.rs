//! Columns of a segment, as typed slices of its bytes.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use arrow::datatypes::ArrowNativeType;
use perflab_model::Kind;

use super::image::crc_of;
use super::meta::{ColumnMeta, MetaKind};
use super::{ListTable, PerFile, SegmentError, SharedTrie, Sparse, Vocabulary, Way, damaged};

/// A column as it lies in the file.
#[derive(Debug, Clone)]
pub(super) struct RawColumn {
    pub(super) meta: ColumnMeta,
    pub(super) file: Buffer,
    /// Validity, values, and those of the dictionary: validity, offsets, text.
    pub(super) ranges: Vec<Range<usize>>,
    /// Whether its checksum was found right, for all that share the column.
    pub(super) is_sound: Arc<AtomicBool>,
    /// Where its file is on a disk.
    pub(super) ahead: Option<Arc<dyn ReadAhead>>,
}

/// Bytes that are read from a disk when they are touched.
pub(crate) trait ReadAhead: fmt::Debug + Send + Sync {
    /// Says that these are about to be touched, and not what is around them.
    fn read_ahead(&self, range: &Range<usize>);
}

impl RawColumn {
    /// Checks the column's bytes, the first time.
    pub(super) fn check(&self) -> Result<(), SegmentError> {
        if self.is_sound.load(Ordering::Acquire) {
            return Ok(());
        }
        if let Some(ahead) = &self.ahead {
            self.ranges.iter().for_each(|range| ahead.read_ahead(range));
        }
        if crc_of(&self.file, &self.ranges) != self.meta.crc {
            return damaged(format!("the checksum of column `{}` is wrong", self.meta.name));
        }
        self.is_sound.store(true, Ordering::Release);
        Ok(())
    }

    /// The second buffer, as `rows` values.
    pub(super) fn values<T: ArrowNativeType>(
        &self,
        rows: usize,
    ) -> Result<ScalarBuffer<T>, SegmentError> {
        self.typed(1, rows)
    }

    /// How many bytes wide each of `rows` values is.
    fn width(&self, rows: usize) -> Option<usize> {
        let bytes = self.ranges.get(1)?.len();
        if rows == 0 { Some(8) } else { (bytes % rows == 0).then_some(bytes / rows) }
    }

    pub(super) fn typed<T: ArrowNativeType>(
        &self,
        buffer: usize,
        len: usize,
    ) -> Result<ScalarBuffer<T>, SegmentError> {
        let bytes = len * size_of::<T>();
        match self.ranges.get(buffer) {
            // An empty buffer need not be aligned.
            Some(_) if len == 0 => Ok(ScalarBuffer::default()),
            Some(range) if range.len() >= bytes && range.start.is_multiple_of(align_of::<T>()) => {
                Ok(ScalarBuffer::new(self.file.slice_with_length(range.start, bytes), 0, len))
            }
            _ => damaged(format!("column `{}` is too short", self.meta.name)),
        }
    }

    fn validity(&self, rows: usize) -> Result<Option<BooleanBuffer>, SegmentError> {
        if self.meta.nulls == 0 {
            return Ok(None);
        }
        match self.ranges.first() {
            Some(range) if range.len() >= rows.div_ceil(8) => {
                let bits = self.file.slice_with_length(range.start, range.len());
                Ok(Some(BooleanBuffer::new(bits, 0, rows)))
            }
            _ => damaged(format!("column `{}` does not say what is null", self.meta.name)),
        }
    }

    pub(super) fn strings(&self) -> Result<Strings, SegmentError> {
        let (Some(offsets), Some(text)) = (self.ranges.get(3), self.ranges.get(4)) else {
            return damaged(format!("column `{}` has no dictionary", self.meta.name));
        };
        // With nulls, the last entry is the placeholder of their code, and no string.
        let placeholders = usize::from(self.meta.nulls > 0);
        let offsets = (offsets.len() / size_of::<i32>()).saturating_sub(placeholders);
        let offsets = self.typed::<i32>(3, offsets)?;
        Ok(Strings::new(offsets, self.file.slice_with_length(text.start, text.len())))
    }
}

/// The narrowest unsigned integers that hold a column's codes.
///
/// A null has the code after the last one, so that kernels need not look at the validity.
#[derive(Debug, Clone)]
pub enum Codes {
    U8(ScalarBuffer<u8>),
    U16(ScalarBuffer<u16>),
    U32(ScalarBuffer<u32>),
}

impl Codes {
    pub(super) fn read(raw: &RawColumn, rows: usize) -> Result<Self, SegmentError> {
        match raw.width(rows) {
            Some(1) => Ok(Self::U8(raw.values(rows)?)),
            Some(2) => Ok(Self::U16(raw.values(rows)?)),
            Some(4 | 8) => Ok(Self::U32(raw.values(rows)?)),
            _ => damaged(format!("the codes of column `{}` have no width", raw.meta.name)),
        }
    }

    #[inline]
    pub fn get(&self, row: usize) -> u32 {
        match self {
            Self::U8(codes) => codes[row].into(),
            Self::U16(codes) => codes[row].into(),
            Self::U32(codes) => codes[row],
        }
    }

    /// Marks the codes that are there.
    fn mark(&self, used: &mut [bool]) {
        fn mark<C: Copy + Into<u32>>(codes: &[C], used: &mut [bool]) {
            codes.iter().for_each(|&code| used[code.into() as usize] = true);
        }
        match self {
            Self::U8(codes) => mark(codes, used),
            Self::U16(codes) => mark(codes, used),
            Self::U32(codes) => mark(codes, used),
        }
    }
}

/// The narrowest integers that hold a column's values.
#[derive(Debug, Clone)]
pub enum Ints {
    I8(ScalarBuffer<i8>),
    I16(ScalarBuffer<i16>),
    I32(ScalarBuffer<i32>),
    I64(ScalarBuffer<i64>),
}

impl Ints {
    fn read(raw: &RawColumn, rows: usize) -> Result<Self, SegmentError> {
        match raw.width(rows) {
            Some(1) => Ok(Self::I8(raw.values(rows)?)),
            Some(2) => Ok(Self::I16(raw.values(rows)?)),
            Some(4) => Ok(Self::I32(raw.values(rows)?)),
            Some(8) => Ok(Self::I64(raw.values(rows)?)),
            _ => damaged(format!("the values of column `{}` have no width", raw.meta.name)),
        }
    }

    #[inline]
    pub fn get(&self, row: usize) -> i64 {
        match self {
            Self::I8(values) => values[row].into(),
            Self::I16(values) => values[row].into(),
            Self::I32(values) => values[row].into(),
            Self::I64(values) => values[row],
        }
    }
}

/// The weights of the rows.
#[derive(Debug, Clone)]
pub enum Weights {
    /// Every row has this one.
    All(f64),
    U8(ScalarBuffer<u8>),
    U16(ScalarBuffer<u16>),
    F64(ScalarBuffer<f64>),
}

impl Weights {
    #[inline]
    pub fn get(&self, row: usize) -> f64 {
        match self {
            Self::All(weight) => *weight,
            Self::U8(weights) => weights[row].into(),
            Self::U16(weights) => weights[row].into(),
            Self::F64(weights) => weights[row],
        }
    }
}

pub(super) fn read_weights(raw: &RawColumn, rows: usize) -> Result<Weights, SegmentError> {
    if raw.meta.kind != MetaKind::Weight {
        return damaged("it has no weight");
    }
    let range = raw.meta.range.as_ref();
    if let Some((least, most)) = range
        && least == most
        && let Ok(weight) = least.parse()
    {
        return Ok(Weights::All(weight));
    }
    match raw.width(rows) {
        Some(1) => Ok(Weights::U8(raw.values(rows)?)),
        Some(2) => Ok(Weights::U16(raw.values(rows)?)),
        Some(8) => Ok(Weights::F64(raw.values(rows)?)),
        _ => damaged("the weights have no width"),
    }
}

/// Distinct strings, sorted by their bytes; a string's code is its position.
#[derive(Debug, Clone)]
pub struct Strings {
    /// Places in `text`, the first of which is not 0 where other columns have theirs before it.
    offsets: ScalarBuffer<i32>,
    text: Buffer,
}

impl Strings {
    pub(super) fn new(offsets: ScalarBuffer<i32>, text: Buffer) -> Self {
        Self { offsets, text }
    }

    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a string; nothing for a code that is not of this dictionary, as that of null.
    pub fn bytes(&self, code: u32) -> &[u8] {
        let code = code as usize;
        let place = |at: usize| self.offsets.get(at).and_then(|&at| usize::try_from(at).ok());
        match (place(code), place(code + 1)) {
            (Some(start), Some(end)) => self.text.get(start..end).unwrap_or_default(),
            _ => &[],
        }
    }

    pub fn get(&self, code: u32) -> &str {
        // Written as UTF-8 and checked since; it costs nothing beside showing it.
        str::from_utf8(self.bytes(code)).unwrap_or_default()
    }

    /// Where each string begins in [`text`](Self::text), and where the last one ends.
    pub fn offsets(&self) -> impl Iterator<Item = usize> {
        let first = self.offsets.first().copied().unwrap_or(0);
        self.offsets.iter().map(move |offset| usize::try_from(offset - first).unwrap_or(0))
    }

    /// All strings, one after the other: a part of the segment's bytes.
    pub fn text(&self) -> Buffer {
        let start = self.offsets.first().and_then(|&first| usize::try_from(first).ok());
        let start = start.unwrap_or(0).min(self.text.len());
        self.text.slice(start)
    }

    /// In the order of their codes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|code| self.get(u32::try_from(code).unwrap_or(u32::MAX)))
    }

    /// The code of a string that is in the dictionary.
    pub fn code(&self, string: &[u8]) -> Option<u32> {
        let first = self.first_from(string);
        (self.bytes(first) == string && (first as usize) < self.len()).then_some(first)
    }

    /// The code of the first string that is not before this one; their number when all are.
    pub fn first_from(&self, string: &[u8]) -> u32 {
        let (mut low, mut high) = (0, u32::try_from(self.len()).unwrap_or(u32::MAX));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.bytes(middle) < string {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The values of a column.
#[derive(Debug, Clone)]
pub enum ColumnData {
    /// With 0 where they are null.
    Int {
        values: Ints,
        validity: Option<BooleanBuffer>,
    },
    /// With NaN where they are null; no other value is NaN.
    Float {
        values: ScalarBuffer<f64>,
    },
    String {
        codes: Codes,
        strings: Strings,
    },
    /// Ids of the segment's table of lists; null has the id after the last one.
    List {
        ids: Codes,
    },
}

/// What something in the dataset gave as numbers, the first time it was asked; for all that share
/// the column.
type Numbers<T> = OnceLock<(Arc<T>, Arc<[u32]>)>;

/// The values of a column as they lie in their file.
#[derive(Debug, Clone)]
pub enum Stored {
    /// One, or null, for every row.
    Dense(ColumnData),
    /// Those that are not null.
    Sparse(Sparse),
}

impl Stored {
    /// Of every row, or of those that have one.
    pub fn values(&self) -> &ColumnData {
        match self {
            Self::Dense(data) => data,
            Self::Sparse(sparse) => sparse.values(),
        }
    }

    /// Where the value of a row is among the values; `None` when it is null, and they have none for
    /// that.
    pub fn place(&self, row: usize) -> Option<usize> {
        match self {
            Self::Dense(_) => Some(row),
            Self::Sparse(sparse) => sparse.rows().binary_search(&u32::try_from(row).ok()?).ok(),
        }
    }
}

/// A named column of one kind.
#[derive(Debug, Clone)]
pub struct SegmentColumn {
    raw: RawColumn,
    kind: Kind,
    stored: Stored,
    /// The numbers of its strings, and whose they are.
    ids: Arc<Numbers<Vocabulary>>,
    /// Those of its lists, by the way that they are read.
    lists: Arc<[Numbers<SharedTrie>; 2]>,
    /// The lists that its rows have, the first time it was asked.
    lists_used: Arc<OnceLock<Arc<[u32]>>>,
    items_used: Arc<OnceLock<Arc<[u32]>>>,
}

impl SegmentColumn {
    pub(super) fn new(raw: RawColumn, stored: Stored) -> Result<Self, SegmentError> {
        let kind = match raw.meta.kind {
            MetaKind::Int => Kind::Int,
            MetaKind::Float => Kind::Float,
            MetaKind::String => Kind::String,
            MetaKind::Set => Kind::Set,
            MetaKind::Vector => Kind::Vector,
            MetaKind::Time | MetaKind::Weight | MetaKind::Items => return of_its_own_kind(&raw),
        };
        Ok(Self {
            raw,
            kind,
            stored,
            ids: Arc::default(),
            lists: Arc::default(),
            lists_used: Arc::default(),
            items_used: Arc::default(),
        })
    }

    /// Has it read from its file before it is touched for the first time.
    pub(super) fn set_read_ahead(&mut self, files: &PerFile<Arc<dyn ReadAhead>>) {
        self.raw.ahead = match &self.stored {
            Stored::Dense(_) => Some(Arc::clone(&files.rows)),
            Stored::Sparse(_) => files.sparse.clone(),
        };
    }

    pub fn name(&self) -> &str {
        &self.raw.meta.name
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.kind, Kind::Set | Kind::Vector)
    }

    /// Checks the column's bytes, the first time.
    pub fn check(&self) -> Result<(), SegmentError> {
        self.raw.check()
    }

    /// The values, once their checksum has been found right: one, or null, for every row. Those of
    /// a sparse column are laid out anew each time.
    pub fn data(&self) -> Result<ColumnData, SegmentError> {
        Ok(match self.stored()? {
            Stored::Dense(data) => data.clone(),
            Stored::Sparse(sparse) => sparse.spread(),
        })
    }

    /// How much memory [`data`](Self::data) takes: none where the values are read as they lie.
    pub fn made_bytes(&self) -> usize {
        match &self.stored {
            Stored::Dense(_) => 0,
            Stored::Sparse(sparse) => sparse.spread_bytes(),
        }
    }

    /// The values as they lie in their file, once their checksum has been found right.
    pub fn stored(&self) -> Result<&Stored, SegmentError> {
        self.check()?;
        Ok(&self.stored)
    }

    /// The dictionary of a column of strings; `None` for others.
    pub fn strings(&self) -> Result<Option<&Strings>, SegmentError> {
        match self.stored()?.values() {
            ColumnData::String { strings, .. } => Ok(Some(strings)),
            ColumnData::Int { .. } | ColumnData::Float { .. } | ColumnData::List { .. } => Ok(None),
        }
    }

    /// How many rows are null.
    pub fn nulls(&self) -> usize {
        self.raw.meta.nulls
    }

    /// The number of each code of a column of strings in the vocabulary of its dataset, and last
    /// that of null; `None` for other columns, and when the vocabulary has given up.
    pub fn ids(&self, vocabulary: &Arc<Vocabulary>) -> Result<Option<Arc<[u32]>>, SegmentError> {
        let Some(strings) = self.strings()? else { return Ok(None) };
        if let Some((whose, ids)) = self.ids.get()
            && Arc::ptr_eq(whose, vocabulary)
        {
            return Ok((!vocabulary.is_given_up()).then(|| Arc::clone(ids)));
        }
        let ids = vocabulary.ids(strings);
        if let Some(ids) = &ids {
            // Someone else may have been faster, with the same.
            let _same = self.ids.set((Arc::clone(vocabulary), Arc::clone(ids)));
        }
        Ok(ids)
    }

    /// The number of each list of the segment's table in a trie of its dataset, none for those that
    /// the column does not have, and last for null; `None` for other columns, and when the trie has
    /// given up.
    pub fn list_numbers(
        &self,
        lists: &ListTable,
        trie: &Arc<SharedTrie>,
    ) -> Result<Option<Arc<[u32]>>, SegmentError> {
        if !self.is_list() {
            return Ok(None);
        }
        let known = match trie.way() {
            Way::Forward => &self.lists[0],
            Way::Backward => &self.lists[1],
        };
        if let Some((whose, numbers)) = known.get()
            && Arc::ptr_eq(whose, trie)
        {
            return Ok((!trie.is_given_up()).then(|| Arc::clone(numbers)));
        }
        lists.check()?;
        let numbers = trie.numbers(lists, self.lists_used(lists)?);
        if let Some(numbers) = &numbers {
            // Someone else may have been faster, with the same.
            let _same = known.set((Arc::clone(trie), Arc::clone(numbers)));
        }
        Ok(numbers)
    }

    /// The ids of the lists of a column that its rows have, ascending, that of null included: the
    /// segment's table has those of all columns, so that tags are among far more stacks. None for
    /// other columns.
    pub fn lists_used(&self, lists: &ListTable) -> Result<&[u32], SegmentError> {
        let stored = self.stored()?;
        Ok(self.lists_used.get_or_init(|| {
            let mut used = vec![false; lists.len() + 1];
            if let ColumnData::List { ids } = stored.values() {
                ids.mark(&mut used);
                used[lists.len()] |= self.nulls() > 0;
            }
            positions(&used)
        }))
    }

    /// The codes of the items of a column's lists, ascending; the segment's table has those of all
    /// columns.
    pub fn items_used(&self, lists: &ListTable) -> Result<&[u32], SegmentError> {
        let used = self.lists_used(lists)?;
        Ok(self.items_used.get_or_init(|| {
            let mut is_used = vec![false; lists.items().len()];
            for &id in used.iter().filter(|&&id| (id as usize) < lists.len()) {
                lists.codes(id).for_each(|code| is_used[code as usize] = true);
            }
            positions(&is_used)
        }))
    }

    /// The smallest and the largest value of a column of integers that has any.
    pub fn int_range(&self) -> Option<(i64, i64)> {
        let (least, most) = self.raw.meta.range.as_ref()?;
        (self.kind == Kind::Int).then_some((least.parse().ok()?, most.parse().ok()?))
    }

    /// The smallest and the largest value of a column of numbers that has any.
    pub fn number_range(&self) -> Option<(f64, f64)> {
        let (least, most) = self.raw.meta.range.as_ref()?;
        match self.kind {
            Kind::Int | Kind::Float => Some((least.parse().ok()?, most.parse().ok()?)),
            Kind::String | Kind::Set | Kind::Vector => None,
        }
    }
}

/// Where it is true, ascending.
fn positions(of: &[bool]) -> Arc<[u32]> {
    (0..).zip(of).filter(|(_, is_true)| **is_true).map(|(position, _)| position).collect()
}

pub(super) fn of_its_own_kind<T>(raw: &RawColumn) -> Result<T, SegmentError> {
    damaged(format!("column `{}` is of a kind of its own", raw.meta.name))
}

/// Reads a column that has a value, or null, for every row.
pub(super) fn read_column(raw: RawColumn, rows: usize) -> Result<SegmentColumn, SegmentError> {
    let data = match raw.meta.kind {
        MetaKind::Int => {
            ColumnData::Int { values: Ints::read(&raw, rows)?, validity: raw.validity(rows)? }
        }
        MetaKind::Float => ColumnData::Float { values: raw.values(rows)? },
        MetaKind::String => {
            ColumnData::String { codes: Codes::read(&raw, rows)?, strings: raw.strings()? }
        }
        MetaKind::Set | MetaKind::Vector => ColumnData::List { ids: Codes::read(&raw, rows)? },
        MetaKind::Time | MetaKind::Weight | MetaKind::Items => return of_its_own_kind(&raw),
    };
    SegmentColumn::new(raw, Stored::Dense(data))
}
