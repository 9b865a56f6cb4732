//! The committed schema table matches the document it was made from, if `../shared/kubernetes`
//! exists next to the workspace.
#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use serde_json::{Value, json};
use std::{fs, path::Path};
use tiphys_apimachinery::schema::{self, Schema, TypeKind, TypeRef};

/// Everything that is known about a type in one place, without following references.
fn told(ty: TypeRef<'_>) -> String {
    let inner = match ty.kind() {
        TypeKind::List => ty.items().map(told),
        TypeKind::Map => ty.values().map(told),
        _ => None,
    };
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} [{}]",
        ty.kind(),
        ty.name(),
        ty.list_type(),
        ty.list_map_keys(),
        ty.map_type(),
        ty.patch_strategy(),
        ty.patch_merge_key(),
        ty.format().filter(|f| *f != "int-or-string"),
        ty.enum_values(),
        inner.unwrap_or_default()
    )
}

#[test]
fn the_table_agrees_with_its_source() {
    let file = format!(
        "../../../shared/kubernetes/openapi-v2-{}.json",
        schema::KUBERNETES_VERSION
    );
    let Ok(text) = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)) else {
        return tiphys_testkit::skip("shared", "there is no ../shared/kubernetes");
    };
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    // A Go struct without fields: in the document it looks like any JSON, the table distinguishes
    // it.
    let empty =
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus";
    document["definitions"][empty]["properties"] = json!({});
    let source = Schema::from_openapi_v3(&document).expect("a schema");
    assert_eq!(
        source.definitions().count(),
        schema::builtin().definitions().count()
    );
    for (expected, got) in source.definitions().zip(schema::builtin().definitions()) {
        let name = expected.name().expect("definitions have names");
        assert_eq!(got.name(), Some(name));
        assert_eq!(told(got), told(expected), "{name}");
        assert_eq!(got.gvks(), expected.gvks(), "{name}");
        assert!(got.required().eq(expected.required()), "{name}");
        assert!(
            got.fields().map(|f| f.0).eq(expected.fields().map(|f| f.0)),
            "{name}"
        );
        for ((field, got), (_, expected)) in got.fields().zip(expected.fields()) {
            assert_eq!(told(got), told(expected), "{name}.{field}");
        }
    }
}
