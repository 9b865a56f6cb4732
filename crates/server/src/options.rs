//! The server's options. Main type: [`Options`].

use crate::{audit::AuditOptions, auth::Limits, sso::DexTls};
use std::{path::PathBuf, time::Duration};
use tiphys_rpc::Network;

/// The server's part of the output of `argocd version`.
#[derive(Clone, Debug, Default)]
pub struct VersionInfo {
    pub version: String,
    pub build_date: String,
    pub git_commit: String,
    pub platform: String,
    pub kubectl_version: String,
}

/// The server's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of the control plane and of its Applications.
    pub namespace: String,
    /// A path prefix that a proxy keeps, such as `/argo-cd`; empty for none.
    pub root_path: String,
    /// One that a proxy cuts off: only the page must know it. A root path counts instead.
    pub base_href: String,
    pub limits: Limits,
    /// Timeout for a refresh.
    pub refresh_timeout: Duration,
    /// Whether the session cookie is restricted to HTTPS.
    pub secure_cookie: bool,
    pub version: VersionInfo,
    /// Limits for connections: how many, and how long a client may keep an idle one open.
    pub connections: tiphys_listen::Limits,
    /// Proxies whose X-Forwarded-For header is trusted.
    pub trusted_proxies: Vec<Network>,
    /// The address of the Dex server, for installations that sign in through it.
    pub dex_server: String,
    /// How its certificate is checked.
    pub dex_tls: DexTls,
    /// Whether Applications with a hydrator are hydrated.
    pub hydrator_enabled: bool,
    /// Whether answers are compressed for clients that accept it.
    pub gzip: bool,
    /// Whether a sync may replace objects.
    pub replace_allowed: bool,
    /// Whether nobody has to log in, and everybody may do everything.
    pub auth_disabled: bool,
    /// The only token that is accepted, where nobody has to log in: for a server of one process.
    pub only_with: Option<String>,
    /// Whether requests below `/extensions` are passed on to the services of argocd-cm.
    pub proxy_extensions: bool,
    /// Where files are that are served beside the page, such as the style sheet of `ui.cssurl`; none
    /// if nowhere.
    pub static_files: Option<PathBuf>,
    /// Where extensions of the page are: scripts `extension*.js` that run in everybody's browser,
    /// so nobody else may write there.
    pub page_extensions: Option<PathBuf>,
    /// Whether the API is described at `/swagger.json` and `/swagger-ui`.
    pub swagger: bool,
    /// Content types of requests that change something; none: any will do, which lets forms of
    /// other sites use a browser's session.
    pub content_types: Vec<String>,
    /// `X-Frame-Options` and `Content-Security-Policy` of answers; empty for none.
    pub frame_options: String,
    pub content_security_policy: String,
    /// Where it is recorded who changed what, and who was refused.
    pub audit: AuditOptions,
    /// Whether each call is logged when it ends.
    pub log_calls: bool,
    /// Whether the metrics say how long calls take.
    pub time_calls: bool,
    /// How long connections are still accepted when the server ends, while /healthz says that it
    /// does.
    pub notice: Duration,
    /// How long changes that are under way when the server ends may take then. Less than
    /// Kubernetes gives a process that ends.
    pub finish: Duration,
    /// How long the records of those that are cut off then may take.
    pub recording: Duration,
}

impl Options {
    /// Where browsers find the page.
    pub(crate) fn place_of_page(&self) -> &str {
        match self.root_path.trim_matches('/') {
            "" => &self.base_href,
            _ => &self.root_path,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "argocd".into(),
            root_path: String::new(),
            base_href: String::new(),
            limits: Limits::default(),
            refresh_timeout: Duration::from_secs(60),
            secure_cookie: false,
            version: VersionInfo::default(),
            connections: tiphys_listen::Limits::default(),
            trusted_proxies: Vec::new(),
            dex_server: "http://argocd-dex-server:5556".into(),
            dex_tls: DexTls::default(),
            hydrator_enabled: false,
            gzip: true,
            replace_allowed: true,
            auth_disabled: false,
            only_with: None,
            proxy_extensions: false,
            static_files: None,
            page_extensions: None,
            swagger: true,
            content_types: vec!["application/json".into()],
            frame_options: tiphys_rpc::FRAME_OPTIONS.into(),
            content_security_policy: tiphys_rpc::CONTENT_SECURITY_POLICY.into(),
            audit: AuditOptions::default(),
            log_calls: false,
            time_calls: false,
            notice: Duration::ZERO,
            finish: Duration::from_secs(5),
            recording: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_where_browsers_see_it() {
        for (root_path, base_href, place) in [
            ("", "", ""),
            ("", "/argo/", "/argo/"),
            ("/", "/argo", "/argo"),
            ("/kept", "/argo", "/kept"),
        ] {
            let options = Options {
                root_path: root_path.to_owned(),
                base_href: base_href.to_owned(),
                ..Options::default()
            };
            assert_eq!(options.place_of_page(), place);
        }
    }
}
