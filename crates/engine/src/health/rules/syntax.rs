//! The form of a parsed rule.
//!
//! Main types: [`Statement`], a line of a rule file with its block; [`Expr`], what stands in a
//! line. Nothing here reads text or objects.

use crate::types::HealthStatus;

/// Statements are tried from top to bottom; the first verdict that holds decides.
#[derive(Debug)]
pub enum Statement {
    /// `let NAME = EXPR`. Names are numbered from the outermost block on; a block's names end with
    /// it.
    Let(Expr),
    /// `each LIST [as NAME]`: the block is tried for each item, in order.
    Each {
        list: Expr,
        named: bool,
        body: Vec<Statement>,
    },
    /// `if EXPR`: the block is tried only if this holds.
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
    /// A text with `{holes}`.
    Template(Vec<Expr>),
    /// A field of the object.
    Root(String),
    /// The item at hand, `.`.
    Item,
    /// The place of the item at hand, from 1.
    Index,
    /// A name given by `let` or `as`.
    Name(usize),
    Field(Box<Expr>, String),
    Not(Box<Expr>),
    /// The second if the first is neither missing nor false, else missing.
    And(Box<Expr>, Box<Expr>),
    /// The first of both that is neither missing nor false.
    Or(Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    In(Box<Expr>, Vec<Expr>),
    Add(Box<Expr>, Box<Expr>),
    Subtract(Box<Expr>, Box<Expr>),
    /// What goes through the items of a list: the list, what is asked of each item (nothing: the
    /// item itself), and more.
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
    /// With the number of its arguments.
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
