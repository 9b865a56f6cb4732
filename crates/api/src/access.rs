//! How repositories are told apart, and how one without credentials inherits those of a template.
//!
//! Main functions: [`normalize_url`], [`Repository::inherit`]. Knows no Secret and no settings: callers find what fits.

use crate::repository::{RepoCreds, Repository};

/// One spelling for URLs that name the same repository: without case, `.git` and a final slash; `git@host:path` is `ssh://git@host/path`.
pub fn normalize_url(url: &str) -> String {
    let url = url.trim().to_lowercase();
    let url = match url.split_once(':') {
        Some((host, path)) if !url.contains("://") && host.contains('@') => format!("ssh://{host}/{}", path.trim_start_matches('/')),
        _ => url,
    };
    let url = url.trim_end_matches('/');
    url.strip_suffix(".git").unwrap_or(url).to_owned()
}

/// The template whose URL is the longest that begins `url`.
pub fn best_template<'a, T>(url: &str, templates: impl IntoIterator<Item = T>, url_of: impl Fn(&T) -> &'a str) -> Option<T> {
    let wanted = normalize_url(url);
    let fits = |t: &T| !url_of(t).is_empty() && wanted.starts_with(&normalize_url(url_of(t)));
    templates.into_iter().filter(fits).max_by_key(|t| url_of(t).len())
}

impl Repository {
    /// Whether it says itself how to log in.
    pub fn has_credentials(&self) -> bool {
        let texts = [
            &self.username,
            &self.password,
            &self.bearer_token,
            &self.ssh_private_key,
            &self.tls_client_cert_data,
            &self.github_app_private_key,
            &self.azure_service_principal_client_secret,
        ];
        self.use_azure_workload_identity || texts.iter().any(|t| !t.is_empty())
    }

    /// Takes the credentials of a template over, unless it has its own: those of two accounts are never mixed.
    pub fn inherit(&mut self, from: &RepoCreds) {
        if self.has_credentials() {
            return;
        }
        macro_rules! fill {
            ($($field:ident),*) => {$(
                if is_default(&self.$field) {
                    self.$field.clone_from(&from.$field);
                }
            )*};
        }
        fill!(username, password, bearer_token, ssh_private_key, tls_client_cert_data, tls_client_cert_key);
        fill!(github_app_private_key, github_app_id, github_app_installation_id, github_app_enterprise_base_url, gcp_service_account_key);
        fill!(azure_service_principal_client_id, azure_service_principal_client_secret, azure_service_principal_tenant_id);
        fill!(azure_active_directory_endpoint, proxy, no_proxy, type_);
        self.enable_oci = from.enable_oci;
        self.insecure_oci_force_http = from.insecure_oci_force_http;
        self.force_http_basic_auth = from.force_http_basic_auth;
        self.use_azure_workload_identity = from.use_azure_workload_identity;
        self.inherited_creds = true;
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_the_same_repository_are_equal() {
        let same = [("git@host:Team/x.git", "ssh://git@host/team/x"), ("https://h/a/", "https://h/a.git"), (" https://H/A", "https://h/a")];
        for (a, b) in same {
            assert_eq!(normalize_url(a), normalize_url(b));
        }
        assert_ne!(normalize_url("https://h/a"), normalize_url("ssh://h/a"));
    }

    #[test]
    fn the_longest_template_fits_and_an_empty_one_never() {
        let find = |url| best_template(url, ["", "https://h", "https://h/team"], |t| *t);
        assert_eq!(find("https://h/team/x"), Some("https://h/team"));
        assert_eq!(find("https://h/other"), Some("https://h"));
        assert_eq!(find("https://elsewhere/x"), None);
    }

    #[test]
    fn credentials_are_inherited_whole_or_not_at_all() {
        let from = RepoCreds { username: "u".into(), bearer_token: "t".into(), type_: "git".into(), ..RepoCreds::default() };
        let mut bare = Repository { insecure: true, ..Repository::default() };
        bare.inherit(&from);
        assert_eq!((bare.username.as_str(), bare.bearer_token.as_str(), bare.insecure, bare.inherited_creds), ("u", "t", true, true));
        let mut own = Repository { password: "p".into(), ..Repository::default() };
        own.inherit(&from);
        assert_eq!(own, Repository { password: "p".into(), ..Repository::default() });
    }
}
