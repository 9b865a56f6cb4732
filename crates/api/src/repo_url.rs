//! The URL of a repository, parsed. Project rules, lookups of Secrets and fetches all use the same
//! parsed parts, so no URL can be interpreted differently by one of them.
//!
//! Main type: [`RepoUrl`]. It knows nothing of Secrets, projects or connections.

use std::fmt;

/// Maximum length.
const MAX: usize = 4096;

/// Why a URL is rejected. The text continues a sentence after "it"; it never quotes the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlFault {
    Empty,
    Long,
    Control,
    Blank,
    Backslash,
    Dots,
    Encoding,
    EncodedSlash,
    Query,
    Host,
    Port,
    Password,
}

impl fmt::Display for UrlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it is empty",
            Self::Long => "it is longer than 4096 bytes",
            Self::Control => "it has a line break or a control character",
            Self::Blank => "it has a blank",
            Self::Backslash => "it has a backslash",
            Self::Dots => "it has a '.' or '..' segment",
            Self::Encoding => "it has a percent-encoding that is broken, doubled or not UTF-8",
            Self::EncodedSlash => "it has a percent-encoded slash",
            Self::Query => "it has a query or a fragment",
            Self::Host => "its host is not a host name",
            Self::Port => "its port is not valid",
            Self::Password => "it has a password where only a user may be",
        })
    }
}

impl std::error::Error for UrlFault {}

/// The notation of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Https,
    Http,
    Ssh,
    /// `[user@]host:path`
    Scp,
    /// `file:///path` or an absolute path.
    File,
    Oci,
    /// A registry without a scheme, or any other text without one.
    Bare,
    /// An unknown scheme.
    Other,
}

/// A validated URL. It has no Debug, because it may contain a password.
#[derive(Clone, PartialEq, Eq)]
pub struct RepoUrl {
    pub form: Form,
    /// As written, percent-encoded; for http and https only together with `password`.
    pub user: String,
    /// As written, percent-encoded.
    pub password: String,
    /// In lower case, without a trailing dot.
    pub host: String,
    /// `None` for the scheme's default port.
    pub port: Option<u16>,
    /// Begins with `/` unless it is of [`Form::Scp`] or empty; percent-encodings are decoded for
    /// URLs. No `//`, no trailing `/`.
    pub path: String,
    /// The scheme in lower case, for [`Form::Other`].
    scheme: String,
}

impl RepoUrl {
    pub fn parse(text: &str) -> Result<Self, UrlFault> {
        let text = text.trim_matches(' ');
        check_characters(text)?;
        match text.split_once("://") {
            Some((scheme, rest)) => Self::with_scheme(&scheme.to_ascii_lowercase(), rest),
            None if text.starts_with('/') => Self::file(text),
            None => Self::without_scheme(text),
        }
    }

    fn with_scheme(scheme: &str, rest: &str) -> Result<Self, UrlFault> {
        let form = match scheme {
            "https" => Form::Https,
            "http" => Form::Http,
            "ssh" => Form::Ssh,
            "oci" => Form::Oci,
            "file" => {
                let path = rest
                    .strip_prefix("localhost")
                    .filter(|p| p.starts_with('/'))
                    .unwrap_or(rest);
                return if path.starts_with('/') {
                    Self::file(&decode(path)?)
                } else {
                    Err(UrlFault::Host)
                };
            }
            _ => Form::Other,
        };
        if rest.contains(['?', '#']) {
            return Err(UrlFault::Query);
        }
        let (authority, path) = rest.find('/').map_or((rest, ""), |i| rest.split_at(i));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        if !password.is_empty() && form == Form::Ssh {
            return Err(UrlFault::Password);
        }
        let (host, port) = host_and_port(host, default_port(form))?;
        let path = clean(&decode(path)?)?;
        let scheme = if form == Form::Other {
            scheme.to_owned()
        } else {
            String::new()
        };
        Ok(Self {
            form,
            user: user.to_owned(),
            password: password.to_owned(),
            host,
            port,
            path,
            scheme,
        })
    }

    fn file(path: &str) -> Result<Self, UrlFault> {
        check_characters(&path.replace(' ', "_"))?;
        let path = clean(path)?;
        Ok(Self {
            path,
            ..Self::of(Form::File)
        })
    }

    fn without_scheme(text: &str) -> Result<Self, UrlFault> {
        let first = text.find('/').map_or(text, |i| &text[..i]);
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let registry = text.len() > first.len()
            && first
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.contains('@') && digits(port));
        let Some((login, path)) = text
            .split_once(':')
            .filter(|(before, _)| !registry && !before.contains('/'))
        else {
            if first.contains('@') {
                return Err(UrlFault::Password);
            }
            // The first segment may be a host; it is part of the path like everything else.
            let path = clean(&format!("/{text}"))?;
            return Ok(Self {
                path,
                ..Self::of(Form::Bare)
            });
        };
        let (user, host) = login.rsplit_once('@').unwrap_or(("", login));
        // `user:password@host:path` is not parsed as its author meant it by any tool.
        if path.find('/').map_or(path, |i| &path[..i]).contains('@') {
            return Err(UrlFault::Password);
        }
        if host.is_empty() {
            return Err(UrlFault::Host);
        }
        let host = host.to_lowercase().trim_end_matches('.').to_owned();
        Ok(Self {
            user: user.to_owned(),
            host,
            path: clean(path)?,
            ..Self::of(Form::Scp)
        })
    }

    fn of(form: Form) -> Self {
        let none = String::new;
        Self {
            form,
            user: none(),
            password: none(),
            host: none(),
            port: None,
            path: none(),
            scheme: none(),
        }
    }

    fn scheme(&self) -> &str {
        match self.form {
            Form::Https => "https",
            Form::Http => "http",
            Form::Ssh | Form::Scp => "ssh",
            Form::File => "file",
            Form::Oci => "oci",
            Form::Bare | Form::Other => &self.scheme,
        }
    }

    /// Whether the user is part of the repository's identity and not only a credential.
    fn user_counts(&self) -> bool {
        matches!(self.form, Form::Ssh | Form::Scp)
    }

    /// The normalized form that projects compare: in lower case, without `.git`, and for http
    /// without the user.
    pub fn canonical(&self) -> String {
        let path = self.path.trim_start_matches('/').to_lowercase();
        let path = path.strip_suffix(".git").unwrap_or(&path);
        if self.form == Form::Bare {
            return path.to_owned();
        }
        let user = if self.user_counts() && !self.user.is_empty() {
            format!("{}@", self.user.to_lowercase())
        } else {
            String::new()
        };
        let slash = if path.is_empty() { "" } else { "/" };
        format!(
            "{}://{user}{}{slash}{path}",
            self.scheme(),
            self.authority()
        )
    }

    fn authority(&self) -> String {
        self.port
            .map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }

    /// The URL for http requests, without credentials, percent-encoded uniformly.
    pub fn http_url(&self) -> String {
        format!("{}{}", self.origin(), encode(&self.path))
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme(), self.authority())
    }

    /// The URL passed to ssh.
    pub fn ssh_url(&self) -> String {
        let user = if self.user.is_empty() {
            String::new()
        } else {
            format!("{}@", self.user)
        };
        match self.form {
            Form::Scp => format!("{user}{}:{}", self.host, self.path),
            // It contains no percent-encodings, so it does not matter whether they are decoded
            // again.
            _ => format!("ssh://{user}{}{}", self.authority(), self.path),
        }
    }

    /// Whether a repository Secret for one of them also applies to the other.
    pub fn is_same(&self, other: &Self) -> bool {
        self.user.eq_ignore_ascii_case(&other.user) && self.canonical() == other.canonical()
    }

    /// How many path segments a credential template for `template` covers; `None`: it does not
    /// apply. Scheme, host, port and user must be equal, and the template's path must be a prefix
    /// of this one in whole segments.
    pub fn under(&self, template: &Self) -> Option<usize> {
        let place = |url: &Self| {
            (
                url.scheme().to_owned(),
                url.host.clone(),
                url.port,
                url.user.to_lowercase(),
                url.form == Form::Bare,
            )
        };
        if place(self) != place(template) {
            return None;
        }
        // A registry without a scheme has its host in the path: a template without a path matches
        // nothing.
        let named = template.form != Form::Bare || !template.path.is_empty();
        let segments = |url: &Self| -> Vec<String> {
            let path = url.path.to_lowercase();
            let path = path.trim_start_matches('/');
            let path = path.strip_suffix(".git").unwrap_or(path);
            path.split('/')
                .filter(|s| !s.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let (own, wanted) = (segments(self), segments(template));
        (named && own.starts_with(&wanted)).then_some(wanted.len())
    }
}

fn default_port(form: Form) -> Option<u16> {
    match form {
        Form::Https | Form::Oci => Some(443),
        Form::Http => Some(80),
        Form::Ssh => Some(22),
        _ => None,
    }
}

fn check_characters(text: &str) -> Result<(), UrlFault> {
    if text.is_empty() {
        return Err(UrlFault::Empty);
    }
    if text.len() > MAX {
        return Err(UrlFault::Long);
    }
    if text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FFFD}'))
    {
        return Err(UrlFault::Control);
    }
    if text.contains('\\') {
        return Err(UrlFault::Backslash);
    }
    if text.contains(char::is_whitespace) {
        Err(UrlFault::Blank)
    } else {
        Ok(())
    }
}

fn host_and_port(text: &str, default: Option<u16>) -> Result<(String, Option<u16>), UrlFault> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, port))
            if !v6.is_empty()
                && v6
                    .chars()
                    .all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.') =>
        {
            let port = if port.is_empty() {
                None
            } else {
                Some(port.strip_prefix(':').ok_or(UrlFault::Host)?)
            };
            (format!("[{v6}]"), port)
        }
        Some(_) => return Err(UrlFault::Host),
        None => match text.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (text.to_owned(), None),
        },
    };
    let named = host.starts_with('[')
        || host
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host).to_owned();
    if !named || host.is_empty() || host.starts_with(['-', '.']) {
        return Err(UrlFault::Host);
    }
    let port = match port {
        None | Some("") => None,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| UrlFault::Port)?)
        }
        Some(_) => return Err(UrlFault::Port),
    };
    Ok((host, port.filter(|p| Some(*p) != default)))
}

/// Validates the segments of a path and joins them with single slashes.
fn clean(path: &str) -> Result<String, UrlFault> {
    for segment in path.split('/') {
        // Encodings that are not decoded here might be decoded later by others, even repeatedly.
        let mut text = segment.to_owned();
        for _ in 0..4 {
            if matches!(text.as_str(), "." | "..") {
                return Err(UrlFault::Dots);
            }
            let once = lenient(&text);
            if once.contains(['/', '\\']) && !text.contains(['/', '\\']) {
                return Err(UrlFault::EncodedSlash);
            }
            if once.contains(char::is_control) {
                return Err(UrlFault::Control);
            }
            if once == text {
                break;
            }
            text = once;
        }
    }
    let start = if path.starts_with('/') { "/" } else { "" };
    let joined = path
        .split('/')
        .filter(|s| !s.is_empty())
        .collect::<Vec<_>>()
        .join("/");
    Ok(if joined.is_empty() {
        String::new()
    } else {
        format!("{start}{joined}")
    })
}

/// Decodes percent-encodings once. Double encoding and encoded slashes are rejected, because a
/// later parser would see different segments.
fn decode(path: &str) -> Result<String, UrlFault> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            out.push(byte);
            rest = after;
            continue;
        }
        let hex = after
            .get(..2)
            .and_then(|h| std::str::from_utf8(h).ok())
            .filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()));
        let decoded = hex
            .and_then(|h| u8::from_str_radix(h, 16).ok())
            .ok_or(UrlFault::Encoding)?;
        match decoded {
            b'/' | b'\\' => return Err(UrlFault::EncodedSlash),
            0..=31 | 127 => return Err(UrlFault::Control),
            other => out.push(other),
        }
        rest = after.get(2..).unwrap_or_default();
    }
    let text = String::from_utf8(out).map_err(|_| UrlFault::Encoding)?;
    if lenient(&text) == text {
        Ok(text)
    } else {
        Err(UrlFault::Encoding)
    }
}

/// Like [`decode`], but leaves invalid encodings.
fn lenient(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after
            .get(..2)
            .and_then(|h| std::str::from_utf8(h).ok())
            .filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()));
        match hex
            .filter(|_| byte == b'%')
            .and_then(|h| u8::from_str_radix(h, 16).ok())
        {
            Some(decoded) => {
                out.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn encode(path: &str) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=:@".contains(&b);
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if keep(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// A pattern in a list of repositories, normalized like [`RepoUrl::canonical`] as far as possible.
pub fn canonical_pattern(pattern: &str) -> String {
    let text = pattern.trim().to_lowercase();
    let text = match text.split_once(':') {
        _ if text.contains("://") => text,
        Some((login, path)) if login.contains('@') && !login.contains('/') => {
            format!("ssh://{login}/{}", path.trim_start_matches('/'))
        }
        _ if text.starts_with('/') => format!("file://{text}"),
        _ => text,
    };
    let Some((scheme, rest)) = text.split_once("://") else {
        let text = text.trim_end_matches('/');
        return text.strip_suffix(".git").unwrap_or(text).to_owned();
    };
    let (authority, path) = rest.find('/').map_or((rest, ""), |i| rest.split_at(i));
    let authority = if scheme == "ssh" {
        authority
    } else {
        authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host)
    };
    let implied = match scheme {
        "https" | "oci" => ":443",
        "http" => ":80",
        "ssh" => ":22",
        _ => "",
    };
    let authority = Some(implied)
        .filter(|i| !i.is_empty())
        .and_then(|i| authority.strip_suffix(i))
        .unwrap_or(authority);
    let path = decode(path).unwrap_or_else(|_| path.to_owned());
    let path = path
        .split('/')
        .filter(|s| !s.is_empty())
        .collect::<Vec<_>>()
        .join("/");
    let path = path.strip_suffix(".git").unwrap_or(&path);
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{authority}{slash}{path}")
}

#[cfg(test)]
mod tests;
