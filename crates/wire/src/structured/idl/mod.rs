//! Thrift's interface definition language, as far as log messages need it: structs, unions,
//! exceptions, enums and typedefs. Constants, services, annotations and namespaces are skipped.
//!
//! An own parser: the tree of `pilota-thrift-parser` has no positions, so that "unknown type" or
//! "id used twice" couldn't name a line, and its syntax errors list the characters that would
//! have been possible rather than what was expected.

mod parser;
mod resolve;
mod tokens;

use super::compact::Wire;

/// The longest document that is read.
pub const IDL_BYTES_MAX: usize = 1 << 20;

/// What is wrong with a Thrift document, and on which line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct IdlError {
    pub line: usize,
    pub problem: IdlProblem,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdlProblem {
    #[error("the document has {bytes} bytes, more than {IDL_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("expected {expected}, found {found}")]
    Unexpected { expected: &'static str, found: String },
    #[error("a comment or string has no end")]
    NoEnd,
    #[error("types are nested deeper than {} levels", parser::TYPE_DEPTH_MAX)]
    TooDeep,
    #[error("number `{text}` does not fit")]
    Number { text: String },
    #[error("`{name}` is defined twice")]
    DefinedTwice { name: String },
    #[error("field `{name}` has no id")]
    NoFieldId { name: String },
    #[error("field id {id} is used twice in struct `{structure}`")]
    FieldIdTwice { id: i16, structure: String },
    #[error("field `{name}` appears twice in struct `{structure}`")]
    FieldTwice { name: String, structure: String },
    #[error(
        "unknown type `{name}`; includes are not read, its definition must be in this document"
    )]
    UnknownType { name: String },
    #[error("typedef `{name}` leads back to itself")]
    TypedefLoop { name: String },
    #[error("the fields stand for too many types, more than {}", resolve::TYPES_MAX)]
    TooManyTypes,
    #[error("no struct is called `…LogEntry`, which is what describes a logger's messages")]
    NoLogEntry,
}

impl IdlError {
    pub(super) fn no_log_entry() -> Self {
        Self { line: 1, problem: IdlProblem::NoLogEntry }
    }
}

/// A document whose types are all known.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    pub(super) structs: Vec<StructDefinition>,
    pub(super) enums: Vec<EnumDefinition>,
}

#[derive(Debug, Clone)]
pub(super) struct StructDefinition {
    pub(super) name: String,
    /// Sorted by id.
    fields: Vec<FieldDefinition>,
}

#[derive(Debug, Clone)]
pub(super) struct FieldDefinition {
    id: i16,
    pub(super) name: String,
    pub(super) ty: Type,
}

#[derive(Debug, Clone, Default)]
pub(super) struct EnumDefinition {
    values: Vec<(i64, String)>,
}

/// A type without typedefs. Structs and enums are positions in the document, so that a struct
/// may hold itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Int,
    Double,
    String,
    Binary,
    Enum(usize),
    List(Box<Self>),
    Set(Box<Self>),
    Map(Box<(Self, Self)>),
    Struct(usize),
}

impl Document {
    pub(super) fn parse(idl: &str) -> Result<Self, IdlError> {
        if idl.len() > IDL_BYTES_MAX {
            let problem = IdlProblem::TooLong { bytes: idl.len() };
            return Err(IdlError { line: 1, problem });
        }
        resolve::resolve(&parser::parse(idl)?)
    }
}

impl StructDefinition {
    pub(super) fn field(&self, id: i16) -> Option<&FieldDefinition> {
        let found = self.fields.binary_search_by_key(&id, |field| field.id);
        found.ok().map(|position| &self.fields[position])
    }
}

impl EnumDefinition {
    pub(super) fn name(&self, value: i64) -> Option<&str> {
        self.values.iter().find(|(other, _)| *other == value).map(|(_, name)| name.as_str())
    }
}

impl Type {
    /// The type of a list's or set's items.
    pub(super) fn item(&self) -> Option<&Self> {
        if let Self::List(item) | Self::Set(item) = self { Some(item) } else { None }
    }

    /// The types of a map's keys and values.
    pub(super) fn pair(&self) -> Option<(&Self, &Self)> {
        if let Self::Map(pair) = self { Some((&pair.0, &pair.1)) } else { None }
    }

    /// Whether a value of this type looks like that on the wire. Integers of all widths are
    /// the same: a field may have been widened since the definition was registered.
    pub(super) fn is_sent_as(&self, wire: Wire) -> bool {
        match self {
            Self::Bool => matches!(wire, Wire::True | Wire::False),
            Self::Int | Self::Enum(_) => {
                matches!(wire, Wire::Byte | Wire::I16 | Wire::I32 | Wire::I64)
            }
            Self::Double => wire == Wire::Double,
            Self::String | Self::Binary => wire == Wire::Binary,
            Self::List(_) => wire == Wire::List,
            Self::Set(_) => wire == Wire::Set,
            Self::Map(_) => wire == Wire::Map,
            Self::Struct(_) => wire == Wire::Struct,
        }
    }

    /// For "the registered IDL says …".
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::Bool => "a bool",
            Self::Int => "an integer",
            Self::Enum(_) => "an enum",
            Self::Double => "a double",
            Self::String => "a string",
            Self::Binary => "binary",
            Self::List(_) => "a list",
            Self::Set(_) => "a set",
            Self::Map(_) => "a map",
            Self::Struct(_) => "a struct",
        }
    }
}
