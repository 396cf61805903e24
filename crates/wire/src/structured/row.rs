//! A structured message to a row.

use super::compact::{CompactReader, Items, Wire};
use super::idl::{EnumDefinition, Type};
use super::json_text::JsonText;
use super::registry::Shape;
use super::{Envelope, Registry, ThriftError, json_text_bytes_max};
use crate::json::Number;
use crate::message::{MessageError, Properties};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use perflab_model::{Batch, ListKind, Nanos, RowBuilder};
use std::borrow::Cow;

/// Adds the row of a `WriteStructuredMessage` to the batch, or leaves the batch as it was.
pub(crate) fn decode(
    message: &[u8],
    arrival: Nanos,
    registry: &Registry,
    batch: &mut Batch,
) -> Result<(), MessageError> {
    let envelope = Envelope::read(message)?;
    let mut decoder = Decoder {
        reader: CompactReader::new(envelope.data),
        shape: registry.shape(envelope.logger()),
        row: batch.begin_row(),
        properties: Properties::default(),
        json_text_left: json_text_bytes_max(message.len()),
    };
    let mut previous = 0;
    while let Some((id, wire)) = decoder.reader.field(previous)? {
        decoder.field(id, wire)?;
        previous = id;
    }
    decoder.reader.end()?;
    let (time, weight) = decoder.properties.resolve(arrival)?;
    Ok(decoder.row.commit(time, weight)?)
}

struct Decoder<'m, 'b> {
    reader: CompactReader<'m>,
    shape: Option<Shape<'m>>,
    row: RowBuilder<'b>,
    properties: Properties,
    /// How many bytes of JSON text the rest of the message may become.
    json_text_left: usize,
}

/// A field of the message, with its name and what is known of its type.
struct Field<'m> {
    id: i16,
    name: Cow<'m, str>,
    declared: Option<&'m Type>,
}

impl<'m> Decoder<'m, '_> {
    fn field(&mut self, id: i16, wire: Wire) -> Result<(), MessageError> {
        let field = self.name(id);
        if let Some(declared) = field.declared
            && !declared.is_sent_as(wire)
        {
            let name = field.name.into_owned();
            let (found, declared) = (wire.describe(), declared.describe());
            return Err(ThriftError::Mismatch { id, name, found, declared }.into());
        }
        if Properties::is_property(&field.name) {
            self.check_property(&field, wire)?;
        }
        match wire {
            Wire::True => self.row.string(&field.name, "true")?,
            Wire::False => self.row.string(&field.name, "false")?,
            Wire::Byte | Wire::I16 | Wire::I32 | Wire::I64 => {
                let value = self.reader.int(wire)?;
                self.int(&field, value)?;
            }
            Wire::Double => {
                let value = self.reader.double()?;
                self.double(&field, value)?;
            }
            Wire::Binary => {
                let bytes = self.reader.binary()?;
                self.binary(&field, bytes)?;
            }
            Wire::List | Wire::Set => self.list(&field, wire)?,
            Wire::Map | Wire::Struct => {
                let text = self.json_text(&field, wire)?;
                self.row.string(&field.name, &text)?;
            }
        }
        Ok(())
    }

    /// A time or weight that is no number would be a column beside the row's own.
    fn check_property(&self, field: &Field<'m>, wire: Wire) -> Result<(), MessageError> {
        let found = match wire {
            Wire::Byte | Wire::I16 | Wire::I32 | Wire::I64 if self.enumeration(field).is_some() => {
                "an enum"
            }
            Wire::Byte | Wire::I16 | Wire::I32 | Wire::I64 | Wire::Double => return Ok(()),
            Wire::True
            | Wire::False
            | Wire::Binary
            | Wire::List
            | Wire::Set
            | Wire::Map
            | Wire::Struct => wire.describe(),
        };
        Err(MessageError::Type { column: field.name.to_string(), section: None, found })
    }

    fn name(&self, id: i16) -> Field<'m> {
        match self.shape.and_then(|shape| shape.structure.field(id)) {
            Some(known) => {
                Field { id, name: Cow::Borrowed(&*known.name), declared: Some(&known.ty) }
            }
            None => Field { id, name: Cow::Owned(format!("f{id}")), declared: None },
        }
    }

    fn int(&mut self, field: &Field<'m>, value: i64) -> Result<(), MessageError> {
        if let Some(definition) = self.enumeration(field) {
            let name =
                definition.name(value).map_or_else(|| value.to_string().into(), Cow::Borrowed);
            return Ok(self.row.string(&field.name, &name)?);
        }
        if Properties::is_property(&field.name) {
            return Ok(self.properties.set(&field.name, Some(Number::Int(value)))?);
        }
        self.properties.note(&field.name, Number::Int(value));
        Ok(self.row.int(&field.name, value)?)
    }

    fn enumeration(&self, field: &Field<'m>) -> Option<&'m EnumDefinition> {
        let Some(Type::Enum(index)) = field.declared else { return None };
        self.shape?.document.enums.get(*index)
    }

    fn double(&mut self, field: &Field<'m>, value: f64) -> Result<(), MessageError> {
        if !value.is_finite() {
            let name = field.name.to_string();
            return Err(ThriftError::NotFinite { id: field.id, name }.into());
        }
        if Properties::is_property(&field.name) {
            return Ok(self.properties.set(&field.name, Some(Number::Float(value)))?);
        }
        self.properties.note(&field.name, Number::Float(value));
        Ok(self.row.float(&field.name, value)?)
    }

    fn binary(&mut self, field: &Field<'m>, bytes: &[u8]) -> Result<(), MessageError> {
        if field.declared == Some(&Type::Binary) {
            return Ok(self.row.string(&field.name, &STANDARD.encode(bytes))?);
        }
        Ok(self.row.string(&field.name, utf8(bytes, &field.name)?)?)
    }

    fn list(&mut self, field: &Field<'m>, wire: Wire) -> Result<(), MessageError> {
        let mut ahead = self.reader.clone();
        let items = ahead.items()?;
        if !is_of_strings(items, field.declared) {
            let text = self.json_text(field, wire)?;
            return Ok(self.row.string(&field.name, &text)?);
        }
        self.reader = ahead;
        let mut strings = Vec::new();
        for _ in 0..items.count {
            strings.push(utf8(self.reader.binary()?, &field.name)?);
        }
        let kind = if wire == Wire::Set { ListKind::Set } else { ListKind::Vector };
        Ok(self.row.strings(&field.name, kind, strings)?)
    }

    fn json_text(&mut self, field: &Field<'m>, wire: Wire) -> Result<String, MessageError> {
        let mut text = JsonText::new(self.shape.map(|shape| shape.document), self.json_text_left);
        text.value(&mut self.reader, wire, field.declared)?;
        let text = text.into_string();
        self.json_text_left -= text.len();
        Ok(text)
    }
}

/// Whether a list or set holds strings. An empty one does when it is declared so, or when
/// nothing is known of it.
fn is_of_strings(items: Items, declared: Option<&Type>) -> bool {
    let declared_item = declared.and_then(Type::item);
    let may_be = matches!(declared_item, None | Some(Type::String));
    may_be && matches!(items.wire, None | Some(Wire::Binary))
}

pub(super) fn utf8<'m>(bytes: &'m [u8], name: &str) -> Result<&'m str, ThriftError> {
    std::str::from_utf8(bytes).map_err(|error| ThriftError::Utf8 {
        place: format!("field `{name}`"),
        at: error.valid_up_to(),
    })
}
