//! URLs of Git repositories in their different forms, and texts in URLs.
//!
//! Main functions: [`to_https`], [`full_name`] and [`query_escape`].

use tiphys_gocompat::url::Url;

/// Schemes that make a text a URL; others may be hosts of `git@host:path`.
const SCHEMES: [&str; 10] = [
    "ssh",
    "git",
    "git+ssh",
    "http",
    "https",
    "ftp",
    "ftps",
    "rsync",
    "file",
    "git+https",
];

fn parse(raw: &str) -> Result<Url, String> {
    if let Ok(url) = Url::parse(raw.as_bytes())
        && SCHEMES.iter().any(|scheme| url.scheme == scheme.as_bytes())
    {
        return Ok(url);
    }
    let host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let (user, rest) = match raw.split_once('@') {
        Some((user, rest)) if user.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
            (Some(user), rest)
        }
        _ => (None, raw),
    };
    match rest.split_once(':') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() && name.chars().all(host) => {
            Ok(Url {
                scheme: b"ssh".to_vec(),
                user: user.map(|user| (user.as_bytes().to_vec(), None)),
                host: name.as_bytes().to_vec(),
                path: path.as_bytes().to_vec(),
                ..Url::default()
            })
        }
        _ => Ok(Url {
            scheme: b"file".to_vec(),
            path: raw.as_bytes().to_vec(),
            ..Url::default()
        }),
    }
}

/// The URL with the scheme https and without a user.
pub(crate) fn to_https(raw: &str) -> Result<String, String> {
    let mut url = parse(raw)?;
    url.scheme = b"https".to_vec();
    url.user = None;
    Ok(String::from_utf8_lossy(&url.write()).into_owned())
}

/// Owner and name of the repository; the path if it has only one part.
pub(crate) fn full_name(raw: &str) -> Result<String, String> {
    let url = parse(raw)?;
    let path = String::from_utf8_lossy(&url.path).into_owned();
    let path = path.strip_suffix(".git").unwrap_or(&path);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [owner, name, ..] => Ok(format!("{owner}/{name}")),
        _ => Ok(path.to_owned()),
    }
}

/// `url.QueryEscape`
pub(crate) fn query_escape(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_repositories() {
        for (raw, https, name) in [
            (
                "https://github.com/argoproj/argo-cd.git",
                "https://github.com/argoproj/argo-cd.git",
                "argoproj/argo-cd",
            ),
            (
                "git@github.com:argoproj/argo-cd.git",
                "https://github.com/argoproj/argo-cd.git",
                "argoproj/argo-cd",
            ),
            (
                "ssh://git@host:22/a/b/c.git",
                "https://host:22/a/b/c.git",
                "a/b",
            ),
            ("https://u:p@host/one", "https://host/one", "/one"),
        ] {
            assert_eq!(to_https(raw).as_deref(), Ok(https), "{raw}");
            assert_eq!(full_name(raw).as_deref(), Ok(name), "{raw}");
        }
    }
}
