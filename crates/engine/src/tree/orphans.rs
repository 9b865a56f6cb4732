//! Orphans: objects in an Application's namespace that no Application manages.
//!
//! Main function: [`of`]. The caller provides the ownership; this module decides what counts as an
//! orphan.

use super::Builder;
use crate::{
    pattern::glob,
    types::{CompareRules, Condition, ConditionType, Entry, OrphanRules},
};
use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::resource::{ResourceNode, ResourceRef};
use tiphys_apimachinery::ResourceKey;

/// The orphans among `nobodys`, with everything below them, in the order of their keys. `nobodys`
/// are the objects in the destination namespace that have neither an owner nor another
/// Application's tracking metadata. Empty if the project does not monitor orphans.
pub fn of(
    entries: &[Arc<Entry>],
    rules: &CompareRules,
    nobodys: impl IntoIterator<Item = ResourceNode>,
    children: &dyn Fn(&str) -> Vec<ResourceNode>,
) -> Vec<ResourceNode> {
    let Some(orphans) = &rules.project.orphans else {
        return Vec::new();
    };
    let managed: BTreeSet<&ResourceKey> = entries.iter().map(|e| &e.key).collect();
    let mut builder = Builder::new(rules, children);
    for node in nobodys {
        let r = &node.resource_ref;
        let key = ResourceKey::new(&r.group, &r.kind, &r.namespace, &r.name);
        if !r.namespace.is_empty()
            && !managed.contains(&key)
            && !is_expected(&key)
            && !is_ignored(orphans, &key)
        {
            builder.add(node, None, 0);
        }
    }
    let key = |r: &ResourceRef| {
        (
            r.group.clone(),
            r.kind.clone(),
            r.namespace.clone(),
            r.name.clone(),
        )
    };
    builder.nodes.sort_by_cached_key(|n| key(&n.resource_ref));
    builder.nodes
}

/// The warning about this many orphans, if the project asks for it.
pub fn condition(count: usize, rules: &CompareRules) -> Option<Condition> {
    let warn = rules.project.orphans.as_ref().is_some_and(|o| o.warn);
    let message = || format!("Application has {count} orphaned resources");
    (warn && count > 0).then(|| Condition::new(ConditionType::OrphanedResourceWarning, message()))
}

/// Objects that Kubernetes itself creates in namespaces.
fn is_expected(key: &ResourceKey) -> bool {
    let named =
        |kind: &str, name: &str| key.group.is_empty() && key.kind == kind && key.name == name;
    named("ServiceAccount", "default")
        || named("ConfigMap", "kube-root-ca.crt")
        || (key.namespace == "default" && named("Service", "kubernetes"))
}

fn is_ignored(rules: &OrphanRules, key: &ResourceKey) -> bool {
    let any_or = |pattern: &str, text: &str| pattern.is_empty() || glob(pattern, text);
    rules.ignore.iter().any(|r| {
        any_or(&r.kind, &key.kind) && glob(&r.group, &key.group) && any_or(&r.name, &key.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{KindRule, ProjectRules, Tracking};
    use tiphys_apimachinery::Gvk;

    fn node(group: &str, kind: &str, namespace: &str, name: &str) -> ResourceNode {
        let (group, kind, namespace, name) = (
            group.to_owned(),
            kind.to_owned(),
            namespace.to_owned(),
            name.to_owned(),
        );
        let uid = format!("uid-{kind}-{name}");
        ResourceNode {
            resource_ref: ResourceRef {
                group,
                kind,
                namespace,
                name,
                uid,
                ..Default::default()
            },
            ..Default::default()
        }
    }

    fn rules(orphans: Option<OrphanRules>) -> CompareRules {
        let rules = CompareRules::new(
            Tracking::annotation("app"),
            "argocd",
            "app",
            "https://kubernetes.default.svc",
            "prod",
        );
        CompareRules {
            project: ProjectRules {
                orphans,
                ..ProjectRules::allow_all("team")
            },
            ..rules
        }
    }

    fn ignoring(list: &[(&str, &str, &str)]) -> Option<OrphanRules> {
        let rule = |(group, kind, name): &(&str, &str, &str)| KindRule {
            group: (*group).into(),
            kind: (*kind).into(),
            name: (*name).into(),
        };
        Some(OrphanRules {
            warn: true,
            ignore: list.iter().map(rule).collect(),
        })
    }

    fn found(rules: &CompareRules, nobodys: Vec<ResourceNode>) -> Vec<String> {
        let key = ResourceKey::new("", "ConfigMap", "prod", "mine");
        let mine = Arc::new(Entry::new(key, Gvk::new("", "v1", "ConfigMap"), None, None));
        let children = |uid: &str| match uid {
            "uid-Deployment-web" => vec![node("apps", "ReplicaSet", "prod", "web-1")],
            _ => Vec::new(),
        };
        of(&[mine], rules, nobodys, &children)
            .into_iter()
            .map(|n| n.resource_ref.name)
            .collect()
    }

    #[test]
    fn c83_what_nobody_owns_is_an_orphan_with_what_it_made() {
        let all = || {
            vec![
                node("apps", "Deployment", "prod", "web"),
                node("", "ConfigMap", "prod", "mine"),
                node("", "ConfigMap", "prod", "left"),
                node("", "ConfigMap", "prod", "kube-root-ca.crt"),
                node("", "ServiceAccount", "prod", "default"),
                node("", "Service", "prod", "kubernetes"),
                node("", "Namespace", "", "prod"),
            ]
        };
        assert_eq!(found(&rules(None), all()), Vec::<String>::new());
        assert_eq!(
            found(&rules(ignoring(&[])), all()),
            ["left", "kubernetes", "web", "web-1"]
        );
        assert_eq!(
            found(
                &rules(ignoring(&[])),
                vec![node("", "Service", "default", "kubernetes")]
            ),
            Vec::<String>::new()
        );
        let mut forbidden = rules(ignoring(&[]));
        forbidden.project.namespace_blacklist = vec![KindRule {
            group: String::new(),
            kind: "ConfigMap".into(),
            name: String::new(),
        }];
        assert_eq!(found(&forbidden, all()), ["kubernetes", "web", "web-1"]);
    }

    #[test]
    fn the_list_of_exceptions_has_globs() {
        let left = || {
            vec![
                node("", "ConfigMap", "prod", "team-a"),
                node("apps", "Deployment", "prod", "team-b"),
            ]
        };
        for (rule, expected) in [
            (("", "ConfigMap", ""), vec!["team-b"]),
            (("", "", ""), vec!["team-b"]),
            (("*", "", "team-?"), vec![]),
            (("apps", "Dep*", "*-b"), vec!["team-a"]),
            (("apps", "ConfigMap", ""), vec!["team-a", "team-b"]),
        ] {
            assert_eq!(
                found(&rules(ignoring(&[rule])), left()),
                expected,
                "{rule:?}"
            );
        }
    }

    #[test]
    fn c83_the_condition_counts_them() {
        let told = |count, orphans| condition(count, &rules(orphans)).map(|c| c.message);
        assert_eq!(
            told(2, ignoring(&[])).as_deref(),
            Some("Application has 2 orphaned resources")
        );
        assert_eq!((told(0, ignoring(&[])), told(2, None)), (None, None));
        assert_eq!(
            told(2, Some(OrphanRules::default())),
            None,
            "not to be told"
        );
    }
}
