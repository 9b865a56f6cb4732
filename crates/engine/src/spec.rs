//! Whether an Application's specification is complete and its project permits it.
//!
//! Main functions: [`validate`] and [`project_rules`]. They know no repository and no cluster: who the destination is comes as an argument.
//! The texts are Argo CD's.

use crate::{
    permit,
    types::{Condition, ConditionType, DestinationRule, KindRule, OrphanRules, ProjectRules},
};
use tiphys_api::{
    AppProject, Application, access::normalize_url, application::ApplicationDestination, application::ApplicationSpec,
    constants::IN_CLUSTER, source::ApplicationSource,
};
use tiphys_gocompat::{glob, patterns};

/// A cluster that an Application may name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    pub server: String,
    pub name: String,
    /// The project that the cluster is scoped to; empty for none.
    pub project: String,
}

/// The cluster that `destination` names, among those known.
///
/// # Errors
/// The reason, as the condition's text.
pub fn destination(destination: &ApplicationDestination, clusters: &[Destination]) -> Result<Destination, String> {
    let (server, name) = (destination.server.as_str(), destination.name.as_str());
    if !server.is_empty() && !name.is_empty() {
        return Err(format!("application destination can't have both name and server defined: {name} {server}"));
    }
    if !server.is_empty() {
        let wanted = server.trim_end_matches('/');
        let found = clusters.iter().find(|c| c.server.trim_end_matches('/') == wanted);
        return found.cloned().ok_or_else(|| {
            format!("error getting cluster by server \"{server}\": rpc error: code = NotFound desc = cluster \"{server}\" not found")
        });
    }
    if name.is_empty() {
        return Err("Destination server missing from app spec".to_owned());
    }
    let mut found = clusters.iter().filter(|c| c.name == name);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.clone()),
        (None, _) => Err(format!("there are no clusters with this name: {name}")),
        (Some(_), Some(_)) => {
            let servers: Vec<_> = clusters.iter().filter(|c| c.name == name).map(|c| c.server.as_str()).collect();
            Err(format!("there are {} clusters with the same name: [{}]", servers.len(), servers.join(" ")))
        }
    }
}

/// The sources of a specification: `sources`, or the one `source`.
pub fn sources(spec: &ApplicationSpec) -> Vec<&ApplicationSource> {
    if spec.sources.is_empty() { spec.source.iter().collect() } else { spec.sources.iter().collect() }
}

/// What is wrong with the specification, given its project and the clusters known. Empty: nothing.
pub fn validate(spec: &ApplicationSpec, project: &AppProject, clusters: &[Destination]) -> Vec<Condition> {
    let invalid = |message: String| Condition::new(ConditionType::InvalidSpecError, message);
    let mut conditions = Vec::new();
    let several = !spec.sources.is_empty();
    if sources(spec).is_empty() {
        return vec![invalid("spec.source.repoURL and either spec.source.path or spec.source.chart are required".to_owned())];
    }
    for source in sources(spec) {
        if let Some(message) = incomplete(source, several) {
            return vec![invalid(message)];
        }
        if !source_permitted(project, &source.repo_url) {
            conditions
                .push(invalid(format!("application repo {} is not permitted in project '{}'", source.repo_url, project.metadata.name)));
        }
    }
    let cluster = match destination(&spec.destination, clusters) {
        Ok(cluster) => cluster,
        Err(message) => {
            conditions.push(invalid(message));
            return conditions;
        }
    };
    if !permit::destination(&project_rules_for(project, &cluster), &cluster.server, &cluster.name, &spec.destination.namespace) {
        let shown = if spec.destination.name.is_empty() { &cluster.server } else { &cluster.name };
        conditions.push(invalid(format!(
            "application destination server '{shown}' and namespace '{}' do not match any of the allowed destinations in project '{}'",
            spec.destination.namespace, project.metadata.name
        )));
    }
    conditions
}

/// The condition of an Application whose project does not exist, or does not take Applications from its namespace.
pub fn project_condition(app: &Application, project: Option<&AppProject>, control_namespace: &str) -> Option<Condition> {
    let name = project_name(app);
    let Some(project) = project else {
        return Some(Condition::new(
            ConditionType::InvalidSpecError,
            format!("Application referencing project {name} which does not exist"),
        ));
    };
    let namespace = app.metadata.namespace.as_str();
    (!namespace_permitted(project, namespace, control_namespace)).then(|| {
        let message = format!("application '{}' in namespace '{namespace}' is not permitted to use project '{name}'", app.metadata.name);
        Condition::new(ConditionType::UnknownError, message)
    })
}

/// Whether a project takes Applications from a namespace: from the control plane's always.
pub fn namespace_permitted(project: &AppProject, namespace: &str, control_namespace: &str) -> bool {
    namespace == control_namespace || patterns::any(&project.spec.source_namespaces, namespace)
}

/// An empty project means `default`.
pub fn project_name(app: &Application) -> &str {
    if app.spec.project.is_empty() { "default" } else { &app.spec.project }
}

fn incomplete(source: &ApplicationSource, several: bool) -> Option<String> {
    let nothing = source.path.is_empty() && source.chart.is_empty();
    if several && (source.repo_url.is_empty() || (nothing && source.ref_.is_empty())) {
        return Some(format!(
            "spec.source.repoURL and either source.path, source.chart, or source.ref are required for source {}",
            source.repo_url
        ));
    }
    if !several && (source.repo_url.is_empty() || nothing) {
        return Some("spec.source.repoURL and either spec.source.path or spec.source.chart are required".to_owned());
    }
    (!source.chart.is_empty() && source.target_revision.is_empty())
        .then(|| "spec.source.targetRevision is required if the manifest source is a helm chart".to_owned())
}

/// Whether a project permits a repository: some pattern matches, and no `!pattern` does.
pub fn source_permitted(project: &AppProject, url: &str) -> bool {
    let url = normalize_url(url);
    let mut permitted = false;
    for pattern in &project.spec.source_repos {
        if let Some(denied) = pattern.strip_prefix('!') {
            if glob::matches(&normalize_url(denied), &url, &['/']) {
                return false;
            }
            permitted = true;
        } else if pattern == "*" || glob::matches(&normalize_url(pattern), &url, &['/']) {
            permitted = true;
        }
    }
    permitted
}

/// A project's rules as the comparison takes them.
pub fn project_rules(project: &AppProject) -> ProjectRules {
    let spec = &project.spec;
    let kinds = |list: &[tiphys_api::meta::GroupKind]| -> Vec<KindRule> {
        list.iter().map(|k| KindRule { group: k.group.clone(), kind: k.kind.clone(), name: String::new() }).collect()
    };
    let named = |list: &[tiphys_api::project::ClusterResourceRestrictionItem]| -> Vec<KindRule> {
        list.iter().map(|k| KindRule { group: k.group.clone(), kind: k.kind.clone(), name: k.name.clone() }).collect()
    };
    let place =
        |d: &ApplicationDestination| DestinationRule { server: d.server.clone(), name: d.name.clone(), namespace: d.namespace.clone() };
    ProjectRules {
        name: project.metadata.name.clone(),
        cluster_whitelist: named(&spec.cluster_resource_whitelist),
        cluster_blacklist: named(&spec.cluster_resource_blacklist),
        namespace_whitelist: (!spec.namespace_resource_whitelist.is_empty()).then(|| kinds(&spec.namespace_resource_whitelist)),
        namespace_blacklist: kinds(&spec.namespace_resource_blacklist),
        destinations: spec.destinations.iter().map(place).collect(),
        cluster_permitted: true,
        orphans: spec.orphaned_resources.as_ref().map(|o| {
            let ignore = o.ignore.iter().map(|k| KindRule { group: k.group.clone(), kind: k.kind.clone(), name: k.name.clone() });
            OrphanRules { warn: o.warn.unwrap_or(true), ignore: ignore.collect() }
        }),
    }
}

/// As [`project_rules`], for one cluster: some projects permit only those that are scoped to them.
pub fn project_rules_for(project: &AppProject, cluster: &Destination) -> ProjectRules {
    let own = !project.metadata.name.is_empty() && cluster.project == project.metadata.name;
    ProjectRules { cluster_permitted: own || !project.spec.permit_only_project_scoped_clusters, ..project_rules(project) }
}

/// The cluster that the control plane runs in.
pub fn in_cluster() -> Destination {
    Destination { server: IN_CLUSTER.to_owned(), name: "in-cluster".to_owned(), project: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn spec(v: Value) -> ApplicationSpec {
        serde_json::from_value(v).expect("a specification")
    }

    fn project() -> AppProject {
        serde_json::from_value(json!({"metadata": {"name": "team"}, "spec": {
            "sourceRepos": ["https://example.org/team/*", "!https://example.org/team/secret"],
            "destinations": [{"server": "https://kubernetes.default.svc", "namespace": "team-*"}]}}))
        .expect("a project")
    }

    #[test]
    fn facts_55_81_82_every_fault_has_argo_cds_words() {
        let good = json!({"project": "team", "source": {"repoURL": "https://example.org/team/a.git", "path": "p"}, "destination": {"server": IN_CLUSTER, "namespace": "team-a"}});
        for (change, expected) in [
            (json!({}), None),
            (json!({"source": {"path": null}}), Some("spec.source.repoURL and either spec.source.path or spec.source.chart are required")),
            (
                json!({"source": {"path": null, "chart": "c"}}),
                Some("spec.source.targetRevision is required if the manifest source is a helm chart"),
            ),
            (
                json!({"source": {"repoURL": "https://example.org/team/secret"}}),
                Some("application repo https://example.org/team/secret is not permitted in project 'team'"),
            ),
            (
                json!({"destination": {"namespace": "b"}}),
                Some(
                    "application destination server 'https://kubernetes.default.svc' and namespace 'b' do not match any of the allowed destinations in project 'team'",
                ),
            ),
            (json!({"destination": {"server": null}}), Some("Destination server missing from app spec")),
            (
                json!({"destination": {"name": "x"}}),
                Some("application destination can't have both name and server defined: x https://kubernetes.default.svc"),
            ),
            (json!({"destination": {"server": null, "name": "x"}}), Some("there are no clusters with this name: x")),
        ] {
            let spec = spec(tiphys_apimachinery::patch::json_merge::apply(&good, &change).expect("maps"));
            let found: Vec<_> = validate(&spec, &project(), &[in_cluster()]).into_iter().map(|c| c.message).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{change}");
        }
    }

    #[test]
    fn a_project_may_permit_only_the_clusters_that_are_scoped_to_it() {
        let mut project = project();
        let of = |project: &str| Destination { project: project.into(), ..in_cluster() };
        assert!(project_rules_for(&project, &of("")).cluster_permitted);
        project.spec.permit_only_project_scoped_clusters = true;
        let permitted = |owner: &str| project_rules_for(&project, &of(owner)).cluster_permitted;
        assert_eq!((permitted(""), permitted("other"), permitted("team")), (false, false, true));
    }

    #[test]
    fn a_repository_needs_a_pattern_and_as_in_argo_cd_a_denial_of_another_is_one() {
        let mut project = project();
        assert!(source_permitted(&project, "https://example.org/other/a"), "not the denied one, so permitted");
        project.spec.source_repos.pop();
        assert!(!source_permitted(&project, "https://example.org/other/a"));
        assert!(source_permitted(&project, "https://example.org/team/a.git"));
    }
}
