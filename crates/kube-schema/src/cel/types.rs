//! Types of expressions, and which are assignable to which. Main types: [`Type`], [`Mapping`].

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// The fields of an object type. Types are equal if their names are.
#[derive(Debug)]
pub struct ObjectType {
    pub name: String,
    pub fields: BTreeMap<String, Type>,
    /// It also has any other field, of any type.
    pub open: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Dyn,
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Object(Arc<ObjectType>),
    Optional(Arc<Type>),
    /// The type of a type.
    Kind(Arc<Type>),
    /// `kubernetes.Quantity` and the like.
    Opaque(&'static str),
    /// A type variable of a declaration, or of the current check.
    Var(Arc<str>),
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Type {
    pub fn list(of: Type) -> Self {
        Self::List(Arc::new(of))
    }

    pub fn map(key: Type, value: Type) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    pub fn optional(of: Type) -> Self {
        Self::Optional(Arc::new(of))
    }

    pub fn of_type(of: Type) -> Self {
        Self::Kind(Arc::new(of))
    }

    /// The runtime name of the type, which some messages use instead of the readable one.
    pub fn runtime_name(&self) -> String {
        match self {
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::Null => "null_type".to_owned(),
            Self::List(of) => format!("list({})", of.runtime_name()),
            Self::Map(key, value) => {
                format!("map({}, {})", key.runtime_name(), value.runtime_name())
            }
            Self::Optional(of) => format!("optional_type({})", of.runtime_name()),
            other => other.to_string(),
        }
    }

    pub fn is_wild(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// The type inside an optional, or the type itself.
    pub fn unwrapped(&self) -> (&Type, bool) {
        match self {
            Self::Optional(inner) => (inner, true),
            other => (other, false),
        }
    }

    fn takes_null(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Object(_)
                | Self::Duration
                | Self::Timestamp
                | Self::Opaque(_)
                | Self::Optional(_)
        )
    }

    fn mentions(&self, var: &str) -> bool {
        match self {
            Self::Var(name) => &**name == var,
            Self::List(a) | Self::Optional(a) | Self::Kind(a) => a.mentions(var),
            Self::Map(a, b) => a.mentions(var) || b.mentions(var),
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Object(object) => f.write_str(&object.name),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Kind(of) => write!(f, "type({of})"),
            Self::Opaque(name) => f.write_str(name),
            Self::Var(name) => f.write_str(name),
        }
    }
}

/// The current values of type variables.
#[derive(Clone, Debug, Default)]
pub struct Mapping(HashMap<Arc<str>, Type>);

impl Mapping {
    /// The type with variables replaced; unassigned ones become `dyn` if `free` is set.
    pub fn apply(&self, ty: &Type, free: bool) -> Type {
        match ty {
            Type::Var(name) => match self.0.get(name) {
                Some(known) => self.apply(known, free),
                None if free => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(of) => Type::list(self.apply(of, free)),
            Type::Map(key, value) => Type::map(self.apply(key, free), self.apply(value, free)),
            Type::Optional(of) => Type::optional(self.apply(of, free)),
            Type::Kind(of) => Type::of_type(self.apply(of, free)),
            other => other.clone(),
        }
    }

    /// Whether a value of one type is assignable to the other; assigns variables on the way.
    pub fn assign(&mut self, from: &Type, to: &Type) -> bool {
        let mut tried = self.clone();
        let fits = tried.fits(from, to);
        if fits {
            *self = tried;
        }
        fits
    }

    pub fn assign_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        let mut tried = self.clone();
        let fits = from.len() == to.len() && from.iter().zip(to).all(|(a, b)| tried.fits(a, b));
        if fits {
            *self = tried;
        }
        fits
    }

    fn fits(&mut self, a: &Type, b: &Type) -> bool {
        if let Type::Var(name) = b {
            let (valid, known) = self.substitute(a, name);
            if valid || known {
                return valid;
            }
        }
        if let Type::Var(name) = a {
            return self.substitute(b, name).0;
        }
        if a.is_wild() || b.is_wild() {
            return true;
        }
        match (a, b) {
            (Type::Null, other) | (other, Type::Null) => other.takes_null(),
            (Type::Kind(_), Type::Kind(_)) => true,
            (Type::List(x), Type::List(y)) | (Type::Optional(x), Type::Optional(y)) => {
                self.fits(x, y)
            }
            (Type::Map(k, v), Type::Map(l, w)) => self.fits(k, l) && self.fits(v, w),
            _ => a == b,
        }
    }

    /// Assigns a type to a variable: (whether that is possible, whether it was assigned before).
    fn substitute(&mut self, ty: &Type, var: &Arc<str>) -> (bool, bool) {
        if matches!(ty, Type::Var(name) if name == var) {
            return (true, true);
        }
        if let Some(known) = self.0.get(var).cloned() {
            if known == *ty {
                return (true, true);
            }
            if !self.fits(ty, &known) {
                return (false, true);
            }
            let general = self.more_general(ty, &known);
            if !self.apply(&general, false).mentions(var) {
                self.0.insert(var.clone(), general);
            }
            return (true, true);
        }
        if self.apply(ty, false).mentions(var) {
            return (false, false);
        }
        self.0.insert(var.clone(), ty.clone());
        (true, false)
    }

    /// The more general of two compatible types.
    pub fn more_general(&self, a: &Type, b: &Type) -> Type {
        if is_as_general(a, b) {
            a.clone()
        } else {
            b.clone()
        }
    }
}

fn is_as_general(a: &Type, b: &Type) -> bool {
    if a.is_wild() || matches!(a, Type::Var(_)) {
        return true;
    }
    match (a, b) {
        (Type::Null, _) => false,
        (_, Type::Null) => true,
        (Type::List(x), Type::List(y))
        | (Type::Optional(x), Type::Optional(y))
        | (Type::Kind(x), Type::Kind(y)) => is_as_general(x, y),
        (Type::Map(k, v), Type::Map(l, w)) => is_as_general(k, l) && is_as_general(v, w),
        _ => a == b,
    }
}
