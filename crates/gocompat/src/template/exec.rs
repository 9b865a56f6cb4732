//! Executes templates.
//!
//! Main function: [`execute`]. A machine with its own stack of frames: a template that calls itself
//! a hundred thousand times, or functions that execute templates which call such functions again,
//! need no native stack. Everything is charged to a budget.

use super::budget::Budget;
use super::code::{Op, Template};
use super::error::{Error, ErrorKind};
use super::format::{self, quote::quoted};
use super::function::{Function, Run, Slot, Then};
use super::node::{Id, Range};
use super::set::TemplateSet;
use super::types::Type;
use super::value::{Str, Value};
use std::{any::Any, mem, sync::Arc};

mod call;
mod field;
mod iterate;

use iterate::Iterator as Iter;

/// Maximum depth of template calls, as in Go.
const DEEPEST: u32 = 100_000;
/// Charged per frame, in addition to its slots.
const FRAME: usize = 256;

/// The value of a missing key in a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// No value: prints `<no value>`, and so do its fields.
    #[default]
    Invalid,
    /// The zero value of the map's element type; its fields fail if that is nil.
    Zero,
    /// An error.
    Error,
}

/// Options of an execution.
pub struct Options<'a> {
    pub missing_key: MissingKey,
    pub budget: &'a Budget,
    /// The host that functions get from `Call::host`.
    pub host: &'a mut dyn Any,
}

/// Executes a template of a set with a value as its dot. Output written before an error stays in
/// `out`.
pub fn execute(
    set: &Arc<TemplateSet>,
    name: &str,
    data: Value,
    options: Options<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let template = find(set, name)?;
    let mut machine = Machine {
        missing_key: options.missing_key,
        budget: options.budget,
        host: options.host,
        stack: Vec::new(),
        slots: Vec::new(),
        iterators: Vec::new(),
        bound: Vec::new(),
        called: Vec::new(),
        frames: Vec::new(),
        frame: Frame {
            template,
            set: set.clone(),
            next: 0,
            at: None,
            base: 0,
            marks: Marks::default(),
            depth: 0,
            entry: None,
        },
        switched: false,
        out: mem::take(out),
        out_start: 0,
    };
    machine.prepare(Slot::new(data));
    let done = machine.run();
    *out = machine.out;
    done
}

fn find(set: &Arc<TemplateSet>, name: &str) -> Result<Arc<Template>, Error> {
    set.get(name).cloned().ok_or_else(|| {
        let text = format!(
            "template: no template {} associated with template {}",
            quoted(name),
            quoted(set.root())
        );
        Error::new(ErrorKind::Function, text)
    })
}

/// A template that is executing or waiting.
struct Frame {
    template: Arc<Template>,
    set: Arc<TemplateSet>,
    /// The next instruction.
    next: usize,
    /// The node that errors are reported at.
    at: Option<Id>,
    /// The index of its first slot.
    base: usize,
    /// How much of each stack belongs to others.
    marks: Marks,
    depth: u32,
    /// Set if a function requested it.
    entry: Option<Box<Entry>>,
}

#[derive(Clone, Copy, Default)]
struct Marks {
    stack: usize,
    iterators: usize,
    bound: usize,
    called: usize,
}

/// What to do when a template that a function requested is done.
struct Entry {
    then: Then,
    /// Where the caller's own output begins.
    caller_start: usize,
    /// The location in the caller, and the function's name, for errors.
    at: Id,
    name: Str,
    strip: bool,
}

struct Bound {
    function: &'static Function,
    receiver: Value,
    name: Range,
}

struct Machine<'a> {
    missing_key: MissingKey,
    budget: &'a Budget,
    host: &'a mut dyn Any,
    stack: Vec<Slot>,
    slots: Vec<Slot>,
    iterators: Vec<Iter>,
    bound: Vec<Bound>,
    /// Templates to call once their pipeline is evaluated.
    called: Vec<Arc<Template>>,
    frames: Vec<Frame>,
    frame: Frame,
    /// The current frame has changed.
    switched: bool,
    /// What was written: the output of each template that a function requested follows that of
    /// its caller until it is done.
    out: Vec<u8>,
    /// Where the output of the innermost of these begins.
    out_start: usize,
}

/// Why an instruction fails.
enum Fault {
    /// At the current node.
    Here(String),
    /// The same: a key or a field that does not exist.
    Missing(String),
    /// A function's error: at a node, with a prefix.
    Call(Id, String, Error),
    /// A limit.
    Limit(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Limit(error)
    }
}

type Done = Result<(), Fault>;

enum Flow {
    /// Another frame is the current one.
    Switched,
    Finished,
}

impl Machine<'_> {
    /// Allocates the frame's slots: the dot and `$` are initially the same.
    fn prepare(&mut self, dot: Slot) {
        self.frame.base = self.slots.len();
        self.slots.extend([dot.clone(), dot]);
        self.slots
            .resize_with(self.frame.base + self.frame.template.slots, Slot::default);
        self.frame.marks = Marks {
            stack: self.stack.len(),
            iterators: self.iterators.len(),
            bound: self.bound.len(),
            called: self.called.len(),
        };
    }

    fn run(&mut self) -> Result<(), Error> {
        loop {
            let template = self.frame.template.clone();
            self.switched = false;
            match self.steps(&template) {
                Ok(Flow::Switched) => {}
                Ok(Flow::Finished) => return Ok(()),
                Err(fault) => {
                    let error = self.locate(fault);
                    self.unwind(error)?;
                }
            }
        }
    }

    fn locate(&self, fault: Fault) -> Error {
        let template = &self.frame.template;
        let place = |at: Option<Id>| match at {
            Some(at) => template.nodes.place(&template.name, at),
            None => format!("template: {}: ", template.name),
        };
        match fault {
            Fault::Here(why) => Error::new(ErrorKind::Execute, place(self.frame.at) + &why),
            Fault::Missing(why) => Error::new(ErrorKind::Missing, place(self.frame.at) + &why),
            Fault::Call(at, words, error) => error.wrap(place(Some(at)) + &words),
            Fault::Limit(error) => error.wrap(place(self.frame.at)),
        }
    }

    /// Unwinds frames until one is found whose function can handle the error, or none is left.
    fn unwind(&mut self, mut error: Error) -> Result<(), Error> {
        loop {
            let entry = self.frame.entry.take();
            if !self.leave() {
                return Err(error);
            }
            let Some(entry) = entry else { continue };
            match self.finish(*entry, Err(error)) {
                Ok(()) => return Ok(()),
                Err(fault) => error = self.locate(fault),
            }
        }
    }

    /// Leaves the current frame. Returns whether there was one below it.
    fn leave(&mut self) -> bool {
        let marks = self.frame.marks;
        self.stack.truncate(marks.stack);
        self.iterators.truncate(marks.iterators);
        self.bound.truncate(marks.bound);
        self.called.truncate(marks.called);
        self.slots.truncate(self.frame.base);
        self.budget
            .release(FRAME + self.frame.template.slots * size_of::<Slot>());
        match self.frames.pop() {
            Some(frame) => {
                self.frame = frame;
                self.switched = true;
                true
            }
            None => false,
        }
    }

    /// Enters a template.
    fn enter(
        &mut self,
        template: Arc<Template>,
        set: Arc<TemplateSet>,
        dot: Value,
        depth: u32,
        entry: Option<Box<Entry>>,
    ) -> Done {
        self.budget
            .memory(FRAME + template.slots * size_of::<Slot>())?;
        let frame = Frame {
            template,
            set,
            next: 0,
            at: None,
            base: 0,
            marks: Marks::default(),
            depth,
            entry,
        };
        let caller = mem::replace(&mut self.frame, frame);
        self.switched = true;
        self.frames.push(caller);
        self.prepare(Slot::new(dot));
        Ok(())
    }

    /// A function requested a template: enters it, or reports to the function that it does not
    /// exist.
    fn start(&mut self, run: Run, at: Id, name: Str, strip: bool) -> Done {
        let entry = Entry {
            then: run.then,
            caller_start: self.out_start,
            at,
            name,
            strip,
        };
        match find(&run.templates, &run.name.to_str()) {
            Ok(template) => {
                self.enter(template, run.templates, run.data, 0, Some(Box::new(entry)))?;
                // Not before: without a frame, nothing would set it back.
                self.out_start = self.out.len();
                Ok(())
            }
            Err(error) => {
                self.out_start = self.out.len();
                self.finish(entry, Err(error))
            }
        }
    }

    /// Passes the outcome of a template to the function that requested it; the caller's frame is
    /// current again.
    fn finish(&mut self, entry: Entry, outcome: Result<(), Error>) -> Done {
        let start = mem::replace(&mut self.out_start, entry.caller_start);
        let outcome = outcome.map(|()| &self.out[start..]);
        let result = (entry.then)(&mut *self.host, outcome);
        self.out.truncate(start);
        match result {
            Ok(value) => {
                self.stack.push(Slot {
                    boxed: !entry.strip,
                    value,
                });
                Ok(())
            }
            Err(error) => Err(Fault::Call(
                entry.at,
                format!("error calling {}: ", entry.name.to_str()),
                error,
            )),
        }
    }

    fn slot(&mut self, slot: u16) -> &mut Slot {
        let index = self.frame.base + usize::from(slot);
        &mut self.slots[index]
    }

    fn push(&mut self, mut slot: Slot, strip: bool) {
        slot.boxed &= !strip;
        self.stack.push(slot);
    }

    fn pop(&mut self) -> Slot {
        self.stack.pop().unwrap_or_default()
    }

    fn set_at(&mut self, at: Option<Id>) {
        if at.is_some() {
            self.frame.at = at;
        }
    }

    /// Executes the current frame until it waits for another or ends.
    fn steps(&mut self, template: &Arc<Template>) -> Result<Flow, Fault> {
        while !self.switched {
            self.budget.steps(1)?;
            let op = &template.ops[self.frame.next];
            self.frame.next += 1;
            if let Op::Return = op {
                let entry = self.frame.entry.take();
                if !self.leave() {
                    return Ok(Flow::Finished);
                }
                if let Some(entry) = entry {
                    self.finish(*entry, Ok(()))?;
                }
            } else {
                self.step(template, op)?;
            }
        }
        Ok(Flow::Switched)
    }

    fn step(&mut self, template: &Arc<Template>, op: &Op) -> Done {
        match op {
            Op::Text(range) => {
                let text = template.nodes.slice(*range);
                self.budget.output(text.len())?;
                self.out.extend_from_slice(text);
            }
            Op::Print { at } => {
                self.frame.at = Some(*at);
                self.print()?;
            }
            Op::Jump(to) => self.frame.next = *to as usize,
            Op::JumpUnless(to) => {
                if !self.pop().value.truth() {
                    self.frame.next = *to as usize;
                }
            }
            Op::FindTemplate { node } => self.find_template(*node)?,
            Op::EnterTemplate => {
                let dot = self.pop().value;
                if let Some(called) = self.called.pop() {
                    self.enter(
                        called,
                        self.frame.set.clone(),
                        dot,
                        self.frame.depth + 1,
                        None,
                    )?;
                }
            }
            Op::With { .. } | Op::Range { .. } | Op::Next { .. } | Op::Break(_) => {
                self.control(op)?
            }
            Op::Fields { .. }
            | Op::Bind { .. }
            | Op::BoundArg { .. }
            | Op::BoundLiteral { .. }
            | Op::CallBound { .. }
            | Op::Call { .. } => {
                self.access(template, op)?;
            }
            _ => self.simple(template, op)?,
        }
        Ok(())
    }

    /// Constants, variables, and instructions that only move values.
    fn simple(&mut self, template: &Template, op: &Op) -> Done {
        match op {
            Op::Constant { at, index } => {
                self.frame.at = Some(*at);
                self.stack
                    .push(Slot::new(template.constants[*index as usize].value()));
            }
            Op::Slot { at, slot, strip } => {
                self.frame.at = Some(*at);
                let value = self.slot(*slot).clone();
                self.push(value, *strip);
            }
            Op::At(at) => self.frame.at = Some(*at),
            Op::Fail { at, why } => {
                self.set_at(*at);
                return Err(Fault::Here(why.to_string()));
            }
            Op::Check(wanted) => {
                if let Some(top) = self.stack.last_mut() {
                    call::validate(top, *wanted).map_err(Fault::Here)?;
                }
            }
            Op::Short { on, last, end } => {
                if let Some(top) = self.stack.last_mut() {
                    let decided = top.value.truth() == *on;
                    if decided {
                        self.frame.next = *end as usize;
                    }
                    if decided || *last {
                        top.boxed = false;
                    } else {
                        self.stack.pop();
                    }
                }
            }
            Op::Store { slot } => {
                let value = self.stack.last().cloned().unwrap_or_default();
                *self.slot(*slot) = value;
            }
            Op::Pop => {
                self.stack.pop();
            }
            Op::DropBelow => {
                let below = self.stack.len().saturating_sub(2);
                self.stack.remove(below);
            }
            _ => {}
        }
        Ok(())
    }

    fn print(&mut self) -> Done {
        let slot = self.pop();
        match &slot.value {
            // The most frequent types directly.
            Value::String(s) => {
                if let Some(apart) = self.between_braces(s) {
                    self.budget.output(apart.len_utf8())?;
                    let mut encoded = [0; 4];
                    let encoded = apart.encode_utf8(&mut encoded);
                    self.out.extend_from_slice(encoded.as_bytes());
                }
                self.budget.output(s.len())?;
                self.out.extend_from_slice(s.as_bytes());
            }
            Value::Nil => {
                self.budget.output(10)?;
                self.out.extend_from_slice(b"<no value>");
            }
            value => {
                let text = format::print_value(value, self.budget.output_left())?;
                self.budget.output(text.len())?;
                self.out.extend(text);
            }
        }
        Ok(())
    }

    /// What is printed before a text, so that two opening braces do not come together.
    fn between_braces(&self, text: &Str) -> Option<char> {
        let meet = text.as_bytes().starts_with(b"{") && self.out[self.out_start..].ends_with(b"{");
        let around = meet.then(|| self.frame.set.functions().around());
        around.flatten().and_then(|around| around.between_braces)
    }

    fn find_template(&mut self, node: Id) -> Done {
        self.frame.at = Some(node);
        let super::node::Node::Template { name, .. } = self.frame.template.nodes.get(node) else {
            return Ok(());
        };
        let name = name.to_str();
        let Some(template) = self.frame.set.get(&name).cloned() else {
            return Err(Fault::Here(format!(
                "template {} not defined",
                quoted(&name)
            )));
        };
        if self.frame.depth == DEEPEST {
            return Err(Fault::Here(format!(
                "exceeded maximum template depth ({DEEPEST})"
            )));
        }
        self.called.push(template);
        Ok(())
    }
}

/// Whether elements of this type are wrapped in an interface.
fn boxed(element: Type) -> bool {
    element == Type::Any
}
