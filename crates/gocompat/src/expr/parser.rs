//! Parses tokens into a tree.
//!
//! Main function: [`parse`].

mod postfix;
mod primary;

use super::builtins::Builtin;
use super::error::ExprError;
use super::lexer::{Kind, Token, tokens};
use super::node::{BuiltinCall, Expr, Node, Op};

/// Most nodes of a program.
const MAX_NODES: usize = 10_000;
/// Deepest recursion of the parser.
const MAX_NESTING: usize = 120;

pub(super) type Parsed<T = Expr> = Result<T, ExprError>;

pub(super) fn parse(code: &str) -> Parsed {
    let mut parser = Parser {
        tokens: tokens(code)?,
        at: 0,
        predicates: 0,
        nodes: 0,
        nesting: 0,
    };
    let tree = parser.sequence()?;
    if parser.current().kind != Kind::End {
        return parser.unexpected();
    }
    Ok(tree)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// How many predicates are around the current token.
    predicates: usize,
    nodes: usize,
    nesting: usize,
}

impl Parser {
    fn current(&self) -> &Token {
        // The last token is that of the end, and nothing goes beyond it.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.current().clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn fails<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(ExprError::compile(self.current().at as usize, message))
    }

    fn unexpected<T>(&self) -> Parsed<T> {
        self.fails(format!("unexpected token {}", self.current().shown()))
    }

    fn expect(&mut self, kind: Kind, text: &str) -> Parsed<Token> {
        if self.current().is(kind, text) {
            Ok(self.next())
        } else {
            self.unexpected()
        }
    }

    fn expect_bracket(&mut self, text: &str) -> Parsed<Token> {
        self.expect(Kind::Bracket, text)
    }

    fn expect_operator(&mut self, text: &str) -> Parsed<Token> {
        self.expect(Kind::Operator, text)
    }

    fn node(&mut self, node: Node, at: u32) -> Parsed {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return self.fails("compilation failed: expression exceeds maximum allowed nodes");
        }
        Expr::new(node, at)
    }

    /// Expressions with `;` between them.
    fn sequence(&mut self) -> Parsed {
        let first = self.expression(0)?;
        let at = first.at;
        let mut nodes = vec![first];
        while self.current().is_operator(";") {
            self.next();
            if self.current().kind == Kind::End {
                break;
            }
            nodes.push(self.expression(0)?);
        }
        if nodes.len() == 1 {
            return nodes.pop().map_or_else(|| self.unexpected(), Ok);
        }
        self.node(Node::Sequence(nodes), at)
    }

    /// An expression of operators that bind at least as strongly as the precedence.
    fn expression(&mut self, precedence: u16) -> Parsed {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return self.fails("the expression is nested too deeply");
        }
        let parsed = self.any_expression(precedence);
        self.nesting -= 1;
        parsed
    }

    fn any_expression(&mut self, precedence: u16) -> Parsed {
        if precedence == 0 && self.current().is_operator("let") {
            return self.declaration();
        }
        if precedence == 0 && self.current().is_operator("if") {
            return self.if_else();
        }
        let mut left = self.primary()?;
        let mut previous = String::new();
        while self.current().kind == Kind::Operator {
            let Some(operator) = self.operator(precedence)? else {
                break;
            };
            let text = operator.token.text.clone();
            left = self.operation(left, operator, &previous)?;
            previous = text;
        }
        if precedence == 0 {
            left = self.ternary(left)?;
        }
        Ok(left)
    }

    /// The operator at the current token, if it binds strongly enough.
    fn operator(&mut self, precedence: u16) -> Parsed<Option<Operator>> {
        let mut token = self.current().clone();
        let negated = token.is_operator("not");
        if negated {
            token = self.tokens[(self.at + 1).min(self.tokens.len() - 1)].clone();
            let negatable = ["contains", "matches", "startsWith", "endsWith", "in"];
            if !negatable.contains(&token.text.as_str()) {
                self.next();
                return self.unexpected();
            }
        }
        if token.text == "|" {
            return Ok((precedence == 0).then_some(Operator {
                token,
                negated: false,
                binary: None,
            }));
        }
        let found = Op::of(&token.text).filter(|(_, own)| *own >= precedence);
        if found.is_some() && negated {
            self.next();
        }
        Ok(found.map(|binary| Operator {
            token,
            negated,
            binary: Some(binary),
        }))
    }

    fn operation(&mut self, left: Expr, operator: Operator, previous: &str) -> Parsed {
        let token = operator.token;
        self.next();
        let Some((op, own)) = operator.binary else {
            let name = self.current().clone();
            if name.kind != Kind::Identifier {
                return self.unexpected();
            }
            self.next();
            return self.call(&name, Some(left));
        };
        if previous == "??" && op != Op::Coalesce {
            return Err(ExprError::compile(
                token.at as usize,
                format!(
                    "Operator ({}) and coalesce expressions (??) cannot be mixed. Wrap either by \
                     parentheses.",
                    token.text
                ),
            ));
        }
        if op.is_comparison() {
            return self.comparison(left, op, &token, own);
        }
        // Only the power binds to the right.
        let right = self.expression(if op == Op::Power { own } else { own + 1 })?;
        let node = Node::Binary(op, Box::new(left), Box::new(right));
        let binary = self.node(node, token.at)?;
        if operator.negated {
            return self.node(Node::Not(Box::new(binary)), token.at);
        }
        Ok(binary)
    }

    /// `a < b <= c` is `a < b && b <= c`.
    fn comparison(&mut self, left: Expr, op: Op, token: &Token, own: u16) -> Parsed {
        let (mut left, mut op, mut at) = (left, op, token.at);
        let mut all: Option<Expr> = None;
        loop {
            let right = self.expression(own + 1)?;
            let node = Node::Binary(op, Box::new(left), Box::new(right.clone()));
            let one = self.node(node, at)?;
            all = Some(match all {
                None => one,
                Some(before) => {
                    let both = Node::Binary(Op::And, Box::new(before), Box::new(one));
                    self.node(both, at)?
                }
            });
            left = right;
            let current = self.current();
            match Op::of(&current.text) {
                Some((next, _)) if current.kind == Kind::Operator && next.is_comparison() => {
                    (op, at) = (next, current.at);
                    self.next();
                }
                _ => return all.map_or_else(|| self.unexpected(), Ok),
            }
        }
    }

    fn declaration(&mut self) -> Parsed {
        self.next();
        let name = self.current().clone();
        if name.kind != Kind::Identifier {
            return self.unexpected();
        }
        self.next();
        self.expect_operator("=")?;
        let value = self.expression(0)?;
        self.expect_operator(";")?;
        let then = self.sequence()?;
        let node = Node::Let {
            name: name.text,
            value: Box::new(value),
            then: Box::new(then),
        };
        self.node(node, name.at)
    }

    fn if_else(&mut self) -> Parsed {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return self.fails("the expression is nested too deeply");
        }
        let at = self.next().at;
        let condition = self.expression(0)?;
        self.expect_bracket("{")?;
        let then = self.sequence()?;
        self.expect_bracket("}")?;
        self.expect_operator("else")?;
        let otherwise = if self.current().is_operator("if") {
            self.if_else()?
        } else {
            self.expect_bracket("{")?;
            let otherwise = self.sequence()?;
            self.expect_bracket("}")?;
            otherwise
        };
        self.nesting -= 1;
        let node = Node::Condition(Box::new(condition), Box::new(then), Box::new(otherwise));
        self.node(node, at)
    }

    /// `a ? b : c`, `a ?: c`
    fn ternary(&mut self, mut node: Expr) -> Parsed {
        while self.current().is_operator("?") {
            let at = self.next().at;
            let then = if self.current().is_operator(":") {
                node.clone()
            } else {
                self.expression(0)?
            };
            self.expect_operator(":")?;
            let otherwise = self.expression(0)?;
            let condition = Node::Condition(Box::new(node), Box::new(then), Box::new(otherwise));
            node = self.node(condition, at)?;
        }
        Ok(node)
    }

    fn call(&mut self, name: &Token, piped: Option<Expr>) -> Parsed {
        let Some(function) = Builtin::of(&name.text) else {
            let callee = self.node(Node::Ident(name.text.clone()), name.at)?;
            let args = self.arguments(piped)?;
            return self.node(Node::Call(Box::new(callee), args), name.at);
        };
        let args = match function.predicate_args() {
            Some(required) => self.predicate_arguments(piped, required)?,
            None => self.arguments(piped)?,
        };
        let call = BuiltinCall {
            function,
            args,
            map: None,
            throws: false,
            enough: None,
        };
        self.node(Node::Builtin(Box::new(call)), name.at)
    }

    fn arguments(&mut self, piped: Option<Expr>) -> Parsed<Vec<Expr>> {
        let mut args: Vec<Expr> = piped.into_iter().collect();
        let offset = args.len();
        self.expect_bracket("(")?;
        while !self.current().is_bracket(")") {
            if args.len() > offset {
                self.expect_operator(",")?;
            }
            if self.current().is_bracket(")") {
                break;
            }
            args.push(self.expression(0)?);
        }
        self.expect_bracket(")")?;
        Ok(args)
    }

    /// A list, a predicate, and perhaps one more argument.
    fn predicate_arguments(
        &mut self,
        piped: Option<Expr>,
        (required, most): (usize, usize),
    ) -> Parsed<Vec<Expr>> {
        let mut args: Vec<Expr> = piped.into_iter().collect();
        let offset = args.len();
        self.expect_bracket("(")?;
        for index in offset..most {
            if self.current().is_bracket(")") {
                if index >= required {
                    break;
                }
                return self.fails(format!("expected at least {} arguments", most - offset));
            }
            if index > offset {
                self.expect_operator(",")?;
            }
            let arg = if index == 1 {
                self.predicate()?
            } else {
                self.expression(0)?
            };
            args.push(arg);
        }
        if self.current().is_operator(",") {
            self.next();
        }
        self.expect_bracket(")")?;
        Ok(args)
    }

    fn predicate(&mut self) -> Parsed {
        let at = self.current().at;
        let braces = self.current().is_bracket("{");
        self.predicates += 1;
        let body = if braces {
            self.next();
            self.sequence()?
        } else {
            self.expression(0)?
        };
        self.predicates -= 1;
        if braces {
            self.expect_bracket("}")?;
        } else if self.current().is_operator(";") {
            return self.fails("wrap predicate with brackets { and }");
        }
        self.node(Node::Predicate(Box::new(body)), at)
    }
}

/// An operator that continues an expression: a binary one, or a pipe.
struct Operator {
    token: Token,
    negated: bool,
    binary: Option<(Op, u16)>,
}
