//! The compact executable form of a template.
//!
//! Main types: [`Template`] and its instructions [`Op`]. Variables are numbered slots, functions
//! are indexes, and each instruction that can fail refers to its node, so that errors name the same
//! location as Go's.

use super::node::{Id, Nodes, Range};
use super::number::Number;
use super::types::{IntKind, Type, UintKind};
use super::value::{Str, Value};
use std::sync::Arc;

/// A named template.
#[derive(Debug)]
pub struct Template {
    pub(super) name: String,
    pub(super) nodes: Arc<Nodes>,
    pub(super) ops: Vec<Op>,
    pub(super) constants: Vec<Constant>,
    pub(super) slots: usize,
    /// Only space and comments: it does not replace another template.
    pub(super) blank: bool,
}

impl Template {
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The slot of the value that a template was called with, and of `$`.
pub(super) const DOT: u16 = 0;
pub(super) const ROOT: u16 = 1;

/// A value that is part of a template; shared between threads.
#[derive(Clone, Debug)]
pub(super) enum Constant {
    Nil,
    Bool(bool),
    Int(IntKind, i64),
    Uint(UintKind, u64),
    Float(f64),
    Complex(f64, f64),
    String(Str),
    /// A typed nil.
    Zero(Type),
}

impl Constant {
    pub fn value(&self) -> Value {
        match self {
            Constant::Nil => Value::Nil,
            Constant::Bool(b) => Value::Bool(*b),
            Constant::Int(kind, i) => Value::Int(*kind, *i),
            Constant::Uint(kind, u) => Value::Uint(*kind, *u),
            Constant::Float(f) => Value::Float(*f),
            Constant::Complex(re, im) => Value::Complex(*re, *im),
            Constant::String(s) => Value::String(s.clone()),
            Constant::Zero(kind) => kind.zero(),
        }
    }
}

/// An argument of a method, whose parameter types are known only at run time.
#[derive(Clone, Debug)]
pub(super) enum Literal {
    Nil,
    Bool(bool),
    Number(Number),
    String(Str),
}

/// The start of a chain of fields.
#[derive(Clone, Copy, Debug)]
pub(super) enum Base {
    Slot(u16),
    Stack,
}

/// One instruction of the machine. `at` is the node that Go considers current from then on.
#[derive(Debug)]
pub(super) enum Op {
    /// Writes a part of the text.
    Text(Range),
    /// Pops a value and writes it.
    Print {
        at: Id,
    },
    Pop,
    /// Removes the value below the top.
    DropBelow,
    Constant {
        at: Id,
        index: u32,
    },
    /// Pushes a slot; `strip` unwraps its interface.
    Slot {
        at: Id,
        slot: u16,
        strip: bool,
    },
    /// Makes a node the current one.
    At(Id),
    /// Fails with an error that was known when the template was parsed.
    Fail {
        at: Option<Id>,
        why: Box<str>,
    },
    /// Follows fields (part of the node's names, `from..to`).
    Fields {
        at: Option<Id>,
        node: Id,
        base: Base,
        from: u16,
        to: u16,
        strip: bool,
    },
    /// The last field of a chain, with arguments: pops the receiver, finds its method.
    Bind {
        node: Id,
        name: Range,
        args: u16,
        piped: bool,
        end: u32,
    },
    /// Checks the argument on top against the bound method's parameter.
    BoundArg {
        index: u16,
    },
    /// Pushes a literal, converted to the bound method's parameter type. In a box, because all
    /// instructions take the room of the largest.
    BoundLiteral {
        at: Id,
        index: u16,
        literal: Box<Literal>,
    },
    CallBound {
        node: Id,
        args: u16,
        piped: bool,
        strip: bool,
    },
    /// Checks the top against a type.
    Check(Type),
    Call {
        at: Id,
        function: u32,
        args: u16,
        piped: bool,
        strip: bool,
    },
    /// Jumps if the truth of the top equals this, and keeps it; otherwise pops it, unless it is the
    /// last.
    Short {
        on: bool,
        last: bool,
        end: u32,
    },
    /// Stores the top without popping it.
    Store {
        slot: u16,
    },
    Jump(u32),
    JumpUnless(u32),
    /// Pops a value: if it is true, stores it as the dot and continues.
    With {
        slot: u16,
        otherwise: u32,
    },
    Range {
        variables: u8,
        otherwise: u32,
    },
    Next {
        dot: u16,
        index: Option<u16>,
        element: Option<u16>,
        end: u32,
    },
    /// Leaves the innermost loop.
    Break(u32),
    FindTemplate {
        node: Id,
    },
    EnterTemplate,
    Return,
}
