//! The outer struct, in Thrift's binary protocol.

use super::cursor::Cursor;
use super::{THRIFT_DEPTH_MAX, ThriftError};
use perflab_model::{CategoryName, CategoryNameError};

const STOP: u8 = 0;
const STRING: u8 = 11;
const STRUCT: u8 = 12;

/// What every target name ends with.
const TARGET_SUFFIX: &str = "LoggerConfig";

/// `WriteStructuredMessage { 1: string targetName; 2: CompactMessage { 1: binary data } }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Envelope<'m> {
    target: &'m str,
    /// A struct in the compact protocol.
    pub(super) data: &'m [u8],
}

impl<'m> Envelope<'m> {
    pub(crate) fn read(message: &'m [u8]) -> Result<Self, ThriftError> {
        let mut cursor = Cursor::new(message);
        let (mut target, mut data) = (None, None);
        while let Some((kind, id)) = field(&mut cursor)? {
            match (kind, id) {
                (STRING, 1) => target = Some(string(&mut cursor)?),
                (STRUCT, 2) => data = compact_message(&mut cursor)?,
                _ => skip(&mut cursor, kind, 1)?,
            }
        }
        if cursor.remaining() > 0 {
            return Err(ThriftError::Trailing { bytes: cursor.remaining() });
        }
        let target = target.ok_or(ThriftError::NoTarget)?;
        let target = std::str::from_utf8(target).map_err(|error| ThriftError::Utf8 {
            place: "`targetName`".to_owned(),
            at: error.valid_up_to(),
        })?;
        Ok(Self { target, data: data.ok_or(ThriftError::NoData)? })
    }

    /// The logger's name: the target without its suffix.
    pub(crate) fn logger(&self) -> &'m str {
        self.target.strip_suffix(TARGET_SUFFIX).unwrap_or(self.target)
    }

    pub(crate) fn category(&self) -> Result<CategoryName, CategoryNameError> {
        CategoryName::new(self.logger())
    }
}

fn compact_message<'m>(cursor: &mut Cursor<'m>) -> Result<Option<&'m [u8]>, ThriftError> {
    let mut data = None;
    while let Some((kind, id)) = field(cursor)? {
        match (kind, id) {
            (STRING, 1) => data = Some(string(cursor)?),
            _ => skip(cursor, kind, 2)?,
        }
    }
    Ok(data)
}

fn field(cursor: &mut Cursor<'_>) -> Result<Option<(u8, i16)>, ThriftError> {
    match cursor.byte()? {
        STOP => Ok(None),
        kind => Ok(Some((kind, i16::from_be_bytes(cursor.array()?)))),
    }
}

fn string<'m>(cursor: &mut Cursor<'m>) -> Result<&'m [u8], ThriftError> {
    let length = i32::from_be_bytes(cursor.array()?);
    let length = cursor.count(length.into(), 1)?;
    cursor.take(length)
}

/// Gets past a field that is not ours: later versions of the struct may have more.
fn skip(cursor: &mut Cursor<'_>, kind: u8, depth: usize) -> Result<(), ThriftError> {
    if depth > THRIFT_DEPTH_MAX {
        return Err(ThriftError::TooDeep);
    }
    let at = cursor.at();
    match kind {
        2 | 3 => drop(cursor.byte()?),
        6 => drop(cursor.take(2)?),
        8 => drop(cursor.take(4)?),
        4 | 10 => drop(cursor.take(8)?),
        STRING => drop(string(cursor)?),
        STRUCT => {
            while let Some((kind, _)) = field(cursor)? {
                skip(cursor, kind, depth + 1)?;
            }
        }
        13 => {
            let [key, value] = cursor.array()?;
            for _ in 0..items(cursor)? {
                skip(cursor, key, depth + 1)?;
                skip(cursor, value, depth + 1)?;
            }
        }
        14 | 15 => {
            let item = cursor.byte()?;
            for _ in 0..items(cursor)? {
                skip(cursor, item, depth + 1)?;
            }
        }
        found => return Err(ThriftError::UnknownType { at, found }),
    }
    Ok(())
}

fn items(cursor: &mut Cursor<'_>) -> Result<usize, ThriftError> {
    let items = i32::from_be_bytes(cursor.array()?);
    cursor.count(items.into(), 1)
}
