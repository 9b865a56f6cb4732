//! Registry events: a pushed tag, and the Applications that follow it. Main type: [`Pushed`].

use super::{
    Refusal,
    payload::{json, or_default},
};
use serde::Deserialize;
use tiphys_api::Application;
use tiphys_engine::spec;
use tiphys_gocompat::semver::{Constraints, Version};

/// A tag of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// With the registry's host, without a scheme.
    pub repository: String,
    pub tag: String,
}

impl Pushed {
    /// Whether one of the Application's sources is this repository, or a chart in it, and follows
    /// the tag.
    pub fn concerns(&self, app: &Application) -> bool {
        let (pushed, version) = (plain(&self.repository), Version::parse(&self.tag).ok());
        let follows = |target: &str| {
            let within = |version: &Version| {
                Constraints::parse(target).is_ok_and(|constraints| constraints.check(version))
            };
            self.tag == target || version.as_ref().is_some_and(within)
        };
        let is_it = |url: &str, chart: &str| {
            plain(url) == pushed
                || (!chart.is_empty()
                    && plain(&format!("{}/{chart}", url.trim_end_matches('/'))) == pushed)
        };
        let dry = app
            .spec
            .source_hydrator
            .iter()
            .map(|hydrator| &hydrator.dry_source);
        let mut dry = dry.map(|source| {
            (
                source.repo_url.as_str(),
                "",
                source.target_revision.as_str(),
            )
        });
        let sources = spec::sources(&app.spec);
        let mut sources = sources.iter().map(|s| {
            (
                s.repo_url.as_str(),
                s.chart.as_str(),
                s.target_revision.as_str(),
            )
        });
        let at = |(url, chart, target): (&str, &str, &str)| is_it(url, chart) && follows(target);
        sources.any(at) || dry.any(at)
    }
}

/// Normalises an address for comparison.
fn plain(url: &str) -> String {
    let url = url.strip_prefix("oci://").unwrap_or(url);
    url.strip_suffix('/').unwrap_or(url).to_lowercase()
}

/// GitHub's registry: a container published under a tag; `None` for any other event.
pub fn ghcr(content: &[u8]) -> Result<Option<Pushed>, Refusal> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Event {
        #[serde(deserialize_with = "or_default")]
        action: String,
        #[serde(deserialize_with = "or_default")]
        package: Package,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Package {
        #[serde(deserialize_with = "or_default")]
        name: String,
        #[serde(deserialize_with = "or_default")]
        package_type: String,
        #[serde(deserialize_with = "or_default")]
        owner: Owner,
        #[serde(deserialize_with = "or_default")]
        package_version: Published,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Owner {
        #[serde(deserialize_with = "or_default")]
        login: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Published {
        #[serde(deserialize_with = "or_default")]
        container_metadata: Container,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Container {
        #[serde(deserialize_with = "or_default")]
        tag: Tag,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Tag {
        #[serde(deserialize_with = "or_default")]
        name: String,
    }
    let Event { action, package } = json(content)?;
    let tag = package.package_version.container_metadata.tag.name;
    let published = action == "published"
        && package.package_type.eq_ignore_ascii_case("container")
        && !tag.is_empty();
    Ok(published.then(|| Pushed {
        repository: format!("ghcr.io/{}/{}", package.owner.login, package.name),
        tag,
    }))
}

/// Harbor: the first artifact of a push that has a tag.
pub fn harbor(content: &[u8]) -> Result<Option<Pushed>, Refusal> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Event {
        #[serde(rename = "type", deserialize_with = "or_default")]
        kind: String,
        #[serde(deserialize_with = "or_default")]
        event_data: Data,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Data {
        #[serde(deserialize_with = "or_default")]
        resources: Vec<Option<Resource>>,
        #[serde(deserialize_with = "or_default")]
        repository: Repository,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Resource {
        #[serde(deserialize_with = "or_default")]
        tag: String,
        #[serde(deserialize_with = "or_default")]
        resource_url: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Repository {
        #[serde(deserialize_with = "or_default")]
        name: String,
        #[serde(deserialize_with = "or_default")]
        namespace: String,
        #[serde(deserialize_with = "or_default")]
        repo_full_name: String,
    }
    let Event {
        kind,
        event_data: Data {
            resources,
            repository,
        },
    } = json(content)?;
    if kind != "PUSH_ARTIFACT" {
        return Ok(None);
    }
    let tagged = resources
        .into_iter()
        .flatten()
        .filter(|r| !r.tag.is_empty());
    let Some((host, tag)) = tagged
        .into_iter()
        .find_map(|r| Some((host(&r.resource_url)?.to_owned(), r.tag)))
    else {
        return Ok(None);
    };
    let name = match (
        repository.repo_full_name,
        repository.namespace,
        repository.name,
    ) {
        (full, _, _) if !full.is_empty() => full,
        (_, namespace, name) if !namespace.is_empty() && !name.is_empty() => {
            format!("{namespace}/{name}")
        }
        _ => return Err(Refusal::Failed),
    };
    Ok(Some(Pushed {
        repository: format!("{host}/{name}"),
        tag,
    }))
}

/// The registry of `host/namespace/repository:tag`, with its port.
fn host(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, path) = rest.split(['?', '#']).next()?.split_once('/')?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let strange = |c: char| c.is_whitespace() || c.is_control();
    let port = host
        .rsplit_once(':')
        .map_or("", |(_, port)| port)
        .trim_end_matches(']');
    (!host.is_empty()
        && !path.is_empty()
        && !host.contains(strange)
        && port.chars().all(|c| c.is_ascii_hexdigit()))
    .then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn app(url: &str, chart: &str, revision: &str) -> Application {
        let source = json!({"repoURL": url, "chart": chart, "targetRevision": revision});
        serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {"sources": [{"repoURL": "https://x"}, source]}}))
            .expect("an Application")
    }

    #[test]
    fn who_follows_a_tag() {
        let pushed = Pushed {
            repository: "ghcr.io/Org/app".into(),
            tag: "1.2.3".into(),
        };
        for (url, chart, revision, concerned) in [
            ("oci://ghcr.io/org/app", "", "1.2.3", true),
            ("oci://ghcr.io/org/app/", "", "1.x", true),
            ("ghcr.io/org", "app", ">= 1", true),
            ("oci://ghcr.io/org/", "app", "^1.2", true),
            ("oci://ghcr.io/org/app", "", "2.x", false),
            ("oci://ghcr.io/org/app", "", "latest", false),
            ("oci://ghcr.io/org/app2", "", "1.2.3", false),
            ("oci://ghcr.io/org", "other", "1.2.3", false),
            ("https://ghcr.io/org/app", "", "1.2.3", false),
        ] {
            assert_eq!(
                pushed.concerns(&app(url, chart, revision)),
                concerned,
                "{url} {chart} {revision}"
            );
        }
        let latest = Pushed {
            tag: "latest".into(),
            ..pushed
        };
        assert!(
            latest.concerns(&app("oci://ghcr.io/org/app", "", "latest"))
                && !latest.concerns(&app("oci://ghcr.io/org/app", "", "*"))
        );
        let hydrated = json!({"metadata": {"name": "a"}, "spec": {"sourceHydrator": {"drySource": {"repoURL": "oci://ghcr.io/org/app", "targetRevision": "latest"}}}});
        assert!(latest.concerns(&serde_json::from_value(hydrated).expect("an Application")));
    }

    #[test]
    fn what_harbor_pushed() {
        let push = |resources: Value, repository: Value| {
            let event = json!({"type": "PUSH_ARTIFACT", "event_data": {"resources": resources, "repository": repository}});
            harbor(event.to_string().as_bytes()).map(|pushed| {
                pushed.map_or_else(String::new, |p| format!("{} {}", p.repository, p.tag))
            })
        };
        let full = json!({"repo_full_name": "team/app"});
        let at = |url: &str| json!([null, {"tag": "", "resource_url": url}, {"tag": "1", "resource_url": url}, {"tag": "2", "resource_url": url}]);
        for (url, expected) in [
            (
                "harbor.example:8443/team/app:1",
                "harbor.example:8443/team/app 1",
            ),
            (
                "https://harbor.example/team/app:1",
                "harbor.example/team/app 1",
            ),
            ("harbor.example", ""),
            ("harbor.example/", ""),
            ("/team/app", ""),
            ("harbor.example:port/team", ""),
        ] {
            assert_eq!(
                push(at(url), full.clone()),
                Ok(expected.to_owned()),
                "{url}"
            );
        }
        assert_eq!(
            push(at("h/a"), json!({"namespace": "n", "name": "a"})),
            Ok("h/n/a 1".to_owned())
        );
        assert_eq!(
            push(at("h/a"), json!({"namespace": "n"})),
            Err(Refusal::Failed)
        );
    }
}
