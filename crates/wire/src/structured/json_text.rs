//! Nested Thrift values as JSON text, for columns that hold what no column kind can.

use super::compact::{CompactReader, Wire};
use super::idl::{Document, Type};
use super::row::utf8;
use super::{THRIFT_DEPTH_MAX, ThriftError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;

pub(super) struct JsonText<'r> {
    /// Where the names of nested structs and enums are.
    document: Option<&'r Document>,
    text: String,
    bytes_max: usize,
    depth: usize,
}

impl<'r> JsonText<'r> {
    /// A text of at most `bytes_max` bytes.
    pub(super) fn new(document: Option<&'r Document>, bytes_max: usize) -> Self {
        Self { document, text: String::new(), bytes_max, depth: 0 }
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }

    /// Appends the value that comes next. Calls itself as deep as the limit allows.
    pub(super) fn value(
        &mut self,
        reader: &mut CompactReader<'_>,
        wire: Wire,
        declared: Option<&Type>,
    ) -> Result<(), ThriftError> {
        // A declaration that doesn't match what was sent names nothing.
        let declared = declared.filter(|declared| declared.is_sent_as(wire));
        match wire {
            // Only inside containers: a field's bool is in its type.
            Wire::True | Wire::False => self.push_bool(reader.item_bool()?),
            Wire::Byte | Wire::I16 | Wire::I32 | Wire::I64 => {
                self.push_int(reader.int(wire)?, declared);
            }
            Wire::Double => self.push_double(reader.double()?),
            Wire::Binary if declared == Some(&Type::Binary) => {
                self.push_string(&STANDARD.encode(reader.binary()?));
            }
            Wire::Binary => self.push_string(utf8(reader.binary()?, "a nested string")?),
            Wire::List | Wire::Set => self.nested(|text| text.list(reader, declared))?,
            Wire::Map => self.nested(|text| text.map(reader, declared))?,
            Wire::Struct => self.nested(|text| text.structure(reader, declared))?,
        }
        self.check_length()
    }

    /// Looked at after every part: what one part adds is no longer than a few times the message.
    fn check_length(&self) -> Result<(), ThriftError> {
        if self.text.len() > self.bytes_max { Err(ThriftError::TooLong) } else { Ok(()) }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), ThriftError>,
    ) -> Result<(), ThriftError> {
        if self.depth == THRIFT_DEPTH_MAX {
            return Err(ThriftError::TooDeep);
        }
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn list(
        &mut self,
        reader: &mut CompactReader<'_>,
        declared: Option<&Type>,
    ) -> Result<(), ThriftError> {
        let items = reader.items()?;
        self.text.push('[');
        if let Some(wire) = items.wire {
            for index in 0..items.count {
                self.comma(index > 0);
                self.value(reader, wire, declared.and_then(Type::item))?;
            }
        }
        self.text.push(']');
        Ok(())
    }

    fn map(
        &mut self,
        reader: &mut CompactReader<'_>,
        declared: Option<&Type>,
    ) -> Result<(), ThriftError> {
        let (declared_key, declared_value) = declared.and_then(Type::pair).unzip();
        self.text.push('{');
        if let Some((key, value, count)) = reader.pairs()? {
            for index in 0..count {
                self.comma(index > 0);
                self.key(reader, key, declared_key)?;
                self.text.push(':');
                self.value(reader, value, declared_value)?;
            }
        }
        self.text.push('}');
        Ok(())
    }

    /// A map's key. JSON has only strings there, so any other key is its own text in quotes.
    fn key(
        &mut self,
        reader: &mut CompactReader<'_>,
        wire: Wire,
        declared: Option<&Type>,
    ) -> Result<(), ThriftError> {
        let start = self.text.len();
        self.value(reader, wire, declared)?;
        if !self.text[start..].starts_with('"') {
            let key = self.text.split_off(start);
            self.push_string(&key);
        }
        self.check_length()
    }

    fn structure(
        &mut self,
        reader: &mut CompactReader<'_>,
        declared: Option<&Type>,
    ) -> Result<(), ThriftError> {
        let definition = match (declared, self.document) {
            (Some(Type::Struct(index)), Some(document)) => document.structs.get(*index),
            _ => None,
        };
        self.text.push('{');
        let (mut previous, mut is_first) = (0, true);
        while let Some((id, wire)) = reader.field(previous)? {
            self.comma(!is_first);
            let known = definition.and_then(|definition| definition.field(id));
            match known {
                Some(known) => self.push_string(&known.name),
                None => self.push_string(&format!("f{id}")),
            }
            self.check_length()?;
            self.text.push(':');
            if matches!(wire, Wire::True | Wire::False) {
                self.push_bool(wire == Wire::True);
            } else {
                self.value(reader, wire, known.map(|known| &known.ty))?;
            }
            (previous, is_first) = (id, false);
        }
        self.text.push('}');
        Ok(())
    }

    fn comma(&mut self, is_due: bool) {
        if is_due {
            self.text.push(',');
        }
    }

    fn push_bool(&mut self, value: bool) {
        self.text.push_str(if value { "true" } else { "false" });
    }

    fn push_int(&mut self, value: i64, declared: Option<&Type>) {
        let name = match (declared, self.document) {
            (Some(Type::Enum(index)), Some(document)) => document.enums[*index].name(value),
            _ => None,
        };
        match name {
            Some(name) => self.push_string(name),
            None => self.push_display(value),
        }
    }

    fn push_double(&mut self, value: f64) {
        if value.is_finite() {
            self.push_display(format_args!("{value:?}"));
        } else {
            self.text.push_str("null");
        }
    }

    fn push_display(&mut self, value: impl std::fmt::Display) {
        // Writing to a String does not fail.
        let _ = write!(self.text, "{value}");
    }

    fn push_string(&mut self, string: &str) {
        self.text.push('"');
        for character in string.chars() {
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\0'..' ' => self.push_display(format_args!("\\u{:04x}", u32::from(character))),
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }
}
