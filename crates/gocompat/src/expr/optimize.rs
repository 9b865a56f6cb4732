//! Rewrites that can be seen from outside: constants are folded, so that a part that is not needed
//! can not fail, and functions of `filter` stop early.
//!
//! Main function: [`optimize`].

use super::builtins::Builtin;
use super::error::ExprError;
use super::node::{BuiltinCall, Expr, Known, Node, Op};
use crate::power::pow;
use crate::regex::Regex;
use crate::template::Str;

type Done = Result<(), ExprError>;

/// # Errors
/// For what only folding finds: a division by zero, a bad pattern.
pub(super) fn optimize(tree: &mut Expr) -> Done {
    walk(tree, &mut sets)?;
    walk(tree, &mut fold)?;
    walk(tree, &mut ranges)?;
    walk(tree, &mut stop_early)?;
    walk(tree, &mut combine)?;
    walk(tree, &mut sums)?;
    walk(tree, &mut counts)?;
    walk(tree, &mut patterns)
}

/// Visits children before their parents.
fn walk(expr: &mut Expr, visit: &mut dyn FnMut(&mut Expr) -> Done) -> Done {
    expr.children_mut(&mut |child| walk(child, visit))?;
    visit(expr)
}

fn take(expr: &mut Expr) -> Node {
    std::mem::replace(&mut expr.node, Node::Nil)
}

/// `in` with literal texts.
fn sets(expr: &mut Expr) -> Done {
    let Node::Binary(Op::In, left, right) = &mut expr.node else {
        return Ok(());
    };
    if let Node::Array(nodes) = &right.node
        && !nodes.is_empty()
    {
        let texts: Option<Vec<Str>> = nodes.iter().map(|node| text(node).cloned()).collect();
        if let Some(texts) = texts {
            let left = std::mem::replace(left, Box::new(nil()));
            expr.node = Node::InTexts(left, texts);
        }
    }
    Ok(())
}

/// `in` with a range of literal integers, whose signs are folded by now.
fn ranges(expr: &mut Expr) -> Done {
    let Node::Binary(Op::In, left, right) = &mut expr.node else {
        return Ok(());
    };
    if let Node::Binary(Op::Range, from, to) = &right.node
        && left.known == Known::Int
        && let (Node::Int(from), Node::Int(to)) = (&from.node, &to.node)
    {
        let (from, to) = (*from, *to);
        let left = std::mem::replace(left, Box::new(nil()));
        expr.node = Node::InRange(left, from, to);
    }
    Ok(())
}

fn nil() -> Expr {
    Expr {
        node: Node::Nil,
        at: 0,
        depth: 1,
        known: Known::Nothing,
    }
}

fn text(expr: &Expr) -> Option<&Str> {
    match &expr.node {
        Node::Str(text) => Some(text),
        _ => None,
    }
}

/// Constants.
fn fold(expr: &mut Expr) -> Done {
    let folded = match &mut expr.node {
        Node::Not(of) => match of.node {
            Node::Bool(b) => Some(Node::Bool(!b)),
            _ => None,
        },
        Node::Sign { negative, of } => match of.node {
            Node::Int(i) => Some(Node::Int(if *negative { i.wrapping_neg() } else { i })),
            Node::Float(f) => Some(Node::Float(if *negative { -f } else { f })),
            _ => None,
        },
        Node::Binary(op @ (Op::And | Op::Or), left, right) => {
            let neutral = *op == Op::And;
            match (&left.node, &right.node) {
                (Node::Bool(b), _) if *b == neutral => Some(take(right)),
                (_, Node::Bool(b)) if *b == neutral => Some(take(left)),
                (Node::Bool(_), _) | (_, Node::Bool(_)) => Some(Node::Bool(!neutral)),
                _ => None,
            }
        }
        Node::Binary(op, left, right) => {
            if let (Op::Modulo, Node::Int(_), Node::Int(0)) = (*op, &left.node, &right.node) {
                return Err(ExprError::compile(
                    expr.at as usize,
                    "integer divide by zero",
                ));
            }
            folded(*op, &left.node, &right.node)
        }
        _ => None,
    };
    if let Some(node) = folded {
        expr.node = node;
    }
    Ok(())
}

fn folded(op: Op, left: &Node, right: &Node) -> Option<Node> {
    match (left, right) {
        (Node::Int(x), Node::Int(y)) => Some(match op {
            Op::Add => Node::Int(x.wrapping_add(*y)),
            Op::Subtract => Node::Int(x.wrapping_sub(*y)),
            Op::Multiply => Node::Int(x.wrapping_mul(*y)),
            Op::Modulo => Node::Int(x.wrapping_rem(*y)),
            Op::Equal => Node::Bool(x == y),
            _ => return floats(op, *x as f64, *y as f64),
        }),
        (Node::Int(x), Node::Float(y)) => floats(op, *x as f64, *y),
        (Node::Float(x), Node::Int(y)) => floats(op, *x, *y as f64),
        (Node::Float(x), Node::Float(y)) => floats(op, *x, *y),
        (Node::Str(x), Node::Str(y)) => match op {
            Op::Add => Some(Node::Str([x.as_bytes(), y.as_bytes()].concat().into())),
            Op::Equal => Some(Node::Bool(x == y)),
            _ => None,
        },
        (Node::Bool(x), Node::Bool(y)) if op == Op::Equal => Some(Node::Bool(x == y)),
        _ => None,
    }
}

fn floats(op: Op, x: f64, y: f64) -> Option<Node> {
    Some(Node::Float(match op {
        Op::Add => x + y,
        Op::Subtract => x - y,
        Op::Multiply => x * y,
        Op::Divide => x / y,
        Op::Power => pow(x, y),
        _ => return None,
    }))
}

/// The call of a function.
fn calls(expr: &mut Expr, function: Builtin) -> Option<&mut BuiltinCall> {
    match &mut expr.node {
        Node::Builtin(call) if call.function == function => Some(call),
        _ => None,
    }
}

/// `map(filter(…))`, `len(filter(…))`, `filter(…)[0]`, `first(filter(…))` and their likes.
fn stop_early(expr: &mut Expr) -> Done {
    let replaced = match &mut expr.node {
        Node::Builtin(call) => match (call.function, call.args.as_mut_slice()) {
            (Builtin::Map, [list, predicate]) => {
                let index = |node: &Node| matches!(node, Node::Pointer(name) if name == "index");
                let fits = !predicate.any(&index);
                let filter = calls(list, Builtin::Filter).filter(|f| fits && f.map.is_none());
                let found = filter.map(|filter| filter.map = Some(predicate.clone()));
                found.map(|()| take(list))
            }
            (Builtin::Len, [list]) => {
                filtered(list, Builtin::Count, false).filter(|node| match node {
                    Node::Builtin(call) => call.map.is_none(),
                    _ => false,
                })
            }
            (Builtin::First, [list]) => filtered(list, Builtin::Find, false),
            (Builtin::Last, [list]) => filtered(list, Builtin::FindLast, false),
            _ => None,
        },
        Node::Member {
            of,
            property,
            optional: false,
            ..
        } => match property.node {
            Node::Int(0) => filtered(of, Builtin::Find, true),
            Node::Int(-1) => filtered(of, Builtin::FindLast, true),
            _ => None,
        },
        _ => None,
    };
    if let Some(node) = replaced {
        expr.node = node;
    }
    Ok(())
}

/// Another function with the arguments of `filter`.
fn filtered(list: &mut Expr, function: Builtin, throws: bool) -> Option<Node> {
    let filter = calls(list, Builtin::Filter)?;
    Some(Node::Builtin(Box::new(BuiltinCall {
        function,
        args: filter.args.clone(),
        map: filter.map.clone(),
        throws,
        enough: None,
    })))
}

/// `all(x, a) and all(x, b)` is `all(x, a and b)`.
fn combine(expr: &mut Expr) -> Done {
    let Node::Binary(op @ (Op::And | Op::Or), left, right) = &mut expr.node else {
        return Ok(());
    };
    let (Node::Builtin(a), Node::Builtin(b)) = (&mut left.node, &mut right.node) else {
        return Ok(());
    };
    let combined = match (a.function, *op) {
        (Builtin::All, Op::And) => Op::And,
        (Builtin::Any, Op::Or) | (Builtin::None, Op::And) => Op::Or,
        _ => return Ok(()),
    };
    if a.function != b.function {
        return Ok(());
    }
    let ([list, first], [other, second]) = (a.args.as_mut_slice(), b.args.as_mut_slice()) else {
        return Ok(());
    };
    if !list.is_like(other) {
        return Ok(());
    }
    if let (Node::Predicate(x), Node::Predicate(y)) = (&mut first.node, &mut second.node) {
        let both = Node::Binary(
            combined,
            Box::new(std::mem::replace(x, nil())),
            Box::new(std::mem::replace(y, nil())),
        );
        **x = Expr::new(both, first.at)?;
        expr.node = take(left);
    }
    Ok(())
}

/// `sum` of a list that is written out, of `map`, and of a range.
fn sums(expr: &mut Expr) -> Done {
    let at = expr.at;
    let Some(call) = calls(expr, Builtin::Sum) else {
        return Ok(());
    };
    let [list] = call.args.as_mut_slice() else {
        return Ok(());
    };
    match &mut list.node {
        // A list of constants is one value, whose elements are added to zero.
        Node::Array(nodes) if nodes.len() > 1 && !nodes.iter().all(is_constant) => {
            let mut nodes = std::mem::take(nodes).into_iter().rev();
            let Some(mut sum) = nodes.next() else {
                return Ok(());
            };
            for node in nodes {
                let both = Node::Binary(Op::Add, Box::new(node), Box::new(sum));
                sum = Expr::new(both, at)?;
            }
            expr.node = sum.node;
        }
        Node::Builtin(map) if map.function == Builtin::Map => {
            call.args = std::mem::take(&mut map.args);
        }
        Node::Binary(Op::Range, from, to) => {
            if let (Node::Int(from), Node::Int(to)) = (&from.node, &to.node)
                && to >= from
            {
                let count = to.wrapping_sub(*from).wrapping_add(1);
                let twice = count.wrapping_mul(from.wrapping_add(*to));
                expr.node = Node::Int(twice / 2);
            }
        }
        _ => {}
    }
    Ok(())
}

fn is_constant(expr: &Expr) -> bool {
    matches!(
        expr.node,
        Node::Int(_) | Node::Float(_) | Node::Str(_) | Node::Bool(_)
    )
}

/// `count(…) > 0` is `any(…)`, and other comparisons stop counting early.
fn counts(expr: &mut Expr) -> Done {
    let Node::Binary(op, left, right) = &mut expr.node else {
        return Ok(());
    };
    let (op, Node::Int(wanted)) = (*op, &right.node) else {
        return Ok(());
    };
    let wanted = *wanted;
    let Some(count) = calls(left, Builtin::Count).filter(|count| count.args.len() == 2) else {
        return Ok(());
    };
    if (op, wanted) == (Op::Greater, 0) || (op, wanted) == (Op::GreaterEqual, 1) {
        count.function = Builtin::Any;
        expr.node = take(left);
        return Ok(());
    }
    let enough = match op {
        Op::Greater | Op::LessEqual => wanted.saturating_add(1),
        Op::GreaterEqual | Op::Less => wanted,
        _ => return Ok(()),
    };
    count.enough = (enough > 1).then_some(enough);
    Ok(())
}

/// Compiles literal patterns, and refuses pointers that no predicate has.
fn patterns(expr: &mut Expr) -> Done {
    let failed = |message: String| Err(ExprError::compile(expr.at as usize, message));
    match &mut expr.node {
        Node::Binary(Op::Matches, left, right) => {
            if let Node::Str(pattern) = &right.node {
                match Regex::new(&pattern.to_str()) {
                    Ok(pattern) => {
                        let left = std::mem::replace(left, Box::new(nil()));
                        expr.node = Node::Matches(left, pattern);
                    }
                    Err(message) => return failed(message),
                }
            }
            Ok(())
        }
        Node::Pointer(name) if !matches!(name.as_str(), "" | "index" | "acc") => {
            failed(format!("unknown pointer {name}"))
        }
        _ => Ok(()),
    }
}
