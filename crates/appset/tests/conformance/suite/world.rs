//! The world of a case. Main type: [`World`].

use super::pathspec;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::ApplicationSet;
use tiphys_apimachinery::selector::LabelSelector;
use tiphys_appset::{
    Answer, ClusterSecret, Decisions, Endpoint, Facts, Generated, Need, NeedError, Outcome,
    PLUGIN_PATH, PullRequest, Repository, RepositoryId, Tree, generate,
};
use tiphys_gocompat::sprig::Sources;

type Answered = Result<Answer, NeedError>;

pub struct World<'c> {
    pub case: &'c Value,
    /// What the plugin received.
    pub requests: RefCell<Vec<Value>>,
}

impl<'c> World<'c> {
    pub fn new(case: &'c Value) -> Self {
        Self {
            case,
            requests: RefCell::default(),
        }
    }

    /// Runs a set until no answer is missing.
    pub fn generate(&self, set: &ApplicationSet) -> Generated {
        let mut facts = Facts::default();
        loop {
            match generate(set, &facts, &mut sources()) {
                Outcome::Done(generated) => return generated,
                Outcome::Needs(needs) => {
                    for need in needs {
                        let answer = self.answer(&need);
                        facts.add(need, answer);
                    }
                }
            }
        }
    }

    fn answer(&self, need: &Need) -> Answered {
        match need {
            Need::Clusters => Ok(Answer::Clusters(clusters(&self.case["clusters"]))),
            Need::Project(name) => {
                let exists = match self.case["projects"].as_array() {
                    Some(projects) => projects.iter().any(|p| p["metadata"]["name"] == **name),
                    None => name == "default",
                };
                match exists {
                    true => Ok(Answer::Project),
                    false => Err(NeedError::not_found(format!(
                        "appprojects.argoproj.io \"{name}\" not found"
                    ))),
                }
            }
            Need::Directories(tree) => Ok(Answer::Directories(directories(&self.files(tree)?))),
            Need::Files { tree, pattern } => self.matching(tree, pattern),
            Need::ConfigMap(name) => match self.case["configmaps"][name].as_object() {
                Some(data) => Ok(Answer::ConfigMap(texts(data))),
                None => Err(NeedError::not_found("configmap not found")),
            },
            Need::Decisions(asked) => Ok(Answer::Decisions(self.decisions(asked)?)),
            Need::Plugin { config_map, body } => self.plugin(config_map, body),
            Need::Repositories(_) => match self.case["scm"]["error"].as_str() {
                Some(error) => Err(NeedError::failed(error)),
                None => Ok(Answer::Repositories(self.repositories())),
            },
            Need::Branches { repository, .. } => {
                Ok(Answer::Repositories(self.branches(repository)))
            }
            Need::HasPath {
                repository, path, ..
            } => Ok(Answer::HasPath(self.has_path(repository, path)?)),
            Need::PullRequests(_) => self.pull_requests(),
        }
    }

    fn files(&self, tree: &Tree) -> Result<BTreeMap<String, Vec<u8>>, NeedError> {
        let repos = self.case["repos"].as_object().into_iter().flatten();
        let repo = repos
            .into_iter()
            .find(|(url, _)| same_url(url, &tree.repo_url))
            .map(|(_, repo)| repo)
            .ok_or_else(|| NeedError::failed("repository not found"))?;
        let revision = match tree.revision.as_str() {
            "" => "HEAD",
            revision => revision,
        };
        let files = repo["revisions"][revision]
            .as_object()
            .ok_or_else(|| NeedError::failed("unable to resolve git revision"))?;
        Ok(files
            .iter()
            .map(|(path, content)| {
                let content = content.as_str().unwrap_or_default();
                (path.clone(), content.as_bytes().to_vec())
            })
            .collect())
    }

    fn matching(&self, tree: &Tree, pattern: &str) -> Answered {
        let mut files = self.files(tree)?;
        if self.case["settings"]["new_git_file_globbing"] == true {
            let found = pathspec::doublestar(pattern, &files).map_err(NeedError::failed)?;
            files.retain(|path, _| found.contains(path));
        } else {
            files.retain(|path, _| pathspec::git(pattern, path));
        }
        Ok(Answer::Files(files))
    }

    fn decisions(&self, asked: &Decisions) -> Result<Vec<Value>, NeedError> {
        let decision = &self.case["decision"];
        if decision["plural"] != *asked.resource {
            return Ok(Vec::new());
        }
        let selector = serde_json::from_str(&asked.selector).unwrap_or_default();
        let selector =
            LabelSelector::from_json(&selector).map_err(|e| NeedError::failed(e.to_string()))?;
        let mut resources = decision["resources"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        resources.sort_by_key(|object| text(&object["metadata"]["name"]));
        Ok(resources
            .into_iter()
            .filter(|object| {
                let metadata = &object["metadata"];
                let labels = texts(
                    metadata["labels"]
                        .as_object()
                        .unwrap_or(&Default::default()),
                );
                match asked.name.as_str() {
                    "" => selector.matches(&labels),
                    name => metadata["name"] == name,
                }
            })
            .collect())
    }

    fn plugin(&self, config_map: &str, body: &str) -> Answered {
        let data = texts(
            self.case["configmaps"][config_map]
                .as_object()
                .unwrap_or(&Default::default()),
        );
        let endpoint = Endpoint::of(&data).map_err(|e| NeedError::failed(e.to_string()))?;
        let secret = self.case["secrets"][&endpoint.secret]
            .as_object()
            .ok_or_else(|| NeedError::not_found("secret not found"))?;
        let token = match secret.get(&endpoint.key).and_then(Value::as_str) {
            Some(token) => token.to_owned(),
            None => format!("${}", endpoint.key),
        };
        self.requests.borrow_mut().push(json!({
            "authorization": format!("Bearer {token}"),
            "body": serde_json::from_str::<Value>(body).unwrap_or_default(),
            "content_type": "application/json",
            "method": "POST",
            "url": format!("{}/{PLUGIN_PATH}", endpoint.base_url.trim_end_matches('/')),
        }));
        let plugin = &self.case["plugin"];
        if plugin["status"]
            .as_u64()
            .is_some_and(|status| status >= 300)
        {
            return Err(NeedError::failed("API error with status code"));
        }
        let body = match &plugin["response"] {
            Value::String(raw) => raw.clone(),
            json => json.to_string(),
        };
        Ok(Answer::Plugin(body.into_bytes()))
    }

    fn scm(&self) -> impl Iterator<Item = &Value> {
        self.case["scm"]["repos"].as_array().into_iter().flatten()
    }

    fn repositories(&self) -> Vec<Repository> {
        self.scm()
            .map(|repo| Repository {
                organization: text(&repo["organization"]),
                repository: text(&repo["repository"]),
                repository_id: match &repo["repository_id"] {
                    Value::Number(n) => RepositoryId::Number(n.as_i64().unwrap_or_default()),
                    Value::String(s) => RepositoryId::Text(s.clone()),
                    _ => RepositoryId::None,
                },
                url: text(&repo["url"]),
                branch: text(&repo["default_branch"]),
                sha: String::new(),
                labels: list(&repo["labels"]),
            })
            .collect()
    }

    fn branches(&self, of: &Repository) -> Vec<Repository> {
        let all = self.case["scm"]["all_branches"] == true;
        self.scm()
            .filter(|repo| repo["repository"] == *of.repository)
            .flat_map(|repo| repo["branches"].as_array().into_iter().flatten())
            .filter(|branch| all || branch["name"] == *of.branch)
            .map(|branch| Repository {
                branch: text(&branch["name"]),
                sha: text(&branch["sha"]),
                ..of.clone()
            })
            .collect()
    }

    fn has_path(&self, of: &Repository, path: &str) -> Result<bool, NeedError> {
        let branch = self
            .scm()
            .filter(|repo| repo["repository"] == *of.repository)
            .flat_map(|repo| repo["branches"].as_array().into_iter().flatten())
            .find(|branch| branch["name"] == *of.branch)
            .ok_or_else(|| NeedError::failed("no such branch"))?;
        let below = format!("{path}/");
        let mut paths = branch["paths"].as_array().into_iter().flatten().map(text);
        Ok(paths.any(|p| p == path || p.starts_with(&below)))
    }

    fn pull_requests(&self) -> Answered {
        let answer = &self.case["pull_requests"];
        if answer["not_found"] == true {
            return Err(NeedError::not_found("repository not found"));
        }
        if let Some(error) = answer["error"].as_str() {
            return Err(NeedError::failed(error));
        }
        let pulls = answer["list"].as_array().into_iter().flatten();
        Ok(Answer::PullRequests(
            pulls
                .map(|pull| PullRequest {
                    number: pull["number"].as_i64().unwrap_or_default(),
                    title: text(&pull["title"]),
                    branch: text(&pull["branch"]),
                    target_branch: text(&pull["target_branch"]),
                    head_sha: text(&pull["head_sha"]),
                    author: text(&pull["author"]),
                    labels: pull["labels"].is_array().then(|| list(&pull["labels"])),
                })
                .collect(),
        ))
    }
}

/// Randomness and a time that every run repeats.
pub fn sources() -> Sources {
    Sources {
        random: Box::new(|bytes| bytes.fill(7)),
        now: Default::default(),
        zone: || unreachable!("no case needs a zone"),
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn texts(map: &serde_json::Map<String, Value>) -> BTreeMap<String, String> {
    map.iter().map(|(k, v)| (k.clone(), text(v))).collect()
}

pub fn clusters(list: &Value) -> Vec<ClusterSecret> {
    let object = |value: &Value| texts(value.as_object().unwrap_or(&Default::default()));
    list.as_array()
        .into_iter()
        .flatten()
        .map(|cluster| {
            let mut labels = object(&cluster["labels"]);
            labels.insert("argocd.argoproj.io/secret-type".into(), "cluster".into());
            ClusterSecret {
                labels,
                annotations: object(&cluster["annotations"]),
                name: text(&cluster["name"]),
                server: text(&cluster["server"]),
                project: cluster["project"].as_str().map(str::to_owned),
            }
        })
        .collect()
}

fn directories(files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let mut found = BTreeSet::new();
    for path in files.keys() {
        let mut rest = path.as_str();
        while let Some((folder, _)) = rest.rsplit_once('/') {
            found.insert(folder.to_owned());
            rest = folder;
        }
    }
    found.retain(|path| {
        !path.is_empty() && !path.split('/').any(|segment| segment.starts_with('.'))
    });
    found.into_iter().collect()
}

fn same_url(a: &str, b: &str) -> bool {
    let plain = |url: &str| {
        let url = url.trim().trim_end_matches('/').to_lowercase();
        url.strip_suffix(".git").unwrap_or(&url).to_owned()
    };
    plain(a) == plain(b)
}
