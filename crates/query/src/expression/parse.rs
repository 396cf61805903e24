//! The text of an expression, as a tree.

use super::ExpressionError;

/// The longest text of an expression.
pub const EXPRESSION_BYTES_MAX: usize = 4096;
/// How deep expressions are inside each other at most.
pub(super) const DEPTH_MAX: usize = 64;

/// A part of an expression, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// In characters, from 1.
    pub(super) position: usize,
    pub(super) form: Form,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Number(f64),
    Text(String),
    Null,
    Column(String),
    Negate(Box<Part>),
    Not(Box<Part>),
    Pair(Operator, Box<Part>, Box<Part>),
    Call(Function, Vec<Part>),
}

/// What stands between two parts, from what binds least to what binds most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "or" => Self::Or,
            "and" => Self::And,
            "=" | "==" => Self::Equal,
            "!=" | "<>" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "/" => Self::Divide,
            "%" => Self::Remainder,
            _ => return None,
        })
    }

    /// Whether it takes texts too.
    pub(super) fn compares(self) -> bool {
        self.strength() == Self::Equal.strength()
    }

    fn strength(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::Greater
            | Self::GreaterOrEqual => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::Remainder => 5,
        }
    }
}

/// Binds its operand more than `and` and less than comparisons do.
const NOT_STRENGTH: u8 = 3;
/// Binds its operand more than anything between two parts does.
const NEGATE_STRENGTH: u8 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    If,
    Coalesce,
    Concat,
    Lower,
    Length,
    Number,
    RegexExtract,
    Bucket,
}

impl Function {
    const ALL: [(&'static str, Self); 8] = [
        ("if", Self::If),
        ("coalesce", Self::Coalesce),
        ("concat", Self::Concat),
        ("lower", Self::Lower),
        ("length", Self::Length),
        ("number", Self::Number),
        ("regex_extract", Self::RegexExtract),
        ("bucket", Self::Bucket),
    ];

    /// How many arguments it takes; `None`: one or more.
    fn arguments(self) -> Option<usize> {
        match self {
            Self::If | Self::RegexExtract => Some(3),
            Self::Bucket => Some(2),
            Self::Lower | Self::Length | Self::Number => Some(1),
            Self::Coalesce | Self::Concat => None,
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Part, ExpressionError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(ExpressionError::TooLong { bytes: text.len() });
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let part = parser.part(0)?;
    match parser.peek() {
        Token { word: Word::End, .. } => Ok(part),
        other => Err(other.unexpected("the end, or an operator such as `+`")),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Word {
    Number(f64),
    /// In `'`.
    Text(String),
    /// A name without quotes.
    Name(String),
    /// A name in `"`: always a column.
    Quoted(String),
    Sign(&'static str),
    End,
}

#[derive(Debug, Clone)]
struct Token {
    word: Word,
    /// As it was written.
    text: String,
    position: usize,
}

impl Token {
    fn unexpected(&self, expected: &'static str) -> ExpressionError {
        let (found, position) = (self.text.clone(), self.position);
        ExpressionError::Unexpected { found, position, expected }
    }
}

/// The longer before those that they begin with.
const SIGNS: [&str; 16] =
    ["<=", ">=", "!=", "<>", "==", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", ","];

fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let position = position(text, rest);
        let (word, after) = next_word(rest, position)?;
        let token = rest[..rest.len() - after.len()].to_owned();
        tokens.push(Token { word, text: token, position });
        rest = after.trim_start();
    }
    let position = position(text, "");
    tokens.push(Token { word: Word::End, text: String::new(), position });
    Ok(tokens)
}

/// Where what is left begins, in characters from 1.
fn position(text: &str, rest: &str) -> usize {
    text[..text.len() - rest.len()].chars().count() + 1
}

fn next_word(rest: &str, position: usize) -> Result<(Word, &str), ExpressionError> {
    let first = rest.chars().next().unwrap_or_default();
    if first == '\'' || first == '"' {
        let Some((inside, after)) = quoted(rest, first) else {
            return Err(ExpressionError::Quote { quote: first, position });
        };
        let word = if first == '"' { Word::Quoted(inside) } else { Word::Text(inside) };
        return Ok((word, after));
    }
    if first.is_ascii_digit() || first == '.' {
        let (number, after) = rest.split_at(number_length(rest));
        return match number.parse() {
            Ok(number) => Ok((Word::Number(number), after)),
            Err(_no_number) => {
                let found = number.to_owned();
                let expected = "a number, such as `1000` or `1e-9`";
                Err(ExpressionError::Unexpected { found, position, expected })
            }
        };
    }
    if first.is_alphabetic() || first == '_' {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        return Ok((Word::Name(rest[..end].to_owned()), &rest[end..]));
    }
    match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        Some(sign) => Ok((Word::Sign(sign), &rest[sign.len()..])),
        None => Err(ExpressionError::Unexpected {
            found: first.to_string(),
            position,
            expected: "a number, a 'text', a column (in \"…\" if need be), or a sign such as `+`",
        }),
    }
}

/// What is in quotes, where a quote itself is doubled; and what follows.
fn quoted(rest: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut rest = &rest[1..];
    loop {
        let (before, after) = rest.split_once(quote)?;
        inside.push_str(before);
        match after.strip_prefix(quote) {
            Some(after) => {
                inside.push(quote);
                rest = after;
            }
            None => return Some((inside, after)),
        }
    }
}

/// Digits, a point, and an exponent.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end += 1 + digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    /// The last token is the end, which is never passed.
    fn peek(&self) -> &Token {
        &self.tokens[self.at]
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_there = matches!(&self.peek().word, Word::Sign(found) if *found == sign);
        if is_there {
            self.next();
        }
        is_there
    }

    /// A part, with all operators that bind more than this.
    fn part(&mut self, strength: u8) -> Result<Part, ExpressionError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ExpressionError::TooDeep { position: self.peek().position });
        }
        let mut left = self.operand()?;
        while let Some(operator) = self.operator()
            && operator.strength() > strength
        {
            let position = self.next().position;
            let right = self.part(operator.strength())?;
            let form = Form::Pair(operator, Box::new(left), Box::new(right));
            left = Part { position, form };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operator(&self) -> Option<Operator> {
        match &self.peek().word {
            Word::Sign(sign) => Operator::of(sign),
            Word::Name(name) => Operator::of(&name.to_ascii_lowercase()),
            Word::Number(_) | Word::Text(_) | Word::Quoted(_) | Word::End => None,
        }
    }

    fn operand(&mut self) -> Result<Part, ExpressionError> {
        let token = self.next();
        let form = match &token.word {
            Word::Number(number) => Form::Number(*number),
            Word::Text(text) => Form::Text(text.clone()),
            Word::Quoted(name) => Form::Column(name.clone()),
            Word::Name(name) => self.named(name, &token)?,
            Word::Sign("-") => Form::Negate(Box::new(self.part(NEGATE_STRENGTH)?)),
            Word::Sign("(") => {
                let part = self.part(0)?;
                self.close()?;
                return Ok(part);
            }
            Word::Sign(_) | Word::End => {
                return Err(token.unexpected("a column, a number, a 'text' or a function"));
            }
        };
        Ok(Part { position: token.position, form })
    }

    fn named(&mut self, name: &str, token: &Token) -> Result<Form, ExpressionError> {
        let lower = name.to_ascii_lowercase();
        if self.takes("(") {
            let function = Function::ALL.into_iter().find(|(name, _)| *name == lower);
            let Some((_, function)) = function else {
                return Err(token.unexpected(
                    "one of the functions if, coalesce, concat, lower, length, number, \
                     regex_extract and bucket",
                ));
            };
            return Ok(Form::Call(function, self.arguments(function, token)?));
        }
        match lower.as_str() {
            "null" => Ok(Form::Null),
            "not" => Ok(Form::Not(Box::new(self.part(NOT_STRENGTH - 1)?))),
            "and" | "or" => Err(token.unexpected("a column, a number, a 'text' or a function")),
            _ => Ok(Form::Column(name.to_owned())),
        }
    }

    fn arguments(
        &mut self,
        function: Function,
        token: &Token,
    ) -> Result<Vec<Part>, ExpressionError> {
        let mut arguments = vec![self.part(0)?];
        while self.takes(",") {
            arguments.push(self.part(0)?);
        }
        self.close()?;
        match function.arguments() {
            Some(expected) if expected != arguments.len() => Err(ExpressionError::Arguments {
                function: token.text.clone(),
                position: token.position,
                expected,
                found: arguments.len(),
            }),
            _ => Ok(arguments),
        }
    }

    fn close(&mut self) -> Result<(), ExpressionError> {
        if self.takes(")") { Ok(()) } else { Err(self.peek().unexpected("`)` or an operator")) }
    }
}
