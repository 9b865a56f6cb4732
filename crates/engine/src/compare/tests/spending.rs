//! The budget of users' programs in a whole comparison.

use super::*;
use crate::{compare::compare_within, spending::Spending};

/// Several thousand steps for each object, whatever its content.
const LONG: &str = r#".data | select(last(range(10000)) == 0)"#;

fn spent(steps: u64, previous: Option<&Comparison>, expression: &str) -> Comparison {
    let rule = IgnoreRule {
        kind: "ConfigMap".into(),
        jq_path_expressions: vec![expression.into()],
        ..IgnoreRule::default()
    };
    let rules = CompareRules {
        ignore_differences: vec![rule],
        ..rules()
    };
    let names: Vec<String> = (0..10).map(|n| format!("m{n}")).collect();
    let desired: Vec<Object> = names.iter().map(|name| config_map(name, "1")).collect();
    let there: Vec<Object> = names
        .iter()
        .map(|name| live(config_map(name, "1")))
        .collect();
    compare_within(
        desired.into(),
        &by_key(there),
        &rules,
        &Kinds,
        previous,
        &DryRuns::new(),
        &Spending::new(steps),
    )
}

fn unknown(c: &Comparison) -> Vec<&str> {
    c.entries
        .iter()
        .filter(|e| e.status == Some(SyncStatus::Unknown))
        .map(|e| &*e.key.name)
        .collect()
}

#[test]
fn objects_for_which_nothing_is_left_are_named_with_the_expression() {
    let enough = spent(10_000_000, None, LONG);
    assert_eq!(
        (enough.sync, messages(&enough)),
        (SyncStatus::Synced, Vec::new())
    );

    let c = spent(100_000, None, LONG);
    let unknown_first = unknown(&c);
    assert!(
        !unknown_first.is_empty() && unknown_first.len() < 10,
        "{unknown_first:?}"
    );
    assert_eq!(
        (c.sync, unknown_first.last()),
        (SyncStatus::Unknown, Some(&"m9"))
    );
    let texts = messages(&c);
    assert_eq!(texts.len(), unknown_first.len());
    for (text, name) in texts.iter().zip(&unknown_first) {
        let wanted = format!(
            "ComparisonError: Failed to compare desired state to live state: failed to calculate diff: ConfigMap prod/{name}: \
             jqPathExpressions {LONG:?}: the programs of this comparison take more than 100000 steps together"
        );
        assert_eq!(*text, wanted);
    }
    assert!(
        c.entries
            .iter()
            .filter(|e| unknown_first.contains(&&*e.key.name))
            .all(|e| e.judged == Judged::Refused)
    );

    // Entries that were judged are reused, so the next comparison gets further.
    let next = spent(100_000, Some(&c), LONG);
    assert!(
        unknown(&next).len() < unknown_first.len(),
        "{:?}",
        unknown(&next)
    );
    let mut last = next;
    for _ in 0..10 {
        last = spent(100_000, Some(&last), LONG);
    }
    assert_eq!(
        (last.sync, messages(&last)),
        (SyncStatus::Synced, Vec::new())
    );
}

#[test]
fn one_endless_expression_takes_no_more_than_the_comparison_has() {
    let c = spent(50_000, None, ".data | select(last(range(1000000000)) == 0)");
    assert_eq!(
        (c.sync, unknown(&c).len(), messages(&c).len()),
        (SyncStatus::Unknown, 10, 10)
    );
}

#[test]
fn health_scripts_take_of_the_same() {
    let script = "local n = 0\nfor i = 1, 20000 do n = n + i end\nreturn {status = 'Healthy'}";
    let config = BTreeMap::from([(
        "resource.customizations.health.ConfigMap".to_owned(),
        script.to_owned(),
    )]);
    let (customizations, problems) =
        crate::customize::read(&config, || jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(problems, Vec::<String>::new());
    let rules = CompareRules {
        customizations: Arc::new(customizations),
        ..rules()
    };
    let there = by_key(
        (0..10)
            .map(|n| live(config_map(&format!("m{n}"), "1")))
            .collect(),
    );
    let desired = || {
        (0..10)
            .map(|n| config_map(&format!("m{n}"), "1"))
            .collect::<Vec<_>>()
    };
    let run = |steps: u64, previous: Option<&Comparison>| {
        compare_within(
            desired().into(),
            &there,
            &rules,
            &Kinds,
            previous,
            &DryRuns::new(),
            &Spending::new(steps),
        )
    };
    let c = run(100_000, None);
    let unread = c.entries.iter().filter(|e| e.unreadable.is_some()).count();
    assert!(unread > 0 && unread < 10, "{unread}");
    let text = format!(
        "ComparisonError: error setting app health: see application-controller logs for {} other errors; most recent error was: failed to get \
         resource health for \"ConfigMap\" with name \"m9\" in namespace \"prod\": failed to get resource health for prod/m9: health script of ConfigMap: the programs of this comparison \
         take more than 100000 steps together",
        unread - 1
    );
    assert_eq!((messages(&c), c.sync), (vec![text], SyncStatus::Synced));
    let mut last = run(100_000, Some(&c));
    for _ in 0..10 {
        last = run(100_000, Some(&last));
    }
    assert_eq!(
        (messages(&last), last.health.status),
        (Vec::new(), HealthStatus::Healthy)
    );
}
