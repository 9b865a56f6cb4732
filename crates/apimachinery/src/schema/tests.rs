//! Tables for `schema`.

use super::*;
use serde_json::json;

fn of(group: &str, version: &str, kind: &str) -> TypeRef<'static> {
    builtin()
        .type_for(&Gvk::new(group, version, kind))
        .expect(kind)
}

fn walk<'a>(ty: TypeRef<'a>, path: &[&str]) -> TypeRef<'a> {
    path.iter().fold(ty, |ty, part| {
        if *part == "[]" {
            ty.items().expect("a list")
        } else {
            ty.field(part).expect(part)
        }
    })
}

#[test]
fn built_in_kinds_know_their_merge_keys() {
    let containers = walk(
        of("apps", "v1", "Deployment"),
        &["spec", "template", "spec", "containers"],
    );
    assert_eq!(
        (containers.patch_strategy(), containers.patch_merge_key()),
        (Some("merge"), Some("name"))
    );
    assert_eq!(
        (containers.list_type(), containers.list_map_keys()),
        (Some(ListType::Map), &["name".into()][..])
    );
    let ports = walk(containers, &["[]", "ports"]);
    assert_eq!(ports.patch_merge_key(), Some("containerPort"));
    assert_eq!(ports.list_map_keys(), ["containerPort", "protocol"]);
    assert_eq!(
        walk(ports, &["[]", "protocol"]).default(),
        Some(&json!("TCP"))
    );
    assert!(walk(ports, &["[]"]).is_required("containerPort"));
    assert_eq!(
        walk(ports, &["[]", "containerPort"]).format(),
        Some("int32")
    );
    assert_eq!(
        walk(of("apps", "v1", "Deployment"), &["spec", "strategy"]).patch_strategy(),
        Some("retainKeys")
    );
    assert_eq!(
        walk(of("apps", "v1", "Deployment"), &["spec", "selector"]).map_type(),
        Some(MapType::Atomic)
    );
    assert_eq!(
        walk(of("", "v1", "Pod"), &["metadata", "finalizers"]).list_type(),
        Some(ListType::Set)
    );
    assert_eq!(
        walk(of("", "v1", "ConfigMap"), &["data", "any"]).kind(),
        TypeKind::Scalar(ScalarKind::String)
    );
    assert_eq!(
        walk(
            of("", "v1", "Service"),
            &["spec", "ports", "[]", "targetPort"]
        )
        .kind(),
        TypeKind::Scalar(ScalarKind::IntOrString)
    );
    assert_eq!(
        walk(
            of("", "v1", "PersistentVolumeClaim"),
            &["spec", "accessModes", "[]"]
        )
        .enum_values()
        .len(),
        4
    );
    assert!(of("", "v1", "Pod").field("colour").is_none());
}

#[test]
fn every_definition_can_be_walked() {
    let all: Vec<_> = builtin().definitions().collect();
    assert!(all.len() > 500, "{}", all.len());
    assert!(all.windows(2).all(|w| w[0].name() < w[1].name()));
    assert!(all.iter().filter(|d| !d.gvks().is_empty()).count() > 100);
    let fields: usize = all.iter().map(|d| d.fields().count()).sum();
    assert!(fields > 2000, "{fields}");
}

#[test]
fn every_served_kind_has_a_type() {
    for r in resources() {
        assert!(builtin().type_for(&r.gvk()).is_some(), "{}", r.gvk());
    }
    let deployments = find_resource(&Gvk::new("apps", "v1", "Deployment")).expect("deployments");
    assert_eq!(
        (
            deployments.resource,
            deployments.singular,
            deployments.namespaced
        ),
        ("deployments", "deployment", true)
    );
    assert_eq!(
        (&deployments.short_names[..], &deployments.categories[..]),
        (&["deploy"][..], &["all"][..])
    );
    let scale = deployments.subresource("scale").expect("scale");
    assert_eq!(
        (scale.group, scale.version, scale.kind),
        ("autoscaling", "v1", "Scale")
    );
    assert_eq!(
        deployments
            .subresource("status")
            .map(|s| (s.group, s.version, s.kind)),
        Some(("apps", "v1", "Deployment"))
    );
    let pods = find_resource(&Gvk::new("", "v1", "Pod")).expect("pods");
    assert!(
        ["log", "eviction", "exec", "status"]
            .iter()
            .all(|s| pods.subresource(s).is_some())
    );
    assert!(
        !find_resource(&Gvk::new("", "v1", "Node"))
            .expect("nodes")
            .namespaced
    );
}

fn widget() -> Schema {
    crd::from_structural(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "default": 3},
            "port": {"x-kubernetes-int-or-string": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "object", "properties": {}}}},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "mode": {"type": "string", "default": "fast"}}}},
            "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            "maybe": {"type": "string", "nullable": true, "default": "x"},
        }},
    }}))
    .expect("a structural schema")
}

#[test]
fn custom_resources_have_types() {
    let schema = widget();
    let root = schema.root().expect("a root");
    assert_eq!(
        walk(root, &["metadata", "ownerReferences"]).patch_merge_key(),
        Some("uid")
    );
    assert_eq!(
        walk(root, &["metadata"]).name(),
        Some("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    );
    assert_eq!(
        walk(root, &["spec", "template", "metadata", "name"]).kind(),
        TypeKind::Scalar(ScalarKind::String)
    );
    assert_eq!(walk(root, &["spec", "parts"]).list_map_keys(), ["name"]);
    assert_eq!(
        walk(root, &["spec", "port"]).kind(),
        TypeKind::Scalar(ScalarKind::IntOrString)
    );
    assert_eq!(
        walk(root, &["spec", "free", "whatever"]).kind(),
        TypeKind::Any
    );
    assert!(walk(root, &["spec"]).field("colour").is_none());
    assert_eq!(
        walk(root, &["spec"]).required().collect::<Vec<_>>(),
        ["size"]
    );
}

#[test]
fn pruning_and_defaulting() {
    let schema = widget();
    let root = schema.root().expect("a root");
    let mut value = json!({"apiVersion": "x/v1", "kind": "Widget", "metadata": {"name": "a", "odd": 1}, "extra": 1, "spec": {
        "colour": "red", "labels": {"a": "b"}, "free": {"any": {"thing": 1}, "known": {"lost": 1}}, "maybe": null,
        "parts": [{"name": "p", "odd": 1}], "template": {"kind": "A", "spec": {"deep": 1}},
    }});
    let removed = prune(&mut value, root);
    assert_eq!(
        removed,
        [
            "extra",
            "metadata.odd",
            "spec.colour",
            "spec.free.known.lost",
            "spec.parts[0].odd"
        ]
    );
    apply_defaults(&mut value, root);
    assert_eq!(
        value,
        json!({"apiVersion": "x/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {
            "size": 3, "labels": {"a": "b"}, "free": {"any": {"thing": 1}, "known": {}}, "maybe": null,
            "parts": [{"name": "p", "mode": "fast"}], "template": {"kind": "A", "spec": {"deep": 1}},
        }})
    );
}

#[test]
fn bad_schemas_are_refused() {
    assert!(matches!(
        crd::from_structural(&json!("x")),
        Err(SchemaError::Invalid { .. })
    ));
    let circle = json!({"definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}});
    assert!(matches!(
        Schema::from_openapi_v3(&circle),
        Err(SchemaError::Invalid { .. })
    ));
    let unknown = json!({"components": {"schemas": {"a": {"$ref": "#/components/schemas/b"}}}});
    assert_eq!(
        Schema::from_openapi_v3(&unknown).err(),
        Some(SchemaError::UnknownReference("b".into()))
    );
}
