//! `repocreds`: credentials for all repositories below a URL.

use super::{connect, list_document, prompt, repo::CredentialOptions};
use crate::{
    client::{ConnectArgs, Failure},
    output::{
        self,
        sort::{Field, SortBy},
        table,
    },
};
use tiphys_api::{
    repository::{RepoCreds, RepoCredsList},
    rpc::repocreds::{
        RepoCredsCreateRequest, RepoCredsDeleteRequest, RepoCredsQuery, RepoCredsResponse,
    },
};

#[derive(clap::Subcommand)]
pub enum RepoCredsCommand {
    /// Add git repository connection parameters
    Add(Box<Add>),
    /// List configured repository credentials
    List {
        /// Output format. One of: json|yaml|wide|url
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Remove repository credentials
    Rm {
        /// URLs of the credentials
        #[arg(required = true, value_name = "CREDSURL")]
        urls: Vec<String>,
    },
}

#[derive(clap::Args)]
pub struct Add {
    /// URL that the repositories begin with
    #[arg(value_name = "REPOURL")]
    url: String,
    #[command(flatten)]
    credentials: CredentialOptions,
    /// Override an existing repository with the same name even if the spec differs
    #[arg(long)]
    upsert: bool,
    /// If provided, this URL will be used to connect via proxy
    #[arg(long, value_name = "URL")]
    proxy_url: Option<String>,
}

impl RepoCredsCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::Add(add) => add.run(args).await,
            Self::List { output, sort_by } => {
                let client = connect(args).await?;
                let list: RepoCredsList = client
                    .unary(
                        "/repocreds.RepoCredsService/ListRepositoryCredentials",
                        RepoCredsQuery::default(),
                    )
                    .await?;
                let mut items = list.items;
                sort_by.sort(&mut items, FIELDS)?;
                output::print(&match output.as_str() {
                    "url" => items.iter().map(|c| c.url.clone() + "\n").collect(),
                    "wide" | "" => rows(items),
                    other => list_document(&items, other)?,
                });
                Ok(())
            }
            Self::Rm { urls } => {
                let client = connect(args).await?;
                let ask = args.prompts()?;
                for url in urls {
                    let question = format!("Are you sure you want to remove '{url}'? [y/n] ");
                    if ask && !prompt::proceed(&question)? {
                        output::print(&format!("The command to remove '{url}' was cancelled.\n"));
                        continue;
                    }
                    let request = RepoCredsDeleteRequest { url: url.clone() };
                    let _: RepoCredsResponse = client
                        .unary(
                            "/repocreds.RepoCredsService/DeleteRepositoryCredentials",
                            request,
                        )
                        .await?;
                    output::print(&format!("Repository credentials for '{url}' removed\n"));
                }
                Ok(())
            }
        }
    }
}

const FIELDS: &[Field<RepoCreds>] = &[
    ("url", |c| c.url.as_str().into()),
    ("username", |c| c.username.as_str().into()),
];

fn rows(items: Vec<RepoCreds>) -> String {
    let rows = items.into_iter().map(|c| {
        let username = if c.username.is_empty() {
            "-".to_owned()
        } else {
            c.username
        };
        // The API returns neither keys nor certificates, so both are always false.
        let [ssh, tls] = [&c.ssh_private_key, &c.tls_client_cert_data].map(|t| !t.is_empty());
        vec![c.url, username, ssh.to_string(), tls.to_string()]
    });
    table::table(&["URL PATTERN", "USERNAME", "SSH_CREDS", "TLS_CREDS"], rows)
}

impl Add {
    /// Flags that exclude each other; checked before any request.
    fn check(&self) -> Result<(), Failure> {
        self.credentials.check_files(&self.url)?;
        self.credentials.check_token(&self.url)?;
        if self.credentials.forces_http_without_oci() {
            return Err(Failure::error(
                "--insecure-oci-force-http requires --type oci or --enable-oci",
            ));
        }
        Ok(())
    }

    async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        self.check()?;
        let creds = RepoCreds {
            proxy: self.proxy_url.unwrap_or_default(),
            ..self.credentials.creds(self.url)?
        };
        let client = connect(args).await?;
        let request = RepoCredsCreateRequest {
            creds: Some(creds),
            upsert: self.upsert,
        };
        let created: RepoCreds = client
            .unary(
                "/repocreds.RepoCredsService/CreateRepositoryCredentials",
                request,
            )
            .await?;
        output::print(&format!(
            "Repository credentials for '{}' added\n",
            created.url
        ));
        Ok(())
    }
}
