//! The values of expressions: Go's dynamic values, never changed in place.
//!
//! Main type: [`Value`]. Cloning one is cheap.

use super::error::ExprError;
use crate::sprig::Moment;
use crate::template::Str;
use jiff::tz::TimeZone;
use std::{collections::BTreeMap, fmt, rc::Rc};

#[derive(Clone, Default)]
pub enum Value {
    #[default]
    Nil,
    Bool(bool),
    Int(IntKind, i64),
    Float(f64),
    /// Bytes that are nearly always UTF-8.
    Str(Str),
    /// `[]uint8`
    Bytes(Str),
    List(Rc<List>),
    Map(Rc<Map>),
    Time(Moment),
    /// Nanoseconds.
    Duration(i64),
    Month(i8),
    Weekday(i8),
    Location(TimeZone),
    Func(Rc<Func>),
    Struct(Rc<Struct>),
}

/// A struct, which has the fields and methods of its type and no others.
pub struct Struct {
    /// The name of its type.
    pub go_type: &'static str,
    pub fields: Vec<(&'static str, Value)>,
    pub methods: Vec<(&'static str, Func)>,
}

impl Struct {
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        let mut fields = self.fields.iter();
        fields.find_map(|(own, value)| (*own == name).then_some(value))
    }
}

/// The integer types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntKind {
    Int,
    Int64,
    Uint8,
}

/// A list with the type of its elements.
pub struct List {
    pub kind: ListKind,
    pub items: Vec<Value>,
    /// What it weighs if nothing in it is shared.
    weight: u64,
}

/// The weight of a value without its content. Weights are in bytes, about, and no less than what is
/// printed.
const NODE: u64 = 48;
/// The most that a pair weighs as a key.
const LONG_KEY: u64 = 1024;

impl List {
    pub(super) fn new(kind: ListKind, items: Vec<Value>) -> Self {
        let weight = items
            .iter()
            .fold(NODE, |sum, item| sum.saturating_add(item.weight()));
        Self {
            kind,
            items,
            weight,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    Any,
    /// `[]interface {}` that is nil: it has no elements, and equals nil.
    Absent,
    Strings,
    Ints,
    /// `[][2]interface {}`
    Pairs,
    /// `[2]interface {}`
    Pair,
}

/// A map with the type of its keys and elements. Entries are ordered by key.
pub struct Map {
    pub kind: MapKind,
    pub entries: BTreeMap<Key, Value>,
    /// What it weighs if nothing in it is shared.
    weight: u64,
}

impl Map {
    pub(super) fn new(kind: MapKind, entries: BTreeMap<Key, Value>) -> Self {
        let weight = entries.iter().fold(NODE, |sum, (key, value)| {
            let key = match key {
                Key::Str(text) => text.len(),
                Key::Other(_, text) => text.len(),
                Key::Nil | Key::Bool(_) | Key::Int(..) | Key::Float(_) => 0,
            };
            sum.saturating_add(NODE + key as u64)
                .saturating_add(value.weight())
        });
        Self {
            kind,
            entries,
            weight,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// `map[string]interface {}`
    Text,
    /// `map[interface {}]interface {}`
    Any,
    /// `map[interface {}][]interface {}`
    Groups,
}

/// A key, ordered as Go prints keys: nil, truth values, numbers, texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Nil,
    Bool(bool),
    Int(i64, IntKind),
    /// The bits of a float in an order of their size.
    Float(i64),
    Str(Str),
    /// Another comparable value, by its type and text.
    Other(&'static str, String),
}

/// The type of a parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    Any,
    Str,
    Int,
    Time,
    Duration,
    Location,
    Strings,
}

/// The body of a function: it gets as many arguments as it has parameters.
pub type Body = Box<dyn Fn(&[Value]) -> Result<Value, ExprError>>;

/// A function of the environment, or a method bound to its receiver.
pub struct Func {
    pub params: &'static [Param],
    /// Whether the last parameter may be repeated.
    pub variadic: bool,
    pub body: Body,
}

impl Value {
    pub fn int(number: i64) -> Self {
        Value::Int(IntKind::Int, number)
    }

    pub fn int64(number: i64) -> Self {
        Value::Int(IntKind::Int64, number)
    }

    pub fn list(items: Vec<Value>) -> Self {
        Self::list_of(ListKind::Any, items)
    }

    pub fn list_of(kind: ListKind, items: Vec<Value>) -> Self {
        Value::List(Rc::new(List::new(kind, items)))
    }

    pub fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> Self {
        let items = items.into_iter().map(|s| Value::Str(s.into())).collect();
        Self::list_of(ListKind::Strings, items)
    }

    pub fn map<K: Into<Str>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        let entries = entries
            .into_iter()
            .map(|(key, value)| (Key::Str(key.into()), value))
            .collect();
        Value::Map(Rc::new(Map::new(MapKind::Text, entries)))
    }

    pub fn func(
        params: &'static [Param],
        body: impl Fn(&[Value]) -> Result<Value, ExprError> + 'static,
    ) -> Self {
        Value::Func(Rc::new(Func {
            params,
            variadic: false,
            body: Box::new(body),
        }))
    }

    /// The value of data in memory: a number without a fraction is an `int64`.
    pub fn from_data(data: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match data {
            Json::Null => Value::Nil,
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(n) => n.as_i64().map_or_else(
                || Value::Float(n.as_f64().unwrap_or(f64::NAN)),
                Value::int64,
            ),
            Json::String(s) => s.as_str().into(),
            Json::Array(items) => Value::list(items.iter().map(Self::from_data).collect()),
            Json::Object(members) => Value::map(
                members
                    .iter()
                    .map(|(key, value)| (key.as_str(), Self::from_data(value))),
            ),
        }
    }

    /// What it weighs if nothing in it is shared. Lists and maps share their content, so that a
    /// short program makes one that nobody could print or walk through.
    pub(super) fn weight(&self) -> u64 {
        match self {
            Value::Str(text) => NODE + text.len() as u64,
            // Printed as numbers.
            Value::Bytes(bytes) => NODE + 4 * bytes.len() as u64,
            Value::List(list) => list.weight,
            Value::Map(map) => map.weight,
            Value::Struct(of) => of
                .fields
                .iter()
                .fold(NODE, |sum, (_, field)| sum.saturating_add(field.weight())),
            _ => NODE,
        }
    }

    /// The name of its type.
    pub fn go_type(&self) -> &'static str {
        match self {
            Value::Nil => "<nil>",
            Value::Bool(_) => "bool",
            Value::Int(kind, _) => kind.go_type(),
            Value::Float(_) => "float64",
            Value::Str(_) => "string",
            Value::Bytes(_) => "[]uint8",
            Value::List(list) => match list.kind {
                ListKind::Any | ListKind::Absent => "[]interface {}",
                ListKind::Strings => "[]string",
                ListKind::Ints => "[]int",
                ListKind::Pairs => "[][2]interface {}",
                ListKind::Pair => "[2]interface {}",
            },
            Value::Map(map) => map.kind.go_type(),
            Value::Time(_) => "time.Time",
            Value::Duration(_) => "time.Duration",
            Value::Month(_) => "time.Month",
            Value::Weekday(_) => "time.Weekday",
            Value::Location(_) => "*time.Location",
            Value::Func(_) => "func",
            Value::Struct(value) => value.go_type,
        }
    }

    /// Whether it is nil, or a list that is.
    pub fn is_nil(&self) -> bool {
        match self {
            Value::Nil => true,
            Value::List(list) => list.kind == ListKind::Absent,
            _ => false,
        }
    }

    /// A list of what Go appends to a nil slice: without elements, it stays nil.
    pub(super) fn appended(items: Vec<Value>) -> Self {
        let kind = if items.is_empty() {
            ListKind::Absent
        } else {
            ListKind::Any
        };
        Self::list_of(kind, items)
    }

    /// The number as a float, if it is one.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Value::Int(_, i) => Some(*i as f64),
            Value::Float(f) => Some(*f),
            _ => None,
        }
    }

    /// The number as Go converts it to `int`.
    pub(super) fn to_int(&self) -> Result<i64, ExprError> {
        match self {
            Value::Int(_, i) => Ok(*i),
            Value::Float(f) => Ok(truncated(*f)),
            other => Err(ExprError::run(format!(
                "invalid operation: int({})",
                other.go_type()
            ))),
        }
    }

    /// A type assertion.
    pub(super) fn as_bool(&self) -> Result<bool, ExprError> {
        match self {
            Value::Bool(b) => Ok(*b),
            other => Err(other.is_not("bool")),
        }
    }

    /// A type assertion.
    pub(super) fn as_int(&self) -> Result<i64, ExprError> {
        match self {
            Value::Int(_, i) => Ok(*i),
            other => Err(other.is_not("int")),
        }
    }

    /// A type assertion.
    pub(super) fn as_str(&self) -> Result<&Str, ExprError> {
        match self {
            Value::Str(s) => Ok(s),
            other => Err(other.is_not("string")),
        }
    }

    /// A type assertion; invalid UTF-8 is replaced.
    pub fn as_text(&self) -> Result<String, ExprError> {
        self.as_str().map(|s| s.to_str().into_owned())
    }

    fn is_not(&self, wanted: &str) -> ExprError {
        let found = match self {
            Value::Nil => "nil",
            other => other.go_type(),
        };
        ExprError::run(format!(
            "interface conversion: interface {{}} is {found}, not {wanted}"
        ))
    }

    /// The value as a key of a map.
    ///
    /// # Errors
    /// For a list, map or function.
    pub(super) fn key(&self) -> Result<Key, ExprError> {
        Ok(match self {
            Value::Nil => Key::Nil,
            Value::Bool(b) => Key::Bool(*b),
            Value::Int(kind, i) => Key::Int(*i, *kind),
            Value::Float(f) => Key::of_float(*f),
            Value::Str(s) => Key::Str(s.clone()),
            Value::Time(_)
            | Value::Duration(_)
            | Value::Month(_)
            | Value::Weekday(_)
            | Value::Location(_) => Key::Other(self.go_type(), super::print::display(self)),
            Value::List(list) if list.kind == ListKind::Pair => {
                if list.weight > LONG_KEY {
                    return Err(ExprError::run("the expression makes too much text"));
                }
                Key::Other(self.go_type(), super::print::display(self))
            }
            _ => {
                return Err(ExprError::run(format!(
                    "hash of unhashable type: {}",
                    self.go_type()
                )));
            }
        })
    }
}

/// A float as Go converts it to an integer.
pub(super) fn truncated(f: f64) -> i64 {
    if f.is_nan() || f >= 9_223_372_036_854_775_808.0 {
        i64::MIN
    } else {
        f as i64
    }
}

impl Key {
    /// The key as a value again; texts stand for what has no other form.
    pub fn value(&self) -> Value {
        match self {
            Key::Nil => Value::Nil,
            Key::Bool(b) => Value::Bool(*b),
            Key::Int(i, kind) => Value::Int(*kind, *i),
            Key::Float(bits) => Value::Float(float_of(*bits)),
            Key::Str(s) => Value::Str(s.clone()),
            Key::Other(_, text) => text.as_str().into(),
        }
    }

    fn of_float(f: f64) -> Self {
        let bits = f.to_bits().cast_signed();
        // Negative numbers are ordered by their size, downwards.
        Key::Float(if bits < 0 { !bits ^ i64::MIN } else { bits })
    }
}

fn float_of(ordered: i64) -> f64 {
    let bits = if ordered < 0 {
        !(ordered ^ i64::MIN)
    } else {
        ordered
    };
    f64::from_bits(bits.cast_unsigned())
}

impl IntKind {
    pub fn go_type(self) -> &'static str {
        match self {
            IntKind::Int => "int",
            IntKind::Int64 => "int64",
            IntKind::Uint8 => "uint8",
        }
    }
}

impl ListKind {
    /// Whether its type is `[]interface {}`.
    pub(super) fn is_any(self) -> bool {
        matches!(self, ListKind::Any | ListKind::Absent)
    }
}

impl MapKind {
    pub fn go_type(self) -> &'static str {
        match self {
            MapKind::Text => "map[string]interface {}",
            MapKind::Any => "map[interface {}]interface {}",
            MapKind::Groups => "map[interface {}][]interface {}",
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Str(text.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.go_type(), super::print::display(self))
    }
}
