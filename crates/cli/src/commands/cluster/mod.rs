//! `cluster`: the clusters that Applications can be deployed to.

mod add;
mod change;
mod options;

pub(super) use options::{ClusterOptions, Endpoint};

use super::{connect, list_document};
use crate::{
    client::{ConnectArgs, Failure},
    output::{
        self,
        sort::{Field, SortBy},
        table,
    },
};
use tiphys_api::{
    cluster::{Cluster, ClusterList},
    rpc::cluster::ClusterQuery,
};

#[derive(clap::Subcommand)]
pub enum ClusterCommand {
    /// Add a cluster of the kubeconfig as a destination
    Add(Box<add::Add>),
    /// List configured clusters
    List {
        /// Output format. One of: json|yaml|wide|server
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Get cluster information
    Get {
        /// Addresses or names of clusters
        #[arg(required = true)]
        clusters: Vec<String>,
        /// Output format. One of: json|yaml|wide|server
        #[arg(long, short, default_value = "yaml", value_name = "FORMAT")]
        output: String,
    },
    /// Remove cluster credentials
    Rm(change::Rm),
    /// Replace the token that a cluster is managed with
    RotateAuth {
        /// Address or name of the cluster
        #[arg(value_name = "SERVER/NAME")]
        cluster: String,
    },
    /// Set cluster information
    Set(change::Set),
}

impl ClusterCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let text = match self {
            Self::Add(add) => return add.run(args).await,
            Self::Rm(rm) => return rm.run(args).await,
            Self::Set(set) => return set.run(args).await,
            Self::RotateAuth { cluster } => change::rotate_auth(&cluster, args).await?,
            Self::List { output, sort_by } => {
                let mut list: ClusterList = connect(args)
                    .await?
                    .unary("/cluster.ClusterService/List", ClusterQuery::default())
                    .await?;
                sort_by.sort(&mut list.items, FIELDS)?;
                match output.as_str() {
                    "yaml" | "json" => list_document(&list.items, &output)?,
                    "server" => servers(&list.items),
                    "wide" | "" => rows(&list.items),
                    other => return Err(output::unknown_format(other)),
                }
            }
            Self::Get { clusters, output } => {
                let client = connect(args).await?;
                let mut found: Vec<Cluster> = Vec::new();
                for selector in &clusters {
                    let query = query(selector);
                    found.push(client.unary("/cluster.ClusterService/Get", query).await?);
                }
                match (output.as_str(), found.as_slice()) {
                    ("yaml" | "json", [one]) => output::document(one, &output)?,
                    ("yaml" | "json", many) => list_document(many, &output)?,
                    ("server", many) => servers(many),
                    ("wide" | "", many) => many.iter().map(details).collect(),
                    (other, _) => return Err(output::unknown_format(other)),
                }
            }
        };
        output::print(&text);
        Ok(())
    }
}

/// An address or a name.
fn query(selector: &str) -> ClusterQuery {
    let is_address = selector.starts_with("http://") || selector.starts_with("https://");
    let selector = selector.to_owned();
    let (server, name) = if is_address {
        (selector, String::new())
    } else {
        (String::new(), selector)
    };
    ClusterQuery {
        server,
        name,
        id: None,
    }
}

fn no_such_context(name: &str) -> Failure {
    Failure::error(format!("context {name} does not exist in kubeconfig"))
}

const FIELDS: &[Field<Cluster>] = &[
    ("server", |c| c.server.as_str().into()),
    ("name", |c| c.name.as_str().into()),
    ("version", |c| c.info.server_version.as_str().into()),
    ("status", |c| c.info.connection_state.status.as_str().into()),
    ("message", |c| {
        c.info.connection_state.message.as_str().into()
    }),
    ("project", |c| c.project.as_str().into()),
    ("namespaces", |c| c.namespaces.len().into()),
    ("applications", |c| c.info.applications_count.into()),
];

fn servers(clusters: &[Cluster]) -> String {
    clusters.iter().map(|c| c.server.clone() + "\n").collect()
}

fn rows(clusters: &[Cluster]) -> String {
    let rows = clusters.iter().map(|c| {
        let server = match c.namespaces.len() {
            0 => c.server.clone(),
            n => format!("{} ({n} namespaces)", c.server),
        };
        let state = &c.info.connection_state;
        vec![
            server,
            c.name.clone(),
            c.info.server_version.clone(),
            state.status.clone(),
            state.message.clone(),
            c.project.clone(),
        ]
    });
    table::table(
        &["SERVER", "NAME", "VERSION", "STATUS", "MESSAGE", "PROJECT"],
        rows,
    )
}

fn details(c: &Cluster) -> String {
    let name = if c.name.is_empty() { "-" } else { &c.name };
    let namespaces = if c.namespaces.is_empty() {
        "all namespaces".into()
    } else {
        c.namespaces.join(", ")
    };
    format!(
        "Cluster information\n\n  Server URL:            {}\n  Server Name:           {name}\n  Server Version:        {}\n  \
         Namespaces:        \t {namespaces}\n\nTLS configuration\n\n  Client cert:           {}\n  Cert validation:       {}\n\n\
         Authentication\n\n  Basic authentication:  {}\n  oAuth authentication:  {}\n  AWS authentication:    {}\n\n\
         Disable compression: {}\n\nUse proxy: {}\n\n",
        c.server,
        c.info.server_version,
        !c.config.tls_client_config.cert_data.is_empty(),
        !c.config.tls_client_config.insecure,
        !c.config.username.is_empty(),
        !c.config.bearer_token.is_empty(),
        c.config.aws_auth_config.is_some(),
        c.config.disable_compression,
        !c.config.proxy_url.is_empty(),
    )
}
