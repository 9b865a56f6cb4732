//! OpenAPI documents, generated from the schema table and the custom resource definitions, and
//! cached until those change.
//!
//! Main type: [`OpenApi`]. Version 3 is offered as JSON only: a client that accepts only protobuf
//! gets 406.

use super::{Shared, bytes_response, json_response, openapi_binary, openapi_custom};
use crate::catalog::{Catalog, Resource};
use crate::status::Status;
use axum::body::Body;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use tiphys_apimachinery::gvk::split_api_version;
use tiphys_apimachinery::schema::{self, ListType, MapType, ScalarKind, TypeKind, TypeRef};

/// Documents by path, each for one state of the catalog.
#[derive(Default)]
pub struct OpenApi(Mutex<HashMap<String, (String, Bytes)>>);

impl OpenApi {
    fn document(&self, path: &str, hash: &str, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        let mut kept = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, bytes)) = kept.get(path).filter(|(of, _)| of == hash) {
            return bytes.clone();
        }
        let bytes: Bytes = make().into();
        kept.insert(path.to_owned(), (hash.to_owned(), bytes.clone()));
        bytes
    }
}

fn check_accept(headers: &HeaderMap) -> Result<(), Status> {
    let accept = headers
        .get(ACCEPT)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("*/*");
    if accept.is_empty() || accept.contains("json") || accept.contains("*/*") {
        return Ok(());
    }
    Err(Status::not_acceptable("application/json"))
}

/// A hash of everything that the documents of a group and version depend on.
fn hash_of(catalog: &Catalog, group: &str, version: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(env!("CARGO_PKG_VERSION"));
    hash.update(schema::KUBERNETES_VERSION);
    for resource in catalog
        .order
        .iter()
        .filter(|r| r.group == group && r.version == version)
    {
        hash.update(format!(
            "{}/{}/{};",
            resource.resource, resource.kind, resource.namespaced
        ));
        if let Some(custom) = &resource.custom {
            hash.update(format!(
                "{}{:?}",
                resource.list_kind, custom.selectable_fields
            ));
            hash.update(custom.digest());
        }
    }
    hash.finalize().iter().map(|b| format!("{b:02X}")).collect()
}

fn group_versions(catalog: &Catalog) -> BTreeSet<(String, String)> {
    catalog
        .order
        .iter()
        .map(|r| (r.group.clone(), r.version.clone()))
        .collect()
}

fn group_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

pub fn v3_index(shared: &Shared) -> Response<Body> {
    let catalog = shared.registry.catalog();
    let mut paths = Map::new();
    for (group, version) in group_versions(&catalog) {
        let path = group_path(&group, &version);
        let url = format!(
            "/openapi/v3/{path}?hash={}",
            hash_of(&catalog, &group, &version)
        );
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json_response(&json!({"paths": paths}))
}

pub fn v3_group(
    shared: &Shared,
    path: &str,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    check_accept(headers)?;
    let catalog = shared.registry.catalog();
    let (group, version) = match path.strip_prefix("apis/") {
        Some(rest) => split_api_version(rest),
        None => ("", path.strip_prefix("api/").unwrap_or("")),
    };
    if !catalog.has_version(group, version) {
        return Err(Status::no_such_path());
    }
    let hash = hash_of(&catalog, group, version);
    let make = || {
        let mut builder = Builder {
            prefix: "#/components/schemas/",
            v2: false,
            schemas: Map::new(),
        };
        let mut paths = Map::new();
        for resource in catalog
            .order
            .iter()
            .filter(|r| r.group == group && r.version == version)
        {
            builder.add_resource(resource);
            add_paths(&mut paths, resource, &builder);
        }
        to_bytes(&json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": super::special::GIT_VERSION},
            "paths": paths,
            "components": {"schemas": builder.schemas},
        }))
    };
    Ok(bytes_response(shared.openapi.document(path, &hash, make)))
}

pub fn v2(shared: &Shared, headers: &HeaderMap) -> Result<Response<Body>, Status> {
    let accept = headers
        .get(ACCEPT)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    let binary =
        accept.contains(openapi_binary::ASKED_TYPE) || accept.contains(openapi_binary::MEDIA_TYPE);
    if !binary {
        check_accept(headers)?;
    }
    let catalog = shared.registry.catalog();
    let hash = group_versions(&catalog)
        .iter()
        .map(|(g, v)| hash_of(&catalog, g, v))
        .collect::<String>();
    if !binary {
        return Ok(bytes_response(
            shared
                .openapi
                .document("v2", &hash, || to_bytes(&v2_document(&catalog))),
        ));
    }
    let make = || openapi_binary::encode(&v2_document(&catalog));
    let mut response = bytes_response(shared.openapi.document("v2 binary", &hash, make));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static(openapi_binary::MEDIA_TYPE),
    );
    Ok(response)
}

fn v2_document(catalog: &Catalog) -> Value {
    let mut builder = Builder {
        prefix: "#/definitions/",
        v2: true,
        schemas: Map::new(),
    };
    let mut paths = Map::new();
    for resource in &catalog.order {
        builder.add_resource(resource);
        add_paths(&mut paths, resource, &builder);
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": super::special::GIT_VERSION},
        "paths": paths,
        "definitions": builder.schemas,
    })
}

fn to_bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON tree serialises")
}

/// Collects schemas that refer to each other.
struct Builder {
    prefix: &'static str,
    /// Version 2 has no "integer or string" type; it is a string with a format.
    v2: bool,
    schemas: Map<String, Value>,
}

impl Builder {
    fn add_resource(&mut self, resource: &Arc<Resource>) {
        match &resource.custom {
            None => {
                if let Some(ty) = resource.builtin_type() {
                    self.reference(ty);
                }
            }
            Some(custom) => {
                let mut reference = |name: &str| {
                    let ty = schema::builtin()
                        .definition(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"));
                    ty.map_or(json!({"type": "object"}), |ty| self.reference(ty))
                };
                let (metadata, of_list) = (reference("ObjectMeta"), reference("ListMeta"));
                let form = |metadata| openapi_custom::Form {
                    v2: self.v2,
                    metadata,
                };
                let name = custom_name(resource, &resource.kind);
                let item = json!({"$ref": format!("{}{name}", self.prefix)});
                let list = openapi_custom::list(resource, custom, form(&of_list), &item);
                let kind = openapi_custom::kind(resource, custom, form(&metadata));
                self.schemas.insert(name, kind);
                self.schemas
                    .insert(custom_name(resource, &resource.list_kind), list);
            }
        }
    }

    /// A reference to a named type, whose definition is added; other types are inlined.
    fn reference(&mut self, ty: TypeRef<'_>) -> Value {
        let Some(name) = ty.name() else {
            return self.shape(ty);
        };
        if !self.schemas.contains_key(name) {
            // Inserted first, so that a recursive type terminates.
            self.schemas.insert(name.to_owned(), Value::Null);
            let shape = self.shape(ty);
            self.schemas.insert(name.to_owned(), shape);
        }
        json!({"$ref": format!("{}{name}", self.prefix)})
    }

    fn shape(&mut self, ty: TypeRef<'_>) -> Value {
        let mut map = Map::new();
        match ty.kind() {
            TypeKind::Object => {
                map.insert("type".into(), "object".into());
                let fields: Map<String, Value> = ty
                    .fields()
                    .map(|(name, field)| (name.to_owned(), self.field(field)))
                    .collect();
                map.insert("properties".into(), fields.into());
                let required: Vec<&str> = ty.required().collect();
                if !required.is_empty() {
                    map.insert("required".into(), required.into());
                }
            }
            TypeKind::Map => {
                map.insert("type".into(), "object".into());
                let values = ty.values().map_or(json!({}), |v| self.reference(v));
                map.insert("additionalProperties".into(), values);
            }
            TypeKind::List => {
                map.insert("type".into(), "array".into());
                map.insert(
                    "items".into(),
                    ty.items().map_or(json!({}), |v| self.reference(v)),
                );
            }
            TypeKind::Scalar(ScalarKind::IntOrString) if self.v2 => {
                map.insert("type".into(), "string".into());
                map.insert("format".into(), "int-or-string".into());
                return Value::Object(map);
            }
            TypeKind::Scalar(kind) => scalar(kind, &mut map),
            TypeKind::Any => {}
        }
        let gvks: Vec<Value> = ty
            .gvks()
            .iter()
            .map(|g| json!({"group": g.group, "version": g.version, "kind": g.kind}))
            .collect();
        if !gvks.is_empty() {
            map.insert("x-kubernetes-group-version-kind".into(), gvks.into());
        }
        attributes(ty, &mut map);
        Value::Object(map)
    }

    /// A field: attributes of the field are next to the reference.
    fn field(&mut self, ty: TypeRef<'_>) -> Value {
        if ty.name().is_none() {
            return self.shape(ty);
        }
        let mut reference = self.reference(ty);
        if let (Some(map), Some(default)) = (reference.as_object_mut(), ty.default()) {
            let inner = json!({"$ref": map["$ref"]});
            map.clear();
            map.insert("allOf".into(), json!([inner]));
            map.insert("default".into(), default.clone());
        }
        reference
    }
}

fn scalar(kind: ScalarKind, map: &mut Map<String, Value>) {
    let word = match kind {
        ScalarKind::String => "string",
        ScalarKind::Integer => "integer",
        ScalarKind::Number => "number",
        ScalarKind::Boolean => "boolean",
        ScalarKind::IntOrString => {
            map.insert(
                "oneOf".into(),
                json!([{"type": "integer"}, {"type": "string"}]),
            );
            map.insert("x-kubernetes-int-or-string".into(), true.into());
            return;
        }
    };
    map.insert("type".into(), word.into());
}

fn attributes(ty: TypeRef<'_>, map: &mut Map<String, Value>) {
    let list_type = ty.list_type().map(|l| match l {
        ListType::Atomic => "atomic",
        ListType::Set => "set",
        ListType::Map => "map",
    });
    let map_type = ty.map_type().map(|m| match m {
        MapType::Atomic => "atomic",
        MapType::Granular => "granular",
    });
    let texts = [
        ("format", ty.format()),
        ("x-kubernetes-patch-strategy", ty.patch_strategy()),
        ("x-kubernetes-patch-merge-key", ty.patch_merge_key()),
        ("x-kubernetes-list-type", list_type),
        ("x-kubernetes-map-type", map_type),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            map.insert(key.into(), value.into());
        }
    }
    if !ty.list_map_keys().is_empty() {
        map.insert(
            "x-kubernetes-list-map-keys".into(),
            ty.list_map_keys()
                .iter()
                .map(|k| Value::from(&**k))
                .collect(),
        );
    }
    if let Some(default) = ty.default() {
        map.insert("default".into(), default.clone());
    }
    if !ty.enum_values().is_empty() {
        map.insert("enum".into(), ty.enum_values().to_vec().into());
    }
}

fn gvk_json(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// Reversed domain, version and kind, as API servers name the types of custom resources.
fn custom_name(resource: &Resource, kind: &str) -> String {
    let reversed: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{kind}", reversed.join("."), resource.version)
}

fn add_paths(paths: &mut Map<String, Value>, resource: &Resource, builder: &Builder) {
    let name = match (&resource.custom, resource.builtin_type()) {
        (Some(_), _) => custom_name(resource, &resource.kind),
        (None, Some(ty)) => ty.name().unwrap_or_default().to_owned(),
        (None, None) => return,
    };
    let schema = json!({"$ref": format!("{}{name}", builder.prefix)});
    let root = resource.gvr().root_path();
    let scope = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let base = format!("{root}{scope}/{}", resource.resource);
    let operation = |action: &str, with_write: bool| {
        let mut parameters = vec![parameter("pretty")];
        if with_write {
            parameters.extend(["dryRun", "fieldManager", "fieldValidation"].map(parameter));
        }
        if action == "patch" {
            parameters.push(parameter("force"));
        }
        json!({
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk_json(resource),
        })
    };
    let pick = |list: &[(&str, &str, &str, bool)]| {
        let wanted = list.iter().filter(|(verb, ..)| resource.allows(verb));
        let one = |(_, method, action, write): &(&str, &str, &str, bool)| {
            ((*method).to_owned(), operation(action, *write))
        };
        wanted.map(one).collect::<Map<String, Value>>()
    };
    let collection = pick(&[
        ("list", "get", "list", false),
        ("create", "post", "post", true),
        ("deletecollection", "delete", "deletecollection", true),
    ]);
    let item = pick(&[
        ("get", "get", "get", false),
        ("update", "put", "put", true),
        ("patch", "patch", "patch", true),
        ("delete", "delete", "delete", true),
    ]);
    if !item.is_empty() {
        paths.insert(format!("{base}/{{name}}"), item.into());
    }
    if !collection.is_empty() {
        paths.insert(base, collection.into());
    }
}

fn parameter(name: &str) -> Value {
    let kind = if name == "force" { "boolean" } else { "string" };
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}
