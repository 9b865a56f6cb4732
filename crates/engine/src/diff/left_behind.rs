//! Fields that left Git since the last sync and are still live, where the predicted result of an
//! apply does not show their removal.
//!
//! Main function: [`removed`]. A server-side apply removes only fields that its manager applied
//! server-side. So a server-side dry run does not predict what a client-side apply removes, and a
//! field that was applied client-side would stay forever once the object is applied server-side,
//! unless the executor migrates its ownership first. Nor does it remove a key from `data` that came
//! from `stringData`.

use super::{
    MANAGER, Options, applied_before, for_comparison, is_applied_server_side,
    server_side::keep_parents, type_of, typed_form,
};
use crate::normalize::secret;
use serde_json::Value;
use std::collections::BTreeSet;
use tiphys_apimachinery::{
    Object,
    patch::{
        apply::{self, fieldset::FieldSet, path::PathElement},
        json_merge, keyed, strategic, three_way,
    },
};

/// The predicted object without the additional fields that a sync removes. If they cannot be
/// computed, the prediction stays unchanged.
pub fn removed(
    desired: &Object,
    live: &Object,
    mut predicted: Object,
    options: &Options<'_>,
) -> Object {
    let gone = orphaned_keys(desired, live);
    if let Some(Value::Object(data)) = predicted.0.get_mut("data") {
        data.retain(|key, _| !gone.contains(key));
    }
    let Some(original) = applied_before(live, options) else {
        return predicted;
    };
    if is_applied_server_side(desired, options) {
        return without_own_updates(&original, desired, live, predicted);
    }
    let mut desired = typed_form(desired);
    for_comparison(&mut desired, options);
    by_deletions(&original, &desired, &predicted)
        .and_then(|value| Object::from_value(value).ok())
        .unwrap_or(predicted)
}

/// As client-side apply does: without what was last applied and is no longer desired.
fn by_deletions(original: &Object, desired: &Object, predicted: &Object) -> Option<Value> {
    let namespaced = |object: &Object| {
        let mut object = object.clone();
        object.set_namespace(predicted.namespace());
        object.into_value()
    };
    let (original, desired, current) = (
        namespaced(original),
        namespaced(desired),
        Value::Object(predicted.0.clone()),
    );
    let Some(ty) = type_of(&predicted.gvk()) else {
        let patch = json_merge::create_three_way(&original, &desired, &desired).ok()?;
        return json_merge::apply(&current, &patch).ok();
    };
    let mut patch = three_way::create(&original, &desired, &desired, Some(ty), true).ok()?;
    keyed::complete(&mut patch, &original, &desired, &current, ty).ok()?;
    strategic::apply(&current, &patch, ty).ok()
}

/// Fields that we applied server-side, that are no longer desired, and that no one else owns. Only
/// a server-side apply removes them, because the last-applied annotation does not contain them.
pub fn applied_server_side(desired: &Object, live: &Object) -> FieldSet {
    let text = |entry: &Value, field: &str| {
        entry
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let ours = |entry: &Value| text(entry, "manager") == MANAGER;
    let applied = |entry: &Value| {
        ours(entry)
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
            && text(entry, "apiVersion") == live.api_version()
    };
    let (mut left, mut others) = (FieldSet::default(), FieldSet::default());
    // Most objects were never applied server-side; their managed fields need not be parsed.
    if !live
        .metadata("managedFields")
        .and_then(Value::as_array)
        .is_some_and(|list| list.iter().any(applied))
    {
        return left;
    }
    for (entry, fields) in owned(live) {
        match (applied(entry), ours(entry)) {
            (true, _) => left.extend(fields),
            (false, true) => {}
            (false, false) => others.extend(fields),
        }
    }
    let wanted = apply::all_fields(desired, type_of(&live.gvk()));
    left = left.difference(&wanted).difference(&others);
    keep_parents(&mut left, &wanted);
    keep_parents(&mut left, &others);
    left
}

/// Without the fields that we applied client-side, that are no longer desired, and that no one else
/// owns.
fn without_own_updates(
    original: &Object,
    desired: &Object,
    live: &Object,
    predicted: Object,
) -> Object {
    let (mut own, mut others) = (FieldSet::default(), FieldSet::default());
    for (entry, fields) in owned(live) {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        match (text("manager"), text("operation"), text("subresource")) {
            (MANAGER, "Update", "") => own.extend(fields),
            (MANAGER, ..) => {}
            _ => others.extend(fields),
        }
    }
    if own.is_empty() {
        return predicted;
    }
    let ty = type_of(&predicted.gvk());
    let wanted = apply::all_fields(desired, ty);
    let mut left = apply::fields(original, ty)
        .difference(&wanted)
        .difference(&others);
    left = left.difference(&left.difference(&own));
    keep_parents(&mut left, &wanted);
    keep_parents(&mut left, &others);
    if left.is_empty() {
        predicted
    } else {
        apply::without_fields(&predicted, &left, ty)
    }
}

/// The keys in a Secret's data that we applied server-side through `stringData` and that are no
/// longer desired.
pub fn orphaned_keys(desired: &Object, live: &Object) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    if !secret::is_secret(live) {
        return keys;
    }
    let step = PathElement::Field("stringData".into());
    for (entry, fields) in owned(live) {
        let ours = entry.get("manager").and_then(Value::as_str) == Some(MANAGER);
        for path in fields
            .children
            .get(&step)
            .filter(|_| ours)
            .into_iter()
            .flat_map(FieldSet::paths)
        {
            if let [PathElement::Field(key)] = path.as_slice() {
                keys.insert(key.clone());
            }
        }
    }
    let wanted = |field: &str, key: &str| {
        desired
            .0
            .get(field)
            .is_some_and(|map| map.get(key).is_some())
    };
    let there = |key: &str| {
        live.0
            .get("data")
            .is_some_and(|data| data.get(key).is_some())
    };
    keys.retain(|key| there(key) && !wanted("data", key) && !wanted("stringData", key));
    keys
}

fn owned(live: &Object) -> impl Iterator<Item = (&Value, FieldSet)> {
    let entries = live
        .metadata("managedFields")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    entries.filter_map(|entry| Some((entry, FieldSet::from_json(entry.get("fieldsV1")?).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{self, diff, server_side};
    use serde_json::json;
    use tiphys_apimachinery::patch::{apply::ApplyOptions, last_applied};

    fn object(value: Value) -> Object {
        Object::from_value(value).expect("a map")
    }

    fn config_map(data: Value) -> Object {
        object(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": data}),
        )
    }

    fn options(server_side_apply: bool) -> Options<'static> {
        Options {
            server_side_apply,
            ..Options::default()
        }
    }

    /// The object after we applied it client-side.
    fn applied_client_side(object: &Object) -> Object {
        let mut live = last_applied::with_annotation(object);
        let options = ApplyOptions {
            manager: MANAGER,
            api_version: object.api_version(),
            ..ApplyOptions::default()
        };
        apply::track_update(None, &mut live, &options, type_of(&object.gvk()));
        live
    }

    /// The API server's answer to our server-side apply.
    fn dry_run(desired: &Object, live: &Object) -> Object {
        let options = ApplyOptions {
            manager: MANAGER,
            force: true,
            api_version: desired.api_version(),
            ..ApplyOptions::default()
        };
        apply::apply(Some(live), desired, &options, type_of(&desired.gvk())).expect("an answer")
    }

    #[test]
    fn a_key_that_left_git_is_a_difference_in_each_way_of_comparing() {
        let live = applied_client_side(&config_map(json!({"a": "1", "b": "2"})));
        let (same, fewer) = (
            config_map(json!({"a": "1", "b": "2"})),
            config_map(json!({"a": "1"})),
        );
        for server_side_apply in [false, true] {
            let options = options(server_side_apply);
            for (desired, modified) in [(&same, false), (&fewer, true)] {
                let there = diff(Some(desired), Some(&live), &options);
                assert_eq!(
                    there.modified, modified,
                    "server-side apply {server_side_apply}: {desired:?}"
                );
                let asked = server_side(desired, &live, &dry_run(desired, &live), false, &options)
                    .expect("a difference");
                assert_eq!(
                    asked.modified, modified,
                    "Server-Side Diff, server-side apply {server_side_apply}: {desired:?}"
                );
                if modified {
                    assert_eq!(there.predicted_live["data"], json!({"a": "1"}));
                    assert_eq!(asked.predicted_live["data"], json!({"a": "1"}));
                }
            }
        }
    }

    #[test]
    fn a_key_that_was_applied_server_side_is_a_difference_client_side() {
        let all = config_map(json!({"a": "1", "b": "2"}));
        let mut live = dry_run(&all, &Object::default());
        let (same, fewer) = (
            config_map(json!({"a": "1", "b": "2"})),
            config_map(json!({"a": "1"})),
        );
        assert!(!diff(Some(&same), Some(&live), &options(false)).modified);
        let found = diff(Some(&fewer), Some(&live), &options(false));
        assert_eq!(
            (found.modified, &found.predicted_live["data"]),
            (true, &json!({"a": "1"}))
        );
        // The remains of an earlier client-side apply do not hide it.
        let old = last_applied::with_annotation(&fewer);
        live.set_annotation(
            last_applied::ANNOTATION,
            old.annotation(last_applied::ANNOTATION)
                .expect("it has one"),
        );
        assert!(diff(Some(&fewer), Some(&live), &options(false)).modified);
        // Another manager owns it as well.
        let entry = json!({"manager": "tuner", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:b": {}}}});
        live.metadata_mut()
            .get_mut("managedFields")
            .and_then(Value::as_array_mut)
            .expect("our entry")
            .push(entry);
        assert!(!diff(Some(&fewer), Some(&live), &options(false)).modified);
    }

    #[test]
    fn what_others_own_meanwhile_stays_after_a_server_side_apply() {
        let mut live = applied_client_side(&config_map(json!({"a": "1", "b": "2"})));
        live.0["data"]["b"] = "3".into();
        let fields = json!({"f:data": {"f:b": {}}});
        let entries = live
            .metadata_mut()
            .get_mut("managedFields")
            .and_then(Value::as_array_mut)
            .expect("our entry");
        entries.push(json!({"manager": "tuner", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}));
        assert!(
            !diff(
                Some(&config_map(json!({"a": "1"}))),
                Some(&live),
                &options(true)
            )
            .modified
        );
        assert!(
            diff(
                Some(&config_map(json!({"a": "1"}))),
                Some(&live),
                &options(false)
            )
            .modified
        );
    }

    /// Git used `stringData`, and the object was applied by a client that does not convert it to
    /// data.
    #[test]
    fn a_key_that_came_through_string_data_goes() {
        let secret = |data: Value| {
            object(
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "type": "Opaque", "data": data}),
            )
        };
        let mut live = secret(json!({"user": "YQ==", "code": "Yg==", "other": "Yw=="}));
        let fields = json!({"f:stringData": {".": {}, "f:user": {}, "f:code": {}}});
        let entry = json!({"manager": MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields});
        live.metadata_mut()
            .insert("managedFields".into(), json!([entry]));
        let desired = secret(json!({"code": "Yg=="}));
        assert_eq!(
            diff::orphaned_keys(&desired, &live),
            BTreeSet::from(["user".to_owned()])
        );
        let found = diff(Some(&desired), Some(&live), &options(true));
        assert_eq!(
            found.predicted_live["data"],
            json!({"code": "Yg==", "other": "Yw=="})
        );
        assert!(
            found.modified
                && !diff(
                    Some(&secret(json!({"code": "Yg==", "user": "YQ=="}))),
                    Some(&live),
                    &options(true)
                )
                .modified
        );
        // With client-side apply the last-applied annotation records the keys.
        let mut live = secret(json!({"user": "YQ==", "code": "Yg=="}));
        let applied = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"user": "a", "code": "b"}});
        live.set_annotation(last_applied::ANNOTATION, &applied.to_string());
        assert_eq!(
            diff(Some(&desired), Some(&live), &options(false)).predicted_live["data"],
            json!({"code": "Yg=="})
        );
    }
}
