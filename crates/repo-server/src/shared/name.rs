//! Names of shared values, as Argo CD's repo-server makes them. Main function: [`manifests`].

use super::{entry, tracking};
use serde::Serialize;
use std::collections::BTreeMap;
use tiphys_api::{rpc::repo_server::ManifestRequest, source::ApplicationSource};
use tiphys_gocompat::fnv::hash32a;

/// The commits of the other sources whose files are read, by the normalised addresses of their
/// repositories.
pub(crate) type ResolvedRefs = BTreeMap<String, String>;

/// What is hashed of a source.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hashed<'a> {
    app_src: &'a ApplicationSource,
    src_refs: BTreeMap<&'a str, Ref<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_revisions: Option<&'a ResolvedRefs>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ref<'a> {
    #[serde(rename = "repoURL")]
    repo_url: &'a str,
    project: &'a str,
    target_revision: &'a str,
    chart: &'a str,
}

/// The name of the manifests of a source at a revision. `None`: the request has no source.
pub(crate) fn manifests(
    request: &ManifestRequest,
    revision: &str,
    refs: &ResolvedRefs,
) -> Option<String> {
    let number = source(request, refs)?.wrapping_add(cluster(request));
    // What is demanded of signatures is a part of the name, too: nothing is shared then.
    let mut name = format!(
        "mfst|{}|{}|{revision}|{}|{number}|nil",
        tracking(request),
        request.app_name,
        request.namespace
    );
    if !request.installation_id.is_empty() {
        name.push('|');
        name.push_str(&request.installation_id);
    }
    Some(name)
}

/// The name of the metadata of a commit.
pub(crate) fn metadata(repo: &str, sha: &str) -> String {
    format!("revisionmetadata|{repo}|{sha}")
}

fn source(request: &ManifestRequest, refs: &ResolvedRefs) -> Option<u32> {
    let mut source = request.application_source.clone()?;
    if source.chart.is_empty() {
        // The commit says as much.
        source.repo_url.clear();
        source.target_revision.clear();
    }
    let mut src_refs = BTreeMap::new();
    for (name, target) in &request.ref_sources {
        let repo = target.repo.as_ref()?;
        let commit = refs.get(&normalized(&repo.repo));
        src_refs.insert(
            name.as_str(),
            Ref {
                repo_url: &repo.repo,
                project: &repo.project,
                target_revision: commit.map_or("", String::as_str),
                chart: target.chart.as_deref().unwrap_or_default(),
            },
        );
    }
    let hashed = Hashed {
        app_src: &source,
        src_refs,
        resolved_revisions: Some(refs).filter(|refs| !refs.is_empty()),
    };
    let text = entry::json(&hashed)?;
    Some(hash32a(text.bytes()))
}

fn cluster(request: &ManifestRequest) -> u32 {
    let mut versions: Vec<&str> = request.api_versions.iter().map(String::as_str).collect();
    versions.sort_unstable();
    hash32a(format!("{}|{}", request.kube_version, versions.join(",")).bytes())
}

/// The address of a repository as Argo CD compares it in its cache. For nothing else:
/// [`tiphys_api::access`] decides what a credential is for.
pub(crate) fn normalized(url: &str) -> String {
    let mut url = url.trim().to_lowercase();
    if is_ssh(&url) && !url.starts_with("ssh://") {
        url = url.replacen(':', "/", 1);
    }
    let url = url.strip_suffix(".git").unwrap_or(&url);
    url.strip_prefix("ssh://").unwrap_or(url).to_owned()
}

fn is_ssh(url: &str) -> bool {
    let rest = url.strip_prefix("ssh://").unwrap_or(url);
    rest.split_once('@').is_some_and(|(user, host)| {
        !user.contains(['/', ':']) && !host.is_empty() && !host.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(source: serde_json::Value) -> ManifestRequest {
        ManifestRequest {
            application_source: Some(serde_json::from_value(source).expect("a source")),
            app_name: "web".to_owned(),
            app_label_key: "app.kubernetes.io/instance".to_owned(),
            tracking_method: "annotation".to_owned(),
            namespace: "prod".to_owned(),
            kube_version: "1.33.0".to_owned(),
            api_versions: vec!["v1".to_owned(), "apps/v1".to_owned()],
            ..ManifestRequest::default()
        }
    }

    #[test]
    fn a_name_says_what_the_manifests_depend_on() {
        let plain =
            request(json!({"repoURL": "https://h/r", "path": "a", "targetRevision": "main"}));
        let none = ResolvedRefs::new();
        let name = |request: &ManifestRequest| manifests(request, "abc", &none).expect("a name");
        let number = hash32a(
            br#"{"appSrc":{"repoURL":"","path":"a"},"srcRefs":{}}"#
                .iter()
                .copied(),
        )
        .wrapping_add(hash32a(b"1.33.0|apps/v1,v1".iter().copied()));
        assert_eq!(
            name(&plain),
            format!("mfst|annotation:app.kubernetes.io/instance|web|abc|prod|{number}|nil")
        );
        let labelled = ManifestRequest {
            tracking_method: String::new(),
            installation_id: "id".to_owned(),
            ..plain.clone()
        };
        assert_eq!(
            name(&labelled),
            format!("mfst|app.kubernetes.io/instance|web|abc|prod|{number}|nil|id")
        );
        let elsewhere =
            request(json!({"repoURL": "https://other/r", "path": "a", "targetRevision": "x"}));
        assert_eq!(name(&elsewhere), name(&plain), "the commit says as much");
        let chart = |version: &str| {
            request(json!({"repoURL": "https://h", "chart": "c", "targetRevision": version}))
        };
        assert_ne!(name(&chart("1")), name(&chart("2")));
    }

    #[test]
    fn options_of_jsonnet_are_left_out_where_there_are_none() {
        for (directory, text) in [
            (json!({"recurse": true}), r#"{"recurse":true}"#),
            (json!({"include": "a"}), r#"{"include":"a"}"#),
            (
                json!({"recurse": true, "exclude": "a"}),
                r#"{"recurse":true,"exclude":"a"}"#,
            ),
            (
                json!({"jsonnet": {"libs": ["l"]}}),
                r#"{"jsonnet":{"libs":["l"]}}"#,
            ),
        ] {
            let asked = request(json!({"repoURL": "r", "path": "a", "directory": directory}));
            let text = format!(
                r#"{{"appSrc":{{"repoURL":"","path":"a","directory":{text}}},"srcRefs":{{}}}}"#
            );
            let found = source(&asked, &ResolvedRefs::new());
            assert_eq!(found, Some(hash32a(text.bytes())), "{text}");
        }
    }

    #[test]
    fn the_commits_of_other_sources_count() {
        let mut plain = request(json!({"repoURL": "https://h/r", "path": "a"}));
        let target = serde_json::from_value(
            json!({"repo": {"repo": "https://H/values.git"}, "targetRevision": "main"}),
        );
        plain.ref_sources = [("$v".to_owned(), target.expect("a target"))].into();
        let at =
            |commit: &str| ResolvedRefs::from([("https://h/values".to_owned(), commit.to_owned())]);
        let text = br#"{"appSrc":{"repoURL":"","path":"a"},"srcRefs":{"$v":{"repoURL":"https://H/values.git","project":"","targetRevision":"c1","chart":""}},"resolvedRevisions":{"https://h/values":"c1"}}"#;
        assert_eq!(
            source(&plain, &at("c1")),
            Some(hash32a(text.iter().copied()))
        );
        assert_ne!(source(&plain, &at("c1")), source(&plain, &at("c2")));
    }

    #[test]
    fn addresses() {
        for (url, expected) in [
            (" https://Host/Group/Repo.git ", "https://host/group/repo"),
            ("git@host:group/repo.git", "git@host/group/repo"),
            ("ssh://git@host:22/group/repo", "git@host:22/group/repo"),
            ("https://user@host/repo", "https://user@host/repo"),
        ] {
            assert_eq!(normalized(url), expected);
        }
    }
}
