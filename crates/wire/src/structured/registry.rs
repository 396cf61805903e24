//! The Thrift definitions that give structured messages their names.

use super::IdlError;
use super::idl::{Document, StructDefinition};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the struct of a logger's messages is called: the logger's name and this.
const STRUCT_SUFFIX: &str = "LogEntry";

/// The definitions of loggers' messages, by logger.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    loggers: BTreeMap<String, Definition>,
}

#[derive(Debug, Clone)]
struct Definition {
    document: Arc<Document>,
    structure: usize,
}

/// A struct, and the document that its types are in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'r> {
    pub(super) document: &'r Document,
    pub(super) structure: &'r StructDefinition,
}

impl Registry {
    /// Learns the loggers of a Thrift document: struct `XLogEntry` describes what target
    /// `XLoggerConfig` logs. Returns their names (`X`). A logger that was known is replaced.
    pub fn register(&mut self, idl: &str) -> Result<Vec<String>, IdlError> {
        let document = Arc::new(Document::parse(idl)?);
        let mut names = Vec::new();
        for (structure, definition) in document.structs.iter().enumerate() {
            let name = definition.name.strip_suffix(STRUCT_SUFFIX);
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                let document = Arc::clone(&document);
                self.loggers.insert(name.to_owned(), Definition { document, structure });
                names.push(name.to_owned());
            }
        }
        if names.is_empty() {
            return Err(IdlError::no_log_entry());
        }
        Ok(names)
    }

    pub(super) fn shape(&self, logger: &str) -> Option<Shape<'_>> {
        let definition = self.loggers.get(logger)?;
        let document = &*definition.document;
        Some(Shape { document, structure: &document.structs[definition.structure] })
    }
}
