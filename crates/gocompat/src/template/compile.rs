//! Compiles expressions to instructions.
//!
//! Main type: [`Builder`], which collects the instructions of one template during parsing. An error
//! that Go reports only at execution, but that is known from the text (a wrong number of arguments,
//! a literal of the wrong type), becomes an instruction that fails.

use super::code::{Base, Constant, DOT, Op, ROOT, Template};
use super::function::Functions;
use super::node::{Id, Node, Nodes, Range, offset};
use std::sync::Arc;

mod operand;

pub(super) use operand::typed;

/// Room for the instructions of a short template.
const USUAL_OPS: usize = 16;

/// Collects the instructions of a template.
pub(super) struct Builder {
    pub blank: bool,
    ops: Vec<Op>,
    constants: Vec<Constant>,
    /// The variables that have a value at this point, and their slots.
    scope: Vec<(Vec<u8>, u16)>,
    free: u16,
    slots: u16,
    dot: u16,
    loops: Vec<Loop>,
}

struct Loop {
    start: usize,
    breaks: Vec<usize>,
}

/// An open `if`, `with` or `range`.
pub(super) struct Branch {
    /// The scope, the free slots and the dot before it.
    outside: (usize, u16, u16),
    /// The scope and the free slots after its pipeline.
    inside: (usize, u16),
    /// The instruction that jumps to the `else`.
    test: usize,
    /// Jumps to the end.
    exits: Vec<usize>,
}

impl Default for Builder {
    fn default() -> Self {
        let scope = vec![(b"$".to_vec(), ROOT)];
        Self {
            blank: true,
            ops: Vec::with_capacity(USUAL_OPS),
            constants: Vec::new(),
            scope,
            free: ROOT + 1,
            slots: ROOT + 1,
            dot: DOT,
            loops: Vec::new(),
        }
    }
}

/// The compiler's input.
#[derive(Clone, Copy)]
struct Input<'a> {
    nodes: &'a Nodes,
    functions: &'a Functions,
}

impl Builder {
    pub fn template(mut self, name: String, nodes: Arc<Nodes>) -> Template {
        self.ops.push(Op::Return);
        Template {
            name,
            nodes,
            ops: self.ops,
            constants: self.constants,
            slots: usize::from(self.slots),
            blank: self.blank,
        }
    }

    /// Text of the template.
    pub fn text(&mut self, start: usize, end: usize, blank: bool) {
        self.blank &= blank;
        self.ops.push(Op::Text((offset(start), offset(end))));
    }

    /// A pipeline whose value is written.
    pub fn action(&mut self, nodes: &Nodes, functions: &Functions, pipe: Id) {
        let declares = self.pipe(Input { nodes, functions }, pipe);
        self.ops.push(if declares {
            Op::Pop
        } else {
            Op::Print { at: pipe }
        });
    }

    /// `break` or `continue`.
    pub fn leave(&mut self, breaks: bool) {
        let here = self.ops.len();
        let Some(innermost) = self.loops.last_mut() else {
            return;
        };
        if breaks {
            innermost.breaks.push(here);
            self.ops.push(Op::Break(0));
        } else {
            self.ops.push(Op::Jump(offset(innermost.start)));
        }
    }

    /// `template`, its node and the pipeline for its dot.
    pub fn call(&mut self, nodes: &Nodes, functions: &Functions, node: Id, pipe: Option<Id>) {
        self.ops.push(Op::FindTemplate { node });
        match pipe {
            Some(pipe) => {
                self.pipe(Input { nodes, functions }, pipe);
            }
            None => self.constant(node, Constant::Nil),
        }
        self.ops.push(Op::EnterTemplate);
    }

    /// Begins an `if`, `with` or `range`.
    pub fn open(&mut self, word: &str, nodes: &Nodes, functions: &Functions, pipe: Id) -> Branch {
        let input = Input { nodes, functions };
        let outside = (self.scope.len(), self.free, self.dot);
        self.pipe(input, pipe);
        let test = self.ops.len();
        let mut branch = Branch {
            outside,
            inside: (self.scope.len(), self.free),
            test,
            exits: Vec::new(),
        };
        match word {
            "range" => self.open_range(input, pipe, &mut branch),
            "with" => {
                let slot = self.new_slot();
                self.ops.push(Op::With { slot, otherwise: 0 });
                self.dot = slot;
            }
            _ => self.ops.push(Op::JumpUnless(0)),
        }
        branch
    }

    fn open_range(&mut self, input: Input<'_>, pipe: Id, branch: &mut Branch) {
        let slots: Vec<Option<u16>> = match input.nodes.get(pipe) {
            Node::Pipe { declared, .. } => declared
                .iter()
                .map(|variable| self.lookup(input, *variable))
                .collect(),
            _ => Vec::new(),
        };
        self.ops.push(Op::Range {
            variables: u8::try_from(slots.len()).unwrap_or(u8::MAX),
            otherwise: 0,
        });
        let dot = self.new_slot();
        let (index, element) = match slots[..] {
            [] => (None, None),
            [element] => (None, element),
            [index, element, ..] => (index, element),
        };
        self.loops.push(Loop {
            start: self.ops.len(),
            breaks: Vec::new(),
        });
        branch.exits.push(self.ops.len());
        self.ops.push(Op::Next {
            dot,
            index,
            element,
            end: 0,
        });
        self.dot = dot;
    }

    /// The body has ended; an `else` may follow.
    pub fn end_of_body(&mut self, branch: &mut Branch) {
        if let Op::Range { .. } = self.ops[branch.test]
            && let Some(ended) = self.loops.pop()
        {
            self.ops.push(Op::Jump(offset(ended.start)));
            branch.exits.extend(ended.breaks);
        } else {
            branch.exits.push(self.ops.len());
            self.ops.push(Op::Jump(0));
        }
        self.aim(branch.test);
        self.scope.truncate(branch.inside.0);
        self.free = branch.inside.1;
        self.dot = branch.outside.2;
    }

    pub fn close(&mut self, branch: Branch) {
        for exit in branch.exits {
            self.aim(exit);
        }
        self.scope.truncate(branch.outside.0);
        self.free = branch.outside.1;
    }

    /// Sets the target of a jump to the next instruction.
    fn aim(&mut self, jump: usize) {
        let here = offset(self.ops.len());
        match &mut self.ops[jump] {
            Op::Jump(to) | Op::JumpUnless(to) | Op::Break(to) => *to = here,
            Op::With { otherwise, .. } | Op::Range { otherwise, .. } => *otherwise = here,
            Op::Next { end, .. } | Op::Short { end, .. } | Op::Bind { end, .. } => *end = here,
            _ => {}
        }
    }

    fn new_slot(&mut self) -> u16 {
        let slot = self.free;
        self.free = self.free.saturating_add(1);
        self.slots = self.slots.max(self.free);
        slot
    }

    /// Whether there were more variables than slots.
    pub fn overflows(&self) -> bool {
        self.slots == u16::MAX
    }

    fn find(&self, name: &[u8]) -> Option<u16> {
        self.scope
            .iter()
            .rev()
            .find_map(|(known, slot)| (known == name).then_some(*slot))
    }

    /// The slot of a variable, if it has one.
    fn lookup(&self, input: Input<'_>, variable: Id) -> Option<u16> {
        match input.nodes.get(variable) {
            Node::Variable(names) => self.find(input.nodes.slice(names[0])),
            _ => None,
        }
    }

    fn constant(&mut self, at: Id, constant: Constant) {
        self.ops.push(Op::Constant {
            at,
            index: offset(self.constants.len()),
        });
        self.constants.push(constant);
    }

    fn fail(&mut self, at: Option<Id>, why: String) {
        self.ops.push(Op::Fail {
            at,
            why: why.into(),
        });
    }

    /// Leaves the value of a pipeline on the stack. Returns whether it declares or assigns
    /// variables.
    fn pipe(&mut self, input: Input<'_>, pipe: Id) -> bool {
        let Node::Pipe {
            declared,
            assign,
            commands,
        } = input.nodes.get(pipe)
        else {
            return false;
        };
        for (stage, command) in commands.iter().enumerate() {
            self.command(input, pipe, *command, stage > 0);
        }
        for variable in declared {
            let Node::Variable(names) = input.nodes.get(*variable) else {
                continue;
            };
            let name = input.nodes.slice(names[0]);
            if *assign {
                self.assign(name);
            } else {
                let slot = self.new_slot();
                self.scope.push((name.to_vec(), slot));
                self.ops.push(Op::Store { slot });
            }
        }
        !declared.is_empty()
    }

    fn assign(&mut self, name: &[u8]) {
        match self.find(name) {
            Some(slot) => self.ops.push(Op::Store { slot }),
            None => self.fail(None, undefined(name)),
        }
    }

    fn command(&mut self, input: Input<'_>, pipe: Id, command: Id, piped: bool) {
        let Node::Command(args) = input.nodes.get(command) else {
            return;
        };
        let (first, rest) = (args[0], &args[1..]);
        let given = piped || !rest.is_empty();
        match input.nodes.get(first) {
            Node::Field(_) | Node::Variable(_) | Node::Chain { .. } => {
                self.chain(input, first, rest, piped, true)
            }
            Node::Identifier(name) => self.function(input, first, command, *name, rest, piped),
            Node::Pipe { .. } if given => {
                let current = (!piped).then_some(pipe);
                self.fail(current, not_a_function(input.nodes, first));
            }
            Node::Pipe { .. } => {
                self.pipe(input, first);
            }
            _ if given => self.fail(Some(first), not_a_function(input.nodes, first)),
            Node::Dot => self.ops.push(Op::Slot {
                at: first,
                slot: self.dot,
                strip: true,
            }),
            Node::Nil => self.fail(Some(first), "nil is not a command".into()),
            _ => self.open_literal(input, first),
        }
    }

    /// Fields after a start, possibly with arguments for the last one.
    fn chain(&mut self, input: Input<'_>, node: Id, args: &[Id], piped: bool, strip: bool) {
        let given = piped || !args.is_empty();
        let (at, base, from, names): (_, _, _, &[Range]) = match input.nodes.get(node) {
            Node::Field(names) => (Some(node), Base::Slot(self.dot), 0, names),
            Node::Variable(names) => {
                let Some(slot) = self.lookup(input, node) else {
                    return self.fail(Some(node), undefined(input.nodes.slice(names[0])));
                };
                if names.len() == 1 {
                    if given {
                        return self.fail(Some(node), not_a_function(input.nodes, node));
                    }
                    return self.ops.push(Op::Slot {
                        at: node,
                        slot,
                        strip,
                    });
                }
                (Some(node), Base::Slot(slot), 1, names)
            }
            Node::Chain { inner, fields } => {
                self.ops.push(Op::At(node));
                match input.nodes.get(*inner) {
                    Node::Nil => {
                        return self.fail(
                            None,
                            format!(
                                "indirection through explicit nil in {}",
                                input.nodes.write(node)
                            ),
                        );
                    }
                    Node::Identifier(name) => {
                        self.function(input, *inner, *inner, *name, &[], false)
                    }
                    _ => {
                        self.pipe(input, *inner);
                    }
                }
                (None, Base::Stack, 0, fields)
            }
            _ => return,
        };
        let count = u16::try_from(names.len()).unwrap_or(u16::MAX);
        if !given {
            return self.ops.push(Op::Fields {
                at,
                node,
                base,
                from,
                to: count,
                strip,
            });
        }
        self.ops.push(Op::Fields {
            at,
            node,
            base,
            from,
            to: count - 1,
            strip: false,
        });
        self.method(input, node, names[names.len() - 1], args, piped, strip);
    }
}

fn undefined(name: &[u8]) -> String {
    format!("undefined variable: {}", String::from_utf8_lossy(name))
}

fn not_a_function(nodes: &Nodes, node: Id) -> String {
    format!("can't give argument to non-function {}", nodes.write(node))
}
