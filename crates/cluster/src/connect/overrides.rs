//! Command line overrides of the kubeconfig. Main type: [`Overrides`].

use kube::config::{
    AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};

/// Named like kubectl's flags; `None` changes nothing.
#[derive(Clone, Default)]
pub struct Overrides {
    /// Names of another cluster and another user in the file.
    pub cluster: Option<String>,
    pub user: Option<String>,
    pub server: Option<String>,
    pub certificate_authority: Option<String>,
    pub insecure_skip_tls_verify: Option<bool>,
    pub tls_server_name: Option<String>,
    pub proxy_url: Option<String>,
    pub client_certificate: Option<String>,
    pub client_key: Option<String>,
    pub token: Option<String>,
    /// For basic authentication.
    pub username: Option<String>,
    pub password: Option<String>,
    /// Impersonate this user, and these groups.
    pub impersonate: Option<String>,
    pub impersonate_groups: Vec<String>,
}

/// The name of entries that are in no file.
const NAME: &str = "command-line";

impl Overrides {
    /// Whether a server is given, so that no file is needed.
    pub(super) fn is_enough(&self) -> bool {
        self.server.is_some()
    }

    /// A kubeconfig with nothing but names.
    pub(super) fn base() -> Kubeconfig {
        let context = Context {
            cluster: NAME.into(),
            user: Some(NAME.into()),
            ..Context::default()
        };
        Kubeconfig {
            contexts: vec![NamedContext {
                name: NAME.into(),
                context: Some(context),
                other: Default::default(),
            }],
            clusters: vec![NamedCluster {
                name: NAME.into(),
                cluster: Some(Cluster::default()),
                other: Default::default(),
            }],
            auth_infos: vec![NamedAuthInfo {
                name: NAME.into(),
                auth_info: Some(AuthInfo::default()),
                other: Default::default(),
            }],
            current_context: Some(NAME.into()),
            ..Kubeconfig::default()
        }
    }

    /// Changes the context, and the cluster and user that it then refers to.
    pub(super) fn apply(&self, config: &mut Kubeconfig, context: &str) {
        let Some(context) = config
            .contexts
            .iter_mut()
            .find(|c| c.name == context)
            .and_then(|c| c.context.as_mut())
        else {
            return;
        };
        if let Some(cluster) = &self.cluster {
            context.cluster.clone_from(cluster);
        }
        if self.user.is_some() {
            context.user.clone_from(&self.user);
        }
        if let Some(named) = config
            .clusters
            .iter_mut()
            .find(|c| c.name == context.cluster)
        {
            self.apply_to_cluster(named.cluster.get_or_insert_default());
        }
        if !self.changes_user() {
            return;
        }
        let user = context.user.get_or_insert_with(|| NAME.into());
        let at = config
            .auth_infos
            .iter()
            .position(|u| u.name == *user)
            .unwrap_or_else(|| {
                config.auth_infos.push(NamedAuthInfo {
                    name: user.clone(),
                    auth_info: None,
                    other: Default::default(),
                });
                config.auth_infos.len() - 1
            });
        self.apply_to_user(config.auth_infos[at].auth_info.get_or_insert_default());
    }

    fn apply_to_cluster(&self, cluster: &mut Cluster) {
        set(&mut cluster.server, &self.server);
        if self.certificate_authority.is_some() {
            cluster
                .certificate_authority
                .clone_from(&self.certificate_authority);
            cluster.certificate_authority_data = None;
        }
        if self.insecure_skip_tls_verify.is_some() {
            cluster.insecure_skip_tls_verify = self.insecure_skip_tls_verify;
            // A CA and disabled verification exclude each other.
            if self.insecure_skip_tls_verify == Some(true) && self.certificate_authority.is_none() {
                (
                    cluster.certificate_authority,
                    cluster.certificate_authority_data,
                ) = (None, None);
            }
        }
        set(&mut cluster.tls_server_name, &self.tls_server_name);
        set(&mut cluster.proxy_url, &self.proxy_url);
    }

    fn changes_user(&self) -> bool {
        self.token.is_some()
            || self.username.is_some()
            || self.password.is_some()
            || self.client_certificate.is_some()
            || self.client_key.is_some()
            || self.impersonate.is_some()
    }

    fn apply_to_user(&self, user: &mut AuthInfo) {
        if let Some(token) = &self.token {
            // A token replaces all other credentials except the client certificate.
            (
                user.username,
                user.password,
                user.token_file,
                user.exec,
                user.auth_provider,
            ) = (None, None, None, None, None);
            user.token = Some(token.clone().into());
        }
        set(&mut user.username, &self.username);
        if let Some(password) = &self.password {
            user.password = Some(password.clone().into());
        }
        if self.client_certificate.is_some() {
            (user.client_certificate, user.client_certificate_data) =
                (self.client_certificate.clone(), None);
        }
        if self.client_key.is_some() {
            (user.client_key, user.client_key_data) = (self.client_key.clone(), None);
        }
        if self.impersonate.is_some() {
            user.impersonate.clone_from(&self.impersonate);
            user.impersonate_groups =
                (!self.impersonate_groups.is_empty()).then(|| self.impersonate_groups.clone());
        }
    }
}

fn set(field: &mut Option<String>, value: &Option<String>) {
    if value.is_some() {
        field.clone_from(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_wins() {
        let mut config = Overrides::base();
        let overrides = Overrides {
            server: Some("https://a:1".into()),
            insecure_skip_tls_verify: Some(true),
            token: Some("t".into()),
            impersonate: Some("jane".into()),
            impersonate_groups: vec!["dev".into()],
            ..Overrides::default()
        };
        overrides.apply(&mut config, NAME);
        let cluster = config.clusters[0].cluster.as_ref().expect("there");
        assert_eq!(
            (cluster.server.as_deref(), cluster.insecure_skip_tls_verify),
            (Some("https://a:1"), Some(true))
        );
        let user = config.auth_infos[0].auth_info.as_ref().expect("there");
        assert_eq!(
            (
                user.impersonate.as_deref(),
                user.impersonate_groups.as_deref()
            ),
            (Some("jane"), Some(&["dev".to_owned()][..]))
        );
        assert!(user.token.is_some());
    }
}
