//! The object to apply when ignored differences must be left alone
//! (`RespectIgnoreDifferences=true`).
//!
//! Main function: [`respecting`]. An ignored field is applied with its live value, so that a sync
//! changes no more than the comparison reports. That includes fields inside lists, whether the kind
//! has a schema or not; the rest of the list follows Git.

use super::{Options, ignore, type_of};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use tiphys_apimachinery::{Object, schema::TypeRef};

/// Fields that identify an item of a list without a schema, in order of preference.
const NAMES: [&str; 4] = ["name", "key", "id", "type"];

/// The desired object with the live values of all ignored fields. `status` belongs to the
/// resource's own controller and is never copied: applying it would make us an owner of it.
pub fn respecting(desired: &Object, live: &Object, options: &Options<'_>) -> Object {
    let (mut stripped, mut stripped_live) = (desired.clone(), live.clone());
    ignore::trusted_managers(&mut stripped, &mut stripped_live, options);
    for object in [&mut stripped, &mut stripped_live] {
        ignore::remove_ignored(object, options);
    }
    let without_status = |object: &Object| {
        let mut map = object.0.clone();
        map.remove("status");
        map
    };
    let (live, stripped_live) = (without_status(live), without_status(&stripped_live));
    let maps = Maps {
        desired: &desired.0,
        stripped: &stripped.0,
        live: &live,
        stripped_live: &stripped_live,
    };
    Object::from_value(Value::Object(maps.joined(type_of(&desired.gvk()))))
        .unwrap_or_else(|_| desired.clone())
}

/// The four states of one map: both sides, each with and without the ignored fields.
struct Maps<'a> {
    desired: &'a Map<String, Value>,
    stripped: &'a Map<String, Value>,
    live: &'a Map<String, Value>,
    stripped_live: &'a Map<String, Value>,
}

impl Maps<'_> {
    fn joined(&self, ty: Option<TypeRef<'_>>) -> Map<String, Value> {
        let mut joined = Map::new();
        for (key, desired) in self.desired {
            let live = self.live.get(key);
            let value = match self.stripped.get(key) {
                // Ignored entirely: keep the live value, or none.
                None => live.cloned(),
                Some(stripped) => Some(value(
                    desired,
                    stripped,
                    live.zip(self.stripped_live.get(key)),
                    ty.and_then(|ty| ty.field(key)),
                )),
            };
            joined.extend(value.map(|value| (key.clone(), value)));
        }
        let only_live = self.live.iter().filter(|(key, _)| {
            !self.desired.contains_key(*key) && !self.stripped_live.contains_key(*key)
        });
        joined.extend(only_live.map(|(key, value)| (key.clone(), value.clone())));
        joined
    }
}

fn value(
    desired: &Value,
    stripped: &Value,
    live: Option<(&Value, &Value)>,
    ty: Option<TypeRef<'_>>,
) -> Value {
    match (desired, stripped, live) {
        (
            Value::Object(desired),
            Value::Object(stripped),
            Some((Value::Object(live), Value::Object(stripped_live))),
        ) => Maps {
            desired,
            stripped,
            live,
            stripped_live,
        }
        .joined(ty)
        .into(),
        (
            Value::Array(desired),
            Value::Array(stripped),
            Some((Value::Array(live), Value::Array(stripped_live))),
        ) => {
            let lists = Lists {
                desired: Items::new(desired, stripped),
                live: Items::new(live, stripped_live),
            };
            lists.joined(ty).into()
        }
        // There is no live value to keep.
        (Value::Object(desired), Value::Object(stripped), None) => {
            let none = Map::new();
            Maps {
                desired,
                stripped,
                live: &none,
                stripped_live: &none,
            }
            .joined(ty)
            .into()
        }
        _ => desired.clone(),
    }
}

/// The items of a list, each with what remains of it without the ignored fields; `None` if the item
/// is ignored entirely.
struct Items<'a>(Vec<(&'a Value, Option<&'a Value>)>);

impl<'a> Items<'a> {
    fn new(full: &'a [Value], stripped: &'a [Value]) -> Self {
        let mut rest = stripped.iter().peekable();
        let same_length = full.len() == stripped.len();
        let pair = |item: &'a Value| {
            (
                item,
                rest.next_if(|left| same_length || is_part_of(left, item)),
            )
        };
        Self(full.iter().map(pair).collect())
    }

    fn is_untouched(&self) -> bool {
        self.0.iter().all(|(full, left)| Some(*full) == *left)
    }

    /// The values of these fields for each item, if they identify the items; otherwise `None`.
    fn known_by(&self, keys: &[&str], ty: Option<TypeRef<'_>>) -> Option<Vec<Vec<Value>>> {
        let mut seen = BTreeSet::new();
        let of = |(full, left): &(&Value, Option<&Value>)| {
            let item = left.unwrap_or(full).as_object()?;
            let field = |key: &&str| {
                item.get(*key)
                    .or_else(|| ty?.items()?.named_field(key)?.default())
                    .filter(|v| !v.is_object())
                    .cloned()
            };
            let values: Vec<Value> = keys.iter().map(field).collect::<Option<_>>()?;
            seen.insert(format!("{values:?}")).then_some(values)
        };
        self.0.iter().map(of).collect()
    }
}

/// Whether one value is what remains of the other after removing fields and items.
fn is_part_of(left: &Value, full: &Value) -> bool {
    match (left, full) {
        (Value::Object(left), Value::Object(full)) => left
            .iter()
            .all(|(key, value)| full.get(key).is_some_and(|f| is_part_of(value, f))),
        (Value::Array(left), Value::Array(full)) => {
            let mut rest = full.iter();
            left.iter().all(|item| rest.any(|f| is_part_of(item, f)))
        }
        (left, full) => left == full,
    }
}

struct Lists<'a> {
    desired: Items<'a>,
    live: Items<'a>,
}

impl Lists<'_> {
    /// The desired items in Git's order, each with the ignored fields of its live item. New items
    /// follow Git entirely, because ignored fields may be required; live items that are ignored
    /// entirely stay.
    fn joined(&self, ty: Option<TypeRef<'_>>) -> Vec<Value> {
        if self.desired.is_untouched() && self.live.is_untouched() {
            return self
                .desired
                .0
                .iter()
                .map(|(full, _)| (*full).clone())
                .collect();
        }
        let items = ty.and_then(|ty| ty.items());
        let partners = self.partners(ty);
        let mut joined = Vec::with_capacity(self.desired.0.len());
        for ((full, left), partner) in self.desired.0.iter().zip(&partners) {
            let live = partner.map(|at| self.live.0[at]);
            joined.extend(match (left, live) {
                (None, live) => live.map(|(full, _)| full.clone()),
                (Some(_), None) => Some((*full).clone()),
                // The live item is ignored entirely, although the desired one is not: keep the live
                // item.
                (Some(_), Some((live, None))) => Some(live.clone()),
                (Some(left), Some((live, Some(left_live)))) => {
                    Some(value(full, left, Some((live, left_live)), items))
                }
            });
        }
        let ignored = (0..self.live.0.len())
            .filter(|at| self.live.0[*at].1.is_none() && !partners.contains(&Some(*at)));
        for at in ignored {
            joined.insert(at.min(joined.len()), self.live.0[at].0.clone());
        }
        joined
    }

    /// The matching live item for each desired item: by the schema's list keys, or by a field that
    /// usually identifies items; else the one that is equal except for ignored fields; else the one
    /// at the same index.
    fn partners(&self, ty: Option<TypeRef<'_>>) -> Vec<Option<usize>> {
        let by_schema: Vec<&str> = ty
            .map(|ty| ty.list_map_keys().iter().map(|key| &**key).collect())
            .unwrap_or_default();
        let by_schema = if by_schema.is_empty() {
            ty.and_then(|ty| ty.patch_merge_key()).into_iter().collect()
        } else {
            by_schema
        };
        let candidates = std::iter::once(by_schema)
            .chain(NAMES.iter().map(|name| vec![*name]))
            .filter(|keys| !keys.is_empty());
        for keys in candidates {
            if let (Some(desired), Some(live)) = (
                self.desired.known_by(&keys, ty),
                self.live.known_by(&keys, ty),
            ) {
                return desired
                    .iter()
                    .map(|known| live.iter().position(|other| other == known))
                    .collect();
            }
        }
        let mut partners: Vec<Option<usize>> = vec![None; self.desired.0.len()];
        for (index, (_, left)) in self.desired.0.iter().enumerate() {
            let same = |at: &usize| self.live.0[*at].1 == *left && !partners.contains(&Some(*at));
            partners[index] = (0..self.live.0.len()).find(same);
        }
        for index in 0..partners.len() {
            if partners[index].is_none()
                && index < self.live.0.len()
                && !partners.contains(&Some(index))
            {
                partners[index] = Some(index);
            }
        }
        partners
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::IgnoreRule;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).expect("a map")
    }

    /// What is applied instead of `desired`, with one rule that ignores pointers and jq expressions
    /// for every kind.
    fn applied(desired: &Value, live: &Value, pointers: &[&str], expressions: &[&str]) -> Value {
        let rule = IgnoreRule {
            group: "*".into(),
            kind: "*".into(),
            json_pointers: pointers.iter().map(ToString::to_string).collect(),
            jq_path_expressions: expressions.iter().map(ToString::to_string).collect(),
            ..IgnoreRule::default()
        };
        let rules = [rule];
        let options = Options {
            ignore: &rules,
            ..Options::default()
        };
        Value::Object(respecting(&object(desired.clone()), &object(live.clone()), &options).0)
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
        let desired = deployment(
            Some(2),
            json!([{"name": "a", "image": "a:2", "env": [{"name": "E", "value": "1"}]}]),
        );
        let live = deployment(Some(7), json!([{"name": "a", "image": "a:1"}]));
        let got = applied(
            &desired,
            &live,
            &["/spec/replicas"],
            &[".spec.template.spec.containers[].image"],
        );
        let container = json!({"name": "a", "image": "a:1", "env": [{"name": "E", "value": "1"}]});
        assert_eq!(got, deployment(Some(7), json!([container])));
    }

    #[test]
    fn an_ignored_field_that_is_not_live_is_not_applied() {
        let got = applied(
            &deployment(Some(2), json!([])),
            &deployment(None, json!([])),
            &["/spec/replicas"],
            &[],
        );
        assert_eq!(got.pointer("/spec/replicas"), None);
    }

    #[test]
    fn without_rules_the_target_stays_as_it_is() {
        let desired = deployment(Some(2), json!([{"name": "a", "image": "a:2"}]));
        assert_eq!(
            applied(
                &desired,
                &deployment(Some(1), json!([{"name": "b"}])),
                &[],
                &[]
            ),
            desired
        );
    }

    #[test]
    fn live_status_is_never_applied() {
        let desired = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 1}});
        let live = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 2}, "status": {"p": 1}});
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
        assert_eq!(
            applied(&desired, &live, &ignored, &[])["spec"]["selector"]["matchLabels"],
            want
        );
        let whole = applied(&desired, &live, &["/spec/selector"], &[]);
        assert_eq!(whole["spec"]["selector"], live["spec"]["selector"]);
    }

    fn roller(containers: Value) -> Value {
        json!({"apiVersion": "x.io/v1", "kind": "Roller", "metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": containers}}}})
    }

    /// For a kind with a schema and for one without, the same.
    #[test]
    fn ignored_fields_of_items_are_kept_and_the_rest_of_the_list_follows_git() {
        let image = &[".spec.template.spec.containers[].image"];
        let c = |name: &str, image: &str, more: Value| {
            let mut container = json!({"name": name, "image": image});
            container
                .as_object_mut()
                .expect("a map")
                .extend(more.as_object().cloned().expect("a map"));
            container
        };
        let env = |value: &str| json!({"env": [{"name": "E", "value": value}]});
        let rows = [
            // (Git, live, applied)
            (
                json!([c("a", "a:1", env("1"))]),
                json!([c("a", "a:tool", json!({}))]),
                json!([c("a", "a:tool", env("1"))]),
            ),
            (
                json!([c("a", "a:1", env("1"))]),
                json!([c("a", "a:tool", env("0"))]),
                json!([c("a", "a:tool", env("1"))]),
            ),
            (
                json!([c("a", "a:1", json!({}))]),
                json!([c("a", "a:tool", json!({}))]),
                json!([c("a", "a:tool", json!({}))]),
            ),
            // A new item has Git's value, at any position; one that left Git is removed; one that
            // moved keeps its own.
            (
                json!([c("b", "b:1", json!({})), c("a", "a:1", json!({}))]),
                json!([c("a", "a:tool", json!({}))]),
                json!([c("b", "b:1", json!({})), c("a", "a:tool", json!({}))]),
            ),
            (
                json!([c("b", "b:1", json!({}))]),
                json!([c("a", "a:tool", json!({})), c("b", "b:tool", json!({}))]),
                json!([c("b", "b:tool", json!({}))]),
            ),
            (
                json!([c("b", "b:1", json!({})), c("a", "a:1", json!({}))]),
                json!([c("a", "a:tool", json!({})), c("b", "b:tool", json!({}))]),
                json!([c("b", "b:tool", json!({})), c("a", "a:tool", json!({}))]),
            ),
        ];
        for (desired, live, want) in rows {
            let typed = applied(
                &deployment(None, desired.clone()),
                &deployment(None, live.clone()),
                &[],
                image,
            );
            assert_eq!(
                typed,
                deployment(None, want.clone()),
                "{desired} over {live}"
            );
            assert_eq!(
                applied(&roller(desired.clone()), &roller(live.clone()), &[], image),
                roller(want),
                "{desired} over {live}"
            );
        }
    }

    #[test]
    fn nested_lists_and_items_without_names_are_matched() {
        let nested = ".spec.template.spec.containers[].env[]? | select(.name == \"V\") | .value";
        let desired = roller(
            json!([{"name": "a", "env": [{"name": "N", "value": "n"}, {"name": "V", "value": "1"}]}, {"name": "b"}]),
        );
        let live = roller(json!([{"name": "a", "env": [{"name": "V", "value": "tool"}]}]));
        let want = roller(
            json!([{"name": "a", "env": [{"name": "N", "value": "n"}, {"name": "V", "value": "tool"}]}, {"name": "b"}]),
        );
        assert_eq!(applied(&desired, &live, &[], &[nested]), want);

        let route = |weights: &[u64]| {
            roller(
                weights
                    .iter()
                    .map(|w| json!({"to": format!("svc-{}", w % 10), "weight": w}))
                    .collect(),
            )
        };
        let weight = &[".spec.template.spec.containers[].weight"];
        // Without names: the item that is equal otherwise, at any position.
        assert_eq!(
            applied(&route(&[11, 12]), &route(&[92, 91]), &[], weight),
            route(&[91, 92])
        );
        assert_eq!(
            applied(&route(&[13, 11, 12]), &route(&[91, 92]), &[], weight),
            route(&[13, 91, 92])
        );
        // Other fields changed too: the item at the same index.
        let renamed = roller(json!([{"to": "new", "weight": 1}]));
        assert_eq!(
            applied(&renamed, &route(&[91]), &[], weight),
            roller(json!([{"to": "new", "weight": 91}]))
        );
        let args = |list: Value| roller(json!([{"name": "a", "args": list}]));
        let second = ["/spec/template/spec/containers/0/args/1"];
        assert_eq!(
            applied(
                &args(json!(["a", "b", "c"])),
                &args(json!(["a", "x", "old"])),
                &second,
                &[]
            ),
            args(json!(["a", "x", "c"]))
        );
    }

    #[test]
    fn items_that_are_ignored_as_a_whole_stay_as_they_are() {
        let sidecar = &[".spec.template.spec.containers[] | select(.name == \"proxy\")"];
        let (web, proxy) = (
            |image: &str| json!({"name": "web", "image": image}),
            |image: &str| json!({"name": "proxy", "image": image}),
        );
        for kind in [|list| deployment(None, list), roller] {
            let got = applied(
                &kind(json!([web("2")])),
                &kind(json!([web("1"), proxy("p")])),
                &[],
                sidecar,
            );
            assert_eq!(got, kind(json!([web("2"), proxy("p")])), "injected");
            let got = applied(
                &kind(json!([proxy("git"), web("2")])),
                &kind(json!([web("1"), proxy("p")])),
                &[],
                sidecar,
            );
            assert_eq!(got, kind(json!([proxy("p"), web("2")])), "in both");
        }
    }

    #[test]
    fn c71_fields_of_trusted_managers_keep_their_live_values() {
        let desired = deployment(Some(2), json!([{"name": "a", "image": "a:2"}]));
        let mut live = deployment(Some(4), json!([{"name": "a", "image": "a:1"}]));
        live["metadata"]["managedFields"] =
            json!([{"manager": "janitor", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
        let applied_by = |manager: &str| {
            let rule = IgnoreRule {
                group: "*".into(),
                kind: "*".into(),
                managed_fields_managers: vec![manager.into()],
                ..IgnoreRule::default()
            };
            let rules = [rule];
            let options = Options {
                ignore: &rules,
                ..Options::default()
            };
            Value::Object(respecting(&object(desired.clone()), &object(live.clone()), &options).0)
        };
        assert_eq!(
            applied_by("janitor"),
            deployment(Some(4), json!([{"name": "a", "image": "a:2"}]))
        );
        assert_eq!(applied_by("somebody"), desired);
    }

    /// Argo CD's own cases (HTTPProxy): lists of a custom kind whose items are ignored, entirely or
    /// within an item without a name.
    #[test]
    fn c71_a_list_whose_items_are_all_ignored_is_the_live_one() {
        let proxy = |entries: Value| {
            json!({"apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": {"name": "p"},
                "spec": {"routes": [{"rateLimitPolicy": {"global": {"descriptors": [{"entries": entries}]}}}]}})
        };
        let header = json!({"requestHeader": {"headerName": "sample-header", "descriptorKey": "sample-key"}});
        let matched = json!({"requestHeaderValueMatch": {"headers": [{"name": "sample-key"}], "value": "third"}});
        let (desired, live) = (
            proxy(json!([matched, {"requestHeader": {"headerName": "other"}}])),
            proxy(json!([header])),
        );
        for expression in [
            ".spec.routes[]",
            ".spec.routes[].rateLimitPolicy.global.descriptors[].entries[]",
        ] {
            assert_eq!(
                applied(&desired, &live, &[], &[expression]),
                live,
                "{expression}"
            );
        }
    }
}
