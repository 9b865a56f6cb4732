//! The effective rules of a project: its own, those of global projects that select it by its
//! labels, and the repositories and clusters scoped to it; and the service account that is
//! impersonated for its clusters.
//!
//! Main functions: [`effective`] and [`service_account`]. It must not know where settings and
//! projects are kept.

use serde_json::Value;
use std::sync::Arc;
use tiphys_api::{AppProject, Application, application::ApplicationDestination, project::KindList};
use tiphys_apimachinery::selector::LabelSelector;
use tiphys_gocompat::{glob::Glob, yaml};

/// Characters that are not allowed in the name of a service account here.
const DISALLOWED: [char; 8] = ['!', '*', '[', ']', '{', '}', '\\', '/'];

/// A rule of `globalProjects`: projects with these labels inherit the rules of that project.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalProject {
    selector: LabelSelector,
    project: String,
}

impl GlobalProject {
    /// Parses `globalProjects` of argocd-cm. The first invalid rule ends the list, as in Argo CD;
    /// its error is returned too.
    pub fn parse(text: &str) -> (Vec<Self>, Option<String>) {
        let problem = |e: String| format!("argocd-cm: globalProjects: {e}");
        let value = match yaml::parse_document(
            text,
            &yaml::Limits::default(),
            yaml::Duplicates::LastWins,
        ) {
            Ok(Value::Null) => return (Vec::new(), None),
            Ok(Value::Array(list)) => list,
            Ok(_) => {
                return (
                    Vec::new(),
                    Some(problem(
                        "it must be a list of labelSelector and projectName".to_owned(),
                    )),
                );
            }
            Err(e) => return (Vec::new(), Some(problem(e.to_string()))),
        };
        let mut rules = Vec::new();
        for entry in &value {
            // Without a selector the rule applies to all projects.
            let labels = entry
                .get("labelSelector")
                .cloned()
                .filter(|v| !v.is_null())
                .unwrap_or_else(|| Value::Object(Default::default()));
            let project = entry
                .get("projectName")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            match LabelSelector::from_json(&labels) {
                Ok(selector) => rules.push(Self { selector, project }),
                Err(e) => return (rules, Some(problem(e.to_string()))),
            }
        }
        (rules, None)
    }
}

/// The global projects of a project, in the order of the rules; `find` returns projects by name.
/// The first one that does not exist ends the list.
pub fn globals(
    project: &AppProject,
    rules: &[GlobalProject],
    find: impl Fn(&str) -> Option<Arc<AppProject>>,
) -> Vec<Arc<AppProject>> {
    let meant = rules.iter().filter(|r| {
        r.project != project.metadata.name && r.selector.matches(&project.metadata.labels)
    });
    meant.map_while(|rule| find(&rule.project)).collect()
}

/// Repositories and clusters that name a project, and are therefore permitted in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scoped {
    /// URLs of repositories.
    pub repositories: Vec<String>,
    /// Servers of clusters, with the namespaces that they are restricted to.
    pub clusters: Vec<(String, Vec<String>)>,
}

/// The project merged with its global projects and with the repositories and clusters scoped to it:
/// every list is the union of theirs, so a denial in one of them also applies to what another
/// permits.
pub fn effective(
    project: &Arc<AppProject>,
    globals: &[Arc<AppProject>],
    scoped: Scoped,
) -> Arc<AppProject> {
    if globals.is_empty() && scoped == Scoped::default() {
        return project.clone();
    }
    let mut all = AppProject::clone(project);
    let spec = &mut all.spec;
    spec.source_repos.extend(scoped.repositories);
    for (server, namespaces) in scoped.clusters {
        let namespaces = if namespaces.is_empty() {
            vec!["*".to_owned()]
        } else {
            namespaces
        };
        let place = |namespace| ApplicationDestination {
            server: server.clone(),
            namespace,
            ..Default::default()
        };
        spec.destinations.extend(namespaces.into_iter().map(place));
    }
    for other in globals.iter().map(|g| &g.spec) {
        spec.cluster_resource_whitelist
            .extend_from_slice(&other.cluster_resource_whitelist);
        spec.cluster_resource_blacklist
            .extend_from_slice(&other.cluster_resource_blacklist);
        // An empty list adds nothing: it does not turn "every kind" into "no kind".
        if let Some(KindList(more)) = &other.namespace_resource_whitelist
            && !more.is_empty()
        {
            let list = spec.namespace_resource_whitelist.get_or_insert_default();
            list.0.extend_from_slice(more);
        }
        spec.namespace_resource_blacklist
            .extend_from_slice(&other.namespace_resource_blacklist);
        spec.sync_windows.extend_from_slice(&other.sync_windows);
        spec.source_repos.extend_from_slice(&other.source_repos);
        spec.destinations.extend_from_slice(&other.destinations);
        spec.destination_service_accounts
            .extend_from_slice(&other.destination_service_accounts);
    }
    Arc::new(all)
}

/// The service account to impersonate when writing to a cluster for an Application: that of the
/// first of the project's rules that matches the destination.
///
/// # Errors
/// An invalid rule, with Argo CD's message.
pub fn service_account(
    project: &AppProject,
    app: &Application,
    server: &str,
) -> Result<Option<String>, String> {
    let destination = &app.spec.destination.namespace;
    for rule in &project.spec.destination_service_accounts {
        let fits = |pattern: &str, text: &str, what: &str| {
            let pattern = Glob::new(pattern, &[])
                .map_err(|e| format!("invalid glob pattern for destination {what}: {e}"))?;
            Ok::<bool, String>(pattern.matches(text))
        };
        let here = fits(&rule.server, server, "server")?;
        if !(fits(&rule.namespace, destination, "namespace")? && here) {
            continue;
        }
        let account = &rule.default_service_account;
        if account.trim_matches(' ').is_empty() || account.contains(DISALLOWED) {
            return Err(format!(
                "default service account contains invalid chars '{account}'"
            ));
        }
        if account.contains(':') {
            return Ok(Some(format!("system:serviceaccount:{account}")));
        }
        let namespace = if destination.is_empty() {
            &app.metadata.namespace
        } else {
            destination
        };
        return Ok(Some(format!("system:serviceaccount:{namespace}:{account}")));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn project(name: &str, labels: Value, spec: Value) -> Arc<AppProject> {
        let project = json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
        Arc::new(serde_json::from_value(project).expect("a project"))
    }

    #[test]
    fn only_kinds_that_are_named_are_inherited() {
        let service = json!([{"group": "", "kind": "Service"}]);
        for (own, global, expected) in [
            (json!(null), json!([]), json!(null)),
            (json!([]), json!(null), json!([])),
            (json!([]), service.clone(), service.clone()),
            (json!(null), service.clone(), service),
        ] {
            let of =
                |name, list| project(name, json!({}), json!({"namespaceResourceWhitelist": list}));
            let all = effective(&of("p", own), &[of("base", global)], Scoped::default());
            let list = serde_json::to_value(&all.spec.namespace_resource_whitelist);
            assert_eq!(list.expect("it prints"), expected);
        }
    }

    #[test]
    fn global_projects_are_found_by_labels_and_add_their_rules() {
        let text = "- labelSelector: {matchLabels: {tier: x}}\n  projectName: base\n- labelSelector: {matchExpressions: [{key: tier, operator: In, \
                    values: [x, z]}]}\n  projectName: second\n- projectName: every\n- labelSelector: {}\n  projectName: absent\n- projectName: late\n";
        let (rules, problem) = GlobalProject::parse(text);
        assert_eq!((rules.len(), problem), (5, None));
        let window = json!({"kind": "deny", "schedule": "* * * * *", "duration": "1h"});
        let base = project(
            "base",
            json!({"tier": "x"}),
            json!({"sourceRepos": ["r"], "destinations": [{"server": "s", "namespace": "n"}], "syncWindows": [window],
                "clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}], "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}],
                "destinationServiceAccounts": [{"server": "s", "namespace": "n", "defaultServiceAccount": "a"}],
                "sourceNamespaces": ["x"], "roles": [{"name": "r"}], "orphanedResources": {}}),
        );
        let known = |name: &str| match name {
            "base" => Some(base.clone()),
            "second" | "every" | "late" => Some(project(name, json!({}), json!({}))),
            _ => None,
        };
        let of = |labels: Value| {
            let found = globals(&project("p", labels, json!({})), &rules, known);
            found
                .iter()
                .map(|g| g.metadata.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(json!({"tier": "x"})),
            ["base", "second", "every"],
            "one that is not there ends them"
        );
        assert_eq!(of(json!({"tier": "z"})), ["second", "every"]);
        assert_eq!(of(json!({})), ["every"]);
        assert!(
            globals(&base, &rules, known)
                .iter()
                .all(|g| g.metadata.name != "base"),
            "never its own"
        );

        let own = project(
            "p",
            json!({}),
            json!({"sourceRepos": ["mine"], "destinations": [{"server": "s", "namespace": "mine"}]}),
        );
        let all = effective(&own, std::slice::from_ref(&base), Scoped::default());
        let (spec, other) = (&all.spec, &base.spec);
        assert_eq!(spec.source_repos, ["mine", "r"]);
        assert_eq!(
            spec.destinations
                .iter()
                .map(|d| d.namespace.as_str())
                .collect::<Vec<_>>(),
            ["mine", "n"]
        );
        assert_eq!(
            spec.cluster_resource_whitelist,
            other.cluster_resource_whitelist
        );
        assert_eq!(
            spec.namespace_resource_blacklist,
            other.namespace_resource_blacklist
        );
        assert_eq!(
            (&spec.sync_windows, &spec.destination_service_accounts),
            (&other.sync_windows, &other.destination_service_accounts)
        );
        assert!(
            spec.source_namespaces.is_empty()
                && spec.roles.is_empty()
                && spec.orphaned_resources.is_none(),
            "these are not shared"
        );
    }

    #[test]
    fn what_cannot_be_read_is_named_and_what_came_before_holds() {
        for (text, count, problem) in [
            ("", 0, ""),
            ("a: b", 0, "argocd-cm: globalProjects: it must be a list"),
            ("- [", 0, "argocd-cm: globalProjects: "),
            (
                "- projectName: a\n- labelSelector: {matchExpressions: [{key: a, operator: Near}]}\n- projectName: b",
                1,
                "Near",
            ),
        ] {
            let (rules, told) = GlobalProject::parse(text);
            assert_eq!(rules.len(), count, "{text}");
            assert!(
                told.as_deref().unwrap_or_default().contains(problem)
                    && told.is_some() != problem.is_empty(),
                "{text}: {told:?}"
            );
        }
    }

    #[test]
    fn what_names_a_project_is_permitted_in_it() {
        let own = project("p", json!({}), json!({"sourceRepos": ["mine"]}));
        let scoped = Scoped {
            repositories: vec!["theirs".into()],
            clusters: vec![
                ("one".into(), Vec::new()),
                ("two".into(), vec!["a".into(), "b".into()]),
            ],
        };
        let all = effective(&own, &[], scoped);
        assert_eq!(all.spec.source_repos, ["mine", "theirs"]);
        let places: Vec<String> = all
            .spec
            .destinations
            .iter()
            .map(|d| format!("{}/{}", d.server, d.namespace))
            .collect();
        assert_eq!(places, ["one/*", "two/a", "two/b"]);
    }

    const OWN: &str = "https://kubernetes.default.svc";

    fn rule(server: &str, namespace: &str, account: &str) -> Value {
        json!({"server": server, "namespace": namespace, "defaultServiceAccount": account})
    }

    /// Rules, the server and namespace of a destination, and the resulting service account.
    fn named_accounts() -> Vec<(Vec<Value>, &'static str, &'static str, &'static str)> {
        let guestbook = || rule(OWN, "guestbook", "guestbook-sa");
        let two = || vec![guestbook(), rule(OWN, "guestbook-test", "test-sa")];
        vec![
            (vec![], OWN, "n", ""),
            (
                vec![guestbook()],
                OWN,
                "guestbook",
                "system:serviceaccount:guestbook:guestbook-sa",
            ),
            (
                two(),
                OWN,
                "guestbook-test",
                "system:serviceaccount:guestbook-test:test-sa",
            ),
            (two(), OWN, "other", ""),
            (two(), "https://other", "guestbook", ""),
            (
                vec![rule(OWN, "guest*", "a"), rule(OWN, "guestbook", "b")],
                OWN,
                "guestbook",
                "system:serviceaccount:guestbook:a",
            ),
            (
                vec![rule(OWN, "guestbook", "b"), rule(OWN, "*", "a")],
                OWN,
                "guestbook",
                "system:serviceaccount:guestbook:b",
            ),
            (
                vec![rule("*", "*", "a")],
                "https://other",
                "n",
                "system:serviceaccount:n:a",
            ),
            (
                vec![rule("https://*.example", "n", "a")],
                "https://c.example",
                "n",
                "system:serviceaccount:n:a",
            ),
            (
                vec![rule("https://?.example", "n", "a")],
                "https://cd.example",
                "n",
                "",
            ),
            (
                vec![rule(OWN, "{a,b}", "x")],
                OWN,
                "b",
                "system:serviceaccount:b:x",
            ),
            (vec![rule(OWN, "[!a]", "x")], OWN, "a", ""),
            (
                vec![rule(OWN, "", "a")],
                OWN,
                "",
                "system:serviceaccount:argocd:a",
            ),
            (
                vec![rule(OWN, "*", "a")],
                OWN,
                "",
                "system:serviceaccount:argocd:a",
            ),
            (vec![rule(OWN, "", "a")], OWN, "n", ""),
            (
                vec![rule(OWN, "n", "team:deployer")],
                OWN,
                "n",
                "system:serviceaccount:team:deployer",
            ),
        ]
    }

    #[test]
    fn c70_the_first_rule_for_the_destination_names_the_service_account() {
        let found = |rules: &[Value], server: &str, namespace: &str| {
            let project = project("p", json!({}), json!({"destinationServiceAccounts": rules}));
            let app = json!({"metadata": {"name": "a", "namespace": "argocd"}, "spec": {"destination": {"namespace": namespace}}});
            service_account(
                &project,
                &serde_json::from_value(app).expect("an Application"),
                server,
            )
            .map(Option::unwrap_or_default)
        };
        for (rules, server, namespace, expected) in named_accounts() {
            assert_eq!(
                found(&rules, server, namespace).as_deref(),
                Ok(expected),
                "{rules:?} {server} {namespace}"
            );
        }
        for (rule, expected) in [
            (
                rule(OWN, "n", "bad*"),
                "default service account contains invalid chars 'bad*'",
            ),
            (
                rule(OWN, "n", "a/b"),
                "default service account contains invalid chars 'a/b'",
            ),
            (
                rule(OWN, "n", "  "),
                "default service account contains invalid chars '  '",
            ),
            (
                rule(OWN, "n[]", "a"),
                "invalid glob pattern for destination namespace: ",
            ),
            (
                rule("[]", "n", "a"),
                "invalid glob pattern for destination server: ",
            ),
        ] {
            let error = found(&[rule], OWN, "n").expect_err("no service account");
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
