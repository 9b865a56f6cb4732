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

/// The searches and moves that the functions for long lists save: they must find the same.
mod plainly {
    use super::super::{PATCH, lists::Order};
    use serde_json::Value;

    pub fn deduplicate(mut list: Vec<Value>) -> Vec<Value> {
        let mut i = 0;
        while i < list.len() {
            let mut j = i + 1;
            while j < list.len() {
                if list[i] == list[j] {
                    list.swap_remove(j);
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
        list
    }

    /// Scalars by an order; what is not in it moves towards the front.
    pub fn sort(list: Vec<Value>, order: &Order) -> Vec<Value> {
        let mut sorted: Vec<(Option<usize>, Value)> = Vec::new();
        for item in list {
            let at = order.iter().position(|o| o.as_ref() == Some(&item));
            let mut to = sorted.len();
            while to > 0 && !matches!((at, sorted[to - 1].0), (Some(new), Some(old)) if new >= old)
            {
                to -= 1;
            }
            sorted.insert(to, (at, item));
        }
        sorted.into_iter().map(|(_, item)| item).collect()
    }

    pub fn order_after_merge(old: &[Value], new: &[Value]) -> Order {
        let says = |v: &Value, what: &str| v[PATCH] == what;
        let deleted = |key: Option<&Value>| {
            new.iter()
                .any(|v| says(v, "delete") && v.get("name") == key)
        };
        let mut order: Order = old
            .iter()
            .map(|v| v.get("name"))
            .filter(|k| !deleted(*k))
            .map(|k| k.cloned())
            .collect();
        if new.iter().any(|v| says(v, "replace")) {
            return order;
        }
        for item in new.iter().filter(|v| v.get(PATCH).is_none()) {
            let key = item.get("name").cloned();
            if order.len() < old.len() && !order.contains(&key) {
                order.push(key);
            }
        }
        order
    }
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn scalars(&mut self, kinds: u64) -> Vec<Value> {
        (0..self.below(9))
            .map(|_| self.below(kinds).into())
            .collect()
    }

    fn elements(&mut self, patch: bool) -> Vec<Value> {
        let element = |numbers: &mut Self| {
            let mut element = json!({"name": numbers.below(7)});
            match numbers.below(if patch { 12 } else { 6 }) {
                0 => element = json!({"other": 1}),
                6..=8 => element["$patch"] = "delete".into(),
                9 if numbers.below(4) == 0 => element["$patch"] = "replace".into(),
                _ => {}
            }
            element
        };
        (0..self.below(9)).map(|_| element(self)).collect()
    }
}

#[test]
fn long_lists_get_the_order_that_searching_gives() {
    let mut numbers = Numbers(7);
    for _ in 0..20_000 {
        let list = numbers.scalars(6);
        assert_eq!(
            lists::deduplicate(list.clone()),
            plainly::deduplicate(list.clone()),
            "{list:?}"
        );
        let order: lists::Order = numbers.scalars(8).into_iter().map(Some).collect();
        assert_eq!(
            lists::sort_by_order(list.clone(), &order, "", lists::Elements::Scalars),
            Ok(plainly::sort(list.clone(), &order)),
            "{list:?} by {order:?}"
        );
        let (old, new) = (numbers.elements(false), numbers.elements(true));
        assert_eq!(
            merge::order_after_merge(&old, &new, "name"),
            plainly::order_after_merge(&old, &new),
            "{old:?} and {new:?}"
        );
    }
}

#[test]
fn an_element_is_merged_with_the_first_of_its_name() {
    let live = with_containers(json!([
        {"name": "a", "image": "1"},
        {"name": "b", "image": "1"},
        {"name": "a", "image": "2"},
    ]));
    let patch = with_containers(json!([
        {"name": "c", "image": "3"},
        {"name": "a", "tty": true},
        {"name": "b", "$patch": "delete"},
        {"name": "c", "tty": true},
    ]));
    let result = apply(&live, &patch, deployment()).expect("it applies");
    let mut containers = result["spec"]["template"]["spec"]["containers"]
        .as_array()
        .expect("a list")
        .clone();
    containers.sort_by_key(Value::to_string);
    assert_eq!(
        Value::from(containers),
        json!([
            {"image": "1", "name": "a", "tty": true},
            {"image": "2", "name": "a"},
            {"image": "3", "name": "c", "tty": true},
        ])
    );
}
