//! Writing the Arrow IPC file of a segment, with its description and checksums in the footer.

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::Deref;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, ListArray, RecordBatch, RecordBatchOptions, make_array,
};
use arrow::buffer::{Buffer, MutableBuffer, OffsetBuffer};
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::FileWriter;

use super::image::{Messages, crc_of};
use super::meta::{ColumnMeta, FileMeta, META_CRC_KEY, META_KEY, MetaKind, VERSION};
use super::{Built, PerFile, SegmentError, sparse};

/// A column that is ready to be written.
#[derive(Debug)]
pub(super) struct Encoded {
    array: ArrayRef,
    /// Of the column, and of what is in it.
    metas: Vec<ColumnMeta>,
}

impl Encoded {
    pub(super) fn new(
        name: &str,
        kind: MetaKind,
        array: ArrayRef,
        range: Option<(String, String)>,
    ) -> Self {
        let nulls = array.null_count();
        let meta = ColumnMeta { name: name.to_owned(), kind, nulls, crc: 0, range };
        Self { array, metas: vec![meta] }
    }

    /// Describes the one column inside this one.
    pub(super) fn with_child(mut self, name: &str, kind: MetaKind) -> Self {
        let name = name.to_owned();
        self.metas.push(ColumnMeta { name, kind, nulls: 0, crc: 0, range: None });
        self
    }

    /// With its buffers on the shelf, if there is one.
    pub(super) fn shelved(self, shelf: Option<&dyn Shelf>) -> Result<Self, SegmentError> {
        let Some(shelf) = shelf else { return Ok(self) };
        let Self { array, metas } = self;
        let data = array.to_data();
        drop(array);
        Ok(Self { array: make_array(shelved(data, shelf)?), metas })
    }

    fn field(&self, taken: &mut HashSet<String>) -> Field {
        let meta = &self.metas[0];
        let name = field_name(&meta.name, meta.kind, taken);
        Field::new(name, self.array.data_type().clone(), meta.nulls > 0)
    }
}

fn shelved(data: ArrayData, shelf: &dyn Shelf) -> Result<ArrayData, SegmentError> {
    let keep = |buffer: &Buffer| shelf.keep(buffer);
    let buffers = data.buffers().iter().map(keep).collect::<io::Result<_>>()?;
    let children = data.child_data().iter().map(|child| shelved(child.clone(), shelf));
    let children = children.collect::<Result<_, _>>()?;
    Ok(data.into_builder().buffers(buffers).child_data(children).build()?)
}

/// Two columns of one name and different kinds are told apart by their kinds.
pub(super) fn field_name(name: &str, kind: MetaKind, taken: &mut HashSet<String>) -> String {
    let mut name = name.to_owned();
    while !taken.insert(name.clone()) {
        name.push_str(match kind {
            MetaKind::Float => ":float",
            MetaKind::String => ":string",
            MetaKind::Set => ":set",
            MetaKind::Vector => ":vector",
            MetaKind::Int | MetaKind::Time | MetaKind::Weight | MetaKind::Items => ":int",
        });
    }
    name
}

/// Where the buffers of columns wait until all columns are there and the file can be written.
pub(crate) trait Shelf {
    /// The same bytes, now there.
    fn keep(&self, buffer: &Buffer) -> io::Result<Buffer>;
}

/// Where a file is written to.
pub(crate) trait Output: Write {
    /// All that was written so far.
    fn written(&self) -> io::Result<impl Deref<Target = [u8]> + '_>;
}

/// A file that is ready to be written.
#[derive(Debug, PartialEq)]
pub(crate) struct Sheet {
    /// Of the table in the file.
    rows: usize,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
    /// Of what the file describes.
    metas: Vec<ColumnMeta>,
    form: Form,
}

/// What a file describes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    /// Its fields, children after their parents; beside it, a file of so many sparse columns.
    Fields { sparse: usize },
    /// Its rows, each of which is a sparse column.
    Sparse,
}

impl Sheet {
    pub(super) fn new(rows: usize, columns: Vec<Encoded>) -> Self {
        let mut taken = HashSet::new();
        let fields = columns.iter().map(|column| column.field(&mut taken)).collect();
        let (arrays, metas): (Vec<_>, Vec<_>) =
            columns.into_iter().map(|column| (column.array, column.metas)).unzip();
        Self { rows, fields, arrays, metas: metas.concat(), form: Form::Fields { sparse: 0 } }
    }

    /// Beside a file of sparse columns, if there is one.
    pub(super) fn beside(self, sparse: Option<&Self>) -> Self {
        Self { form: Form::Fields { sparse: sparse.map_or(0, |sparse| sparse.rows) }, ..self }
    }

    /// Of sparse columns, each of which is a row of this table.
    pub(super) fn sparse(table: Vec<(&str, ArrayRef)>, metas: Vec<ColumnMeta>) -> Self {
        let field =
            |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), false);
        let fields = table.iter().map(field).collect();
        let arrays = table.into_iter().map(|(_, array)| array).collect();
        Self { rows: metas.len(), fields, arrays, metas, form: Form::Sparse }
    }

    /// Writes the file.
    pub(crate) fn write<O: Output>(self, output: O) -> Result<O, SegmentError> {
        let Self { rows, fields, arrays, metas, form } = self;
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
        let mut writer = FileWriter::try_new_buffered(output, &schema)?;
        writer.write(&batch)?;
        writer.flush()?;
        drop(batch);
        let description = describe(&writer.get_ref().get_ref().written()?, rows, metas, form)?;
        writer.write_metadata(META_CRC_KEY, crc32c::crc32c(description.as_bytes()).to_string());
        writer.write_metadata(META_KEY, description);
        writer.finish()?;
        Ok(writer.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?)
    }

    /// The bytes of the file.
    pub(super) fn into_bytes(self) -> Result<Buffer, SegmentError> {
        Ok(self.write(Aligned(MutableBuffer::new(0)))?.0.into())
    }
}

/// The files of a segment, ready to be written.
pub(crate) type Sheets = PerFile<Sheet>;

impl Sheets {
    pub(crate) fn into_bytes(self) -> Result<Built, SegmentError> {
        self.try_map(|_, sheet| sheet.into_bytes())
    }
}

/// What was written so far has no footer yet: this goes there.
fn describe(
    bytes: &[u8],
    rows: usize,
    mut columns: Vec<ColumnMeta>,
    form: Form,
) -> Result<String, SegmentError> {
    let messages = Messages::read(bytes)?;
    let (parts, sparse) = match form {
        Form::Fields { sparse } => (messages.buffers()?, sparse),
        Form::Sparse => (sparse::parts(bytes, &messages, rows)?, 0),
    };
    for (column, ranges) in columns.iter_mut().zip(parts) {
        column.crc = crc_of(bytes, &ranges);
    }
    let head_crc = messages.head_crc;
    let meta = FileMeta { version: VERSION, rows, head_crc, sparse, columns };
    Ok(serde_json::to_string(&meta).expect("names and numbers are always JSON"))
}

/// Lists of items up to each of `ends`.
pub(super) fn list_array(
    ends: impl IntoIterator<Item = usize>,
    items: ArrayRef,
) -> Result<ArrayRef, SegmentError> {
    let starts = std::iter::once(0).chain(ends);
    let offsets: Option<Vec<i32>> = starts.map(|end| i32::try_from(end).ok()).collect();
    let offsets = OffsetBuffer::new(offsets.ok_or(SegmentError::TooMuchText)?.into());
    let field = Arc::new(Field::new("item", items.data_type().clone(), false));
    Ok(Arc::new(ListArray::try_new(field, offsets, items, None)?))
}

/// Bytes that begin at an address at which any value may begin.
struct Aligned(MutableBuffer);

impl Output for Aligned {
    fn written(&self) -> io::Result<impl Deref<Target = [u8]> + '_> {
        Ok(&self.0[..])
    }
}

impl Write for Aligned {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
