//! Pipelines, commands and operands.

use super::super::format::quote::{quoted, unquote};
use super::super::lex::{Kind, Token};
use super::super::node::{Id, Node, Range, offset};
use super::super::number::Number;
use super::super::value::Str;
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Id> {
        let token = self.peek_non_space();
        let pipe = self.nodes.add(token.pos, Node::Nil);
        let mut declared = Vec::new();
        let assign = self.declarations(context, &mut declared)?;
        let mut commands = Vec::new();
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.backup();
                    let command = self.command()?;
                    commands.push(command);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        if commands.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        for (stage, command) in commands.iter().enumerate().skip(1) {
            let Node::Command(args) = self.nodes.get(*command) else {
                continue;
            };
            if matches!(
                self.nodes.get(args[0]),
                Node::Bool(_) | Node::Dot | Node::Nil | Node::Number(..) | Node::String(..)
            ) {
                return self.error(format!(
                    "non executable command in pipeline stage {}",
                    stage + 1
                ));
            }
        }
        *self.nodes.get_mut(pipe) = Node::Pipe {
            declared,
            assign,
            commands,
        };
        Ok(pipe)
    }

    /// `$x :=`, `$x =`, and in a range `$i, $x :=`. Returns whether it assigns.
    fn declarations(&mut self, context: &str, declared: &mut Vec<Id>) -> Parsed<bool> {
        loop {
            let variable = self.peek_non_space();
            if variable.kind != Kind::Variable {
                return Ok(false);
            }
            self.next();
            let after = self.peek();
            let next = self.peek_non_space();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    self.next_non_space();
                    self.declare(&variable, declared);
                    return Ok(next.kind == Kind::Assign);
                }
                Kind::Char if self.text(&next) == b"," => {
                    self.next_non_space();
                    self.declare(&variable, declared);
                    if context != "range" || declared.len() >= 2 {
                        return self.error(format!("too many declarations in {context}"));
                    }
                    if !matches!(
                        self.peek_non_space().kind,
                        Kind::Variable | Kind::RightDelim | Kind::RightParen
                    ) {
                        return self.error("range can only initialize variables");
                    }
                }
                _ if after.kind == Kind::Space => {
                    self.backup3(variable, after);
                    return Ok(false);
                }
                _ => {
                    self.backup2(variable);
                    return Ok(false);
                }
            }
        }
    }

    fn declare(&mut self, token: &Token, declared: &mut Vec<Id>) {
        let name = self.text(token).to_vec();
        self.unit.visible.push(name);
        let node = self
            .nodes
            .add(token.pos, Node::Variable(vec![range(token.pos, token.end)]));
        declared.push(node);
    }

    fn command(&mut self) -> Parsed<Id> {
        let pos = self.peek_non_space().pos;
        let command = self.nodes.add(pos, Node::Nil);
        let mut args = Vec::new();
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                args.push(operand);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => continue,
                Kind::RightDelim | Kind::RightParen => self.backup(),
                Kind::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        if args.is_empty() {
            return self.error("empty command");
        }
        *self.nodes.get_mut(command) = Node::Command(args);
        Ok(command)
    }

    /// A term and the fields that follow it.
    fn operand(&mut self) -> Parsed<Option<Id>> {
        let Some(term) = self.term()? else {
            return Ok(None);
        };
        let first = self.peek();
        if first.kind != Kind::Field {
            return Ok(Some(term));
        }
        let mut fields = Vec::new();
        while self.peek().kind == Kind::Field {
            let token = self.next();
            fields.push(range(token.pos + 1, token.end));
        }
        // The start of the chain is of no use by itself: its node becomes that of the whole.
        if let Node::Field(names) | Node::Variable(names) = self.nodes.get_mut(term) {
            names.append(&mut fields);
            self.nodes.set_pos(term, first.pos);
            return Ok(Some(term));
        }
        let node = match self.nodes.get(term) {
            Node::Bool(_) | Node::String(..) | Node::Number(..) | Node::Nil | Node::Dot => {
                let words = quoted(&self.nodes.write(term));
                return self.error(format!("unexpected . after term {words}"));
            }
            _ => Node::Chain {
                inner: term,
                fields,
            },
        };
        Ok(Some(self.nodes.add(first.pos, node)))
    }

    fn term(&mut self) -> Parsed<Option<Id>> {
        let token = self.next_non_space();
        let whole = range(token.pos, token.end);
        let node = match token.kind {
            Kind::Identifier => {
                let name = self.text(&token);
                if self.functions.find(name).is_none() {
                    return self.error(format!(
                        "function {} not defined",
                        quoted(&String::from_utf8_lossy(name))
                    ));
                }
                Node::Identifier(whole)
            }
            Kind::Dot => Node::Dot,
            Kind::Nil => Node::Nil,
            Kind::Variable => {
                let name = self.text(&token);
                if !self.unit.visible.iter().any(|known| known == name) {
                    let words = quoted(&String::from_utf8_lossy(name));
                    return self.error(format!("undefined variable {words}"));
                }
                Node::Variable(vec![whole])
            }
            Kind::Field => Node::Field(vec![range(token.pos + 1, token.end)]),
            Kind::Bool => Node::Bool(self.text(&token) == b"true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                let number = self.number(&token);
                match number {
                    Ok(number) => Node::Number(Box::new(number), whole),
                    Err(why) => return self.error(why),
                }
            }
            Kind::LeftParen => {
                let pipe = self.nested("max expression depth exceeded", |p| {
                    p.pipeline("parenthesized pipeline", Kind::RightParen)
                })?;
                return Ok(Some(pipe));
            }
            Kind::String | Kind::RawString => match unquote(self.text(&token)) {
                Some(bytes) => Node::String(whole, Str::from(bytes)),
                None => return self.error("invalid syntax"),
            },
            _ => {
                self.backup();
                return Ok(None);
            }
        };
        Ok(Some(self.nodes.add(token.pos, node)))
    }

    fn number(&self, token: &Token) -> Result<Number, String> {
        let bytes = self.text(token);
        let text = String::from_utf8_lossy(bytes);
        match token.kind {
            Kind::CharConstant => Number::character(bytes),
            Kind::Complex => Number::complex(&text),
            _ => Number::parse(&text),
        }
    }
}

fn range(start: usize, end: usize) -> Range {
    (offset(start), offset(end))
}
