//! `proj source-integrity git policies`: which keys the commits of a repository must be signed with.
//! Main type: [`IntegrityCommand`].
//!
//! Unlike other verbs, these end with exit code 1 and write errors to standard output.

use super::keys::short_id;
use crate::{
    client::{Client, ConnectArgs, Failure, exit},
    commands::{connect, prompt},
    output::{self, table},
};
use std::collections::BTreeSet;
use tiphys_api::{
    project::{
        AppProject, SourceIntegrityGitPolicy, SourceIntegrityGitPolicyGPG,
        SourceIntegrityGitPolicyRepo,
    },
    rpc::gpgkey::{GnuPGPublicKeyList, GnuPGPublicKeyQuery},
};

#[derive(clap::Subcommand)]
pub enum IntegrityCommand {
    /// Manage policies for Git repositories
    #[command(subcommand)]
    Git(GitCommand),
}

#[derive(clap::Subcommand)]
pub enum GitCommand {
    /// Manage git source integrity policies
    #[command(subcommand)]
    Policies(PoliciesCommand),
}

#[derive(clap::Subcommand)]
pub enum PoliciesCommand {
    /// List git source integrity policies
    List {
        /// The project
        project: String,
    },
    /// Add a git source integrity policy
    Add {
        /// The project
        project: String,
        /// Repository URL pattern (can be repeated)
        #[arg(long, value_delimiter = ',', value_name = "URL")]
        repo_url: Vec<String>,
        /// GPG verification mode (strict, head, or none)
        #[arg(
            long,
            default_value = "",
            hide_default_value = true,
            value_name = "MODE"
        )]
        gpg_mode: String,
        /// GPG key ID (can be repeated)
        #[arg(long, value_delimiter = ',', value_name = "KEY-ID")]
        gpg_key: Vec<String>,
    },
    /// Update a git source integrity policy
    Update {
        /// The project
        project: String,
        /// The policy's number in the list
        #[arg(value_name = "POLICY_ID")]
        id: String,
        #[command(flatten)]
        edits: Edits,
        /// Skip explicit confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Delete a git source integrity policy
    Delete {
        /// The project
        project: String,
        /// The policies' numbers in the list
        #[arg(value_name = "POLICY_ID", required = true)]
        ids: Vec<String>,
        /// Skip explicit confirmation
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(clap::Args, Clone, Debug, Default)]
pub struct Edits {
    /// Set GPG verification mode (strict, head, or none)
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "MODE"
    )]
    gpg_mode: String,
    /// Set repository URL pattern (replaces existing)
    #[arg(long, value_delimiter = ',', value_name = "URL")]
    repo_url: Vec<String>,
    /// Add repository URL pattern
    #[arg(long, value_delimiter = ',', value_name = "URL")]
    add_repo_url: Vec<String>,
    /// Delete repository URL pattern
    #[arg(long, value_delimiter = ',', value_name = "URL")]
    delete_repo_url: Vec<String>,
    /// Set GPG key ID (replaces existing)
    #[arg(long, value_delimiter = ',', value_name = "KEY-ID")]
    gpg_key: Vec<String>,
    /// Add GPG key ID
    #[arg(long, value_delimiter = ',', value_name = "KEY-ID")]
    add_gpg_key: Vec<String>,
    /// Delete GPG key ID
    #[arg(long, value_delimiter = ',', value_name = "KEY-ID")]
    delete_gpg_key: Vec<String>,
}

impl IntegrityCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let Self::Git(GitCommand::Policies(command)) = self;
        command.run(args).await.map_err(|e| match e {
            Wrong::Ended(failure) => failure,
            Wrong::Said(message) => {
                output::print(&format!("Error: {message}\n"));
                Failure::exit(exit::FAILED)
            }
        })
    }
}

/// Why a verb fails.
enum Wrong {
    /// Printed in the way of these verbs.
    Said(String),
    Ended(Failure),
}

impl From<String> for Wrong {
    fn from(message: String) -> Self {
        Self::Said(message)
    }
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Self {
        Self::Ended(failure)
    }
}

impl PoliciesCommand {
    async fn run(self, args: &ConnectArgs) -> Result<(), Wrong> {
        let client = connect(args).await?;
        match self {
            Self::List { project } => {
                let mut project = read(&client, &project).await?;
                output::print(&rows(existing(&mut project)?));
                Ok(())
            }
            Self::Add {
                project,
                repo_url,
                gpg_mode,
                gpg_key,
            } => {
                let mut project = read(&client, &project).await?;
                let policy = policy(repo_url, &gpg_mode, &gpg_key)?;
                warn(&client, &policy).await?;
                let integrity = project.spec.source_integrity.get_or_insert_default();
                let policies = &mut integrity.git.get_or_insert_default().policies;
                policies.push(policy);
                let shown = rows(policies);
                save(&client, project).await?;
                output::print(&shown);
                Ok(())
            }
            Self::Update {
                project,
                id,
                edits,
                yes,
            } => {
                let mut project = read(&client, &project).await?;
                let name = project.metadata.name.clone();
                let policies = existing(&mut project)?;
                let index = index(&id, policies.len())?;
                edits.apply(&mut policies[index])?;
                warn(&client, &policies[index]).await?;
                output::print(&rows(policies));
                let question = format!(
                    "Are you sure you want to update policy {index} from project {name:?}? [y/N] "
                );
                if yes || agreed(&question)? {
                    save(&client, project).await?;
                }
                Ok(())
            }
            Self::Delete { project, ids, yes } => {
                let mut project = read(&client, &project).await?;
                let ids = delete(&mut project, &ids)?;
                let question = format!(
                    "Are you sure you want to delete policies {ids} from project {:?}? [y/N] ",
                    project.metadata.name
                );
                if yes || agreed(&question)? {
                    save(&client, project).await?;
                }
                Ok(())
            }
        }
    }
}

async fn read(client: &Client, name: &str) -> Result<AppProject, Wrong> {
    let project = super::get(client, name.to_owned()).await;
    project.map_err(|e| Wrong::Said(format!("failed getting project {name:?}: {e}")))
}

async fn save(client: &Client, project: AppProject) -> Result<(), Wrong> {
    let name = project.metadata.name.clone();
    let saved = super::save(client, project).await;
    saved
        .map(drop)
        .map_err(|e| Wrong::Said(format!("failed updating project {name:?}: {e}")))
}

fn agreed(question: &str) -> Result<bool, Failure> {
    let agreed = prompt::proceed(question)?;
    if !agreed {
        output::print("Aborted by user.\n");
    }
    Ok(agreed)
}

/// The policies of a project that has some.
fn existing(project: &mut AppProject) -> Result<&mut Vec<SourceIntegrityGitPolicy>, String> {
    let none = format!(
        "no source integrity git policies defined for project {:?}",
        project.metadata.name
    );
    let integrity = project.spec.source_integrity.as_mut();
    integrity
        .and_then(|integrity| integrity.git.as_mut())
        .map(|git| &mut git.policies)
        .filter(|policies| !policies.is_empty())
        .ok_or(none)
}

fn index(id: &str, count: usize) -> Result<usize, String> {
    let index: i64 = id
        .parse()
        .map_err(|_| format!("invalid POLICY_ID '{id}'"))?;
    usize::try_from(index)
        .ok()
        .filter(|index| *index < count)
        .ok_or_else(|| format!("the POLICY_ID {index} is out of range (0-{})", count - 1))
}

fn mode(mode: &str) -> Result<(), String> {
    match mode {
        "strict" | "head" | "none" => Ok(()),
        "" => Err("gpg-mode must be set".to_owned()),
        _ => Err("gpg-mode must be one of: strict, head, none".to_owned()),
    }
}

fn key_ids(keys: &[String]) -> Result<Vec<String>, String> {
    let read = |key: &String| match short_id(key) {
        Ok(id) => Ok(id.to_owned()),
        Err(why) => Err(format!("invalid GPG key ID '{key}': {why}")),
    };
    keys.iter().map(read).collect()
}

fn repos(urls: Vec<String>) -> Vec<SourceIntegrityGitPolicyRepo> {
    let repo = |url| SourceIntegrityGitPolicyRepo { url };
    urls.into_iter().map(repo).collect()
}

fn policy(
    urls: Vec<String>,
    gpg_mode: &str,
    keys: &[String],
) -> Result<SourceIntegrityGitPolicy, String> {
    mode(gpg_mode)?;
    Ok(SourceIntegrityGitPolicy {
        repos: repos(urls),
        gpg: Some(SourceIntegrityGitPolicyGPG {
            mode: gpg_mode.to_owned(),
            keys: key_ids(keys)?,
        }),
    })
}

impl Edits {
    fn apply(self, policy: &mut SourceIntegrityGitPolicy) -> Result<(), String> {
        let combined = |whole: &[String], parts: [&[String]; 2], name: &str| match !whole.is_empty()
            && parts.iter().any(|part| !part.is_empty())
        {
            true => Err(format!(
                "option --{name}, cannot be combined with --add-{name} or --delete-{name}"
            )),
            false => Ok(()),
        };
        let (added, deleted) = (&self.add_gpg_key, &self.delete_gpg_key);
        combined(&self.gpg_key, [added, deleted], "gpg-key")?;
        let (added, deleted) = (&self.add_repo_url, &self.delete_repo_url);
        combined(&self.repo_url, [added, deleted], "repo-url")?;
        if !self.repo_url.is_empty() {
            policy.repos = repos(self.repo_url);
        }
        let gone = &self.delete_repo_url;
        policy.repos.retain(|repo| !gone.contains(&repo.url));
        for url in self.add_repo_url {
            if policy.repos.iter().all(|repo| repo.url != url) {
                policy.repos.push(SourceIntegrityGitPolicyRepo { url });
            }
        }
        let gpg = policy.gpg.get_or_insert_default();
        if !self.gpg_mode.is_empty() {
            mode(&self.gpg_mode)?;
            gpg.mode = self.gpg_mode;
        } else if gpg.mode.is_empty() {
            return Err("gpg-mode must be set".to_owned());
        }
        if !self.gpg_key.is_empty() {
            gpg.keys = key_ids(&self.gpg_key)?;
        }
        let is_same = |known: &String, id: &String| short_id(known).is_ok_and(|k| k == id);
        let gone = key_ids(&self.delete_gpg_key)?;
        gpg.keys
            .retain(|known| !gone.iter().any(|id| is_same(known, id)));
        for id in key_ids(&self.add_gpg_key)? {
            if !gpg.keys.iter().any(|known| is_same(known, &id)) {
                gpg.keys.push(id);
            }
        }
        Ok(())
    }
}

/// Removes policies by their numbers, and returns these for the question; without a policy, the
/// project has no source integrity.
fn delete(project: &mut AppProject, ids: &[String]) -> Result<String, String> {
    let policies = existing(project)?;
    let gone: BTreeSet<usize> = ids
        .iter()
        .map(|id| index(id, policies.len()))
        .collect::<Result<_, _>>()?;
    let mut at = 0..;
    policies.retain(|_| at.next().is_some_and(|index| !gone.contains(&index)));
    if policies.is_empty() {
        project.spec.source_integrity = None;
    }
    // In the order of their texts.
    let gone: BTreeSet<String> = gone.iter().map(usize::to_string).collect();
    Ok(gone.into_iter().collect::<Vec<_>>().join(", "))
}

async fn warn(client: &Client, policy: &SourceIntegrityGitPolicy) -> Result<(), Wrong> {
    if policy.repos.is_empty() {
        eprintln!("Warning: Policy has no repository URLs and will never be used");
    }
    let Some(gpg) = &policy.gpg else {
        return Ok(());
    };
    if gpg.keys.is_empty() {
        eprintln!("Warning: Policy has no GPG keys and will never validate any revision");
        return Ok(());
    }
    let known: GnuPGPublicKeyList = client
        .unary("/gpgkey.GPGKeyService/List", GnuPGPublicKeyQuery::default())
        .await
        .map_err(|e| Wrong::Said(format!("failed listing GPG keys: {}", Failure::from(e))))?;
    let mut absent: BTreeSet<&str> = gpg.keys.iter().map(String::as_str).collect();
    for key in &known.items {
        absent.remove(key.key_id.as_str());
    }
    if !absent.is_empty() {
        let absent: Vec<&str> = absent.into_iter().collect();
        eprintln!(
            "Warning: Following GPG keys are not in repo-server keyring: {}",
            absent.join(", ")
        );
    }
    Ok(())
}

fn rows(policies: &[SourceIntegrityGitPolicy]) -> String {
    let joined = |items: Vec<&str>| match items.as_slice() {
        [] => "<none>".to_owned(),
        items => items.join(", "),
    };
    let row = |(id, policy): (usize, &SourceIntegrityGitPolicy)| {
        let (mode, keys) = match &policy.gpg {
            Some(gpg) => (
                gpg.mode.clone(),
                joined(gpg.keys.iter().map(String::as_str).collect()),
            ),
            None => ("<none>".to_owned(), "<none>".to_owned()),
        };
        let repos = joined(policy.repos.iter().map(|r| r.url.as_str()).collect());
        vec![id.to_string(), mode, keys, repos]
    };
    table::table(
        &["ID", "GPG-MODE", "GPG-KEYS", "REPO-URLS"],
        policies.iter().enumerate().map(row),
    )
}

#[cfg(test)]
#[path = "integrity_tests.rs"]
mod tests;
