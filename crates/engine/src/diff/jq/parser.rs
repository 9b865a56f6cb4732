//! Tokens as an expression. Binding, from loose to tight: `|`, `,`, `//`, `or`, `and`, comparisons, what follows a term.

use super::{JqError, MAX_DEPTH, builtins::Builtin, lexer::Token};
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub enum Expr {
    Identity,
    /// `..`: the value and everything in it.
    Descend,
    Literal(Value),
    /// `[f]`: what `f` gives, as a list.
    List(Box<Expr>),
    /// The value of the first at the key or index that the second gives.
    Index(Box<Expr>, Box<Expr>),
    /// All values of a map or a list.
    Iterate(Box<Expr>),
    /// Errors give nothing.
    Try(Box<Expr>),
    Pipe(Box<Expr>, Box<Expr>),
    Comma(Box<Expr>, Box<Expr>),
    Alternative(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    Call(Builtin, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

pub fn parse(tokens: &[Token]) -> Result<Expr, JqError> {
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let expr = parser.pipe()?;
    match parser.peek() {
        None => Ok(expr),
        Some(token) => Err(unexpected(Some(token))),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

type Parsed = Result<Expr, JqError>;

fn unexpected(token: Option<&Token>) -> JqError {
    match token {
        None => JqError::new("the expression ends too soon"),
        Some(Token::Sign(sign)) => JqError::new(format!("unexpected {sign:?}")),
        Some(Token::Name(name)) => JqError::new(format!("{name:?} is not supported here")),
        Some(other) => JqError::new(format!("unexpected {other:?}")),
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<&'a Token> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(found);
        found
    }

    fn takes_name(&mut self, name: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(n)) if n == name);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), JqError> {
        if self.takes(sign) { Ok(()) } else { Err(unexpected(self.peek())) }
    }

    fn expect_name(&mut self, name: &str) -> Result<(), JqError> {
        if self.takes_name(name) { Ok(()) } else { Err(unexpected(self.peek())) }
    }

    fn pipe(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(JqError::new("the expression is nested too deeply"));
        }
        let mut parts = vec![self.comma()?];
        while self.takes("|") {
            parts.push(self.comma()?);
        }
        self.depth -= 1;
        Ok(join(parts, Expr::Pipe))
    }

    fn comma(&mut self) -> Parsed {
        let mut parts = vec![self.alternative()?];
        while self.takes(",") {
            parts.push(self.alternative()?);
        }
        Ok(join(parts, Expr::Comma))
    }

    fn alternative(&mut self) -> Parsed {
        let mut parts = vec![self.or()?];
        while self.takes("//") {
            parts.push(self.or()?);
        }
        Ok(join(parts, Expr::Alternative))
    }

    fn or(&mut self) -> Parsed {
        let mut parts = vec![self.and()?];
        while self.takes_name("or") {
            parts.push(self.and()?);
        }
        Ok(join(parts, Expr::Or))
    }

    fn and(&mut self) -> Parsed {
        let mut parts = vec![self.comparison()?];
        while self.takes_name("and") {
            parts.push(self.comparison()?);
        }
        Ok(join(parts, Expr::And))
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.postfix()?;
        let Some(Token::Sign(sign)) = self.peek() else { return Ok(left) };
        let comparison = match *sign {
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            "+" | "-" => return Err(JqError::new("arithmetic is not supported")),
            _ => return Ok(left),
        };
        self.at += 1;
        Ok(Expr::Compare(comparison, Box::new(left), Box::new(self.postfix()?)))
    }

    fn postfix(&mut self) -> Parsed {
        let mut expr = self.term()?;
        loop {
            expr = match self.peek() {
                Some(Token::Field(name)) => {
                    self.at += 1;
                    index(expr, Expr::Literal(name.as_str().into()))
                }
                // `.[0]` and `.a.[0]`
                Some(Token::Dot) if matches!(self.tokens.get(self.at + 1), Some(Token::Sign("["))) => {
                    self.at += 1;
                    continue;
                }
                Some(Token::Sign("[")) => {
                    self.at += 1;
                    self.brackets(expr)?
                }
                Some(Token::Sign("?")) => {
                    self.at += 1;
                    optional(expr)
                }
                _ => return Ok(expr),
            };
        }
    }

    /// What follows `[` behind a term.
    fn brackets(&mut self, of: Expr) -> Parsed {
        if self.takes("]") {
            return Ok(Expr::Iterate(Box::new(of)));
        }
        let key = self.pipe()?;
        if matches!(self.peek(), Some(Token::Sign(":"))) {
            return Err(JqError::new("slices are not supported"));
        }
        self.expect("]")?;
        Ok(index(of, key))
    }

    fn term(&mut self) -> Parsed {
        match self.next() {
            Some(Token::Dot) => Ok(Expr::Identity),
            Some(Token::DotDot) => Ok(Expr::Descend),
            Some(Token::Field(name)) => Ok(index(Expr::Identity, Expr::Literal(name.as_str().into()))),
            Some(Token::Text(text)) => Ok(Expr::Literal(text.as_str().into())),
            Some(Token::Number(number)) => Ok(Expr::Literal(number.clone().into())),
            Some(Token::Sign("-")) => match self.next() {
                Some(Token::Number(number)) => negative(number),
                other => Err(unexpected(other)),
            },
            Some(Token::Sign("(")) => {
                let inner = self.pipe()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(Token::Sign("[")) if self.takes("]") => Ok(Expr::Literal(json!([]))),
            Some(Token::Sign("[")) => {
                let inner = self.pipe()?;
                self.expect("]")?;
                Ok(Expr::List(Box::new(inner)))
            }
            Some(Token::Sign("{")) if self.takes("}") => Ok(Expr::Literal(json!({}))),
            Some(Token::Sign("{")) => Err(JqError::new("building objects is not supported")),
            Some(Token::Name(name)) => self.named(name),
            other => Err(unexpected(other)),
        }
    }

    fn named(&mut self, name: &str) -> Parsed {
        match name {
            "true" => return Ok(Expr::Literal(true.into())),
            "false" => return Ok(Expr::Literal(false.into())),
            "null" => return Ok(Expr::Literal(Value::Null)),
            "if" => return self.condition(),
            _ => {}
        }
        let mut arguments = Vec::new();
        if self.takes("(") {
            arguments.push(self.pipe()?);
            while self.takes(";") {
                arguments.push(self.pipe()?);
            }
            self.expect(")")?;
        }
        let builtin = Builtin::find(name, arguments.len());
        let builtin = builtin.ok_or_else(|| JqError::new(format!("{name}/{} is not supported", arguments.len())))?;
        Ok(Expr::Call(builtin, arguments))
    }

    /// What follows `if`.
    fn condition(&mut self) -> Parsed {
        let condition = self.pipe()?;
        self.expect_name("then")?;
        let then = self.pipe()?;
        let otherwise = if self.takes_name("elif") {
            self.condition()?
        } else {
            let otherwise = if self.takes_name("else") { self.pipe()? } else { Expr::Identity };
            self.expect_name("end")?;
            otherwise
        };
        Ok(Expr::If(Box::new(condition), Box::new(then), Box::new(otherwise)))
    }
}

fn index(of: Expr, key: Expr) -> Expr {
    Expr::Index(Box::new(of), Box::new(key))
}

/// `?` behind a key or `[]` forgives that step alone, not those before it.
fn optional(expr: Expr) -> Expr {
    let step = |of: Box<Expr>, step: Expr| Expr::Pipe(of, Box::new(Expr::Try(Box::new(step))));
    match expr {
        Expr::Iterate(of) => step(of, Expr::Iterate(Box::new(Expr::Identity))),
        Expr::Index(of, key) if matches!(*key, Expr::Literal(_)) => step(of, index(Expr::Identity, *key)),
        other => Expr::Try(Box::new(other)),
    }
}

fn negative(number: &serde_json::Number) -> Parsed {
    let value = number.as_i64().map(|n| json!(-n)).or_else(|| number.as_f64().map(|n| json!(-n)));
    value.map(Expr::Literal).ok_or_else(|| JqError::new(format!("-{number} is not a number")))
}

/// Joins from the right, as a pipe binds.
fn join(mut parts: Vec<Expr>, with: fn(Box<Expr>, Box<Expr>) -> Expr) -> Expr {
    let last = parts.pop().expect("a list of parts starts with one");
    parts.into_iter().rev().fold(last, |right, left| with(Box::new(left), Box::new(right)))
}
