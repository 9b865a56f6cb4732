//! Values of expressions as values of templates, and back.
//!
//! Main functions: [`to_template`] and [`from_template`].

use super::error::ExprError;
use super::value::{Func, IntKind, Key, ListKind, Param, Value};
use crate::sprig::Moment;
use crate::template::{
    Call, Error, Function, INT, INT64, IntKind as TemplateInt, JsonForm, LIST, List, MAP, Map,
    Named, Object, STRINGS, Str, Type, UintKind, Value as Template,
};
use std::rc::Rc;

static DURATION: Named = Named {
    name: "time.Duration",
    underlying: Some(INT64),
};
static FUNC: Named = Named {
    name: "func",
    underlying: None,
};
static STRUCT: Named = Named {
    name: "struct",
    underlying: None,
};
static LOCATION: Named = Named {
    name: "*time.Location",
    underlying: None,
};
static MONTH: Named = Named {
    name: "time.Month",
    underlying: Some(INT),
};

/// The value for a template. A function can be called with `call`.
pub fn to_template(value: &Value) -> Template {
    match value {
        Value::Nil => Template::Nil,
        Value::Bool(b) => Template::Bool(*b),
        Value::Int(IntKind::Int, i) => Template::int(*i),
        Value::Int(IntKind::Int64, i) => Template::int64(*i),
        Value::Int(IntKind::Uint8, i) => {
            Template::Uint(UintKind::Uint8, u64::try_from(*i).unwrap_or(0))
        }
        Value::Float(f) => Template::Float(*f),
        Value::Str(s) => Template::String(s.clone()),
        Value::Bytes(b) => Template::Bytes(b.clone()),
        Value::List(list) => {
            let kind = if list.kind == ListKind::Strings {
                STRINGS
            } else {
                LIST
            };
            Template::List(List::of(kind, list.items.iter().map(to_template).collect()))
        }
        Value::Map(map) => Template::Map(Map::of(
            MAP,
            map.entries.iter().map(|(key, item)| {
                let key = match key {
                    Key::Str(text) => text.clone(),
                    other => super::print::bytes(&other.value()).into(),
                };
                (key, to_template(item))
            }),
        )),
        Value::Time(at) => Template::Object(Rc::new(Timed(at.clone()))),
        Value::Func(_)
        | Value::Duration(_)
        | Value::Month(_)
        | Value::Weekday(_)
        | Value::Struct(_)
        | Value::Location(_) => Template::Object(Rc::new(Wrapped(value.clone()))),
    }
}

/// The value of a template for an expression.
pub fn from_template(value: &Template) -> Value {
    match value {
        Template::Nil | Template::Complex(..) => Value::Nil,
        Template::Bool(b) => Value::Bool(*b),
        Template::Int(TemplateInt::Int, i) => Value::int(*i),
        Template::Int(_, i) => Value::int64(*i),
        Template::Uint(UintKind::Uint8, u) => {
            Value::Int(IntKind::Uint8, i64::try_from(*u).unwrap_or(0))
        }
        Template::Uint(_, u) => Value::int64(i64::try_from(*u).unwrap_or(i64::MAX)),
        Template::Float(f) => Value::Float(*f),
        Template::String(s) => Value::Str(s.clone()),
        Template::Bytes(b) => Value::Bytes(b.clone()),
        Template::List(list) => {
            let kind = if list.go_type() == STRINGS {
                ListKind::Strings
            } else {
                ListKind::Any
            };
            Value::list_of(kind, list.items().iter().map(from_template).collect())
        }
        Template::Map(map) => Value::map(
            map.entries()
                .into_iter()
                .map(|(key, item): (Str, Template)| (key, from_template(&item))),
        ),
        Template::Object(object) => {
            let any = object.as_any();
            if let Some(at) = any.downcast_ref::<Moment>() {
                return Value::Time(at.clone());
            }
            match any.downcast_ref::<Wrapped>() {
                Some(wrapped) => wrapped.0.clone(),
                None => object
                    .underlying()
                    .map_or(Value::Nil, |inner| from_template(&inner)),
            }
        }
    }
}

/// A time that also has the methods with durations and zones. To all functions it is its own
/// [`Moment`].
struct Timed(Moment);

impl Object for Timed {
    fn go_type(&self) -> Type {
        self.0.go_type()
    }

    fn method(&self, name: &str) -> Option<&'static Function> {
        let own = super::methods::template_method(&Value::Time(self.0.clone()), name);
        own.or_else(|| self.0.method(name))
    }

    fn text(&self) -> Option<String> {
        self.0.text()
    }

    fn json(&self) -> JsonForm {
        self.0.json()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        &self.0
    }
}

/// A value that templates have no own form for.
struct Wrapped(Value);

impl Object for Wrapped {
    fn go_type(&self) -> Type {
        Type::Named(match self.0 {
            Value::Duration(_) => &DURATION,
            Value::Func(_) => &FUNC,
            Value::Location(_) => &LOCATION,
            Value::Struct(_) => &STRUCT,
            _ => &MONTH,
        })
    }

    fn underlying(&self) -> Option<Template> {
        match self.0 {
            Value::Duration(i) => Some(Template::int64(i)),
            Value::Month(i) | Value::Weekday(i) => Some(Template::int(i)),
            _ => None,
        }
    }

    fn text(&self) -> Option<String> {
        match self.0 {
            Value::Func(_) | Value::Struct(_) => None,
            _ => Some(super::print::display(&self.0)),
        }
    }

    fn fields(&self) -> Vec<(&'static str, Template)> {
        match &self.0 {
            Value::Struct(value) => value
                .fields
                .iter()
                .map(|(name, field)| (*name, to_template(field)))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn method(&self, name: &str) -> Option<&'static Function> {
        super::methods::template_method(&self.0, name)
    }

    fn callable(&self) -> Option<&'static Function> {
        static CALL: Function = Function::variadic(&[Type::Any], call);
        matches!(self.0, Value::Func(_)).then_some(&CALL)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Calls the function that is the receiver.
fn call(call: &mut Call<'_>) -> Result<Template, Error> {
    let args: Vec<Value> = call.rest(0).map(from_template).collect();
    match from_template(call.receiver()) {
        Value::Func(func) => func
            .call(args)
            .map(|value| to_template(&value))
            .map_err(|error| Error::function(error.to_string())),
        _ => Err(Error::function("call of nil")),
    }
}

impl Func {
    /// Calls it, after a check of the arguments.
    ///
    /// # Errors
    /// For arguments that it does not take, and what its body says.
    pub fn call(&self, mut args: Vec<Value>) -> Result<Value, ExprError> {
        let (count, wanted) = (args.len(), self.params.len());
        if self.variadic && count + 1 < wanted {
            return Err(ExprError::run(format!(
                "invalid number of arguments: expected at least {}, got {count}",
                wanted - 1
            )));
        }
        if !self.variadic && count != wanted {
            return Err(ExprError::run(format!(
                "invalid number of arguments: expected {wanted}, got {count}"
            )));
        }
        for (index, arg) in args.iter_mut().enumerate() {
            let param = self.params.get(index).or(self.params.last());
            if let Some(param) = param {
                *arg = param.take(std::mem::take(arg))?;
            }
        }
        (self.body)(&args)
    }
}

impl Param {
    /// The argument for this parameter: nil becomes its zero value.
    fn take(self, value: Value) -> Result<Value, ExprError> {
        let zero = match self {
            Param::Any => return Ok(value),
            // A pointer to a location may be nil.
            Param::Location if matches!(value, Value::Nil) => return Ok(Value::Nil),
            Param::Str => Value::from(""),
            Param::Int => Value::int(0),
            Param::Time => Value::Time(Moment::zero()),
            Param::Duration => Value::Duration(0),
            Param::Location => Value::Location(jiff::tz::TimeZone::UTC),
            Param::Strings => Value::strings::<&str>([]),
        };
        // Not so a nil list, which has a type.
        if matches!(value, Value::Nil) {
            return Ok(zero);
        }
        if value.go_type() == zero.go_type() {
            return Ok(value);
        }
        Err(ExprError::run(format!(
            "reflect: Call using {} as type {}",
            value.go_type(),
            zero.go_type()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::{Param, Value};

    /// Go passes only an untyped nil as the zero value.
    #[test]
    fn a_nil_list_is_no_zero_value() {
        for param in [
            Param::Str,
            Param::Int,
            Param::Time,
            Param::Duration,
            Param::Location,
            Param::Strings,
        ] {
            assert!(param.take(Value::Nil).is_ok());
            assert!(param.take(Value::appended(Vec::new())).is_err());
        }
    }
}
