//! Terms: the operands of operators, with the keys, slices and `?` that follow them.
//!
//! Main function: [`Parser::term`].

use super::{
    JqError, builtins,
    lexer::{self, Token},
    node::{Fold, Node},
    parser::{Name, Parsed, Parser},
    value::{Map, Val},
};

const KEYWORDS: &[&str] = &[
    "or", "and", "module", "import", "include", "def", "as", "label", "break", "if", "then",
    "elif", "else", "end", "try", "catch", "reduce", "foreach",
];

impl Parser<'_> {
    /// A term with everything that follows it.
    pub fn term(&mut self) -> Parsed {
        // `?` after parentheses suppresses all errors inside them.
        let mut grouped = self.sees("(");
        let mut term = self.start()?;
        loop {
            match self.peek() {
                Some(Token::Field(name)) => {
                    self.at += 1;
                    term = Node::Field(Box::new(term), Val::text(name.as_str()));
                }
                Some(Token::Sign("."))
                    if matches!(self.tokens.get(self.at + 1), Some(Token::Sign("["))) =>
                {
                    self.at += 1
                }
                Some(Token::Sign("."))
                    if matches!(self.tokens.get(self.at + 1), Some(Token::TextStart)) =>
                {
                    self.at += 1;
                    let key = self.string(None)?;
                    term = index(term, key);
                }
                Some(Token::Sign("[")) => {
                    self.at += 1;
                    term = self.brackets(term)?;
                }
                Some(Token::Sign("?")) => {
                    self.at += 1;
                    term = if grouped {
                        Node::Try(Box::new((term, None)))
                    } else {
                        optional(term)
                    };
                }
                _ => return Ok(term),
            }
            grouped = false;
            self.part()?;
        }
    }

    fn start(&mut self) -> Parsed {
        match self.peek() {
            Some(Token::TextStart) => return self.string(None),
            Some(Token::Field(_)) => return Ok(Node::Identity),
            _ => {}
        }
        let start = self.at;
        match self.next() {
            Some(Token::Sign(".")) => match self.peek() {
                Some(Token::TextStart) => Ok(index(Node::Identity, self.string(None)?)),
                _ => Ok(Node::Identity),
            },
            Some(Token::Sign("..")) => self.call("recurse", Vec::new()),
            Some(Token::Number(number)) => Ok(Node::Const(lexer::number(number))),
            Some(Token::Variable(name)) if name == "ENV" => self.call("env", Vec::new()),
            Some(Token::Variable(name)) => {
                match self.resolve(|n| matches!(n, Name::Variable(n) if n == name)) {
                    Some(hops) => Ok(Node::Var(hops)),
                    None => Err(JqError::new(format!("variable not defined: ${name}"))),
                }
            }
            Some(Token::Format(name)) => {
                let format = builtins::format(name)?;
                match self.peek() {
                    Some(Token::TextStart) => self.string(Some(format)),
                    _ => Ok(format),
                }
            }
            Some(Token::Sign(sign @ ("+" | "-"))) => {
                self.enter()?;
                let of = self.term()?;
                self.leave();
                Ok(match (&of, *sign) {
                    (Node::Const(value), "-") if value.is_number() => {
                        match super::number::negate(value) {
                            Ok(value) => Node::Const(value),
                            Err(_) => of,
                        }
                    }
                    (_, "-") => Node::pipe(of, Node::call(builtins::native("_negate", 0), [])),
                    _ => Node::pipe(of, Node::call(builtins::native("_plus", 0), [])),
                })
            }
            Some(Token::Sign("(")) => {
                let inner = self.query()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(Token::Sign("[")) if self.takes("]") => Ok(Node::Const(Val::list(Vec::new()))),
            Some(Token::Sign("[")) => {
                let inner = self.query()?;
                self.expect("]")?;
                Ok(Node::Array(Box::new(inner)))
            }
            Some(Token::Sign("{")) => self.object(),
            Some(Token::Name(name)) => self.named(name, start),
            _ => {
                self.at = start;
                self.unexpected()
            }
        }
    }

    fn named(&mut self, name: &str, start: usize) -> Parsed {
        match name {
            "true" => return Ok(Node::Const(Val::Bool(true))),
            "false" => return Ok(Node::Const(Val::Bool(false))),
            "null" => return Ok(Node::Const(Val::Null)),
            "if" => return self.condition(),
            "try" => {
                self.enter()?;
                let body = self.term()?;
                let handler = if self.takes_word("catch") {
                    Some(self.term()?)
                } else {
                    None
                };
                self.leave();
                return Ok(Node::Try(Box::new((body, handler))));
            }
            "reduce" | "foreach" => return self.fold(name == "reduce"),
            "break" => {
                let label = self.variable()?;
                let found = self.resolve(|n| matches!(n, Name::Label(n) if *n == label));
                return found
                    .map(Node::Break)
                    .ok_or_else(|| JqError::new(format!("label not defined: ${label}")));
            }
            name if KEYWORDS.contains(&name) => {
                self.at = start;
                return self.unexpected();
            }
            _ => {}
        }
        let mut arguments = Vec::new();
        if self.takes("(") {
            arguments.push(self.query()?);
            while self.takes(";") {
                arguments.push(self.query()?);
            }
            self.expect(")")?;
        }
        self.call(name, arguments)
    }

    /// After `if` or `elif`.
    fn condition(&mut self) -> Parsed {
        self.part()?;
        let condition = self.query()?;
        self.expect_word("then")?;
        let then = self.query()?;
        self.enter()?;
        let otherwise = if self.takes_word("elif") {
            self.condition()?
        } else {
            let otherwise = if self.takes_word("else") {
                self.query()?
            } else {
                Node::Identity
            };
            self.expect_word("end")?;
            otherwise
        };
        self.leave();
        Ok(Node::condition(condition, then, otherwise))
    }

    /// After `reduce` or `foreach`.
    fn fold(&mut self, reduce: bool) -> Parsed {
        self.enter()?;
        let source = self.expression(0)?;
        self.leave();
        self.expect_word("as")?;
        let mut names = Vec::new();
        let pattern = self.pattern(&mut names)?;
        self.expect("(")?;
        let start = self.query()?;
        self.expect(";")?;
        let update = self.with(names.clone(), Self::query)?;
        let extract = match !reduce && self.takes(";") {
            true => self.with(names, Self::query)?,
            false => Node::Identity,
        };
        self.expect(")")?;
        let fold = Box::new(Fold {
            source,
            pattern,
            start,
            update,
            extract,
        });
        Ok(if reduce {
            Node::Reduce(fold)
        } else {
            Node::Foreach(fold)
        })
    }

    /// After `[` that follows a term.
    fn brackets(&mut self, of: Node) -> Parsed {
        if self.takes("]") {
            return Ok(Node::Iterate(Box::new(of)));
        }
        let start = if self.sees(":") {
            None
        } else {
            Some(self.query()?)
        };
        if !self.takes(":") {
            self.expect("]")?;
            return Ok(index(of, start.unwrap_or(Node::Identity)));
        }
        let end = if start.is_some() && self.sees("]") {
            None
        } else {
            Some(self.query()?)
        };
        self.expect("]")?;
        let known = |side: &Option<Node>| match side {
            None => Some(Val::Null),
            Some(Node::Const(value)) if value.is_number() => Some(value.clone()),
            _ => None,
        };
        if let (Some(start), Some(end)) = (known(&start), known(&end)) {
            return Ok(Node::Field(
                Box::new(of),
                Val::fields([("start", start), ("end", end)]),
            ));
        }
        let side = |side: Option<Node>| side.unwrap_or(Node::Const(Val::Null));
        Ok(Node::Slice(Box::new((of, side(end), side(start)))))
    }

    /// A text; the results of its queries are passed through the format.
    pub fn string(&mut self, format: Option<Node>) -> Parsed {
        let format = match format {
            Some(format) => format,
            None => builtins::format("text")?,
        };
        self.expect_text_start()?;
        let mut parts = Vec::new();
        loop {
            match self.next() {
                Some(Token::TextPart(text)) => parts.push(Node::Const(Val::text(text.as_str()))),
                Some(Token::QueryStart) => {
                    self.part()?;
                    let query = self.query()?;
                    match self.next() {
                        Some(Token::QueryEnd) => parts.push(Node::pipe(query, format.clone())),
                        _ => {
                            self.at -= 1;
                            return self.unexpected();
                        }
                    }
                }
                Some(Token::TextEnd) => break,
                _ => return self.unexpected(),
            }
        }
        let whole = parts
            .into_iter()
            .reduce(|a, b| Node::call(builtins::operator("+"), [a, b]));
        Ok(whole.unwrap_or_else(|| Node::Const(Val::text(""))))
    }

    fn expect_text_start(&mut self) -> Result<(), JqError> {
        match self.peek() {
            Some(Token::TextStart) => {
                self.at += 1;
                Ok(())
            }
            _ => self.unexpected(),
        }
    }

    /// After `{`.
    fn object(&mut self) -> Parsed {
        // Values of entries are not queries, which count themselves.
        self.enter()?;
        let mut entries: Vec<(Node, Node)> = Vec::new();
        while !self.takes("}") {
            if !entries.is_empty() {
                self.expect(",")?;
                if self.takes("}") {
                    break;
                }
            }
            self.part()?;
            entries.push(self.entry()?);
        }
        self.leave();
        let known = |node: &Node| match node {
            Node::Const(value) => Some(value.clone()),
            _ => None,
        };
        let constant: Option<Map> = entries
            .iter()
            .map(|(k, v)| Some((known(k)?.as_text()?.into(), known(v)?)))
            .collect();
        Ok(constant.map_or_else(
            || Node::Object(entries.into()),
            |map| Node::Const(Val::map(map)),
        ))
    }

    fn entry(&mut self) -> Result<(Node, Node), JqError> {
        let text = |text: &str| Node::Const(Val::text(text));
        let (key, default) = match self.peek() {
            Some(Token::Variable(name)) => {
                let variable = self.start()?;
                if self.sees(":") {
                    (variable, None)
                } else {
                    (text(name), Some(variable))
                }
            }
            Some(Token::Name(name)) => {
                self.at += 1;
                (
                    text(name),
                    Some(Node::Field(
                        Box::new(Node::Identity),
                        Val::text(name.as_str()),
                    )),
                )
            }
            Some(Token::TextStart) => {
                let key = self.string(None)?;
                (key.clone(), Some(index(Node::Identity, key)))
            }
            Some(Token::Sign("(")) => {
                self.at += 1;
                let key = self.query()?;
                self.expect(")")?;
                (key, None)
            }
            _ => return self.unexpected(),
        };
        if !self.takes(":") {
            return default.map_or_else(|| self.unexpected(), |value| Ok((key, value)));
        }
        let mut value = self.expression(0)?;
        if self.takes("|") {
            let mut parts = vec![value, self.expression(0)?];
            while self.takes("|") {
                parts.push(self.expression(0)?);
            }
            let last = parts.pop().expect("there are two or more");
            value = parts
                .into_iter()
                .rev()
                .fold(last, |then, first| Node::pipe(first, then));
        }
        Ok((key, value))
    }
}

/// A constant key becomes a field; any other is evaluated.
fn index(of: Node, key: Node) -> Node {
    match key {
        Node::Const(key @ (Val::Text(_) | Val::Int(_) | Val::Float(_))) => {
            Node::Field(Box::new(of), key)
        }
        key => Node::Index(Box::new((of, key))),
    }
}

/// `?` after a key or `[]` suppresses errors of that step alone, not of those before it.
fn optional(term: Node) -> Node {
    let alone = |of: Node, step: Node| match of {
        Node::Identity => Node::Try(Box::new((step, None))),
        of => Node::pipe(of, Node::Try(Box::new((step, None)))),
    };
    let here = || Box::new(Node::Identity);
    match term {
        Node::Field(of, key) => alone(*of, Node::Field(here(), key)),
        Node::Iterate(of) => alone(*of, Node::Iterate(here())),
        Node::Index(parts) => alone(parts.0, Node::Index(Box::new((Node::Identity, parts.1)))),
        Node::Slice(parts) => alone(
            parts.0,
            Node::Slice(Box::new((Node::Identity, parts.1, parts.2))),
        ),
        other => Node::Try(Box::new((other, None))),
    }
}
