//! Tables for `strategic`.

use super::*;
use crate::{gvk::Gvk, patch::three_way, schema};
use serde_json::json;

fn deployment() -> TypeRef<'static> {
    schema::builtin()
        .type_for(&Gvk::new("apps", "v1", "Deployment"))
        .expect("Deployment")
}

fn with_containers(containers: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

#[test]
fn containers_merge_by_name() {
    let live = with_containers(
        json!([{"name": "web", "image": "a:1", "env": [{"name": "A", "value": "1"}]}, {"name": "side", "image": "s"}]),
    );
    let patch = with_containers(
        json!([{"name": "web", "image": "a:2", "env": [{"name": "B", "value": "2"}]}, {"name": "side", "$patch": "delete"}]),
    );
    let expected = with_containers(
        json!([{"name": "web", "image": "a:2", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}]),
    );
    assert_eq!(apply(&live, &patch, deployment()), Ok(expected));
}

#[test]
fn a_two_way_patch_makes_what_it_was_made_from() {
    let from = with_containers(
        json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1", "args": ["x"]}]),
    );
    let to = with_containers(json!([{"name": "c", "image": "3"}, {"name": "b", "image": "2"}]));
    let patch = create_two_way(&from, &to, deployment()).expect("a patch");
    let expected = json!([{"name": "c", "image": "3"}, {"name": "b", "image": "2", "args": null}, {"name": "a", "$patch": "delete"}]);
    assert_eq!(
        patch.pointer("/spec/template/spec/containers"),
        Some(&expected)
    );
    assert_eq!(
        patch.pointer("/spec/template/spec/$setElementOrder~1containers"),
        Some(&json!([{"name": "c"}, {"name": "b"}]))
    );
    assert_eq!(apply(&from, &patch, deployment()), Ok(to));
}

#[test]
fn three_way_leaves_what_others_added_and_removes_what_was_applied() {
    let original = with_containers(json!([{"name": "web", "image": "1", "args": ["a"]}]));
    let modified = with_containers(json!([{"name": "web", "image": "2"}]));
    let current = with_containers(
        json!([{"name": "web", "image": "1", "args": ["a"], "imagePullPolicy": "Always"}, {"name": "injected", "image": "i"}]),
    );
    let patch = three_way::create(&original, &modified, &current, Some(deployment()), true)
        .expect("a patch");
    let result = apply(&current, &patch, deployment()).expect("it applies");
    let expected = json!([{"name": "web", "image": "2", "imagePullPolicy": "Always"}, {"name": "injected", "image": "i"}]);
    assert_eq!(
        result.pointer("/spec/template/spec/containers"),
        Some(&expected)
    );
    let unchanged = three_way::create(&modified, &modified, &result, Some(deployment()), false)
        .expect("a patch");
    // If only the live list has an element, kubectl sends the order, which changes nothing.
    assert_eq!(
        unchanged,
        json!({"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "web"}]}}}})
    );
    assert_eq!(apply(&result, &unchanged, deployment()), Ok(result));
}

#[test]
fn a_changed_strategy_clears_the_old_one() {
    let live =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let wanted = json!({"spec": {"strategy": {"type": "Recreate"}}});
    let patch =
        three_way::create(&Value::Null, &wanted, &live, Some(deployment()), true).expect("a patch");
    assert_eq!(
        patch,
        json!({"spec": {"strategy": {"type": "Recreate", "$retainKeys": ["type"]}}})
    );
    assert_eq!(apply(&live, &patch, deployment()), Ok(wanted));
}

#[test]
fn identity_is_not_changed_by_a_patch() {
    assert!(three_way::check_identity_unchanged(&json!({"metadata": {"labels": {}}})).is_ok());
    assert!(three_way::check_identity_unchanged(&json!({"metadata": {"name": "b"}})).is_err());
}

#[test]
fn values_are_printed_as_go_prints_them() {
    for (value, expected) in [
        (json!({"b": [1, "x"], "a": null}), "map[a:<nil> b:[1 x]]"),
        (json!(1.5), "1.5"),
        (json!(1e21), "1e+21"),
        (json!(1e-7), "1e-07"),
        (json!(true), "true"),
    ] {
        assert_eq!(go_text(&value), expected);
    }
}

#[test]
fn what_is_merged_is_used_up() {
    let ty = schema::builtin()
        .type_for(&Gvk::new("", "v1", "Secret"))
        .expect("known");
    let doc = json!({"data": {"a": "YQ=="}, "metadata": {"finalizers": ["x"], "ownerReferences": [{"uid": "o"}]}});
    let left = |patch: Value| rest(&doc, &patch, ty);
    let sent = json!(["a", {"$patch": "replace"}]);
    assert_eq!(
        left(json!({"stringData": {"b": sent}})),
        json!({"stringData": {"b": ["a"]}})
    );
    assert_eq!(
        left(json!({"type": sent, "data": {"a": sent, "b": null}})),
        json!({"type": sent, "data": {"a": sent, "b": null}})
    );
    let ordered = json!({"$setElementOrder/finalizers": ["x", "y"], "finalizers": ["y"], "labels": {"$patch": "replace"}});
    assert_eq!(
        left(json!({"metadata": ordered})),
        json!({"metadata": {"labels": {"$patch": "replace"}}})
    );
    let twice = left(
        json!({"metadata": {"ownerReferences": [{"uid": "u", "name": "n", "kind": null}, {"uid": "u", "kind": "K"}]}}),
    );
    let left = json!([{"uid": "u", "name": "n", "kind": "K"}, {"uid": "u", "kind": "K"}]);
    assert_eq!(twice, json!({"metadata": {"ownerReferences": left}}));
}
