//! A segment as Parquet.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, DictionaryArray, Float64Array, Int64Array, ListArray, StringArray,
    TimestampNanosecondArray, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit, UInt32Type};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use perflab_model::Kind;

use super::{Described, Description, META_KEY, VERSION};
use crate::segment::file::field_name;
use crate::segment::meta::MetaKind;
use crate::segment::{Codes, ColumnData, ListTable, Segment, SegmentColumn, SegmentError, Strings};

/// So many rows are one row group, which readers skip as a whole.
const ROW_GROUP_ROWS: usize = 256 << 10;

/// A segment as Parquet.
#[derive(Debug)]
pub struct Cooled {
    pub rows: Vec<u8>,
    /// Where it has columns of lists.
    pub lists: Option<Vec<u8>>,
}

/// Encodes a segment as Parquet.
pub fn cool(segment: &Segment) -> Result<Cooled, SegmentError> {
    let (times, weights) = (segment.times()?, segment.weights()?);
    let mut table = Table::default();
    table.add(("time", MetaKind::Time), time_type(), false, move |rows| {
        let times = TimestampNanosecondArray::from(times[rows].to_vec());
        Ok(Arc::new(times.with_timezone("UTC")))
    });
    table.add(("weight", MetaKind::Weight), DataType::Float64, false, move |rows| {
        let weights = rows.map(|row| weights.get(row));
        Ok(Arc::new(Float64Array::from_iter_values(weights)))
    });
    for column in segment.columns() {
        let (kind, data_type) = cooled_kind(column.kind());
        let array = |rows| cooled_column(segment, column, rows);
        table.add((column.name(), kind), data_type, column.nulls() > 0, array);
    }
    let lists = segment.lists().map(cool_lists).transpose()?;
    Ok(Cooled { rows: table.write(segment.rows())?, lists })
}

/// One type for each kind, whatever a segment holds: files can be read together.
fn cooled_kind(kind: Kind) -> (MetaKind, DataType) {
    match kind {
        Kind::Int => (MetaKind::Int, DataType::Int64),
        Kind::Float => (MetaKind::Float, DataType::Float64),
        Kind::String => (MetaKind::String, coded_type()),
        Kind::Set => (MetaKind::Set, DataType::UInt32),
        Kind::Vector => (MetaKind::Vector, DataType::UInt32),
    }
}

fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

fn coded_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

/// Some rows of a column.
fn cooled_column(
    segment: &Segment,
    column: &SegmentColumn,
    rows: Range<usize>,
) -> Result<ArrayRef, SegmentError> {
    Ok(match column.data()? {
        ColumnData::Int { values, validity } => {
            let is_valid = |row: usize| validity.as_ref().is_none_or(|valid| valid.value(row));
            let values = rows.map(|row| is_valid(row).then(|| values.get(row)));
            Arc::new(values.collect::<Int64Array>())
        }
        ColumnData::Float { values } => {
            let values = values[rows].iter().map(|value| (!value.is_nan()).then_some(*value));
            Arc::new(values.collect::<Float64Array>())
        }
        ColumnData::String { codes, strings } => {
            coded(cooled_codes(&codes, rows, strings.len()), &strings)?
        }
        ColumnData::List { ids } => {
            let lists = segment.lists().map_or(0, ListTable::len);
            Arc::new(cooled_codes(&ids, rows, lists))
        }
    })
}

fn cooled_codes(codes: &Codes, rows: Range<usize>, distinct: usize) -> UInt32Array {
    let codes = rows.map(|row| codes.get(row));
    codes.map(|code| ((code as usize) < distinct).then_some(code)).collect()
}

fn coded(keys: UInt32Array, strings: &Strings) -> Result<ArrayRef, SegmentError> {
    let strings = Arc::new(StringArray::from_iter_values(strings.iter()));
    Ok(Arc::new(DictionaryArray::<UInt32Type>::try_new(keys, strings)?))
}

fn cool_lists(lists: &ListTable) -> Result<Vec<u8>, SegmentError> {
    lists.check()?;
    let ids = (0_u32..).take(lists.len());
    let codes: UInt32Array = ids.clone().flat_map(|id| lists.codes(id)).map(Some).collect();
    let items = coded(codes, lists.items())?;
    let offsets = OffsetBuffer::from_lengths(ids.clone().map(|id| lists.codes(id).len()));
    let field = Arc::new(Field::new("item", items.data_type().clone(), false));
    let ids = UInt32Array::from_iter_values(ids);
    let items = ListArray::new(field, offsets, items, None);
    let mut table = Table::default();
    table.add(("id", MetaKind::Int), DataType::UInt32, false, |rows| {
        Ok(Arc::new(ids.slice(rows.start, rows.len())))
    });
    table.add(("items", MetaKind::Items), items.data_type().clone(), false, |rows| {
        Ok(Arc::new(items.slice(rows.start, rows.len())))
    });
    table.write(lists.len())
}

/// Makes some rows of a column.
type MakeArray<'t> = Box<dyn Fn(Range<usize>) -> Result<ArrayRef, SegmentError> + 't>;

/// The columns of a file, each of which is made when it is written: all of them together may be
/// far more than the segment, where columns are sparse.
#[derive(Default)]
struct Table<'t> {
    taken: HashSet<String>,
    fields: Vec<Field>,
    arrays: Vec<MakeArray<'t>>,
    described: Vec<Described>,
}

impl<'t> Table<'t> {
    fn add(
        &mut self,
        (name, kind): (&str, MetaKind),
        data_type: DataType,
        is_nullable: bool,
        array: impl Fn(Range<usize>) -> Result<ArrayRef, SegmentError> + 't,
    ) {
        let field = field_name(name, kind, &mut self.taken);
        self.fields.push(Field::new(field, data_type, is_nullable));
        self.arrays.push(Box::new(array));
        self.described.push(Described { name: name.to_owned(), kind });
    }

    /// The file. Its first column ascends.
    fn write(self, rows: usize) -> Result<Vec<u8>, SegmentError> {
        let Self { fields, arrays, described, .. } = self;
        let first = ColumnPath::from(fields[0].name().as_str());
        let schema = Arc::new(Schema::new(fields));
        let description = Description { version: VERSION, columns: described };
        let properties = properties(&description)
            // Small differences take less than numbers that are all different.
            .set_column_dictionary_enabled(first.clone(), false)
            .set_column_encoding(first, Encoding::DELTA_BINARY_PACKED)
            .build();
        // Without Arrow's own description: to readers, strings are strings and no dictionaries.
        let options =
            ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(&schema), options)?;
        let (mut file, columns) = writer.into_serialized_writer()?;
        for (number, start) in (0..rows).step_by(ROW_GROUP_ROWS).enumerate() {
            let rows = start..rows.min(start + ROW_GROUP_ROWS);
            let mut group = file.next_row_group()?;
            let writers = columns.create_column_writers(number)?;
            for ((mut writer, array), field) in writers.into_iter().zip(&arrays).zip(&schema.fields)
            {
                for leaf in compute_leaves(field, &array(rows.clone())?)? {
                    writer.write(&leaf)?;
                }
                writer.close()?.append_to_row_group(&mut group)?;
            }
            group.close()?;
        }
        Ok(file.into_inner()?)
    }
}

fn properties(description: &Description) -> WriterPropertiesBuilder {
    let description = serde_json::to_string(description).expect("names and kinds are always JSON");
    let ascending = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
    WriterProperties::builder()
        // More of it takes more time and hardly less space.
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_sorting_columns(Some(vec![ascending]))
        .set_key_value_metadata(Some(vec![KeyValue::new(META_KEY.to_owned(), description)]))
}
