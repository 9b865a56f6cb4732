//! Which URLs name the same repository, and how a repository without credentials inherits those of
//! a template.
//!
//! Main functions: [`same_repository`], [`best_template`], [`shown_url`], [`Repository::inherit`].
//! It reads no Secrets or settings: callers provide them.

use crate::{
    repo_url::{Form, RepoUrl},
    repository::{RepoCreds, Repository},
    source::ApplicationSource,
};
use serde_json::Value;

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

/// A URL for messages: without user and password, without control characters, and shortened.
pub fn shown_url(url: &str) -> String {
    let text: String = url
        .chars()
        .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
        .take(300)
        .collect();
    let (scheme, rest) = text
        .split_once("://")
        .map_or(("", text.as_str()), |(scheme, rest)| (scheme, rest));
    let prefix = if scheme.is_empty() {
        String::new()
    } else {
        format!("{scheme}://")
    };
    match RepoUrl::parse(url) {
        // The user is part of an ssh URL.
        Ok(parsed) if matches!(parsed.form, Form::Ssh | Form::Scp | Form::File | Form::Bare) => {
            text
        }
        Ok(_) => {
            let (authority, path) = rest.find('/').map_or((rest, ""), |i| rest.split_at(i));
            let host = authority
                .rsplit_once('@')
                .map_or(authority, |(_, host)| host);
            let shown = format!("{prefix}{host}{path}");
            hide_query(&shown).unwrap_or(shown)
        }
        // It is unknown which part is the password.
        Err(_) => {
            let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            let shown = format!("{prefix}{rest}");
            hide_query(&shown).unwrap_or(shown)
        }
    }
}

/// The longest text that is read as JSON: Kubernetes accepts no larger annotations.
const MOST_JSON: usize = 256 << 10;
/// Replaces a password in a URL that is shown and may be sent back.
pub const HIDDEN: &str = "******";

/// Whether the user of a URL is an access token, which Git hosts accept without a password. User
/// names are shorter, and people must be able to see them.
fn is_token(user: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    user.len() >= 20 && user.chars().all(is_plain) && user.contains(|c: char| c.is_ascii_digit())
}

/// Parameters of queries that are credentials: tokens of Git hosts, and signatures of storages.
const SECRET_PARAMETERS: [&str; 14] = [
    "access_token",
    "api_key",
    "apikey",
    "auth_token",
    "client_secret",
    "job_token",
    "password",
    "private_token",
    "secret",
    "sig",
    "token",
    "x-amz-credential",
    "x-amz-security-token",
    "x-amz-signature",
];

/// The URL with [`HIDDEN`] for the credentials in its query; `None` if there are none.
fn hide_query(url: &str) -> Option<String> {
    let (before, query) = url.split_once('?')?;
    let (query, fragment) = query.find('#').map_or((query, ""), |at| query.split_at(at));
    let mut found = false;
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, value))
                if !value.is_empty()
                    && SECRET_PARAMETERS.contains(&&*name.to_ascii_lowercase()) =>
            {
                found = true;
                format!("{name}={HIDDEN}")
            }
            _ => parameter.to_owned(),
        })
        .collect();
    found.then(|| format!("{before}?{}{fragment}", parameters.join("&")))
}

/// The URL with [`HIDDEN`] for its password, for the token that is its user, and for tokens in its
/// query; `None` if it has none of them.
pub fn hide_password(url: &str) -> Option<String> {
    let hidden = hide_login(url);
    hide_query(hidden.as_deref().unwrap_or(url)).or(hidden)
}

fn hide_login(url: &str) -> Option<String> {
    let (scheme, rest) = url
        .split_once("://")
        .map_or(("", url), |(scheme, rest)| (scheme, rest));
    // In an invalid URL it is unknown which part is the password.
    let end = if RepoUrl::parse(url).is_ok() {
        rest.find('/').unwrap_or(rest.len())
    } else {
        rest.len()
    };
    let (login, _) = rest.get(..end)?.rsplit_once('@')?;
    if !login.contains(':') && scheme.starts_with("http") && is_token(login) {
        return Some(format!("{scheme}://{HIDDEN}{}", &rest[login.len()..]));
    }
    let (user, password) = login.split_once(':')?;
    let prefix = if scheme.is_empty() {
        String::new()
    } else {
        format!("{scheme}://")
    };
    (!password.is_empty()).then(|| format!("{prefix}{user}:{HIDDEN}{}", &rest[login.len()..]))
}

/// Whether a text has [`HIDDEN`] where [`hide_password`] puts it: such a URL cannot be used, and
/// nobody means to store it.
pub fn has_hidden(text: &str) -> bool {
    text.match_indices(HIDDEN).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + HIDDEN.len()..]);
        if after.starts_with('@') {
            return before.ends_with([':', '/']);
        }
        let parameter = before
            .strip_suffix('=')
            .and_then(|before| before.rfind(['?', '&']).map(|at| &before[at + 1..]));
        parameter.is_some_and(|name| SECRET_PARAMETERS.contains(&&*name.to_ascii_lowercase()))
    })
}

/// A text with [`HIDDEN`] for the passwords of the URLs in it: one that is shown and may be sent
/// back. Messages, which are never sent back, are better off with [`without_passwords`].
pub fn hide_passwords(text: &str) -> String {
    let hide = |url: &str| hide_password(url).unwrap_or_else(|| url.to_owned());
    if is_url(text) {
        return hide(text);
    }
    let of_json = hide_in_json(text);
    let text = of_json.as_deref().unwrap_or(text);
    of_words(text, |word| match is_url(word) {
        true => hide(word),
        false => word_with_hidden(word),
    })
}

/// JSON in a text, such as the last applied manifest in an annotation, string by string: a string
/// may be a URL as a whole, and JSON writes characters such as `&` in other ways, too. `None`:
/// nothing is hidden in it.
fn hide_in_json(text: &str) -> Option<String> {
    let is_candidate = text.len() <= MOST_JSON
        && text.trim_start().starts_with(['{', '['])
        && text.contains(['@', '?', '\\']);
    if !is_candidate {
        return None;
    }
    let mut json: Value = serde_json::from_str(text).ok()?;
    hide_in_strings(&mut json).then(|| json.to_string())
}

/// Whether something was hidden.
fn hide_in_strings(json: &mut Value) -> bool {
    match json {
        Value::String(text) => {
            let hidden = hide_passwords(text);
            let is_changed = hidden != *text;
            *text = hidden;
            is_changed
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |found, item| hide_in_strings(item) | found),
        Value::Object(members) => members
            .values_mut()
            .fold(false, |found, member| hide_in_strings(member) | found),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether all of a text is one URL, so that its password ends where its host begins, whatever
/// characters it has.
fn is_url(text: &str) -> bool {
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.:".contains(c);
    match text.split_once("://") {
        Some((scheme, rest)) => {
            scheme.chars().all(is_scheme)
                && !rest.contains("://")
                && !rest.contains(|c: char| c.is_whitespace() || "\"'`<>{}".contains(c))
        }
        None => false,
    }
}

fn word_with_hidden(word: &str) -> String {
    let (prefix, rest) = match word.split_once("://") {
        Some((before, _)) => word.split_at(before.len() + "://".len()),
        None => ("", word),
    };
    let is_http = prefix.ends_with("http://") || prefix.ends_with("https://");
    let end = match prefix {
        "" => rest.len(),
        _ => rest.find(['/', '?', '#']).unwrap_or(rest.len()),
    };
    // An image with a digest looks as if it had a login.
    let is_digest = |host: &str| host.starts_with("sha256:") || host.starts_with("sha512:");
    let shown = match rest[..end].rsplit_once('@') {
        Some((login, host)) if !(prefix.is_empty() && is_digest(host)) => {
            let host = &rest[login.len()..];
            match login.split_once(':') {
                Some((user, password)) if !password.is_empty() => {
                    format!("{prefix}{user}:{HIDDEN}{host}")
                }
                None if is_http && is_token(login) => format!("{prefix}{HIDDEN}{host}"),
                _ => word.to_owned(),
            }
        }
        _ => word.to_owned(),
    };
    match prefix {
        "" => shown,
        _ => hide_query(&shown).unwrap_or(shown),
    }
}

/// A message without the passwords of URLs in it, whatever its source.
pub fn without_passwords(message: &str) -> String {
    of_words(message, word_without_password)
}

/// A text whose words that may have a password are replaced.
fn of_words(text: &str, replaced: impl Fn(&str) -> String) -> String {
    if !text.contains('@') && !text.contains('?') {
        return text.to_owned();
    }
    let ends = |c: char| c.is_whitespace() || "\"'`<>(){}|,".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ends).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        out.push_str(&replaced(word));
        let next = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    out
}

fn word_without_password(word: &str) -> String {
    let Some((before, after)) = word.split_once("://") else {
        // `user:password@host:path`; an image with a digest looks similar.
        return match word.rsplit_once('@') {
            Some((login, rest))
                if login.contains(':')
                    && !rest.starts_with("sha256:")
                    && !rest.starts_with("sha512:") =>
            {
                rest.to_owned()
            }
            _ => word.to_owned(),
        };
    };
    let (authority, path) = after
        .find(['/', '?', '#'])
        .map_or((after, ""), |i| after.split_at(i));
    let shown = match authority.rsplit_once('@') {
        Some((login, host)) if login.contains(':') || before != "ssh" => {
            format!("{before}://{host}{path}")
        }
        _ => word.to_owned(),
    };
    hide_query(&shown).unwrap_or(shown)
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
    fn what_is_shown_has_no_password() {
        for (url, shown) in [
            ("https://u:CANARY@h/r.git", "https://h/r.git"),
            ("https://CANARY@h/r.git", "https://h/r.git"),
            ("https://u:CANARY@h/../r", "https://h/../r"),
            ("https://u:CAN/ARY@h/r", "https://h/r"),
            ("u:CANARY@h:r", "h:r"),
            ("u:CANARY@h/r", "h/r"),
            ("u@x:CANARY@h:r", "h:r"),
            ("ssh://u:CANARY@h/r", "ssh://h/r"),
            ("git@h:r", "git@h:r"),
            ("ssh://git@h/r", "ssh://git@h/r"),
            ("https://h/@scope/r", "https://h/@scope/r"),
            (
                "https://h/v.yaml?ref=a&private_token=CANARY",
                "https://h/v.yaml?ref=a&private_token=******",
            ),
        ] {
            assert_eq!(shown_url(url), shown);
        }
        for (url, hidden) in [
            ("https://u:CANARY@h/r.git", Some("https://u:******@h/r.git")),
            ("u:CANARY@h:r", Some("u:******@h:r")),
            ("http://u:CAN/ARY@h:80", Some("http://u:******@h:80")),
            ("https://u@h/r", None),
            ("https://some-organization@h/r", None),
            (
                "https://ghp_0123456789abcdefCANARY@h/r",
                Some("https://******@h/r"),
            ),
            ("ssh://ghp_0123456789abcdefCANARY@h/r", None),
            ("git@h:r", None),
            ("https://h:80/@a/r", None),
            (
                "https://u:CANARY@h/v?X-Amz-Signature=CANARY&a=b#c",
                Some("https://u:******@h/v?X-Amz-Signature=******&a=b#c"),
            ),
            ("git::https://h/r?ref=v1&token=", None),
        ] {
            assert_eq!(hide_password(url).as_deref(), hidden);
            assert_eq!(has_hidden(hidden.unwrap_or(url)), hidden.is_some(), "{url}");
        }
        for text in [
            "******",
            "a:******",
            "https://h/?ref=******",
            "x=******&y",
            "u:p@h:r",
        ] {
            assert!(!has_hidden(text), "{text}");
        }
    }

    #[test]
    fn texts_with_urls_are_shown_without_passwords() {
        for (text, hidden) in [
            ("https://u:CAN/ARY,CANARY@h/r", "https://u:******@h/r"),
            ("u:CANARY@h:r", "u:******@h:r"),
            (
                "{\"a\":\"https://u:CANARY@h/r\",\"b\":\"u:CANARY@h:r\"}",
                "{\"a\":\"https://u:******@h/r\",\"b\":\"u:******@h:r\"}",
            ),
            (
                "x=https://ghp_0123456789abcdefCANARY@h/r and https://h/v?token=CANARY",
                "x=https://******@h/r and https://h/v?token=******",
            ),
            (
                r#"{"b":"https://u:CAN,(|ARY@h/r","a":["https://h/?a=b\u0026token=CANARY"]}"#,
                r#"{"a":["https://h/?a=b&token=******"],"b":"https://u:******@h/r"}"#,
            ),
            ("nginx:1@sha256:aa", "nginx:1@sha256:aa"),
            (
                "https://{{user}}:{{token}}@h/r",
                "https://{{user}}:{{token}}@h/r",
            ),
            (
                "https://org@h/r git@h:r a@b.c?",
                "https://org@h/r git@h:r a@b.c?",
            ),
        ] {
            assert_eq!(hide_passwords(text), hidden);
            assert_eq!(hide_passwords(hidden), hidden, "once more changes nothing");
            assert_eq!(has_hidden(hidden), text != hidden, "{hidden}");
        }
        for (message, shown) in [
            (
                "cannot reach https://u:CANARY@h/r: no",
                "cannot reach https://h/r: no",
            ),
            (
                "Get \"http://CANARY@proxy:80\": refused",
                "Get \"http://proxy:80\": refused",
            ),
            ("repo u:CANARY@h:r failed", "repo h:r failed"),
            (
                "image nginx:1@sha256:aa by a@b.c",
                "image nginx:1@sha256:aa by a@b.c",
            ),
            ("ssh://git@h/r and git@h:r", "ssh://git@h/r and git@h:r"),
            (
                "Get \"https://h/v?access_token=CANARY&x=1\": 404; what?",
                "Get \"https://h/v?access_token=******&x=1\": 404; what?",
            ),
        ] {
            assert_eq!(without_passwords(message), shown);
        }
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
