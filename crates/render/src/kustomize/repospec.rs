//! Parses the URLs of remote bases and files.
//!
//! Main types: [`RepoSpec`], a folder in a Git repository, and [`remote`], which tells whether a
//! path is such a folder, a remote file, or not remote.

use super::fault::{Res, fail};
use tiphys_gocompat::url::Url;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepoSpec {
    /// The URL as it was written.
    pub raw: String,
    /// The URL to clone.
    pub clone: String,
    pub folder: String,
    /// HEAD if empty.
    pub revision: String,
    /// Whether its submodules are cloned, too.
    pub submodules: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Remote {
    Git(RepoSpec),
    File(String),
}

/// Classifies a path that is not in the tree. kustomize first checks whether such a file exists;
/// here the name decides.
pub(super) fn remote(path: &str) -> Option<Remote> {
    let spec = RepoSpec::parse(path).ok();
    if !is_http(path) {
        return spec.map(Remote::Git);
    }
    let bare = path.split(['?', '#']).next().unwrap_or_default();
    let is_file = [".yaml", ".yml", ".json"]
        .iter()
        .any(|end| bare.ends_with(end));
    match spec {
        Some(spec) if !is_file => Some(Remote::Git(spec)),
        _ => Some(Remote::File(path.to_owned())),
    }
}

pub(super) fn is_http(path: &str) -> bool {
    Url::parse(path.as_bytes()).is_ok_and(|url| matches!(url.scheme.as_slice(), b"http" | b"https"))
}

impl RepoSpec {
    pub fn parse(raw: &str) -> Res<Self> {
        if raw.starts_with('/') {
            return fail!("uri looks like abs path: {raw}");
        }
        let (path, query) = raw.split_once('?').unwrap_or((raw, ""));
        let (host, rest) = host(path)?;
        let (repo, folder) = match explicit(rest) {
            Some(parts) => parts,
            None if host == "file://" => (rest.to_owned(), String::new()),
            None => match rest.match_indices('/').nth(1) {
                Some((at, _)) => (rest[..at].to_owned(), rest[at + 1..].to_owned()),
                None if rest.contains('/') => (rest.to_owned(), String::new()),
                None => return fail!("failed to parse repo path segment"),
            },
        };
        if repo.is_empty() {
            return fail!("failed to parse repo path segment");
        }
        let folder = folder.strip_prefix('/').unwrap_or(&folder).to_owned();
        if clean(&folder).split('/').next() == Some("..") {
            return fail!("url path exits repo: {rest}");
        }
        Ok(Self {
            raw: raw.to_owned(),
            clone: format!("{host}{repo}"),
            folder,
            revision: revision(query),
            submodules: submodules(query),
        })
    }
}

/// Splits at `_git/`, `//` or `.git`, which mark the end of the repository.
fn explicit(path: &str) -> Option<(String, String)> {
    if let Some(at) = path.find("_git/") {
        let (root, rest) = path.split_at(at + "_git/".len());
        let (name, folder) = rest.split_once('/').unwrap_or((rest, ""));
        return Some((format!("{root}{name}"), folder.to_owned()));
    }
    if let Some((repo, folder)) = path.split_once("//") {
        return Some((repo.to_owned(), folder.to_owned()));
    }
    let at = path.find(".git")? + ".git".len();
    Some((path[..at].to_owned(), path[at..].to_owned()))
}

/// Scheme, user and host, including the separator before the path.
fn host(path: &str) -> Res<(String, &str)> {
    let path = strip_prefix(path, "git::").unwrap_or(path);
    let schemes = ["ssh://", "https://", "http://", "file://"];
    let scheme = schemes
        .into_iter()
        .find_map(|scheme| Some((scheme, strip_prefix(path, scheme)?)));
    let (scheme, rest) = scheme.unwrap_or(("", path));
    let (user, rest) = user(rest);
    let lower = rest.to_lowercase();
    let github = lower.starts_with("github.com/") || lower.starts_with("github.com:");
    let scp = scheme.is_empty() && (!user.is_empty() || github);
    if scheme.is_empty() && !scp {
        return fail!("failed to parse scheme");
    }
    if scheme == "file://" {
        let at = path.len() - rest.len() - user.len();
        return Ok((scheme.to_owned(), &path[at..]));
    }
    let slash = rest.find('/');
    let colon = rest
        .find(':')
        .filter(|at| scp && (slash.is_none() || *at > 0));
    let at = match (slash, colon) {
        (Some(slash), Some(colon)) => Some(slash.min(colon)),
        (slash, colon) => slash.or(colon),
    };
    let (name, repo) = match at {
        Some(at) => rest.split_at(at + 1),
        None => (rest, ""),
    };
    if github {
        let ssh = scheme == "ssh://" || !user.is_empty();
        let host = if ssh {
            format!("{user}github.com:")
        } else {
            "https://github.com/".to_owned()
        };
        return Ok((host, repo));
    }
    if name.is_empty() {
        return fail!("failed to parse host segment");
    }
    Ok((format!("{scheme}{user}{name}"), repo))
}

fn strip_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| &text[prefix.len()..])
}

/// A user name with its `@`.
fn user(text: &str) -> (&str, &str) {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    match text.split_once('@') {
        Some((name, _)) if is_name(name) => text.split_at(name.len() + 1),
        _ => ("", text),
    }
}

fn revision(query: &str) -> String {
    let revision = value(query, "ref");
    if revision.is_empty() {
        value(query, "version")
    } else {
        revision
    }
}

/// On, unless Go parses the value as false.
fn submodules(query: &str) -> bool {
    let off = ["0", "f", "F", "false", "False", "FALSE"];
    !off.contains(&value(query, "submodules").as_str())
}

/// The first value of a name; empty if there is none.
fn value(query: &str, name: &str) -> String {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name);
    values
        .next()
        .map(|(_, value)| unescaped(value))
        .unwrap_or_default()
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let code = text.get(at + 1..at + 3);
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match (byte, code) {
            (b'%', Some(code)) => {
                out.push(code);
                at += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(*byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Go's `filepath.Clean`.
pub(super) fn clean(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    match (absolute, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submodules_are_cloned_unless_the_query_says_no() {
        for (query, expected) in [
            ("", true),
            ("ref=v1&submodules=false", false),
            ("submodules=0", false),
            ("submodules=true", true),
            ("submodules=no", true),
        ] {
            let spec = RepoSpec::parse(&format!("https://github.com/org/repo?{query}"));
            assert_eq!(spec.expect(query).submodules, expected, "{query}");
        }
    }

    #[test]
    fn urls_are_taken_apart_as_kustomize_does_it() {
        for (raw, clone, folder, revision) in [
            (
                "https://github.com/org/repo//a/b?ref=v1",
                "https://github.com/org/repo",
                "a/b",
                "v1",
            ),
            (
                "github.com/org/repo/a?version=x",
                "https://github.com/org/repo",
                "a",
                "x",
            ),
            (
                "git@github.com:org/repo.git/a",
                "git@github.com:org/repo.git",
                "a",
                "",
            ),
            (
                "ssh://git@github.com/org/repo",
                "git@github.com:org/repo",
                "",
                "",
            ),
            (
                "git::https://gitlab.example.com/a/b/c.git//d?ref=main&timeout=90s",
                "https://gitlab.example.com/a/b/c.git",
                "d",
                "main",
            ),
            (
                "https://dev.azure.com/org/project/_git/repo/path?ref=a%2Fb",
                "https://dev.azure.com/org/project/_git/repo",
                "path",
                "a/b",
            ),
            (
                "git@host.example:2222/org/repo//x",
                "git@host.example:2222/org/repo",
                "x",
                "",
            ),
        ] {
            let spec = RepoSpec::parse(raw).expect("right");
            assert_eq!(
                (&*spec.clone, &*spec.folder, &*spec.revision),
                (clone, folder, revision),
                "{raw}"
            );
        }
        for raw in [
            "../base",
            "base",
            "/abs",
            "https://github.com/org",
            "https://h/o/r//../x",
        ] {
            assert!(RepoSpec::parse(raw).is_err(), "{raw}");
        }
        let file = "https://raw.githubusercontent.com/org/repo/main/x.yaml";
        assert_eq!(remote(file), Some(Remote::File(file.to_owned())));
        assert_eq!(remote("../base"), None);
    }
}
