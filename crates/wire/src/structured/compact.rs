//! Thrift's compact protocol.

use super::ThriftError;
use super::cursor::Cursor;

/// A type on the wire. Bool fields have their value in the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    True,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Set,
    Map,
    Struct,
}

impl Wire {
    fn from_code(code: u8, at: usize) -> Result<Self, ThriftError> {
        Ok(match code {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            9 => Self::List,
            10 => Self::Set,
            11 => Self::Map,
            12 => Self::Struct,
            found => return Err(ThriftError::UnknownType { at, found }),
        })
    }

    /// For "field 4 `x` is …".
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::True | Self::False => "a bool",
            Self::Byte | Self::I16 | Self::I32 | Self::I64 => "an integer",
            Self::Double => "a double",
            Self::Binary => "a string",
            Self::List => "a list",
            Self::Set => "a set",
            Self::Map => "a map",
            Self::Struct => "a struct",
        }
    }
}

/// A list's or set's items, that come next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items {
    /// `None` when there are none: some writers then leave the type out.
    pub(super) wire: Option<Wire>,
    pub(super) count: usize,
}

#[derive(Debug, Clone)]
pub(super) struct CompactReader<'m> {
    cursor: Cursor<'m>,
}

impl<'m> CompactReader<'m> {
    pub(super) fn new(bytes: &'m [u8]) -> Self {
        Self { cursor: Cursor::new(bytes) }
    }

    /// The next field of a struct, or `None` at its end. `previous` is the id of the one before.
    pub(super) fn field(&mut self, previous: i16) -> Result<Option<(i16, Wire)>, ThriftError> {
        let at = self.cursor.at();
        let header = self.cursor.byte()?;
        if header == 0 {
            return Ok(None);
        }
        let wire = Wire::from_code(header & 0x0f, at)?;
        let id = match header >> 4 {
            0 => self.cursor.zigzag()?,
            delta => i64::from(previous) + i64::from(delta),
        };
        let id = i16::try_from(id).map_err(|_too_large| ThriftError::FieldId { at, id })?;
        Ok(Some((id, wire)))
    }

    /// An integer of any width.
    pub(super) fn int(&mut self, wire: Wire) -> Result<i64, ThriftError> {
        if wire == Wire::Byte {
            return Ok(i64::from(self.cursor.byte()?.cast_signed()));
        }
        self.cursor.zigzag()
    }

    /// A bool inside a container: a byte, 1 for true.
    pub(super) fn item_bool(&mut self) -> Result<bool, ThriftError> {
        Ok(self.cursor.byte()? == 1)
    }

    pub(super) fn double(&mut self) -> Result<f64, ThriftError> {
        self.cursor.array().map(f64::from_le_bytes)
    }

    pub(super) fn binary(&mut self) -> Result<&'m [u8], ThriftError> {
        let length = self.length(1)?;
        self.cursor.take(length)
    }

    pub(super) fn items(&mut self) -> Result<Items, ThriftError> {
        let at = self.cursor.at();
        let header = self.cursor.byte()?;
        let count = match header >> 4 {
            15 => self.length(1)?,
            short => self.cursor.count(short.into(), 1)?,
        };
        let wire = match header & 0x0f {
            0 if count == 0 => None,
            code => Some(Wire::from_code(code, at)?),
        };
        Ok(Items { wire, count })
    }

    /// The types of a map's keys and values, and how many pairs come next; `None` when it is
    /// empty.
    pub(super) fn pairs(&mut self) -> Result<Option<(Wire, Wire, usize)>, ThriftError> {
        let count = self.length(2)?;
        if count == 0 {
            return Ok(None);
        }
        let at = self.cursor.at();
        let types = self.cursor.byte()?;
        let (key, value) = (Wire::from_code(types >> 4, at)?, Wire::from_code(types & 0x0f, at)?);
        Ok(Some((key, value, count)))
    }

    pub(super) fn end(&self) -> Result<(), ThriftError> {
        match self.cursor.remaining() {
            0 => Ok(()),
            bytes => Err(ThriftError::Trailing { bytes }),
        }
    }

    fn length(&mut self, item_bytes: usize) -> Result<usize, ThriftError> {
        let at = self.cursor.at();
        let length = self.cursor.varint()?;
        let length = i64::try_from(length)
            .map_err(|_too_large| ThriftError::Length { at, length: i64::MAX })?;
        self.cursor.count(length, item_bytes)
    }
}
