//! Creates inputs from seeds: JSON trees whose parts are replaced, removed, duplicated and renamed,
//! and texts whose bytes are.
//!
//! Main function: [`input`], which does not know what the input is for.

use serde_json::{Map, Value, json};
use tiphys_testkit::Rng;

/// Maximum number of changes in one input.
const MOST: u64 = 6;
/// Keys with a special meaning somewhere.
const KEYS: [&str; 22] = [
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "$deleteFromPrimitiveList",
    "name",
    "metadata",
    "spec",
    "containers",
    "ports",
    "type",
    "properties",
    "items",
    "additionalProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "default",
    "$ref",
    "f:spec",
    ".",
    "k:{\"name\":\"a\"}",
    "v:1",
];

/// Bytes with a special meaning in JSON or templates.
const BYTES: &[u8] = b"{}[]\",:\\u0-eE.\n\xff|()$=%`'/* ";

/// Input number `index`: one of the seeds, changed. The first inputs are the unchanged seeds.
pub fn input(seeds: &str, seed: u64, index: u64) -> Vec<u8> {
    let lines: Vec<&str> = seeds.lines().filter(|l| !l.is_empty()).collect();
    if let Some(line) = lines.get(index as usize) {
        return line.as_bytes().to_vec();
    }
    let mut rng = Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index);
    rng.next_u64();
    let line = lines[rng.below(lines.len() as u64) as usize];
    let other = lines[rng.below(lines.len() as u64) as usize];
    let text = match serde_json::from_str::<Value>(line) {
        Ok(mut tree) if rng.below(10) < 8 => {
            let donor: Value = serde_json::from_str(other).unwrap_or_default();
            for _ in 0..=rng.below(MOST) {
                change(&mut tree, &donor, &mut rng);
            }
            tree.to_string()
        }
        _ => line.to_owned(),
    };
    let mut bytes = text.into_bytes();
    if rng.below(10) < 3 {
        for _ in 0..=rng.below(MOST) {
            scramble(&mut bytes, other.as_bytes(), &mut rng);
        }
    }
    bytes
}

fn size(tree: &Value) -> u64 {
    1 + match tree {
        Value::Array(list) => list.iter().map(size).sum(),
        Value::Object(map) => map.values().map(size).sum(),
        _ => 0,
    }
}

/// Node number `n` in depth-first order.
fn node(tree: &mut Value, n: u64) -> &mut Value {
    if n == 0 {
        return tree;
    }
    let mut rest = n - 1;
    // Sizes first, because the borrow checker does not see that the loop is left only with the
    // child it found.
    let sizes: Vec<u64> = match tree {
        Value::Array(list) => list.iter().map(size).collect(),
        Value::Object(map) => map.values().map(size).collect(),
        _ => Vec::new(),
    };
    let mut at = 0;
    while at < sizes.len() && rest >= sizes[at] {
        rest -= sizes[at];
        at += 1;
    }
    if at >= sizes.len() {
        return tree;
    }
    match tree {
        Value::Array(list) => node(&mut list[at], rest),
        Value::Object(map) => node(
            map.values_mut()
                .nth(at)
                .expect("it has as many values as sizes"),
            rest,
        ),
        other => other,
    }
}

fn change(tree: &mut Value, donor: &Value, rng: &mut Rng) {
    let (count, donor_count) = (size(tree), size(donor));
    let mut donor = donor.clone();
    let part = node(&mut donor, rng.below(donor_count)).clone();
    let at = node(tree, rng.below(count));
    match rng.below(8) {
        0 => *at = part,
        1 => *at = scalar(rng),
        2 => remove(at, rng),
        3 => rename(at, rng),
        4 => add(at, part, rng),
        5 => double(at, rng),
        6 => *at = nested(part, rng),
        _ => add(at, scalar(rng), rng),
    }
}

fn scalar(rng: &mut Rng) -> Value {
    let all = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(-0.0),
        json!(1.0),
        json!(1e300),
        json!(""),
        json!("a"),
        json!("delete"),
        json!("replace"),
        json!("merge"),
        json!("object"),
        json!("array"),
        json!("map"),
        json!("set"),
        json!("/a/-1"),
        json!("/metadata/name"),
        json!({}),
        json!([]),
        json!([{}]),
        json!([[]]),
        json!([null]),
        json!("\u{0}\u{10ffff}"),
    ];
    all[rng.below(all.len() as u64) as usize].clone()
}

fn key(map: &Map<String, Value>, rng: &mut Rng) -> Option<String> {
    map.keys()
        .nth(rng.below(map.len() as u64) as usize)
        .cloned()
}

fn remove(at: &mut Value, rng: &mut Rng) {
    match at {
        Value::Array(list) if !list.is_empty() => {
            drop(list.remove(rng.below(list.len() as u64) as usize))
        }
        Value::Object(map) => {
            key(map, rng).and_then(|k| map.remove(&k));
        }
        other => *other = Value::Null,
    }
}

fn rename(at: &mut Value, rng: &mut Rng) {
    if let Value::Object(map) = at
        && let Some(old) = key(map, rng)
        && let Some(value) = map.remove(&old)
    {
        map.insert(
            KEYS[rng.below(KEYS.len() as u64) as usize].to_owned(),
            value,
        );
    }
}

fn add(at: &mut Value, value: Value, rng: &mut Rng) {
    match at {
        Value::Array(list) => list.insert(rng.below(list.len() as u64 + 1) as usize, value),
        Value::Object(map) => {
            map.insert(
                KEYS[rng.below(KEYS.len() as u64) as usize].to_owned(),
                value,
            );
        }
        other => *other = value,
    }
}

fn double(at: &mut Value, rng: &mut Rng) {
    if let Value::Array(list) = at
        && !list.is_empty()
    {
        let item = list[rng.below(list.len() as u64) as usize].clone();
        let times = if rng.below(20) == 0 { 200 } else { 1 };
        list.extend(std::iter::repeat_n(item, times));
    }
}

/// The value, nested deeply in lists or maps.
fn nested(mut value: Value, rng: &mut Rng) -> Value {
    let depth = if rng.below(10) == 0 {
        110
    } else {
        rng.below(5)
    };
    let key = KEYS[rng.below(KEYS.len() as u64) as usize];
    for _ in 0..depth {
        value = if rng.below(2) == 0 {
            json!([value])
        } else {
            json!({ key: value })
        };
    }
    value
}

fn scramble(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = rng.below(bytes.len() as u64 + 1) as usize;
    match rng.below(6) {
        0 if at < bytes.len() => bytes[at] = rng.next_u64() as u8,
        1 => bytes.insert(at, BYTES[rng.below(BYTES.len() as u64) as usize]),
        2 if at < bytes.len() => drop(bytes.remove(at)),
        3 => bytes.truncate(at),
        4 => {
            let open = if rng.below(2) == 0 {
                b"[".as_slice()
            } else {
                b"{\"a\":".as_slice()
            };
            let many = open.repeat(rng.below(20_000) as usize);
            bytes.splice(at..at, many);
        }
        _ => {
            let from = rng.below(other.len() as u64 + 1) as usize;
            bytes.splice(at..at, other[from..].iter().copied());
        }
    }
}
