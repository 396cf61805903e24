//! A segment as Parquet.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, DictionaryArray, Float64Array, Int64Array, ListArray, RecordBatch,
    RecordBatchOptions, StringArray, TimestampNanosecondArray, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Field, Schema, UInt32Type};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
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
    let times = TimestampNanosecondArray::from(segment.times()?.to_vec()).with_timezone("UTC");
    let weights = segment.weights()?;
    let weights = (0..segment.rows()).map(|row| weights.get(row));
    let mut table = Columns::default();
    table.add("time", MetaKind::Time, Arc::new(times));
    table.add("weight", MetaKind::Weight, Arc::new(Float64Array::from_iter_values(weights)));
    for column in segment.columns() {
        let (kind, array) = cooled_column(segment, column)?;
        table.add(column.name(), kind, array);
    }
    let lists = segment.lists().map(cool_lists).transpose()?;
    Ok(Cooled { rows: table.write(segment.rows())?, lists })
}

/// Of one type for each kind, whatever a segment holds: files can be read together.
fn cooled_column(
    segment: &Segment,
    column: &SegmentColumn,
) -> Result<(MetaKind, ArrayRef), SegmentError> {
    let rows = 0..segment.rows();
    Ok(match column.data()? {
        ColumnData::Int { values, validity } => {
            let is_valid = |row: usize| validity.as_ref().is_none_or(|valid| valid.value(row));
            let values = rows.map(|row| is_valid(row).then(|| values.get(row)));
            (MetaKind::Int, Arc::new(values.collect::<Int64Array>()))
        }
        ColumnData::Float { values } => {
            let values = values.iter().map(|value| (!value.is_nan()).then_some(*value));
            (MetaKind::Float, Arc::new(values.collect::<Float64Array>()))
        }
        ColumnData::String { codes, strings } => {
            let keys = cooled_codes(codes, segment.rows(), strings.len());
            (MetaKind::String, coded(keys, strings)?)
        }
        ColumnData::List { ids } => {
            let lists = segment.lists().map_or(0, ListTable::len);
            let kind = if column.kind() == Kind::Set { MetaKind::Set } else { MetaKind::Vector };
            (kind, Arc::new(cooled_codes(ids, segment.rows(), lists)))
        }
    })
}

fn cooled_codes(codes: &Codes, rows: usize, distinct: usize) -> UInt32Array {
    let codes = (0..rows).map(|row| codes.get(row));
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
    let mut table = Columns::default();
    table.add("id", MetaKind::Int, Arc::new(UInt32Array::from_iter_values(ids)));
    table.add("items", MetaKind::Items, Arc::new(ListArray::new(field, offsets, items, None)));
    table.write(lists.len())
}

/// The columns of a file.
#[derive(Default)]
struct Columns {
    taken: HashSet<String>,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
    described: Vec<Described>,
}

impl Columns {
    fn add(&mut self, name: &str, kind: MetaKind, array: ArrayRef) {
        let field = field_name(name, kind, &mut self.taken);
        self.fields.push(Field::new(field, array.data_type().clone(), array.null_count() > 0));
        self.arrays.push(array);
        self.described.push(Described { name: name.to_owned(), kind });
    }

    /// The file. Its first column ascends.
    fn write(self, rows: usize) -> Result<Vec<u8>, SegmentError> {
        let Self { fields, arrays, described, .. } = self;
        let first = ColumnPath::from(fields[0].name().as_str());
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
        let description = Description { version: VERSION, columns: described };
        let properties = properties(&description)
            // Small differences take less than numbers that are all different.
            .set_column_dictionary_enabled(first.clone(), false)
            .set_column_encoding(first, Encoding::DELTA_BINARY_PACKED)
            .build();
        // Without Arrow's own description: to readers, strings are strings and no dictionaries.
        let options =
            ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(Vec::new(), schema, options)?;
        writer.write(&batch)?;
        Ok(writer.into_inner()?)
    }
}

fn properties(description: &Description) -> WriterPropertiesBuilder {
    let description = serde_json::to_string(description).expect("names and kinds are always JSON");
    let ascending = SortingColumn { column_idx: 0, descending: false, nulls_first: false };
    WriterProperties::builder()
        // More of it takes more time and hardly less space.
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_sorting_columns(Some(vec![ascending]))
        .set_key_value_metadata(Some(vec![KeyValue::new(META_KEY.to_owned(), description)]))
}
