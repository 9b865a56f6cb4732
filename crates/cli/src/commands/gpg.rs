//! `gpg`: the public keys that commits are verified with.

use super::{connect, list_document, prompt};
use crate::{
    client::{ConnectArgs, Failure},
    output::{
        self,
        sort::{Field, SortBy},
        table,
    },
};
use std::{fs, path::PathBuf};
use tiphys_api::rpc::gpgkey::{
    GnuPGPublicKey, GnuPGPublicKeyCreateRequest, GnuPGPublicKeyCreateResponse, GnuPGPublicKeyList,
    GnuPGPublicKeyQuery, GnuPGPublicKeyResponse,
};

#[derive(clap::Subcommand)]
pub enum GpgCommand {
    /// List configured GPG public keys
    List {
        /// Output format. One of: json|yaml|wide
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
        #[command(flatten)]
        sort_by: SortBy,
    },
    /// Get the GPG public key with ID <KEYID> from the server
    Get {
        #[arg(value_name = "KEYID")]
        id: Option<String>,
        /// Output format. One of: json|yaml|wide
        #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
        output: String,
    },
    /// Adds a GPG public key to the server's keyring
    Add {
        /// Path to the file that contains the GPG public key to import
        #[arg(long, short, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Removes a GPG public key from the server's keyring
    Rm {
        #[arg(value_name = "KEYID")]
        id: Option<String>,
    },
}

impl GpgCommand {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        match self {
            Self::List { output, sort_by } => list(args, &sort_by, &output).await,
            Self::Get { id, output } => get(args, id, &output).await,
            Self::Add { from } => {
                let from = from.ok_or_else(|| Failure::error("--from is mandatory"))?;
                let text = fs::read(&from).map_err(|e| Failure::file(&from, &e))?;
                add(args, String::from_utf8_lossy(&text).into_owned()).await
            }
            Self::Rm { id } => remove(args, id).await,
        }
    }
}

const FIELDS: &[Field<GnuPGPublicKey>] = &[
    ("keyid", |key| key.key_id.as_str().into()),
    ("type", |key| key.sub_type.to_uppercase().into()),
    ("identity", |key| key.owner.as_str().into()),
];

async fn list(args: &ConnectArgs, sort_by: &SortBy, format: &str) -> Result<(), Failure> {
    let client = connect(args).await?;
    let mut found: GnuPGPublicKeyList = client
        .unary("/gpgkey.GPGKeyService/List", GnuPGPublicKeyQuery::default())
        .await?;
    sort_by.sort(&mut found.items, FIELDS)?;
    let text = match format {
        "wide" | "" => {
            let row =
                |key: GnuPGPublicKey| vec![key.key_id, key.sub_type.to_uppercase(), key.owner];
            let rows = found.items.into_iter().map(row);
            table::table(&["KEYID", "TYPE", "IDENTITY"], rows)
        }
        "yaml" | "json" => list_document(&found.items, format)?,
        other => return Err(output::unknown_format(other)),
    };
    output::print(&text);
    Ok(())
}

fn key_id(id: Option<String>) -> Result<String, Failure> {
    id.ok_or_else(|| Failure::error("Missing KEYID argument"))
}

async fn get(args: &ConnectArgs, id: Option<String>, format: &str) -> Result<(), Failure> {
    let id = key_id(id)?;
    let client = connect(args).await?;
    let key: GnuPGPublicKey = client
        .unary(
            "/gpgkey.GPGKeyService/Get",
            GnuPGPublicKeyQuery { key_id: id },
        )
        .await?;
    let text = match format {
        "wide" | "" => format!(
            "Key ID:          {}\nKey fingerprint: {}\nKey subtype:     {}\nKey owner:       {}\nKey data follows until EOF:\n{}\n",
            key.key_id,
            key.fingerprint,
            key.sub_type.to_uppercase(),
            key.owner,
            key.key_data
        ),
        "yaml" | "json" => output::document(&key, format)?,
        other => return Err(output::unknown_format(other)),
    };
    output::print(&text);
    Ok(())
}

async fn add(args: &ConnectArgs, key_data: String) -> Result<(), Failure> {
    let request = GnuPGPublicKeyCreateRequest {
        publickey: Some(GnuPGPublicKey {
            key_data,
            ..GnuPGPublicKey::default()
        }),
        upsert: false,
    };
    let client = connect(args).await?;
    let answer: GnuPGPublicKeyCreateResponse = client
        .unary("/gpgkey.GPGKeyService/Create", request)
        .await?;
    let created = answer.created.unwrap_or_default().items.len();
    let skipped = match answer.skipped.len() {
        0 => String::new(),
        n => format!(", and {n} key(s) were skipped because they exist already"),
    };
    output::print(&format!(
        "Created {created} key(s) from input file{skipped}.\n"
    ));
    Ok(())
}

async fn remove(args: &ConnectArgs, id: Option<String>) -> Result<(), Failure> {
    let id = key_id(id)?;
    let question = format!("Are you sure you want to remove '{id}'? [y/n]");
    if args.prompts()? && !prompt::proceed(&question)? {
        output::print(&format!(
            "The command to delete key with key ID '{id}' was cancelled.\n"
        ));
        return Ok(());
    }
    let client = connect(args).await?;
    let query = GnuPGPublicKeyQuery { key_id: id.clone() };
    let _: GnuPGPublicKeyResponse = client.unary("/gpgkey.GPGKeyService/Delete", query).await?;
    output::print(&format!("Deleted key with key ID {id}\n"));
    Ok(())
}
