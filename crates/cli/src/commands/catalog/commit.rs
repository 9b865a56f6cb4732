//! `--commit-to`: an Application, or what changes in one, as a commit in a branch of its own, with
//! what a pull request says.
//!
//! Main type: [`CommitArgs`].

use crate::{client::Failure, output};
use jiff::Timestamp;
use serde_json::Value;
use std::{fmt::Write as _, fs, path::PathBuf};
use tiphys_api::repo_url::RepoUrl;
use tiphys_catalog::release::ANNOTATION;
use tiphys_gocompat::yaml::{self, Duplicates};
use tiphys_repo::{Proposal, RepoAccess, Repos};

/// Where to commit.
#[derive(clap::Args)]
#[command(next_help_heading = "Git")]
pub struct CommitArgs {
    /// Commit it to this Git repository instead, in a branch of its own; the first commit of an empty
    /// one goes to --base. The password of --git-username is read from TIPHYS_GIT_PASSWORD
    #[arg(long, value_name = "URL")]
    pub commit_to: Option<String>,
    /// The branch that the change is for [default: the repository's, or main in an empty one]
    #[arg(
        long,
        value_name = "BRANCH",
        requires = "commit_to",
        default_value = "",
        hide_default_value = true
    )]
    base: String,
    /// The branch to make [default: catalog/NAME-VERSION]
    #[arg(long, value_name = "BRANCH", requires = "commit_to")]
    branch: Option<String>,
    /// The Application's file [default: NAME.yaml]
    #[arg(long, value_name = "FILE", requires = "commit_to")]
    path: Option<String>,
    /// The message of the commit [default: what is installed or upgraded]
    #[arg(long, short, value_name = "TEXT", requires = "commit_to")]
    message: Option<String>,
    /// Who pushes
    #[arg(
        long,
        value_name = "NAME",
        requires = "commit_to",
        default_value = "",
        hide_default_value = true
    )]
    git_username: String,
    /// The key to push with over ssh [default: that of ssh]
    #[arg(long, value_name = "FILE", requires = "commit_to")]
    git_ssh_key: Option<PathBuf>,
}

/// What is committed.
pub struct Change<'a> {
    pub application: &'a Value,
    pub version: &'a str,
    /// The first line of the message, and the title of a pull request.
    pub title: String,
    /// What a pull request says below it.
    pub text: String,
}

impl CommitArgs {
    /// Commits a new Application.
    pub async fn install(&self, url: &str, change: &Change<'_>) -> Result<(), Failure> {
        let text = output::yaml(change.application)?;
        self.push(url, change, move |before| match before {
            None => Ok(text.into_bytes()),
            Some(_) => Err("the repository has such a file; --path names another".to_owned()),
        })
        .await
    }

    /// Commits what changes in an Application.
    pub async fn upgrade(&self, url: &str, change: &Change<'_>) -> Result<(), Failure> {
        let application = change.application.clone();
        self.push(url, change, move |before| upgraded(before, &application))
            .await
    }

    async fn push(
        &self,
        url: &str,
        change: &Change<'_>,
        edit: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>, String> + Send + 'static,
    ) -> Result<(), Failure> {
        let name = change.application["metadata"]["name"].as_str();
        let name = name.unwrap_or_default();
        let branch = self.branch.clone();
        let branch = branch.unwrap_or_else(|| format!("catalog/{name}-{}", change.version));
        let message = self.message.clone();
        let message = message.unwrap_or_else(|| format!("{}\n\n{}", change.title, change.text));
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let proposal = Proposal {
            base: self.base.clone(),
            branch: branch.clone(),
            path: self.path.clone().unwrap_or_else(|| format!("{name}.yaml")),
            message: message.clone(),
            author: (variable("GIT_AUTHOR_NAME"), variable("GIT_AUTHOR_EMAIL")),
        };
        let mut access = RepoAccess::public(url);
        access.username.clone_from(&self.git_username);
        access.password = variable("TIPHYS_GIT_PASSWORD").into();
        if let Some(file) = &self.git_ssh_key {
            let key = fs::read_to_string(file).map_err(|e| Failure::file(file, &e))?;
            access.ssh_private_key = key.into();
        }
        let copies = tempfile::tempdir();
        let copies = copies.map_err(|e| Failure::error(format!("no temporary folder: {e}")))?;
        let repos = Repos::new(copies.path());
        let pushed = repos.propose(&access, proposal, edit, Timestamp::now().as_second());
        let pushed = pushed.await.map_err(|e| Failure::error(e.to_string()))?;
        let mut out = format!("branch '{}' has commit {}\n", pushed.branch, pushed.commit);
        if pushed.branch != branch {
            out.push_str(
                "it is the repository's first commit: there is nothing to compare it with\n",
            );
        } else if let Some(address) = compare(url, &pushed.base, &branch) {
            // Writing to a string does not fail.
            let _ = writeln!(out, "{address}");
        }
        let _ = write!(out, "\n{}\n", message.trim_end());
        output::print(&out);
        Ok(())
    }
}

/// The file of an Application with another source: what else it says stays.
fn upgraded(before: Option<Vec<u8>>, application: &Value) -> Result<Vec<u8>, String> {
    let before = before.ok_or("there is no such file; --path names the Application's")?;
    let text = String::from_utf8(before).map_err(|_| "it is not UTF-8".to_owned())?;
    let parsed = yaml::parse_document(&text, &yaml::Limits::default(), Duplicates::LastWins);
    let mut file = parsed.map_err(|e| e.to_string())?;
    let name = &application["metadata"]["name"];
    if file["kind"] != "Application" || file["metadata"]["name"] != *name {
        return Err(format!("it is not Application {name}"));
    }
    let is_map = |value: &Value| value.is_object() || value.is_null();
    if !is_map(&file["metadata"]["annotations"]) || !file["spec"].is_object() {
        return Err("its annotations or its spec are no map".to_owned());
    }
    let annotations = application["metadata"]["annotations"].as_object();
    for (key, value) in annotations.into_iter().flatten() {
        if key.starts_with(ANNOTATION) {
            file["metadata"]["annotations"][key] = value.clone();
        }
    }
    for field in ["source", "sources"] {
        match &application["spec"][field] {
            Value::Null => {}
            value => file["spec"][field] = value.clone(),
        }
    }
    Ok(yaml::to_string(&file).into_bytes())
}

/// Where the pages of a host compare two branches and begin a pull request.
fn compare(url: &str, base: &str, branch: &str) -> Option<String> {
    let url = RepoUrl::parse(url).ok()?;
    let path = url.path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let host = &url.host;
    let (base, branch) = (encoded(base), encoded(branch));
    let kind = host.split('.').next().unwrap_or_default();
    Some(match (kind, host.as_str()) {
        ("github", _) => format!("https://{host}/{path}/compare/{base}...{branch}?expand=1"),
        ("gitlab", _) => format!(
            "https://{host}/{path}/-/merge_requests/new?merge_request%5Bsource_branch%5D={branch}\
             &merge_request%5Btarget_branch%5D={base}"
        ),
        (_, "bitbucket.org") => {
            format!("https://{host}/{path}/pull-requests/new?source={branch}&dest={base}")
        }
        ("gitea" | "codeberg", _) => format!("https://{host}/{path}/compare/{base}...{branch}"),
        _ => return None,
    })
}

/// A branch within a URL: its slashes stay.
fn encoded(branch: &str) -> String {
    let mut out = String::new();
    for byte in branch.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn known_hosts_compare_branches() {
        let at = |url: &str| compare(url, "main", "catalog/web-1.0.0+b");
        let rest = "compare/main...catalog/web-1.0.0%2Bb";
        for (url, wanted) in [
            (
                "https://user:pw@github.com/team/deploy.git",
                Some(format!("https://github.com/team/deploy/{rest}?expand=1")),
            ),
            (
                "git@gitea.example.com:team/deploy.git",
                Some(format!("https://gitea.example.com/team/deploy/{rest}")),
            ),
            (
                "ssh://git@gitlab.com/a/b/c",
                Some(
                    "https://gitlab.com/a/b/c/-/merge_requests/new?merge_request%5Bsource_branch\
                     %5D=catalog/web-1.0.0%2Bb&merge_request%5Btarget_branch%5D=main"
                        .to_owned(),
                ),
            ),
            ("https://git.example.com/team/deploy", None),
            ("/srv/deploy.git", None),
        ] {
            assert_eq!(at(url), wanted, "{url}");
        }
    }

    #[test]
    fn an_upgrade_keeps_what_else_the_file_says() {
        let new = json!({
            "kind": "Application",
            "metadata": {"name": "web", "uid": "1", "annotations": {
                "catalog.tiphys.dev/version": "2.0.0", "other": "of the cluster",
            }},
            "spec": {"project": "p", "source": {"chart": "web", "targetRevision": "2.0.0"}},
            "status": {"sync": {}},
        });
        let old = "kind: Application\nmetadata:\n  name: web\n  labels: {team: a}\nspec:\n  \
                   project: default\n  source: {chart: web, targetRevision: 1.0.0}\n";
        let text = upgraded(Some(old.into()), &new).expect("it is the Application");
        let text = String::from_utf8(text).expect("text");
        let read = yaml::parse_document(&text, &yaml::Limits::default(), Duplicates::LastWins);
        assert_eq!(
            read.expect("YAML"),
            json!({
                "kind": "Application",
                "metadata": {"name": "web", "labels": {"team": "a"}, "annotations": {
                    "catalog.tiphys.dev/version": "2.0.0",
                }},
                "spec": {"project": "default",
                    "source": {"chart": "web", "targetRevision": "2.0.0"}},
            })
        );
        for (before, why) in [
            (None, "there is no such file"),
            (
                Some("kind: Application\nmetadata: {name: b}\n"),
                "it is not Application",
            ),
            (
                Some("kind: Secret\nmetadata: {name: web}\n"),
                "it is not Application",
            ),
            (Some("- a\n"), "it is not Application"),
            (
                Some("kind: Application\nmetadata: {name: web}\nspec: x\n"),
                "its annotations or its spec",
            ),
            (Some("a: [\n"), ""),
        ] {
            let refused = upgraded(before.map(Into::into), &new).expect_err("refused");
            assert!(refused.starts_with(why), "{before:?}: {refused}");
        }
    }
}
