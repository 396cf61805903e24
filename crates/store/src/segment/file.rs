//! Writing the Arrow IPC file of a segment, with its description and checksums in the footer.

use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::Deref;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow::buffer::{Buffer, MutableBuffer};
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::FileWriter;

use super::SegmentError;
use super::image::{Messages, crc_of};
use super::meta::{ColumnMeta, FileMeta, META_CRC_KEY, META_KEY, MetaKind, VERSION};

/// A column that is ready to be written.
#[derive(Debug)]
pub(super) struct Encoded {
    array: ArrayRef,
    /// Of the column, and of what is in it.
    metas: Vec<ColumnMeta>,
}

// The macro would move arrays, which are behind pointers.
impl PartialEq for Encoded {
    fn eq(&self, other: &Self) -> bool {
        self.metas == other.metas && *self.array == *other.array
    }
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
    rows: usize,
    columns: Vec<Encoded>,
}

impl Sheet {
    pub(super) fn new(rows: usize, columns: Vec<Encoded>) -> Self {
        Self { rows, columns }
    }

    /// Writes the file.
    pub(crate) fn write<O: Output>(self, output: O) -> Result<O, SegmentError> {
        let Self { rows, columns } = self;
        let mut taken = HashSet::new();
        let fields: Vec<Field> = columns.iter().map(|column| column.field(&mut taken)).collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays = columns.iter().map(|column| Arc::clone(&column.array)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
        let mut writer = FileWriter::try_new_buffered(output, &schema)?;
        writer.write(&batch)?;
        writer.flush()?;
        let metas = columns.into_iter().flat_map(|column| column.metas).collect();
        let description = describe(&writer.get_ref().get_ref().written()?, rows, metas)?;
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

/// What was written so far has no footer yet: this goes there.
fn describe(
    bytes: &[u8],
    rows: usize,
    mut columns: Vec<ColumnMeta>,
) -> Result<String, SegmentError> {
    let messages = Messages::read(bytes)?;
    for (column, ranges) in columns.iter_mut().zip(messages.buffers()?) {
        column.crc = crc_of(bytes, &ranges);
    }
    let meta = FileMeta { version: VERSION, rows, head_crc: messages.head_crc, columns };
    Ok(serde_json::to_string(&meta).expect("names and numbers are always JSON"))
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
