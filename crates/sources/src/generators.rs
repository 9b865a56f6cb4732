//! Generates the Applications of ApplicationSets: answers what their generators ask of the outside.
//!
//! Main type: [`Answers`]. A store that is not current has no answer: what it lacks would look like
//! something deleted.

use crate::{
    HostSettings, Sources, TreeRequest,
    answered::{Answered, current},
    hosts,
    remembered::{Remembered, is_repeatable},
};
use futures::{FutureExt as _, StreamExt as _, stream};
use rand::RngCore as _;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tiphys_api::{ApplicationSet, constants};
use tiphys_apimachinery::Object;
use tiphys_appset::{
    Answer, ClusterSecret, Decisions, Facts, Followed, Generated, Need, NeedError, Outcome,
    Provider, Tree, follows, generate,
};
use tiphys_cluster::{ClusterIdentity, records::Records, request::Call};
use tiphys_gocompat::sprig::Sources as TemplateSources;
use tiphys_repo::{FilePattern, RepoError, scm::Account};

/// The objects of one page of a listing.
const PAGE: &str = "500";
/// Pages of clusterDecisionResources.
const MOST_PAGES: usize = 20;
/// Concurrent questions of one set.
const CONCURRENT: usize = 8;
/// A question that follows from answers follows at most this often.
const ROUNDS: usize = 12;

/// Whom the hosts of a set's generators are asked as.
type Accounts = HashMap<Provider, Result<Account, NeedError>>;

/// Answers from the records of a cluster and from repositories. Cheap to clone.
#[derive(Clone)]
pub struct Answers {
    pub records: Records,
    pub sources: Sources,
    /// Patterns of files are doublestar's instead of git's; `None`: as in argocd-cmd-params-cm.
    pub new_git_file_globbing: Option<bool>,
    pub hosts: HostSettings,
    pub clock: Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>,
}

impl Answers {
    /// Generates the Applications of a set, asking until nothing is missing. `is_fresh`: revisions
    /// are looked up again.
    pub async fn generate(&self, set: &ApplicationSet, is_fresh: bool) -> Generated {
        let (namespace, set) = (set.metadata.namespace.clone(), set.clone());
        let run = move |facts: &Facts, sources: &mut TemplateSources| match generate(
            &set, facts, sources,
        ) {
            Outcome::Done(generated) => Ok(generated),
            Outcome::Needs(needs) => Err(needs),
        };
        let generated = self
            .with_answers(&namespace, is_fresh, Vec::new(), run)
            .await;
        generated.map_or_else(Generated::failed, |(generated, _)| generated)
    }

    /// As [`Self::generate`], but what the same answers led to before is not made again.
    pub async fn generate_again(
        &self,
        set: &Arc<ApplicationSet>,
        is_fresh: bool,
        before: Option<&Arc<Remembered>>,
    ) -> Arc<Remembered> {
        let namespace = &set.metadata.namespace;
        let mut given = Vec::new();
        if let Some(before) = before.filter(|before| before.is_of(set)) {
            let needs: Vec<Need> = before.answers.keys().cloned().collect();
            let mut accounts = Accounts::new();
            given = self.asked(&needs, namespace, is_fresh, &mut accounts).await;
            let is_same =
                |(need, answer): &(Need, Answered)| before.answers.get(need) == Some(answer);
            if given.iter().all(is_same) {
                return Arc::clone(before);
            }
        }
        let asking = Arc::clone(set);
        let run = move |facts: &Facts, sources: &mut TemplateSources| match generate(
            &asking, facts, sources,
        ) {
            Outcome::Done(generated) => Ok(generated),
            Outcome::Needs(needs) => Err(needs),
        };
        let ran = self.with_answers(namespace, is_fresh, given, run).await;
        let (generated, facts) = match ran {
            Ok((generated, facts)) => (generated, Some(facts)),
            Err(message) => (Generated::failed(message), None),
        };
        Arc::new(Remembered {
            set: Arc::clone(set),
            is_repeatable: facts.is_some() && is_repeatable(set),
            answers: facts.map(Facts::into_answers).unwrap_or_default(),
            generated,
        })
    }

    /// Whether one of a set's generators is what `is_it` says, with the parameters of others filled
    /// in. What cannot be found out counts as such.
    pub async fn follows(
        &self,
        set: &ApplicationSet,
        is_it: impl Fn(Followed<'_>) -> bool + Send + Sync + 'static,
    ) -> bool {
        let (namespace, set) = (set.metadata.namespace.clone(), set.clone());
        let run = move |facts: &Facts, sources: &mut TemplateSources| match follows(
            &set, facts, sources, &is_it,
        ) {
            Err(error) if error.is_missing() => Err(facts.missing()),
            found => Ok(found.unwrap_or(true)),
        };
        let found = self.with_answers(&namespace, false, Vec::new(), run).await;
        found.map_or(true, |(found, _)| found)
    }

    /// Runs a function with the given answers until none is missing; it says which are. The facts are those that it
    /// saw, the error is a message.
    async fn with_answers<T: Send + 'static>(
        &self,
        namespace: &str,
        is_fresh: bool,
        given: Vec<(Need, Answered)>,
        run: impl Fn(&Facts, &mut TemplateSources) -> Result<T, Vec<Need>> + Send + Sync + 'static,
    ) -> Result<(T, Facts), String> {
        let (run, mut accounts) = (Arc::new(run), Accounts::new());
        let mut facts = Facts::default();
        for (need, answer) in given {
            facts.add(need, answer);
        }
        for _ in 0..ROUNDS {
            let (run, given, now) = (Arc::clone(&run), facts, (self.clock)());
            let ran = tokio::task::spawn_blocking(move || {
                let mut sources = TemplateSources {
                    random: Box::new(|bytes| rand::rng().fill_bytes(bytes)),
                    now,
                    zone: jiff::tz::TimeZone::system,
                };
                (run(&given, &mut sources), given)
            });
            let (outcome, given) = ran.await.map_err(|e| format!("generating failed: {e}"))?;
            facts = given;
            let needs = match outcome {
                Ok(done) => return Ok((done, facts)),
                Err(needs) => needs,
            };
            let answers = self.asked(&needs, namespace, is_fresh, &mut accounts).await;
            for (need, answer) in answers {
                facts.add(need, answer);
            }
        }
        Err("the generators ask more questions with every answer".to_owned())
    }

    /// The answers to some needs, in any order.
    async fn asked(
        &self,
        needs: &[Need],
        namespace: &str,
        is_fresh: bool,
        accounts: &mut Accounts,
    ) -> Vec<(Need, Answered)> {
        self.sign_in(needs, namespace, accounts).await;
        let accounts = &*accounts;
        let questions: Vec<_> = needs
            .iter()
            .map(|need| self.answered(need, is_fresh, accounts).boxed())
            .collect();
        stream::iter(questions)
            .buffer_unordered(CONCURRENT)
            .collect()
            .await
    }

    /// Adds the accounts with which hosts are asked.
    async fn sign_in(&self, needs: &[Need], namespace: &str, accounts: &mut Accounts) {
        for need in needs {
            if let Some(provider) = need.provider()
                && !accounts.contains_key(provider)
                && let Some(account) = self.account(need, namespace).await
            {
                accounts.insert(provider.clone(), account);
            }
        }
    }

    async fn answered(&self, need: &Need, is_fresh: bool, accounts: &Accounts) -> (Need, Answered) {
        let account = need.provider().and_then(|provider| accounts.get(provider));
        let answer = match account {
            Some(Ok(account)) => hosts::ask(&self.sources.repos, need, account).await,
            Some(Err(refused)) => Err(refused.clone()),
            None => self.answer(need, is_fresh).await,
        };
        (need.clone(), answer)
    }

    /// One answer; errors are the messages that users see.
    async fn answer(&self, need: &Need, is_fresh: bool) -> Answered {
        match need {
            Need::Clusters => self.clusters(),
            Need::Project(name) => {
                current(&self.records.projects, "projects")?;
                match self.records.project(name) {
                    Some(_) => Ok(Answer::Project),
                    None => Err(NeedError::not_found(format!(
                        "appprojects.argoproj.io \"{name}\" not found"
                    ))),
                }
            }
            Need::Directories(tree) => {
                let folders = self.sources.tree_folders(&request(tree, is_fresh)).await;
                let folders = folders.map_err(|e| not_retrieved("Git Directories", &e))?;
                Ok(Answer::Directories(folders))
            }
            Need::Files { tree, pattern } => {
                let pattern = match self.is_globbing() {
                    true => FilePattern::Doublestar(pattern.clone()),
                    false => FilePattern::Git(pattern.clone()),
                };
                let request = request(tree, is_fresh);
                let files = self.sources.tree_files(&request, pattern).await;
                let files = files.map_err(|e| not_retrieved("Git files", &e))?;
                Ok(Answer::Files(files))
            }
            Need::ConfigMap(name) => self.config_map(name),
            Need::Decisions(asked) => self.decisions(asked).await,
            Need::Plugin { config_map, body } => self.plugin(config_map, body).await,
            Need::Repositories(_)
            | Need::Branches { .. }
            | Need::HasPath { .. }
            | Need::PullRequests(_) => {
                // Those who have a provider are asked with an account.
                Err(NeedError::failed("the generator names no host"))
            }
        }
    }

    fn is_globbing(&self) -> bool {
        const KEY: &str = "applicationsetcontroller.enable.new.git.file.globbing";
        self.new_git_file_globbing
            .unwrap_or_else(|| self.records.settings().param(KEY) == "true")
    }

    /// The cluster Secrets. One that cannot be read leaves no answer: its Applications would be
    /// deleted otherwise.
    fn clusters(&self) -> Answered {
        current(&self.records.secrets, "cluster Secrets")?;
        let mut clusters = Vec::new();
        for record in self.records.secrets.list() {
            let kind = record.meta.labels.get(constants::SECRET_TYPE_LABEL);
            if kind.is_none_or(|kind| kind != "cluster") {
                continue;
            }
            let failed = |e: tiphys_cluster::Error| NeedError::failed(e.to_string());
            let secret = record.object().map_err(failed)?;
            let identity = ClusterIdentity::from_secret(&secret).map_err(failed)?;
            clusters.push(ClusterSecret {
                labels: record.meta.labels.clone(),
                annotations: annotations(&secret),
                name: identity.name,
                server: identity.server,
                project: identity.project,
            });
        }
        Ok(Answer::Clusters(clusters))
    }

    pub(crate) fn config_map(&self, name: &str) -> Answered {
        current(&self.records.config_maps, "ConfigMaps")?;
        let record = self.records.config_maps.get(&self.records.namespace, name);
        let record = record
            .ok_or_else(|| NeedError::not_found(format!("configmaps \"{name}\" not found")))?;
        let object = record
            .object()
            .map_err(|e| NeedError::failed(e.to_string()))?;
        let data = object.0.get("data").and_then(|data| data.as_object());
        let text = |(key, value): (&String, &serde_json::Value)| {
            Some((key.clone(), value.as_str()?.to_owned()))
        };
        Ok(Answer::ConfigMap(
            data.into_iter().flatten().filter_map(text).collect(),
        ))
    }

    async fn decisions(&self, asked: &Decisions) -> Answered {
        let failed = |why: String| NeedError::failed(why);
        let valid = |text: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
        };
        if ![&asked.group, &asked.version, &asked.resource]
            .into_iter()
            .all(|t| valid(t))
        {
            return Err(failed("the ConfigMap names no resource".to_owned()));
        }
        let path = format!(
            "/apis/{}/{}/namespaces/{}/{}",
            asked.group, asked.version, self.records.namespace, asked.resource
        );
        let mut call = Call::get(path).query("limit", PAGE);
        call = match asked.name.as_str() {
            "" => call.query("labelSelector", &selector_text(&asked.selector)?),
            name => call.query("fieldSelector", &format!("metadata.name={name}")),
        };
        let (mut items, mut next) = (Vec::new(), String::new());
        for _ in 0..MOST_PAGES {
            let page = match next.as_str() {
                "" => call.clone(),
                token => call.clone().query("continue", token),
            };
            let answer = self.records.cluster.http().send(&page).await;
            let answer = answer.map_err(|e| failed(e.to_string()))?;
            let list: serde_json::Value =
                serde_json::from_slice(&answer).map_err(|e| failed(e.to_string()))?;
            let of_page = list["items"].as_array().cloned();
            items.extend(of_page.ok_or_else(|| failed("the answer is no list".to_owned()))?);
            next = list["metadata"]["continue"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if next.is_empty() {
                return Ok(Answer::Decisions(items));
            }
        }
        Err(failed(
            "there are too many clusterDecisionResources".to_owned(),
        ))
    }
}

/// In the words of Argo CD, whose controller always asks a repo-server.
fn not_retrieved(what: &str, error: &RepoError) -> NeedError {
    let why = match error {
        // It has a code already.
        RepoError::RepoServer { .. } => error.to_string(),
        RepoError::Unsupported(_) => format!("rpc error: code = Unknown desc = {error}"),
        _ => format!("rpc error: code = Internal desc = {error}"),
    };
    NeedError::failed(format!("error retrieving {what}: {why}"))
}

fn request(tree: &Tree, is_fresh: bool) -> TreeRequest {
    TreeRequest {
        repo_url: tree.repo_url.clone(),
        revision: tree.revision.clone(),
        project: tree.project.clone(),
        is_fresh,
    }
}

fn annotations(object: &Object) -> BTreeMap<String, String> {
    let annotations = object.0.get("metadata").and_then(|m| m.get("annotations"));
    annotations
        .and_then(|annotations| annotations.as_object())
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// A LabelSelector in the form of a query.
fn selector_text(json: &str) -> Result<String, NeedError> {
    let wrong = |why: String| NeedError::failed(format!("labelSelector: {why}"));
    let selector: tiphys_api::meta::LabelSelector =
        serde_json::from_str(json).map_err(|e| wrong(e.to_string()))?;
    let labels = selector
        .match_labels
        .iter()
        .map(|(key, value)| Ok(format!("{key}={value}")));
    let expressions = selector.match_expressions.iter().map(|expression| {
        let (key, values) = (&expression.key, expression.values.join(","));
        match expression.operator.as_str() {
            "In" => Ok(format!("{key} in ({values})")),
            "NotIn" => Ok(format!("{key} notin ({values})")),
            "Exists" => Ok(key.clone()),
            "DoesNotExist" => Ok(format!("!{key}")),
            other => Err(wrong(format!("{other:?} is not a valid operator"))),
        }
    });
    let terms = labels
        .chain(expressions)
        .collect::<Result<Vec<String>, _>>()?;
    Ok(terms.join(","))
}
