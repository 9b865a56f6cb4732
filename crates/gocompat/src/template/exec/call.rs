//! Calls functions and methods: checks of their arguments, and their results.

use super::super::code::Template;
use super::super::error::Error;
use super::super::function::{Body, Call, Function, Slot};
use super::super::node::{Id, Node};
use super::super::types::Type;
use super::super::value::{Str, Value};
use super::{Done, Fault, Machine};

/// What is called, and where.
pub(super) struct Target<'t> {
    pub function: Function,
    pub receiver: Value,
    /// The node that its error is reported at.
    pub at: Id,
    pub name: &'t [u8],
    /// Whether the result is unwrapped from its interface.
    pub strip: bool,
}

impl Machine<'_> {
    /// Calls with the arguments on top of the stack; the piped value is below them and is the last
    /// argument.
    pub(super) fn call(
        &mut self,
        template: &Template,
        target: Target<'_>,
        args: usize,
        piped: bool,
    ) -> Done {
        let count = args + usize::from(piped);
        let first = self.stack.len().saturating_sub(count);
        if piped {
            self.stack[first..].rotate_left(1);
            if let Some(last) = self.stack.last_mut() {
                validate(last, target.function.param(args)).map_err(Fault::Here)?;
            }
        }
        let fails = |error: Error| {
            Fault::Call(
                target.at,
                format!("error calling {}: ", String::from_utf8_lossy(target.name)),
                error,
            )
        };
        let mut call = Call {
            args: &mut self.stack[first..],
            receiver: target.receiver,
            host: &mut *self.host,
            budget: self.budget,
            templates: &self.frame.set,
        };
        match target.function.body {
            Body::Plain(body) => {
                let around = self.frame.set.functions().around();
                let around = around.filter(|around| (around.before)(target.name, &mut call));
                let mut value = body(&mut call).map_err(fails)?;
                if let Some(around) = around {
                    value = (around.after)(value);
                }
                self.stack.truncate(first);
                self.stack.push(Slot {
                    boxed: !target.strip && matches!(value, Value::Nil),
                    value,
                });
                Ok(())
            }
            Body::Run(body) => {
                let run = body(&mut call).map_err(fails)?;
                self.stack.truncate(first);
                self.start(run, target.at, Str::from(target.name), target.strip)
            }
            Body::Invoke => {
                let function = call.arg(0).clone();
                let Some(body) = callable(&function) else {
                    return Err(fails(invoke(template, target.at, &function, args)));
                };
                call.args = std::mem::take(&mut call.args)
                    .split_first_mut()
                    .map_or(&mut [], |(_, rest)| rest);
                call.receiver = function;
                let value = body(&mut call).map_err(fails)?;
                self.stack.truncate(first);
                self.stack.push(Slot {
                    boxed: !target.strip && matches!(value, Value::Nil),
                    value,
                });
                Ok(())
            }
            // They are compiled to jumps.
            Body::And | Body::Or => Ok(()),
        }
    }
}

type PlainBody = fn(&mut Call<'_>) -> Result<Value, Error>;

/// The body of a value that is a function.
fn callable(value: &Value) -> Option<PlainBody> {
    let Value::Object(object) = value else {
        return None;
    };
    match object.callable()?.body {
        Body::Plain(body) => Some(body),
        _ => None,
    }
}

/// The errors of `call` for a value that is not a function.
fn invoke(template: &Template, at: Id, function: &Value, written: usize) -> Error {
    let name = match template.nodes.get(at) {
        Node::Command(args) if written > 0 => template.nodes.write(args[1]),
        _ => match function {
            Value::String(s) => s.to_str().into_owned(),
            other => format!("<{} Value>", other.go_type()),
        },
    };
    match function {
        Value::Nil => Error::function("call of nil"),
        other => Error::function(format!("non-function {name} of type {}", other.go_type())),
    }
}

/// Checks that a value can be passed for this type.
pub(super) fn validate(slot: &mut Slot, wanted: Type) -> Result<(), String> {
    if wanted == Type::Reflect {
        return Ok(());
    }
    if wanted == Type::Any {
        if let Value::Object(object) = &slot.value
            && let Some(held) = object.in_interface()
        {
            slot.value = held;
        }
        return Ok(());
    }
    if slot.is_invalid() {
        if !wanted.can_be_nil() {
            return Err(format!("invalid value; expected {wanted}"));
        }
        slot.value = wanted.zero();
        return Ok(());
    }
    let found = slot.value.go_type();
    if !wanted.accepts(found) || matches!(slot.value, Value::Nil) {
        return Err(format!(
            "wrong type for value; expected {wanted}; got {found}"
        ));
    }
    if let (Value::Object(object), true) = (&slot.value, wanted != found)
        && let Some(inner) = object.underlying()
    {
        slot.value = inner;
    }
    Ok(())
}
