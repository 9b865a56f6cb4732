//! Calls of functions and methods, and their arguments.

use super::super::code::{Constant, Literal, Op};
use super::super::function::Body;
use super::super::node::{Id, Node, Nodes, Range};
use super::super::number::Number;
use super::super::types::{INT, IntKind, Type};
use super::{Builder, Input};

impl Builder {
    /// A function. `node` is its name; errors are reported at `call`.
    pub(super) fn function(
        &mut self,
        input: Input<'_>,
        node: Id,
        call: Id,
        name: Range,
        args: &[Id],
        piped: bool,
    ) {
        let bytes = input.nodes.slice(name);
        let name = super::super::unicode::lossy(bytes);
        let Some(index) = input.functions.find(bytes) else {
            return self.fail(
                Some(node),
                format!(
                    "{} is not a defined function",
                    super::super::format::quote::quoted(&name)
                ),
            );
        };
        let function = input.functions.get(index);
        if let Err(why) = function.arity(&name, args.len(), piped) {
            return self.fail(Some(node), why);
        }
        if args.is_empty() {
            self.ops.push(Op::At(node));
        }
        match function.body {
            Body::And => return self.short(input, args, piped, false),
            Body::Or => return self.short(input, args, piped, true),
            _ => {}
        }
        for (i, arg) in args.iter().enumerate() {
            self.arg(input, *arg, function.param(i));
        }
        let args = u16::try_from(args.len()).unwrap_or(u16::MAX);
        // As an argument or at the start of a chain, a bare name keeps its declared result type.
        self.ops.push(Op::Call {
            at: call,
            function: index,
            args,
            piped,
            strip: node != call,
        });
    }

    /// `and` and `or`: arguments after the deciding one are not evaluated.
    fn short(&mut self, input: Input<'_>, args: &[Id], piped: bool, on: bool) {
        let mut jumps = Vec::new();
        for (i, arg) in args.iter().enumerate() {
            self.arg(input, *arg, Type::Reflect);
            jumps.push(self.ops.len());
            self.ops.push(Op::Short {
                on,
                last: i + 1 == args.len() && !piped,
                end: 0,
            });
        }
        // The piped value is below, and is the result if nothing before it decided.
        if piped && !jumps.is_empty() {
            let over = self.ops.len();
            self.ops.push(Op::Jump(0));
            jumps.iter().for_each(|jump| self.aim(*jump));
            self.ops.push(Op::DropBelow);
            self.aim(over);
        } else {
            jumps.iter().for_each(|jump| self.aim(*jump));
        }
    }

    /// The last field of a chain, with arguments. The receiver is on the stack.
    pub(super) fn method(
        &mut self,
        input: Input<'_>,
        node: Id,
        name: Range,
        args: &[Id],
        piped: bool,
        strip: bool,
    ) {
        let count = u16::try_from(args.len()).unwrap_or(u16::MAX);
        let bind = self.ops.len();
        self.ops.push(Op::Bind {
            node,
            name,
            args: count,
            piped,
            end: 0,
        });
        for (index, arg) in (0..count).zip(args) {
            match literal(input.nodes, *arg) {
                Some(literal) => self.ops.push(Op::BoundLiteral {
                    at: *arg,
                    index,
                    literal: Box::new(literal),
                }),
                None => {
                    // What it is checked for is known with the method.
                    self.arg(input, *arg, Type::Reflect);
                    self.ops.push(Op::BoundArg { index });
                }
            }
        }
        self.ops.push(Op::CallBound {
            node,
            args: count,
            piped,
            strip,
        });
        self.aim(bind);
    }

    /// An argument for a parameter of a type.
    fn arg(&mut self, input: Input<'_>, node: Id, wanted: Type) {
        match input.nodes.get(node) {
            Node::Dot => self.ops.push(Op::Slot {
                at: node,
                slot: self.dot,
                strip: false,
            }),
            Node::Field(_) | Node::Variable(_) | Node::Chain { .. } => {
                self.chain(input, node, &[], false, false)
            }
            Node::Pipe { .. } => {
                self.pipe(input, node);
            }
            Node::Identifier(name) => self.function(input, node, node, *name, &[], false),
            _ => {
                let Some(literal) = literal(input.nodes, node) else {
                    return;
                };
                match typed(&literal, wanted, || input.nodes.write(node)) {
                    Ok(constant) => self.constant(node, constant),
                    Err(why) => self.fail(Some(node), why),
                }
                return;
            }
        }
        if wanted != Type::Reflect {
            self.ops.push(Op::Check(wanted));
        }
    }

    /// A literal without an expected type.
    pub(super) fn open_literal(&mut self, input: Input<'_>, node: Id) {
        let Some(literal) = literal(input.nodes, node) else {
            return;
        };
        match typed(&literal, Type::Any, || input.nodes.write(node)) {
            Ok(constant) => self.constant(node, constant),
            Err(why) => self.fail(Some(node), why),
        }
    }
}

fn literal(nodes: &Nodes, node: Id) -> Option<Literal> {
    match nodes.get(node) {
        Node::Nil => Some(Literal::Nil),
        Node::Bool(value) => Some(Literal::Bool(*value)),
        Node::Number(number, _) => Some(Literal::Number(**number)),
        Node::String(_, text) => Some(Literal::String(text.clone())),
        _ => None,
    }
}

/// A literal as a value of a type; `text` is its source text.
pub(in super::super) fn typed(
    literal: &Literal,
    wanted: Type,
    text: impl Fn() -> String,
) -> Result<Constant, String> {
    if let Literal::Nil = literal {
        return if wanted.can_be_nil() {
            Ok(Constant::Zero(wanted))
        } else {
            Err(format!("cannot assign nil to {wanted}"))
        };
    }
    let number = match literal {
        Literal::Number(number) => *number,
        _ => Number::default(),
    };
    let found = match (wanted.underlying(), literal) {
        (Some(Type::Any | Type::Reflect), _) => return ideal(literal, text),
        (Some(Type::Bool), Literal::Bool(b)) => Some(Constant::Bool(*b)),
        (Some(Type::String), Literal::String(s)) => Some(Constant::String(s.clone())),
        (Some(Type::Int(kind)), _) => number.int.map(|i| Constant::Int(kind, i)),
        (Some(Type::Uint(kind)), _) => number.uint.map(|u| Constant::Uint(kind, u)),
        (Some(Type::Float64), _) => number.float.map(Constant::Float),
        (Some(Type::Complex128), _) => number.complex.map(|(re, im)| Constant::Complex(re, im)),
        _ => None,
    };
    let kind = match wanted.underlying() {
        Some(Type::Bool) => "bool",
        Some(Type::String) => "string",
        Some(Type::Int(_)) => "integer",
        Some(Type::Uint(_)) => "unsigned integer",
        Some(Type::Float64) => "float",
        Some(Type::Complex128) => "complex",
        _ => return Err(format!("can't handle {} for arg of type {wanted}", text())),
    };
    found.ok_or_else(|| format!("expected {kind}; found {}", text()))
}

/// A literal if no type is expected.
fn ideal(literal: &Literal, text: impl Fn() -> String) -> Result<Constant, String> {
    Ok(match literal {
        Literal::Nil => Constant::Nil,
        Literal::Bool(b) => Constant::Bool(*b),
        Literal::String(s) => Constant::String(s.clone()),
        Literal::Number(number) => match number {
            Number {
                complex: Some((re, im)),
                ..
            } => Constant::Complex(*re, *im),
            Number {
                float: Some(float),
                fractional: true,
                ..
            } => Constant::Float(*float),
            Number { int: Some(int), .. } => Constant::Int(IntKind::Int, *int),
            _ => return Err(format!("{} overflows {INT}", text())),
        },
    })
}
