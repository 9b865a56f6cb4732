//! The machine that runs a program without recursion: a continuation of frames, an environment of
//! bindings, and the choices for backtracking.
//!
//! Main type: [`Machine`]. A program produces several results, one after the other; backtracking to
//! a choice discards all frames, bindings and path steps made since. [`super::eval`] starts nodes,
//! [`super::resume`] continues frames, [`super::choices`] backtracks.

use super::{
    budget::{Budget, Limits},
    fault::{Fault, fail},
    node::{Bind, Fold, Match, Node, Update},
    paths,
    text::described,
    value::{Map, Nested, Val},
};
use std::sync::Arc;

/// An index in one of the machine's lists.
pub type Link = u32;
pub const NONE: Link = u32::MAX;

/// An entry of the environment.
#[derive(Clone)]
pub enum Slot<'p> {
    Value(Val),
    Closure(&'p Node, Link),
    Function(&'p Node),
    /// The choice of a label.
    Label(usize),
}

/// What to do with the next value.
#[derive(Clone)]
pub enum Frame<'p> {
    Then(&'p Node, Link),
    Field(&'p Val),
    Iterate,
    IndexKey {
        of: &'p Node,
        env: Link,
        input: Val,
    },
    IndexAt(Val),
    SliceStart {
        parts: &'p (Node, Node, Node),
        env: Link,
        input: Val,
    },
    SliceEnd {
        of: &'p Node,
        start: Val,
        env: Link,
        input: Val,
    },
    SliceOf {
        start: Val,
        end: Val,
    },
    Collect(usize),
    Arguments {
        callee: Callee<'p>,
        got: Vec<Val>,
        env: Link,
        input: Val,
    },
    Entries {
        entries: &'p [(Node, Node)],
        got: Vec<Val>,
        env: Link,
        input: Val,
    },
    Condition {
        parts: &'p (Node, Node, Node),
        env: Link,
        input: Val,
    },
    TryEnd(usize),
    AlternativeEnd(usize),
    FoldStart {
        fold: &'p Fold,
        reduce: bool,
        env: Link,
        input: Val,
    },
    FoldItem {
        fold: &'p Fold,
        reduce: bool,
        env: Link,
        choice: usize,
    },
    FoldUpdate {
        fold: &'p Fold,
        reduce: bool,
        env: Link,
        choice: usize,
    },
    BindSource {
        bind: &'p Bind,
        env: Link,
        input: Val,
    },
    MatchKey(Box<Matching<'p>>),
    PathEnd {
        path: Link,
        untracked: u32,
    },
    GetPath {
        input: Val,
    },
    UpdateValue {
        update: Update,
        parts: &'p (Node, Node),
        env: Link,
        input: Val,
    },
    UpdatePath {
        how: How<'p>,
        choice: usize,
    },
    UpdateEnd {
        choice: usize,
        one: usize,
        path: Val,
    },
    LastEnd(usize),
}

/// What to call when all arguments are evaluated.
#[derive(Clone, Copy)]
pub enum Callee<'p> {
    Native(&'static super::builtins::Native, &'p [Node]),
    Range(&'p [Node; 3]),
}

impl<'p> Callee<'p> {
    pub fn arguments(&self) -> &'p [Node] {
        match self {
            Self::Native(_, arguments) => arguments,
            Self::Range(arguments) => &arguments[..],
        }
    }
}

/// How an assignment computes the new value of a path.
#[derive(Clone)]
pub enum How<'p> {
    Set(Val),
    With(&'static super::builtins::Native, Val),
    Modify(&'p Node, Link),
}

/// A pattern that is being matched.
#[derive(Clone)]
pub struct Matching<'p> {
    pub steps: &'p [Match],
    pub current: Val,
    pub open: Vec<Val>,
    pub env: Link,
    pub after: After<'p>,
}

/// What to do after a pattern.
#[derive(Clone)]
pub enum After<'p> {
    Body(&'p Bind, Val),
    Fold {
        fold: &'p Fold,
        reduce: bool,
        choice: usize,
    },
}

/// Where to continue when there is no other result.
pub enum Kind<'p> {
    Node(&'p Node, Link, Val),
    List(Arc<Nested<Vec<Val>>>, usize),
    Map(Arc<Nested<Map>>, Arc<str>),
    Range {
        at: Val,
        end: Val,
        step: Val,
    },
    Collect(Vec<Val>),
    Reduce(Val),
    Foreach(Val),
    Last(Option<Val>),
    Alternative {
        found: bool,
        right: &'p Node,
        env: Link,
        input: Val,
    },
    Try {
        handler: Option<&'p Node>,
        env: Link,
    },
    /// The body of the try at this choice produced a value: later errors are not its errors.
    TryDone(usize),
    Label,
    Patterns {
        bind: &'p Bind,
        next: usize,
        value: Val,
        input: Val,
        env: Link,
    },
    Update {
        value: Val,
        deleted: Vec<Val>,
    },
    UpdateOne {
        choice: usize,
        path: Val,
    },
}

pub struct Choice<'p> {
    pub frames: usize,
    pub bindings: usize,
    pub steps: usize,
    pub next: Link,
    pub path: Link,
    pub untracked: u32,
    pub kind: Kind<'p>,
}

/// A step of the tracked path, and the resulting value. The first has no key.
pub struct PathStep {
    before: Link,
    key: Option<Val>,
    value: Val,
}

/// The next action of the machine.
pub enum Next<'p> {
    Eval(&'p Node, Link, Val),
    Give(Val),
    Back,
}

pub type Stepped<'p> = Result<Next<'p>, Fault>;

pub struct Machine<'p> {
    pub budget: Budget,
    frames: Vec<(Frame<'p>, Link)>,
    bindings: Vec<(Slot<'p>, Link)>,
    path_steps: Vec<PathStep>,
    pub choices: Vec<Choice<'p>>,
    /// The frame that receives the next value.
    next: Link,
    /// The tracked path, if any.
    pub path: Link,
    /// How many enclosing expressions are not tracked.
    pub untracked: u32,
    start: Option<(&'p Node, Val)>,
}

impl<'p> Machine<'p> {
    pub fn new(program: &'p Node, input: Val, limits: Limits) -> Self {
        Self {
            budget: Budget::new(limits),
            frames: Vec::new(),
            bindings: Vec::new(),
            path_steps: Vec::new(),
            choices: Vec::new(),
            next: NONE,
            path: NONE,
            untracked: 0,
            start: Some((program, input)),
        }
    }

    /// The next result. None at the end, and after an error.
    pub fn next_result(&mut self) -> Result<Option<Val>, Fault> {
        let mut next = match self.start.take() {
            Some((program, input)) => Next::Eval(program, NONE, input),
            None => Next::Back,
        };
        loop {
            self.budget.steps(1)?;
            let stepped = match next {
                Next::Eval(node, env, input) => self.eval(node, env, input),
                Next::Give(value) if self.next == NONE => {
                    self.budget.output()?;
                    return Ok(Some(value));
                }
                Next::Give(value) => self.resume(value),
                Next::Back if self.choices.is_empty() => return Ok(None),
                Next::Back => self.go_back(),
            };
            next = match stepped {
                Ok(next) => next,
                Err(fault) => self.unwind(fault)?,
            };
        }
    }

    pub fn push(&mut self, frame: Frame<'p>) -> Result<(), Fault> {
        self.frames.push((frame, self.next));
        self.next = link(self.frames.len() - 1);
        self.check_kept()
    }

    /// The waiting frame. It is removed unless a choice may return to it.
    pub fn pop(&mut self) -> Option<Frame<'p>> {
        let at = self.next as usize;
        let kept = self.choices.last().map_or(0, |choice| choice.frames);
        let (frame, next) = match at + 1 == self.frames.len() && at >= kept {
            true => self.frames.pop()?,
            false => self.frames.get(at)?.clone(),
        };
        self.next = next;
        Some(frame)
    }

    fn check_kept(&self) -> Result<(), Fault> {
        self.budget.kept(
            self.frames.len() + self.bindings.len() + self.path_steps.len() + self.choices.len(),
        )
    }

    /// Pushes a choice and returns its index.
    pub fn choose(&mut self, kind: Kind<'p>) -> Result<usize, Fault> {
        self.choices.push(Choice {
            frames: self.frames.len(),
            bindings: self.bindings.len(),
            steps: self.path_steps.len(),
            next: self.next,
            path: self.path,
            untracked: self.untracked,
            kind,
        });
        self.check_kept()?;
        Ok(self.choices.len() - 1)
    }

    /// Restores the state at this choice.
    pub fn restore(&mut self, choice: usize) {
        let Some(choice) = self.choices.get(choice) else {
            return;
        };
        self.frames.truncate(choice.frames);
        self.bindings.truncate(choice.bindings);
        self.path_steps.truncate(choice.steps);
        (self.next, self.path, self.untracked) = (choice.next, choice.path, choice.untracked);
    }

    pub fn bind(&mut self, slot: Slot<'p>, env: Link) -> Result<Link, Fault> {
        self.bindings.push((slot, env));
        self.check_kept()?;
        Ok(link(self.bindings.len() - 1))
    }

    /// The entry this many bindings up, and its index.
    pub fn lookup(&self, env: Link, hops: usize) -> (Link, &Slot<'p>) {
        let place = self.up(env, hops);
        (place, &self.bindings[place as usize].0)
    }

    /// The environment without its last bindings.
    pub fn up(&self, mut env: Link, hops: usize) -> Link {
        for _ in 0..hops {
            env = self.bindings[env as usize].1;
        }
        env
    }

    pub fn value_of(&self, env: Link, hops: usize) -> Val {
        match self.lookup(env, hops).1 {
            Slot::Value(value) => value.clone(),
            _ => Val::Null,
        }
    }

    pub fn is_tracked(&self) -> bool {
        self.path != NONE && self.untracked == 0
    }

    /// Starts tracking a path from a value.
    pub fn begin_path(&mut self, value: &Val) -> Result<(), Fault> {
        self.push(Frame::PathEnd {
            path: self.path,
            untracked: self.untracked,
        })?;
        self.path = NONE;
        self.untracked = 0;
        self.step_path(None, value.clone())
    }

    fn step_path(&mut self, key: Option<Val>, value: Val) -> Result<(), Fault> {
        self.path_steps.push(PathStep {
            before: self.path,
            key,
            value,
        });
        self.path = link(self.path_steps.len() - 1);
        self.check_kept()
    }

    /// Whether the value is the one that the tracked path leads to.
    pub fn is_on_path(&self, value: &Val) -> bool {
        self.path_steps
            .get(self.path as usize)
            .is_some_and(|step| step.value.is_same(value))
    }

    /// Adds a step from a value, if a path is tracked.
    pub fn follow(&mut self, from: &Val, key: impl FnOnce() -> Val, to: &Val) -> Result<(), Fault> {
        if !self.is_tracked() {
            return Ok(());
        }
        if !self.is_on_path(from) {
            return fail(format!("invalid path against: {}", described(from)));
        }
        self.step_path(Some(key()), to.clone())
    }

    /// `getpath`: all of its steps lead to the same value.
    pub fn follow_all(&mut self, from: &Val, keys: &[Val], to: &Val) -> Result<(), Fault> {
        if !self.is_tracked() {
            return Ok(());
        }
        if !self.is_on_path(from) {
            return fail(format!("invalid path against: {}", described(from)));
        }
        keys.iter()
            .try_for_each(|key| self.step_path(Some(key.clone()), to.clone()))
    }

    /// The tracked path, as a list of keys.
    pub fn followed(&mut self) -> Result<Val, Fault> {
        let mut keys = Vec::new();
        let mut at = self.path;
        while let Some(PathStep {
            before,
            key: Some(key),
            ..
        }) = self.path_steps.get(at as usize)
        {
            keys.push(key.clone());
            at = *before;
        }
        keys.reverse();
        let path = Val::list(keys);
        self.budget.made(&path)?;
        self.budget.steps(path.weight() / 64)?;
        Ok(path)
    }

    /// The value at a key, adding a step to the path.
    pub fn index(&mut self, of: &Val, key: &Val) -> Stepped<'p> {
        let value = paths::index(of, key)?;
        if !matches!(
            (of, key),
            (
                Val::List(_) | Val::Map(_) | Val::Null,
                Val::Int(_) | Val::Text(_)
            )
        ) {
            self.budget.walk(of)?;
            self.budget.made(&value)?;
        }
        self.follow(of, || key.clone(), &value)?;
        Ok(Next::Give(value))
    }
}

fn link(at: usize) -> Link {
    Link::try_from(at).unwrap_or(NONE)
}
