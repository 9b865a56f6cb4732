//! The Go types that a template can use: their names, assignability, and zero values.
//!
//! Main type: [`Type`]. All types are known at compile time, so a type is a small copyable value.

use super::value::{List, Map, Value};
use std::fmt;

/// The signed kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntKind {
    Int,
    Int8,
    Int16,
    Int32,
    Int64,
}

/// The unsigned kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UintKind {
    Uint,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
}

/// A Go type: of a parameter, or of the elements of a list or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`
    Any,
    /// `reflect.Value`: accepts everything, including an invalid value.
    Reflect,
    Bool,
    Int(IntKind),
    Uint(UintKind),
    Float64,
    Complex128,
    String,
    Slice(&'static Type),
    /// A map with string keys.
    Map(&'static Type),
    /// A defined type, such as `common.Values` over `map[string]interface {}`.
    Named(&'static Named),
}

/// A defined type.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    pub name: &'static str,
    /// The underlying type; `None` for a struct, or a pointer to one.
    pub underlying: Option<Type>,
}

/// `int`
pub const INT: Type = Type::Int(IntKind::Int);
/// `int64`
pub const INT64: Type = Type::Int(IntKind::Int64);
/// `[]interface {}`
pub const LIST: Type = Type::Slice(&Type::Any);
/// `[]string`
pub const STRINGS: Type = Type::Slice(&Type::String);
/// `[]uint8`
pub const BYTES: Type = Type::Slice(&Type::Uint(UintKind::Uint8));
/// `map[string]interface {}`
pub const MAP: Type = Type::Map(&Type::Any);

impl Type {
    /// The type without its defined name.
    pub fn underlying(self) -> Option<Type> {
        match self {
            Type::Named(named) => named.underlying,
            other => Some(other),
        }
    }

    /// The element type of a list or map.
    pub fn element(self) -> Type {
        match self.underlying() {
            Some(Type::Slice(element) | Type::Map(element)) => *element,
            _ => Type::Any,
        }
    }

    /// Whether a value of this type can be `nil`.
    pub(super) fn can_be_nil(self) -> bool {
        matches!(self, Type::Reflect)
            || matches!(
                self.underlying(),
                Some(Type::Any | Type::Slice(_) | Type::Map(_))
            )
    }

    /// Whether a value of type `from` can be passed for this type.
    pub(super) fn accepts(self, from: Type) -> bool {
        match self {
            Type::Any | Type::Reflect => true,
            _ if self == from => true,
            // An unnamed composite type is assignable to and from a defined type with it as
            // underlying type.
            Type::Slice(_) | Type::Map(_) => from.underlying() == Some(self),
            Type::Named(named) => {
                named.underlying == Some(from) && matches!(from, Type::Slice(_) | Type::Map(_))
            }
            _ => false,
        }
    }

    /// The zero value; `nil` if the type has none here.
    pub fn zero(self) -> Value {
        match self.underlying() {
            None | Some(Type::Any | Type::Reflect | Type::Named(_)) => Value::Nil,
            Some(Type::Bool) => Value::Bool(false),
            Some(Type::Int(kind)) => Value::Int(kind, 0),
            Some(Type::Uint(kind)) => Value::Uint(kind, 0),
            Some(Type::Float64) => Value::Float(0.0),
            Some(Type::Complex128) => Value::Complex(0.0, 0.0),
            Some(Type::String) => Value::from(""),
            Some(Type::Slice(_)) => Value::List(List::nil(self)),
            Some(Type::Map(_)) => Value::Map(Map::nil(self)),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Any => f.write_str("interface {}"),
            Type::Reflect => f.write_str("reflect.Value"),
            Type::Bool => f.write_str("bool"),
            Type::Int(kind) => f.write_str(match kind {
                IntKind::Int => "int",
                IntKind::Int8 => "int8",
                IntKind::Int16 => "int16",
                IntKind::Int32 => "int32",
                IntKind::Int64 => "int64",
            }),
            Type::Uint(kind) => f.write_str(match kind {
                UintKind::Uint => "uint",
                UintKind::Uint8 => "uint8",
                UintKind::Uint16 => "uint16",
                UintKind::Uint32 => "uint32",
                UintKind::Uint64 => "uint64",
            }),
            Type::Float64 => f.write_str("float64"),
            Type::Complex128 => f.write_str("complex128"),
            Type::String => f.write_str("string"),
            Type::Slice(element) => write!(f, "[]{element}"),
            Type::Map(element) => write!(f, "map[string]{element}"),
            Type::Named(named) => f.write_str(named.name),
        }
    }
}
