//! Operands: literals, names, calls, lists, maps, and what stands in brackets.

use super::super::error::ExprError;
use super::super::lexer::{Kind, Token};
use super::super::node::{Expr, Node};
use super::{Parsed, Parser};

impl Parser {
    pub(super) fn primary(&mut self) -> Parsed {
        let token = self.current().clone();
        if token.kind == Kind::Operator {
            if let "not" | "!" | "-" | "+" = token.text.as_str() {
                return self.unary(&token);
            }
            if self.predicates > 0 && (token.text == "#" || token.text == ".") {
                let mut name = String::new();
                if token.text == "#" {
                    self.next();
                    if self.current().kind == Kind::Identifier {
                        name = self.next().text;
                    }
                }
                let pointer = self.node(Node::Pointer(name), token.at)?;
                return self.postfix(pointer);
            }
            if token.text == "::" {
                self.next();
                let name = self.next();
                if name.kind != Kind::Identifier {
                    return self.unexpected();
                }
                let call = self.call(&name, None)?;
                return self.postfix(call);
            }
        }
        if token.is_bracket("(") {
            self.next();
            let inner = self.sequence()?;
            self.expect_bracket(")")?;
            return self.postfix(inner);
        }
        self.operand(token)
    }

    fn unary(&mut self, token: &Token) -> Parsed {
        self.next();
        let logical = matches!(token.text.as_str(), "not" | "!");
        let of = Box::new(self.expression(if logical { 50 } else { 90 })?);
        let node = if logical {
            Node::Not(of)
        } else {
            Node::Sign {
                negative: token.text == "-",
                of,
            }
        };
        let node = self.node(node, token.at)?;
        self.postfix(node)
    }

    fn operand(&mut self, token: Token) -> Parsed {
        let node = match token.kind {
            Kind::Identifier => {
                self.next();
                match token.text.as_str() {
                    "true" => return self.node(Node::Bool(true), token.at),
                    "false" => return self.node(Node::Bool(false), token.at),
                    "nil" => return self.node(Node::Nil, token.at),
                    _ if self.current().is_bracket("(") => self.call(&token, None)?,
                    _ => self.node(Node::Ident(token.text), token.at)?,
                }
            }
            Kind::Number => {
                self.next();
                let number = number(&token)?;
                return self.node(number, token.at);
            }
            Kind::String => {
                self.next();
                self.node(Node::Str(token.bytes), token.at)?
            }
            Kind::Bytes => {
                self.next();
                self.node(Node::Bytes(token.bytes), token.at)?
            }
            _ if token.is_bracket("[") => self.array(&token)?,
            _ if token.is_bracket("{") => self.map(&token)?,
            _ => return self.unexpected(),
        };
        self.postfix(node)
    }

    fn array(&mut self, token: &Token) -> Parsed {
        self.next();
        let mut nodes = Vec::new();
        while !self.current().is_bracket("]") {
            if !nodes.is_empty() {
                self.expect_operator(",")?;
                if self.current().is_bracket("]") {
                    break;
                }
            }
            nodes.push(self.expression(0)?);
        }
        self.expect_bracket("]")?;
        self.node(Node::Array(nodes), token.at)
    }

    fn map(&mut self, token: &Token) -> Parsed {
        self.next();
        let mut pairs = Vec::new();
        while !self.current().is_bracket("}") {
            if !pairs.is_empty() {
                self.expect_operator(",")?;
                if self.current().is_bracket("}") {
                    break;
                }
                if self.current().is_operator(",") {
                    return self.unexpected();
                }
            }
            let key = self.key()?;
            self.expect_operator(":")?;
            pairs.push((key, self.expression(0)?));
        }
        self.expect_bracket("}")?;
        self.node(Node::Map(pairs), token.at)
    }

    fn key(&mut self) -> Parsed<Expr> {
        let token = self.current().clone();
        match token.kind {
            Kind::Number | Kind::String | Kind::Identifier => {
                self.next();
                self.node(Node::Str(token.bytes), token.at)
            }
            _ if token.is_bracket("(") => self.expression(0),
            _ => self.fails(format!(
                "a map key must be a quoted string, a number, a identifier, or an expression \
                 enclosed in parentheses (unexpected token {})",
                token.shown()
            )),
        }
    }
}

fn number(token: &Token) -> Parsed<Node> {
    let text = token.text.replace('_', "");
    let lower = text.to_lowercase();
    let invalid = |kind: &str, call: &str| {
        ExprError::compile(
            token.at as usize,
            format!("invalid {kind} literal: strconv.{call}: parsing {text:?}: invalid syntax"),
        )
    };
    let based = |digits: &str, base: u32, kind: &str| {
        i64::from_str_radix(digits, base)
            .map(Node::Int)
            .map_err(|_| invalid(kind, "ParseInt"))
    };
    if let Some(digits) = lower.strip_prefix("0x") {
        return based(digits, 16, "hex");
    }
    if lower.contains(['.', 'e']) {
        return match lower.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Node::Float(number)),
            _ => Err(invalid("float", "ParseFloat")),
        };
    }
    if let Some(digits) = lower.strip_prefix("0b") {
        return based(digits, 2, "binary");
    }
    if let Some(digits) = lower.strip_prefix("0o") {
        return based(digits, 8, "octal");
    }
    based(&lower, 10, "integer")
}
