//! Registration and calls of functions.
//!
//! Main types: [`Functions`] (the table a template is parsed against), [`Function`] (its parameter
//! types and body) and [`Call`] (what a body sees). The executor counts and checks arguments
//! against the types as Go's does, so a body gets what it declared. A body that needs templates
//! executed, such as `include`, does not call the executor: it returns a [`Run`] with a callback
//! for the outcome, so nesting needs no native stack.

use super::budget::Budget;
use super::error::Error;
use super::set::TemplateSet;
use super::types::Type;
use super::value::{List, Map, Str, Value};
use hashbrown::HashMap;
use std::{any::Any, borrow::Cow, sync::Arc};

/// A function or method that templates can call.
#[derive(Clone, Copy)]
pub struct Function {
    pub(super) params: &'static [Type],
    pub(super) variadic: bool,
    pub(super) body: Body,
}

#[derive(Clone, Copy)]
pub(super) enum Body {
    Plain(fn(&mut Call<'_>) -> Result<Value, Error>),
    Run(fn(&mut Call<'_>) -> Result<Run, Error>),
    And,
    Or,
    /// `call`, which needs the source text of its first argument.
    Invoke,
}

impl Function {
    /// A function with these parameters.
    pub const fn new(
        params: &'static [Type],
        body: fn(&mut Call<'_>) -> Result<Value, Error>,
    ) -> Self {
        Self {
            params,
            variadic: false,
            body: Body::Plain(body),
        }
    }

    /// A function whose last parameter may be repeated.
    pub const fn variadic(
        params: &'static [Type],
        body: fn(&mut Call<'_>) -> Result<Value, Error>,
    ) -> Self {
        Self {
            params,
            variadic: true,
            body: Body::Plain(body),
        }
    }

    /// A function that requests the execution of templates.
    pub const fn running(
        params: &'static [Type],
        body: fn(&mut Call<'_>) -> Result<Run, Error>,
    ) -> Self {
        Self {
            params,
            variadic: false,
            body: Body::Run(body),
        }
    }

    /// The number of required parameters.
    pub(super) fn fixed(&self) -> usize {
        self.params.len() - usize::from(self.variadic)
    }

    /// The type that argument `index` must have.
    pub(super) fn param(&self, index: usize) -> Type {
        self.params
            .get(index)
            .or(self.params.last())
            .copied()
            .unwrap_or(Type::Any)
    }

    /// Go's error for a wrong number of arguments. `written` does not count the piped value.
    pub(super) fn arity(&self, name: &str, written: usize, piped: bool) -> Result<(), String> {
        let count = written + usize::from(piped);
        if self.variadic && count < self.fixed() {
            return Err(format!(
                "wrong number of args for {name}: want at least {} got {written}",
                self.fixed()
            ));
        }
        if !self.variadic && count != self.params.len() {
            return Err(format!(
                "wrong number of args for {name}: want {} got {count}",
                self.params.len()
            ));
        }
        Ok(())
    }
}

/// The request of a body: execute a template with a value, and turn its output into the function's
/// result.
pub struct Run {
    pub templates: Arc<TemplateSet>,
    pub name: Str,
    pub data: Value,
    pub then: Then,
}

/// Receives the host and the output, or the error, of the template.
pub type Then = Box<dyn FnOnce(&mut dyn Any, Result<&[u8], Error>) -> Result<Value, Error>>;

/// A value, and whether it is still wrapped in an `interface {}`, which matters only for error
/// texts. An unwrapped nil is no value at all.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub value: Value,
    pub boxed: bool,
}

impl Slot {
    pub fn new(value: Value) -> Self {
        Self {
            value,
            boxed: false,
        }
    }

    /// As an element of a map, list or struct of this type.
    pub fn element(value: Value, of: Type) -> Self {
        Self {
            value,
            boxed: of == Type::Any,
        }
    }

    /// Whether it is Go's invalid value.
    pub fn is_invalid(&self) -> bool {
        !self.boxed && matches!(self.value, Value::Nil)
    }

    /// The type that reflection sees.
    pub fn static_type(&self) -> Type {
        if self.boxed {
            Type::Any
        } else {
            self.value.go_type()
        }
    }
}

/// A call, as seen by the body.
pub struct Call<'a> {
    pub(super) args: &'a mut [Slot],
    pub(super) receiver: Value,
    pub(super) host: &'a mut dyn Any,
    pub(super) budget: &'a Budget,
    pub(super) templates: &'a Arc<TemplateSet>,
}

impl Call<'_> {
    /// How many arguments there are.
    pub fn len(&self) -> usize {
        self.args.len()
    }

    pub fn is_empty(&self) -> bool {
        self.args.is_empty()
    }

    /// An argument; nil if it is missing.
    pub fn arg(&self, index: usize) -> &Value {
        self.args.get(index).map_or(&Value::Nil, |slot| &slot.value)
    }

    /// The arguments from an index on.
    pub fn rest(&self, from: usize) -> impl Iterator<Item = &Value> {
        self.args.iter().skip(from).map(|slot| &slot.value)
    }

    /// Moves an argument out.
    pub fn take(&mut self, index: usize) -> Value {
        self.args
            .get_mut(index)
            .map(|slot| std::mem::take(&mut slot.value))
            .unwrap_or_default()
    }

    /// Replaces an argument by one of the same type.
    pub fn replace(&mut self, index: usize, value: Value) {
        if let Some(slot) = self.args.get_mut(index) {
            slot.value = value;
        }
    }

    /// An argument declared as a string.
    pub fn string(&self, index: usize) -> Result<&Str, Error> {
        match self.arg(index) {
            Value::String(s) => Ok(s),
            other => Err(mismatch(index, other)),
        }
    }

    /// An argument declared as a string, with invalid UTF-8 replaced.
    pub fn text(&self, index: usize) -> Result<Cow<'_, str>, Error> {
        self.string(index).map(Str::to_str)
    }

    /// An argument declared as a number of an integer type.
    pub fn integer(&self, index: usize) -> Result<i64, Error> {
        match self.arg(index) {
            Value::Int(_, i) => Ok(*i),
            other => Err(mismatch(index, other)),
        }
    }

    /// An argument declared as a float64.
    pub fn float(&self, index: usize) -> Result<f64, Error> {
        match self.arg(index) {
            Value::Float(f) => Ok(*f),
            other => Err(mismatch(index, other)),
        }
    }

    /// An argument declared as a bool.
    pub fn boolean(&self, index: usize) -> Result<bool, Error> {
        match self.arg(index) {
            Value::Bool(b) => Ok(*b),
            other => Err(mismatch(index, other)),
        }
    }

    /// An argument declared as a map.
    pub fn map(&self, index: usize) -> Result<&Map, Error> {
        match self.arg(index) {
            Value::Map(map) => Ok(map),
            other => Err(mismatch(index, other)),
        }
    }

    /// An argument declared as a slice.
    pub fn list(&self, index: usize) -> Result<&List, Error> {
        match self.arg(index) {
            Value::List(list) => Ok(list),
            other => Err(mismatch(index, other)),
        }
    }

    /// The object whose method this is; nil for a function.
    pub fn receiver(&self) -> &Value {
        &self.receiver
    }

    /// The host that the caller passed to the executor.
    pub fn host<T: 'static>(&mut self) -> Result<&mut T, Error> {
        self.host
            .downcast_mut()
            .ok_or_else(|| Error::function("this function is not available here"))
    }

    pub fn budget(&self) -> &Budget {
        self.budget
    }

    /// The templates that the calling template sees.
    pub fn templates(&self) -> &Arc<TemplateSet> {
        self.templates
    }
}

fn mismatch(index: usize, found: &Value) -> Error {
    Error::function(format!(
        "argument {}: unexpected {}",
        index + 1,
        found.go_type()
    ))
}

/// The functions that templates can call, by name. A later one with the same name replaces the
/// earlier one.
#[derive(Clone)]
pub struct Functions {
    /// hashbrown's, because its hashes are computed faster than those of std's: every call in a
    /// template is looked up.
    names: HashMap<Box<[u8]>, u32>,
    list: Vec<Function>,
    around: Option<Around>,
}

/// What happens around each call of a function that executes no templates, and where values are
/// printed.
#[derive(Clone, Copy)]
pub struct Around {
    /// Sees the function's name, and may replace arguments. Returns whether `after` is due.
    pub before: fn(&[u8], &mut Call<'_>) -> bool,
    /// The result instead of the function's own.
    pub after: fn(Value) -> Value,
    /// Stands between an opening brace that was printed and one that a value begins with.
    pub between_braces: Option<char>,
}

impl Functions {
    /// The builtin functions of text/template.
    pub fn builtins() -> Self {
        let mut functions = Self {
            names: HashMap::new(),
            list: Vec::new(),
            around: None,
        };
        functions.extend(super::builtin::TABLE.iter().copied());
        functions
    }

    pub fn insert(&mut self, name: &str, function: Function) {
        let index = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(function);
        self.names.insert(name.as_bytes().into(), index);
    }

    /// Has this happen around each call.
    pub fn set_around(&mut self, around: Around) {
        self.around = Some(around);
    }

    pub(super) fn around(&self) -> Option<Around> {
        self.around
    }

    pub fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name.as_bytes())
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// The function with an index returned by [`Functions::find`].
    pub(super) fn get(&self, index: u32) -> Function {
        self.list[index as usize]
    }
}

impl<'a> Extend<(&'a str, Function)> for Functions {
    fn extend<I: IntoIterator<Item = (&'a str, Function)>>(&mut self, functions: I) {
        functions
            .into_iter()
            .for_each(|(name, function)| self.insert(name, function));
    }
}
