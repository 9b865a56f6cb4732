//! The values of templates: Go's dynamic values.
//!
//! Main type: [`Value`]. Cloning one is cheap: lists and maps are handles to shared, mutable
//! content, as in Go, so changes by `set` are visible through every handle. Strings are bytes,
//! because Go's are. Values belong to one render and one thread.

use super::function::Function;
use super::types::{BYTES, IntKind, LIST, MAP, STRINGS, Type, UintKind};
use super::unicode::lossy;
use std::{borrow::Cow, fmt, rc::Rc, sync::Arc};

pub use super::shared::{List, Map, NilMap};

/// A value, as held by an `interface {}`.
#[derive(Clone, Default)]
pub enum Value {
    /// `nil` without a type.
    #[default]
    Nil,
    Bool(bool),
    Int(IntKind, i64),
    Uint(UintKind, u64),
    Float(f64),
    Complex(f64, f64),
    String(Str),
    /// `[]uint8`, which is never changed in place.
    Bytes(Str),
    List(List),
    Map(Map),
    Object(Rc<dyn Object>),
}

/// A struct, or a value of a defined type with methods, such as `.Files`.
pub trait Object {
    /// Its type, as named by `%T` and error texts: `*common.Capabilities`.
    fn go_type(&self) -> Type;

    /// The underlying value, for iterating, indexing and printing; `None` for a struct.
    fn underlying(&self) -> Option<Value> {
        None
    }

    /// A value of the same defined type over other content, for what copies it or a part of it.
    fn over(&self, _content: Value) -> Option<Value> {
        None
    }

    /// What an interface holds of it, where that is something else: the methods of a pointer are
    /// lost where a struct is copied, as it is when it is passed to a function.
    fn in_interface(&self) -> Option<Value> {
        None
    }

    /// What a copy of its exported fields alone is, where it has others.
    fn exported(&self) -> Option<Value> {
        None
    }

    /// The fields of a struct, in order. Those that are not exported begin with a small letter:
    /// only printing shows them.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// One exported field of a struct.
    fn field(&self, name: &str) -> Option<Value> {
        self.fields()
            .into_iter()
            .find_map(|(own, value)| (own == name && is_exported(own)).then_some(value))
    }

    /// A method; its body finds this object with `Call::receiver`.
    fn method(&self, _name: &str) -> Option<&'static Function> {
        None
    }

    /// The function that it is, for `call`; its body finds this object with `Call::receiver`.
    fn callable(&self) -> Option<&'static Function> {
        None
    }

    /// The result of its `String` or `Error` method, if it has one.
    fn text(&self) -> Option<String> {
        None
    }

    /// The result of the `String` method of a pointer to it, if only that has one: an action prints
    /// it, but functions do not see it.
    fn text_behind_pointer(&self) -> Option<String> {
        None
    }

    /// Its representation in encoding/json.
    fn json(&self) -> JsonForm {
        let mut fields = self.fields();
        fields.retain(|(name, _)| is_exported(name));
        JsonForm::Fields(fields)
    }

    /// The concrete object, for functions that downcast it.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// The JSON of an object without an underlying value.
pub enum JsonForm {
    /// An object with these members, in this order.
    Fields(Vec<(&'static str, Value)>),
    /// The result of its own method.
    Text(String),
    /// The same of a time, which other formats write without quotes.
    Time(String),
}

/// Whether Go exports a field of this name.
pub fn is_exported(name: &str) -> bool {
    name.starts_with(|c: char| c.is_uppercase())
}

/// A Go string: bytes that are nearly always UTF-8. Ordered by bytes, as Go orders strings.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str(Arc<[u8]>);

impl Str {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, with invalid UTF-8 replaced.
    pub fn to_str(&self) -> Cow<'_, str> {
        lossy(&self.0)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Default for Str {
    fn default() -> Self {
        Self(Arc::from(&b""[..]))
    }
}

impl AsRef<[u8]> for Str {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::borrow::Borrow<[u8]> for Str {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self(Arc::from(text.as_bytes()))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self(Arc::from(text.into_bytes()))
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::from(bytes))
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str(), f)
    }
}

impl Value {
    /// An `int`.
    pub fn int(number: impl TryInto<i64>) -> Self {
        Value::Int(IntKind::Int, number.try_into().unwrap_or(i64::MAX))
    }

    /// An `int64`.
    pub fn int64(number: i64) -> Self {
        Value::Int(IntKind::Int64, number)
    }

    /// A `[]string`.
    pub fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> Self {
        Value::List(List::of(
            STRINGS,
            items.into_iter().map(|s| Value::String(s.into())).collect(),
        ))
    }

    /// The type; `interface {}` for nil.
    pub fn go_type(&self) -> Type {
        match self {
            Value::Nil => Type::Any,
            Value::Bool(_) => Type::Bool,
            Value::Int(kind, _) => Type::Int(*kind),
            Value::Uint(kind, _) => Type::Uint(*kind),
            Value::Float(_) => Type::Float64,
            Value::Complex(..) => Type::Complex128,
            Value::String(_) => Type::String,
            Value::Bytes(_) => BYTES,
            Value::List(list) => list.go_type(),
            Value::Map(map) => map.go_type(),
            Value::Object(object) => object.go_type(),
        }
    }

    /// The underlying value of a defined type with methods; any other value itself.
    pub fn underlying(&self) -> Cow<'_, Value> {
        match self {
            Value::Object(object) => object.underlying().map_or(Cow::Borrowed(self), Cow::Owned),
            _ => Cow::Borrowed(self),
        }
    }

    /// Whether `if` considers it true.
    pub fn truth(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Bool(b) => *b,
            Value::Int(_, i) => *i != 0,
            Value::Uint(_, u) => *u != 0,
            Value::Float(f) => *f != 0.0,
            Value::Complex(re, im) => *re != 0.0 || *im != 0.0,
            Value::String(s) | Value::Bytes(s) => !s.is_empty(),
            Value::List(list) => !list.is_empty(),
            Value::Map(map) => !map.is_empty(),
            Value::Object(object) => object.underlying().is_none_or(|v| v.truth()),
        }
    }

    /// The value of a JSON document as Go decodes it into `interface {}`: every number is a
    /// float64.
    pub fn from_json(json: &serde_json::Value) -> Self {
        from_json(json, &|n| Value::Float(n.as_f64().unwrap_or(f64::NAN)))
    }

    /// The value of data created in memory: a number without a fraction is an int64.
    pub fn from_data(data: &serde_json::Value) -> Self {
        from_json(data, &|n| {
            n.as_i64().map_or_else(
                || Value::Float(n.as_f64().unwrap_or(f64::NAN)),
                Value::int64,
            )
        })
    }
}

fn from_json(json: &serde_json::Value, number: &dyn Fn(&serde_json::Number) -> Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::Nil,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) => number(n),
        Json::String(s) => Value::from(s.as_str()),
        Json::Array(items) => Value::List(List::of(
            LIST,
            items.iter().map(|item| from_json(item, number)).collect(),
        )),
        Json::Object(members) => Value::Map(Map::of(
            MAP,
            members
                .iter()
                .map(|(k, v)| (Str::from(k.as_str()), from_json(v, number))),
        )),
    }
}

impl From<Arc<[u8]>> for Str {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(bytes)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(Str::from(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(Str::from(text))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Float(value)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Value::Map(map)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Value::List(list)
    }
}

/// Only the outermost level, because content may be deep, or contain itself.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nil => f.write_str("nil"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(_, i) => write!(f, "{}({i})", self.go_type()),
            Value::Uint(_, u) => write!(f, "{}({u})", self.go_type()),
            Value::Float(x) => write!(f, "float64({x})"),
            Value::Complex(re, im) => write!(f, "complex128({re}, {im})"),
            Value::String(s) => write!(f, "{s:?}"),
            Value::Bytes(s) => write!(f, "[]byte({s:?})"),
            Value::List(list) => write!(f, "{}(len {})", list.go_type(), list.len()),
            Value::Map(map) => write!(f, "{}(len {})", map.go_type(), map.len()),
            Value::Object(object) => write!(f, "{}", object.go_type()),
        }
    }
}
