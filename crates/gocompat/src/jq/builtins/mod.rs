//! The builtin functions: those that are nodes of the machine, those written in jq, and native
//! ones.
//!
//! Main functions: [`find`], [`operator`] and [`format`]; main type: [`Native`].

mod dates;
mod formats;
mod lists;
mod math;
mod regexp;
mod strings;
mod values;

use super::{
    JqError,
    budget::Budget,
    fault::{Out, fail},
    node::{Node, Update},
    prelude,
    text::{described, preview},
    value::Val,
};

type Run = fn(&mut Budget, &Val, &[Val]) -> Out;

/// A native function of the input and the arguments.
#[derive(Debug)]
pub struct Native {
    pub name: &'static str,
    arity: usize,
    /// Whether it reads its whole input, not only the top level.
    deep: bool,
    run: Run,
}

impl Native {
    const fn flat(name: &'static str, arity: usize, run: Run) -> Self {
        Self {
            name,
            arity,
            deep: false,
            run,
        }
    }

    const fn deep(name: &'static str, arity: usize, run: Run) -> Self {
        Self {
            name,
            arity,
            deep: true,
            run,
        }
    }

    pub fn call(&self, budget: &mut Budget, input: &Val, arguments: &[Val]) -> Out {
        if self.deep {
            budget.walk(input)?;
            arguments
                .iter()
                .try_for_each(|argument| budget.walk(argument))?;
        }
        let value = (self.run)(budget, input, arguments)?;
        budget.made(&value)?;
        Ok(value)
    }
}

const TABLES: &[&[Native]] = &[
    values::TABLE,
    values::OPERATORS,
    lists::TABLE,
    strings::TABLE,
    formats::TABLE,
    math::TABLE,
    regexp::TABLE,
    dates::TABLE,
];

fn known(name: &str, arity: usize) -> Option<&'static Native> {
    TABLES
        .iter()
        .copied()
        .flatten()
        .find(|native| native.name == name && native.arity == arity)
}

/// A function that is known to be in the tables.
pub fn native(name: &str, arity: usize) -> &'static Native {
    known(name, arity).expect("the tables hold what the language itself needs")
}

pub fn operator(sign: &str) -> &'static Native {
    let found = values::OPERATORS.iter().find(|native| native.name == sign);
    found.expect("the table holds every operator of the grammar")
}

/// The node for `@name`. An unknown format fails when it is used.
pub fn format(name: &str) -> Result<Node, JqError> {
    Ok(match name {
        "text" => Node::call(native("tostring", 0), []),
        "json" => Node::call(native("tojson", 0), []),
        name => match formats::TABLE
            .iter()
            .find(|native| native.name.strip_prefix('@') == Some(name))
        {
            Some(format) => Node::call(format, []),
            None => Node::call(native("format", 1), [Node::Const(Val::text(name))]),
        },
    })
}

/// Functions that need something that is not available here.
const REFUSED: &[(&str, usize, &str)] = &[
    ("input", 0, "input(s)/0 is not allowed"),
    ("inputs", 0, "input(s)/0 is not allowed"),
    (
        "now",
        0,
        "now/0 is not supported: an expression has no clock",
    ),
    (
        "modulemeta",
        0,
        "modulemeta/0 is not supported: there are no modules",
    ),
];

/// Functions of numbers that are not needed to select fields.
const SPECIAL: &[(&str, usize)] = &[
    ("gamma", 0),
    ("lgamma", 0),
    ("tgamma", 0),
    ("erf", 0),
    ("erfc", 0),
    ("j0", 0),
    ("j1", 0),
    ("y0", 0),
    ("y1", 0),
    ("jn", 2),
    ("yn", 2),
];

/// A call of a builtin function.
pub fn find(name: &str, arguments: Vec<Node>) -> Result<Option<Node>, JqError> {
    let arity = arguments.len();
    if SPECIAL.contains(&(name, arity)) {
        return Err(JqError::new(format!("{name}/{arity} is not supported")));
    }
    if let Some((.., why)) = REFUSED
        .iter()
        .find(|(refused, count, _)| *refused == name && *count == arity)
    {
        return Err(JqError::new(*why));
    }
    if name == "builtins" && arity == 0 {
        return Ok(Some(Node::Const(all_names())));
    }
    let arguments = match composed(name, arguments) {
        Ok(node) => return Ok(Some(node)),
        Err(arguments) => arguments,
    };
    if let Some(place) = prelude::place(name, arity) {
        return Ok(Some(Node::Prelude(place, arguments.into())));
    }
    Ok(known(name, arity).map(|native| Node::call(native, arguments)))
}

/// Functions composed of nodes, without bindings of their own. Returns the arguments if it is not
/// one of them.
fn composed(name: &str, arguments: Vec<Node>) -> Result<Node, Vec<Node>> {
    let each = |f: Node| {
        Node::Array(Box::new(Node::pipe(
            Node::Iterate(Box::new(Node::Identity)),
            f,
        )))
    };
    let keys = |f: Node| each(Node::Array(Box::new(f)));
    let count = arguments.len();
    let is_known = match name {
        "empty" | "env" => count == 0,
        "_range" => count == 3,
        "path" | "getpath" | "last" | "select" | "map" | "map_values" | "del" | "with_entries"
        | "add" | "sort_by" | "group_by" | "unique_by" | "min_by" | "max_by" => count == 1,
        _ => false,
    };
    if !is_known {
        return Err(arguments);
    }
    let mut given = arguments.into_iter();
    let mut next = || given.next().unwrap_or(Node::Identity);
    let call =
        |name: &str, arguments: Vec<Node>| Node::call(native(name, arguments.len()), arguments);
    Ok(match name {
        "empty" => Node::Empty,
        "env" => Node::Const(Val::map(Default::default())),
        "_range" => Node::Range(Box::new([next(), next(), next()])),
        "path" => Node::Path(Box::new(next())),
        "getpath" => Node::GetPath(Box::new(next())),
        "last" => Node::Last(Box::new(next())),
        "select" => Node::condition(next(), Node::Identity, Node::Empty),
        "map" => each(next()),
        "map_values" => Node::Update(
            Update::Modify,
            Box::new((Node::Iterate(Box::new(Node::Identity)), next())),
        ),
        "del" => call(
            "delpaths",
            vec![Node::Array(Box::new(Node::Path(Box::new(next()))))],
        ),
        "with_entries" => {
            let made = Node::pipe(each(next()), call("from_entries", Vec::new()));
            Node::pipe(call("to_entries", Vec::new()), made)
        }
        "add" => Node::pipe(Node::Array(Box::new(next())), call("add", Vec::new())),
        by => call(&format!("_{by}"), vec![keys(next())]),
    })
}

/// The result of `builtins`.
fn all_names() -> Val {
    let composed = [
        "empty/0",
        "env/0",
        "path/1",
        "getpath/1",
        "last/1",
        "select/1",
        "map/1",
        "map_values/1",
        "del/1",
        "with_entries/1",
        "add/1",
        "sort_by/1",
        "group_by/1",
        "unique_by/1",
        "min_by/1",
        "max_by/1",
    ];
    let natives = TABLES
        .iter()
        .copied()
        .flatten()
        .map(|native| (native.name, native.arity));
    let visible = natives
        .chain(prelude::names())
        .filter(|(name, _)| name.starts_with(|c: char| c.is_ascii_alphabetic()));
    let mut all: Vec<String> = visible
        .map(|(name, arity)| format!("{name}/{arity}"))
        .collect();
    all.extend(composed.map(str::to_owned));
    all.sort();
    Val::list(all.into_iter().map(Val::text).collect())
}

/// The error of a function that does not accept such a value.
fn refuses(name: &str, value: &Val) -> Out {
    fail(format!("{name} cannot be applied to: {}", described(value)))
}

fn refuses_with(name: &str, value: &Val, argument: &Val) -> Out {
    fail(format!(
        "{name}({}) cannot be applied to: {}",
        preview(argument),
        described(value)
    ))
}

fn fails_on(name: &str, value: &Val, why: &str) -> Out {
    fail(format!(
        "{name} cannot be applied to {}: {why}",
        preview(value)
    ))
}
