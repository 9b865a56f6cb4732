//! Precedence of customizations, and the results of scripts.

use super::{Customizations, read};
use crate::{
    base::IgnoreStatus,
    health::{self, Assessed},
    types::{Health, HealthStatus},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tiphys_apimachinery::Object;

fn customizations(entries: &[(&str, &str)]) -> Customizations {
    let config = entries
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let (customizations, problems) = read(&config, || jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(problems, Vec::<String>::new());
    customizations
}

fn object(api_version: &str, kind: &str, status: Value) -> Object {
    Object::from_value(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "status": status})).expect("a map")
}

fn says(word: &str) -> String {
    format!("return {{status = 'Degraded', message = '{word}'}}")
}

#[test]
fn the_more_exact_word_and_the_user_s_word_win() {
    let whole = "\
example.com/*:
  health.lua: return {status = 'Degraded', message = 'wildcard'}
example.com/Widget:
  health.lua: return {status = 'Degraded', message = 'exact'}
example.com/Gadget:
  ignoreDifferences: |
    jsonPointers: [/spec/x]
'*.crossplane.io/*':
  health.lua: return {status = 'Degraded', message = 'group'}
";
    let (deployment, config_map) = (says("mine"), says("core"));
    let c = customizations(&[
        ("resource.customizations", whole),
        (
            "resource.customizations.health.apps_Deployment",
            &deployment,
        ),
        ("resource.customizations.health.ConfigMap", &config_map),
        (
            "resource.customizations.health.split.io_Widget",
            "return {status = obj.status.phase}",
        ),
        ("resource.customizationsX", "not ours"),
        (
            "resource.customizations.ignoreDifferences.all",
            "managedFieldsManagers: [kube-controller-manager]",
        ),
    ]);
    for (object, expected) in [
        (
            object("example.com/v1", "Widget", json!({})),
            Some(Health::new(HealthStatus::Degraded, "exact")),
        ),
        (
            object("example.com/v1", "Gadget", json!({})),
            Some(Health::new(HealthStatus::Degraded, "wildcard")),
        ),
        (
            object("sql.crossplane.io/v1", "User", json!({})),
            Some(Health::new(HealthStatus::Degraded, "group")),
        ),
        (
            object("apps/v1", "Deployment", json!({})),
            Some(Health::new(HealthStatus::Degraded, "mine")),
        ),
        (
            object("v1", "ConfigMap", json!({})),
            Some(Health::new(HealthStatus::Degraded, "core")),
        ),
        (
            object("split.io/v1", "Widget", json!({"phase": "Healthy"})),
            Some(Health::new(HealthStatus::Healthy, "")),
        ),
        (object("v1", "Secret", json!({})), None),
    ] {
        assert_eq!(
            health::of_with(&object, &c),
            expected,
            "{} {}",
            object.group(),
            object.kind()
        );
    }
    let rules = c.ignore_rules();
    assert_eq!(rules.len(), 2);
    assert_eq!(
        (rules[0].group.as_str(), rules[0].kind.as_str()),
        ("*", "*")
    );
    assert_eq!(rules[1].json_pointers, ["/spec/x"]);
}

#[test]
fn what_a_script_returns_is_read_as_argo_cd_reads_it() {
    let unknown = |message: &str| Some(Health::new(HealthStatus::Unknown, message));
    for (script, expected) in [
        (
            "return {status = 'Fine'}",
            unknown("Lua returned an invalid health status"),
        ),
        (
            "return {message = 'no status'}",
            unknown("Lua returned an invalid health status"),
        ),
        ("return {status = 3}", None),
        ("return {}", None),
        ("return {1}", None),
        ("local x = 1", None),
        (
            "return 'Healthy'",
            unknown("expect table output from Lua script, not string"),
        ),
        (
            "error('no such thing')",
            unknown("<string>:1: no such thing"),
        ),
        (
            "while true do end",
            unknown("the script was stopped: it takes too many steps"),
        ),
        (
            "return {Status = 'Healthy', Message = 'm'}",
            Some(Health::new(HealthStatus::Healthy, "m")),
        ),
        (
            "return {status = string and 'Healthy' or 'Degraded'}",
            Some(Health::new(HealthStatus::Degraded, "")),
        ),
    ] {
        let c = customizations(&[("resource.customizations.health.x.io_X", script)]);
        assert_eq!(
            health::of_with(&object("x.io/v1", "X", json!({})), &c),
            expected,
            "{script}"
        );
    }
    let silent = customizations(&[("resource.customizations.health.x.io_X", "return {}")]);
    for (group, kind, expected) in [
        ("x.io", "X", Assessed::Silent),
        ("x.io", "Y", Assessed::Without),
        // A script that comes with Argo CD, and says nothing before there are conditions.
        ("spot.io", "SpotDeployment", Assessed::Silent),
    ] {
        let object = object(&format!("{group}/v1"), kind, json!({}));
        let assessed = health::assess_for_sync(&object, &silent);
        assert_eq!(assessed.ok(), Some(expected), "{kind}");
    }
    let open = [
        (
            "resource.customizations.health.x.io_X",
            "return {status = ('HEALTHY'):sub(1, 1) .. 'ealthy'}",
        ),
        ("resource.customizations.useOpenLibs.x.io_X", "true"),
    ];
    assert_eq!(
        health::of_with(&object("x.io/v1", "X", json!({})), &customizations(&open)),
        Some(Health::new(HealthStatus::Healthy, ""))
    );
}

#[test]
fn what_cannot_be_read_is_named_and_hides_nothing() {
    let entries = [
        (
            "resource.customizations",
            "a.io/A: {health.lua: 3}\nb.io/B: {health.lua: return}\n",
        ),
        ("resource.customizations.useOpenLibs.b.io_B", "maybe"),
        ("resource.customizations.health.b_c_d", "x"),
        ("resource.customizations.colour.b.io_B", "x"),
        (
            "resource.customizations.ignoreDifferences.b.io_B",
            "[broken",
        ),
    ];
    let config = entries
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let (customizations, problems) = read(&config, || jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(problems.len(), 5, "{problems:?}");
    assert!(
        problems
            .iter()
            .all(|p| p.starts_with("argocd-cm: resource.customizations"))
    );
    assert!(customizations.judges_health(&object("b.io/v1", "B", json!({}))));
}

#[test]
fn compare_options_that_cannot_be_read_are_named() {
    for (text, is_good) in [
        ("", true),
        (
            "ignoreAggregatedRoles: true\nignoreResourceStatusField: crd",
            true,
        ),
        ("ignoreResourceStatusField: off", true),
        ("ignoreAggregatedRoles: 3", false),
        ("ignoreDifferencesOnResourceUpdates: sometimes", false),
        ("[broken", false),
    ] {
        let config = BTreeMap::from([("resource.compareoptions".to_owned(), text.to_owned())]);
        let (_, problems) = read(&config, || jiff::Timestamp::UNIX_EPOCH);
        let named = |p: &String| p.starts_with("argocd-cm: resource.compareoptions: ");
        assert_eq!(
            problems.len(),
            usize::from(!is_good),
            "{text}: {problems:?}"
        );
        assert!(problems.iter().all(named), "{problems:?}");
    }
}

#[test]
fn compare_options_beside_a_wrong_one_apply() {
    let text = "ignoreAggregatedRoles: 3\nignoreDifferencesOnResourceUpdates: false";
    let config = BTreeMap::from([("resource.compareoptions".to_owned(), text.to_owned())]);
    let (customizations, problems) = read(&config, || jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(
        problems,
        ["argocd-cm: resource.compareoptions: ignoreAggregatedRoles is neither true nor false"]
    );
    assert_eq!(customizations.updates().ignored().1, IgnoreStatus::None);
}
