//! Lists and maps: handles to shared content with interior mutability.
//!
//! Main types: [`List`] (a Go slice: a window of an array that others may share) and [`Map`] (a Go
//! map with string keys, kept sorted, which is the order in which templates iterate). Dropping
//! deeply nested content does not recurse.

use super::types::{LIST, MAP, Type};
use super::value::{Str, Value};
use std::{cell::RefCell, collections::BTreeMap, mem, rc::Rc};

/// A Go slice.
#[derive(Clone)]
pub struct List(Rc<Window>);

struct Window {
    kind: Type,
    nil: bool,
    array: Rc<Array>,
    start: usize,
    len: usize,
    cap: usize,
}

struct Array(RefCell<Vec<Value>>);

impl List {
    /// A `[]interface {}`.
    pub fn new(items: Vec<Value>) -> Self {
        Self::of(LIST, items)
    }

    /// A slice of another type.
    pub fn of(kind: Type, items: Vec<Value>) -> Self {
        let len = items.len();
        Self(Rc::new(Window {
            kind,
            nil: false,
            array: Rc::new(Array(RefCell::new(items))),
            start: 0,
            len,
            cap: len,
        }))
    }

    /// The nil slice of a type.
    pub fn nil(kind: Type) -> Self {
        Self(Rc::new(Window {
            kind,
            nil: true,
            array: Rc::new(Array(RefCell::default())),
            start: 0,
            len: 0,
            cap: 0,
        }))
    }

    pub fn go_type(&self) -> Type {
        self.0.kind
    }

    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    pub fn len(&self) -> usize {
        self.0.len
    }

    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The capacity of the window.
    pub fn cap(&self) -> usize {
        self.0.cap
    }

    pub fn get(&self, index: usize) -> Option<Value> {
        if index >= self.0.len {
            return None;
        }
        self.0.array.0.borrow().get(self.0.start + index).cloned()
    }

    /// Changes an element in place, for all windows of the same array. Ignored outside of the
    /// window.
    pub fn set(&self, index: usize, value: Value) {
        if index < self.0.len
            && let Some(slot) = self.0.array.0.borrow_mut().get_mut(self.0.start + index)
        {
            *slot = value;
        }
    }

    /// The current elements.
    pub fn items(&self) -> Vec<Value> {
        let array = self.0.array.0.borrow();
        array[self.0.start..self.0.start + self.0.len].to_vec()
    }

    /// `list[from:to:cap]` over the same array; the caller checked `from <= to <= cap <=
    /// self.cap()`.
    pub fn window(&self, from: usize, to: usize, cap: usize) -> Self {
        let cap = cap.min(self.0.cap);
        let to = to.min(cap);
        let from = from.min(to);
        Self(Rc::new(Window {
            kind: self.0.kind,
            nil: self.0.nil,
            array: self.0.array.clone(),
            start: self.0.start + from,
            len: to - from,
            cap: cap - from,
        }))
    }

    /// Whether both are windows of the same array.
    pub fn same_array(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0.array, &other.0.array)
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self::new(items.into_iter().collect())
    }
}

/// A Go map with string keys.
#[derive(Clone)]
pub struct Map(Rc<Table>);

struct Table {
    kind: Type,
    nil: bool,
    entries: RefCell<BTreeMap<Str, Value>>,
}

/// Go's panic message for an assignment to a nil map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("assignment to entry in nil map")]
pub struct NilMap;

impl Map {
    /// An empty `map[string]interface {}`.
    pub fn new() -> Self {
        Self::of(MAP, [])
    }

    /// A map of another type.
    pub fn of(kind: Type, entries: impl IntoIterator<Item = (Str, Value)>) -> Self {
        Self(Rc::new(Table {
            kind,
            nil: false,
            entries: RefCell::new(entries.into_iter().collect()),
        }))
    }

    /// The nil map of a type.
    pub fn nil(kind: Type) -> Self {
        Self(Rc::new(Table {
            kind,
            nil: true,
            entries: RefCell::default(),
        }))
    }

    pub fn go_type(&self) -> Type {
        self.0.kind
    }

    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    pub fn len(&self) -> usize {
        self.0.entries.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.0.entries.borrow().get(key.as_ref()).cloned()
    }

    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.0.entries.borrow().contains_key(key.as_ref())
    }

    /// Sets an entry, for all holders of this map.
    pub fn insert(&self, key: impl Into<Str>, value: Value) -> Result<(), NilMap> {
        if self.0.nil {
            return Err(NilMap);
        }
        // The old value is dropped after the borrow has ended.
        let old = self.0.entries.borrow_mut().insert(key.into(), value);
        drop(old);
        Ok(())
    }

    pub fn remove(&self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.0.entries.borrow_mut().remove(key.as_ref())
    }

    /// The current keys, sorted.
    pub fn keys(&self) -> Vec<Str> {
        self.0.entries.borrow().keys().cloned().collect()
    }

    /// The current entries, sorted by key.
    pub fn entries(&self) -> Vec<(Str, Value)> {
        self.0
            .entries
            .borrow()
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }

    /// Whether both are the same map.
    pub fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Map {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        unravel(mem::take(self.0.get_mut()));
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        unravel(mem::take(self.entries.get_mut()).into_values().collect());
    }
}

/// Drops unshared content level by level.
fn unravel(mut values: Vec<Value>) {
    while let Some(value) = values.pop() {
        match value {
            Value::List(list) => {
                if let Ok(window) = Rc::try_unwrap(list.0)
                    && let Ok(mut array) = Rc::try_unwrap(window.array)
                {
                    values.append(array.0.get_mut());
                }
            }
            Value::Map(map) => {
                if let Ok(mut table) = Rc::try_unwrap(map.0) {
                    values.extend(mem::take(table.entries.get_mut()).into_values());
                }
            }
            _ => {}
        }
    }
}
