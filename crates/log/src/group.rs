//! A group: consecutive records of one category and one producer, the unit of appending.
//!
//! ```text
//! group   = body bytes u32 · first sequence u64 · arrival ns i64 · records u32
//!           · category str · producer str (empty: no producer) · record…
//! record  = payload bytes u32 · [producer's sequence u64, if there is a producer] · payload
//! str     = bytes u16 · UTF-8
//! ```
//!
//! The writer of a group knows everything but the sequence, which the committer fills in, so
//! that encoding is done in the threads of the appenders and not in the one that commits.

use crate::bytes::{Cursor, Put};

/// The largest payload of one record.
pub const RECORD_BYTES_MAX: usize = 16 << 20;
/// The longest category or producer name.
pub const NAME_BYTES_MAX: usize = 255;
/// The largest encoded group. A group is closed before it grows past [`GROUP_BYTES_TARGET`], so
/// only a single large record comes near this.
pub const GROUP_BYTES_MAX: usize = RECORD_BYTES_MAX + (64 << 10);
/// Past this many bytes, further records belong in another group.
pub const GROUP_BYTES_TARGET: usize = 1 << 20;

const FIRST_SEQ_AT: usize = 4;
const COUNT_AT: usize = 20;

/// Why a record does not fit into a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    #[error("record of {bytes} bytes is larger than the limit of {RECORD_BYTES_MAX} bytes")]
    RecordTooLarge { bytes: usize },
    #[error("name of {bytes} bytes is longer than the limit of {NAME_BYTES_MAX} bytes")]
    NameTooLong { bytes: usize },
}

/// Records on their way into the log, already encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    bytes: Vec<u8>,
    count: u32,
    keyed: bool,
    /// Not encoded: the window wants it when the group is appended, and nobody later.
    appended_ns: i64,
}

impl Group {
    /// An empty group of records that arrived at `arrival_ns` (unix time).
    pub fn new(category: &str, arrival_ns: i64) -> Result<Self, GroupError> {
        Self::encode_header(category, "", arrival_ns)
    }

    /// An empty group whose records each carry `producer`'s own sequence number, by which a
    /// repeated append is recognised.
    pub fn with_producer(
        category: &str,
        producer: &str,
        arrival_ns: i64,
    ) -> Result<Self, GroupError> {
        Self::encode_header(category, producer, arrival_ns)
    }

    fn encode_header(category: &str, producer: &str, arrival_ns: i64) -> Result<Self, GroupError> {
        for name in [category, producer] {
            if name.len() > NAME_BYTES_MAX {
                return Err(GroupError::NameTooLong { bytes: name.len() });
            }
        }
        let mut bytes = Vec::with_capacity(256);
        bytes.put_u32(0);
        bytes.put_u64(0);
        bytes.put_i64(arrival_ns);
        bytes.put_u32(0);
        bytes.put_str(category);
        bytes.put_str(producer);
        Ok(Self { bytes, count: 0, keyed: !producer.is_empty(), appended_ns: arrival_ns })
    }

    /// Says what time it is now, from which the age of the records' keys is counted. Without this
    /// it is the time of arrival.
    pub fn set_appended(&mut self, now_ns: i64) {
        self.appended_ns = now_ns;
    }

    pub(crate) fn appended_ns(&self) -> i64 {
        self.appended_ns
    }

    /// Makes room for `bytes` more bytes of records.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Adds a record whose payload is `parts`, one after the other.
    ///
    /// `producer_seq` is kept only in a group made by [`Group::with_producer`].
    pub fn push(&mut self, producer_seq: u64, parts: &[&[u8]]) -> Result<(), GroupError> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        let len = match u32::try_from(bytes) {
            Ok(len) if bytes <= RECORD_BYTES_MAX => len,
            _ => return Err(GroupError::RecordTooLarge { bytes }),
        };
        self.bytes.put_u32(len);
        if self.keyed {
            self.bytes.put_u64(producer_seq);
        }
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.count += 1;
        Ok(())
    }

    /// How many records the group holds.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether the group holds no record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the group has reached the size at which the next record belongs in another one.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= GROUP_BYTES_TARGET
    }

    /// Encoded size in bytes.
    pub fn encoded_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the records carry their producer's sequence numbers.
    pub fn is_keyed(&self) -> bool {
        self.keyed
    }

    /// The same group without its records.
    pub(crate) fn emptied(&self) -> Self {
        let records = self.view().records.len();
        let mut bytes = self.bytes.clone();
        bytes.truncate(self.bytes.len() - records);
        Self { bytes, count: 0, ..*self }
    }

    /// The group as a reader would see it.
    pub(crate) fn view(&self) -> GroupView<'_> {
        GroupView::decode_body(&self.bytes[4..], self.count)
            .expect("a group that was just encoded decodes")
    }

    /// Appends the encoded group to a frame's body, with its first sequence filled in.
    pub(crate) fn write_to(&self, body: &mut Vec<u8>, first_seq: u64) {
        let start = body.len();
        body.extend_from_slice(&self.bytes);
        let len = u32::try_from(self.bytes.len() - 4).expect("limited by GROUP_BYTES_MAX");
        body[start..start + FIRST_SEQ_AT].copy_from_slice(&len.to_le_bytes());
        body[start + FIRST_SEQ_AT..start + FIRST_SEQ_AT + 8]
            .copy_from_slice(&first_seq.to_le_bytes());
        body[start + COUNT_AT..start + COUNT_AT + 4].copy_from_slice(&self.count.to_le_bytes());
    }
}

/// A group inside a frame that was read.
#[derive(Debug, Clone, Copy)]
pub struct GroupView<'a> {
    /// Sequence of the first record; the others follow without gaps.
    pub first_seq: u64,
    /// When the records arrived, unix time.
    pub arrival_ns: i64,
    /// How many records there are.
    pub count: u32,
    /// The stream they belong to.
    pub category: &'a str,
    /// Who numbered them, or empty.
    pub producer: &'a str,
    records: &'a [u8],
    encoded: &'a [u8],
}

impl<'a> GroupView<'a> {
    /// Takes the first group off a frame's body; `None` when the bytes are no group.
    pub(crate) fn take(body: &mut Cursor<'a>) -> Option<Self> {
        let len = body.take_u32()?;
        let encoded = body.take(len as usize)?;
        Self::decode_body(encoded, u32::MAX)
    }

    /// `count` stands in for the encoded one while a group is still being built.
    fn decode_body(encoded: &'a [u8], count: u32) -> Option<Self> {
        let mut rest = Cursor(encoded);
        let first_seq = rest.take_u64()?;
        let arrival_ns = rest.take_i64()?;
        let encoded_count = rest.take_u32()?;
        let category = rest.take_str()?;
        let producer = rest.take_str()?;
        let count = if count == u32::MAX { encoded_count } else { count };
        let view =
            Self { first_seq, arrival_ns, count, category, producer, records: rest.0, encoded };
        view.is_well_formed().then_some(view)
    }

    /// Every record lies inside the group, and nothing is left over.
    fn is_well_formed(&self) -> bool {
        let mut rest = Cursor(self.records);
        let mut left = self.count;
        while left > 0 {
            if Self::take_record(&mut rest, self.is_keyed()).is_none() {
                return false;
            }
            left -= 1;
        }
        rest.is_empty() && self.first_seq.checked_add(u64::from(self.count)).is_some()
    }

    fn take_record(rest: &mut Cursor<'a>, keyed: bool) -> Option<(u64, &'a [u8])> {
        let len = rest.take_u32()?;
        let key = if keyed { rest.take_u64()? } else { 0 };
        Some((key, rest.take(len as usize)?))
    }

    /// Whether the records carry their producer's sequence numbers.
    pub fn is_keyed(&self) -> bool {
        !self.producer.is_empty()
    }

    /// The sequence after the last record.
    pub fn end_seq(&self) -> u64 {
        self.first_seq + u64::from(self.count)
    }

    /// Encoded size in bytes, which is what retention counts.
    pub fn encoded_bytes(&self) -> u64 {
        self.encoded.len() as u64 + 4
    }

    /// The records in order.
    pub fn records(&self) -> impl Iterator<Item = RecordView<'a>> + use<'a> {
        let keyed = self.is_keyed();
        let mut rest = Cursor(self.records);
        (self.first_seq..self.end_seq()).map_while(move |seq| {
            let (key, payload) = Self::take_record(&mut rest, keyed)?;
            Some(RecordView { seq, producer_seq: keyed.then_some(key), payload })
        })
    }

    /// Appends the group, unchanged, to another frame's body.
    pub(crate) fn copy_to(&self, body: &mut Vec<u8>) {
        body.put_u32(u32::try_from(self.encoded.len()).expect("limited by GROUP_BYTES_MAX"));
        body.extend_from_slice(self.encoded);
    }
}

/// One record as it was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Its place in the log.
    pub seq: u64,
    /// Its producer's own number for it.
    pub producer_seq: Option<u64>,
    /// The bytes that were appended.
    pub payload: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes() {
        let mut group = Group::with_producer("a/b", "ci-7", 42).unwrap();
        group.push(5, &[b"x", b"yz"]).unwrap();
        group.push(9, &[b""]).unwrap();
        let mut body = Vec::new();
        group.write_to(&mut body, 100);
        let view = GroupView::take(&mut Cursor(&body)).unwrap();
        assert_eq!((view.category, view.producer, view.arrival_ns), ("a/b", "ci-7", 42));
        let records: Vec<_> = view.records().collect();
        assert_eq!(records[0].seq, 100);
        assert_eq!(records[0].producer_seq, Some(5));
        assert_eq!(records[0].payload, b"xyz");
        assert_eq!(records[1].seq, 101);
        assert_eq!(records[1].payload, b"");
        assert_eq!(records.len(), 2);
    }

    #[test]
    fn a_cut_or_padded_group_is_no_group() {
        let mut group = Group::new("c", 1).unwrap();
        group.push(0, &[b"payload"]).unwrap();
        let mut body = Vec::new();
        group.write_to(&mut body, 0);
        for len in 0..body.len() {
            assert!(GroupView::take(&mut Cursor(&body[..len])).is_none(), "cut at {len}");
        }
        body.push(0);
        let len = u32::try_from(body.len() - 4).unwrap();
        body[..4].copy_from_slice(&len.to_le_bytes());
        assert!(GroupView::take(&mut Cursor(&body)).is_none(), "padded");
    }
}
