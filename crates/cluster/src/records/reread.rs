//! Parses the parts of an Application that changed since the last state: usually an annotation, or
//! a revision and a time.
//!
//! Main function: [`application`].

use super::lean::Lean;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::{Application, status::ApplicationStatus};

type Parts<'a> = BTreeMap<&'a str, &'a RawValue>;

/// Parses `is`, reusing `before`, which was parsed from `was`; `None`: it must be parsed entirely.
pub(super) fn application(was: &Lean, before: &Application, is: &Lean) -> Option<Application> {
    Some(Application {
        metadata: if was.metadata() == is.metadata() {
            before.metadata.clone()
        } else {
            read(is.metadata())?
        },
        spec: if was.spec() == is.spec() {
            before.spec.clone()
        } else {
            read(is.spec())?
        },
        status: if was.status() == is.status() {
            before.status.clone()
        } else {
            status(was.status(), &before.status, is.status())?.into()
        },
        operation: if was.operation() == is.operation() {
            before.operation.clone()
        } else {
            read(is.operation())?
        },
        ..Application::default()
    })
}

fn status(was: &str, before: &ApplicationStatus, is: &str) -> Option<ApplicationStatus> {
    let (was, is) = (parts(was)?, parts(is)?);
    let differing: BTreeSet<&str> = was
        .keys()
        .chain(is.keys())
        .filter(|name| text(&was, name) != text(&is, name))
        .copied()
        .collect();
    let news: Vec<String> = differing
        .iter()
        .map(|name| format!("{name:?}:{}", text(&is, name)))
        .collect();
    let mut news: ApplicationStatus =
        serde_json::from_str(&format!("{{{}}}", news.join(","))).ok()?;
    let mut status = before.clone();
    differing
        .iter()
        .for_each(|name| status.adopt(name, &mut news));
    Some(status)
}

fn parts(json: &str) -> Option<Parts<'_>> {
    serde_json::from_str::<Option<_>>(json)
        .ok()
        .map(Option::unwrap_or_default)
}

/// An absent part is equivalent to null.
fn text<'a>(parts: &Parts<'a>, name: &str) -> &'a str {
    parts.get(name).map_or("null", |value| value.get())
}

fn read<T: DeserializeOwned + Default>(json: &str) -> Option<T> {
    serde_json::from_str::<Option<T>>(json)
        .ok()
        .map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Readable, lean::Raw};
    use serde_json::{Value, json};
    use tiphys_apimachinery::patch::json_merge;

    fn lean(json: &Value) -> Lean {
        Raw::read(&json.to_string())
            .expect("readable")
            .keep(&crate::records::kind("g", "v1", "Thing", "things"))
            .0
    }

    fn whole(json: &str) -> Application {
        serde_json::from_str::<Application>(json)
            .expect("an Application")
            .bare()
    }

    #[test]
    fn what_is_read_by_its_differences_is_as_if_read_whole() {
        let source =
            json!({"repoURL": "r", "path": "p", "helm": {"valuesObject": {"b": 1, "a": 1.50}}});
        let base = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "extra": 1,
            "metadata": {"name": "a", "resourceVersion": "1", "annotations": {"x": "y"}, "finalizers": ["f"]},
            "spec": {"project": "default", "source": source},
            "operation": {"sync": {"revision": "abc"}},
            "status": {
                "unknown": true, "reconciledAt": "2026-01-01T00:00:00Z", "sync": {"status": "Synced", "revision": "1"},
                "operationState": {"phase": "Running"}, "history": [{"id": 1, "deployedAt": "2026-01-01T00:00:00Z", "source": source}],
                "conditions": [{"type": "t", "message": "m"}], "summary": {"images": ["i"]}, "sourceTypes": ["Helm"],
                "resources": [{"kind": "A", "name": "a", "health": {"status": "Healthy"}}],
            },
        });
        let before = whole(&base.to_string());
        let all = |value: Value| json!({"status": value});
        for change in [
            json!({}),
            json!({"metadata": {"annotations": {"x": null, "argocd.argoproj.io/refresh": "normal"}}}),
            json!({"metadata": {"resourceVersion": "2"}, "operation": null}),
            json!({"spec": {"source": {"path": "q"}}, "status": null}),
            all(
                json!({"sync": {"revision": "2"}, "reconciledAt": "2026-01-02T00:00:00Z", "unknown": false}),
            ),
            all(
                json!({"operationState": null, "history": null, "observedAt": "2026-01-02T00:00:00Z"}),
            ),
            all(
                json!({"conditions": null, "health": {"status": "Degraded"}, "sourceType": "Helm", "sourceTypes": null, "summary": null}),
            ),
            all(
                json!({"resources": [{"kind": "B"}], "controllerNamespace": "n", "resourceHealthSource": "appTree"}),
            ),
            all(
                json!({"sourceHydrator": {"currentOperation": {"phase": "Hydrated"}}, "operationState": {"phase": "Failed"}}),
            ),
            json!({"extra": 2, "spec": null, "metadata": {"annotations": null}}),
        ] {
            let after = json_merge::apply(&base, &change).expect("maps");
            let there = application(&lean(&base), &before, &lean(&after))
                .unwrap_or_else(|| panic!("{change}"));
            assert_eq!(there, whole(&after.to_string()), "{change}");
            let back = application(&lean(&after), &there, &lean(&base))
                .unwrap_or_else(|| panic!("back from {change}"));
            assert_eq!(back, before, "back from {change}");
        }
        for broken in [
            json!({"spec": {"project": 1}}),
            all(json!({"history": 1})),
            json!({"metadata": {"annotations": 1}}),
        ] {
            let after = json_merge::apply(&base, &broken).expect("maps");
            assert_eq!(
                application(&lean(&base), &before, &lean(&after)),
                None,
                "{broken}"
            );
        }
    }
}
