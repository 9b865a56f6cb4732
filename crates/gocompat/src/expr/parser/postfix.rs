//! What follows an operand: `.name`, `?.name`, `[index]`, `[from:to]`.

use super::super::lexer::{Kind, Token, is_alphabetic};
use super::super::node::{Expr, Node};
use super::{Parsed, Parser};

impl Parser {
    pub(super) fn postfix(&mut self, mut node: Expr) -> Parsed {
        loop {
            let token = self.current().clone();
            let optional = token.is_operator("?.");
            if optional || token.is_operator(".") {
                self.next();
                if optional && self.current().is_bracket("[") {
                    node = self.index(node, true)?;
                } else {
                    node = self.member(node, optional)?;
                }
            } else if token.is_bracket("[") {
                node = self.index(node, false)?;
            } else {
                return Ok(node);
            }
        }
    }

    fn member(&mut self, node: Expr, optional: bool) -> Parsed {
        let name = self.next();
        if !is_name(&name) {
            return self.fails("expected name");
        }
        let property = self.node(Node::Str(name.bytes.clone()), name.at)?;
        // The chain goes on after the member.
        let (base, chained) = match node {
            Expr {
                node: Node::Chain(inner),
                ..
            } => (inner, true),
            node => (Box::new(node), false),
        };
        let method = self.current().is_bracket("(");
        let member = Node::Member {
            of: base,
            property: Box::new(property),
            optional,
            method,
        };
        let mut node = self.node(member, name.at)?;
        if method {
            let args = self.arguments(None)?;
            node = self.node(Node::Call(Box::new(node), args), name.at)?;
        }
        if chained || optional {
            node = self.node(Node::Chain(Box::new(node)), name.at)?;
        }
        Ok(node)
    }

    fn index(&mut self, node: Expr, optional: bool) -> Parsed {
        let at = self.next().at;
        let of = Box::new(node);
        let mut from = None;
        if !self.current().is_operator(":") {
            let index = self.expression(0)?;
            if !self.current().is_operator(":") {
                let member = Node::Member {
                    of,
                    property: Box::new(index),
                    optional,
                    method: false,
                };
                let mut node = self.node(member, at)?;
                if optional {
                    node = self.node(Node::Chain(Box::new(node)), at)?;
                }
                self.expect_bracket("]")?;
                return Ok(node);
            }
            from = Some(Box::new(index));
        }
        self.next();
        let to = if self.current().is_bracket("]") {
            None
        } else {
            Some(Box::new(self.expression(0)?))
        };
        self.expect_bracket("]")?;
        self.node(Node::Slice { of, from, to }, at)
    }
}

/// Whether a token can name a member: operators like `not` can, too.
fn is_name(token: &Token) -> bool {
    match token.kind {
        Kind::Identifier => true,
        Kind::Operator => token.text.starts_with(is_alphabetic),
        _ => false,
    }
}
