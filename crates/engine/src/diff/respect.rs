//! What a sync applies when ignored differences are to be left alone (`RespectIgnoreDifferences=true`).
//!
//! Main function: [`respecting`]. An ignored field is applied with the value it has in the cluster, so that a sync changes as little as the
//! comparison reports.

use super::{Options, ignore, known_types, type_of};
use serde_json::{Map, Value};
use tiphys_apimachinery::{
    Object,
    patch::{PatchError, json_merge, strategic, three_way},
};

/// The desired object with the live values of every ignored field. `status` belongs to the resource's own controller and is never taken over:
/// applying it would make us an owner of it.
pub fn respecting(desired: &Object, live: &Object, options: &Options<'_>) -> Result<Object, PatchError> {
    let (mut stripped, mut stripped_live) = (desired.clone(), live.clone());
    ignore::trusted_managers(&mut stripped, &mut stripped_live, options);
    for object in [&mut stripped, &mut stripped_live] {
        ignore::remove_ignored(object, options);
        known_types::rewrite(object, options.customizations);
    }
    let without_status = |object: &Object| {
        let mut map = object.0.clone();
        map.remove("status");
        Value::Object(map)
    };
    let (from, to) = (without_status(&stripped_live), without_status(live));
    let stripped = Value::Object(stripped.0);
    let merged = match type_of(&desired.gvk()) {
        Some(ty) => strategic::apply(&stripped, &three_way::create(&to, &to, &from, Some(ty), true)?, ty)?,
        None => json_merge::apply(&stripped, &json_merge::create_two_way(&from, &to)?)?,
    };
    let (Value::Object(mut merged), Value::Object(stripped)) = (merged, stripped) else { return Ok(desired.clone()) };
    undo_collateral(&mut merged, &desired.0, &stripped, Some(&stripped_live.0));
    Ok(Object::from_value(Value::Object(merged)).unwrap_or_else(|_| desired.clone()))
}

/// A list or map that is patched as a whole takes along what nobody ignored: that goes back to what is desired.
fn undo_collateral(
    merged: &mut Map<String, Value>,
    desired: &Map<String, Value>,
    stripped: &Map<String, Value>,
    stripped_live: Option<&Map<String, Value>>,
) {
    for (key, wanted) in desired {
        let kept = stripped.get(key);
        if let (Some(Value::Object(merged)), Value::Object(wanted), Some(Value::Object(kept))) = (merged.get_mut(key), wanted, kept) {
            undo_collateral(merged, wanted, kept, stripped_live.and_then(|l| l.get(key)).and_then(Value::as_object));
        } else if kept == Some(wanted) && merged.get(key) != Some(wanted) {
            merged.insert(key.clone(), wanted.clone());
        }
    }
    merged.retain(|key, _| desired.contains_key(key) || !stripped_live.is_some_and(|l| l.contains_key(key)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::IgnoreRule;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).expect("a map")
    }

    /// What is applied instead of `desired`, with one rule that ignores pointers and jq expressions of every kind.
    fn applied(desired: &Value, live: &Value, pointers: &[&str], expressions: &[&str]) -> Value {
        let rule = IgnoreRule {
            group: "*".into(),
            kind: "*".into(),
            json_pointers: pointers.iter().map(ToString::to_string).collect(),
            jq_path_expressions: expressions.iter().map(ToString::to_string).collect(),
            ..IgnoreRule::default()
        };
        let rules = [rule];
        let options = Options { ignore: &rules, ..Options::default() };
        Value::Object(respecting(&object(desired.clone()), &object(live.clone()), &options).expect("a target").0)
    }

    fn deployment(replicas: Option<u64>, containers: Value) -> Value {
        let mut o = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"template": {"spec": {"containers": containers}}}});
        if let Some(replicas) = replicas {
            o["spec"]["replicas"] = replicas.into();
        }
        o
    }

    #[test]
    fn ignored_fields_keep_their_live_values_and_others_are_applied() {
        let desired = deployment(Some(2), json!([{"name": "a", "image": "a:2", "env": [{"name": "E", "value": "1"}]}]));
        let live = deployment(Some(7), json!([{"name": "a", "image": "a:1"}]));
        let got = applied(&desired, &live, &["/spec/replicas"], &[".spec.template.spec.containers[].image"]);
        let container = json!({"name": "a", "image": "a:1", "env": [{"name": "E", "value": "1"}]});
        assert_eq!(got, deployment(Some(7), json!([container])));
    }

    #[test]
    fn an_ignored_field_that_is_not_live_is_not_applied() {
        let got = applied(&deployment(Some(2), json!([])), &deployment(None, json!([])), &["/spec/replicas"], &[]);
        assert_eq!(got.pointer("/spec/replicas"), None);
    }

    #[test]
    fn without_rules_the_target_stays_as_it_is() {
        let desired = deployment(Some(2), json!([{"name": "a", "image": "a:2"}]));
        assert_eq!(applied(&desired, &deployment(Some(1), json!([{"name": "b"}])), &[], &[]), desired);
    }

    #[test]
    fn live_status_is_never_applied() {
        let desired = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 1}});
        let live =
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 2}, "status": {"p": 1}});
        let got = applied(&desired, &live, &["/status", "/spec/a"], &[]);
        assert_eq!((got.get("status"), &got["spec"]["a"]), (None, &json!(2)));
    }

    /// A disruption budget's selector is replaced as a whole.
    #[test]
    fn what_shares_a_replaced_parent_with_an_ignored_field_is_still_applied() {
        let budget = |labels: Value| {
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
                "spec": {"selector": {"matchLabels": labels}}})
        };
        let ignored = ["/spec/selector/matchLabels/version"];
        let desired = budget(json!({"app": "new", "version": "2", "only-desired": "x"}));
        let live = budget(json!({"app": "old", "version": "1", "only-live": "x"}));
        let want = json!({"app": "new", "version": "1", "only-desired": "x"});
        assert_eq!(applied(&desired, &live, &ignored, &[])["spec"]["selector"]["matchLabels"], want);
        let whole = applied(&desired, &live, &["/spec/selector"], &[]);
        assert_eq!(whole["spec"]["selector"], live["spec"]["selector"]);
    }
}
