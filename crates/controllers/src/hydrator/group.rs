//! Applications that share a commit, and what must not be hydrated at all. Pure.
//!
//! Main types: [`GroupKey`] and [`Member`]; main function: [`faults`].

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tiphys_api::{
    AppProject, Application,
    access::shown_url,
    repo_url::RepoUrl,
    source::{ApplicationSource, SourceHydrator},
};
use tiphys_cluster::AppKey;
use tiphys_engine::spec;
use tiphys_repo::{BadPath, hydrated_folder};

/// What is rendered from where, and where to. URLs are in their canonical form: two spellings of
/// one repository must not write one branch by turns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupKey {
    pub dry_repository: String,
    pub dry_revision: String,
    pub repository: String,
    pub branch: String,
}

impl GroupKey {
    pub fn of(hydrator: &SourceHydrator) -> Self {
        let to = spec::hydrate_to(hydrator);
        Self {
            dry_repository: canonical(&hydrator.dry_source.repo_url),
            dry_revision: hydrator.dry_source.target_revision.clone(),
            repository: canonical(&to.repo_url),
            branch: to.target_revision,
        }
    }
}

fn canonical(url: &str) -> String {
    let url = url.trim();
    RepoUrl::parse(url).map_or_else(|_| url.to_owned(), |url| url.canonical())
}

/// An Application of a group.
#[derive(Clone, Debug)]
pub struct Member {
    pub key: AppKey,
    pub app: Application,
    pub hydrator: SourceHydrator,
}

impl Member {
    /// As messages name it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.key.namespace, self.key.name)
    }

    pub fn to(&self) -> ApplicationSource {
        spec::hydrate_to(&self.hydrator)
    }
}

/// Why members must not be hydrated, by the names of the members.
pub type Faults = BTreeMap<String, String>;

/// What is wrong with members. `project` knows a project, or why it cannot be used.
pub fn faults(
    members: &[Member],
    project: impl Fn(&Application) -> Result<Arc<AppProject>, String>,
) -> Faults {
    let mut faults = Faults::new();
    let mut taken: HashMap<String, &Member> = HashMap::new();
    for member in members {
        let folder = match fault(member, &project) {
            Ok(folder) => folder,
            Err(fault) => {
                faults.insert(member.name(), fault);
                continue;
            }
        };
        if let Some(other) = taken.get(&folder) {
            let same = |member: &Member, other: &Member| {
                let to = member.to();
                format!(
                    "app {} hydrator uses the same destination: repo={}, path={}",
                    other.name(),
                    shown_url(&to.repo_url),
                    to.path
                )
            };
            faults.insert(member.name(), same(member, other));
            faults.insert(other.name(), same(other, member));
            continue;
        }
        taken.insert(folder, member);
    }
    faults
}

/// The folder that a member is written to, in its canonical form.
fn fault(
    member: &Member,
    project: impl Fn(&Application) -> Result<Arc<AppProject>, String>,
) -> Result<String, String> {
    let name = spec::project_name(&member.app);
    let project =
        project(&member.app).map_err(|e| format!("failed to get project {name:?}: {e}"))?;
    let (dry, to) = (&member.hydrator.dry_source.repo_url, member.to());
    if !spec::source_permitted(&project, dry) {
        return Err(format!(
            "application repo {} is not permitted in project '{name}'",
            shown_url(dry)
        ));
    }
    let folder = hydrated_folder(&to.path).map_err(|e| match e {
        BadPath::Root => format!(
            "app is configured to hydrate to the repository root (branch {:?}, path {:?}) which is not allowed",
            to.target_revision, to.path
        ),
        refused @ BadPath::Refused { .. } => refused.to_string(),
    })?;
    if !spec::source_permitted(&project, &to.repo_url) {
        return Err(format!(
            "destination repo {} is not permitted in project '{name}'",
            shown_url(&to.repo_url)
        ));
    }
    Ok(folder)
}

/// What those are told that nothing is wrong with: a commit is of all or of none.
pub fn of_others(faults: &Faults) -> String {
    let first = faults.keys().next().map_or("", String::as_str);
    match faults.len() {
        0 | 1 => format!("cannot hydrate because application {first} has an error"),
        count => format!(
            "cannot hydrate because application {first} and {} more have errors",
            count - 1
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn member(name: &str, dry: &str, path: &str) -> Member {
        let hydrator = json!({
            "drySource": {"repoURL": dry, "path": "src", "targetRevision": "main"},
            "syncSource": {"targetBranch": "env/dev", "path": path},
        });
        let app = json!({
            "metadata": {"name": name, "namespace": "argocd"},
            "spec": {"sourceHydrator": hydrator},
        });
        Member {
            key: AppKey::new("argocd", name),
            app: serde_json::from_value(app).expect("an Application"),
            hydrator: serde_json::from_value(hydrator).expect("a hydrator"),
        }
    }

    fn of(members: &[Member], repos: &[&str]) -> Faults {
        let project = json!({"metadata": {"name": "default"}, "spec": {"sourceRepos": repos}});
        let project: AppProject = serde_json::from_value(project).expect("a project");
        faults(members, |_| Ok(Arc::new(project.clone())))
    }

    #[test]
    fn spellings_of_one_repository_are_one_group() {
        let key = |url: &str| GroupKey::of(&member("web", url, "apps/web").hydrator);
        let plain = key("https://git.example.test/acme/platform");
        for url in [
            "https://git.example.test/acme/platform.git",
            "https://GIT.example.test/acme/platform.git ",
            "https://git.example.test/acme/platform/",
        ] {
            assert_eq!(key(url), plain, "{url}");
        }
        assert_ne!(key("https://git.example.test/acme/other"), plain);
    }

    #[test]
    fn one_folder_is_of_one_application() {
        let url = "https://git.example.test/acme/platform";
        let all = [
            member("api", url, "apps/api"),
            member("clash", url, "apps/web/"),
            member("web", &format!("{url}.git"), "apps/web"),
        ];
        let found = of(&all, &["*"]);
        let said = |name: &str| found[name].as_str();
        assert_eq!(found.len(), 2);
        assert_eq!(
            said("argocd/clash"),
            format!(
                "app argocd/web hydrator uses the same destination: repo={url}, path=apps/web/"
            )
        );
        assert_eq!(
            said("argocd/web"),
            format!(
                "app argocd/clash hydrator uses the same destination: repo={url}.git, path=apps/web"
            )
        );
        assert_eq!(
            of_others(&found),
            "cannot hydrate because application argocd/clash and 1 more have errors"
        );
    }

    #[test]
    fn faults_are_told() {
        let url = "https://git.example.test/acme/platform";
        for (path, repos, expected) in [
            ("apps/web", &["*"][..], ""),
            (
                ".",
                &["*"],
                "app is configured to hydrate to the repository root (branch \"env/dev\", path \".\") which is not allowed",
            ),
            (
                "a/../../b",
                &["*"],
                "failed to write manifests: path \"a/../../b\" leaves the repository",
            ),
            (
                "apps/web",
                &["https://other.example.test/*"],
                "application repo https://git.example.test/acme/platform is not permitted in project 'default'",
            ),
        ] {
            let found = of(&[member("web", url, path)], repos);
            let said = found.get("argocd/web").map_or("", String::as_str);
            assert_eq!(said, expected, "{path}");
        }
        let one = of(&[member("web", url, "")], &["*"]);
        assert_eq!(
            of_others(&one),
            "cannot hydrate because application argocd/web has an error"
        );
    }
}
