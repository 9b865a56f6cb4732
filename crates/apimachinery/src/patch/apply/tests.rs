//! Tables for `apply`.

use super::*;
use crate::{gvk::Gvk, schema};
use serde_json::json;

fn deployment_type() -> Option<TypeRef<'static>> {
    schema::builtin().type_for(&Gvk::new("apps", "v1", "Deployment"))
}

fn config_map_type() -> Option<TypeRef<'static>> {
    schema::builtin().type_for(&Gvk::new("", "v1", "ConfigMap"))
}

fn object(value: Value) -> Object {
    Object::from_value(value).expect("a map")
}

fn by<'a>(manager: &'a str, now: &'a str) -> ApplyOptions<'a> {
    ApplyOptions {
        manager,
        now,
        api_version: "v1",
        ..ApplyOptions::default()
    }
}

fn config_map(data: Value) -> Object {
    object(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}),
    )
}

fn apply_data(
    live: Option<&Object>,
    data: Value,
    options: &ApplyOptions<'_>,
) -> Result<Object, ApplyError> {
    apply(live, &config_map(data), options, config_map_type())
}

fn data(o: &Object) -> Value {
    o.pointer("/data").cloned().unwrap_or(Value::Null)
}

/// `manager operation time fields` of every entry.
fn owners(o: &Object) -> Vec<String> {
    let list = o
        .metadata("managedFields")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let text = |e: &Value, key: &str| e.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
    list.iter()
        .map(|e| {
            format!(
                "{} {} {} {}",
                text(e, "manager"),
                text(e, "operation"),
                text(e, "time"),
                e["fieldsV1"]
            )
        })
        .collect()
}

#[test]
fn the_first_apply_creates_and_owns() {
    let made = apply_data(None, json!({"a": "1"}), &by("alice", "t1")).expect("applied");
    assert_eq!(data(&made), json!({"a": "1"}));
    assert_eq!(owners(&made), [r#"alice Apply t1 {"f:data":{"f:a":{}}}"#]);
    let entry = &made.metadata("managedFields").expect("there")[0];
    assert_eq!(
        (&entry["apiVersion"], &entry["fieldsType"]),
        (&json!("v1"), &json!("FieldsV1"))
    );
}

#[test]
fn applying_again_changes_nothing_not_even_the_time() {
    let made = apply_data(None, json!({"a": "1"}), &by("alice", "t1")).expect("applied");
    assert_eq!(
        apply_data(Some(&made), json!({"a": "1"}), &by("alice", "t2")),
        Ok(made)
    );
}

#[test]
fn a_field_that_is_applied_no_longer_goes() {
    let made = apply_data(None, json!({"a": "1", "b": "2"}), &by("alice", "t1")).expect("applied");
    let made = apply_data(Some(&made), json!({"a": "1"}), &by("alice", "t2")).expect("applied");
    assert_eq!(data(&made), json!({"a": "1"}));
    assert_eq!(owners(&made), [r#"alice Apply t2 {"f:data":{"f:a":{}}}"#]);
    let made = apply(
        Some(&made),
        &object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})),
        &by("alice", "t3"),
        config_map_type(),
    );
    assert_eq!(
        made.map(|m| (data(&m), owners(&m))),
        Ok((Value::Null, vec![]))
    );
}

#[test]
fn a_field_that_another_owns_too_stays() {
    let made = apply_data(None, json!({"a": "1", "b": "2"}), &by("alice", "t1")).expect("applied");
    let made = apply_data(Some(&made), json!({"a": "1"}), &by("bob", "t2"))
        .expect("no conflict on equal values");
    let made = apply_data(Some(&made), json!({}), &by("alice", "t3")).expect("applied");
    assert_eq!(data(&made), json!({"a": "1"}));
    assert!(
        owners(&made)
            .iter()
            .any(|o| o.starts_with("bob Apply") && o.ends_with(r#"{"f:data":{"f:a":{}}}"#)),
        "{:?}",
        owners(&made)
    );
}

#[test]
fn conflicts_are_told_in_the_api_servers_words() {
    let mut live = config_map(json!({"a": "1", "b": "2"}));
    track_update(None, &mut live, &by("kubectl", "t1"), config_map_type());
    let one =
        apply_data(Some(&live), json!({"a": "x"}), &by("alice", "t2")).expect_err("a conflict");
    assert_eq!(
        one.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .data.a"
    );
    let two = apply_data(Some(&live), json!({"a": "x", "b": "y"}), &by("alice", "t2"))
        .expect_err("conflicts");
    assert_eq!(
        two.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"kubectl\" using v1:\n- .data.a\n- .data.b"
    );
    let forced = apply_data(
        Some(&live),
        json!({"a": "x"}),
        &ApplyOptions {
            force: true,
            ..by("alice", "t2")
        },
    )
    .expect("forced");
    assert_eq!(data(&forced), json!({"a": "x", "b": "2"}));
    assert_eq!(
        owners(&forced),
        [
            r#"alice Apply t2 {"f:data":{"f:a":{}}}"#,
            r#"kubectl Update t1 {"f:data":{".":{},"f:b":{}}}"#
        ]
    );
}

#[test]
fn updates_take_fields_over_and_drop_empty_owners() {
    let made = apply_data(None, json!({"a": "1"}), &by("alice", "t1")).expect("applied");
    let mut changed = made.clone();
    changed.0.insert("data".into(), json!({"a": "2", "b": "3"}));
    track_update(
        Some(&made),
        &mut changed,
        &by("bob", "t2"),
        config_map_type(),
    );
    assert_eq!(
        owners(&changed),
        [r#"bob Update t2 {"f:data":{"f:a":{},"f:b":{}}}"#]
    );
    let mut same = changed.clone();
    track_update(
        Some(&changed),
        &mut same,
        &by("carol", "t3"),
        config_map_type(),
    );
    assert_eq!(same, changed);
    let mut removed = changed.clone();
    removed.0.insert("data".into(), json!({"a": "2"}));
    track_update(
        Some(&changed),
        &mut removed,
        &by("carol", "t4"),
        config_map_type(),
    );
    assert_eq!(owners(&removed), [r#"bob Update t2 {"f:data":{"f:a":{}}}"#]);
}

#[test]
fn managed_fields_can_be_reset_and_are_kept_when_not_sent() {
    let made = apply_data(None, json!({"a": "1"}), &by("alice", "t1")).expect("applied");
    let mut reset = made.clone();
    reset
        .metadata_mut()
        .insert("managedFields".into(), json!([]));
    track_update(Some(&made), &mut reset, &by("bob", "t2"), config_map_type());
    assert_eq!(owners(&reset), Vec::<String>::new());
    let mut silent = config_map(json!({"a": "1", "z": "1"}));
    track_update(
        Some(&made),
        &mut silent,
        &by("bob", "t2"),
        config_map_type(),
    );
    assert_eq!(
        owners(&silent),
        [
            r#"alice Apply t1 {"f:data":{"f:a":{}}}"#,
            r#"bob Update t2 {"f:data":{"f:z":{}}}"#
        ]
    );
    let again = apply_data(Some(&reset), json!({"a": "2"}), &by("alice", "t3"))
        .expect_err("what was there has an owner now");
    assert_eq!(
        again.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a"
    );
}

fn deployment(containers: Value, replicas: Option<i64>) -> Object {
    let mut spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": containers}}});
    if let Some(replicas) = replicas {
        spec["replicas"] = replicas.into();
    }
    object(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}, "spec": spec}),
    )
}

fn apps<'a>(manager: &'a str, now: &'a str) -> ApplyOptions<'a> {
    ApplyOptions {
        api_version: "apps/v1",
        ..by(manager, now)
    }
}

#[test]
fn keyed_lists_merge_by_key_and_keep_their_order() {
    let ty = deployment_type();
    let first = deployment(
        json!([{"name": "web", "image": "1", "ports": [{"containerPort": 80}]}]),
        Some(2),
    );
    let made = apply(None, &first, &apps("alice", "t1"), ty).expect("applied");
    let expected = r#"alice Apply t1 {"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}"#;
    assert_eq!(owners(&made), [expected]);
    let mut injected = made.clone();
    injected.0["spec"]["template"]["spec"]["containers"] = json!([{"name": "side", "image": "s"}, {"name": "web", "image": "1", "ports": [{"containerPort": 80, "protocol": "TCP"}], "imagePullPolicy": "Always"}]);
    track_update(Some(&made), &mut injected, &apps("injector", "t2"), ty);
    let second = deployment(
        json!([{"name": "new", "image": "n"}, {"name": "web", "image": "2"}]),
        None,
    );
    let made = apply(Some(&injected), &second, &apps("alice", "t3"), ty).expect("applied");
    assert_eq!(
        made.pointer("/spec/template/spec/containers"),
        // The port is removed as a whole together with alice, who created it, although the injector
        // set its protocol.
        Some(&json!([
            {"name": "side", "image": "s"},
            {"name": "new", "image": "n"},
            {"name": "web", "image": "2", "imagePullPolicy": "Always"}
        ]))
    );
    assert_eq!(made.pointer("/spec/replicas"), None);
}

#[test]
fn plain_structs_are_never_added_themselves() {
    let mut made = deployment(
        json!([{"name": "web", "securityContext": {"runAsUser": 1}}]),
        Some(2),
    );
    track_update(
        None,
        &mut made,
        &apps("kubectl-create", "t1"),
        deployment_type(),
    );
    let expected = r#"kubectl-create Update t1 {"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:securityContext":{".":{},"f:runAsUser":{}}}}}}}}"#;
    assert_eq!(owners(&made), [expected]);
}

#[test]
fn fields_can_be_taken_out_of_an_object() {
    let (old, new) = (
        config_map(json!({"a": "1", "b": "2"})),
        config_map(json!({"a": "x", "b": "2"})),
    );
    let found = difference(&old, &new, config_map_type()).expect("comparable");
    assert_eq!(found.modified.to_json(), json!({"f:data": {"f:a": {}}}));
    assert_eq!(
        data(&without_fields(&new, &found.modified, config_map_type())),
        json!({"b": "2"})
    );
    let all = fields(&new, config_map_type());
    assert_eq!(
        without_fields(&new, &all, config_map_type()).0.get("data"),
        None
    );
}

#[test]
fn a_list_element_goes_with_its_last_owner() {
    let ty = deployment_type();
    let made = apply(
        None,
        &deployment(
            json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]),
            None,
        ),
        &apps("alice", "t1"),
        ty,
    )
    .expect("applied");
    let made = apply(
        Some(&made),
        &deployment(json!([{"name": "a", "image": "1"}]), None),
        &apps("alice", "t2"),
        ty,
    )
    .expect("applied");
    assert_eq!(
        made.pointer("/spec/template/spec/containers"),
        Some(&json!([{"name": "a", "image": "1"}]))
    );
}

#[test]
fn the_status_endpoint_owns_status_only() {
    let ty = deployment_type();
    let main = ApplyOptions {
        reset_fields: &["status"],
        ..apps("alice", "t1")
    };
    let mut first = deployment(json!([]), Some(1));
    first.0.insert("status".into(), json!({"replicas": 9}));
    let made = apply(None, &first, &main, ty).expect("applied");
    assert!(!owners(&made)[0].contains("status"), "{:?}", owners(&made));
    let mut after = made.clone();
    after.0.insert("status".into(), json!({"replicas": 1}));
    let status = ApplyOptions {
        subresource: "status",
        reset_fields: &["spec", "metadata.labels"],
        ..apps("controller", "t2")
    };
    track_update(Some(&made), &mut after, &status, ty);
    let last = after
        .metadata("managedFields")
        .and_then(Value::as_array)
        .and_then(|l| l.last())
        .expect("an entry")
        .clone();
    assert_eq!(
        (&last["subresource"], &last["fieldsV1"]),
        (&json!("status"), &json!({"f:status": {"f:replicas": {}}}))
    );
    let text = apply(
        Some(&after),
        &object(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "status": {"replicas": 5}}),
        ),
        &ApplyOptions {
            subresource: "status",
            ..apps("x", "t3")
        },
        ty,
    );
    let expected = "Apply failed with 1 conflict: conflict with \"controller\" with subresource \"status\" using apps/v1: .status.replicas";
    assert_eq!(text.map_err(|e| e.to_string()), Err(expected.to_owned()));
}

#[test]
fn wrong_configurations_are_refused() {
    let ty = deployment_type();
    for (config, expected) in [
        (
            deployment(json!([null]), None),
            "associative list with keys may not have a null element",
        ),
        (
            deployment(json!([{"name": "a"}, {"name": "a"}]), None),
            "duplicate entries for key [name=\"a\"]",
        ),
        (
            object(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"colour": 1}})),
            ".spec.colour: field not declared in schema",
        ),
        (
            object(
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": "x"}}),
            ),
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (
            object(json!({"apiVersion": "apps/v2", "kind": "Deployment"})),
            "invalid object type: apps/v2, Kind=Deployment",
        ),
        (
            object(
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"managedFields": []}}),
            ),
            "must be nil",
        ),
    ] {
        let error = apply(None, &config, &apps("a", "t"), ty)
            .expect_err(expected)
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn kinds_without_a_schema_merge_maps_and_replace_lists() {
    let thing = |spec: Value| {
        object(
            json!({"apiVersion": "x/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}),
        )
    };
    let options = |manager| ApplyOptions {
        api_version: "x/v1",
        ..by(manager, "t1")
    };
    let made = apply(
        None,
        &thing(json!({"list": [1, 2], "map": {"a": 1}})),
        &options("alice"),
        None,
    )
    .expect("applied");
    assert_eq!(
        owners(&made),
        [r#"alice Apply t1 {"f:spec":{".":{},"f:list":{},"f:map":{".":{},"f:a":{}}}}"#]
    );
    let made = apply(
        Some(&made),
        &thing(json!({"map": {"b": 2}})),
        &options("bob"),
        None,
    )
    .expect("applied");
    assert_eq!(
        made.pointer("/spec"),
        Some(&json!({"list": [1, 2], "map": {"a": 1, "b": 2}}))
    );
    let made = apply(
        Some(&made),
        &thing(json!({"map": {"a": 1}})),
        &options("alice"),
        None,
    )
    .expect("applied");
    assert_eq!(
        made.pointer("/spec"),
        Some(&json!({"map": {"a": 1, "b": 2}}))
    );
}

#[test]
fn kubectl_takes_over_what_it_applied_client_side() {
    let mut live = config_map(json!({"a": "1", "b": "2"}));
    last_applied::write(&mut live);
    track_update(
        None,
        &mut live,
        &by("kubectl-client-side-apply", "t1"),
        config_map_type(),
    );
    let made =
        apply_data(Some(&live), json!({"a": "x"}), &by("kubectl", "t2")).expect("no conflict");
    assert_eq!(data(&made), json!({"a": "x", "b": "2"}));
    assert!(
        made.annotation(last_applied::ANNOTATION)
            .is_some_and(|a| a.contains("\"a\":\"x\"") && !a.contains("\"b\""))
    );
    assert!(apply_data(Some(&live), json!({"a": "x"}), &by("other", "t2")).is_err());
}

#[test]
fn too_many_updaters_become_one() {
    let mut live = config_map(json!({}));
    track_update(
        None,
        &mut live,
        &by("m0", "2026-01-01T00:00:00Z"),
        config_map_type(),
    );
    for i in 1..14 {
        let mut after = live.clone();
        after.0["data"][format!("k{i:02}")] = "x".into();
        track_update(
            Some(&live),
            &mut after,
            &by(&format!("m{i:02}"), &format!("2026-01-01T00:00:{i:02}Z")),
            config_map_type(),
        );
        live = after;
    }
    let all = owners(&live);
    assert_eq!(all.len(), 10, "{all:?}");
    assert!(all[0].starts_with("ancient-changes Update"), "{all:?}");
}

#[test]
fn field_sets_round_trip() {
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a/b": {}}, "f:finalizers": {".": {}, "v:\"x\"": {}}},
        "f:spec": {"f:list": {"k:{\"name\":\"a\",\"port\":80}": {".": {}, "f:x": {}}, "i:3": {}}},
    });
    let set = FieldSet::from_json(&fields).expect("a set");
    assert_eq!(set.to_json(), fields);
    let texts: Vec<String> = set.paths().iter().map(|p| path_text(p)).collect();
    assert!(
        texts.contains(&".spec.list[name=\"a\",port=80].x".to_owned())
            && texts.contains(&".metadata.finalizers[=\"x\"]".to_owned()),
        "{texts:?}"
    );
    assert!(
        set.difference(&set).is_empty() && set.intersection(&set) == set && set.union(&set) == set
    );
    // Unknown prefixes, which a newer server may define, are skipped.
    assert!(FieldSet::from_json(&json!({"x:y": {}})).is_ok_and(|set| set.is_empty()));
    assert!(FieldSet::from_json(&json!({"xy": {}})).is_err());
}

/// `spec.a` of `x/v1` is `spec.b` of `x/v2`.
struct Renamed;

impl Versions for Renamed {
    fn convert(
        &self,
        object: &Object,
        api_version: &str,
    ) -> Result<Option<(Object, Option<TypeRef<'_>>)>, String> {
        let (from, to) = match api_version {
            "x/v1" => ("b", "a"),
            "x/v2" => ("a", "b"),
            "x/broken" => return Err("it cannot be converted".into()),
            _ => return Ok(None),
        };
        let mut object = object.clone();
        object.0.insert("apiVersion".into(), api_version.into());
        if let Some(spec) = object.0.get_mut("spec").and_then(Value::as_object_mut)
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.into(), value);
        }
        Ok(Some((object, None)))
    }
}

#[test]
fn managers_of_another_version_are_compared_in_it() {
    let thing = |version: &str, spec: Value| {
        object(
            json!({"apiVersion": version, "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}),
        )
    };
    let in_version =
        |live: Option<&Object>, version: &'static str, spec: Value, manager: &'static str| {
            let options = ApplyOptions {
                manager,
                now: "t",
                api_version: version,
                ..ApplyOptions::default()
            };
            apply_in(live, &thing(version, spec), &options, None, Some(&Renamed))
        };
    let see = |live: &Object, version: &str| {
        Renamed
            .convert(live, version)
            .expect("it converts")
            .expect("it is there")
            .0
    };
    let made = in_version(None, "x/v1", json!({"a": 1, "c": 1}), "alice").expect("applied");
    // Bob sets a different value for the same field under its other name.
    let refused = in_version(Some(&see(&made, "x/v2")), "x/v2", json!({"b": 2}), "bob")
        .map_err(|e| e.to_string());
    assert_eq!(
        refused,
        Err("Apply failed with 1 conflict: conflict with \"alice\": .spec.a".to_owned())
    );
    let shared =
        in_version(Some(&see(&made, "x/v2")), "x/v2", json!({"b": 1}), "bob").expect("applied");
    // Alice moves to the new version and omits the field: it stays, because Bob owns it; a field
    // that only she owned is removed.
    let moved = in_version(Some(&shared), "x/v2", json!({"d": 1}), "alice").expect("applied");
    assert_eq!(moved.pointer("/spec"), Some(&json!({"b": 1, "d": 1})));
    let versions: Vec<&Value> = moved
        .metadata("managedFields")
        .and_then(Value::as_array)
        .expect("entries")
        .iter()
        .map(|e| &e["apiVersion"])
        .collect();
    assert_eq!(versions, ["x/v2", "x/v2"]);
    // Managers of versions that no longer exist are removed; if the conversion fails, the request
    // fails.
    for (version, expected) in [("x/v0", Ok(1)), ("x/broken", Err(()))] {
        let mut live = moved.clone();
        live.metadata_mut()["managedFields"][1]["apiVersion"] = version.into();
        let managers = |o: Object| {
            o.metadata("managedFields")
                .and_then(Value::as_array)
                .map_or(0, Vec::len)
        };
        let got = in_version(Some(&live), "x/v2", json!({"b": 1}), "bob")
            .map(managers)
            .map_err(|_| ());
        assert_eq!(got, expected, "{version}");
    }
}
