//! Tables of three-way merges: which value stays, and in which list its path is.

use super::*;
use serde_json::json;

fn values(value: Value) -> Values {
    match value {
        Value::Object(values) => values,
        _ => Values::new(),
    }
}

fn merged(old: Value, ours: Value, theirs: Value, prefer: Prefer) -> Merged {
    merge(&values(old), &values(ours), &values(theirs), prefer)
}

/// Old default, the user's, new default (null: none) and what comes of it: the value that is kept,
/// and in which list the path is.
#[test]
fn one_value() {
    let none = || Value::Null;
    for (old, ours, theirs, kept, list) in [
        // Untouched: the new default.
        (json!(1), none(), json!(2), none(), "taken"),
        (json!(1), json!(1), json!(2), none(), "taken"),
        (json!(1), json!(1.0), json!(2), none(), "taken"),
        (json!(1), none(), json!(1), none(), ""),
        (none(), none(), json!(2), none(), "taken"),
        (json!(1), none(), none(), none(), "gone"),
        (json!(1), json!(1), none(), none(), "gone"),
        // Touched: the user's.
        (json!(1), json!(3), json!(1), json!(3), ""),
        (json!(1), json!(3), json!(2), json!(3), "conflict"),
        (json!(1), json!(3), none(), json!(3), "removed"),
        (none(), json!(3), none(), json!(3), "unknown"),
        (none(), json!(3), json!(2), json!(3), "conflict"),
        // Both in the same way.
        (json!(1), json!(2), json!(2), none(), "taken"),
        // Lists and other types are one value.
        (
            json!([1]),
            json!([1, 2]),
            json!([3]),
            json!([1, 2]),
            "conflict",
        ),
        (json!({"a": 1}), json!("x"), json!({"a": 1}), json!("x"), ""),
        (
            json!({"a": 1}),
            json!("x"),
            json!({"a": 2}),
            json!("x"),
            "conflict",
        ),
        (
            json!("x"),
            json!({"a": 1}),
            json!("y"),
            json!({"a": 1}),
            "conflict",
        ),
        (
            json!({}),
            json!({"a": 1}),
            json!({}),
            json!({"a": 1}),
            "unknown",
        ),
    ] {
        let of = |value: &Value| match value {
            Value::Null => json!({}),
            value => json!({"k": value}),
        };
        let done = merged(of(&old), of(&ours), of(&theirs), Prefer::Ours);
        let case = format!("{old} {ours} {theirs}");
        assert_eq!(Value::Object(done.values.clone()), of(&kept), "{case}");
        let paths = done.conflicts.iter().map(|conflict| &conflict.path);
        for (name, found) in [
            ("conflict", paths.collect::<Vec<_>>()),
            ("removed", done.removed_in_chart.iter().collect()),
            ("unknown", done.unknown_to_chart.iter().collect()),
            ("taken", done.taken_from_new.iter().collect()),
            ("gone", done.gone.iter().collect()),
        ] {
            assert_eq!(
                found.len(),
                usize::from(name == list),
                "{case}: {name} {found:?}"
            );
        }
    }
}

#[test]
fn a_deleted_default_stays_deleted() {
    let (old, ours) = (json!({"a": {"b": 1}}), json!({"a": {"b": null}, "c": null}));
    let done = merged(old, ours.clone(), json!({"a": {"b": 1}}), Prefer::Ours);
    assert_eq!(Value::Object(done.values), ours);
    assert!(done.conflicts.is_empty());
}

#[test]
fn the_charts_side_can_be_preferred() {
    let old = json!({"a": {"x": 1, "y": 1}, "own": 0});
    let ours = json!({"a": {"x": 2, "y": 2}, "own": 1});
    let theirs = json!({"a": {"x": 3, "y": 1}, "own": 0});
    let done = merged(old, ours, theirs, Prefer::Theirs);
    assert_eq!(Value::Object(done.values), json!({"a": {"y": 2}, "own": 1}));
    let conflict = &done.conflicts[0];
    assert_eq!(
        (
            &*conflict.path,
            &conflict.old,
            &conflict.ours,
            &conflict.theirs
        ),
        ("a.x", &Some(json!(1)), &json!(2), &Some(json!(3)))
    );
    assert_eq!(done.taken_from_new, ["a.x"]);
    assert_eq!(done.dropped, [["a", "x"]]);
}

#[test]
fn a_table_without_anything_left_is_dropped_as_a_whole() {
    let old = json!({"a": {"b": {"c": 1}}, "d": 1});
    let done = merged(old.clone(), old.clone(), old, Prefer::Ours);
    assert!(done.values.is_empty());
    assert_eq!(done.dropped, [["a"], ["d"]]);
}

#[test]
fn paths_say_what_is_decided() {
    let values = values(json!({"a": {"b": 1}, "x.y": {"z": 1}, "t": "text"}));
    for (path, wanted) in [
        ("a", true),
        ("a.b", true),
        ("a.c", false),
        ("ab", false),
        ("x\\.y.z", true),
        ("x.y.z", false),
        ("t.u", true),
    ] {
        assert_eq!(has(&values, path), wanted, "{path}");
    }
}
