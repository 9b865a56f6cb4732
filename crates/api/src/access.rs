//! Which URLs name the same repository, and how a repository without credentials inherits those of
//! a template.
//!
//! Main functions: [`same_repository`], [`best_template`], [`Repository::inherit`]. It reads no
//! Secrets or settings: callers provide them. What is shown of URLs is in `passwords`.

pub use crate::passwords::{
    HIDDEN, has_hidden, hide_in_strings, hide_password, hide_passwords, shown_url,
    without_passwords,
};

use crate::{
    repo_url::RepoUrl,
    repository::{RepoCreds, Repository},
    source::ApplicationSource,
};

/// A normalized URL, for lists and labels. Decisions about access use [`RepoUrl`], which also
/// rejects URLs.
pub fn normalize_url(url: &str) -> String {
    RepoUrl::parse(url).map_or_else(|_| url.trim().to_lowercase(), |url| url.canonical())
}

/// Whether an entry stored for one URL also applies to the other. An invalid URL matches only
/// itself.
pub fn same_repository(a: &str, b: &str) -> bool {
    match (RepoUrl::parse(a), RepoUrl::parse(b)) {
        (Ok(a), Ok(b)) => a.is_same(&b),
        (Err(_), Err(_)) => a.trim() == b.trim(),
        _ => false,
    }
}

/// The template for `url` with the longest path: scheme, host, port and user equal those of `url`,
/// and its path is a prefix of the path of `url` in whole segments.
pub fn best_template<'a, T>(
    url: &str,
    templates: impl IntoIterator<Item = T>,
    url_of: impl Fn(&T) -> &'a str,
) -> Option<T> {
    let wanted = RepoUrl::parse(url).ok()?;
    let covers = |template: &T| {
        RepoUrl::parse(url_of(template))
            .ok()
            .and_then(|template| wanted.under(&template))
    };
    let fitting = templates
        .into_iter()
        .filter_map(|template| Some((covers(&template)?, template)));
    fitting
        .max_by_key(|(segments, _)| *segments)
        .map(|(_, template)| template)
}

/// The registry of charts with the longest path in common with `plain`, an address without a scheme:
/// its settings serve for all of it.
pub fn nearest_registry<'a>(
    plain: &str,
    repositories: impl IntoIterator<Item = &'a Repository>,
) -> Option<&'a Repository> {
    let parsed = |url: &str| {
        let url = url.strip_prefix("oci://").unwrap_or(url);
        RepoUrl::parse(&format!("oci://{url}")).ok()
    };
    let wanted = parsed(plain)?;
    let common = |r: &Repository| {
        let own = parsed(&r.repo)?;
        wanted.under(&own).or_else(|| own.under(&wanted))
    };
    repositories
        .into_iter()
        .filter(|r| r.enable_oci || r.type_ == "oci")
        .filter_map(|r| Some((common(r)?, r)))
        .max_by_key(|(common, _)| *common)
        .map(|(_, r)| r)
}

impl ApplicationSource {
    /// Every text that may be a URL.
    pub fn urls(&self) -> impl Iterator<Item = &String> {
        let helm = self.helm.iter().flat_map(|helm| {
            let files = helm.file_parameters.iter().map(|file| &file.path);
            files.chain(&helm.value_files)
        });
        let kustomize = self.kustomize.iter().flat_map(|k| &k.components);
        std::iter::once(&self.repo_url).chain(helm).chain(kustomize)
    }

    /// The same with the names of their fields.
    pub fn named_urls_mut(&mut self) -> Vec<(String, &mut String)> {
        let mut urls = vec![("repoURL".to_owned(), &mut self.repo_url)];
        if let Some(helm) = &mut self.helm {
            let files = helm.file_parameters.iter_mut().enumerate();
            urls.extend(files.map(|(i, file)| {
                let name = format!("helm.fileParameters[{i}].path");
                (name, &mut file.path)
            }));
            let files = helm.value_files.iter_mut().enumerate();
            urls.extend(files.map(|(i, file)| (format!("helm.valueFiles[{i}]"), file)));
        }
        if let Some(kustomize) = &mut self.kustomize {
            let components = kustomize.components.iter_mut().enumerate();
            urls.extend(components.map(|(i, url)| (format!("kustomize.components[{i}]"), url)));
        }
        urls
    }

    /// The same, to be changed.
    pub fn urls_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let helm = self.helm.iter_mut().flat_map(|helm| {
            let files = helm.file_parameters.iter_mut().map(|file| &mut file.path);
            files.chain(&mut helm.value_files)
        });
        let kustomize = self.kustomize.iter_mut().flat_map(|k| &mut k.components);
        std::iter::once(&mut self.repo_url)
            .chain(helm)
            .chain(kustomize)
    }
}

impl Repository {
    /// As somebody without credentials reaches it. How a registry is spoken to is no secret.
    #[must_use]
    pub fn as_anybody(self) -> Self {
        Self {
            repo: self.repo,
            insecure_oci_force_http: self.insecure_oci_force_http,
            ..Self::default()
        }
    }

    /// What is wrong with the Secret that it is read of. Such a repository is shown, so that it can
    /// be mended, and never used: without what cannot be read it would be asked as someone else.
    pub fn fault(&self) -> Option<&str> {
        let state = &self.connection_state;
        (state.status == "Failed").then_some(state.message.as_str())
    }

    /// Marks it as read of a Secret that has this fault.
    #[must_use]
    pub fn with_fault(mut self, fault: String) -> Self {
        "Failed".clone_into(&mut self.connection_state.status);
        self.connection_state.message = fault;
        self
    }

    /// A credential template with a fault, as requests to a repo-server list it.
    pub fn as_faulty_template(url: &str, type_: &str, fault: &str) -> Self {
        let template = Self {
            repo: url.to_owned(),
            type_: type_.to_owned(),
            inherited_creds: true,
            ..Self::default()
        };
        template.with_fault(fault.to_owned())
    }

    /// Whether it is one made by [`Self::as_faulty_template`]. A repository with a fault inherits
    /// nothing.
    pub fn is_faulty_template(&self) -> bool {
        self.inherited_creds && self.fault().is_some()
    }

    /// Whether it has credentials of its own.
    pub fn has_credentials(&self) -> bool {
        let texts = [
            &self.username,
            &self.password,
            &self.bearer_token,
            &self.ssh_private_key,
            &self.tls_client_cert_data,
            &self.github_app_private_key,
            &self.gcp_service_account_key,
            &self.azure_service_principal_client_secret,
        ];
        self.use_azure_workload_identity || texts.iter().any(|t| !t.is_empty())
    }

    /// Copies the credentials of a template, unless it has its own: credentials of two accounts are
    /// never mixed, and whoever writes a repository must not decide which server a template's
    /// identity proves itself to.
    pub fn inherit(&mut self, from: &RepoCreds) {
        if self.has_credentials() {
            return;
        }
        macro_rules! take {
            ($($field:ident),*) => {$(self.$field.clone_from(&from.$field);)*};
        }
        take!(
            username,
            password,
            bearer_token,
            ssh_private_key,
            tls_client_cert_data,
            tls_client_cert_key,
            github_app_private_key,
            github_app_id,
            github_app_installation_id,
            github_app_enterprise_base_url,
            gcp_service_account_key,
            use_azure_workload_identity,
            azure_service_principal_client_id,
            azure_service_principal_client_secret,
            azure_service_principal_tenant_id,
            azure_active_directory_endpoint
        );
        for (own, theirs) in [
            (&mut self.proxy, &from.proxy),
            (&mut self.no_proxy, &from.no_proxy),
            (&mut self.type_, &from.type_),
        ] {
            if own.is_empty() {
                own.clone_from(theirs);
            }
        }
        self.enable_oci = from.enable_oci;
        self.insecure_oci_force_http = from.insecure_oci_force_http;
        self.force_http_basic_auth = from.force_http_basic_auth;
        self.inherited_creds = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_the_same_repository_are_equal() {
        let same = [
            ("git@host:Team/x.git", "ssh://git@host/team/x"),
            ("https://h/a/", "https://h/a.git"),
            (" https://H/A", "https://h/a"),
        ];
        assert!(same.iter().all(|(a, b)| same_repository(a, b)));
        for (a, b) in same {
            assert_eq!(normalize_url(a), normalize_url(b));
        }
        assert_ne!(normalize_url("https://h/a"), normalize_url("ssh://h/a"));
        for (a, b) in [
            ("https://h/a", "https://h/b"),
            ("https://h/a", "https://other/a"),
            ("https://h/a", "https://h/x/../a"),
            ("https://h/x/../a", "https://h/y/../a"),
        ] {
            assert!(!same_repository(a, b), "{a} {b}");
        }
        assert!(
            same_repository("https://h/x/../a", " https://h/x/../a"),
            "what is refused is the same as itself"
        );
    }

    #[test]
    fn credentials_are_inherited_whole_or_not_at_all() {
        let from = RepoCreds {
            username: "u".into(),
            bearer_token: "t".into(),
            type_: "git".into(),
            ..RepoCreds::default()
        };
        let mut bare = Repository {
            insecure: true,
            ..Repository::default()
        };
        bare.inherit(&from);
        assert_eq!(
            (
                bare.username.as_str(),
                bare.bearer_token.as_str(),
                bare.insecure,
                bare.inherited_creds
            ),
            ("u", "t", true, true)
        );
        let mut own = Repository {
            password: "p".into(),
            ..Repository::default()
        };
        own.inherit(&from);
        assert_eq!(
            own,
            Repository {
                password: "p".into(),
                ..Repository::default()
            }
        );
    }

    #[test]
    fn the_credentials_of_a_template_are_one() {
        let template = RepoCreds {
            github_app_private_key: "key".into(),
            github_app_id: 7,
            github_app_enterprise_base_url: "https://ghe.example.com".into(),
            proxy: "http://proxy".into(),
            ..RepoCreds::default()
        };
        let mut repo = Repository {
            github_app_id: 8,
            github_app_enterprise_base_url: "https://attacker.example.com".into(),
            azure_active_directory_endpoint: "https://attacker.example.com".into(),
            proxy: "http://own".into(),
            ..Repository::default()
        };
        repo.inherit(&template);
        assert_eq!(
            (
                repo.github_app_id,
                repo.github_app_enterprise_base_url.as_str()
            ),
            (7, "https://ghe.example.com")
        );
        assert_eq!(repo.azure_active_directory_endpoint, "");
        assert_eq!(repo.proxy, "http://own");
        let mut repo = Repository {
            gcp_service_account_key: "{}".into(),
            ..Repository::default()
        };
        repo.inherit(&template);
        assert!(repo.github_app_private_key.is_empty() && !repo.inherited_creds);
    }
}
