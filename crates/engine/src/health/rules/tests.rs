//! The rule language, tested on small rules; and that the shipped rules can be parsed. The results
//! of the shipped rules are tested on recorded cases.

use super::{
    FILES, Known, eval,
    parse::{Shared, parse},
};
use serde_json::{Value, json};

/// `STATUS message`: the result of one kind's rules on an object.
fn judged(rules: &str, object: &Value) -> String {
    let text = format!("kind g/K\n{rules}");
    let kinds = parse("test", &text, &Shared::new()).expect("rules");
    let object = object.as_object().expect("a map");
    eval::judge(&kinds[0].rules, object).map_or_else(
        || "none".into(),
        |h| format!("{} {}", h.status.as_str(), h.message),
    )
}

fn refused(text: &str) -> String {
    parse("f", text, &Shared::new())
        .expect_err("should be refused")
        .to_string()
}

#[test]
fn all_files_can_be_read_and_no_kind_stands_twice() {
    let known = Known::read(FILES).unwrap_or_else(|error| panic!("{error}"));
    for (kind, groups) in &known.exact {
        let mut names: Vec<_> = groups.iter().map(|(group, _)| group).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), groups.len(), "{kind} has rules twice");
    }
}

#[test]
fn the_first_item_that_matches_decides() {
    let rules = "  each conditions\n    Degraded if Ready is False: .message\n    Healthy if Synced is True\n  Progressing: \"waiting\"\n";
    let conditions = |list: Value| json!({"status": {"conditions": list}});
    let ready = json!({"type": "Ready", "status": "False", "message": "bad"});
    let synced = json!({"type": "Synced", "status": "True"});
    assert_eq!(
        judged(rules, &conditions(json!([synced, ready]))),
        "Healthy "
    );
    assert_eq!(
        judged(rules, &conditions(json!([ready, synced]))),
        "Degraded bad"
    );
    assert_eq!(judged(rules, &conditions(json!([]))), "Progressing waiting");
    assert_eq!(judged(rules, &json!({"status": 3})), "Progressing waiting");
}

#[test]
fn messages_have_holes_defaults_and_numbers() {
    let object =
        json!({"kind": "K", "status": {"ready": 2, "ratio": 0.5, "parents": [{"name": "a"}, {}]}});
    let rules = "  Healthy: \"{kind}: {status.ready}/{status.size or 'none'} {status.ratio} \\{{join(status.parents, .name or '?', '+')}\\}\"\n";
    assert_eq!(judged(rules, &object), "Healthy K: 2/none 0.5 {a+?}");
}

/// The texts and the verdicts of Argo CD's scripts for the same objects.
#[test]
fn null_items_are_not_there_and_numbers_are_printed_as_in_lua() {
    let rules = "  Degraded if not all(status.nodes, .ready): \"not ready\"\n  Progressing if empty(status.pods): \"no pods\"\n  Healthy: \"{join(status.nodes, '{index} {.n}', ' | ')}\"\n";
    let of = |nodes: Value, pods: Value| {
        let status = json!({"nodes": nodes, "pods": pods});
        judged(rules, &json!({"status": status}))
    };
    let node = |n: f64| json!({"ready": true, "n": n});
    assert_eq!(
        of(json!([null, node(1.0), null, node(2.5)]), json!(["a"])),
        "Healthy 1 1 | 2 2.5"
    );
    assert_eq!(
        of(json!({"a": null, "b": node(3.0)}), json!([null])),
        "Progressing no pods"
    );
    assert_eq!(
        of(
            json!([node(1e15), node(1e21), node(1_234_567.5), node(0.000_01)]),
            json!({"a": 1, "b": null})
        ),
        "Healthy 1 1000000000000000 | 2 1e+21 | 3 1.2345675e+06 | 4 1e-05"
    );
}

#[test]
fn names_and_nested_items_mean_what_is_nearest() {
    let rules = "  let limit = status.limit or 1\n  each status.parents as parent\n    each .conditions\n      let seen = .n - limit\n      Degraded if seen > 0: \"{parent.name} {index} {seen}\"\n  Healthy if any(status.parents, any(.conditions, .n == 1))\n";
    let parents = json!([{"name": "a", "conditions": [{"n": 1}]}, {"name": "b", "conditions": [{"n": 0}, {"n": 5}]}]);
    assert_eq!(
        judged(rules, &json!({"status": {"parents": parents, "limit": 2}})),
        "Degraded b 2 3"
    );
    assert_eq!(
        judged(rules, &json!({"status": {"parents": parents, "limit": 9}})),
        "Healthy "
    );
}

#[test]
fn what_cannot_be_compared_does_not_hold() {
    let rules = "  Degraded if status.a < 3 or status.a >= 3\n  Unknown if status.a == \"3\"\n  Healthy if status.a != 3\n";
    assert_eq!(judged(rules, &json!({"status": {"a": "3"}})), "Unknown ");
    assert_eq!(judged(rules, &json!({"status": {"a": [3]}})), "Healthy ");
    assert_eq!(judged(rules, &json!({"status": null})), "Healthy ");
    assert_eq!(judged(rules, &json!({"status": {"a": 3.0}})), "Degraded ");
}

#[test]
fn parts_of_lists_end_or_begin_where_something_holds() {
    let list = |numbers: &[i64]| json!({"status": {"list": numbers}});
    let rules =
        "  Healthy: \"{join(upto(status.list, . > 2))}; {join(since(status.list, . > 2))}\"\n";
    assert_eq!(judged(rules, &list(&[1, 3, 2, 4, 1])), "Healthy 1, 3; 4, 1");
    assert_eq!(judged(rules, &list(&[1, 2])), "Healthy 1, 2; 1, 2");
    assert_eq!(judged(rules, &list(&[])), "Healthy ; ");
}

#[test]
fn sorting_takes_keys_of_any_type() {
    let rules = "  Healthy: \"{join(sorted(status.list, .k), .n)}\"\n";
    let list = json!([{"n": 1}, {"n": 2, "k": "b"}, {"n": 3, "k": 7}, {"n": 4, "k": "a"}, {"n": 5, "k": []}, {"n": 6}]);
    assert_eq!(
        judged(rules, &json!({"status": {"list": list}})),
        "Healthy 3, 4, 2, 5, 1, 6"
    );
}

#[test]
fn shared_rules_are_read_where_they_are_used() {
    let text = "rules ready\n  Healthy if Ready is True: \"{what} is ready\"\nkind g/A, B\n  let what = kind\n  use ready\n";
    let known = Known::read(&[("f", text)]).expect("rules");
    let object =
        json!({"kind": "B", "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let health = eval::judge(
        known.rules_of("g", "B").expect("B"),
        object.as_object().expect("a map"),
    );
    assert_eq!(health.expect("a verdict").message, "B is ready");
}

#[test]
fn a_group_pattern_yields_to_the_exact_kind() {
    let known = Known::read(&[("f", "kind *.x.io/*\n  Healthy\nkind a.x.io/K\n  Degraded\n")])
        .expect("rules");
    assert!(std::ptr::eq(
        known.rules_of("a.x.io", "K").expect("exact"),
        known.rules[1].as_slice()
    ));
    assert!(std::ptr::eq(
        known.rules_of("b.a.x.io", "K").expect("pattern"),
        known.rules[0].as_slice()
    ));
    assert!(known.rules_of("x.io", "K").is_none());
}

#[test]
fn errors_name_file_and_line() {
    assert_eq!(
        refused("kind g/K\n  Healthy if statsu.phase\n"),
        "f:2: `statsu` is not known here"
    );
    assert_eq!(
        refused("# x\n\nkind g/K\n  Fine\n"),
        "f:4: `Fine` is neither a status nor one of let, each, if, use"
    );
    assert_eq!(
        refused("kind g/K\n  Healthy: .message\n"),
        "f:2: there is no item here for `.` to mean"
    );
    assert_eq!(
        refused("kind g/K\n  Healthy: \"{kind\"\n"),
        "f:2: a hole is not closed with `}`"
    );
    assert_eq!(
        refused("kind g/K\n  Healthy if starts(kind)\n"),
        "f:2: `starts` takes 2 values, not 1"
    );
    assert_eq!(
        refused("kind g/K\n  use more\n"),
        "f:2: there is no `rules more` above"
    );
    assert_eq!(
        refused("kind K\n  Healthy\n"),
        "f:1: expected `kind GROUP/KIND, KIND, …`"
    );
    assert_eq!(
        refused("Healthy\n"),
        "f:1: expected `kind GROUP/KIND` or `rules NAME`"
    );
    assert_eq!(
        refused("kind g/K\n  Healthy if kind == 1 2\n"),
        "f:2: unexpected `2`"
    );
}
