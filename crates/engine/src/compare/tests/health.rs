//! The health of an Application, computed from its resources.

use super::*;

#[test]
fn c33_a_missing_resource_does_not_make_the_others_unwell() {
    let c = run(
        vec![config_map("a", "1"), config_map("b", "1")],
        vec![live(config_map("a", "1"))],
    );
    let missing = c.entries[1].health.as_ref().map(|h| h.status);
    assert_eq!(
        (missing, c.health.status),
        (Some(HealthStatus::Missing), HealthStatus::Healthy)
    );
    // A live hook is not one of the expected resources.
    let hook = annotated(config_map("hook", "1"), marks::HOOK, "PreSync");
    assert_eq!(
        run(vec![config_map("a", "1")], vec![live(hook)]).health,
        Health::new(HealthStatus::Missing, "")
    );
}

/// Rules with a health script for objects of a kind.
fn judging(kind: &str, script: &str) -> CompareRules {
    let config = BTreeMap::from([(
        format!("resource.customizations.health.{kind}"),
        script.to_owned(),
    )]);
    let (customizations, problems) =
        crate::customize::read(&config, || jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(problems, Vec::<String>::new());
    CompareRules {
        customizations: Arc::new(customizations),
        ..rules()
    }
}

#[test]
fn c32_from_the_best_to_the_worst() {
    let rules = judging("ConfigMap", "return {status = obj.data.key}");
    let order = [
        "Healthy",
        "Suspended",
        "Progressing",
        "Missing",
        "Degraded",
        "Unknown",
    ];
    for (better, worse) in order.iter().zip(&order[1..]) {
        for names in [["a", "b"], ["b", "a"]] {
            let there = vec![
                live(config_map(names[0], better)),
                live(config_map(names[1], worse)),
            ];
            let health = run_with(&rules, vec![], there).health;
            assert_eq!(
                (health.status.as_str(), health.message),
                (*worse, format!("Caused by ConfigMap:prod/{}", names[1]))
            );
        }
    }
}

#[test]
fn c34_hooks_and_skipped_resources_do_not_count() {
    let failed = |hook: &str| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"restartPolicy": "Never"}, "status": {"phase": "Failed"}});
        if hook.is_empty() {
            object(pod)
        } else {
            annotated(object(pod), marks::HOOK, hook)
        }
    };
    let health = |hook| {
        run(vec![failed(hook)], vec![live(failed(hook))])
            .health
            .status
    };
    assert_eq!(
        ["", "PreSync", "Skip"].map(health),
        [
            HealthStatus::Degraded,
            HealthStatus::Healthy,
            HealthStatus::Healthy
        ]
    );
}

#[test]
fn c36_a_child_application_counts_unless_it_is_missing_or_unknown() {
    let rules = judging(
        "argoproj.io_Application",
        "return {status = obj.status.health.status}",
    );
    let child = |status: &str| {
        live(object(
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "child"},
            "status": {"health": {"status": status}}}),
        ))
    };
    let parent = |status| {
        run_with(&rules, vec![], vec![child(status)])
            .health
            .status
            .as_str()
    };
    let seen = ["Healthy", "Progressing", "Degraded", "Missing", "Unknown"].map(parent);
    assert_eq!(
        seen,
        ["Healthy", "Progressing", "Degraded", "Healthy", "Healthy"]
    );
}

#[test]
fn c39_of_several_that_cannot_be_read_the_last_is_told() {
    let broken = |name: &str| {
        live(object(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": "three"}}),
        ))
    };
    let c = run(vec![], vec![broken("a"), broken("b"), broken("c")]);
    let text = "ComparisonError: error setting app health: see application-controller logs for 2 other errors; most recent error was: \
        failed to get resource health for \"Deployment\" with name \"c\" in namespace \"prod\": \
        failed to convert unstructured Deployment to typed: unrecognized type: int32";
    assert_eq!(messages(&c), [text]);
}

#[test]
fn c39_a_health_script_that_fails_is_told_as_argo_cd_tells_it() {
    let rules = judging("ConfigMap", "error('no such thing')");
    let c = run_with(&rules, vec![], vec![live(config_map("web", "1"))]);
    let text = "ComparisonError: error setting app health: failed to get resource health for \"ConfigMap\" with name \"web\" in namespace \"prod\": \
        failed to get resource health for prod/web: <string>:1: no such thing";
    assert_eq!(messages(&c), [text]);
    let health = c.entries[0].health.as_ref();
    assert_eq!(
        health.map(|h| (h.status, h.message.as_str())),
        Some((HealthStatus::Unknown, "<string>:1: no such thing"))
    );
}

#[test]
fn c32_c35_c38_the_worst_resource_decides_and_is_named() {
    let pod = |name: &str, phase: &str| {
        object(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"restartPolicy": "Never"}, "status": {"phase": phase}}),
        )
    };
    let names = ["a", "b", "c", "d"];
    let mut there: Vec<Object> = names.iter().map(|n| live(pod(n, "Failed"))).collect();
    there.push(live(pod("e", "Pending")));
    let c = run(vec![], there);
    assert_eq!(
        c.health,
        Health::new(
            HealthStatus::Degraded,
            "Caused by Pod:prod/a, Pod:prod/b, Pod:prod/c and 1 more"
        )
    );
    let ignored = annotated(live(pod("a", "Failed")), marks::IGNORE_HEALTHCHECK, "true");
    assert_eq!(
        run(vec![], vec![ignored]).health.status,
        HealthStatus::Healthy
    );
}

#[test]
fn c37_an_application_does_not_keep_itself_unwell() {
    let itself = object(
        json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "app", "namespace": "argocd", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    );
    assert_eq!(
        run(vec![], vec![itself.clone()]).health.status,
        HealthStatus::Healthy
    );
    let mut other = itself;
    other.set_name("other");
    assert_eq!(
        run(vec![], vec![other]).health,
        Health::new(
            HealthStatus::Progressing,
            "Caused by argoproj.io/Application:argocd/other"
        )
    );
}

#[test]
fn c39_health_that_cannot_be_read_is_told() {
    let broken = object(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": "three"}}),
    );
    let c = run(vec![], vec![live(broken)]);
    assert_eq!(c.health.status, HealthStatus::Unknown);
    let text = "ComparisonError: error setting app health: failed to get resource health for \"Deployment\" with name \"web\" in namespace \"prod\": \
        failed to convert unstructured Deployment to typed: unrecognized type: int32";
    assert_eq!(messages(&c), [text]);
}
