//! A query as it is read, before it is answered.

use datafusion::common::TableReference;
use datafusion::error::DataFusionError;
use datafusion::sql::parser::{DFParser, ExplainStatement, Statement};
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::SqlError;

/// The longest query, in bytes.
pub const SQL_BYTES_MAX: usize = 1 << 16;
/// The most names, words and signs of a query; values and commas do not count. Planning takes the
/// square of the depth of expressions, can't be stopped, and must not end the stack.
pub const SQL_WORDS_MAX: usize = 1 << 11;
/// Names of columns and datasets are as they were sent, capital letters included.
pub(crate) const NAMES_ARE_NORMALIZED: bool = false;

/// A query that only reads.
#[derive(Debug)]
pub struct Query {
    pub(crate) statement: Statement,
    datasets: Vec<String>,
}

impl Query {
    pub fn parse(sql: &str) -> Result<Self, SqlError> {
        if sql.len() > SQL_BYTES_MAX {
            return Err(SqlError::TooLong { bytes: sql.len() });
        }
        let words = words(sql);
        if words > SQL_WORDS_MAX {
            return Err(SqlError::TooManyWords { words });
        }
        let statement = only_statement(sql)?;
        if !reads(&statement) {
            return Err(SqlError::NotReadOnly);
        }
        let (references, _) =
            resolve_table_references(&statement, NAMES_ARE_NORMALIZED).map_err(unreadable)?;
        let datasets = references.iter().map(dataset).collect::<Result<_, _>>()?;
        Ok(Self { statement, datasets })
    }

    /// The datasets that it is about, by the names it calls them.
    pub fn datasets(&self) -> &[String] {
        &self.datasets
    }
}

fn words(sql: &str) -> usize {
    let is_word = |token: &Token| {
        let is_value = matches!(token, Token::Number(..) | Token::SingleQuotedString(_));
        !is_value && !matches!(token, Token::Comma | Token::Whitespace(_))
    };
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize();
    // What is wrong with others, the parser says.
    tokens.map_or(0, |tokens| tokens.iter().filter(|token| is_word(token)).count())
}

fn only_statement(sql: &str) -> Result<Statement, SqlError> {
    let mut statements = DFParser::parse_sql(sql).map_err(unreadable)?;
    match (statements.pop_front(), statements.len()) {
        (Some(statement), 0) => Ok(statement),
        (None, _) => Err(SqlError::Statements { count: 0 }),
        (Some(_), others) => Err(SqlError::Statements { count: others + 1 }),
    }
}

fn unreadable(error: DataFusionError) -> SqlError {
    SqlError::Unreadable(Box::new(error))
}

/// Whether it is of the statements that ask for something.
fn reads(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(statement) => {
            matches!(**statement, ast::Statement::Query(_) | ast::Statement::ExplainTable { .. })
        }
        Statement::Explain(ExplainStatement { statement, .. }) => reads(statement),
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => false,
    }
}

fn dataset(reference: &TableReference) -> Result<String, SqlError> {
    match reference {
        TableReference::Bare { table } => Ok(table.as_ref().to_owned()),
        TableReference::Partial { .. } | TableReference::Full { .. } => {
            Err(SqlError::InParts { name: reference.to_string() })
        }
    }
}
