//! The bytes of an Arrow IPC file: where the buffers of each column are.
//!
//! The Arrow reader would check every code and every text of a file when it opens it. Here only
//! headers are read; what columns hold is checked by their checksums when they are touched.

use std::ops::Range;
use std::sync::Arc;

use arrow::buffer::Buffer;
use arrow::ipc::{self, Message, MessageHeader};

use super::column::RawColumn;
use super::meta::{FileMeta, META_CRC_KEY, META_KEY, VERSION};
use super::{SegmentError, damaged, sparse};

const MAGIC: &[u8] = b"ARROW1";
/// Before the first message.
const PREFIX_BYTES: usize = 64;
const CONTINUATION: [u8; 4] = [0xff; 4];

/// One batch of an IPC file: the buffers of its columns, or of a dictionary.
#[derive(Debug)]
pub(super) struct Block {
    /// Of the dictionary that it holds.
    dictionary: Option<i64>,
    /// Where its buffers are in the file.
    buffers: Vec<Range<usize>>,
}

/// A field of the schema.
#[derive(Debug)]
struct MessageField {
    dictionary: Option<i64>,
    /// How many buffers it has in a batch: text has one more.
    buffers: usize,
}

/// What the messages of a file say.
#[derive(Debug)]
pub(super) struct Messages {
    /// In order, children after their parents.
    fields: Vec<MessageField>,
    blocks: Vec<Block>,
    pub(super) head_crc: u32,
}

impl Messages {
    /// Reads the headers of all messages, from the first to the end mark or the end.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, SegmentError> {
        if !bytes.starts_with(MAGIC) {
            return damaged("it does not begin like an Arrow file");
        }
        let mut messages = Self { fields: Vec::new(), blocks: Vec::new(), head_crc: 0 };
        let mut at = PREFIX_BYTES;
        while let Some(head) = next_head(bytes, at)? {
            let header = &bytes[head.clone()];
            messages.head_crc = crc32c::crc32c_append(messages.head_crc, header);
            let message = ipc::root_as_message(header)
                .map_err(|error| SegmentError::Damaged(format!("a header: {error}")))?;
            at = messages.add(&message, head.end, bytes.len())?;
        }
        Ok(messages)
    }

    /// Returns where the message ends.
    fn add(
        &mut self,
        message: &Message<'_>,
        body: usize,
        len: usize,
    ) -> Result<usize, SegmentError> {
        let end = usize::try_from(message.bodyLength()).ok().and_then(|n| body.checked_add(n));
        let Some(end) = end.filter(|&end| end <= len) else {
            return damaged("a part of it is cut off");
        };
        match message.header_type() {
            MessageHeader::Schema => {
                let fields = message.header_as_schema().and_then(|schema| schema.fields());
                for field in fields.into_iter().flatten() {
                    self.add_field(&field);
                }
            }
            MessageHeader::RecordBatch => {
                let buffers = buffers_of(message.header_as_record_batch(), body..end)?;
                self.blocks.push(Block { dictionary: None, buffers });
            }
            MessageHeader::DictionaryBatch => {
                let batch = message.header_as_dictionary_batch();
                let dictionary = batch.map(|batch| batch.id());
                let buffers = buffers_of(batch.and_then(|batch| batch.data()), body..end)?;
                self.blocks.push(Block { dictionary, buffers });
            }
            _ => return damaged("it has a message of an unknown kind"),
        }
        Ok(end)
    }

    fn add_field(&mut self, field: &ipc::Field<'_>) {
        let dictionary = field.dictionary().map(|dictionary| dictionary.id());
        let is_text = dictionary.is_none() && field.type_type() == ipc::Type::Utf8;
        self.fields.push(MessageField { dictionary, buffers: if is_text { 3 } else { 2 } });
        for child in field.children().into_iter().flatten() {
            self.add_field(&child);
        }
    }

    /// The buffers of each field: its own (validity, values or offsets, text), then its
    /// dictionary's three (validity, offsets, text).
    pub(super) fn buffers(&self) -> Result<Vec<Vec<Range<usize>>>, SegmentError> {
        let Some(batch) = self.blocks.iter().find(|block| block.dictionary.is_none()) else {
            return damaged("it has no rows");
        };
        let mut rest = &batch.buffers[..];
        let mut buffers = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let Some((own, after)) = rest.split_at_checked(field.buffers) else {
                return damaged("its columns are not those of its schema");
            };
            let of_dictionary = field.dictionary.map(|id| self.dictionary(id)).transpose()?;
            buffers.push([own, of_dictionary.unwrap_or_default()].concat());
            rest = after;
        }
        if rest.is_empty() {
            Ok(buffers)
        } else {
            damaged("its columns are not those of its schema")
        }
    }

    fn dictionary(&self, id: i64) -> Result<&[Range<usize>], SegmentError> {
        match self.blocks.iter().find(|block| block.dictionary == Some(id)) {
            Some(block) => Ok(&block.buffers),
            None => damaged("a dictionary is missing"),
        }
    }
}

/// Where the header of the message at `at` is; `None` at the end mark and at the end.
fn next_head(bytes: &[u8], at: usize) -> Result<Option<Range<usize>>, SegmentError> {
    if at == bytes.len() {
        return Ok(None);
    }
    let Some(prefix) = bytes.get(at..at + 8).filter(|prefix| prefix[..4] == CONTINUATION) else {
        return damaged("a message has no beginning");
    };
    let length = u32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]) as usize;
    if length == 0 {
        return Ok(None);
    }
    match at.checked_add(8 + length).filter(|&end| end <= bytes.len()) {
        Some(end) => Ok(Some(at + 8..end)),
        None => damaged("a header is cut off"),
    }
}

fn buffers_of(
    batch: Option<ipc::RecordBatch<'_>>,
    body: Range<usize>,
) -> Result<Vec<Range<usize>>, SegmentError> {
    let buffers = batch.and_then(|batch| batch.buffers());
    let place = |buffer: &ipc::Buffer| {
        let start = body.start.checked_add(usize::try_from(buffer.offset()).ok()?)?;
        let end = start.checked_add(usize::try_from(buffer.length()).ok()?)?;
        (end <= body.end).then_some(start..end)
    };
    let places: Option<Vec<_>> = buffers.into_iter().flatten().map(place).collect();
    places.map_or_else(|| damaged("a buffer is cut off"), Ok)
}

/// CRC32C over some ranges of a file, one after the other.
pub(super) fn crc_of(bytes: &[u8], ranges: &[Range<usize>]) -> u32 {
    ranges.iter().fold(0, |crc, range| crc32c::crc32c_append(crc, &bytes[range.clone()]))
}

/// An Arrow IPC file that perflab wrote.
#[derive(Debug)]
pub(super) struct Image<'a> {
    buffer: &'a Buffer,
    messages: Messages,
    pub(super) rows: usize,
    meta: FileMeta,
}

impl<'a> Image<'a> {
    pub(super) fn open(buffer: &'a Buffer) -> Result<Self, SegmentError> {
        let meta = read_meta(buffer)?;
        if meta.version != VERSION {
            return damaged(format!("its version is {}, not {VERSION}", meta.version));
        }
        let messages = Messages::read(buffer)?;
        if messages.head_crc != meta.head_crc {
            return damaged("the checksum of its headers is wrong");
        }
        Ok(Self { buffer, messages, rows: meta.rows, meta })
    }

    /// Its columns with their descriptions, in order.
    pub(super) fn columns(&self) -> Result<Vec<RawColumn>, SegmentError> {
        self.described(self.messages.buffers()?)
    }

    /// How many columns are in the file of sparse ones beside it.
    pub(super) fn sparse(&self) -> usize {
        self.meta.sparse
    }

    /// The sparse columns that are its rows, with their descriptions, in order.
    pub(super) fn sparse_columns(&self) -> Result<Vec<RawColumn>, SegmentError> {
        self.described(sparse::parts(self.buffer, &self.messages, self.rows)?)
    }

    fn described(&self, parts: Vec<Vec<Range<usize>>>) -> Result<Vec<RawColumn>, SegmentError> {
        if parts.len() != self.meta.columns.len() {
            return damaged("it does not describe its columns");
        }
        let described = self.meta.columns.iter().zip(parts);
        Ok(described
            .map(|(meta, ranges)| RawColumn {
                meta: meta.clone(),
                file: self.buffer.clone(),
                ranges,
                is_sound: Arc::default(),
                ahead: None,
            })
            .collect())
    }
}

/// The description in the footer.
fn read_meta(bytes: &[u8]) -> Result<FileMeta, SegmentError> {
    let footer = footer_of(bytes)
        .ok_or_else(|| SegmentError::Damaged("it does not end like an Arrow file".to_owned()))?;
    let footer = ipc::root_as_footer(footer)
        .map_err(|error| SegmentError::Damaged(format!("the footer: {error}")))?;
    let find = |key: &str| {
        let mut pairs = footer.custom_metadata().into_iter().flatten();
        pairs.find(|pair| pair.key() == Some(key)).and_then(|pair| pair.value())
    };
    let (Some(meta), Some(crc)) = (find(META_KEY), find(META_CRC_KEY)) else {
        return damaged("it is no file of perflab's");
    };
    if crc.parse() != Ok(crc32c::crc32c(meta.as_bytes())) {
        return damaged("the checksum of its description is wrong");
    }
    serde_json::from_str(meta)
        .map_err(|error| SegmentError::Damaged(format!("its description: {error}")))
}

fn footer_of(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_suffix(MAGIC)?;
    let (rest, length) = rest.split_last_chunk::<4>()?;
    let length = usize::try_from(i32::from_le_bytes(*length)).ok()?;
    rest.get(rest.len().checked_sub(length)?..)
}
