//! Pairing, and which pairs an earlier comparison is asked for.

use super::*;

fn keys(comparison: &Comparison) -> Vec<String> {
    let shown = |e: &Arc<Entry>| {
        format!(
            "{} {}/{}/{}",
            if e.desired.is_some() {
                "wanted"
            } else {
                "extra"
            },
            e.key.group,
            e.key.namespace,
            e.key.name
        )
    };
    comparison.entries.iter().map(shown).collect()
}

/// An object of a kind that the cluster does not know.
fn widget(name: &str) -> Object {
    object(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}))
}

fn at_cluster_scope(object: Object) -> Object {
    let mut there = live(object);
    there.set_namespace("");
    there.set_annotation(
        TRACKING_ID,
        &format!("app:example.com/Widget:prod/{}", there.name()),
    );
    there
}

#[test]
fn of_an_unknown_kind_both_scopes_are_looked_at() {
    let c = run(vec![widget("a")], vec![at_cluster_scope(widget("a"))]);
    assert_eq!(
        (keys(&c), c.sync),
        (
            vec!["wanted example.com/prod/a".to_owned()],
            SyncStatus::Synced
        )
    );
    // A live object with the exact key is preferred; the other one is a different object.
    let mut twin = at_cluster_scope(widget("a"));
    twin.metadata_mut().insert("uid".into(), "another".into());
    let c = run(vec![widget("a")], vec![twin, live(widget("a"))]);
    assert_eq!(
        keys(&c),
        ["extra example.com//a", "wanted example.com/prod/a"]
    );
    assert_eq!(
        c.entries[1]
            .live
            .as_ref()
            .map(|l| l.namespace().to_owned())
            .as_deref(),
        Some("prod")
    );
    // Two desired objects cannot share one live object.
    let mut elsewhere = widget("a");
    elsewhere.set_namespace("other");
    let c = run(
        vec![widget("a"), elsewhere],
        vec![at_cluster_scope(widget("a"))],
    );
    assert_eq!(
        c.entries
            .iter()
            .map(|e| e.live.is_some())
            .collect::<Vec<_>>(),
        [true, false]
    );
}

#[test]
fn of_a_known_kind_only_its_own_scope_is_looked_at() {
    let mut there = live(config_map("a", "1"));
    there.set_namespace("");
    let c = run(vec![config_map("a", "1")], vec![there]);
    assert_eq!(
        c.entries
            .iter()
            .map(|e| (e.desired.is_some(), e.live.is_some()))
            .collect::<Vec<_>>(),
        [(false, true), (true, false)]
    );
}

#[test]
fn what_gets_its_name_from_the_api_server_is_never_there() {
    let unnamed = || {
        object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}}))
    };
    let c = run(vec![unnamed()], vec![live(unnamed())]);
    assert!(
        c.entries
            .iter()
            .all(|e| e.desired.is_none() || e.live.is_none()),
        "{:?}",
        keys(&c)
    );
}

#[test]
fn only_equal_keys_make_a_pair() {
    let c = run(
        vec![config_map("a", "1"), config_map("c", "1")],
        vec![live(config_map("b", "1")), live(config_map("d", "1"))],
    );
    assert_eq!(
        keys(&c),
        [
            "wanted /prod/a",
            "extra /prod/b",
            "wanted /prod/c",
            "extra /prod/d"
        ]
    );
    assert!(
        c.entries
            .iter()
            .all(|e| e.desired.is_none() || e.live.is_none())
    );
}

/// An object that is served under several groups.
fn ingress(group: &str, name: &str, uid: &str) -> Object {
    let mut ingress = live(object(
        json!({"apiVersion": format!("{group}/v1"), "kind": "Ingress", "metadata": {"name": name}}),
    ));
    ingress.metadata_mut().insert("uid".into(), uid.into());
    ingress
}

#[test]
fn twins_that_nobody_wants_become_one() {
    let c = run(
        vec![],
        vec![
            ingress("extensions", "i", "1"),
            ingress("networking.k8s.io", "i", "1"),
        ],
    );
    assert_eq!(
        keys(&c),
        ["extra networking.k8s.io/prod/i"],
        "the last one stays, to be pruned once"
    );
    let c = run(
        vec![],
        vec![
            ingress("a.io", "i", "1"),
            ingress("b.io", "i", "1"),
            ingress("c.io", "i", "1"),
        ],
    );
    assert_eq!(keys(&c), ["extra c.io/prod/i"]);
    // Two pairs of twins are independent, and an object without uid has no twin.
    let c = run(
        vec![],
        vec![
            ingress("a.io", "i", "1"),
            ingress("a.io", "j", "2"),
            ingress("b.io", "i", "1"),
            ingress("b.io", "j", "2"),
        ],
    );
    assert_eq!(keys(&c), ["extra b.io/prod/i", "extra b.io/prod/j"]);
    let c = run(
        vec![],
        vec![ingress("a.io", "i", ""), ingress("b.io", "i", "")],
    );
    assert_eq!(keys(&c), ["extra a.io/prod/i", "extra b.io/prod/i"]);
}

#[test]
fn twins_of_what_is_wanted_go_and_wanted_twins_stay() {
    let wanted = |group: &str| {
        object(
            json!({"apiVersion": format!("{group}/v1"), "kind": "Ingress", "metadata": {"name": "i"}}),
        )
    };
    let there = || {
        vec![
            ingress("a.io", "i", "1"),
            ingress("b.io", "i", "1"),
            ingress("c.io", "i", "1"),
            live(config_map("x", "1")),
        ]
    };
    let c = run(vec![wanted("b.io")], there());
    assert_eq!(keys(&c), ["extra /prod/x", "wanted b.io/prod/i"]);
    let c = run(vec![wanted("a.io"), wanted("c.io")], there());
    assert_eq!(
        keys(&c),
        ["extra /prod/x", "wanted a.io/prod/i", "wanted c.io/prod/i"]
    );
    let c = run(
        vec![wanted("a.io")],
        vec![ingress("a.io", "i", "1"), ingress("b.io", "i", "2")],
    );
    assert_eq!(
        keys(&c),
        ["wanted a.io/prod/i", "extra b.io/prod/i"],
        "of another uid, no twin"
    );
}

/// A twin that the project does not permit does not hide the other one.
#[test]
fn a_forbidden_twin_does_not_count() {
    let mut rules = rules();
    rules.project.namespace_blacklist = vec![KindRule {
        group: "b.io".into(),
        kind: "Ingress".into(),
        name: String::new(),
    }];
    let c = run_with(
        &rules,
        vec![],
        vec![ingress("a.io", "i", "1"), ingress("b.io", "i", "1")],
    );
    assert_eq!(keys(&c), ["extra a.io/prod/i"]);
}

#[test]
fn what_is_wanted_but_may_not_be_looked_after_has_no_live_object() {
    let mut rules = rules();
    rules.project.namespace_blacklist = vec![KindRule {
        group: String::new(),
        kind: "ConfigMap".into(),
        name: String::new(),
    }];
    let c = run_with(
        &rules,
        vec![config_map("a", "1")],
        vec![live(config_map("a", "1"))],
    );
    assert_eq!(
        (
            keys(&c).len(),
            c.entries[0].live.is_some(),
            c.entries[0].status
        ),
        (1, false, Some(SyncStatus::Unknown))
    );
}

#[test]
fn a_managed_namespace_is_only_added_where_it_is_and_git_has_none() {
    let rules = CompareRules {
        managed_namespace: Some(NamespaceMetadata::default()),
        ..rules()
    };
    assert_eq!(
        keys(&run_with(&rules, vec![], vec![])),
        Vec::<String>::new(),
        "not where it is not"
    );
    let namespace =
        || object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}}));
    let hook = annotated(namespace(), marks::HOOK, "PreSync");
    let mut there = namespace();
    there.set_annotation(TRACKING_ID, "app:/Namespace:prod/prod");
    let c = run_with(&rules, vec![hook], vec![there.clone()]);
    assert_eq!(
        (keys(&c), c.hooks.len()),
        (vec!["extra //prod".to_owned()], 1),
        "a hook is in Git, too"
    );
    let c = run_with(&rules, vec![], vec![there.clone()]);
    assert_eq!(keys(&c), ["wanted //prod"]);
    // It is ordered among the others, and reused like them.
    let pod = || object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}));
    let all = by_key(vec![live(pod()), there]);
    let first = compare(
        vec![pod()].into(),
        &all,
        &rules,
        &Kinds,
        None,
        &DryRuns::new(),
    );
    assert_eq!(
        (keys(&first), first.entries[1].live.is_some()),
        (
            vec!["wanted //prod".to_owned(), "wanted /prod/p".to_owned()],
            true
        )
    );
    let second = compare(
        vec![pod()].into(),
        &all,
        &rules,
        &Kinds,
        Some(&first),
        &DryRuns::new(),
    );
    assert!(
        first
            .entries
            .iter()
            .zip(&second.entries)
            .all(|(a, b)| Arc::ptr_eq(a, b))
    );
    let mut other = rules.clone();
    other
        .managed_namespace
        .as_mut()
        .expect("set")
        .labels
        .insert("team".into(), "a".into());
    let third = compare(
        vec![pod()].into(),
        &all,
        &other,
        &Kinds,
        Some(&first),
        &DryRuns::new(),
    );
    assert!(
        first
            .entries
            .iter()
            .zip(&third.entries)
            .all(|(a, b)| !Arc::ptr_eq(a, b))
    );
}

#[test]
fn the_wave_of_a_live_hook_is_that_of_the_wanted_one() {
    let hook = |wave: &str| {
        annotated(
            annotated(config_map("a", "1"), marks::HOOK, "PreSync"),
            marks::SYNC_WAVE,
            wave,
        )
    };
    let wave = |there: Object| run(vec![hook("3")], vec![live(there)]).entries[0].sync_wave;
    assert_eq!(wave(hook("1")), 3);
    assert_eq!(wave(config_map("a", "1")), 0, "no hook");
    let mut other = hook("1");
    other.set_name("b");
    assert_eq!(wave(other), 0, "no hook of its name is wanted");
}

#[test]
fn about_a_live_hook_the_api_server_is_not_asked() {
    let rules = CompareRules {
        server_side_diff: Some(ServerSideDiff {
            include_webhooks: true,
        }),
        ..rules()
    };
    let there = annotated(config_map("a", "2"), marks::HOOK, "PreSync");
    let c = run_with(&rules, vec![config_map("a", "1")], vec![live(there)]);
    assert_eq!(
        (c.unanswered.len(), c.entries[0].status),
        (0, Some(SyncStatus::OutOfSync))
    );
}

fn again(
    before: (Vec<Object>, Vec<Object>),
    now: (Vec<Object>, Vec<Object>),
    kinds: &dyn KindInfo,
) -> Vec<bool> {
    let first = compare(
        before.0.into(),
        &by_key(before.1),
        &rules(),
        &Kinds,
        None,
        &DryRuns::new(),
    );
    first.rest();
    let second = compare(
        now.0.into(),
        &by_key(now.1),
        &rules(),
        kinds,
        Some(&first),
        &DryRuns::new(),
    );
    let taken = |entry: &Arc<Entry>| first.entries.iter().any(|e| Arc::ptr_eq(e, entry));
    second.entries.iter().map(taken).collect()
}

#[test]
fn only_what_is_the_same_is_taken_over() {
    let state = |uid: &str, version: &str| {
        let mut o = live(config_map("a", "1"));
        o.metadata_mut().insert("uid".into(), uid.into());
        o.metadata_mut()
            .insert("resourceVersion".into(), version.into());
        o
    };
    let with = |live: Object| {
        again(
            (vec![config_map("a", "1")], vec![state("u", "7")]),
            (vec![config_map("a", "1")], vec![live]),
            &Kinds,
        )
    };
    assert_eq!(with(state("u", "7")), [true], "read twice");
    assert_eq!(with(state("u", "8")), [false]);
    assert_eq!(with(state("v", "7")), [false]);
    // Without a resourceVersion, nothing can be reused.
    let unknown = || (vec![config_map("a", "1")], vec![state("u", "")]);
    assert_eq!(again(unknown(), unknown(), &Kinds), [false]);
    let mut later = state("u", "7");
    later.0.insert("apiVersion".into(), "v2".into());
    assert_eq!(with(later), [false]);
    // One of many, in the order of keys.
    let three = |b: &str| {
        (
            ["a", "b", "c"]
                .map(|n| config_map(n, if n == "b" { b } else { "1" }))
                .to_vec(),
            ["a", "b", "c"].map(|n| live(config_map(n, "1"))).to_vec(),
        )
    };
    assert_eq!(again(three("1"), three("2"), &Kinds), [true, false, true]);
    // An extra object that became desired, and vice versa.
    let there = || vec![live(config_map("a", "1"))];
    assert_eq!(
        again(
            (vec![], there()),
            (vec![config_map("a", "1")], there()),
            &Kinds
        ),
        [false]
    );
    assert_eq!(
        again(
            (vec![config_map("a", "1")], there()),
            (vec![], there()),
            &Kinds
        ),
        [false]
    );
    assert_eq!(
        again(
            (vec![config_map("a", "1")], vec![]),
            (vec![config_map("a", "1")], there()),
            &Kinds
        ),
        [false]
    );
    assert_eq!(again((vec![], there()), (vec![], there()), &Kinds), [true]);
    assert_eq!(
        again(
            (vec![], there()),
            (vec![config_map("b", "1")], there()),
            &Kinds
        ),
        [true, false],
        "whatever else is wanted now"
    );
}

#[test]
fn a_live_hook_is_judged_anew_when_the_targets_are_others() {
    let hook = |wave: &str| {
        annotated(
            annotated(config_map("a", "1"), marks::HOOK, "PreSync"),
            marks::SYNC_WAVE,
            wave,
        )
    };
    let there = || vec![live(hook("1"))];
    assert_eq!(
        again(
            (vec![hook("3")], there()),
            (vec![hook("3")], there()),
            &Kinds
        ),
        [true]
    );
    assert_eq!(
        again(
            (vec![hook("3")], there()),
            (vec![hook("4")], there()),
            &Kinds
        ),
        [false]
    );
}

/// A cluster that has learned about a kind since.
struct Later;

impl KindInfo for Later {
    fn is_namespaced(&self, gk: &GroupKind) -> Option<bool> {
        if gk.kind == "Widget" {
            Some(true)
        } else {
            Kinds.is_namespaced(gk)
        }
    }
}

#[test]
fn nothing_is_taken_over_when_the_cluster_has_learnt_of_one_of_the_kinds() {
    let both = || {
        (
            vec![config_map("a", "1"), widget("w")],
            vec![live(config_map("a", "1"))],
        )
    };
    assert_eq!(again(both(), both(), &Kinds), [true, true]);
    assert_eq!(again(both(), both(), &Later), [false, false]);
    let extra = || (vec![], vec![live(widget("w"))]);
    assert_eq!(again(extra(), extra(), &Later), [false]);
    let other = || (vec![config_map("a", "1")], vec![live(config_map("a", "1"))]);
    assert_eq!(
        again(other(), other(), &Later),
        [true],
        "no kind of its own"
    );
}
