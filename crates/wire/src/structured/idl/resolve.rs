//! Names of types to types.

use super::parser::{Definition, Field, Item, TypeName};
use super::{Document, FieldDefinition, IdlError, IdlProblem, StructDefinition, Type};
use std::cell::Cell;
use std::collections::HashMap;

pub(super) fn resolve(definitions: &[Definition<'_>]) -> Result<Document, IdlError> {
    let names = Names::new(definitions)?;
    let mut document = Document::default();
    for definition in definitions {
        match &definition.item {
            Item::Struct(fields) => {
                document.structs.push(structure(definition.name, fields, &names)?);
            }
            Item::Enum(values) => document.enums.push(values.clone()),
            Item::Typedef(_) => {}
        }
    }
    Ok(document)
}

fn structure(
    name: &str,
    fields: &[Field<'_>],
    names: &Names<'_>,
) -> Result<StructDefinition, IdlError> {
    let mut known: Vec<FieldDefinition> = Vec::with_capacity(fields.len());
    let mut seen = HashMap::new();
    for field in fields {
        if seen.insert(field.name, field.line).is_some() {
            let (name, structure) = (field.name.to_owned(), name.to_owned());
            return Err(at(field.line, IdlProblem::FieldTwice { name, structure }));
        }
        let ty = names.resolve(&field.ty, field.line)?;
        let definition = FieldDefinition { id: field.id, name: field.name.to_owned(), ty };
        match known.binary_search_by_key(&field.id, |other| other.id) {
            Ok(_) => {
                let (id, structure) = (field.id, name.to_owned());
                return Err(at(field.line, IdlProblem::FieldIdTwice { id, structure }));
            }
            Err(position) => known.insert(position, definition),
        }
    }
    Ok(StructDefinition { name: name.to_owned(), fields: known })
}

/// The most types that a document's fields are made of once typedefs are put in: a few lines of
/// typedefs of typedefs can stand for more than fits any memory.
pub(super) const TYPES_MAX: usize = 100_000;

/// The longest chain of typedefs. A longer one leads back to itself.
const TYPEDEFS_MAX: usize = 16;

/// What each name of the document stands for.
struct Names<'d> {
    meanings: HashMap<&'d str, Meaning<'d>>,
    types_left: Cell<usize>,
}

#[derive(Clone, Copy)]
enum Meaning<'d> {
    Struct(usize),
    Enum(usize),
    Typedef(&'d TypeName<'d>),
}

impl<'d> Names<'d> {
    fn new(definitions: &'d [Definition<'d>]) -> Result<Self, IdlError> {
        let mut names = HashMap::new();
        let (mut structs, mut enums) = (0, 0);
        for definition in definitions {
            let meaning = match &definition.item {
                Item::Struct(_) => {
                    structs += 1;
                    Meaning::Struct(structs - 1)
                }
                Item::Enum(_) => {
                    enums += 1;
                    Meaning::Enum(enums - 1)
                }
                Item::Typedef(ty) => Meaning::Typedef(ty),
            };
            if names.insert(definition.name, meaning).is_some() {
                let name = definition.name.to_owned();
                return Err(at(definition.line, IdlProblem::DefinedTwice { name }));
            }
        }
        Ok(Self { meanings: names, types_left: Cell::new(TYPES_MAX) })
    }

    fn resolve(&self, ty: &TypeName<'_>, line: usize) -> Result<Type, IdlError> {
        self.resolve_within(ty, line, 0)
    }

    /// `line` is the field's. `typedefs` counts those that were followed, which also bounds how
    /// deep this calls itself.
    fn resolve_within(
        &self,
        ty: &TypeName<'_>,
        line: usize,
        typedefs: usize,
    ) -> Result<Type, IdlError> {
        let types_left = self.types_left.get().checked_sub(1);
        let types_left = types_left.ok_or_else(|| at(line, IdlProblem::TooManyTypes))?;
        self.types_left.set(types_left);
        let resolve = |ty| self.resolve_within(ty, line, typedefs);
        Ok(match ty {
            TypeName::List(item) => Type::List(Box::new(resolve(item)?)),
            TypeName::Set(item) => Type::Set(Box::new(resolve(item)?)),
            TypeName::Map(pair) => Type::Map(Box::new((resolve(&pair.0)?, resolve(&pair.1)?))),
            TypeName::Named { name, line } => match base_type(name) {
                Some(ty) => ty,
                None => self.defined(name, *line, typedefs)?,
            },
        })
    }

    fn defined(&self, name: &str, line: usize, typedefs: usize) -> Result<Type, IdlError> {
        match self.meanings.get(name) {
            Some(Meaning::Struct(index)) => Ok(Type::Struct(*index)),
            Some(Meaning::Enum(index)) => Ok(Type::Enum(*index)),
            Some(Meaning::Typedef(_)) if typedefs == TYPEDEFS_MAX => {
                Err(at(line, IdlProblem::TypedefLoop { name: name.to_owned() }))
            }
            Some(Meaning::Typedef(ty)) => self.resolve_within(ty, line, typedefs + 1),
            None => Err(at(line, IdlProblem::UnknownType { name: name.to_owned() })),
        }
    }
}

fn base_type(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "byte" | "i8" | "i16" | "i32" | "i64" => Type::Int,
        "double" => Type::Double,
        "string" => Type::String,
        "binary" => Type::Binary,
        _ => return None,
    })
}

fn at(line: usize, problem: IdlProblem) -> IdlError {
    IdlError { line, problem }
}
