//! Functions of semantic versions.
//!
//! Main value: [`TABLE`].

use super::args::{Out, fails};
use crate::semver::{Constraints, Version};
use crate::template::{Call, Error, Function, JsonForm, Named, Object, Type, UintKind, Value};
use std::{cmp::Ordering, rc::Rc};

static POINTER: Named = Named {
    name: "*semver.Version",
    underlying: None,
};
static VALUE: Named = Named {
    name: "semver.Version",
    underlying: None,
};
const POINTER_TYPE: Type = Type::Named(&POINTER);

pub(super) const TABLE: &[(&str, Function)] = &[
    (
        "semver",
        Function::new(&[Type::String], |call| Ok(pointer(parse(&call.text(0)?)?))),
    ),
    (
        "semverCompare",
        Function::new(&[Type::String, Type::String], compare),
    ),
];

fn parse(text: &str) -> Result<Version, Error> {
    Version::parse(text).map_err(|e| Error::function(e.to_string()))
}

fn compare(call: &mut Call<'_>) -> Out {
    let constraints =
        Constraints::parse(&call.text(0)?).map_err(|e| Error::function(e.to_string()))?;
    Ok(Value::Bool(constraints.check(&parse(&call.text(1)?)?)))
}

/// A version; a pointer to one has the same methods in templates.
pub(super) struct Held {
    pub version: Version,
    named: &'static Named,
}

fn pointer(version: Version) -> Value {
    Value::Object(Rc::new(Held {
        version,
        named: &POINTER,
    }))
}

impl Object for Held {
    fn go_type(&self) -> Type {
        Type::Named(self.named)
    }

    fn method(&self, name: &str) -> Option<&'static Function> {
        METHODS
            .iter()
            .find_map(|(own, function)| (*own == name).then_some(function))
    }

    fn text(&self) -> Option<String> {
        Some(self.version.to_string())
    }

    /// It exports none of its numbers.
    fn exported(&self) -> Option<Value> {
        Version::parse("0.0.0").ok().map(pointer)
    }

    fn json(&self) -> JsonForm {
        JsonForm::Text(self.version.to_string())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

static METHODS: &[(&str, Function)] = &[
    (
        "Major",
        Function::new(&[], |call| number(call, |v| v.major)),
    ),
    (
        "Minor",
        Function::new(&[], |call| number(call, |v| v.minor)),
    ),
    (
        "Patch",
        Function::new(&[], |call| number(call, |v| v.patch)),
    ),
    (
        "Prerelease",
        Function::new(&[], |call| Ok(held(call.receiver())?.prerelease.into())),
    ),
    (
        "Metadata",
        Function::new(&[], |call| Ok(held(call.receiver())?.metadata.into())),
    ),
    (
        "Original",
        Function::new(&[], |call| Ok(held(call.receiver())?.original().into())),
    ),
    (
        "String",
        Function::new(&[], |call| Ok(held(call.receiver())?.to_string().into())),
    ),
    (
        "Compare",
        Function::new(&[POINTER_TYPE], |call| Ok(Value::int(order(call)? as i8))),
    ),
    (
        "LessThan",
        Function::new(&[POINTER_TYPE], |call| {
            Ok(Value::Bool(order(call)?.is_lt()))
        }),
    ),
    (
        "LessThanEqual",
        Function::new(&[POINTER_TYPE], |call| {
            Ok(Value::Bool(order(call)?.is_le()))
        }),
    ),
    (
        "GreaterThan",
        Function::new(&[POINTER_TYPE], |call| {
            Ok(Value::Bool(order(call)?.is_gt()))
        }),
    ),
    (
        "GreaterThanEqual",
        Function::new(&[POINTER_TYPE], |call| {
            Ok(Value::Bool(order(call)?.is_ge()))
        }),
    ),
    (
        "Equal",
        Function::new(&[POINTER_TYPE], |call| {
            Ok(Value::Bool(order(call)?.is_eq()))
        }),
    ),
    (
        "IncMajor",
        Function::new(&[], |call| {
            next(call, |v| format!("{}.0.0", v.major.saturating_add(1)))
        }),
    ),
    (
        "IncMinor",
        Function::new(&[], |call| {
            next(call, |v| {
                format!("{}.{}.0", v.major, v.minor.saturating_add(1))
            })
        }),
    ),
    (
        "IncPatch",
        Function::new(&[], |call| next(call, next_patch)),
    ),
];

fn held(value: &Value) -> Result<Version, Error> {
    let held = match value {
        Value::Object(object) => object.as_any().downcast_ref::<Held>(),
        _ => None,
    };
    held.map_or_else(|| fails("not a version"), |held| Ok(held.version.clone()))
}

fn number(call: &Call<'_>, part: fn(&Version) -> u64) -> Out {
    Ok(Value::Uint(UintKind::Uint64, part(&held(call.receiver())?)))
}

fn order(call: &Call<'_>) -> Result<Ordering, Error> {
    Ok(held(call.receiver())?.precedence(&held(call.arg(0))?))
}

/// The next patch of a prerelease is its release.
fn next_patch(version: &Version) -> String {
    let patch = if version.prerelease.is_empty() {
        version.patch.saturating_add(1)
    } else {
        version.patch
    };
    format!("{}.{}.{patch}", version.major, version.minor)
}

/// The next version, with a leading `v` if there was one.
fn next(call: &Call<'_>, write: fn(&Version) -> String) -> Out {
    let version = held(call.receiver())?;
    let front = if version.original().starts_with('v') {
        "v"
    } else {
        ""
    };
    let version = parse(&format!("{front}{}", write(&version)))?;
    Ok(Value::Object(Rc::new(Held {
        version,
        named: &VALUE,
    })))
}
