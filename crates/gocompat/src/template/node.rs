//! The expressions of a template, and how error texts print them.
//!
//! Main type: [`Nodes`], which holds the expressions of one parsed text together with the text.

use super::format::quote::{quote, quoted};
use super::number::Number;
use super::value::Str;

/// A part of the text: start and end.
pub type Range = (u32, u32);
pub type Id = u32;

#[derive(Debug)]
pub enum Node {
    Pipe {
        declared: Vec<Id>,
        assign: bool,
        commands: Vec<Id>,
    },
    Command(Vec<Id>),
    Identifier(Range),
    /// `.a.b`
    Field(Vec<Range>),
    /// `$a.b`; the first element is the variable with its dollar.
    Variable(Vec<Range>),
    Chain {
        inner: Id,
        fields: Vec<Range>,
    },
    Dot,
    Nil,
    Bool(bool),
    /// In a box, because few nodes need so much room.
    Number(Box<Number>, Range),
    /// The literal and its content.
    String(Range, Str),
    Template {
        name: Str,
        pipe: Option<Id>,
    },
}

/// The expressions of one text.
#[derive(Debug, Default)]
pub struct Nodes {
    /// The name the text was parsed with.
    pub file: String,
    pub text: Vec<u8>,
    list: Vec<(u32, Node)>,
}

impl Nodes {
    pub fn new(file: &str, text: &[u8]) -> Self {
        Self {
            file: file.to_owned(),
            text: text.to_vec(),
            list: Vec::with_capacity(text.len() / 16),
        }
    }

    pub fn add(&mut self, pos: usize, node: Node) -> Id {
        self.list.push((offset(pos), node));
        offset(self.list.len() - 1)
    }

    pub fn get(&self, id: Id) -> &Node {
        &self.list[id as usize].1
    }

    pub fn get_mut(&mut self, id: Id) -> &mut Node {
        &mut self.list[id as usize].1
    }

    pub fn pos(&self, id: Id) -> usize {
        self.list[id as usize].0 as usize
    }

    pub fn set_pos(&mut self, id: Id, pos: usize) {
        self.list[id as usize].0 = offset(pos);
    }

    pub fn slice(&self, range: Range) -> &[u8] {
        &self.text[range.0 as usize..range.1 as usize]
    }

    /// `file:line:column`
    fn location(&self, id: Id) -> String {
        let before = &self.text[..self.pos(id)];
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        let column = before
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(before.len(), |newline| before.len() - newline - 1);
        format!("{}:{line}:{column}", self.file)
    }

    /// The prefix of Go's error for a failure at a node of a template.
    pub fn place(&self, template: &str, id: Id) -> String {
        format!(
            "template: {}: executing {} at <{}>: ",
            self.location(id),
            quoted(template),
            self.write(id)
        )
    }

    /// The expression, as Go prints its nodes.
    pub fn write(&self, id: Id) -> String {
        let mut out = Vec::new();
        self.write_to(id, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    fn write_to(&self, id: Id, out: &mut Vec<u8>) {
        match self.get(id) {
            Node::Pipe {
                declared,
                assign,
                commands,
            } => {
                for (i, variable) in declared.iter().enumerate() {
                    out.extend(if i > 0 { &b", "[..] } else { b"" });
                    self.write_to(*variable, out);
                }
                if !declared.is_empty() {
                    out.extend(if *assign { &b" = "[..] } else { b" := " });
                }
                for (i, command) in commands.iter().enumerate() {
                    out.extend(if i > 0 { &b" | "[..] } else { b"" });
                    self.write_to(*command, out);
                }
            }
            Node::Command(args) => {
                for (i, arg) in args.iter().enumerate() {
                    out.extend(if i > 0 { &b" "[..] } else { b"" });
                    self.write_operand(*arg, out);
                }
            }
            Node::Identifier(name) | Node::Number(_, name) | Node::String(name, _) => {
                out.extend(self.slice(*name))
            }
            Node::Field(names) => self.write_fields(names, out),
            Node::Variable(names) => {
                out.extend(self.slice(names[0]));
                self.write_fields(&names[1..], out);
            }
            Node::Chain { inner, fields } => {
                self.write_operand(*inner, out);
                self.write_fields(fields, out);
            }
            Node::Dot => out.push(b'.'),
            Node::Nil => out.extend(b"nil"),
            Node::Bool(value) => out.extend(if *value { &b"true"[..] } else { b"false" }),
            Node::Template { name, pipe } => {
                out.extend(b"{{template ");
                out.extend(quote(name.as_bytes(), false));
                if let Some(pipe) = pipe {
                    out.push(b' ');
                    self.write_to(*pipe, out);
                }
                out.extend(b"}}");
            }
        }
    }

    /// A pipeline inside a command is in parentheses.
    fn write_operand(&self, id: Id, out: &mut Vec<u8>) {
        let parens = matches!(self.get(id), Node::Pipe { .. });
        out.extend(if parens { &b"("[..] } else { b"" });
        self.write_to(id, out);
        out.extend(if parens { &b")"[..] } else { b"" });
    }

    fn write_fields(&self, names: &[Range], out: &mut Vec<u8>) {
        for name in names {
            out.push(b'.');
            out.extend(self.slice(*name));
        }
    }
}

/// Longer texts are refused before this overflows.
pub fn offset(pos: usize) -> u32 {
    u32::try_from(pos).unwrap_or(u32::MAX)
}
