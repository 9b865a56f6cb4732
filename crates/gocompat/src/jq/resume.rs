//! Continues a frame with the value that it waited for.
//!
//! Main function: [`Machine::resume`].

use super::{
    fault::fail,
    machine::{After, Frame, How, Kind, Machine, Matching, Next, Stepped},
    node::Update,
    paths,
    text::described,
    value::Val,
};

impl<'p> Machine<'p> {
    pub fn resume(&mut self, value: Val) -> Stepped<'p> {
        let Some(frame) = self.pop() else {
            return Ok(Next::Back);
        };
        match frame {
            Frame::Then(node, env) => Ok(Next::Eval(node, env, value)),
            Frame::Field(key) => self.index(&value, key),
            Frame::IndexAt(key) => self.index(&value, &key),
            Frame::Iterate => self.iterate(value),
            Frame::IndexKey { of, env, input } => {
                self.untracked -= 1;
                self.push(Frame::IndexAt(value))?;
                Ok(Next::Eval(of, env, input))
            }
            Frame::SliceStart { parts, env, input } => {
                self.push(Frame::SliceEnd {
                    of: &parts.0,
                    start: value,
                    env,
                    input: input.clone(),
                })?;
                Ok(Next::Eval(&parts.1, env, input))
            }
            Frame::SliceEnd {
                of,
                start,
                env,
                input,
            } => {
                self.untracked -= 1;
                self.push(Frame::SliceOf { start, end: value })?;
                Ok(Next::Eval(of, env, input))
            }
            Frame::SliceOf { start, end } => {
                let part = paths::slice(&value, &start, &end)?;
                self.budget.made(&part)?;
                self.follow(
                    &value,
                    || Val::fields([("start", start), ("end", end)]),
                    &part,
                )?;
                Ok(Next::Give(part))
            }
            Frame::Arguments {
                callee,
                mut got,
                env,
                input,
            } => {
                got.push(value);
                self.arguments(callee, got, env, input)
            }
            Frame::Entries {
                entries,
                mut got,
                env,
                input,
            } => {
                got.push(value);
                self.entries(entries, got, env, input)
            }
            Frame::Condition { parts, env, input } => {
                self.untracked -= 1;
                Ok(Next::Eval(
                    if value.is_true() { &parts.1 } else { &parts.2 },
                    env,
                    input,
                ))
            }
            Frame::BindSource { bind, env, input } => self.bind_pattern(bind, 0, value, input, env),
            Frame::MatchKey(matching) => {
                let open = matching.open.last().cloned().unwrap_or(Val::Null);
                let current = paths::index(&open, &value)?;
                self.matching(Matching {
                    current,
                    ..*matching
                })
            }
            frame => self.resume_control(frame, value),
        }
    }

    /// Frames that inspect a choice, or that end a path.
    fn resume_control(&mut self, frame: Frame<'p>, value: Val) -> Stepped<'p> {
        match frame {
            Frame::Collect(choice) => {
                self.budget.bytes(size_of::<Val>())?;
                if let Kind::Collect(values) = &mut self.choices[choice].kind {
                    values.push(value);
                }
                Ok(Next::Back)
            }
            Frame::LastEnd(choice) => {
                self.choices[choice].kind = Kind::Last(Some(value));
                Ok(Next::Back)
            }
            Frame::TryEnd(choice) => {
                self.choose(Kind::TryDone(choice))?;
                Ok(Next::Give(value))
            }
            Frame::AlternativeEnd(choice) => {
                if !value.is_true() {
                    return Ok(Next::Back);
                }
                if let Kind::Alternative { found, .. } = &mut self.choices[choice].kind {
                    *found = true;
                }
                Ok(Next::Give(value))
            }
            Frame::PathEnd { path, untracked } => {
                if !self.is_on_path(&value) {
                    return fail(format!("invalid path against: {}", described(&value)));
                }
                let followed = self.followed()?;
                (self.path, self.untracked) = (path, untracked);
                Ok(Next::Give(followed))
            }
            Frame::GetPath { input } => {
                self.untracked -= 1;
                let found = paths::get(&input, &value)?;
                self.follow_all(&input, value.as_list().unwrap_or_default(), &found)?;
                Ok(Next::Give(found))
            }
            Frame::UpdateValue {
                update,
                parts,
                env,
                input,
            } => {
                let how = match update {
                    Update::With(native) => How::With(native, value),
                    _ => How::Set(value),
                };
                self.update(how, &parts.0, env, input)
            }
            Frame::UpdatePath { how, choice } => self.update_path(how, choice, value),
            Frame::UpdateEnd { choice, one, path } => {
                self.choices.truncate(one);
                self.set(choice, &path, value)?;
                Ok(Next::Back)
            }
            frame => self.resume_fold(frame, value),
        }
    }

    /// Frames of `reduce` and `foreach`; all other frames pass the value on.
    fn resume_fold(&mut self, frame: Frame<'p>, value: Val) -> Stepped<'p> {
        match frame {
            Frame::FoldStart {
                fold,
                reduce,
                env,
                input,
            } => {
                let choice = self.choose(if reduce {
                    Kind::Reduce(value)
                } else {
                    Kind::Foreach(value)
                })?;
                self.push(Frame::FoldItem {
                    fold,
                    reduce,
                    env,
                    choice,
                })?;
                Ok(Next::Eval(&fold.source, env, input))
            }
            Frame::FoldItem {
                fold,
                reduce,
                env,
                choice,
            } => {
                let after = After::Fold {
                    fold,
                    reduce,
                    choice,
                };
                self.matching(Matching {
                    steps: &fold.pattern,
                    current: value,
                    open: Vec::new(),
                    env,
                    after,
                })
            }
            Frame::FoldUpdate {
                fold,
                reduce,
                env,
                choice,
            } => {
                if let Kind::Reduce(so_far) | Kind::Foreach(so_far) = &mut self.choices[choice].kind
                {
                    *so_far = value.clone();
                }
                Ok(if reduce {
                    Next::Back
                } else {
                    Next::Eval(&fold.extract, env, value)
                })
            }
            _ => Ok(Next::Give(value)),
        }
    }

    /// One path of an assignment.
    fn update_path(&mut self, how: How<'p>, choice: usize, path: Val) -> Stepped<'p> {
        let before = |machine: &Self| match &machine.choices[choice].kind {
            Kind::Update { value, .. } => paths::get(value, &path),
            _ => Ok(Val::Null),
        };
        match how {
            How::Set(value) => self.set(choice, &path, value)?,
            How::With(native, value) => {
                let before = before(self)?;
                let value = native.call(&mut self.budget, &Val::Null, &[before, value])?;
                self.set(choice, &path, value)?;
            }
            How::Modify(node, env) => {
                let before = before(self)?;
                let one = self.choose(Kind::UpdateOne {
                    choice,
                    path: path.clone(),
                })?;
                self.push(Frame::UpdateEnd { choice, one, path })?;
                return Ok(Next::Eval(node, env, before));
            }
        }
        Ok(Next::Back)
    }

    fn set(&mut self, choice: usize, path: &Val, new: Val) -> Result<(), super::fault::Fault> {
        if let Kind::Update { value, .. } = &mut self.choices[choice].kind {
            let before = std::mem::replace(value, Val::Null);
            *value = paths::set(before, path, new, &mut self.budget)?;
        }
        Ok(())
    }
}
