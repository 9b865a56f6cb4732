//! Parses a program's tokens to [`Node`]s and resolves names.
//!
//! Main function: [`parse`]. Precedence from lowest to highest: `|`, `,`, `//`, assignments, `or`,
//! `and`, comparisons, `+ -`, `* / %`, and then terms ([`super::terms`]). Nesting and the number of
//! parts are limited.

use super::{
    JqError, builtins,
    lexer::{Token, tokens},
    node::{Bind, Definition, Hops, Match, Node, Update},
    value::Val,
};
use std::sync::Arc;

/// Deepest nesting.
const MAX_DEPTH: usize = 48;
/// Maximum number of operators, and of steps after terms.
const MAX_PARTS: usize = 1500;

/// What a name refers to.
#[derive(Clone, Debug, PartialEq)]
pub enum Name {
    Function(String, usize),
    Argument(String),
    Variable(String),
    Label(String),
}

pub fn parse(text: &str) -> Result<Node, JqError> {
    let tokens = tokens(text)?;
    let mut parser = Parser::new(&tokens);
    let node = parser.query()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => parser.unexpected(),
    }
}

pub struct Parser<'t> {
    pub tokens: &'t [Token],
    pub at: usize,
    depth: usize,
    parts: usize,
    pub scope: Vec<Name>,
}

pub type Parsed = Result<Node, JqError>;

/// Binary operators, with their precedence.
fn binary(token: &Token) -> Option<(&str, u8)> {
    Some(match token {
        Token::Sign(sign @ "//") => (*sign, 1),
        Token::Sign(sign @ ("=" | "|=" | "+=" | "-=" | "*=" | "/=" | "%=" | "//=")) => (*sign, 2),
        Token::Name(name) if name == "or" => ("or", 3),
        Token::Name(name) if name == "and" => ("and", 4),
        Token::Sign(sign @ ("==" | "!=" | "<" | "<=" | ">" | ">=")) => (*sign, 5),
        Token::Sign(sign @ ("+" | "-")) => (*sign, 6),
        Token::Sign(sign @ ("*" | "/" | "%")) => (*sign, 7),
        _ => return None,
    })
}

impl<'t> Parser<'t> {
    pub fn new(tokens: &'t [Token]) -> Self {
        Self {
            tokens,
            at: 0,
            depth: 0,
            parts: 0,
            scope: Vec::new(),
        }
    }

    pub fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    pub fn next(&mut self) -> Option<&'t Token> {
        let token = self.peek();
        self.at += usize::from(token.is_some());
        token
    }

    /// The error for the next token.
    pub fn unexpected<T>(&self) -> Result<T, JqError> {
        Err(match self.peek() {
            None => JqError::new("unexpected EOF"),
            Some(token) => JqError::new(format!("unexpected token {:?}", token.shown())),
        })
    }

    pub fn sees(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(s)) if *s == sign)
    }

    pub fn takes(&mut self, sign: &str) -> bool {
        let found = self.sees(sign);
        self.at += usize::from(found);
        found
    }

    pub fn takes_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(n)) if n == word);
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, sign: &str) -> Result<(), JqError> {
        if self.takes(sign) {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    pub fn expect_word(&mut self, word: &str) -> Result<(), JqError> {
        if self.takes_word(word) {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    pub fn variable(&mut self) -> Result<String, JqError> {
        match self.peek() {
            Some(Token::Variable(name)) => {
                self.at += 1;
                Ok(name.clone())
            }
            _ => self.unexpected(),
        }
    }

    pub fn enter(&mut self) -> Result<(), JqError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            Err(JqError::new("the expression is nested too deeply"))
        } else {
            Ok(())
        }
    }

    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Counts parts that make the tree deeper without nesting in the text.
    pub fn part(&mut self) -> Result<(), JqError> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            Err(JqError::new("the expression has too many parts"))
        } else {
            Ok(())
        }
    }

    /// Parses with additional names, which are removed afterwards.
    pub fn with<T>(
        &mut self,
        names: impl IntoIterator<Item = Name>,
        parse: impl FnOnce(&mut Self) -> Result<T, JqError>,
    ) -> Result<T, JqError> {
        let before = self.scope.len();
        self.scope.extend(names);
        let parsed = parse(self);
        self.scope.truncate(before);
        parsed
    }

    pub fn resolve(&self, wanted: impl Fn(&Name) -> bool) -> Option<Hops> {
        self.scope.iter().rev().position(wanted)
    }

    /// Pipes, commas and everything below. Bindings extend to its end.
    pub fn query(&mut self) -> Parsed {
        self.enter()?;
        let mut parts = vec![self.comma()?];
        while self.takes("|") {
            self.part()?;
            parts.push(self.comma()?);
        }
        self.leave();
        let last = parts.pop().expect("a list of parts starts with one");
        Ok(parts
            .into_iter()
            .rev()
            .fold(last, |then, first| Node::pipe(first, then)))
    }

    fn comma(&mut self) -> Parsed {
        let mut parts = vec![self.operand()?];
        while self.takes(",") {
            self.part()?;
            parts.push(self.operand()?);
        }
        let last = parts.pop().expect("a list of parts starts with one");
        Ok(parts
            .into_iter()
            .rev()
            .fold(last, |b, a| Node::Comma(Box::new((a, b)))))
    }

    /// An operand of a comma. Definitions, labels and bindings include everything that follows.
    fn operand(&mut self) -> Parsed {
        if self.takes_word("def") {
            return self.definition();
        }
        if self.takes_word("label") {
            let name = self.variable()?;
            self.expect("|")?;
            return Ok(Node::Label(Box::new(
                self.with([Name::Label(name)], Self::query)?,
            )));
        }
        let source = self.expression(0)?;
        if !self.takes_word("as") {
            return Ok(source);
        }
        let (patterns, names) = self.patterns()?;
        self.expect("|")?;
        let body = self.with(names, Self::query)?;
        Ok(Node::Bind(Box::new(Bind {
            source,
            patterns,
            body,
        })))
    }

    /// After `def`.
    fn definition(&mut self) -> Parsed {
        self.enter()?;
        let Some(Token::Name(name)) = self.next() else {
            self.at -= 1;
            return self.unexpected();
        };
        let mut arguments = Vec::new();
        if self.takes("(") {
            loop {
                match self.peek() {
                    Some(Token::Name(name)) => arguments.push((name.clone(), false)),
                    Some(Token::Variable(name)) => arguments.push((name.clone(), true)),
                    _ => return self.unexpected(),
                }
                self.at += 1;
                if !self.takes(";") {
                    break;
                }
            }
            self.expect(")")?;
        }
        self.expect(":")?;
        let function = Name::Function(name.clone(), arguments.len());
        let body = self.with([function.clone()], |parser| {
            parser.body(&arguments, Self::query)
        })?;
        self.expect(";")?;
        let rest = self.with([function], Self::query)?;
        self.leave();
        Ok(Node::Define(Arc::new(Definition { body }), Box::new(rest)))
    }

    /// The body of a function: its arguments are bound as functions, and those with a `$` also as
    /// variables.
    pub fn body(
        &mut self,
        arguments: &[(String, bool)],
        parse: impl FnOnce(&mut Self) -> Parsed,
    ) -> Parsed {
        let values: Vec<&String> = arguments
            .iter()
            .filter(|(_, value)| *value)
            .map(|(name, _)| name)
            .collect();
        let closures = arguments
            .iter()
            .map(|(name, _)| Name::Argument(name.clone()));
        let variables = values.iter().map(|name| Name::Variable((*name).clone()));
        let body = self.with(closures.chain(variables), parse)?;
        Ok(values
            .iter()
            .enumerate()
            .rev()
            .fold(body, |body, (bound, name)| {
                let place = arguments
                    .iter()
                    .rposition(|(n, _)| n == *name)
                    .expect("it is one of the arguments");
                let source = Node::Argument(arguments.len() - 1 - place + bound);
                Node::Bind(Box::new(Bind {
                    source,
                    patterns: vec![vec![Match::Bind]],
                    body,
                }))
            }))
    }

    pub fn expression(&mut self, weakest: u8) -> Parsed {
        let mut left = self.term()?;
        let mut strongest = u8::MAX;
        while let Some((operator, strength)) = self.peek().and_then(binary) {
            if strength < weakest {
                break;
            }
            if strength > strongest {
                return self.unexpected();
            }
            self.at += 1;
            self.part()?;
            // `//` is right-associative, the others take operands of higher precedence.
            let right = if strength == 1 {
                self.enter()?;
                let right = self.expression(1)?;
                self.leave();
                right
            } else {
                self.expression(strength + 1)?
            };
            left = combine(operator, left, right);
            strongest = if matches!(strength, 2 | 5) {
                strength - 1
            } else {
                strength
            };
        }
        Ok(left)
    }

    /// A call by name: of an argument, a function of the program, or a builtin.
    pub fn call(&mut self, name: &str, arguments: Vec<Node>) -> Parsed {
        let count = arguments.len();
        let found = self.resolve(|known| match known {
            Name::Function(n, c) => n == name && *c == count,
            Name::Argument(n) => n == name && count == 0,
            _ => false,
        });
        if let Some(hops) = found {
            return Ok(match &self.scope[self.scope.len() - 1 - hops] {
                Name::Argument(_) => Node::Argument(hops),
                _ => Node::Call(hops, arguments.into()),
            });
        }
        match builtins::find(name, arguments)? {
            Some(node) => Ok(node),
            None => Err(JqError::new(format!(
                "function not defined: {name}/{count}"
            ))),
        }
    }
}

fn combine(operator: &str, left: Node, right: Node) -> Node {
    let truth = |value: bool| Node::Const(Val::Bool(value));
    let both = |left, right| Box::new((left, right));
    match operator {
        "//" => Node::Alternative(both(left, right)),
        "or" => Node::condition(
            left,
            truth(true),
            Node::condition(right, truth(true), truth(false)),
        ),
        "and" => Node::condition(
            left,
            Node::condition(right, truth(true), truth(false)),
            truth(false),
        ),
        "=" => match left.known_path() {
            Some(path) => Node::call(
                builtins::native("setpath", 2),
                [Node::Const(Val::list(path)), right],
            ),
            None => Node::Update(Update::Set, both(left, right)),
        },
        "|=" => Node::Update(Update::Modify, both(left, right)),
        operator => match operator
            .strip_suffix('=')
            .filter(|o| !matches!(*o, "=" | "!" | "<" | ">"))
        {
            Some(operator) => Node::Update(
                Update::With(builtins::operator(operator)),
                both(left, right),
            ),
            None => Node::call(builtins::operator(operator), [left, right]),
        },
    }
}
