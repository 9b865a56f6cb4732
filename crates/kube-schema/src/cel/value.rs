//! Values of expressions: equality, order, size, conversions. Main type: [`Value`].

use super::kinds::Opaque;
use super::time;
use crate::gofmt;
use jiff::Timestamp;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How the elements of a list are identified, which decides when two lists are equal.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ListKind {
    #[default]
    Plain,
    Set,
    Keyed(Arc<[String]>),
}

#[derive(Clone, Debug, Default)]
pub struct List {
    pub items: Vec<Value>,
    pub kind: ListKind,
}

/// A key of a map. Equal numbers are the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    String(Arc<str>),
}

pub type Map = BTreeMap<Key, Value>;

#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    /// In nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(Arc<List>),
    Map(Arc<Map>),
    Type(Arc<str>),
    Optional(Option<Box<Value>>),
    Opaque(Arc<Opaque>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl Key {
    pub fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Bool(b) => Self::Bool(*b),
            Value::Int(n) => Self::Int(*n),
            Value::Uint(n) => i64::try_from(*n).map_or(Self::Uint(*n), Self::Int),
            Value::Double(f) if f.fract() == 0.0 && f.abs() < 9.2e18 => Self::Int(*f as i64),
            Value::String(s) => Self::String(s.clone()),
            _ => return None,
        })
    }

    pub fn value(&self) -> Value {
        match self {
            Self::Bool(b) => Value::Bool(*b),
            Self::Int(n) => Value::Int(*n),
            Self::Uint(n) => Value::Uint(*n),
            Self::String(s) => Value::String(s.clone()),
        }
    }
}

impl Value {
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Arc::new(List {
            items,
            kind: ListKind::Plain,
        }))
    }

    pub fn strings(items: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        Self::list(items.into_iter().map(|s| s.as_ref().into()).collect())
    }

    pub fn map(map: Map) -> Self {
        Self::Map(Arc::new(map))
    }

    pub fn opaque(opaque: Opaque) -> Self {
        Self::Opaque(Arc::new(opaque))
    }

    pub fn some(value: Value) -> Self {
        Self::Optional(Some(Box::new(value)))
    }

    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Opaque(o) => o.type_name(),
        }
    }

    /// The Go type of such a value in the real library.
    pub fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Duration(_) => "types.Duration",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Type(_) => "*types.Type",
            Self::Optional(_) => "*types.Optional",
            Self::List(_) | Self::Map(_) | Self::Opaque(_) => "ref.Val",
        }
    }

    fn number(&self) -> Option<Number> {
        Some(match self {
            Self::Int(n) => Number::Whole(i128::from(*n)),
            Self::Uint(n) => Number::Whole(i128::from(*n)),
            Self::Double(f) => Number::Float(*f),
            _ => return None,
        })
    }

    pub fn equals(&self, other: &Self) -> bool {
        Comparison::default().equal(self, other)
    }

    /// None for values without an order.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            _ => self.number()?.compare(other.number()?),
        }
    }

    /// The size that the cost of a call depends on: characters, elements, or one.
    pub fn size(&self) -> u64 {
        match self {
            Self::String(s) => s.chars().count() as u64,
            Self::Bytes(b) => b.len() as u64,
            Self::List(l) => l.items.len() as u64,
            Self::Map(m) => m.len() as u64,
            Self::Optional(Some(v)) => v.size(),
            _ => 1,
        }
    }

    /// `string(x)`; None for values without a text form.
    pub fn text(&self) -> Option<String> {
        Some(match self {
            Self::Bool(b) => b.to_string(),
            Self::Int(n) => n.to_string(),
            Self::Uint(n) => n.to_string(),
            Self::Double(f) => gofmt::float(*f),
            Self::String(s) => s.to_string(),
            Self::Bytes(b) => String::from_utf8(b.to_vec()).ok()?,
            Self::Duration(n) => time::seconds(*n),
            Self::Timestamp(t) => time::text(*t),
            Self::Type(name) => name.to_string(),
            Self::Opaque(o) => o.text()?,
            _ => return None,
        })
    }
}

enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b),
            (Self::Whole(a), Self::Float(b)) => (a as f64).partial_cmp(&b),
            (Self::Float(a), Self::Whole(b)) => a.partial_cmp(&(b as f64)),
        }
    }
}

/// The key of an element of a keyed list.
pub fn key_of(item: &Value, keys: &[String]) -> Vec<Option<Value>> {
    let Value::Map(map) = item else {
        return Vec::new();
    };
    keys.iter()
        .map(|key| map.get(&Key::String(key.as_str().into())).cloned())
        .collect()
}

fn same_keys(comparison: &mut Comparison, a: &Value, b: &Value, keys: &[String]) -> bool {
    key_of(a, keys)
        .iter()
        .zip(key_of(b, keys))
        .all(|(x, y)| match (x, y) {
            (Some(x), Some(y)) => comparison.equal(x, &y),
            (x, y) => x.is_none() && y.is_none(),
        })
}

/// One comparison of two values. Values that share their elements can be exponentially larger than
/// the expression that makes them: after some steps, what was compared is remembered.
#[derive(Default)]
pub struct Comparison {
    steps: usize,
    /// By the addresses of both sides, which stay in place during the comparison.
    known: HashMap<(usize, usize), bool>,
}

/// How many lists, maps and objects are compared before the results are remembered.
const UNREMEMBERED: usize = 10_000;

impl Comparison {
    fn equal(&mut self, a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::Duration(a), Value::Duration(b)) => a == b,
            (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::Opaque(a), Value::Opaque(b)) => self.shared(a, b, |this| a.equals(b, this)),
            (Value::Optional(None), Value::Optional(None)) => true,
            (Value::Optional(Some(a)), Value::Optional(Some(b))) => self.equal(a, b),
            (Value::List(a), Value::List(b)) => self.shared(a, b, |this| this.lists(a, b)),
            (Value::Map(a), Value::Map(b)) => self.shared(a, b, |this| this.maps(a, b)),
            _ => match (a.number(), b.number()) {
                (Some(a), Some(b)) => a.compare(b) == Some(Ordering::Equal),
                _ => false,
            },
        }
    }

    fn shared<T>(
        &mut self,
        a: &Arc<T>,
        b: &Arc<T>,
        compare: impl FnOnce(&mut Self) -> bool,
    ) -> bool {
        self.steps += 1;
        if self.steps <= UNREMEMBERED {
            return compare(self);
        }
        let pair = (Arc::as_ptr(a).addr(), Arc::as_ptr(b).addr());
        if let Some(known) = self.known.get(&pair) {
            return *known;
        }
        let equal = compare(self);
        self.known.insert(pair, equal);
        equal
    }

    pub fn maps(&mut self, a: &Map, b: &Map) -> bool {
        a.len() == b.len()
            && a.iter()
                .all(|(key, value)| b.get(key).is_some_and(|other| self.equal(value, other)))
    }

    fn lists(&mut self, a: &List, b: &List) -> bool {
        if a.items.len() != b.items.len() {
            return false;
        }
        match &a.kind {
            ListKind::Plain => {
                let mut pairs = a.items.iter().zip(&b.items);
                pairs.all(|(x, y)| self.equal(x, y))
            }
            ListKind::Set => {
                let mut items = a.items.iter();
                items.all(|x| b.items.iter().any(|y| self.equal(x, y)))
            }
            ListKind::Keyed(keys) => a.items.iter().all(|x| {
                let same = b.items.iter().find(|y| same_keys(self, x, y, keys));
                same.is_some_and(|y| self.equal(x, y))
            }),
        }
    }
}

/// Concatenates two lists; sets keep one of equal elements, keyed lists the later of two with the
/// same key.
pub fn concatenated(a: &List, b: &List) -> List {
    let mut items = a.items.clone();
    for item in &b.items {
        let there = match &a.kind {
            ListKind::Plain => None,
            ListKind::Set => items.iter().position(|x| x.equals(item)),
            ListKind::Keyed(keys) => {
                let comparison = &mut Comparison::default();
                items
                    .iter()
                    .position(|x| same_keys(comparison, x, item, keys))
            }
        };
        match there {
            Some(i) => items[i] = item.clone(),
            None => items.push(item.clone()),
        }
    }
    List {
        items,
        kind: a.kind.clone(),
    }
}
