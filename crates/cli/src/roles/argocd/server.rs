//! `argocd-server`, as a replacement for Argo CD's, beside its controllers and repo-server.

use super::{Only, arguments, line::Said};
use crate::roles::{
    logs::Logs,
    server::{self, ServerArgs},
};
use std::path::PathBuf;

pub type Role = Only<ServerArgs>;

/// Where installations of Argo CD put extensions of the page.
const EXTENSIONS: &str = "/tmp/extensions";

/// Runs until stopped.
pub async fn run(said: Said, logs: Logs) -> anyhow::Result<()> {
    let mut args = arguments::<Role>(&said)?.args;
    args.page_extensions = extensions(std::env::var_os("KUBERNETES_SERVICE_HOST").is_some());
    server::run(args, said.overrides(), logs).await
}

/// On a machine with other users, any of them could put a script into everybody's browser.
fn extensions(is_pod: bool) -> Option<PathBuf> {
    is_pod.then(|| EXTENSIONS.into())
}

#[cfg(test)]
mod tests {
    use super::{super::server_flags::SERVER, *};

    #[test]
    fn extensions_are_those_of_a_pod() {
        assert_eq!(extensions(true), Some("/tmp/extensions".into()));
        assert_eq!(extensions(false), None);
    }

    #[test]
    fn what_is_said_arrives() {
        let words = [
            "--insecure",
            "--rootpath=/argo",
            "-n",
            "cd",
            "--x-frame-options=",
            "--enable-gzip=false",
            "--sync-with-replace-allowed=false",
            "--catalog-database-name=other",
        ];
        let variables = [
            ("ARGOCD_SERVER_REPO_SERVER", "renderer:1"),
            ("ARGOCD_SERVER_REPO_SERVER_PLAINTEXT", "true"),
            ("ARGOCD_SERVER_DISABLE_AUTH", "true"),
            ("ARGOCD_APPLICATION_NAMESPACES", "team-*"),
            ("ARGOCD_SESSION_FAILURE_MAX_FAIL_COUNT", "7"),
            ("ARGOCD_SERVER_ENABLE_PROXY_EXTENSION", "false"),
            ("ARGOCD_SERVER_DISABLE_SWAGGER_UI", "true"),
            ("ARGOCD_ENABLE_GRPC_TIME_HISTOGRAM", "true"),
            ("REDIS_PASSWORD", "p"),
            ("TIPHYS_CATALOG_FILE", "/data/charts.db"),
        ];
        let said = super::super::tests::said(&SERVER, &words, &variables).expect("to be run");
        let text = format!("{:?}", arguments::<Role>(&said).expect("valid").args);
        for part in [
            "insecure: true",
            "rootpath: \"/argo\"",
            "namespace: Some(\"cd\")",
            "x_frame_options: Some(\"\")",
            "enable_gzip: Some(false)",
            "repo_server: Some(\"renderer:1\")",
            "repo_server_plaintext: true",
            "disable_auth: true",
            "enable_proxy_extension: false",
            "disable_swagger_ui: true",
            "grpc_time_histogram: true",
            "[\"team-*\"]",
            "max_login_failures: 7",
            "static_files: Some(\"/shared/app\")",
            "server: Some(\"argocd-redis:6379\")",
            "dex_server: \"argocd-dex-server:5556\"",
            "catalog_file: Some(\"/data/charts.db\")",
            "catalog_database_name: \"other\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let params = said.overrides().params;
        assert_eq!(params["server.sync.replace.allowed"], "false");
    }
}
