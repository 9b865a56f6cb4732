//! One element of a field path in the notation of managedFields: `f:spec`, `k:{"name":"web"}`,
//! `v:"a"`, `i:0`.
//!
//! Main type: [`PathElement`].

use super::print;
use serde_json::{Map, Number, Value};
use std::{cmp::Ordering, fmt};
use tiphys_gocompat::json;

/// A field, an element of a keyed list (its keys, sorted by name), an element of a set, or an
/// index.
#[derive(Debug, Clone)]
pub enum PathElement {
    Field(String),
    Key(Vec<(String, Value)>),
    Value(Value),
    Index(i64),
}

impl PathElement {
    /// The index of the element with this name in a list.
    pub fn position(&self, list: &[Value]) -> Option<usize> {
        match self {
            Self::Key(keys) => list.iter().position(|item| {
                keys.iter()
                    .all(|(k, v)| item.get(k).is_some_and(|of| equal_values(of, v)))
            }),
            Self::Value(wanted) => list.iter().position(|item| equal_values(item, wanted)),
            Self::Index(index) => usize::try_from(*index).ok().filter(|i| *i < list.len()),
            Self::Field(_) => None,
        }
    }

    /// The field or element with this name.
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Field(name) => value.get(name),
            _ => value
                .as_array()
                .and_then(|list| list.get(self.position(list)?)),
        }
    }

    /// Parses `f:name`, `k:{...}`, `v:...` or `i:n`.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => match serde_json::from_str(rest).ok()? {
                Value::Object(map) => Some(Self::Key(
                    map.into_iter()
                        .map(|(name, value)| (name, as_read(value)))
                        .collect(),
                )),
                _ => None,
            },
            "v" => serde_json::from_str(rest)
                .ok()
                .map(|value| Self::Value(as_read(value))),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    /// Whether a text has the form of a path element but an unknown prefix.
    pub fn is_of_unknown_kind(text: &str) -> bool {
        matches!(text.as_bytes(), [kind, b':', ..] if !b"fkvi".contains(kind))
    }

    /// The text that [`PathElement::parse`] reads.
    pub fn serialize(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let map: Map<String, Value> = fields.iter().cloned().collect();
                format!("k:{}", json::to_string(&Value::Object(map)))
            }
            Self::Value(value) => format!("v:{}", json::to_string(value)),
            Self::Index(i) => format!("i:{i}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// The API server decodes the numbers in managedFields as floats, which shows in conflicts about
/// large ones.
fn as_read(value: Value) -> Value {
    match value.as_i64() {
        Some(n) if n.unsigned_abs() >= 1_000_000 => Value::from(n as f64),
        _ => value,
    }
}

/// In the notation of conflict messages: `.spec`, `[name="web"]`, `[="a"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    write!(
                        f,
                        "{}{name}={}",
                        if i > 0 { "," } else { "" },
                        print::shown(value)
                    )?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", print::shown(value)),
            Self::Index(i) => write!(f, "[{i}]"),
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                let pairs = a
                    .iter()
                    .zip(b)
                    .map(|((an, av), (bn, bv))| an.cmp(bn).then_with(|| compare_values(av, bv)));
                pairs
                    .fold(Ordering::Equal, Ordering::then)
                    .then(a.len().cmp(&b.len()))
            }
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

/// Numbers before strings, booleans, lists, maps and null; integers and floats are compared by
/// value.
pub(super) fn compare_values(a: &Value, b: &Value) -> Ordering {
    let rank = |v: &Value| match v {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .map(|(a, b)| compare_values(a, b))
            .find(|o| o.is_ne())
            .unwrap_or(a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => {
            let pairs = a
                .iter()
                .zip(b)
                .map(|((an, av), (bn, bv))| an.cmp(bn).then_with(|| compare_values(av, bv)));
            pairs
                .into_iter()
                .find(|o| o.is_ne())
                .unwrap_or(a.len().cmp(&b.len()))
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a
            .as_f64()
            .unwrap_or(f64::NAN)
            .total_cmp(&b.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Equality in which `1` and `1.0` are the same.
pub(super) fn equal_values(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_values(a, b))
        }
        (Value::Object(a), Value::Object(b)) => equal_maps(a, b),
        (a, b) => a == b,
    }
}

pub(super) fn equal_maps(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|((ak, av), (bk, bv))| ak == bk && equal_values(av, bv))
}
