//! Validates an Application's spec: whether it is complete and its project permits it.
//!
//! Main functions: [`validate`] and [`project_rules`]. They access no repository or cluster; the
//! resolved destination is an argument. The messages are Argo CD's.

mod hydrated;
mod missing;
mod normal;

pub use hydrated::{dry_source, has_several, hydrate_to, sync_source, synced};
pub use missing::{BrokenCluster, Clusters, Presence, look_up};
pub use normal::{is_normal, normalize, normalize_document};

use crate::{
    base::{Condition, ConditionType, DestinationRule, KindRule, OrphanRules, ProjectRules},
    permit,
};
use std::borrow::Cow;
use tiphys_api::{
    AppProject, Application,
    access::shown_url,
    application::{ApplicationDestination, ApplicationSpec},
    constants::{IN_CLUSTER, IN_CLUSTER_NAME},
    repo_url::{RepoUrl, canonical_pattern},
    source::{ApplicationSource, SourceHydrator},
};
use tiphys_gocompat::{glob::Glob, patterns};

/// A cluster that an Application may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    pub server: String,
    pub name: String,
    /// The project that the cluster is scoped to; empty if none.
    pub project: String,
}

/// The cluster that `destination` resolves to, among the known ones.
///
/// # Errors
/// The reason, as the condition's message.
pub fn destination(
    destination: &ApplicationDestination,
    clusters: &[Destination],
) -> Result<Destination, String> {
    let (server, name) = (destination.server.as_str(), destination.name.as_str());
    if !server.is_empty() && !name.is_empty() {
        return Err(format!(
            "application destination can't have both name and server defined: {name} {server}"
        ));
    }
    if !server.is_empty() {
        let wanted = server.trim_end_matches('/');
        let found = clusters
            .iter()
            .find(|c| c.server.trim_end_matches('/') == wanted);
        // The control plane's own cluster is known unless `cluster.inClusterEnabled` is false.
        let what = if wanted == IN_CLUSTER {
            "is disabled"
        } else {
            "not found"
        };
        return found.cloned().ok_or_else(|| {
            format!("error getting cluster by server \"{server}\": rpc error: code = NotFound desc = cluster \"{server}\" {what}")
        });
    }
    if name.is_empty() {
        return Err("Destination server missing from app spec".to_owned());
    }
    let local = || clusters.iter().find(|c| is_local_name(name, c));
    let mut found: Vec<_> = clusters.iter().filter(|c| c.name == name).collect();
    // Whoever may add clusters for one project must not redirect the Applications of others.
    if let &[one] = found.as_slice()
        && !one.project.is_empty()
        && let Some(local) = local().filter(|local| local.server != one.server)
    {
        found.insert(0, local);
    }
    match found.as_slice() {
        [] => local()
            .cloned()
            .ok_or_else(|| format!("there are no clusters with this name: {name}")),
        [one] => Ok((*one).clone()),
        _ => {
            let servers: Vec<_> = found.iter().map(|c| c.server.as_str()).collect();
            Err(format!(
                "there are {} clusters with the same name: [{}]",
                servers.len(),
                servers.join(" ")
            ))
        }
    }
}

/// Whether the name is the one that Argo CD gives the local cluster, which it keeps beside the name
/// in the cluster's Secret.
fn is_local_name(name: &str, cluster: &Destination) -> bool {
    name == IN_CLUSTER_NAME && cluster.server.trim_end_matches('/') == IN_CLUSTER
}

/// Whether neither server nor name of a destination matches a known cluster. Then it can have no
/// other meaning; any other error of [`destination`] is an error in the spec.
fn names_no_cluster(destination: &ApplicationDestination, clusters: &[Destination]) -> bool {
    let server = destination.server.trim_end_matches('/');
    let is_named = |c: &Destination| {
        (!server.is_empty() && c.server.trim_end_matches('/') == server)
            || (!destination.name.is_empty() && c.name == destination.name)
            || is_local_name(&destination.name, c)
    };
    !clusters.iter().any(is_named)
}

/// The sources of a spec: `sources`, the one `source`, or what is synced of a hydrator.
pub fn sources(spec: &ApplicationSpec) -> Vec<Cow<'_, ApplicationSource>> {
    if let Some(hydrator) = &spec.source_hydrator {
        return vec![Cow::Owned(sync_source(hydrator))];
    }
    if spec.sources.is_empty() {
        spec.source.iter().map(Cow::Borrowed).collect()
    } else {
        spec.sources.iter().map(Cow::Borrowed).collect()
    }
}

/// The errors in a spec, given its project and the known clusters. Empty: it is valid.
pub fn validate(
    spec: &ApplicationSpec,
    project: &AppProject,
    clusters: &[Destination],
) -> Vec<Condition> {
    let invalid = |message: String| Condition::new(ConditionType::InvalidSpecError, message);
    let refusals = match &spec.source_hydrator {
        Some(hydrator) => of_hydrator(hydrator, project),
        None => of_sources(spec, project),
    };
    let mut conditions: Vec<Condition> = match refusals {
        Ok(refusals) => refusals.into_iter().map(invalid).collect(),
        Err(incomplete) => return incomplete.into_iter().map(invalid).collect(),
    };
    let cluster = match destination(&spec.destination, clusters) {
        Ok(cluster) => cluster,
        Err(message) => {
            conditions.push(invalid(message));
            return conditions;
        }
    };
    if !permit::destination(
        &project_rules_for(project, &cluster),
        &cluster.server,
        &cluster.name,
        &spec.destination.namespace,
    ) {
        let shown = if spec.destination.name.is_empty() {
            &cluster.server
        } else {
            &cluster.name
        };
        conditions.push(invalid(format!(
            "application destination server '{shown}' and namespace '{}' do not match any of the allowed destinations in project '{}'",
            spec.destination.namespace, project.metadata.name
        )));
    }
    conditions
}

/// Why a project does not permit the sources of a spec. An error: they are incomplete.
fn of_sources(spec: &ApplicationSpec, project: &AppProject) -> Result<Vec<String>, Vec<String>> {
    let several = !spec.sources.is_empty();
    let sources = sources(spec);
    if sources.is_empty() {
        return Err(vec![
            "spec.source.repoURL and either spec.source.path or spec.source.chart are required"
                .to_owned(),
        ]);
    }
    let mut refusals = Vec::new();
    for (n, source) in sources.iter().enumerate() {
        if let Some(message) = incomplete(source, several) {
            return Err(vec![message]);
        }
        let at = if several {
            format!("spec.sources[{n}]")
        } else {
            "spec.source".to_owned()
        };
        if let Some(message) = badly_addressed(source, &at) {
            return Err(vec![message]);
        }
        if !source_permitted(project, &source.repo_url) {
            refusals.push(not_permitted(project, &source.repo_url));
        }
    }
    Ok(refusals)
}

/// The same of a hydrator.
fn of_hydrator(
    hydrator: &SourceHydrator,
    project: &AppProject,
) -> Result<Vec<String>, Vec<String>> {
    let missing = hydrated::incomplete(hydrator);
    if !missing.is_empty() {
        return Err(missing.into_iter().map(str::to_owned).collect());
    }
    let (dry, sync) = (dry_source(hydrator), sync_source(hydrator));
    for (source, at) in [(&dry, "drySource"), (&sync, "syncSource")] {
        if let Some(fault) = badly_addressed(source, &format!("spec.sourceHydrator.{at}")) {
            return Err(vec![fault]);
        }
    }
    let mut refusals = Vec::new();
    if !source_permitted(project, &dry.repo_url) {
        refusals.push(not_permitted(project, &dry.repo_url));
    }
    if sync.repo_url != dry.repo_url && !source_permitted(project, &sync.repo_url) {
        refusals.push(format!(
            "sync source repo {} is not permitted in project '{}'",
            shown_url(&sync.repo_url),
            project.metadata.name
        ));
    }
    Ok(refusals)
}

/// Why a project does not permit sources, whether they come from a spec, an operation or a history
/// entry. Anyone who can edit an Application can write any of these.
pub fn refused_sources(sources: &[ApplicationSource], project: &AppProject) -> Option<String> {
    sources.iter().enumerate().find_map(|(n, source)| {
        badly_addressed(source, &format!("sources[{n}]")).or_else(|| {
            (!source_permitted(project, &source.repo_url))
                .then(|| not_permitted(project, &source.repo_url))
        })
    })
}

/// The condition of an Application whose project does not exist, or does not permit Applications in
/// its namespace.
pub fn project_condition(
    app: &Application,
    project: Option<&AppProject>,
    control_namespace: &str,
) -> Option<Condition> {
    let name = project_name(app);
    let Some(project) = project else {
        return Some(Condition::new(
            ConditionType::InvalidSpecError,
            format!("Application referencing project {name} which does not exist"),
        ));
    };
    let namespace = app.metadata.namespace.as_str();
    (!namespace_permitted(project, namespace, control_namespace)).then(|| {
        let message = format!(
            "application '{}' in namespace '{namespace}' is not permitted to use project '{name}'",
            app.metadata.name
        );
        Condition::new(ConditionType::UnknownError, message)
    })
}

/// Whether a project permits Applications in a namespace; the control plane's namespace is always
/// permitted.
pub fn namespace_permitted(project: &AppProject, namespace: &str, control_namespace: &str) -> bool {
    namespace == control_namespace
        || permit::listed(&project.spec.source_namespaces, |pattern| {
            patterns::fits(pattern, namespace)
        })
}

/// An empty project means `default`.
pub fn project_name(app: &Application) -> &str {
    if app.spec.project.is_empty() {
        "default"
    } else {
        &app.spec.project
    }
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
        return Some(
            "spec.source.repoURL and either spec.source.path or spec.source.chart are required"
                .to_owned(),
        );
    }
    (!source.chart.is_empty() && source.target_revision.is_empty()).then(|| {
        "spec.source.targetRevision is required if the manifest source is a helm chart".to_owned()
    })
}

/// Whether a project permits a repository: some pattern without `!` matches it, and no `!pattern`
/// does. An ambiguous URL is not permitted.
pub fn source_permitted(project: &AppProject, url: &str) -> bool {
    let Ok(url) = RepoUrl::parse(url) else {
        return false;
    };
    let url = url.canonical();
    permit::listed(&project.spec.source_repos, |pattern| match pattern {
        "*" => Some(true),
        pattern => Glob::new(&canonical_pattern(pattern), &['/'])
            .ok()
            .map(|pattern| pattern.matches(&url)),
    })
}

/// The first invalid field of a source: its URL, or a path or name in it. `at` is `spec.source` or
/// `spec.sources[1]`.
fn badly_addressed(source: &ApplicationSource, at: &str) -> Option<String> {
    if let Err(fault) = RepoUrl::parse(&source.repo_url) {
        return Some(format!(
            "{at}.repoURL: {} is not the address of a repository: {fault}",
            shown_url(&source.repo_url)
        ));
    }
    let unreadable = |text: &str| text.contains(|c: char| c.is_control() || c == '\\');
    let says = |field: String, text: &str| {
        format!("{at}.{field}: {text:?} has a backslash or a control character")
    };
    let fields = [
        ("path", &source.path),
        ("chart", &source.chart),
        ("targetRevision", &source.target_revision),
        ("ref", &source.ref_),
    ];
    if let Some((field, text)) = fields.into_iter().find(|(_, text)| unreadable(text)) {
        return Some(says(field.to_owned(), text));
    }
    // A chart's name is appended to the URL of its registry.
    if source
        .chart
        .split('/')
        .any(|segment| matches!(segment, "." | ".."))
    {
        return Some(format!(
            "{at}.chart: {:?} has a '.' or '..' segment",
            source.chart
        ));
    }
    // A path that leaves the repository is refused when it is read, with Argo CD's message.
    let mut files = source
        .helm
        .iter()
        .flat_map(|helm| &helm.value_files)
        .enumerate();
    files
        .find(|(_, file)| unreadable(file))
        .map(|(n, file)| says(format!("helm.valueFiles[{n}]"), file))
}

/// The message for a repository that the project does not permit.
pub fn not_permitted(project: &AppProject, url: &str) -> String {
    format!(
        "application repo {} is not permitted in project '{}'",
        shown_url(url),
        project.metadata.name
    )
}

/// A project's rules in the form that the comparison takes.
pub fn project_rules(project: &AppProject) -> ProjectRules {
    let spec = &project.spec;
    let kinds = |list: &[tiphys_api::meta::GroupKind]| -> Vec<KindRule> {
        list.iter()
            .map(|k| KindRule {
                group: k.group.clone(),
                kind: k.kind.clone(),
                name: String::new(),
            })
            .collect()
    };
    let named = |list: &[tiphys_api::project::ClusterResourceRestrictionItem]| -> Vec<KindRule> {
        list.iter()
            .map(|k| KindRule {
                group: k.group.clone(),
                kind: k.kind.clone(),
                name: k.name.clone(),
            })
            .collect()
    };
    let place = |d: &ApplicationDestination| DestinationRule {
        server: d.server.clone(),
        name: d.name.clone(),
        namespace: d.namespace.clone(),
    };
    ProjectRules {
        name: project.metadata.name.clone(),
        cluster_whitelist: named(&spec.cluster_resource_whitelist),
        cluster_blacklist: named(&spec.cluster_resource_blacklist),
        namespace_whitelist: spec
            .namespace_resource_whitelist
            .as_ref()
            .map(|list| kinds(&list.0)),
        namespace_blacklist: kinds(&spec.namespace_resource_blacklist),
        destinations: spec.destinations.iter().map(place).collect(),
        cluster_permitted: true,
        orphans: spec.orphaned_resources.as_ref().map(|o| {
            let ignore = o.ignore.iter().map(|k| KindRule {
                group: k.group.clone(),
                kind: k.kind.clone(),
                name: k.name.clone(),
            });
            OrphanRules {
                warn: o.warn.unwrap_or(true),
                ignore: ignore.collect(),
            }
        }),
    }
}

/// Like [`project_rules`], for one cluster: some projects permit only clusters that are scoped to
/// them.
pub fn project_rules_for(project: &AppProject, cluster: &Destination) -> ProjectRules {
    let own = !project.metadata.name.is_empty() && cluster.project == project.metadata.name;
    ProjectRules {
        cluster_permitted: own || !project.spec.permit_only_project_scoped_clusters,
        ..project_rules(project)
    }
}

/// The cluster that the control plane runs in.
pub fn in_cluster() -> Destination {
    Destination {
        server: IN_CLUSTER.to_owned(),
        name: "in-cluster".to_owned(),
        project: String::new(),
    }
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
    fn an_empty_list_of_allowed_kinds_allows_none() {
        for (list, expected) in [(json!(null), None), (json!([]), Some(0))] {
            let project = json!({"spec": {"namespaceResourceWhitelist": list}});
            let project = serde_json::from_value(project).expect("a project");
            let allowed = project_rules(&project).namespace_whitelist;
            assert_eq!(allowed.map(|kinds| kinds.len()), expected, "{list}");
        }
    }

    #[test]
    fn c55_c81_c82_every_fault_has_argo_cds_words() {
        let good = json!({"project": "team", "source": {"repoURL": "https://example.org/team/a.git", "path": "p"}, "destination": {"server": IN_CLUSTER, "namespace": "team-a"}});
        for (change, expected) in [
            (json!({}), None),
            (
                json!({"source": {"path": null}}),
                Some(
                    "spec.source.repoURL and either spec.source.path or spec.source.chart are required",
                ),
            ),
            (
                json!({"source": {"path": null, "chart": "c"}}),
                Some(
                    "spec.source.targetRevision is required if the manifest source is a helm chart",
                ),
            ),
            (
                json!({"source": {"repoURL": "https://example.org/team/secret"}}),
                Some(
                    "application repo https://example.org/team/secret is not permitted in project 'team'",
                ),
            ),
            (
                json!({"destination": {"namespace": "b"}}),
                Some(
                    "application destination server 'https://kubernetes.default.svc' and namespace 'b' do not match any of the allowed destinations in project 'team'",
                ),
            ),
            (
                json!({"destination": {"server": null}}),
                Some("Destination server missing from app spec"),
            ),
            (
                json!({"destination": {"name": "x"}}),
                Some(
                    "application destination can't have both name and server defined: x https://kubernetes.default.svc",
                ),
            ),
            (
                json!({"destination": {"server": null, "name": "x"}}),
                Some("there are no clusters with this name: x"),
            ),
        ] {
            let spec =
                spec(tiphys_apimachinery::patch::json_merge::apply(&good, &change).expect("maps"));
            let found: Vec<_> = validate(&spec, &project(), &[in_cluster()])
                .into_iter()
                .map(|c| c.message)
                .collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{change}");
        }
    }

    /// Argo CD takes the Secret, which any team with a Secret of its own could use to redirect the
    /// Applications of others.
    #[test]
    fn the_name_of_the_local_cluster_is_refused_if_a_secret_has_it_too() {
        let far = Destination {
            server: "https://far.example".into(),
            name: "in-cluster".into(),
            project: "team".into(),
        };
        let find = |clusters: &[Destination], server: &str, name: &str| {
            let to = ApplicationDestination {
                server: server.into(),
                name: name.into(),
                ..Default::default()
            };
            destination(&to, clusters).map(|found| found.server)
        };
        let alone = [in_cluster()];
        assert_eq!(find(&alone, "", "in-cluster").as_deref(), Ok(IN_CLUSTER));
        let both = [in_cluster(), far];
        assert_eq!(
            find(&both, "", "in-cluster").expect_err("two have the name"),
            format!("there are 2 clusters with the same name: [{IN_CLUSTER} https://far.example]")
        );
        for server in [IN_CLUSTER, "https://far.example"] {
            assert_eq!(find(&both, server, "").as_deref(), Ok(server));
        }
        // Also when the Secret of the local cluster gives it another name, unless an administrator
        // gave the other one this name.
        let local = Destination {
            name: "home".into(),
            ..in_cluster()
        };
        let [_, mut far] = both;
        let renamed = |far: &Destination| [local.clone(), far.clone()];
        assert_eq!(
            find(&renamed(&far), "", "in-cluster").expect_err("two have the name"),
            format!("there are 2 clusters with the same name: [{IN_CLUSTER} https://far.example]")
        );
        far.project = String::new();
        let found = find(&renamed(&far), "", "in-cluster");
        assert_eq!(found.as_deref(), Ok("https://far.example"));
        // The local cluster keeps its own names for the project that it belongs to.
        let own = Destination {
            project: "team".into(),
            ..in_cluster()
        };
        assert_eq!(find(&[own], "", "in-cluster").as_deref(), Ok(IN_CLUSTER));
    }

    #[test]
    fn c55_a_name_that_several_clusters_have_is_none() {
        let cluster = |server: &str, name: &str| Destination {
            server: server.into(),
            name: name.into(),
            project: String::new(),
        };
        let clusters = [
            cluster("https://a", "twin"),
            cluster("https://b", "twin"),
            cluster("https://c", "c"),
        ];
        let named = |server: &str, name: &str| {
            let wanted = ApplicationDestination {
                server: server.into(),
                name: name.into(),
                ..Default::default()
            };
            destination(&wanted, &clusters).map(|found| found.server)
        };
        assert_eq!(
            named("", "twin"),
            Err("there are 2 clusters with the same name: [https://a https://b]".to_owned())
        );
        assert_eq!(
            (named("", "c"), named("https://b/", "")),
            (Ok("https://c".to_owned()), Ok("https://b".to_owned()))
        );
        let unknown = "error getting cluster by server \"https://d\": rpc error: code = NotFound desc = cluster \"https://d\" not found";
        assert_eq!(named("https://d", ""), Err(unknown.to_owned()));
        let both = "application destination can't have both name and server defined: another-cluster https://localhost:6443";
        assert_eq!(
            named("https://localhost:6443", "another-cluster"),
            Err(both.to_owned())
        );
    }

    #[test]
    fn a_project_may_permit_only_the_clusters_that_are_scoped_to_it() {
        let mut project = project();
        let of = |project: &str| Destination {
            project: project.into(),
            ..in_cluster()
        };
        assert!(project_rules_for(&project, &of("")).cluster_permitted);
        project.spec.permit_only_project_scoped_clusters = true;
        let permitted = |owner: &str| project_rules_for(&project, &of(owner)).cluster_permitted;
        assert_eq!(
            (permitted(""), permitted("other"), permitted("team")),
            (false, false, true)
        );
    }

    /// (patterns, permitted, not permitted)
    const SOURCE_REPOS: &[(&[&str], &[&str], &[&str])] = &[
        (&[], &[], &["https://h/a"]),
        (
            &["*"],
            &["https://h/a", "git@h:a", "/srv/a"],
            &["https://h/a/../b", "https://h/a\nb", ""],
        ),
        (&["!https://h/x"], &[], &["https://h/x", "https://h/a"]),
        (&["!*"], &[], &["https://h/a"]),
        (&["*", "!*"], &[], &["https://h/a"]),
        (
            &["*", "!https://h/secret/*"],
            &["https://h/a", "ssh://git@h/a"],
            &[
                "https://h/secret/x",
                "https://H:443/Secret/x.git",
                "https://me:pw@h/secret/x",
                "https://h//secret//x",
                "https://h./secret/x",
                "https://h/%73ecret/x",
                "https://h/a/../secret/x",
                "https://h/a/%2e%2e/secret/x",
                "https://h/a/%252e%252e/secret/x",
                "https://h/secret%2fx",
                "https://h/secret\\x",
            ],
        ),
        (
            &["!https://h/secret/*", "*"],
            &["https://h/a"],
            &["https://h/secret/x"],
        ),
        (
            &["https://h/team/*"],
            &[
                "https://h/team/a",
                "https://h/team/A.git",
                "https://h:443/team/a/",
            ],
            &[
                "https://h/team/a/b",
                "https://h/team/..\\other",
                "https://h/team/..",
                "https://h/team/../other",
                "https://h/team/%2e%2e",
                "https://h/team/..%2fother",
                "https://h/team/a?/../../other",
                "https://h/team/a#b",
                "https://h/team",
                "https://evil@h:8443/team/a",
                "http://h/team/a",
                "https://h@evil/team/a",
            ],
        ),
        (
            &["https://h/team/**"],
            &["https://h/team/a/b"],
            &[
                "https://h/team/a/../../other",
                "https://h/team/%2e%2e/other",
                "https://h/team/a\0",
            ],
        ),
        (
            &["git@h:team/*"],
            &["git@h:team/a", "ssh://git@h/team/a.git"],
            &[
                "git@h:team/../other",
                "git@h:other/a",
                "x@h:team/a",
                "ssh://git@h:2222/team/a",
            ],
        ),
        (
            &["/srv/team/*"],
            &["/srv/team/a", "file:///srv/team/a"],
            &["/srv/team/../other", "file:///srv/team/%2e%2e/other"],
        ),
        (
            &["ghcr.io/team/*"],
            &["ghcr.io/team/a"],
            &["ghcr.io/team/../other/a", "ghcr.io/other/a"],
        ),
        // An invalid pattern permits nothing, and denies everything.
        (&["https://h/[a"], &[], &["https://h/[a", "https://h/a"]),
        (&["*", "!https://h/[a"], &[], &["https://h/b"]),
    ];

    #[test]
    fn a_repository_needs_a_pattern_and_no_denial() {
        for (patterns, yes, no) in SOURCE_REPOS {
            let project: AppProject =
                serde_json::from_value(json!({"spec": {"sourceRepos": patterns}}))
                    .expect("a project");
            for url in *yes {
                assert!(
                    source_permitted(&project, url),
                    "{patterns:?} permits {url}"
                );
            }
            for url in *no {
                assert!(
                    !source_permitted(&project, url),
                    "{patterns:?} does not permit {url}"
                );
            }
        }
    }

    #[test]
    fn a_bad_address_is_refused_by_its_field() {
        let everything: AppProject = serde_json::from_value(
            json!({"metadata": {"name": "p"}, "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}}),
        )
        .expect("a project");
        for (sources, expected) in [
            (
                json!([{"repoURL": "https://u:CANARY@h/t/../o", "path": "p"}]),
                "spec.sources[0].repoURL: https://h/t/../o is not the address of a repository: it has a '.' or '..' segment",
            ),
            (
                json!([{"repoURL": "https://h/r", "path": "p"}, {"repoURL": "https://h/t\\o", "path": "p"}]),
                "spec.sources[1].repoURL: https://h/t\\o is not the address of a repository: it has a backslash",
            ),
            (
                json!([{"repoURL": "https://h/r", "path": "a\0b"}]),
                "spec.sources[0].path: \"a\\0b\" has a backslash or a control character",
            ),
            (
                json!([{"repoURL": "https://h/r", "path": "..\\other"}]),
                "spec.sources[0].path: \"..\\\\other\" has a backslash or a control character",
            ),
            (
                json!([{"repoURL": "ghcr.io/team", "chart": "../other/x", "targetRevision": "1"}]),
                "spec.sources[0].chart: \"../other/x\" has a '.' or '..' segment",
            ),
            (
                json!([{"repoURL": "https://h/r", "path": "p", "targetRevision": "a\nb"}]),
                "spec.sources[0].targetRevision: \"a\\nb\" has a backslash or a control character",
            ),
            (
                json!([{"repoURL": "https://h/r", "path": "p", "helm": {"valueFiles": ["v.yaml", "a\rb"]}}]),
                "spec.sources[0].helm.valueFiles[1]: \"a\\rb\" has a backslash or a control character",
            ),
        ] {
            let spec = spec(
                json!({"project": "p", "sources": sources, "destination": {"server": IN_CLUSTER, "namespace": "a"}}),
            );
            let found: Vec<_> = validate(&spec, &everything, &[in_cluster()])
                .into_iter()
                .map(|c| c.message)
                .collect();
            assert_eq!(found, [expected]);
        }
        let fine = spec(
            json!({"project": "p", "source": {"repoURL": "https://h/r", "path": "./a/../b", "helm": {"valueFiles": ["../common/v.yaml", "$ref/../x.yaml"]}}, "destination": {"server": IN_CLUSTER, "namespace": "a"}}),
        );
        assert_eq!(validate(&fine, &everything, &[in_cluster()]), []);
    }

    #[test]
    fn namespaces_of_applications_may_be_denied() {
        let project: AppProject = serde_json::from_value(
            json!({"spec": {"sourceNamespaces": ["*", "!kube-*", "!/^secret/"]}}),
        )
        .expect("a project");
        let permitted = |namespace| namespace_permitted(&project, namespace, "argocd");
        assert!(permitted("team") && permitted("argocd"));
        assert!(!permitted("kube-system") && !permitted("secret-team"));
        let only_denied: AppProject =
            serde_json::from_value(json!({"spec": {"sourceNamespaces": ["!kube-*"]}}))
                .expect("a project");
        assert!(!namespace_permitted(&only_denied, "team", "argocd"));
        let broken: AppProject =
            serde_json::from_value(json!({"spec": {"sourceNamespaces": ["*", "!/(/"]}}))
                .expect("a project");
        assert!(!namespace_permitted(&broken, "team", "argocd"));
    }
}
