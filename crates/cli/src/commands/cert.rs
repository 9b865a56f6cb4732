//! `cert`: SSH host keys and TLS certificates of repository servers.

use super::{connect, list_document, prompt};
use crate::{
    client::{ConnectArgs, Failure, exit},
    output::{
        self,
        sort::{Field, SortBy},
        table,
    },
};
use std::{
    collections::BTreeSet,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};
use tiphys_api::{
    repository::{RepositoryCertificate, RepositoryCertificateList},
    rpc::certificate::{RepositoryCertificateCreateRequest, RepositoryCertificateQuery},
};
use tiphys_gocompat::{
    known_hosts::Entry,
    x509::{self, Certificate},
};

#[derive(clap::Subcommand)]
pub enum CertCommand {
    /// List configured certificates
    List {
        /// Output format. One of: json|yaml|wide
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        /// Set display sort order for output format wide. One of: hostname|type
        #[arg(long, default_value = "", hide_default_value = true)]
        sort: String,
        /// Only list certificates of given type, valid: 'ssh','https'
        #[arg(long, default_value = "", hide_default_value = true)]
        cert_type: String,
        /// Only list certificates for hosts matching given glob-pattern
        #[arg(long, default_value = "", hide_default_value = true)]
        hostname_pattern: String,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Add TLS certificate data for connecting to repository server SERVERNAME
    AddTls {
        /// Name of the server
        // `--server` is a flag of every command, so that this cannot be called the same.
        #[arg(value_name = "SERVERNAME")]
        host: String,
        /// Read TLS certificate data from file (default is to read from stdin)
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
        /// Replace existing TLS certificate if certificate is different in input
        #[arg(long)]
        upsert: bool,
    },
    /// Add SSH known host entries for repository servers
    AddSsh {
        /// Read SSH known hosts data from file (default is to read from stdin)
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
        /// Perform batch processing by reading in SSH known hosts data (mandatory flag)
        #[arg(long)]
        batch: bool,
        /// Replace existing SSH server public host keys if key is different in input
        #[arg(long)]
        upsert: bool,
    },
    /// Remove certificate of TYPE for REPOSERVER
    Rm {
        /// Name of the server, or a pattern
        #[arg(value_name = "REPOSERVER")]
        host: String,
        /// Only remove certs of given type (ssh, https)
        #[arg(long, default_value = "", hide_default_value = true)]
        cert_type: String,
        /// Only remove certs of given sub-type (only for ssh)
        #[arg(long, default_value = "", hide_default_value = true)]
        cert_sub_type: String,
    },
}

impl CertCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::List {
                output,
                sort,
                cert_type,
                hostname_pattern,
                sort_by,
            } => {
                if !["", "ssh", "https"].contains(&cert_type.as_str()) {
                    output::print("cert-type must be either ssh or https\n");
                    return Err(Failure::exit(exit::FAILED));
                }
                let query = RepositoryCertificateQuery {
                    host_name_pattern: hostname_pattern,
                    cert_type,
                    ..Default::default()
                };
                list(args, query, (&sort, &sort_by), &output).await
            }
            Self::AddTls { host, from, upsert } => {
                add_tls(args, host, from.as_deref(), upsert).await
            }
            Self::AddSsh {
                from,
                batch,
                upsert,
            } => {
                if !batch {
                    return Err(Failure::error(
                        "you need to specify --batch or specify --help for usage instructions",
                    ));
                }
                add_ssh(args, from.as_deref(), upsert).await
            }
            Self::Rm {
                host,
                cert_type,
                cert_sub_type,
            } => {
                let query = RepositoryCertificateQuery {
                    host_name_pattern: host,
                    cert_type,
                    cert_sub_type,
                };
                remove(args, query).await
            }
        }
    }
}

const FIELDS: &[Field<RepositoryCertificate>] = &[
    ("hostname", |c| c.server_name.as_str().into()),
    ("type", |c| c.cert_type.as_str().into()),
    ("subtype", |c| c.cert_sub_type.as_str().into()),
    ("info", |c| c.cert_info.as_str().into()),
];

/// `sort` is Argo CD's flag, which is about tables only; ours is about all formats and comes first.
async fn list(
    args: &ConnectArgs,
    query: RepositoryCertificateQuery,
    (sort, sort_by): (&str, &SortBy),
    format: &str,
) -> Result<(), Failure> {
    let client = connect(args).await?;
    let found: RepositoryCertificateList = client
        .unary("/certificate.CertificateService/ListCertificates", query)
        .await?;
    let mut items = found.items;
    let text = match format {
        "wide" | "" => {
            match sort {
                "hostname" | "" => items.sort_by(|a, b| a.server_name.cmp(&b.server_name)),
                "type" => items.sort_by(|a, b| a.cert_type.cmp(&b.cert_type)),
                _ => {}
            }
            sort_by.sort(&mut items, FIELDS)?;
            rows(items)
        }
        other => {
            sort_by.sort(&mut items, FIELDS)?;
            list_document(&items, other)?
        }
    };
    output::print(&text);
    Ok(())
}

fn rows(items: Vec<RepositoryCertificate>) -> String {
    let rows = items
        .into_iter()
        .map(|c| vec![c.server_name, c.cert_type, c.cert_sub_type, c.cert_info]);
    table::table(&["HOSTNAME", "TYPE", "SUBTYPE", "INFO"], rows)
}

/// The text of the file, or of standard input, and a line that says what is read or awaited.
fn input(from: Option<&Path>, what: &str, awaited: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    if let Some(path) = from {
        output::print(&format!("Reading {what} '{}'\n", path.display()));
        bytes = fs::read(path).map_err(|e| Failure::file(path, &e))?;
    } else {
        output::print(&format!("Enter {awaited}. Press CTRL-D when finished.\n"));
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|e| Failure::error(format!("cannot read standard input: {e}")))?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn add(
    args: &ConnectArgs,
    items: Vec<RepositoryCertificate>,
    upsert: bool,
) -> Result<usize, Failure> {
    let request = RepositoryCertificateCreateRequest {
        certificates: Some(RepositoryCertificateList {
            items,
            ..Default::default()
        }),
        upsert,
    };
    let client = connect(args).await?;
    let created: RepositoryCertificateList = client
        .unary("/certificate.CertificateService/CreateCertificate", request)
        .await?;
    Ok(created.items.len())
}

async fn add_tls(
    args: &ConnectArgs,
    server: String,
    from: Option<&Path>,
    upsert: bool,
) -> Result<(), Failure> {
    let format = "TLS certificate data in PEM format";
    let blocks = unique(x509::blocks(&input(
        from,
        &format!("{format} from"),
        format,
    )?))?;
    if blocks.is_empty() {
        output::print("No valid certificates have been detected in the stream.\n");
        return Ok(());
    }
    let item = RepositoryCertificate {
        server_name: server.clone(),
        cert_type: "https".into(),
        cert_data: blocks.join("\n").into_bytes(),
        ..Default::default()
    };
    add(args, vec![item], upsert).await?;
    output::print(&format!(
        "Created/updated TLS certificate entry for repository server {server} with {} unique PEM certificates\n",
        blocks.len()
    ));
    Ok(())
}

/// The certificates without those that were there before.
fn unique(blocks: Vec<String>) -> Result<Vec<String>, Failure> {
    let (mut seen, mut unique) = (BTreeSet::new(), Vec::new());
    for block in blocks {
        let read = Certificate::read(&block).map_err(|e| Failure::error(e.to_string()))?;
        if seen.contains(&read.fingerprint) {
            output::print(&format!(
                "WARNING: Duplicate certificate detected (SHA256 fingerprint {}, subject '{}'), skipping.\n",
                read.fingerprint, read.subject
            ));
        } else {
            seen.insert(read.fingerprint);
            unique.push(block);
        }
    }
    Ok(unique)
}

async fn add_ssh(args: &ConnectArgs, from: Option<&Path>, upsert: bool) -> Result<(), Failure> {
    let text = input(
        from,
        "SSH known hosts entries from file",
        "SSH known hosts entries, one per line",
    )?;
    let entries: Vec<Entry> = text.lines().filter_map(Entry::read).collect();
    if entries.is_empty() {
        return Err(Failure::error("No valid SSH known hosts data found."));
    }
    let mut items = Vec::new();
    for entry in entries {
        let key = entry
            .host_key()
            .map_err(|e| Failure::error(e.to_string()))?;
        // A key can be valid for several hosts.
        items.extend(key.hosts.into_iter().map(|host| RepositoryCertificate {
            server_name: host,
            cert_type: "ssh".into(),
            cert_sub_type: entry.kind.clone(),
            cert_data: entry.key.clone().into_bytes(),
            ..Default::default()
        }));
    }
    let created = add(args, items, upsert).await?;
    output::print(&format!(
        "Successfully created {created} SSH known host entries\n"
    ));
    Ok(())
}

async fn remove(args: &ConnectArgs, query: RepositoryCertificateQuery) -> Result<(), Failure> {
    let server = query.host_name_pattern.clone();
    // So that nobody removes everything by accident.
    if server == "*" {
        return Err(Failure::error(
            "A single wildcard is not allowed as REPOSERVER name.",
        ));
    }
    let question =
        format!("Are you sure you want to remove all certificates for '{server}'? [y/n]");
    if args.prompts()? && !prompt::proceed(&question)? {
        output::print(&format!(
            "The command to remove all certificates for '{server}' was cancelled.\n"
        ));
        return Ok(());
    }
    let client = connect(args).await?;
    let removed: RepositoryCertificateList = client
        .unary("/certificate.CertificateService/DeleteCertificate", query)
        .await?;
    if removed.items.is_empty() {
        output::print("No certificates were removed (none matched the given pattern)\n");
    }
    for c in removed.items {
        output::print(&format!(
            "Removed cert for '{}' of type '{}' (subtype '{}')\n",
            c.server_name, c.cert_type, c.cert_sub_type
        ));
    }
    Ok(())
}
