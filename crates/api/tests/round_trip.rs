//! An Application that is decoded and encoded by our types, in JSON or in protobuf, is unchanged.

use prost::Message as _;
use serde_json::{Value, json};
use tiphys_api::{AppProject, Application};

fn application() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "guestbook", "namespace": "argocd", "creationTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["resources-finalizer.argocd.argoproj.io"], "labels": {"a": "b"}},
        "spec": {
            "project": "default", "destination": {"server": "https://kubernetes.default.svc", "namespace": "guestbook"},
            "source": {"repoURL": "https://example.org/r.git", "path": "p", "targetRevision": "HEAD", "directory": {"recurse": true, "jsonnet": {"tlas": [{"name": "a", "value": "b", "code": true}]}},
                "helm": {"valueFiles": ["a.yaml"], "parameters": [{"name": "a", "value": "b", "forceString": true}], "valuesObject": {"deep": {"list": [1, 2.5, null]}}, "skipCrds": true},
                "kustomize": {"images": ["a=b:1"], "replicas": [{"name": "web", "count": 3}, {"name": "x", "count": "50%"}], "commonLabels": {"a": "b"}, "patches": [{"patch": "x", "target": {"kind": "Deployment"}, "options": {"allowNameChange": true}}]},
                "plugin": {"name": "p", "env": [{"name": "A", "value": "1"}], "parameters": [{"name": "s", "string": "v"}, {"name": "m", "map": {"a": "b"}}, {"name": "l", "array": ["x"]}]}},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true, "enabled": false}, "syncOptions": ["CreateNamespace=true"], "retry": {"limit": 2, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}}, "managedNamespaceMetadata": {"labels": {"x": "y"}}},
            "ignoreDifferences": [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"], "jqPathExpressions": [".a"], "managedFieldsManagers": ["m"]}],
            "info": [{"name": "url", "value": "x"}], "revisionHistoryLimit": 0
        },
        "status": {"sync": {"status": "Synced", "comparedTo": {"destination": {}, "source": {"repoURL": "r"}}, "revision": "abc"}, "health": {"status": "Healthy"}, "summary": {"images": ["a:1"]},
            "history": [{"id": 1, "revision": "abc", "deployedAt": "2026-01-02T03:04:05Z", "deployStartedAt": "2026-01-02T03:04:00Z", "initiatedBy": {"username": "admin"}, "source": {"repoURL": "r"}}],
            "operationState": {"phase": "Succeeded", "startedAt": "2026-01-02T03:04:05Z", "operation": {"sync": {"revision": "abc", "syncStrategy": {"hook": {"force": true}}}, "initiatedBy": {"automated": true}, "retry": {}},
                "syncResult": {"revision": "abc", "source": {"repoURL": "r"}, "resources": [{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "n", "name": "d", "status": "Synced", "message": "configured", "hookPhase": "Running", "syncPhase": "Sync"}]}}},
        "operation": {"sync": {"revision": "abc", "autoHealAttemptsCount": 2, "resources": [{"kind": "Service", "name": "s"}]}, "initiatedBy": {"username": "admin"}, "retry": {}}
    })
}

/// Every leaf of `before` must be in `after`; additional values in `after` must be empty values
/// that Go would print too.
fn assert_kept(before: &Value, after: &Value, path: &str) {
    match (before, after) {
        (Value::Object(b), Value::Object(a)) => {
            for (key, value) in b {
                assert_kept(
                    value,
                    a.get(key)
                        .unwrap_or_else(|| panic!("{path}.{key} was lost")),
                    &format!("{path}.{key}"),
                );
            }
            for (key, value) in a {
                let empty = matches!(value, Value::Object(m) if m.values().all(|v| v == "" || v.as_object().is_some_and(serde_json::Map::is_empty)));
                assert!(
                    b.contains_key(key)
                        || value == ""
                        || value == 0
                        || value == &json!([])
                        || value.is_boolean()
                        || empty,
                    "{path}.{key} appeared: {value}"
                );
            }
        }
        (Value::Array(b), Value::Array(a)) => {
            assert_eq!(b.len(), a.len(), "{path}");
            b.iter().zip(a).for_each(|(b, a)| assert_kept(b, a, path));
        }
        _ => assert_eq!(before, after, "{path}"),
    }
}

#[test]
fn an_application_keeps_every_field_in_json_and_in_protobuf() {
    let before = application();
    let typed: Application = serde_json::from_value(before.clone()).expect("it parses");
    assert_kept(
        &before,
        &serde_json::to_value(&typed).expect("it prints"),
        "",
    );
    let wire = Application::decode(typed.encode_to_vec().as_slice()).expect("it decodes");
    assert_kept(
        &before,
        &serde_json::to_value(&wire).expect("it prints"),
        "",
    );
}

#[test]
fn a_project_keeps_every_field() {
    let before = json!({
        "metadata": {"name": "p"},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}], "clusterResourceWhitelist": [{"group": "*", "kind": "*"}], "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}],
            "roles": [{"name": "r", "policies": ["p"], "groups": ["g"], "jwtTokens": [{"iat": 5, "id": "x"}]}],
            "syncWindows": [{"kind": "allow", "schedule": "* * * * *", "duration": "1h", "applications": ["*"], "manualSync": true, "timeZone": "UTC"}],
            "orphanedResources": {"warn": false, "ignore": [{"group": "g", "kind": "ConfigMap", "name": "x*"}]}, "signatureKeys": [{"keyID": "k"}], "sourceNamespaces": ["team-*"],
            "destinationServiceAccounts": [{"server": "*", "namespace": "*", "defaultServiceAccount": "sa"}], "permitOnlyProjectScopedClusters": true, "description": "d"}
    });
    let typed: AppProject = serde_json::from_value(before.clone()).expect("it parses");
    let wire = AppProject::decode(typed.encode_to_vec().as_slice()).expect("it decodes");
    assert_kept(
        &before,
        &serde_json::to_value(&wire).expect("it prints"),
        "",
    );
}

#[test]
fn an_empty_list_of_allowed_kinds_is_not_the_same_as_none() {
    let some = json!([{"group": "apps", "kind": "Deployment"}, {"group": "", "kind": "Service"}]);
    for (list, kept) in [
        (json!([]), Some(json!([]))),
        (some.clone(), Some(some)),
        (Value::Null, None),
    ] {
        let before = json!({"spec": {"namespaceResourceWhitelist": list}});
        let typed: AppProject = serde_json::from_value(before).expect("it parses");
        let bytes = typed.encode_to_vec();
        assert_eq!(bytes.len(), typed.encoded_len());
        let wire = AppProject::decode(bytes.as_slice()).expect("it decodes");
        for project in [typed, wire] {
            let after = serde_json::to_value(&project).expect("it prints");
            assert_eq!(
                after["spec"].get("namespaceResourceWhitelist"),
                kept.as_ref()
            );
        }
    }
}
