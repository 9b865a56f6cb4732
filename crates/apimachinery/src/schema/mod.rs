//! The fields of a kind, their types, and how its lists and maps are merged.
//!
//! Main types: [`Schema`] (a set of definitions) and [`TypeRef`] (a cheap handle to one type in
//! it). [`builtin`] has the built-in kinds, [`resources`] what an API server serves for them;
//! [`crd::from_structural`] parses the schema of a custom resource, [`Schema::from_openapi_v3`] a
//! live cluster's document at `/openapi/v3/<group>/<version>`, which contains everything that a
//! patch needs, like the built-in table. Object values are only handled in [`shape::prune`] and
//! [`shape::apply_defaults`].

mod builder;
mod builtin;
pub mod crd;
mod discovery;
mod openapi;
pub mod shape;

pub use builtin::builtin;
pub use discovery::{KUBERNETES_VERSION, ResourceInfo, Subresource, find_resource, resources};
pub use shape::{apply_defaults, prune, prune_tree};

use crate::gvk::Gvk;
use serde_json::Value;
use std::{borrow::Cow, collections::HashMap};

type Str = Cow<'static, str>;

/// Why a schema document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("schema at {path}: {reason}")]
    Invalid { path: String, reason: String },
    #[error("schema refers to `{0}`, which it does not define")]
    UnknownReference(String),
    #[error("schema exceeds the limit of {limit} {what}")]
    TooLarge { what: &'static str, limit: usize },
}

/// How the elements of a list are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    Atomic,
    Set,
    Map,
}

/// Whether a map is replaced as a whole or merged by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapType {
    Atomic,
    Granular,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarKind {
    String,
    Integer,
    Number,
    Boolean,
    /// A number or a string: IntOrString, and Quantity.
    IntOrString,
}

/// The shape of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeKind {
    /// Named fields.
    Object,
    /// Arbitrary keys; all values have one type.
    Map,
    List,
    Scalar(ScalarKind),
    /// Unknown: any JSON.
    Any,
}

/// A set of definitions that refer to each other.
#[derive(Debug, Default)]
pub struct Schema {
    nodes: Vec<Node>,
    fields: Vec<Field>,
    definitions: Vec<Definition>,
    by_name: HashMap<Str, u32>,
    by_gvk: HashMap<Gvk, u32>,
    root: Option<u32>,
}

#[derive(Debug)]
struct Definition {
    name: Str,
    node: u32,
    gvks: Vec<Gvk>,
}

#[derive(Debug)]
struct Field {
    name: Str,
    node: u32,
    required: bool,
}

#[derive(Debug)]
struct Node {
    shape: Shape,
    attributes: Option<Box<Attributes>>,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    /// An index into `definitions`.
    Reference(u32),
    /// A definition of the built-in schema (a custom resource's metadata).
    Builtin(u32),
    /// `first..first + count` of `fields`, sorted by name; `rest` is the type of unnamed fields.
    Object {
        first: u32,
        count: u32,
        rest: Option<u32>,
    },
    Map(u32),
    List(u32),
    Scalar(ScalarKind),
    Any,
}

#[derive(Debug, Default, Clone)]
struct Attributes {
    list_type: Option<ListType>,
    list_map_keys: Vec<Str>,
    map_type: Option<MapType>,
    patch_strategy: Option<Str>,
    patch_merge_key: Option<Str>,
    format: Option<Str>,
    default: Option<Value>,
    enum_values: Vec<Value>,
    nullable: bool,
    preserve_unknown: bool,
    within_preserved: bool,
    embedded_resource: bool,
    plain_struct: bool,
    left_out: bool,
}

impl Schema {
    /// The type of a kind, if this schema has it.
    pub fn type_for(&self, gvk: &Gvk) -> Option<TypeRef<'_>> {
        self.by_gvk.get(gvk).map(|d| self.definition_at(*d))
    }

    /// The definition of a name such as `io.k8s.api.core.v1.Container`.
    pub fn definition(&self, name: &str) -> Option<TypeRef<'_>> {
        self.by_name.get(name).map(|d| self.definition_at(*d))
    }

    /// All definitions, sorted by name.
    pub fn definitions(&self) -> impl Iterator<Item = TypeRef<'_>> {
        (0..self.definitions.len() as u32).map(|d| self.definition_at(d))
    }

    /// The type of the document itself, for the schema of a custom resource.
    pub fn root(&self) -> Option<TypeRef<'_>> {
        self.root.map(|node| TypeRef::at(self, node))
    }

    /// Reads `components.schemas` of an OpenAPI v3 document, or `definitions` of a v2 one.
    pub fn from_openapi_v3(document: &Value) -> Result<Self, SchemaError> {
        openapi::read(document)
    }

    fn definition_at(&self, definition: u32) -> TypeRef<'_> {
        TypeRef::at(self, self.definitions[definition as usize].node).named(definition)
    }
}

/// A type used in one place: attributes of the place (such as a patch strategy) override those of
/// the type.
#[derive(Clone, Copy)]
pub struct TypeRef<'a> {
    schema: &'a Schema,
    /// The node with the attributes of the place, and its schema.
    site: &'a Node,
    target: &'a Node,
    definition: Option<u32>,
}

impl std::fmt::Debug for TypeRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "TypeRef({:?} {})",
            self.kind(),
            self.name().unwrap_or("-")
        )
    }
}

impl<'a> TypeRef<'a> {
    fn at(schema: &'a Schema, node: u32) -> Self {
        let site = &schema.nodes[node as usize];
        let mut this = Self {
            schema,
            site,
            target: site,
            definition: None,
        };
        // Definitions that are themselves references are followed; the builder refuses cycles.
        loop {
            match this.target.shape {
                Shape::Reference(d) => {
                    this.target =
                        &this.schema.nodes[this.schema.definitions[d as usize].node as usize];
                    this.definition = Some(d);
                }
                Shape::Builtin(d) => {
                    this.schema = builtin();
                    this.target =
                        &this.schema.nodes[this.schema.definitions[d as usize].node as usize];
                    this.definition = Some(d);
                }
                _ => return this,
            }
        }
    }

    fn named(mut self, definition: u32) -> Self {
        self.definition = self.definition.or(Some(definition));
        self
    }

    pub fn kind(&self) -> TypeKind {
        match self.target.shape {
            Shape::Object { .. } => TypeKind::Object,
            Shape::Map(_) => TypeKind::Map,
            Shape::List(_) => TypeKind::List,
            Shape::Scalar(s) => TypeKind::Scalar(s),
            Shape::Any | Shape::Reference(_) | Shape::Builtin(_) => TypeKind::Any,
        }
    }

    /// Whether the type is one of [`builtin`]'s.
    pub fn is_built_in(&self) -> bool {
        std::ptr::eq(self.schema, builtin())
    }

    /// The definition's name, if the type is one.
    pub fn name(&self) -> Option<&'a str> {
        self.definition
            .map(|d| &*self.schema.definitions[d as usize].name)
    }

    /// The kinds of this definition; several for DeleteOptions and WatchEvent.
    pub fn gvks(&self) -> &'a [Gvk] {
        self.definition
            .map_or(&[], |d| &self.schema.definitions[d as usize].gvks)
    }

    /// The type of a field: a named one, or the value type of a map. None if there can be no such
    /// field.
    pub fn field(&self, name: &str) -> Option<TypeRef<'a>> {
        match self.target.shape {
            Shape::Object { rest, .. } => match self.field_entry(name) {
                Some(field) => Some(TypeRef::at(self.schema, field.node)),
                None => rest.map(|node| TypeRef::at(self.schema, node)),
            },
            Shape::Map(values) => Some(TypeRef::at(self.schema, values)),
            _ => None,
        }
    }

    /// The type of a field that is declared by name, as opposed to a key of a map.
    pub fn named_field(&self, name: &str) -> Option<TypeRef<'a>> {
        self.field_entry(name)
            .map(|f| TypeRef::at(self.schema, f.node))
    }

    fn field_slice(&self) -> &'a [Field] {
        match self.target.shape {
            Shape::Object { first, count, .. } => {
                &self.schema.fields[first as usize..(first + count) as usize]
            }
            _ => &[],
        }
    }

    fn field_entry(&self, name: &str) -> Option<&'a Field> {
        let fields = self.field_slice();
        fields
            .binary_search_by(|f| (*f.name).cmp(name))
            .ok()
            .map(|i| &fields[i])
    }

    /// Named fields, sorted by name.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, TypeRef<'a>)> + use<'a> {
        let schema = self.schema;
        self.field_slice()
            .iter()
            .map(move |f| (&*f.name, TypeRef::at(schema, f.node)))
    }

    /// Names of the required fields.
    pub fn required(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.field_slice()
            .iter()
            .filter(|f| f.required)
            .map(|f| &*f.name)
    }

    pub fn is_required(&self, field: &str) -> bool {
        self.field_entry(field).is_some_and(|f| f.required)
    }

    /// The elements' type of a list.
    pub fn items(&self) -> Option<TypeRef<'a>> {
        match self.target.shape {
            Shape::List(items) => Some(TypeRef::at(self.schema, items)),
            _ => None,
        }
    }

    /// The type of values whose keys are not named fields.
    pub fn values(&self) -> Option<TypeRef<'a>> {
        match self.target.shape {
            Shape::Map(values)
            | Shape::Object {
                rest: Some(values), ..
            } => Some(TypeRef::at(self.schema, values)),
            _ => None,
        }
    }

    fn attribute<T>(&self, read: impl Fn(&'a Attributes) -> Option<T>) -> Option<T> {
        let of = |node: &'a Node| node.attributes.as_deref().and_then(&read);
        of(self.site).or_else(|| {
            if std::ptr::eq(self.site, self.target) {
                None
            } else {
                of(self.target)
            }
        })
    }

    fn flag(&self, read: impl Fn(&'a Attributes) -> bool) -> bool {
        self.attribute(|a| read(a).then_some(())).is_some()
    }

    /// None if the schema does not say; structured merge then treats lists as atomic.
    pub fn list_type(&self) -> Option<ListType> {
        self.attribute(|a| a.list_type)
    }

    pub fn list_map_keys(&self) -> &'a [Cow<'static, str>] {
        self.attribute(|a| (!a.list_map_keys.is_empty()).then_some(&a.list_map_keys[..]))
            .unwrap_or(&[])
    }

    /// None if the schema does not say; structured merge then treats maps as granular.
    pub fn map_type(&self) -> Option<MapType> {
        self.attribute(|a| a.map_type)
    }

    /// As written, such as `merge,retainKeys`.
    pub fn patch_strategy(&self) -> Option<&'a str> {
        self.attribute(|a| a.patch_strategy.as_deref())
    }

    pub fn patch_merge_key(&self) -> Option<&'a str> {
        self.attribute(|a| a.patch_merge_key.as_deref())
    }

    pub fn format(&self) -> Option<&'a str> {
        self.attribute(|a| a.format.as_deref())
    }

    pub fn default(&self) -> Option<&'a Value> {
        self.attribute(|a| a.default.as_ref())
    }

    /// The values allowed; empty = any.
    pub fn enum_values(&self) -> &'a [Value] {
        self.attribute(|a| (!a.enum_values.is_empty()).then_some(&a.enum_values[..]))
            .unwrap_or(&[])
    }

    pub fn nullable(&self) -> bool {
        self.flag(|a| a.nullable)
    }

    /// Unknown fields are preserved (`x-kubernetes-preserve-unknown-fields`).
    pub fn preserves_unknown(&self) -> bool {
        self.flag(|a| a.preserve_unknown)
    }

    /// Whether undeclared fields are merged without a schema, even if the API server prunes them
    /// afterwards: in an object that declares no fields, and below one that preserves unknown
    /// fields.
    pub fn merges_undeclared(&self) -> bool {
        let declares_none = matches!(
            self.target.shape,
            Shape::Object {
                count: 0,
                rest: None,
                ..
            }
        );
        declares_none || self.flag(|a| a.within_preserved)
    }

    /// The API server holds this map in a Go struct that is not a pointer: it is always present,
    /// possibly empty.
    pub fn is_plain_struct(&self) -> bool {
        self.flag(|a| a.plain_struct)
    }

    /// The API server omits this field when it is empty, although it is required.
    pub fn is_left_out(&self) -> bool {
        self.flag(|a| a.left_out)
    }

    /// The value is itself a Kubernetes object (`x-kubernetes-embedded-resource`).
    pub fn embedded_resource(&self) -> bool {
        self.flag(|a| a.embedded_resource)
    }
}

#[cfg(test)]
mod tests;
