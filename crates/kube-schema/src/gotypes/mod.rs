//! What Go does to an object on its way through the real API server: which empty fields it drops
//! and which it writes, how it reads quantities, and how the binary form of a request is laid out.
//!
//! Main type: [`Struct`], from the committed `table.txt` (made by `examples/go_types.rs`). It knows
//! fields, not their meaning.

mod decode;
mod diff;
mod internal;
mod internal_names;
mod normalize;
mod numbers;
mod over;
mod read;
mod syntax;
mod text;
mod time;

pub use decode::decode;
pub use diff::diff;
#[allow(unused_imports, reason = "for the checks of kinds")]
pub use internal::internal;
use normalize::omitted;
pub use normalize::{
    drop_empty, drop_zero, forget_empty, may_share, normalize, read_into, share_equal, zero,
};
pub use numbers::cut_numbers;
pub use over::read_over;
pub use read::WrongType;
pub use syntax::syntax_error;
pub use text::{AsWritten, text_of};
pub use time::{read_int, read_time};

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};
use tiphys_apimachinery::Gvk;

const TABLE: &str = include_str!("table.txt");

/// A Go struct.
#[derive(Debug)]
pub struct Struct {
    /// Such as `core/v1.Pod`.
    pub name: &'static str,
    pub fields: Vec<Field>,
}

impl Struct {
    /// The field of that name, also one of a struct that is inlined.
    pub fn field(&'static self, name: &str) -> Option<&'static Field> {
        read::field(self, name).map(|(field, _)| field)
    }
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// In JSON; for inlined structs only a word.
    pub name: &'static str,
    /// In protobuf.
    pub number: u32,
    pub pointer: bool,
    pub omit_empty: bool,
    pub omit_zero: bool,
    pub inline: bool,
    pub ty: Type,
    /// The Go type as error messages name it, where [`Type`] does not say it.
    pub go: Option<&'static str>,
}

/// The type of a value.
#[derive(Debug)]
pub enum Type {
    String,
    Bool,
    Int32,
    Int64,
    Float,
    Bytes,
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
    /// Any JSON: RawExtension and FieldsV1.
    Raw,
    /// `items` of a schema.
    SchemaOrList,
    /// `additionalProperties` of a schema.
    SchemaOrBool,
    /// One of a schema's `dependencies`.
    SchemaOrTexts,
    Message(Message),
    List(Box<Type>),
    Map(Box<Type>),
}

/// The name of a struct, and the struct once somebody has asked for it.
#[derive(Debug)]
pub struct Message {
    pub name: &'static str,
    found: OnceLock<Option<&'static Struct>>,
}

impl Message {
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            found: OnceLock::new(),
        }
    }

    /// Without the package.
    pub fn short(&self) -> &'static str {
        self.name.split('.').next_back().unwrap_or(self.name)
    }

    pub fn find(&self) -> Option<&'static Struct> {
        *self.found.get_or_init(|| find(self.name))
    }
}

impl Type {
    fn parse(word: &'static str) -> Self {
        if let Some(item) = word.strip_prefix("[]") {
            return Self::List(Box::new(Self::parse(item)));
        }
        if let Some(value) = word.strip_prefix("{}") {
            return Self::Map(Box::new(Self::parse(value)));
        }
        match word {
            "s" => Self::String,
            "b" => Self::Bool,
            "i" => Self::Int32,
            "l" => Self::Int64,
            "d" => Self::Float,
            "y" => Self::Bytes,
            "T" => Self::Time,
            "U" => Self::MicroTime,
            "D" => Self::Duration,
            "Q" => Self::Quantity,
            "I" => Self::IntOrString,
            "R" | "F" => Self::Raw,
            "J" => Self::SchemaOrList,
            "K" => Self::SchemaOrBool,
            "P" => Self::SchemaOrTexts,
            message => Self::Message(Message::new(message)),
        }
    }
}

fn table() -> &'static HashMap<&'static str, Struct> {
    static PARSED: OnceLock<HashMap<&'static str, Struct>> = OnceLock::new();
    PARSED.get_or_init(|| {
        let mut all: HashMap<&'static str, Struct> = HashMap::new();
        let mut current = "";
        for line in TABLE.lines().filter(|l| !l.starts_with('#')) {
            if let Some(name) = line.strip_prefix('>') {
                current = name;
                all.insert(
                    name,
                    Struct {
                        name,
                        fields: Vec::new(),
                    },
                );
            } else if let (Some(field), Some(of)) = (parse_field(line), all.get_mut(current)) {
                of.fields.push(field);
            }
        }
        all
    })
}

fn parse_field(line: &'static str) -> Option<Field> {
    let mut words = line.split(' ');
    let (name, number, flags, ty) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let flag = |c| flags.contains(c);
    let number = number.parse().ok()?;
    let (pointer, omit_empty, omit_zero, inline) = (flag('p'), flag('o'), flag('z'), flag('n'));
    Some(Field {
        name,
        number,
        pointer,
        omit_empty,
        omit_zero,
        inline,
        ty: Type::parse(ty),
        go: words.next(),
    })
}

/// A schema in a CustomResourceDefinition.
pub const SCHEMA: &str = "apiextensions/v1.JSONSchemaProps";

/// The struct of that name.
pub fn find(name: &str) -> Option<&'static Struct> {
    table().get(name)
}

/// The struct of a built-in kind.
pub fn of(gvk: &Gvk) -> Option<&'static Struct> {
    of_kind(&gvk.group, &gvk.version, &gvk.kind)
}

/// The same by group, version and kind.
pub fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Struct> {
    type Kinds = HashMap<(&'static str, &'static str, &'static str), &'static Struct>;
    static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
        let parts = |name: &'static str| {
            name.split_once('/')
                .and_then(|(folder, rest)| Some((folder, rest.split_once('.')?)))
        };
        table()
            .iter()
            .filter_map(|(name, of)| {
                parts(name).map(|(folder, (version, kind))| ((folder, version, kind), of))
            })
            .collect()
    });
    let folder = if group.is_empty() {
        "core"
    } else {
        group.split('.').next().unwrap_or("")
    };
    let builtin = group.is_empty() || !group.contains('.') || group.ends_with(".k8s.io");
    // Borrowed for no longer than the question.
    let kinds: &HashMap<(&str, &str, &str), &'static Struct> = &KINDS;
    kinds
        .get(&(folder, version, kind))
        .copied()
        .filter(|_| builtin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_that_is_named_is_there() {
        fn check(ty: &Type) {
            match ty {
                Type::Message(message) => {
                    assert!(message.find().is_some(), "{} is missing", message.name)
                }
                Type::List(item) | Type::Map(item) => check(item),
                _ => {}
            }
        }
        assert!(table().len() > 300);
        table()
            .values()
            .flat_map(|s| &s.fields)
            .for_each(|f| check(&f.ty));
        assert_eq!(
            of(&Gvk::new("apps", "v1", "Deployment")).map(|s| s.name),
            Some("apps/v1.Deployment")
        );
    }
}
