//! `version`: of this program and of the server.

use super::connect;
use crate::{
    client::{ConnectArgs, Failure},
    output,
};
use serde_json::{Value, json};
use tiphys_api::{meta::Empty, rpc::version::VersionMessage};

#[derive(clap::Args)]
pub struct Version {
    /// Output format. One of: json|yaml|wide|short
    #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
    output: String,
    /// Print just the version number
    #[arg(long)]
    short: bool,
    /// Client version only (no server required)
    #[arg(long)]
    client: bool,
}

/// If called by the name of the `argocd` command, the output is that of `argocd`.
fn program() -> String {
    let name = std::env::args_os()
        .next()
        .map(std::path::PathBuf::from)
        .and_then(|p| Some(p.file_stem()?.to_string_lossy().into_owned()));
    name.filter(|n| n == "argocd")
        .unwrap_or_else(|| "tiphys".into())
}

const COMMIT: &str = env!("TIPHYS_COMMIT");

fn version() -> String {
    let commit = if COMMIT.is_empty() {
        "unknown"
    } else {
        COMMIT.get(..7).unwrap_or(COMMIT)
    };
    format!("v{}+{commit}", env!("CARGO_PKG_VERSION"))
}

fn platform() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{arch}", std::env::consts::OS)
}

fn client_document() -> Value {
    json!({
        "Version": version(), "BuildDate": "", "GitCommit": COMMIT, "GitTag": "", "GitTreeState": "", "GoVersion": "",
        "Compiler": "rustc", "Platform": platform(), "KubectlVersion": "", "ExtraBuildInfo": "",
    })
}

fn client_text(short: bool) -> String {
    let first = format!("{}: {}\n", program(), version());
    if short {
        return first;
    }
    format!(
        "{first}  GitCommit: {COMMIT}\n  Compiler: rustc\n  Platform: {}\n",
        platform()
    )
}

fn server_text(v: &VersionMessage, short: bool) -> String {
    let mut out = format!("argocd-server: {}\n", v.version);
    if short {
        return out;
    }
    let fields = [
        ("BuildDate", &v.build_date),
        ("GitCommit", &v.git_commit),
        ("GitTreeState", &v.git_tree_state),
        ("GitTag", &v.git_tag),
        ("GoVersion", &v.go_version),
        ("Compiler", &v.compiler),
        ("Platform", &v.platform),
        ("ExtraBuildInfo", &v.extra_build_info),
        ("Kustomize Version", &v.kustomize_version),
        ("Helm Version", &v.helm_version),
        ("Kubectl Version", &v.kubectl_version),
        ("Jsonnet Version", &v.jsonnet_version),
    ];
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        out += &format!("  {name}: {value}\n");
    }
    out
}

impl Version {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let short = self.short || self.output == "short";
        match self.output.as_str() {
            "yaml" | "json" => {
                let client = if short {
                    json!({program(): version()})
                } else {
                    client_document()
                };
                let mut document = json!({"client": client});
                if !self.client {
                    let server = Self::server(args).await?;
                    document["server"] = if short {
                        json!({"argocd-server": server.version})
                    } else {
                        serde_json::to_value(&server).unwrap_or_default()
                    };
                }
                output::print(&output::document(&document, &self.output)?);
            }
            "wide" | "short" | "" => {
                output::print(&client_text(short));
                if !self.client {
                    output::print(&server_text(&Self::server(args).await?, short));
                }
            }
            other => return Err(Failure::fatal(format!("unknown output format: {other}"))),
        }
        Ok(())
    }

    async fn server(args: &ConnectArgs) -> Result<VersionMessage, Failure> {
        Ok(connect(args)
            .await?
            .unary("/version.VersionService/Version", Empty {})
            .await?)
    }
}
