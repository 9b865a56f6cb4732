//! The values that a program computes with: cheap to copy, with a known depth.
//!
//! Main type: [`Val`]. Depth and weight are stored with every list and map, so that a program
//! cannot build a value that overflows the stack of code that traverses it, or that is small only
//! because it shares its parts.

use super::text;
use num_bigint::BigInt;
use serde_json::Value;
use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

/// Maximum depth of a value.
pub const MAX_DEPTH: u32 = 400;

pub type Map = BTreeMap<Arc<str>, Val>;

#[derive(Clone, Debug)]
pub enum Val {
    Null,
    Bool(bool),
    Int(i64),
    /// Outside of what an `i64` holds.
    Big(Arc<BigInt>),
    Float(f64),
    Text(Arc<str>),
    List(Arc<Nested<Vec<Val>>>),
    Map(Arc<Nested<Map>>),
    /// A deleted element, until all deletions are done; programs never see it.
    Deleted,
}

/// A container, an upper bound of its depth, and its total weight if nothing were shared.
#[derive(Clone, Debug)]
pub struct Nested<T> {
    pub items: T,
    pub depth: u32,
    pub weight: u64,
}

impl<T> Nested<T> {
    fn new(items: T, values: impl Fn(&T) -> Box<dyn Iterator<Item = &Val> + '_>) -> Arc<Self> {
        let (depth, weight) = values(&items).fold((0, 32), |(depth, weight), v| {
            (v.depth().max(depth), v.weight().saturating_add(weight))
        });
        Arc::new(Self {
            items,
            depth: depth + 1,
            weight,
        })
    }

    /// Updates the weight after one value in it was replaced.
    pub fn replaced(&mut self, before: u64, after: &Val) {
        self.depth = self.depth.max(after.depth() + 1);
        self.weight = self
            .weight
            .saturating_sub(before)
            .saturating_add(after.weight());
    }
}

impl Val {
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    pub fn list(items: Vec<Val>) -> Self {
        Self::List(Nested::new(items, |items: &Vec<Val>| {
            Box::new(items.iter())
        }))
    }

    pub fn map(items: Map) -> Self {
        Self::Map(Nested::new(items, |items: &Map| Box::new(items.values())))
    }

    /// A map of a few named values.
    pub fn fields<const N: usize>(fields: [(&str, Val); N]) -> Self {
        Self::map(
            fields
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }

    pub fn count(count: usize) -> Self {
        Self::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub fn depth(&self) -> u32 {
        match self {
            Self::List(list) => list.depth,
            Self::Map(map) => map.depth,
            _ => 0,
        }
    }

    /// The approximate cost in bytes of traversing or printing all of it.
    pub fn weight(&self) -> u64 {
        match self {
            Self::Text(text) => 16 + text.len() as u64,
            Self::List(list) => list.weight,
            Self::Map(map) => map.weight + 24 * map.items.len() as u64,
            Self::Big(n) => 16 + n.bits() / 3,
            _ => 16,
        }
    }

    pub fn is_true(&self) -> bool {
        !matches!(self, Self::Null | Self::Bool(false))
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Val]> {
        match self {
            Self::List(list) => Some(&list.items),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(&map.items),
            _ => None,
        }
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Big(_) | Self::Float(_))
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null | Self::Deleted => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) | Self::Big(_) | Self::Float(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "object",
        }
    }

    /// The values of a list or of a map, in order.
    pub fn values(&self) -> Option<Vec<Val>> {
        match self {
            Self::List(list) => Some(list.items.clone()),
            Self::Map(map) => Some(map.items.values().cloned().collect()),
            _ => None,
        }
    }

    /// The approximate size of this value in bytes, without its contents.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => 32 + text.len(),
            Self::List(list) => 64 + list.items.len() * size_of::<Val>(),
            Self::Map(map) => 64 + map.items.len() * 96,
            Self::Big(n) => 64 + n.bits() as usize / 8,
            _ => 0,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null | Self::Deleted => 0,
            Self::Bool(false) => 1,
            Self::Bool(true) => 2,
            Self::Int(_) | Self::Big(_) | Self::Float(_) => 3,
            Self::Text(_) => 4,
            Self::List(_) => 5,
            Self::Map(_) => 6,
        }
    }

    /// Whether this is the same value as one stored before: containers are compared by address,
    /// others by value.
    pub fn is_same(&self, other: &Val) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) => {
                Arc::ptr_eq(a, b) || a.items.is_empty() && b.items.is_empty()
            }
            (Self::Map(a), Self::Map(b)) => {
                Arc::ptr_eq(a, b) || a.items.is_empty() && b.items.is_empty()
            }
            (Self::Float(a), Self::Float(b)) => a == b || a.is_nan() && b.is_nan(),
            (Self::List(_) | Self::Map(_), _) => false,
            _ => self.rank() == other.rank() && order(self, other).is_eq(),
        }
    }
}

impl Nested<Vec<Val>> {
    pub fn empty_list() -> Arc<Self> {
        Arc::new(Self {
            items: Vec::new(),
            depth: 1,
            weight: 32,
        })
    }
}

impl Nested<Map> {
    pub fn empty_map() -> Arc<Self> {
        Arc::new(Self {
            items: Map::new(),
            depth: 1,
            weight: 32,
        })
    }
}

impl From<bool> for Val {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// jq's order: null, false, true, numbers, texts, lists, maps. Maps are compared by their keys
/// first. NaN is less than every number, including itself.
pub fn order(a: &Val, b: &Val) -> Ordering {
    compare(a, b, Ordering::Less)
}

/// The same order, but suitable for sorting: NaN equals itself.
pub fn sort_order(a: &Val, b: &Val) -> Ordering {
    compare(a, b, Ordering::Equal)
}

pub fn lists(a: &[Val], b: &[Val]) -> Ordering {
    compare_lists(a, b, Ordering::Less)
}

fn compare_lists(a: &[Val], b: &[Val], nans: Ordering) -> Ordering {
    a.iter()
        .zip(b)
        .map(|(x, y)| compare(x, y, nans))
        .find(|o| o.is_ne())
        .unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn compare(a: &Val, b: &Val, nans: Ordering) -> Ordering {
    match (a, b) {
        (Val::Int(x), Val::Int(y)) => x.cmp(y),
        (Val::Big(x), Val::Big(y)) => x.cmp(y),
        (Val::Big(x), Val::Int(y)) => (**x).cmp(&BigInt::from(*y)),
        (Val::Int(x), Val::Big(y)) => BigInt::from(*x).cmp(y),
        (Val::Text(x), Val::Text(y)) => x.cmp(y),
        (Val::List(x), Val::List(y)) => compare_lists(&x.items, &y.items, nans),
        (Val::Map(x), Val::Map(y)) => x.items.keys().cmp(y.items.keys()).then_with(|| {
            let mut pairs = x.items.values().zip(y.items.values());
            pairs
                .find_map(|(x, y)| Some(compare(x, y, nans)).filter(|o| o.is_ne()))
                .unwrap_or(Ordering::Equal)
        }),
        _ if a.is_number() && b.is_number() => {
            let (x, y) = (super::number::float(a), super::number::float(b));
            match (x.is_nan(), y.is_nan()) {
                (true, true) => nans,
                (true, _) => Ordering::Less,
                (_, true) => Ordering::Greater,
                _ => x.partial_cmp(&y).unwrap_or(Ordering::Equal),
            }
        }
        _ => a.rank().cmp(&b.rank()),
    }
}

impl From<&Value> for Val {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::Number(n) => match (n.as_i64(), n.as_u64()) {
                (Some(n), _) => Self::Int(n),
                (_, Some(n)) => Self::Big(Arc::new(n.into())),
                _ => Self::Float(n.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::text(text.as_str()),
            Value::Array(list) => Self::list(list.iter().map(Val::from).collect()),
            Value::Object(map) => Self::map(
                map.iter()
                    .map(|(k, v)| (k.as_str().into(), v.into()))
                    .collect(),
            ),
        }
    }
}

impl From<&Val> for Value {
    fn from(value: &Val) -> Self {
        match value {
            Val::Null | Val::Deleted => Self::Null,
            Val::Bool(b) => Self::Bool(*b),
            Val::Int(n) => (*n).into(),
            Val::Big(n) => match u64::try_from(&**n) {
                Ok(n) => n.into(),
                Err(_) => super::number::big_float(n).into(),
            },
            Val::Float(f) if f.is_nan() => Self::Null,
            Val::Float(f) => text::finite(*f).into(),
            Val::Text(text) => Self::String(text.to_string()),
            Val::List(list) => Self::Array(list.items.iter().map(Value::from).collect()),
            Val::Map(map) => Self::Object(
                map.items
                    .iter()
                    .map(|(k, v)| (k.to_string(), v.into()))
                    .collect(),
            ),
        }
    }
}
