//! Expressions of admission policies: their variables and their result types. Main types:
//! [`Scope`], [`Returns`].

use super::kinds::Opaque;
use super::types::{ObjectType, Type};
use super::value::{Key, Value};
use super::{Env, Program, authz};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The variables of an expression besides the request and its objects.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub params: bool,
    pub authorizer: bool,
    pub patches: bool,
    /// The policy's earlier variables, in order.
    pub variables: Vec<(String, Type)>,
    /// Whether the expression can use `variables`.
    pub composes: bool,
}

/// The required result of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    Anything,
    Bool,
    Text,
    TextOrNull,
    /// A list of `JSONPatch{}`.
    Patches,
    /// An `Object{}`.
    Object,
}

/// A type whose fields are given as `name type`, separated by commas.
pub(super) fn object(name: &str, fields: &[(&str, Type)]) -> Type {
    let fields = fields
        .iter()
        .map(|(name, ty)| ((*name).to_owned(), ty.clone()))
        .collect();
    Type::Object(Arc::new(ObjectType {
        name: name.to_owned(),
        fields,
        open: false,
    }))
}

fn request() -> Type {
    let text = || Type::String;
    let texts = || Type::list(Type::String);
    let kind = object(
        "kubernetes.GroupVersionKind",
        &[("group", text()), ("version", text()), ("kind", text())],
    );
    let resource = object(
        "kubernetes.GroupVersionResource",
        &[("group", text()), ("version", text()), ("resource", text())],
    );
    let extra = Type::map(Type::String, texts());
    let user = object(
        "kubernetes.UserInfo",
        &[
            ("username", text()),
            ("uid", text()),
            ("groups", texts()),
            ("extra", extra),
        ],
    );
    let fields = [
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("subResource", text()),
        ("requestKind", kind),
        ("requestResource", resource),
        ("requestSubResource", text()),
        ("name", text()),
        ("namespace", text()),
        ("operation", text()),
        ("userInfo", user),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ];
    object("kubernetes.AdmissionRequest", &fields)
}

fn namespace() -> Type {
    let text = || Type::String;
    let texts = || Type::list(Type::String);
    let map = || Type::map(Type::String, Type::String);
    let condition = [
        ("status", text()),
        ("type", text()),
        ("lastTransitionTime", Type::Timestamp),
        ("message", text()),
        ("reason", text()),
    ];
    let conditions = Type::list(object("kubernetes.NamespaceCondition", &condition));
    let metadata = [
        ("name", text()),
        ("generateName", text()),
        ("namespace", text()),
        ("labels", map()),
        ("annotations", map()),
        ("UID", text()),
        ("creationTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("deletionTimestamp", Type::Timestamp),
        ("generation", Type::Int),
        ("resourceVersion", text()),
        ("finalizers", texts()),
    ];
    let fields = [
        (
            "metadata",
            object("kubernetes.NamespaceMetadata", &metadata),
        ),
        (
            "spec",
            object("kubernetes.NamespaceSpec", &[("finalizers", texts())]),
        ),
        (
            "status",
            object(
                "kubernetes.NamespaceStatus",
                &[("conditions", conditions), ("phase", text())],
            ),
        ),
    ];
    object("kubernetes.Namespace", &fields)
}

/// The types that are the same for every policy.
fn fixed() -> &'static [Type; 2] {
    static TYPES: OnceLock<[Type; 2]> = OnceLock::new();
    TYPES.get_or_init(|| [request(), namespace()])
}

/// The type of `name{}` in a patch.
pub fn constructed(name: &str) -> Option<Type> {
    let name = name.trim_start_matches('.');
    if name == "JSONPatch" {
        let fields = [
            ("op", Type::String),
            ("path", Type::String),
            ("from", Type::String),
            ("value", Type::Dyn),
        ];
        return Some(object(name, &fields));
    }
    let is_object = name == "Object" || name.starts_with("Object.");
    is_object.then(|| {
        Type::Object(Arc::new(ObjectType {
            name: name.to_owned(),
            fields: BTreeMap::new(),
            open: true,
        }))
    })
}

impl Scope {
    fn env(&self) -> Env {
        let [request, namespace] = fixed();
        let mut vars: BTreeMap<String, Type> = [
            ("object".to_owned(), Type::Dyn),
            ("oldObject".to_owned(), Type::Dyn),
            ("request".to_owned(), request.clone()),
            ("namespaceObject".to_owned(), namespace.clone()),
        ]
        .into();
        if self.params {
            vars.insert("params".into(), Type::Dyn);
        }
        if self.authorizer {
            vars.insert("authorizer".into(), authz::AUTHORIZER);
            vars.insert("authorizer.requestResource".into(), authz::RESOURCE_CHECK);
        }
        if self.composes {
            let fields = self.variables.iter().cloned().collect();
            let ty = ObjectType {
                name: "kubernetes.variables".to_owned(),
                fields,
                open: false,
            };
            vars.insert("variables".into(), Type::Object(Arc::new(ty)));
        }
        Env {
            vars,
            patches: self.patches,
        }
    }

    /// Compiles the expression, or returns the real server's error.
    pub fn compile(&self, source: &str, returns: Returns) -> Result<Program, String> {
        let program = Program::compile(&self.env(), source)
            .map_err(|e| format!("compilation failed: {e}"))?;
        let found = &program.ty;
        let (fits, wanted) = match returns {
            Returns::Anything => (true, ""),
            Returns::Bool => (*found == Type::Bool, "bool"),
            Returns::Text => (*found == Type::String, "string"),
            Returns::TextOrNull => (
                matches!(found, Type::String | Type::Null),
                "one of [string null_type]",
            ),
            Returns::Patches => (found.runtime_name() == "list(JSONPatch)", "list(JSONPatch)"),
            Returns::Object => (found.runtime_name() == "Object", "Object"),
        };
        if fits {
            Ok(program)
        } else {
            Err(format!(
                "must evaluate to {wanted} but got {}",
                found.runtime_name()
            ))
        }
    }

    /// Adds a variable. A type that is not plain is treated as unknown.
    pub fn define(&mut self, name: &str, ty: Option<&Type>) {
        fn plain(ty: &Type) -> Type {
            match ty {
                Type::List(of) => Type::list(plain(of)),
                Type::Map(key, value) => Type::map(plain(key), plain(value)),
                Type::Object(_)
                | Type::Optional(_)
                | Type::Kind(_)
                | Type::Opaque(_)
                | Type::Var(_)
                | Type::Error => Type::Dyn,
                other => other.clone(),
            }
        }
        self.variables
            .push((name.to_owned(), ty.map_or(Type::Dyn, plain)));
    }
}

/// A value as JSON; a value without a JSON form is an error.
pub fn to_json(value: &Value) -> Result<Json, String> {
    Ok(match value {
        Value::Null | Value::Optional(None) => Json::Null,
        Value::Bool(b) => (*b).into(),
        Value::Int(n) => (*n).into(),
        Value::Uint(n) => (*n).into(),
        Value::Double(f) if f.fract() == 0.0 && f.abs() < 9.0e15 => (*f as i64).into(),
        Value::Double(f) => serde_json::Number::from_f64(*f).map_or(Json::Null, Json::Number),
        Value::String(s) => (&**s).into(),
        Value::List(list) => Json::Array(list.items.iter().map(to_json).collect::<Result<_, _>>()?),
        Value::Map(map) => fields(map)?,
        Value::Optional(Some(inner)) => to_json(inner)?,
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Made(_, map) => fields(map)?,
            _ => value
                .text()
                .map_or_else(|| Err(unsuitable(value)), |t| Ok(t.into()))?,
        },
        Value::Bytes(bytes) => {
            use base64::Engine;
            base64::engine::general_purpose::STANDARD
                .encode(bytes)
                .into()
        }
        Value::Duration(_) | Value::Timestamp(_) => value.text().unwrap_or_default().into(),
        Value::Type(_) => return Err(unsuitable(value)),
    })
}

fn unsuitable(value: &Value) -> String {
    format!(
        "type conversion error from '{}' to 'google.protobuf.Value'",
        value.type_name()
    )
}

fn fields(map: &super::value::Map) -> Result<Json, String> {
    let mut fields = serde_json::Map::new();
    for (key, value) in map {
        let Key::String(key) = key else {
            return Err("unsupported map key type".to_owned());
        };
        // An absent optional field is omitted.
        if !matches!(value, Value::Optional(None)) {
            fields.insert(key.to_string(), to_json(value)?);
        }
    }
    Ok(Json::Object(fields))
}

/// The objects in a value whose type name does not match their position.
pub fn misnamed(value: &Value, place: &str) -> Vec<String> {
    match value {
        Value::Optional(Some(inner)) => misnamed(inner, place),
        Value::List(list) => list
            .items
            .iter()
            .flat_map(|item| misnamed(item, place))
            .collect(),
        Value::Map(map) => map
            .values()
            .flat_map(|item| misnamed(item, place))
            .collect(),
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Made(name, map) => {
                let own = (name != place).then(|| {
                    format!("unexpected type name \"{name}\", expected \"{place}\", which matches field name path from root Object type")
                });
                let below = map.iter().flat_map(|(key, item)| {
                    let key = key.value().text().unwrap_or_default();
                    misnamed(item, &format!("{place}.{key}"))
                });
                own.into_iter().chain(below).collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
