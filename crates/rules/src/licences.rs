//! Which licences a dependency may have, by its SPDX expression.
//!
//! An expression is `or` of `and` of terms; a term is in parentheses, or an identifier with an
//! optional `WITH exception`. `OR` needs one side that is allowed, `AND` both. The `/` of old
//! manifests means `OR`.

use crate::Package;

/// Licences that let `MIT OR Apache-2.0` software be built from the package without any duty
/// beyond keeping notices. MPL-2.0 is not among them: it asks for the source of changed files.
pub const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];

/// Parentheses inside one another beyond this are no licence expression.
const NESTING_MAX: usize = 8;

/// Why an expression can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    #[error("it ends where a licence should be")]
    Ended,
    #[error("`{0}` is where a licence should be")]
    NoLicence(String),
    #[error("`{0}` is left over at its end")]
    LeftOver(String),
    #[error("a parenthesis is not closed")]
    Open,
    #[error("its parentheses are nested too deep")]
    TooDeep,
}

/// The packages whose licence isn't allowed, isn't said, or can't be read.
pub fn violations<'p>(packages: impl IntoIterator<Item = &'p Package>) -> Vec<String> {
    packages.into_iter().filter_map(violation).collect()
}

fn violation(package: &Package) -> Option<String> {
    let name = format!("`{} {}`", package.name, package.version);
    let Some(expression) = &package.license else {
        return Some(format!("{name} names no licence"));
    };
    match is_allowed(expression) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name} has the licence `{expression}`")),
        Err(error) => Some(format!("{name} has the unreadable licence `{expression}`: {error}")),
    }
}

/// Whether the expression can be met by allowed licences alone.
pub fn is_allowed(expression: &str) -> Result<bool, ExpressionError> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut parser = Parser { words: spaced.split_whitespace().peekable() };
    let allowed = parser.or(0)?;
    match parser.words.next() {
        None => Ok(allowed),
        Some(word) => Err(ExpressionError::LeftOver(word.to_owned())),
    }
}

struct Parser<'e> {
    words: std::iter::Peekable<std::str::SplitWhitespace<'e>>,
}

impl Parser<'_> {
    fn or(&mut self, depth: usize) -> Result<bool, ExpressionError> {
        let mut allowed = self.and(depth)?;
        while self.words.next_if_eq(&"OR").is_some() {
            allowed |= self.and(depth)?;
        }
        Ok(allowed)
    }

    fn and(&mut self, depth: usize) -> Result<bool, ExpressionError> {
        let mut allowed = self.term(depth)?;
        while self.words.next_if_eq(&"AND").is_some() {
            allowed &= self.term(depth)?;
        }
        Ok(allowed)
    }

    fn term(&mut self, depth: usize) -> Result<bool, ExpressionError> {
        match self.words.next() {
            None => Err(ExpressionError::Ended),
            Some("(") if depth == NESTING_MAX => Err(ExpressionError::TooDeep),
            Some("(") => {
                let allowed = self.or(depth + 1)?;
                let closed = self.words.next_if_eq(&")");
                closed.map(|_| allowed).ok_or(ExpressionError::Open)
            }
            Some(word @ (")" | "OR" | "AND" | "WITH")) => {
                Err(ExpressionError::NoLicence(word.to_owned()))
            }
            Some(licence) => self.licence(licence),
        }
    }

    fn licence(&mut self, licence: &str) -> Result<bool, ExpressionError> {
        if self.words.next_if_eq(&"WITH").is_none() {
            return Ok(ALLOWED.contains(&licence));
        }
        let exception = self.words.next().ok_or(ExpressionError::Ended)?;
        // An exception only adds permissions, so that the licence alone is enough.
        let whole = format!("{licence} WITH {exception}");
        Ok(ALLOWED.contains(&whole.as_str()) || ALLOWED.contains(&licence))
    }
}
