//! The syntax tree of a rule.
//!
//! Main types: [`Statement`], a line of a rule file with its block; [`Expr`], an expression in a
//! line. Nothing here parses text or reads objects.

use crate::types::HealthStatus;

/// Statements are tried from top to bottom; the first verdict that applies decides.
#[derive(Debug)]
pub enum Statement {
    /// `let NAME = EXPR`. Names are numbered starting with the outermost block; they are in scope
    /// until the end of their block.
    Let(Expr),
    /// `each LIST [as NAME]`: the block is tried for each item, in order.
    Each {
        list: Expr,
        named: bool,
        body: Vec<Statement>,
    },
    /// `if EXPR`: the block is tried only if this is true.
    If { when: Expr, body: Vec<Statement> },
    /// `STATUS [if EXPR][: MESSAGE]`.
    Verdict {
        status: HealthStatus,
        when: Option<Expr>,
        message: Option<Expr>,
    },
}

#[derive(Debug)]
pub enum Expr {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    /// A text with `{expressions}`.
    Template(Vec<Expr>),
    /// A field of the object.
    Root(String),
    /// The current item, `.`.
    Item,
    /// The index of the current item, from 1.
    Index,
    /// A name defined by `let` or `as`.
    Name(usize),
    Field(Box<Expr>, String),
    Not(Box<Expr>),
    /// The second value if the first is neither missing nor false, else missing.
    And(Box<Expr>, Box<Expr>),
    /// The first of the two that is neither missing nor false.
    Or(Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    In(Box<Expr>, Vec<Expr>),
    Add(Box<Expr>, Box<Expr>),
    Subtract(Box<Expr>, Box<Expr>),
    /// A function over the items of a list: the list, the expression evaluated for each item (none:
    /// the item itself), and further arguments.
    OverList {
        what: ListFunction,
        list: Box<Expr>,
        each: Option<Box<Expr>>,
        separator: Option<Box<Expr>>,
    },
    Call(Function, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Different,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// Functions whose second argument is evaluated for each item of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFunction {
    Any,
    All,
    Count,
    Sum,
    First,
    Last,
    Where,
    UpTo,
    Since,
    Sorted,
    Join,
}

impl ListFunction {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "any" => Self::Any,
            "all" => Self::All,
            "count" => Self::Count,
            "sum" => Self::Sum,
            "first" => Self::First,
            "last" => Self::Last,
            "where" => Self::Where,
            "upto" => Self::UpTo,
            "since" => Self::Since,
            "sorted" => Self::Sorted,
            "join" => Self::Join,
            _ => return None,
        })
    }
}

/// Functions of plain values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Empty,
    Lower,
    Number,
    Starts,
    Ends,
    Contains,
    Before,
    After,
    Replace,
    Cut,
}

impl Function {
    /// The function, with the number of its arguments.
    pub fn named(name: &str) -> Option<(Self, usize)> {
        Some(match name {
            "empty" => (Self::Empty, 1),
            "lower" => (Self::Lower, 1),
            "number" => (Self::Number, 1),
            "starts" => (Self::Starts, 2),
            "ends" => (Self::Ends, 2),
            "contains" => (Self::Contains, 2),
            "before" => (Self::Before, 2),
            "after" => (Self::After, 2),
            "replace" => (Self::Replace, 3),
            "cut" => (Self::Cut, 2),
            _ => return None,
        })
    }
}
