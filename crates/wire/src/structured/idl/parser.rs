//! Tokens to definitions whose types are still names.

use super::tokens::{Token, Tokens};
use super::{EnumDefinition, IdlError, IdlProblem};

/// The deepest nesting of container types.
pub(super) const TYPE_DEPTH_MAX: usize = 32;

#[derive(Debug)]
pub(super) enum TypeName<'i> {
    Named { name: &'i str, line: usize },
    List(Box<Self>),
    Set(Box<Self>),
    Map(Box<(Self, Self)>),
}

#[derive(Debug)]
pub(super) struct Field<'i> {
    pub(super) id: i16,
    pub(super) name: &'i str,
    pub(super) ty: TypeName<'i>,
    pub(super) line: usize,
}

#[derive(Debug)]
pub(super) enum Item<'i> {
    Struct(Vec<Field<'i>>),
    Enum(EnumDefinition),
    Typedef(TypeName<'i>),
}

#[derive(Debug)]
pub(super) struct Definition<'i> {
    pub(super) name: &'i str,
    pub(super) item: Item<'i>,
    pub(super) line: usize,
}

pub(super) fn parse(idl: &str) -> Result<Vec<Definition<'_>>, IdlError> {
    let mut parser = Parser { tokens: Tokens::new(idl)? };
    let mut definitions = Vec::new();
    loop {
        parser.skip_annotations()?;
        if parser.tokens.peek() == Token::End {
            return Ok(definitions);
        }
        definitions.extend(parser.definition()?);
        parser.skip_separator()?;
    }
}

struct Parser<'i> {
    tokens: Tokens<'i>,
}

impl<'i> Parser<'i> {
    /// `None` for definitions that log messages don't need.
    fn definition(&mut self) -> Result<Option<Definition<'i>>, IdlError> {
        const WANTED: &str = "a definition (struct, enum, typedef, …)";
        let Token::Word(keyword) = self.tokens.peek() else {
            return Err(self.tokens.unexpected(WANTED));
        };
        match keyword {
            "include" | "cpp_include" | "hs_include" | "namespace" | "package" => {
                self.skip_header(keyword)?;
                return Ok(None);
            }
            "const" => {
                self.skip_const()?;
                return Ok(None);
            }
            "service" | "interaction" => {
                self.skip_service()?;
                return Ok(None);
            }
            "struct" | "union" | "exception" | "enum" | "senum" | "typedef" => {}
            _ => return Err(self.tokens.unexpected(WANTED)),
        }
        self.tokens.next()?;
        let line = self.tokens.line();
        let (name, item) = match keyword {
            "typedef" => {
                let ty = self.type_name(0)?;
                (self.tokens.word("a name for the type")?, Item::Typedef(ty))
            }
            "enum" | "senum" => {
                let name = self.tokens.word("the enum's name")?;
                (name, Item::Enum(self.enum_values()?))
            }
            _ => {
                let name = self.tokens.word("the struct's name")?;
                (name, Item::Struct(self.fields()?))
            }
        };
        self.skip_annotations()?;
        Ok(Some(Definition { name, item, line }))
    }

    fn fields(&mut self) -> Result<Vec<Field<'i>>, IdlError> {
        // `xsd_all` and such, that old documents have here.
        while let Token::Word(_) = self.tokens.peek() {
            self.tokens.next()?;
        }
        self.tokens.symbol('{', "`{`")?;
        let mut fields = Vec::new();
        loop {
            self.skip_annotations()?;
            if self.tokens.take('}')? {
                return Ok(fields);
            }
            fields.push(self.field()?);
            self.skip_separator()?;
        }
    }

    fn field(&mut self) -> Result<Field<'i>, IdlError> {
        let line = self.tokens.line();
        let first = self.tokens.word("a field (`1: string name`) or `}`")?;
        let id = if self.tokens.take(':')? { Some(number(first, line)?) } else { None };
        let ty = match id {
            None => self.rest_of_type(first, line, 0)?,
            Some(_) => {
                self.skip_requiredness()?;
                self.type_name(0)?
            }
        };
        let name = self.tokens.word("the field's name")?;
        let id = id.ok_or_else(|| IdlError {
            line,
            problem: IdlProblem::NoFieldId { name: name.to_owned() },
        })?;
        if self.tokens.take('=')? {
            self.skip_value()?;
        }
        self.skip_annotations()?;
        Ok(Field { id, name, ty, line })
    }

    fn skip_requiredness(&mut self) -> Result<(), IdlError> {
        if matches!(self.tokens.peek(), Token::Word("required" | "optional")) {
            self.tokens.next()?;
        }
        Ok(())
    }

    fn type_name(&mut self, depth: usize) -> Result<TypeName<'i>, IdlError> {
        let line = self.tokens.line();
        let name = self.tokens.word("a type")?;
        let ty = self.rest_of_type(name, line, depth)?;
        self.skip_annotations()?;
        Ok(ty)
    }

    fn rest_of_type(
        &mut self,
        name: &'i str,
        line: usize,
        depth: usize,
    ) -> Result<TypeName<'i>, IdlError> {
        if !matches!(name, "list" | "set" | "map") {
            return Ok(TypeName::Named { name, line });
        }
        if depth == TYPE_DEPTH_MAX {
            return Err(IdlError { line, problem: IdlProblem::TooDeep });
        }
        self.tokens.symbol('<', "`<`")?;
        let item = self.type_name(depth + 1)?;
        let ty = match name {
            "list" => TypeName::List(Box::new(item)),
            "set" => TypeName::Set(Box::new(item)),
            _ => {
                self.tokens.symbol(',', "`,` between a map's types")?;
                TypeName::Map(Box::new((item, self.type_name(depth + 1)?)))
            }
        };
        self.tokens.symbol('>', "`>`")?;
        Ok(ty)
    }

    fn enum_values(&mut self) -> Result<EnumDefinition, IdlError> {
        self.tokens.symbol('{', "`{`")?;
        let mut values = Vec::new();
        let mut next_value = 0_i64;
        loop {
            self.skip_annotations()?;
            if self.tokens.take('}')? {
                return Ok(EnumDefinition { values });
            }
            let name = self.tokens.word("an enum value or `}`")?;
            if self.tokens.take('=')? {
                let line = self.tokens.line();
                next_value = i64::from(number::<i32>(self.tokens.word("a number")?, line)?);
            }
            values.push((next_value, name.to_owned()));
            next_value += 1;
            self.skip_annotations()?;
            self.skip_separator()?;
        }
    }

    fn skip_header(&mut self, keyword: &str) -> Result<(), IdlError> {
        self.tokens.next()?;
        if keyword == "namespace" {
            if !self.tokens.take('*')? {
                self.tokens.word("a language")?;
            }
            self.tokens.word("a namespace")?;
            return self.skip_annotations();
        }
        self.tokens.next().map(drop)
    }

    fn skip_const(&mut self) -> Result<(), IdlError> {
        self.tokens.next()?;
        self.type_name(0)?;
        self.tokens.word("the constant's name")?;
        self.tokens.symbol('=', "`=`")?;
        self.skip_value()
    }

    fn skip_service(&mut self) -> Result<(), IdlError> {
        while !self.tokens.is('{') {
            if self.tokens.peek() == Token::End {
                return Err(self.tokens.unexpected("`{`"));
            }
            self.tokens.next()?;
        }
        self.skip_brackets()?;
        self.skip_annotations()
    }

    /// A constant: one token, or whatever is in brackets.
    fn skip_value(&mut self) -> Result<(), IdlError> {
        match self.tokens.peek() {
            Token::Symbol('[' | '{') => self.skip_brackets(),
            Token::Symbol(_) | Token::End => Err(self.tokens.unexpected("a value")),
            Token::Word(_) | Token::Text => self.tokens.next().map(drop),
        }
    }

    /// `(key = "value")` after a definition, `@name{…}` before one.
    fn skip_annotations(&mut self) -> Result<(), IdlError> {
        loop {
            if self.tokens.is('(') {
                self.skip_brackets()?;
            } else if self.tokens.take('@')? {
                self.tokens.word("an annotation's name")?;
                if self.tokens.is('{') {
                    self.skip_brackets()?;
                }
            } else {
                return Ok(());
            }
        }
    }

    /// From an opening bracket to the one that closes it. Counts instead of calling itself: no
    /// nesting is too deep.
    fn skip_brackets(&mut self) -> Result<(), IdlError> {
        let mut open = 0_usize;
        loop {
            match self.tokens.peek() {
                Token::Symbol('(' | '[' | '{') => open += 1,
                Token::Symbol(')' | ']' | '}') => open -= 1,
                Token::End => return Err(self.tokens.unexpected("a closing bracket")),
                Token::Word(_) | Token::Text | Token::Symbol(_) => {}
            }
            self.tokens.next()?;
            if open == 0 {
                return Ok(());
            }
        }
    }

    fn skip_separator(&mut self) -> Result<(), IdlError> {
        if !self.tokens.take(',')? {
            self.tokens.take(';')?;
        }
        Ok(())
    }
}

fn number<N: std::str::FromStr>(text: &str, line: usize) -> Result<N, IdlError> {
    let problem = || IdlProblem::Number { text: crate::message::quote(text) };
    text.parse().map_err(|_not_a_number| IdlError { line, problem: problem() })
}
