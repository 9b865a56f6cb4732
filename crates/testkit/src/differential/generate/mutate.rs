//! Damages valid objects in plausible ways. Main function: [`mutate`].

use crate::Rng;
use serde_json::{Map, Value, json};

/// A path in a tree.
pub type Way = Vec<Step>;

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// One element of a list.
pub fn pick<'a, T>(rng: &mut Rng, list: &'a [T]) -> &'a T {
    &list[usize::try_from(rng.below(list.len() as u64)).unwrap_or_default()]
}

/// True in `percent` of 100 cases.
pub fn chance(rng: &mut Rng, percent: u64) -> bool {
    rng.below(100) < percent
}

/// All paths to parts of a tree below its root.
pub fn ways(value: &Value) -> Vec<Way> {
    let mut out = Vec::new();
    let mut queue: Vec<(Way, &Value)> = vec![(Vec::new(), value)];
    while let Some((way, value)) = queue.pop() {
        let children: Vec<(Step, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(k, v)| (Step::Key(k.clone()), v)).collect(),
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(i, v)| (Step::Index(i), v))
                .collect(),
            _ => Vec::new(),
        };
        for (step, child) in children {
            let mut inner = way.clone();
            inner.push(step);
            out.push(inner.clone());
            queue.push((inner, child));
        }
    }
    out
}

pub fn at<'a>(value: &'a mut Value, way: &[Step]) -> Option<&'a mut Value> {
    way.iter()
        .try_fold(value, |value, step| match (step, value) {
            (Step::Key(key), Value::Object(map)) => map.get_mut(key),
            (Step::Index(index), Value::Array(list)) => list.get_mut(*index),
            _ => None,
        })
}

/// Changes one place, but not the identity (type and name), which other operations test.
pub fn mutate(rng: &mut Rng, object: &mut Value, donor: &Map<String, Value>) {
    let kept = |way: &Way| {
        let key = |n: usize| match way.get(n) {
            Some(Step::Key(key)) => key.as_str(),
            _ => "",
        };
        matches!(key(0), "apiVersion" | "kind")
            || (key(0) == "metadata" && (way.len() == 1 || matches!(key(1), "name" | "namespace")))
    };
    let ways: Vec<Way> = ways(object).into_iter().filter(|w| !kept(w)).collect();
    if ways.is_empty() || chance(rng, 8) {
        borrow(rng, object, donor);
        return;
    }
    let way = pick(rng, &ways).clone();
    if chance(rng, 25) {
        remove(object, &way);
        return;
    }
    if let Some(value) = at(object, &way) {
        change(rng, value);
    }
}

/// Copies a field from another object of the kind.
fn borrow(rng: &mut Rng, object: &mut Value, donor: &Map<String, Value>) {
    let donor = Value::Object(donor.clone());
    let ways = ways(&donor);
    if ways.is_empty() {
        return;
    }
    let way = pick(rng, &ways).clone();
    let mut copy = donor.clone();
    let Some(value) = at(&mut copy, &way).map(|v| v.clone()) else {
        return;
    };
    let mut target = object;
    for step in &way {
        target = match (step, target) {
            (Step::Key(key), Value::Object(map)) => {
                map.entry(key.clone()).or_insert_with(|| json!({}))
            }
            (Step::Index(index), Value::Array(list)) if *index < list.len() => &mut list[*index],
            _ => return,
        };
    }
    *target = value;
}

fn remove(object: &mut Value, way: &[Step]) {
    let Some((last, before)) = way.split_last() else {
        return;
    };
    match (last, at(object, before)) {
        (Step::Key(key), Some(Value::Object(map))) => {
            map.remove(key);
        }
        (Step::Index(index), Some(Value::Array(list))) if *index < list.len() => {
            list.remove(*index);
        }
        _ => {}
    }
}

fn change(rng: &mut Rng, value: &mut Value) {
    if chance(rng, 12) {
        *value = wrong_type(rng, value);
        return;
    }
    match value {
        Value::Object(map) => match rng.below(4) {
            0 => map.clear(),
            1 => drop(map.insert("bogusField".into(), "x".into())),
            2 => drop(map.insert("Bad_Key!/x/y".into(), "v".into())),
            _ => *value = Value::Null,
        },
        Value::Array(list) => match rng.below(5) {
            0 => list.clear(),
            1 if !list.is_empty() => list.push(list[0].clone()),
            2 => list.push(json!({})),
            3 if list.len() > 1 => list.swap(0, 1),
            _ => *value = Value::Null,
        },
        Value::String(text) => *value = changed_text(rng, text).into(),
        Value::Number(number) => {
            let n = number.as_i64().unwrap_or(1);
            *value = pick(
                rng,
                &[
                    json!(-1),
                    json!(0),
                    json!(n + 1),
                    json!(70_000),
                    json!(5_000_000_000_i64),
                    json!(1.5),
                    json!(100),
                ],
            )
            .clone();
        }
        Value::Bool(flag) => *value = Value::Bool(!*flag),
        Value::Null => *value = json!("x"),
    }
}

fn changed_text(rng: &mut Rng, text: &str) -> String {
    match rng.below(9) {
        0 => String::new(),
        1 => "Bogus".to_owned(),
        2 => "Bad_Name!".to_owned(),
        3 => "x".repeat(300),
        4 => "x".repeat(64),
        5 => format!("{text}-2"),
        6 => text.to_ascii_uppercase(),
        7 => "-a.".to_owned(),
        _ => format!("other{}", rng.below(3)),
    }
}

fn wrong_type(rng: &mut Rng, value: &Value) -> Value {
    let all = [
        json!("text"),
        json!(7),
        json!(true),
        json!({"a": "b"}),
        json!(["a"]),
        json!([{"a": 1}]),
    ];
    let others: Vec<Value> = all
        .into_iter()
        .filter(|o| std::mem::discriminant(o) != std::mem::discriminant(value))
        .collect();
    pick(rng, &others).clone()
}
