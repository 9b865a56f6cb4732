//! The types that the checker knows, and what it allows between them.
//!
//! Main type: [`Ty`]. It is the static type of Go's checker: a value of an interface is [`Ty::Any`],
//! and what nothing is known about is [`Ty::Unknown`].

use super::methods::Method;
use super::value::MapKind;
use std::fmt;

#[derive(Clone, Debug, Default)]
pub(super) enum Ty {
    #[default]
    Unknown,
    /// `interface {}`
    Any,
    Nil,
    Bool,
    Int,
    Int64,
    Uint8,
    Float,
    Str,
    Bytes,
    Strings,
    /// `[]int` and `[]float64`, which only parameters have.
    Ints,
    Floats,
    /// `[]interface {}`, and what its elements are known to be.
    List(Box<Ty>),
    Map(MapKind),
    Time,
    Duration,
    Month,
    Weekday,
    Location,
    /// A function that is not called by its name.
    Func,
    Method(&'static Method),
}

/// Go's kinds, as far as they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Invalid,
    Interface,
    Bool,
    Int,
    Int64,
    Uint8,
    Float,
    String,
    Slice,
    Map,
    Struct,
    Pointer,
    Func,
}

impl Ty {
    pub fn list(element: Ty) -> Self {
        Ty::List(Box::new(element))
    }

    pub fn kind(&self) -> Kind {
        match self {
            Ty::Unknown | Ty::Nil => Kind::Invalid,
            Ty::Any => Kind::Interface,
            Ty::Bool => Kind::Bool,
            Ty::Int | Ty::Month | Ty::Weekday => Kind::Int,
            Ty::Int64 | Ty::Duration => Kind::Int64,
            Ty::Uint8 => Kind::Uint8,
            Ty::Float => Kind::Float,
            Ty::Str => Kind::String,
            Ty::Bytes | Ty::Strings | Ty::Ints | Ty::Floats | Ty::List(_) => Kind::Slice,
            Ty::Map(_) => Kind::Map,
            Ty::Time => Kind::Struct,
            Ty::Location => Kind::Pointer,
            Ty::Func | Ty::Method(_) => Kind::Func,
        }
    }

    /// The kind that the checks of builtin functions see: what is unknown is an interface.
    pub fn argument_kind(&self) -> Kind {
        match self {
            Ty::Unknown => Kind::Interface,
            Ty::Location => Kind::Struct,
            other => other.kind(),
        }
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self, Ty::Unknown | Ty::Any)
    }

    pub fn is_nil(&self) -> bool {
        matches!(self, Ty::Nil)
    }

    pub fn is_bool(&self) -> bool {
        matches!(self, Ty::Bool)
    }

    pub fn is_string(&self) -> bool {
        matches!(self, Ty::Str)
    }

    pub fn is_integer(&self) -> bool {
        matches!(self, Ty::Int | Ty::Int64 | Ty::Uint8)
    }

    pub fn is_number(&self) -> bool {
        self.is_integer() || matches!(self, Ty::Float)
    }

    pub fn is_time(&self) -> bool {
        matches!(self, Ty::Time)
    }

    pub fn is_duration(&self) -> bool {
        matches!(self, Ty::Duration)
    }

    pub fn is_array(&self) -> bool {
        self.kind() == Kind::Slice
    }

    pub fn is_map(&self) -> bool {
        self.kind() == Kind::Map
    }

    /// The type of keys of a map.
    pub fn key(&self) -> Ty {
        match self {
            Ty::Map(MapKind::Text) => Ty::Str,
            Ty::Map(_) => Ty::Any,
            _ => Ty::Unknown,
        }
    }

    /// The type of elements of a list or map.
    pub fn element(&self) -> Ty {
        match self {
            Ty::Map(MapKind::Groups) => Ty::list(Ty::Any),
            Ty::Map(_) => Ty::Any,
            Ty::List(element) => element.as_ref().clone(),
            Ty::Strings => Ty::Str,
            Ty::Bytes => Ty::Uint8,
            Ty::Ints => Ty::Int,
            Ty::Floats => Ty::Float,
            _ => Ty::Unknown,
        }
    }

    pub fn is_assignable_to(&self, to: &Ty) -> bool {
        if self.is_nil() {
            return matches!(
                to.kind(),
                Kind::Pointer | Kind::Interface | Kind::Func | Kind::Map | Kind::Slice
            );
        }
        match (self, to) {
            (Ty::Unknown, _) | (_, Ty::Unknown | Ty::Nil) => false,
            (_, Ty::Any) | (Ty::List(_), Ty::List(_)) => true,
            (Ty::Map(a), Ty::Map(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(to),
        }
    }

    pub fn is_comparable_to(&self, other: &Ty) -> bool {
        self.is_unknown()
            || other.is_unknown()
            || self.is_nil()
            || other.is_nil()
            || self.is_number() && other.is_number()
            || self.is_array() && other.is_array()
            || self.is_assignable_to(other)
    }

    /// Whether one is unknown, and the other too or of the given sort.
    pub fn may_fit(&self, other: &Ty, is_sort: &dyn Fn(&Ty) -> bool) -> bool {
        match (self.is_unknown(), other.is_unknown()) {
            (true, true) => true,
            (true, false) => is_sort(other),
            (false, true) => is_sort(self),
            (false, false) => false,
        }
    }

    /// The type of arithmetic on two numbers.
    pub fn promoted(&self, other: &Ty) -> Ty {
        match (self, other) {
            (Ty::Float, _) | (_, Ty::Float) => Ty::Float,
            _ => Ty::Int,
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ty::Unknown | Ty::Nil => "unknown",
            Ty::Any => "interface {}",
            Ty::Bool => "bool",
            Ty::Int => "int",
            Ty::Int64 => "int64",
            Ty::Uint8 => "uint8",
            Ty::Float => "float64",
            Ty::Str => "string",
            Ty::Bytes => "[]uint8",
            Ty::Strings => "[]string",
            Ty::Ints => "[]int",
            Ty::Floats => "[]float64",
            Ty::List(_) => "[]interface {}",
            Ty::Map(kind) => kind.go_type(),
            Ty::Time => "time.Time",
            Ty::Duration => "time.Duration",
            Ty::Month => "time.Month",
            Ty::Weekday => "time.Weekday",
            Ty::Location => "*time.Location",
            Ty::Func | Ty::Method(_) => "func",
        })
    }
}
