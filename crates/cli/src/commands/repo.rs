//! `repo`: repositories and their credentials.

mod credentials;
mod options;

pub(super) use credentials::CredentialOptions;
pub(super) use options::RepoOptions;

use super::{connect, list_document, prompt};
use crate::{
    client::{ConnectArgs, Failure},
    output::{
        self,
        sort::{Field, SortBy},
        table,
    },
};
use tiphys_api::{
    repository::{Repository, RepositoryList},
    rpc::repository::{RepoAccessQuery, RepoCreateRequest, RepoQuery, RepoResponse},
};

#[derive(clap::Subcommand)]
pub enum RepoCommand {
    /// Add git repository connection parameters
    Add(Box<Add>),
    /// List configured repositories
    List {
        /// Output format. Supported formats: yaml|json|url|wide
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        /// Force a cache refresh on connection status. Supported values: hard
        #[arg(long)]
        refresh: Option<String>,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Get a configured repository by URL
    Get {
        /// URL of the repository
        repo: String,
        /// Project of the repository
        #[arg(long, default_value = "", hide_default_value = true)]
        project: String,
        /// Output format. One of: json|yaml|wide|url
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        /// Force a cache refresh on connection status. Supported values: hard
        #[arg(long)]
        refresh: Option<String>,
    },
    /// Remove configured repositories
    Rm {
        /// URLs of repositories
        #[arg(required = true)]
        repos: Vec<String>,
        /// Project of the repository
        #[arg(long, default_value = "", hide_default_value = true)]
        project: String,
    },
}

#[derive(clap::Args)]
pub struct Add {
    #[command(flatten)]
    options: RepoOptions,
    /// Override an existing repository with the same name even if the spec differs
    #[arg(long)]
    upsert: bool,
}

impl RepoCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::Add(add) => add.run(args).await,
            Self::List {
                output,
                refresh,
                sort_by,
            } => {
                let force_refresh = is_hard(refresh.as_deref())?;
                let client = connect(args).await?;
                let query = RepoQuery {
                    force_refresh,
                    ..Default::default()
                };
                let mut list: RepositoryList = client
                    .unary("/repository.RepositoryService/ListRepositories", query)
                    .await?;
                sort_by.sort(&mut list.items, FIELDS)?;
                output::print(&match output.as_str() {
                    "yaml" | "json" => list_document(&list.items, &output)?,
                    other => plain(&list.items, other)?,
                });
                Ok(())
            }
            Self::Get {
                repo,
                project,
                output,
                refresh,
            } => {
                let force_refresh = is_hard(refresh.as_deref())?;
                let client = connect(args).await?;
                let query = RepoQuery {
                    repo,
                    force_refresh,
                    app_project: project,
                };
                let repo: Repository = client
                    .unary("/repository.RepositoryService/Get", query)
                    .await?;
                output::print(&match output.as_str() {
                    "yaml" | "json" => output::document(&repo, &output)?,
                    other => plain(std::slice::from_ref(&repo), other)?,
                });
                Ok(())
            }
            Self::Rm { repos, project } => {
                let client = connect(args).await?;
                let ask = args.prompts()?;
                for repo in repos {
                    if ask
                        && !prompt::proceed(&format!(
                            "Are you sure you want to delete repository '{repo}'? [y/n]"
                        ))?
                    {
                        output::print(&format!("The command to delete '{repo}' was cancelled.\n"));
                        continue;
                    }
                    let query = RepoQuery {
                        repo: repo.clone(),
                        app_project: project.clone(),
                        ..Default::default()
                    };
                    let _: RepoResponse = client
                        .unary("/repository.RepositoryService/DeleteRepository", query)
                        .await?;
                    output::print(&format!("Repository '{repo}' removed\n"));
                }
                Ok(())
            }
        }
    }
}

fn is_hard(refresh: Option<&str>) -> Result<bool, Failure> {
    match refresh {
        None | Some("") => Ok(false),
        Some("hard") => Ok(true),
        Some(other) => Err(Failure::error(format!(
            "unknown refresh value: {other}. Supported values: hard"
        ))),
    }
}

fn plain(repos: &[Repository], format: &str) -> Result<String, Failure> {
    match format {
        "url" => Ok(repos.iter().map(|r| r.repo.clone() + "\n").collect()),
        "wide" | "" => Ok(rows(repos)),
        other => Err(Failure::error(format!(
            "unknown output format: {other}. Supported formats: yaml|json|url|wide"
        ))),
    }
}

const FIELDS: &[Field<Repository>] = &[
    ("type", |r| r.type_.as_str().into()),
    ("name", |r| r.name.as_str().into()),
    ("repo", |r| r.repo.as_str().into()),
    ("insecure", |r| is_insecure(r).into()),
    ("oci", |r| r.enable_oci.into()),
    ("lfs", |r| r.enable_lfs.into()),
    ("creds", |r| creds(r).into()),
    ("status", |r| r.connection_state.status.as_str().into()),
    ("message", |r| r.connection_state.message.as_str().into()),
    ("project", |r| r.project.as_str().into()),
];

fn is_insecure(r: &Repository) -> bool {
    r.insecure || r.insecure_ignore_host_key || r.insecure_oci_force_http
}

/// Whether it has credentials, or inherits those of a template.
fn creds(r: &Repository) -> String {
    match r.inherited_creds {
        true => "inherited".to_owned(),
        false => has_credentials(r).to_string(),
    }
}

fn has_credentials(r: &Repository) -> bool {
    let texts = [
        &r.username,
        &r.password,
        &r.bearer_token,
        &r.ssh_private_key,
        &r.tls_client_cert_data,
        &r.github_app_private_key,
        &r.azure_service_principal_client_secret,
    ];
    r.use_azure_workload_identity || texts.iter().any(|t| !t.is_empty())
}

fn rows(repos: &[Repository]) -> String {
    let rows = repos.iter().map(|r| {
        vec![
            r.type_.clone(),
            r.name.clone(),
            r.repo.clone(),
            is_insecure(r).to_string(),
            r.enable_oci.to_string(),
            r.enable_lfs.to_string(),
            creds(r),
            r.connection_state.status.clone(),
            r.connection_state.message.clone(),
            r.project.clone(),
        ]
    });
    table::table(
        &[
            "TYPE", "NAME", "REPO", "INSECURE", "OCI", "LFS", "CREDS", "STATUS", "MESSAGE",
            "PROJECT",
        ],
        rows,
    )
}

impl Add {
    async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        self.options.check()?;
        let upsert = self.upsert;
        let repo = self.options.repository()?;
        let client = connect(args).await?;
        let _: RepoResponse = client
            .unary(
                "/repository.RepositoryService/ValidateAccess",
                access(&repo),
            )
            .await?;
        let request = RepoCreateRequest {
            repo: Some(repo),
            upsert,
            creds_only: false,
        };
        let created: Repository = client
            .unary("/repository.RepositoryService/CreateRepository", request)
            .await?;
        output::print(&format!("Repository '{}' added\n", created.repo));
        Ok(())
    }
}

/// The request to validate access to a repository.
fn access(r: &Repository) -> RepoAccessQuery {
    RepoAccessQuery {
        repo: r.repo.clone(),
        type_: r.type_.clone(),
        name: r.name.clone(),
        username: r.username.clone(),
        password: r.password.clone(),
        bearer_token: r.bearer_token.clone(),
        ssh_private_key: r.ssh_private_key.clone(),
        tls_client_cert_data: r.tls_client_cert_data.clone(),
        tls_client_cert_key: r.tls_client_cert_key.clone(),
        insecure: r.insecure || r.insecure_ignore_host_key,
        enable_oci: r.enable_oci,
        github_app_private_key: r.github_app_private_key.clone(),
        github_app_id: r.github_app_id,
        github_app_installation_id: r.github_app_installation_id,
        github_app_enterprise_base_url: r.github_app_enterprise_base_url.clone(),
        proxy: r.proxy.clone(),
        project: r.project.clone(),
        gcp_service_account_key: r.gcp_service_account_key.clone(),
        force_http_basic_auth: r.force_http_basic_auth,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(subcommand)]
        command: RepoCommand,
    }

    fn check(words: &[&str]) -> Option<String> {
        match Program::parse_from([&["repo", "add"], words].concat()).command {
            RepoCommand::Add(add) => add.options.check().err().map(|e| e.message),
            _ => None,
        }
    }

    #[test]
    fn what_does_not_go_together() {
        for (words, message) in [
            (
                &["https://a/b", "--ssh-private-key-path", "k"][..],
                "--ssh-private-key-path is only supported for SSH repositories.",
            ),
            (
                &["https://a/b", "--tls-client-cert-path", "c"],
                "--tls-client-cert-path and --tls-client-cert-key-path must be specified together",
            ),
            (
                &["https://a/b", "--type", "helm"],
                "Must specify --name for repos of type 'helm'",
            ),
            // A port is not the path of an ssh address.
            (
                &[
                    "registry.example.org:5000/x",
                    "--enable-oci",
                    "--ssh-private-key-path",
                    "k",
                ],
                "--ssh-private-key-path is only supported for SSH repositories.",
            ),
            (
                &["git@a:b", "--bearer-token", "t"],
                "--bearer-token is only supported for HTTPS repositories",
            ),
            (
                &["https://a/b", "--bearer-token", "t", "--password", "p"],
                "only --bearer-token or --password is allowed, not both",
            ),
        ] {
            assert_eq!(check(words).as_deref(), Some(message), "{words:?}");
        }
        assert_eq!(
            check(&["git@host.example.com:repo", "--ssh-private-key-path", "k"]),
            None
        );
        assert_eq!(check(&["HTTPS://a/b", "--bearer-token", "t"]), None);
        let registry = ["registry.example.org:5000/x", "--enable-oci"];
        let of_charts = ["--type", "helm", "--name", "n"];
        assert_eq!(check(&registry), None);
        assert_eq!(check(&[&registry[..], &of_charts[..]].concat()), None);
        for (url, is) in [
            (registry[0], false),
            ("registry.example.org:5000", false),
            ("git@host.example.com:repo", true),
            ("ssh://git@host.example.com:22/repo", true),
            ("https://me@host.example.com:8443/repo", false),
        ] {
            assert_eq!(credentials::is_ssh(url), is, "{url}");
        }
    }

    #[test]
    fn a_row() {
        let repo = Repository {
            repo: "https://a/b".into(),
            type_: "git".into(),
            username: "u".into(),
            ..Default::default()
        };
        let text = rows(&[repo]);
        assert_eq!(
            text.lines().next(),
            Some(
                "TYPE  NAME  REPO         INSECURE  OCI    LFS    CREDS  STATUS  MESSAGE  PROJECT"
            )
        );
        assert_eq!(
            text.lines().nth(1),
            Some("git         https://a/b  false     false  false  true                    ")
        );
    }
}
