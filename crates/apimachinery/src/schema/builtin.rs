//! The definitions of Kubernetes itself, from `data/definitions.txt` (about 100 KB, made by `cargo
//! xtask codegen`).
//!
//! A line `=name<TAB>type...` begins a definition and `name<TAB>type...` adds a field to it. Types
//! are `s` string, `i` integer, `n` number, `b` boolean, `q` number or string, `x` anything, `o`
//! object with the fields that follow, `[T` list of T, `{T` map of T, `@name` a definition.
//! Attributes follow, each after a tab: `*` required, `z` a plain struct of the API server, `o`
//! omitted by it when empty, `f:` format, `l:` list type with its keys, `m:` map type, `p:` patch
//! strategy, `k:` patch merge key, `e:` enum, `d:` default as JSON, `g:` group/version/kind. `~`
//! stands for `io.k8s.api.` and `^` for `io.k8s.apimachinery.pkg.apis.meta.v1.` in names.

use super::{
    Attributes, ListType, MapType, ScalarKind, Schema, SchemaError, Shape, Str, builder::Builder,
};
use crate::gvk::Gvk;
use serde_json::Value;
use std::sync::OnceLock;

const TEXT: &str = include_str!("data/definitions.txt");

/// The built-in kinds of the Kubernetes version in [`super::KUBERNETES_VERSION`]. Parsed on first
/// use, which takes a few milliseconds.
pub fn builtin() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| parse(TEXT).expect("the committed file is well-formed; a test reads it"))
}

/// A definition line and the fields read after it.
struct Open {
    name: Str,
    ty: &'static str,
    marks: Marks,
    fields: Vec<(Str, u32, bool)>,
}

#[derive(Default)]
struct Marks {
    required: bool,
    attributes: Option<Attributes>,
    gvks: Vec<Gvk>,
}

fn parse(text: &'static str) -> Result<Schema, SchemaError> {
    let mut builder = Builder::default();
    let mut open: Option<Open> = None;
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = || SchemaError::Invalid {
            path: format!("definitions.txt line {}", number + 1),
            reason: "it cannot be read".into(),
        };
        let mut columns = line.split('\t');
        let (name, ty) = (
            columns.next().ok_or_else(bad)?,
            columns.next().ok_or_else(bad)?,
        );
        let marks = marks(columns).ok_or_else(bad)?;
        if let Some(name) = name.strip_prefix('=') {
            if let Some(done) = open.replace(Open {
                name: full_name(name),
                ty,
                marks,
                fields: Vec::new(),
            }) {
                close(&mut builder, done)?;
            }
        } else {
            let node = node(&mut builder, ty, marks.attributes)?;
            open.as_mut()
                .ok_or_else(bad)?
                .fields
                .push((name.into(), node, marks.required));
        }
    }
    if let Some(done) = open {
        close(&mut builder, done)?;
    }
    builder.finish()
}

fn close(builder: &mut Builder, open: Open) -> Result<(), SchemaError> {
    let node = if open.ty == "o" {
        let shape = builder.object(open.fields, None);
        builder.node(shape, open.marks.attributes)?
    } else {
        node(builder, open.ty, open.marks.attributes)?
    };
    builder.define(open.name, node, open.marks.gvks);
    Ok(())
}

fn node(
    builder: &mut Builder,
    ty: &'static str,
    mut attributes: Option<Attributes>,
) -> Result<u32, SchemaError> {
    let shape = match ty.as_bytes().first() {
        Some(b's') => Shape::Scalar(ScalarKind::String),
        Some(b'i') => Shape::Scalar(ScalarKind::Integer),
        Some(b'n') => Shape::Scalar(ScalarKind::Number),
        Some(b'b') => Shape::Scalar(ScalarKind::Boolean),
        Some(b'q') => Shape::Scalar(ScalarKind::IntOrString),
        Some(b'@') => builder.reference(full_name(&ty[1..])),
        Some(mark @ (b'[' | b'{')) => {
            // Attributes that apply to elements belong to the element's type.
            let format = attributes.as_mut().and_then(|a| a.format.take());
            let enum_values = attributes
                .as_mut()
                .map(|a| std::mem::take(&mut a.enum_values))
                .unwrap_or_default();
            let of_element = format.is_some() || !enum_values.is_empty();
            let inner = node(
                builder,
                &ty[1..],
                of_element.then(|| Attributes {
                    format,
                    enum_values,
                    ..Attributes::default()
                }),
            )?;
            if *mark == b'[' {
                Shape::List(inner)
            } else {
                Shape::Map(inner)
            }
        }
        _ => Shape::Any,
    };
    builder.node(shape, attributes)
}

fn full_name(short: &'static str) -> Str {
    match short.as_bytes().first() {
        Some(b'~') => format!("io.k8s.api.{}", &short[1..]).into(),
        Some(b'^') => format!("io.k8s.apimachinery.pkg.apis.meta.v1.{}", &short[1..]).into(),
        _ => short.into(),
    }
}

fn marks(columns: impl Iterator<Item = &'static str>) -> Option<Marks> {
    let mut marks = Marks::default();
    for column in columns {
        match column {
            "*" => {
                marks.required = true;
                continue;
            }
            "z" => {
                marks.attributes.get_or_insert_default().plain_struct = true;
                continue;
            }
            "o" => {
                marks.attributes.get_or_insert_default().left_out = true;
                continue;
            }
            _ => {}
        }
        let (key, value) = column.split_once(':')?;
        if key == "g" {
            let mut parts = value.splitn(3, '/');
            marks
                .gvks
                .push(Gvk::new(parts.next()?, parts.next()?, parts.next()?));
            continue;
        }
        let a = marks.attributes.get_or_insert_default();
        match key {
            "f" => a.format = Some(value.into()),
            "p" => a.patch_strategy = Some(value.into()),
            "k" => a.patch_merge_key = Some(value.into()),
            "m" => {
                a.map_type = Some(if value == "atomic" {
                    MapType::Atomic
                } else {
                    MapType::Granular
                })
            }
            "l" => {
                let (kind, keys) = value.split_once(':').unwrap_or((value, ""));
                a.list_type = Some(match kind {
                    "map" => ListType::Map,
                    "set" => ListType::Set,
                    _ => ListType::Atomic,
                });
                a.list_map_keys = keys
                    .split(',')
                    .filter(|k| !k.is_empty())
                    .map(Str::from)
                    .collect();
            }
            "e" => a.enum_values = value.split('|').map(Value::from).collect(),
            "d" => a.default = Some(serde_json::from_str(value).ok()?),
            _ => return None,
        }
    }
    Some(marks)
}
