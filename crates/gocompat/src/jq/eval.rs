//! Starts the evaluation of each node: its immediate value, and the frames and choices that it
//! pushes.
//!
//! Main function: [`Machine::eval`].

use super::{
    fault::{Fault, fail},
    machine::{
        After, Callee, Frame, How, Kind, Link, Machine, Matching, NONE, Next, Slot, Stepped,
    },
    node::{Bind, Match, Node, Update},
    paths, prelude,
    text::described,
    value::Val,
};

impl<'p> Machine<'p> {
    pub fn eval(&mut self, node: &'p Node, env: Link, input: Val) -> Stepped<'p> {
        match node {
            Node::Identity => Ok(Next::Give(input)),
            Node::Const(value) => Ok(Next::Give(value.clone())),
            Node::Var(hops) => Ok(Next::Give(self.value_of(env, *hops))),
            Node::Empty => Ok(Next::Back),
            Node::Pipe(parts) => {
                self.push(Frame::Then(&parts.1, env))?;
                Ok(Next::Eval(&parts.0, env, input))
            }
            Node::Comma(parts) => {
                self.choose(Kind::Node(&parts.1, env, input.clone()))?;
                Ok(Next::Eval(&parts.0, env, input))
            }
            Node::Field(of, key) if matches!(**of, Node::Identity) => self.index(&input, key),
            Node::Field(of, key) => {
                self.push(Frame::Field(key))?;
                Ok(Next::Eval(of, env, input))
            }
            Node::Iterate(of) if matches!(**of, Node::Identity) => self.iterate(input),
            Node::Iterate(of) => {
                self.push(Frame::Iterate)?;
                Ok(Next::Eval(of, env, input))
            }
            Node::Index(parts) => {
                self.untracked += 1;
                self.push(Frame::IndexKey {
                    of: &parts.0,
                    env,
                    input: input.clone(),
                })?;
                Ok(Next::Eval(&parts.1, env, input))
            }
            Node::Slice(parts) => {
                self.untracked += 1;
                self.push(Frame::SliceStart {
                    parts,
                    env,
                    input: input.clone(),
                })?;
                Ok(Next::Eval(&parts.2, env, input))
            }
            Node::If(parts) => {
                self.untracked += 1;
                self.push(Frame::Condition {
                    parts,
                    env,
                    input: input.clone(),
                })?;
                Ok(Next::Eval(&parts.0, env, input))
            }
            Node::Object(entries) => self.entries(entries, Vec::new(), env, input),
            Node::Native(native, arguments) => {
                self.arguments(Callee::Native(native, arguments), Vec::new(), env, input)
            }
            Node::Range(arguments) => {
                self.arguments(Callee::Range(arguments), Vec::new(), env, input)
            }
            Node::Define(..) | Node::Call(..) | Node::Argument(_) | Node::Prelude(..) => {
                self.call(node, env, input)
            }
            _ => self.eval_control(node, env, input),
        }
    }

    /// Nodes that push a choice which later code inspects.
    fn eval_control(&mut self, node: &'p Node, env: Link, input: Val) -> Stepped<'p> {
        match node {
            Node::Array(of) => {
                let choice = self.choose(Kind::Collect(Vec::new()))?;
                self.push(Frame::Collect(choice))?;
                Ok(Next::Eval(of, env, input))
            }
            Node::Alternative(parts) => {
                let choice = self.choose(Kind::Alternative {
                    found: false,
                    right: &parts.1,
                    env,
                    input: input.clone(),
                })?;
                self.push(Frame::AlternativeEnd(choice))?;
                Ok(Next::Eval(&parts.0, env, input))
            }
            Node::Try(parts) => {
                let choice = self.choose(Kind::Try {
                    handler: parts.1.as_ref(),
                    env,
                })?;
                self.push(Frame::TryEnd(choice))?;
                Ok(Next::Eval(&parts.0, env, input))
            }
            Node::Reduce(fold) | Node::Foreach(fold) => {
                let reduce = matches!(node, Node::Reduce(_));
                self.push(Frame::FoldStart {
                    fold,
                    reduce,
                    env,
                    input: input.clone(),
                })?;
                Ok(Next::Eval(&fold.start, env, input))
            }
            Node::Bind(bind) => {
                self.untracked += 1;
                self.push(Frame::BindSource {
                    bind,
                    env,
                    input: input.clone(),
                })?;
                Ok(Next::Eval(&bind.source, env, input))
            }
            Node::Label(body) => {
                let choice = self.choose(Kind::Label)?;
                let env = self.bind(Slot::Label(choice), env)?;
                Ok(Next::Eval(body, env, input))
            }
            Node::Break(hops) => {
                if let Slot::Label(choice) = self.lookup(env, *hops).1 {
                    let choice = *choice;
                    self.choices.truncate(choice);
                }
                Ok(Next::Back)
            }
            Node::Path(of) => {
                self.begin_path(&input)?;
                Ok(Next::Eval(of, env, input))
            }
            Node::GetPath(path) => {
                self.untracked += 1;
                self.push(Frame::GetPath {
                    input: input.clone(),
                })?;
                Ok(Next::Eval(path, env, input))
            }
            Node::Last(of) => {
                let choice = self.choose(Kind::Last(None))?;
                self.push(Frame::LastEnd(choice))?;
                Ok(Next::Eval(of, env, input))
            }
            Node::Update(Update::Modify, parts) => {
                self.update(How::Modify(&parts.1, env), &parts.0, env, input)
            }
            Node::Update(update, parts) => {
                self.push(Frame::UpdateValue {
                    update: *update,
                    parts,
                    env,
                    input: input.clone(),
                })?;
                Ok(Next::Eval(&parts.1, env, input))
            }
            _ => Ok(Next::Give(input)),
        }
    }

    fn call(&mut self, node: &'p Node, env: Link, input: Val) -> Stepped<'p> {
        let (body, mut inner, arguments) = match node {
            Node::Define(definition, rest) => {
                let env = self.bind(Slot::Function(&definition.body), env)?;
                return Ok(Next::Eval(rest, env, input));
            }
            Node::Argument(hops) => match self.lookup(env, *hops).1 {
                Slot::Closure(node, env) => return Ok(Next::Eval(node, *env, input)),
                _ => return Ok(Next::Back),
            },
            Node::Call(hops, arguments) => match self.lookup(env, *hops) {
                (place, Slot::Function(body)) => (*body, place, arguments),
                _ => return Ok(Next::Back),
            },
            Node::Prelude(place, arguments) => (prelude::body(*place), NONE, arguments),
            _ => return Ok(Next::Back),
        };
        for argument in arguments {
            // An argument that only passes on another argument is replaced by it, so that recursion
            // does not build chains.
            let closure = match argument {
                Node::Argument(hops) => self.lookup(env, *hops).1.clone(),
                argument => Slot::Closure(argument, env),
            };
            inner = self.bind(closure, inner)?;
        }
        Ok(Next::Eval(body, inner, input))
    }

    /// The value of a node that needs no frame.
    fn simple(&self, node: &Node, env: Link, input: &Val) -> Option<Val> {
        match node {
            Node::Identity => Some(input.clone()),
            Node::Const(value) => Some(value.clone()),
            Node::Var(hops) => Some(self.value_of(env, *hops)),
            _ => None,
        }
    }

    /// Evaluates the remaining arguments, from the last to the first, and then calls.
    pub fn arguments(
        &mut self,
        callee: Callee<'p>,
        mut got: Vec<Val>,
        env: Link,
        input: Val,
    ) -> Stepped<'p> {
        let arguments = callee.arguments();
        while got.len() < arguments.len() {
            let at = arguments.len() - 1 - got.len();
            match self.simple(&arguments[at], env, &input) {
                Some(value) => got.push(value),
                None => {
                    self.push(Frame::Arguments {
                        callee,
                        got,
                        env,
                        input: input.clone(),
                    })?;
                    return Ok(Next::Eval(&arguments[at], env, input));
                }
            }
        }
        got.reverse();
        match callee {
            Callee::Native(native, _) => {
                let value = native.call(&mut self.budget, &input, &got)?;
                Ok(Next::Give(value))
            }
            Callee::Range(_) => {
                if let Some(other) = got.iter().find(|v| !v.is_number()) {
                    return fail(format!("range cannot be applied to: {}", described(other)));
                }
                let [at, end, step] = <[Val; 3]>::try_from(got).unwrap_or([const { Val::Null }; 3]);
                self.choose(Kind::Range { at, end, step })?;
                Ok(Next::Back)
            }
        }
    }

    /// Evaluates the keys and values of an object in turn.
    pub fn entries(
        &mut self,
        entries: &'p [(Node, Node)],
        mut got: Vec<Val>,
        env: Link,
        input: Val,
    ) -> Stepped<'p> {
        while got.len() < entries.len() * 2 {
            let (key, value) = &entries[got.len() / 2];
            let node = if got.len().is_multiple_of(2) {
                key
            } else {
                value
            };
            match self.simple(node, env, &input) {
                Some(value) => got.push(value),
                None => {
                    self.push(Frame::Entries {
                        entries,
                        got,
                        env,
                        input: input.clone(),
                    })?;
                    return Ok(Next::Eval(node, env, input));
                }
            }
        }
        let mut map = super::value::Map::new();
        let mut got = got.into_iter();
        while let (Some(key), Some(value)) = (got.next(), got.next()) {
            match key {
                Val::Text(key) => drop(map.insert(key, value)),
                other => {
                    return fail(format!(
                        "expected a string for object key but got: {}",
                        described(&other)
                    ));
                }
            }
        }
        let made = Val::map(map);
        self.budget.made(&made)?;
        Ok(Next::Give(made))
    }

    pub fn iterate(&mut self, of: Val) -> Stepped<'p> {
        if matches!(of, Val::List(_) | Val::Map(_)) && self.is_tracked() && !self.is_on_path(&of) {
            return fail(format!(
                "invalid path on iterating against: {}",
                described(&of)
            ));
        }
        match of {
            Val::List(list) => {
                self.choose(Kind::List(list, 0))?;
                Ok(Next::Back)
            }
            Val::Map(map) => match map.items.first_key_value() {
                None => Ok(Next::Back),
                Some((key, value)) => {
                    let (key, value) = (key.clone(), value.clone());
                    if map.items.len() > 1 {
                        self.choose(Kind::Map(map.clone(), key.clone()))?;
                    }
                    self.follow(&Val::Map(map), || Val::Text(key), &value)?;
                    Ok(Next::Give(value))
                }
            },
            other => fail(format!("cannot iterate over: {}", described(&other))),
        }
    }

    /// Continues with pattern number `which` of a binding. If it fails, the next one is tried.
    pub fn bind_pattern(
        &mut self,
        bind: &'p Bind,
        which: usize,
        value: Val,
        input: Val,
        env: Link,
    ) -> Stepped<'p> {
        if which + 1 < bind.patterns.len() {
            self.choose(Kind::Patterns {
                bind,
                next: which + 1,
                value: value.clone(),
                input: input.clone(),
                env,
            })?;
        }
        let steps = &bind.patterns[which];
        self.matching(Matching {
            steps,
            current: value,
            open: Vec::new(),
            env,
            after: After::Body(bind, input),
        })
    }

    pub fn matching(&mut self, mut matching: Matching<'p>) -> Stepped<'p> {
        while let Some((step, rest)) = matching.steps.split_first() {
            matching.steps = rest;
            let open = || matching.open.last().cloned().unwrap_or(Val::Null);
            match step {
                Match::Open => matching.open.push(matching.current.clone()),
                Match::Close => drop(matching.open.pop()),
                Match::Element(at) => matching.current = element(&open(), *at)?,
                Match::Field(key) => matching.current = paths::index(&open(), key)?,
                Match::Bind => {
                    matching.env = self.bind(Slot::Value(matching.current.clone()), matching.env)?
                }
                Match::Gather { skip, from } => {
                    let mut env = self.up(matching.env, *skip);
                    for hops in from {
                        let value =
                            hops.map_or(Val::Null, |hops| self.value_of(matching.env, hops));
                        env = self.bind(Slot::Value(value), env)?;
                    }
                    matching.env = env;
                }
                Match::Computed(key) => {
                    let (env, input) = (matching.env, open());
                    self.push(Frame::MatchKey(Box::new(matching)))?;
                    return Ok(Next::Eval(key, env, input));
                }
            }
        }
        match matching.after {
            After::Body(bind, input) => {
                self.untracked -= 1;
                Ok(Next::Eval(&bind.body, matching.env, input))
            }
            After::Fold {
                fold,
                reduce,
                choice,
            } => {
                self.push(Frame::FoldUpdate {
                    fold,
                    reduce,
                    env: matching.env,
                    choice,
                })?;
                let so_far = match &self.choices[choice].kind {
                    Kind::Reduce(value) | Kind::Foreach(value) => value.clone(),
                    _ => Val::Null,
                };
                Ok(Next::Eval(&fold.update, matching.env, so_far))
            }
        }
    }

    /// Starts an assignment to all paths that a node selects.
    pub fn update(&mut self, how: How<'p>, paths: &'p Node, env: Link, input: Val) -> Stepped<'p> {
        let choice = self.choose(Kind::Update {
            value: input.clone(),
            deleted: Vec::new(),
        })?;
        self.push(Frame::UpdatePath { how, choice })?;
        self.begin_path(&input)?;
        Ok(Next::Eval(paths, env, input))
    }
}

/// An element of the value that a pattern destructures as a list.
fn element(of: &Val, at: i64) -> Result<Val, Fault> {
    match of {
        Val::List(_) | Val::Null => paths::index(of, &Val::Int(at)),
        other => fail(format!("expected an array but got: {}", described(other))),
    }
}
