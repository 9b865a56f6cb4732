//! The executable form of a program: names are resolved to the number of bindings up.
//!
//! Main type: [`Node`]. The parser creates it in one pass; the machine walks it without recursion.

use super::{builtins::Native, value::Val};
use std::sync::Arc;

/// How many bindings up in the environment.
pub type Hops = usize;

#[derive(Clone, Debug)]
pub enum Node {
    Identity,
    Const(Val),
    Pipe(Box<(Node, Node)>),
    Comma(Box<(Node, Node)>),
    /// `a // b`
    Alternative(Box<(Node, Node)>),
    /// The value of a term at a constant key.
    Field(Box<Node>, Val),
    /// The value of the first at the key that the second produces.
    Index(Box<(Node, Node)>),
    /// `.[start:end]` of the first; followed by the end and the start.
    Slice(Box<(Node, Node, Node)>),
    Iterate(Box<Node>),
    Array(Box<Node>),
    Object(Box<[(Node, Node)]>),
    If(Box<(Node, Node, Node)>),
    Try(Box<(Node, Option<Node>)>),
    Reduce(Box<Fold>),
    Foreach(Box<Fold>),
    Bind(Box<Bind>),
    Var(Hops),
    Define(Arc<Definition>, Box<Node>),
    /// A function of the program.
    Call(Hops, Box<[Node]>),
    /// An argument of the enclosing function.
    Argument(Hops),
    /// A function written in jq, by its index in the prelude.
    Prelude(usize, Box<[Node]>),
    /// A native function or operator; the arguments are evaluated first, the last one outermost.
    Native(&'static Native, Box<[Node]>),
    Label(Box<Node>),
    Break(Hops),
    Path(Box<Node>),
    GetPath(Box<Node>),
    Empty,
    Range(Box<[Node; 3]>),
    Last(Box<Node>),
    Update(Update, Box<(Node, Node)>),
}

/// How an assignment computes the new values.
#[derive(Clone, Copy, Debug)]
pub enum Update {
    /// `=`
    Set,
    /// `|=`
    Modify,
    /// `+=` and the like
    With(&'static Native),
}

#[derive(Clone, Debug)]
pub struct Fold {
    pub source: Node,
    pub pattern: Vec<Match>,
    pub start: Node,
    pub update: Node,
    pub extract: Node,
}

/// `source as pattern ?// pattern | body`
#[derive(Clone, Debug)]
pub struct Bind {
    pub source: Node,
    pub patterns: Vec<Vec<Match>>,
    pub body: Node,
}

/// One step of destructuring; there is a stack of the open lists and maps.
#[derive(Clone, Debug)]
pub enum Match {
    Open,
    Element(i64),
    Field(Val),
    /// The key is computed from the open value.
    Computed(Node),
    Close,
    Bind,
    /// With several patterns: collects the variables of all (null for those of other patterns) in
    /// the environment before the pattern.
    Gather {
        skip: usize,
        from: Vec<Option<Hops>>,
    },
}

/// A function of a program: `def name(arguments): body;`. The body's bindings are above it and its
/// arguments.
#[derive(Clone, Debug)]
pub struct Definition {
    pub body: Node,
}

impl Node {
    pub fn call(native: &'static Native, arguments: impl IntoIterator<Item = Node>) -> Self {
        Self::Native(native, arguments.into_iter().collect())
    }

    pub fn pipe(first: Node, then: Node) -> Self {
        Self::Pipe(Box::new((first, then)))
    }

    pub fn condition(condition: Node, then: Node, otherwise: Node) -> Self {
        Self::If(Box::new((condition, then, otherwise)))
    }

    /// The path of a term that consists only of constant keys.
    pub fn known_path(&self) -> Option<Vec<Val>> {
        let mut path = Vec::new();
        let mut node = self;
        while let Self::Field(of, key) = node {
            path.push(key.clone());
            node = of;
        }
        path.reverse();
        (matches!(node, Self::Identity) && !path.is_empty()).then_some(path)
    }
}
