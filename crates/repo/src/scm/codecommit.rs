//! AWS CodeCommit. Main function: [`repositories`].
//!
//! The account is who this process is at AWS, or a role that it assumes. Every question is a signed
//! POST of JSON that names its action in a header.

use super::{
    Account, CONCURRENT, REQUEST, Repository, RepositoryId, Scm, ScmError, clone_url,
    http::Session, pages::Bounds,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tiphys_api::application_set::hosts::SCMProviderGeneratorAWSCodeCommit;
use tiphys_cloud::{
    aws::{self, Identity},
    sigv4::{self, Request, Scope},
};

const JSON: &str = "application/x-amz-json-1.1";
const CODE_COMMIT: &str = "CodeCommit_20150413";
const TAGGING: &str = "ResourceGroupsTaggingAPI_20170126";
const NO_FOLDER: &str = "FolderDoesNotExistException";
const HTTPS: &str = "https://git-codecommit.";
const FIPS: &str = "https://git-codecommit-fips.";
/// How often a question is asked again that came too fast.
const REPEATS: u32 = 5;

/// One of AWS' APIs.
struct Api<'a> {
    session: Session<'a>,
    identity: Arc<Identity>,
    region: String,
    /// How a signature names it, and how a header does.
    names: (&'static str, &'static str),
}

pub struct Apis<'a> {
    code_commit: Api<'a>,
    tagging: Api<'a>,
}

pub async fn session<'a>(
    scm: &'a Scm,
    account: &Account,
    settings: &SCMProviderGeneratorAWSCodeCommit,
) -> Result<Apis<'a>, ScmError> {
    let login = aws::Login {
        profile: "",
        role: &settings.role,
        region: &settings.region,
    };
    let identity = scm.aws.of(login).await.map_err(ScmError::of_aws)?;
    let region = identity.region.clone().ok_or_else(|| {
        ScmError::settings("awsCodeCommit: there is no region: neither `region` nor AWS_REGION")
    })?;
    let api = |variable: &str, service: &'static str, target: &'static str| {
        let url = aws::endpoint(scm.aws.env(), variable, service, &region);
        let url = url.map_err(|e| ScmError::settings(format!("awsCodeCommit: {e}")))?;
        let mut session = Session::new(scm, account, &url)?;
        // Roles may be of different accounts, each with a rate limit of its own.
        session.counts_as(&settings.role);
        // Each repository is one question, and limits are per second.
        session.repeats(REPEATS);
        Ok::<_, ScmError>(Api {
            session,
            identity: Arc::clone(&identity),
            region: region.clone(),
            names: (service, target),
        })
    };
    Ok(Apis {
        code_commit: api("CODECOMMIT", "codecommit", CODE_COMMIT)?,
        tagging: api("RESOURCE_GROUPS_TAGGING_API", "tagging", TAGGING)?,
    })
}

impl Api<'_> {
    async fn ask<T>(&self, action: &str, question: &Value) -> Result<T, ScmError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let (url, body) = (self.session.url(&[], &[])?, question.to_string());
        let (service, target) = self.names;
        let target = format!("{target}.{action}");
        let mut headers = vec![("content-type", JSON.to_owned()), ("x-amz-target", target)];
        let named: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let host = sigv4::host(&url);
        let scope = Scope {
            keys: &self.identity.keys,
            region: &self.region,
            service,
            now: Timestamp::now(),
        };
        let signature = scope.headers(Request {
            method: "POST",
            host: &host,
            path: url.path(),
            headers: &named,
            body: body.as_bytes(),
        });
        headers.extend(signature);
        let answer = self.session.post(&url, &headers, body, REQUEST).await?;
        self.session.parsed(&url, answer).await
    }

    /// All pages of a list: each names the next one under `next`, and is asked for with the same
    /// field.
    async fn list<T>(
        &self,
        action: &str,
        question: Value,
        (items, next): (&str, &str),
    ) -> Result<Vec<T>, ScmError>
    where
        T: DeserializeOwned,
    {
        let url = self.session.url(&[], &[])?;
        let wrong = |what: &str| self.session.wrong(&url, what);
        let (mut all, mut bounds, mut question) = (Vec::new(), Bounds::default(), question);
        loop {
            let mut page: serde_json::Map<String, Value> = self.ask(action, &question).await?;
            let other = || wrong("the answer is other JSON than its API defines");
            let found = page.remove(items).ok_or_else(other)?;
            let found: Vec<T> = serde_json::from_value(found).map_err(|_| other())?;
            bounds.take(&self.session, &url, found.len())?;
            all.extend(found);
            let token = match page.remove(next) {
                None | Some(Value::Null) => return Ok(all),
                Some(Value::String(token)) if token.is_empty() => return Ok(all),
                Some(Value::String(token)) => token,
                Some(_) => return Err(other()),
            };
            if question[next].as_str() == Some(&token) {
                return Err(wrong("the next page is the same one"));
            }
            question[next] = token.into();
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    repository_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tagged {
    #[serde(rename = "ResourceARN")]
    arn: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    repository_metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    account_id: String,
    repository_id: String,
    repository_name: String,
    /// Missing if the repository is empty.
    #[serde(default)]
    default_branch: String,
    #[serde(default)]
    clone_url_http: String,
    #[serde(default)]
    clone_url_ssh: String,
}

/// What is in a folder.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Folder {
    /// Of a real answer.
    #[serde(rename = "commitId")]
    _commit: String,
    #[serde(default)]
    files: Vec<Entry>,
    #[serde(default)]
    sub_folders: Vec<Entry>,
    #[serde(default)]
    sub_modules: Vec<Entry>,
    #[serde(default)]
    symbolic_links: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    relative_path: String,
}

pub async fn repositories(
    apis: &Apis<'_>,
    settings: &SCMProviderGeneratorAWSCodeCommit,
    protocol: &str,
) -> Result<Vec<Repository>, ScmError> {
    // Not only when there is one.
    address(protocol, ("", HTTPS))?;
    let names = names(apis, settings).await?;
    let described = stream::iter(names).map(|name| async move {
        let question = json!({"repositoryName": name});
        let api = &apis.code_commit;
        let described: Described = api.ask("GetRepository", &question).await?;
        Ok::<_, ScmError>(described.repository_metadata)
    });
    let described: Vec<Metadata> = described.buffered(CONCURRENT).try_collect().await?;
    let with_branch = described
        .into_iter()
        .filter(|its| !its.default_branch.is_empty());
    let repository = |its: Metadata| {
        Ok(Repository {
            url: address(protocol, (&its.clone_url_ssh, &its.clone_url_http))?,
            organization: its.account_id,
            name: its.repository_name,
            id: RepositoryId::Text(its.repository_id),
            branch: its.default_branch,
            sha: String::new(),
            labels: Vec::new(),
        })
    };
    with_branch.map(repository).collect()
}

/// The names of all repositories, or of those with the tags.
async fn names(
    apis: &Apis<'_>,
    settings: &SCMProviderGeneratorAWSCodeCommit,
) -> Result<Vec<String>, ScmError> {
    if settings.tag_filters.is_empty() {
        let parts = ("repositories", "nextToken");
        let api = &apis.code_commit;
        let listed: Vec<Listed> = api.list("ListRepositories", json!({}), parts).await?;
        return Ok(listed.into_iter().map(|its| its.repository_name).collect());
    }
    let mut filters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for filter in &settings.tag_filters {
        let values = filters.entry(&filter.key).or_default();
        values.extend(Some(filter.value.as_str()).filter(|value| !value.is_empty()));
    }
    let filters: Vec<Value> = filters
        .iter()
        .map(|(key, values)| match values.is_empty() {
            true => json!({"Key": key}),
            false => json!({"Key": key, "Values": values}),
        })
        .collect();
    let question = json!({"ResourceTypeFilters": ["codecommit:repository"], "TagFilters": filters});
    let (api, parts) = (&apis.tagging, ("ResourceTagMappingList", "PaginationToken"));
    let tagged: Vec<Tagged> = api.list("GetResources", question, parts).await?;
    let url = api.session.url(&[], &[])?;
    let name = |its: Tagged| {
        // arn:aws:codecommit:REGION:ACCOUNT:NAME
        let name = its
            .arn
            .splitn(6, ':')
            .nth(5)
            .filter(|name| !name.is_empty());
        name.map(str::to_owned).ok_or_else(|| {
            api.session
                .wrong(&url, &format!("{:?} is no ARN of a repository", its.arn))
        })
    };
    tagged.into_iter().map(name).collect()
}

/// The address to clone from.
fn address(protocol: &str, urls: (&str, &str)) -> Result<String, ScmError> {
    if protocol != "https-fips" {
        return clone_url(protocol, "codecommit", urls).map(str::to_owned);
    }
    match urls.1.strip_prefix(HTTPS) {
        Some(rest) => Ok(format!("{FIPS}{rest}")),
        None if urls.1.starts_with(FIPS) => Ok(urls.1.to_owned()),
        None => Err(ScmError::settings(format!(
            "https-fips is provided but repoUrl can't be transformed to FIPS endpoint: the provided \
             https endpoint isn't recognized, cannot be transformed to FIPS endpoint: {}",
            urls.1
        ))),
    }
}

/// Commits are not known: each would be a question.
pub async fn branches(
    apis: &Apis<'_>,
    settings: &SCMProviderGeneratorAWSCodeCommit,
    of: &Repository,
) -> Result<Vec<Repository>, ScmError> {
    if !settings.all_branches {
        return Ok(vec![of.clone()]);
    }
    let question = json!({"repositoryName": of.name});
    let (api, parts) = (&apis.code_commit, ("branches", "nextToken"));
    let names: Vec<String> = api.list("ListBranches", question, parts).await?;
    let at = |name| of.at(name, String::new());
    Ok(names.into_iter().map(at).collect())
}

/// The folder above is asked for: to ask for a file would fetch it.
pub async fn has_path(
    apis: &Apis<'_>,
    _: &SCMProviderGeneratorAWSCodeCommit,
    of: &Repository,
    path: &str,
) -> Result<bool, ScmError> {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let question = json!({
        "repositoryName": of.name,
        "commitSpecifier": of.branch,
        "folderPath": format!("/{above}"),
    });
    let folder: Folder = match apis.code_commit.ask("GetFolder", &question).await {
        Ok(folder) => folder,
        Err(error) if error.is_named(NO_FOLDER) => return Ok(false),
        Err(error) => return Err(error),
    };
    let lists = [
        folder.files,
        folder.sub_folders,
        folder.sub_modules,
        folder.symbolic_links,
    ];
    let mut entries = lists.iter().flatten();
    Ok(entries.any(|entry| entry.relative_path == name))
}
