//! Laws of patches and of field ownership, on random objects of built-in kinds.
//!
//! An object is made by walking its type; the number of a case is its seed, and a failure prints
//! it.

use serde_json::{Map, Value, json};
use tiphys_apimachinery::{
    Gvk, Object,
    patch::{
        apply::{self, ApplyOptions, fieldset::FieldSet},
        json_merge, strategic, three_way,
    },
    schema::{self, ListType, ScalarKind, TypeKind, TypeRef},
};

const CASES: u64 = 400;

const KINDS: [(&str, &str, &str); 8] = [
    ("apps", "v1", "Deployment"),
    ("", "v1", "Service"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "PersistentVolume"),
    ("batch", "v1", "CronJob"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
];

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Yes, `percent` times of a hundred.
    fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

fn scalar(kind: ScalarKind, rng: &mut Rng) -> Value {
    match kind {
        ScalarKind::String => ["a", "b", "c", "1"][rng.below(4) as usize].into(),
        ScalarKind::Integer => {
            [json!(1), json!(2), json!(i64::MAX), json!(0)][rng.below(4) as usize].clone()
        }
        ScalarKind::Number => [json!(1), json!(1.5), json!(-0.25)][rng.below(3) as usize].clone(),
        ScalarKind::Boolean => rng.happens(50).into(),
        ScalarKind::IntOrString => [json!(1), json!("50%")][rng.below(2) as usize].clone(),
    }
}

/// A value of the type. Lists that merge get elements with different keys; what merges by key has
/// the keys.
fn value_of(ty: TypeRef<'_>, rng: &mut Rng, depth: u32) -> Value {
    match ty.kind() {
        TypeKind::Scalar(kind) => scalar(kind, rng),
        TypeKind::Any => json!({"any": rng.below(3)}),
        TypeKind::Map => {
            let values = ty.values().expect("maps have values");
            let keys = ["k", "l", "m"]
                .into_iter()
                .filter(|_| rng.happens(50))
                .collect::<Vec<_>>();
            Value::Object(
                keys.into_iter()
                    .map(|k| (k.to_owned(), value_of(values, rng, depth + 1)))
                    .collect(),
            )
        }
        TypeKind::Object => Value::Object(fields_of(ty, rng, depth)),
        TypeKind::List => list_of(ty, rng, depth),
    }
}

fn fields_of(ty: TypeRef<'_>, rng: &mut Rng, depth: u32) -> Map<String, Value> {
    let mut map = Map::new();
    let percent = [60, 60, 45, 30, 20]
        .get(depth as usize)
        .copied()
        .unwrap_or(12);
    for (name, field) in ty.fields().filter(|(name, _)| *name != "managedFields") {
        if depth < 9 && rng.happens(percent) {
            map.insert(name.to_owned(), value_of(field, rng, depth + 1));
        }
    }
    map
}

fn list_of(ty: TypeRef<'_>, rng: &mut Rng, depth: u32) -> Value {
    let items = ty.items().expect("lists have elements");
    let keys: Vec<&str> = match (ty.list_type(), ty.patch_merge_key()) {
        (Some(ListType::Map), key) => ty.list_map_keys().iter().map(|k| &**k).chain(key).collect(),
        (_, Some(key)) => vec![key],
        _ => Vec::new(),
    };
    let mut list: Vec<Value> = Vec::new();
    for number in 0..rng.below(4) {
        let mut item = value_of(items, rng, depth + 1);
        if let Value::Object(map) = &mut item {
            for key in &keys {
                let number = if matches!(
                    items.field(key).map(|f| f.kind()),
                    Some(TypeKind::Scalar(ScalarKind::Integer))
                ) {
                    json!(number)
                } else {
                    json!(format!("n{number}"))
                };
                map.insert((*key).to_owned(), number);
            }
        }
        if !list.contains(&item) {
            list.push(item);
        }
    }
    if !list.is_empty() && rng.happens(50) {
        list.reverse();
    }
    Value::Array(list)
}

struct Case<'a> {
    seed: u64,
    gvk: Gvk,
    ty: TypeRef<'a>,
    rng: Rng,
}

impl Case<'_> {
    fn object(&mut self) -> Value {
        let mut map = fields_of(self.ty, &mut self.rng, 0);
        map.insert("apiVersion".into(), self.gvk.api_version().into());
        map.insert("kind".into(), self.gvk.kind.clone().into());
        map.insert(
            "metadata".into(),
            json!({"name": "x", "labels": {"a": "b"}}),
        );
        Value::Object(map)
    }

    /// Another object that shares most of its parts with this one.
    fn changed(&mut self, object: &Value) -> Value {
        let other = self.object();
        mixed(object, &other, &mut self.rng)
    }
}

/// Parts of either.
fn mixed(a: &Value, b: &Value, rng: &mut Rng) -> Value {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let mut map = Map::new();
            for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
                let value = match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => Some(mixed(a, b, rng)),
                    (one, other) => one.or(other).filter(|_| rng.happens(60)).cloned(),
                };
                value.and_then(|value| map.insert(key.clone(), value));
            }
            Value::Object(map)
        }
        (a, b) => if rng.happens(60) { a } else { b }.clone(),
    }
}

fn every_case(check: impl Fn(&mut Case<'_>)) {
    for seed in 0..CASES {
        let (group, version, kind) = KINDS[(seed % KINDS.len() as u64) as usize];
        let gvk = Gvk::new(group, version, kind);
        let ty = schema::builtin().type_for(&gvk).expect("a built-in kind");
        check(&mut Case {
            seed,
            gvk,
            ty,
            rng: Rng(seed),
        });
    }
}

/// The objects are the same but for the order of lists that merge.
fn same_content(a: &Value, b: &Value, ty: TypeRef<'_>) -> bool {
    strategic::sort_merge_lists(a, ty).expect("it can be sorted")
        == strategic::sort_merge_lists(b, ty).expect("it can be sorted")
}

#[test]
fn a_merge_patch_makes_what_it_was_made_from() {
    every_case(|case| {
        let from = case.object();
        let to = case.changed(&from);
        let patch = json_merge::create_two_way(&from, &to).expect("a patch");
        assert_eq!(
            json_merge::apply(&from, &patch),
            Ok(to.clone()),
            "case {}",
            case.seed
        );
        // What others changed in between stays, where the patch says nothing of it.
        assert_eq!(
            json_merge::create_three_way(&from, &to, &from),
            Ok(patch),
            "case {}",
            case.seed
        );
        assert_eq!(
            json_merge::create_two_way(&to, &to),
            Ok(json!({})),
            "case {}",
            case.seed
        );
    });
}

#[test]
fn a_strategic_patch_makes_what_it_was_made_from() {
    every_case(|case| {
        let from = case.object();
        let to = case.changed(&from);
        let patch = strategic::create_two_way(&from, &to, case.ty).expect("a patch");
        let made = strategic::apply(&from, &patch, case.ty).expect("it applies");
        assert!(
            same_content(&made, &to, case.ty),
            "case {}: {from}\n{patch}\nmade {made}\nnot  {to}",
            case.seed
        );
    });
}

#[test]
fn three_way_with_the_live_object_as_original_is_two_way() {
    every_case(|case| {
        let from = case.object();
        let to = case.changed(&from);
        let two = strategic::create_two_way(&from, &to, case.ty).expect("a patch");
        let three = three_way::create(&from, &to, &from, Some(case.ty), true).expect("a patch");
        let apply = |patch| strategic::apply(&from, patch, case.ty).expect("it applies");
        assert_eq!(apply(&two), apply(&three), "case {}", case.seed);
        assert!(
            three_way::create(&from, &to, &from, Some(case.ty), false).is_ok(),
            "case {}: nobody else changed anything",
            case.seed
        );
    });
}

#[test]
fn an_explanation_is_empty_just_when_nothing_changes() {
    every_case(|case| {
        let from = case.object();
        let to = case.changed(&from);
        for original in [&Value::Null, &from] {
            let patch =
                three_way::create(original, &to, &from, Some(case.ty), true).expect("a patch");
            let made = strategic::apply(&from, &patch, case.ty).expect("it applies");
            let changes =
                three_way::explain(original, &to, &from, Some(case.ty)).expect("explained");
            assert_eq!(
                changes.is_empty(),
                made == from,
                "case {}: {changes:?}",
                case.seed
            );
        }
    });
}

fn without_managers(object: &Object) -> Value {
    let mut object = object.clone();
    object.metadata_mut().remove("managedFields");
    object.into_value()
}

/// Nulls and what is left empty tell nothing.
fn trimmed(value: &Value) -> Value {
    let kept = |v: &Value| {
        !(v.is_null()
            || v.as_object().is_some_and(Map::is_empty)
            || v.as_array().is_some_and(Vec::is_empty))
    };
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(k, v)| (k.clone(), trimmed(v)))
                .filter(|(_, v)| kept(v))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.iter().map(trimmed).collect()),
        other => other.clone(),
    }
}

#[test]
fn applying_with_one_manager_replaces() {
    every_case(|case| {
        let api_version = case.gvk.api_version();
        let options = ApplyOptions {
            manager: "m",
            now: "2026-01-01T00:00:00Z",
            api_version: &api_version,
            ..ApplyOptions::default()
        };
        let first = case.object();
        let second = case.changed(&first);
        let object = |v: &Value| Object::from_value(v.clone()).expect("a map");
        let made = apply::apply(None, &object(&first), &options, Some(case.ty))
            .unwrap_or_else(|e| panic!("case {}: {e}", case.seed));
        assert_eq!(without_managers(&made), first, "case {}", case.seed);
        let made = apply::apply(Some(&made), &object(&second), &options, Some(case.ty))
            .unwrap_or_else(|e| panic!("case {}: {e}", case.seed));
        assert_eq!(
            trimmed(&without_managers(&made)),
            trimmed(&second),
            "case {}",
            case.seed
        );
        // What lost its parts in the second step may only now become the empty map that was asked
        // for.
        let again = apply::apply(Some(&made), &object(&second), &options, Some(case.ty))
            .expect("no conflict with itself");
        assert_eq!(
            trimmed(&again.into_value()),
            trimmed(&made.into_value()),
            "case {}: nothing changes the third time",
            case.seed
        );
    });
}

#[test]
fn field_sets_are_read_as_they_were_written() {
    every_case(|case| {
        let object = Object::from_value(case.object()).expect("a map");
        let other = Object::from_value(case.object()).expect("a map");
        let (set, other) = (
            apply::fields(&object, Some(case.ty)),
            apply::fields(&other, Some(case.ty)),
        );
        assert_eq!(
            FieldSet::from_json(&set.to_json()).as_ref(),
            Ok(&set),
            "case {}",
            case.seed
        );
        let (union, shared) = (set.union(&other), set.intersection(&other));
        assert_eq!(
            set.difference(&other).union(&shared),
            set,
            "case {}",
            case.seed
        );
        assert!(
            union
                .paths()
                .iter()
                .all(|p| set.contains(p) || other.contains(p)),
            "case {}",
            case.seed
        );
        assert!(
            shared
                .paths()
                .iter()
                .all(|p| set.contains(p) && other.contains(p)),
            "case {}",
            case.seed
        );
    });
}
