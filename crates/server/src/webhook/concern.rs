//! Finds the Applications affected by a push: [`Watched`].

use super::payload::{Push, revision};
use regex::Regex;
use std::borrow::Cow;
use tiphys_api::{Application, constants::MANIFEST_GENERATE_PATHS, source::ApplicationSource};
use tiphys_engine::{generate_paths, spec};
use tiphys_gocompat::semver::{Constraints, Version};

/// Longer URLs match no repository.
const MAX_URL: usize = 4096;

/// A push, prepared for matching against Applications.
pub struct Watched<'a> {
    push: &'a Push,
    /// Patterns for the URLs of the repository.
    urls: Vec<Regex>,
}

impl<'a> Watched<'a> {
    pub fn new(push: &'a Push) -> Self {
        Self {
            push,
            urls: push
                .urls
                .iter()
                .filter_map(|url| same_repository(url))
                .collect(),
        }
    }

    /// Whether one of the Application's sources follows what was pushed.
    pub fn concerns(&self, app: &Application) -> bool {
        let annotation = app
            .metadata
            .annotations
            .get(MANIFEST_GENERATE_PATHS)
            .map_or("", String::as_str);
        let touched = |s: &ApplicationSource| {
            generate_paths::touched(
                &generate_paths::whole(annotation, &s.path),
                &self.push.files,
            )
        };
        let at = |s: &ApplicationSource| {
            self.urls.iter().any(|url| url.is_match(&s.repo_url))
                && self.moved(&s.target_revision, &s.tag_prefix)
        };
        let dry = app.spec.source_hydrator.as_deref().map(spec::dry_source);
        spec::sources(&app.spec)
            .into_iter()
            .chain(dry.map(Cow::Owned))
            .any(|source| at(&source) && touched(&source))
    }

    /// Whether the revision that a source follows may have a new commit.
    fn moved(&self, target: &str, tag_prefix: &str) -> bool {
        let short = revision(target);
        if short.is_empty() || short == "HEAD" {
            return self.push.head;
        }
        let name = if target.starts_with("refs/heads/") || target.starts_with("refs/tags/") {
            &short
        } else {
            target
        };
        self.push.revisions.iter().any(|r| r == name) || self.tagged(name, tag_prefix)
    }

    /// Whether a tag was pushed that an exact version or a constraint may stand for.
    fn tagged(&self, target: &str, tag_prefix: &str) -> bool {
        let mut versions = self
            .push
            .revisions
            .iter()
            .filter_map(|tag| tag.strip_prefix(tag_prefix))
            .filter_map(|rest| Some((rest, Version::parse(rest).ok()?)))
            .peekable();
        versions.peek().is_some()
            && Constraints::parse(target)
                .is_ok_and(|c| versions.any(|(rest, v)| rest == target || c.check(&v)))
    }
}

/// A pattern for all URLs of the repository with this web page or URL: with any protocol, user and
/// port, with or without `.git`.
pub fn same_repository(url: &str) -> Option<Regex> {
    let (host, path) = host_and_path(url).filter(|_| url.len() <= MAX_URL)?;
    // Clone URLs have this suffix.
    let path = path.strip_suffix(".git").unwrap_or(&path);
    let (host, path) = (regex::escape(&host), regex::escape(path));
    const USER: &str = r"(?-u:[\w.][\w.-]{0,30}[\w.$-]?)";
    Regex::new(&format!(
        r"(?i)^((https?|ssh)://)?({USER}@)?((alt)?ssh\.)?{host}(:[0-9]+)?[:/]{path}(\.git)?$"
    ))
    .ok()
}

/// The host and path of a URL; the path is escaped and has no leading slash.
fn host_and_path(url: &str) -> Option<(String, String)> {
    let (_, rest) = url.split_once("://")?;
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?.0,
        None => host.split_once(':').map_or(host, |(host, _)| host),
    };
    (!host.is_empty() && !path.is_empty()).then(|| (host.to_owned(), escaped(path)))
}

/// Escapes the characters that are not allowed in a path, as Go does.
fn escaped(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@[]%/".contains(&b);
    if path.bytes().all(plain) {
        return path.to_owned();
    }
    let decoded = tiphys_rpc::table::percent_decode(path);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b);
    decoded
        .bytes()
        .map(|b| {
            if plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A web page, a repository URL, and whether they belong to the same repository.
    const PAGES: &[(&str, &str, bool)] = &[
        (
            "https://example.com/org/repo",
            "https://example.com/org/repo",
            true,
        ),
        (
            "https://example.com/org/repo",
            "https://example.com/org/repo.git",
            true,
        ),
        (
            "https://example.com/org/repo",
            "git@example.com:org/repo.git",
            true,
        ),
        (
            "https://example.com/org/repo",
            "git@example.com:org/repo",
            true,
        ),
        (
            "https://example.com/org/repo",
            "ssh://git@example.com/org/repo.git",
            true,
        ),
        (
            "https://example.com/org/repo",
            "ssh://git@ssh.example.com:443/org/repo.git",
            true,
        ),
        (
            "https://example.com/org/repo",
            "https://user@EXAMPLE.com/Org/Repo",
            true,
        ),
        (
            "https://example.com:8443/org/repo",
            "https://example.com/org/repo",
            true,
        ),
        (
            "https://example.com/org/repo",
            "https://example.com:8443/org/repo",
            true,
        ),
        (
            "ssh://git@example.com:7999/p/r.git",
            "ssh://git@example.com:7999/p/r.git",
            true,
        ),
        (
            "ssh://git@example.com:7999/p/r.git",
            "https://example.com/p/r",
            true,
        ),
        (
            "https://org@dev.azure.com/org/my%20project/_git/r",
            "https://dev.azure.com/org/my%20project/_git/r",
            true,
        ),
        (
            "https://dev.azure.com/org/my project/_git/r",
            "https://dev.azure.com/org/my%20project/_git/r",
            true,
        ),
        (
            "https://example.com/org/repo",
            "https://example.com/org/repo2",
            false,
        ),
        (
            "https://example.com/org/repo",
            "https://example.com/other/org/repo",
            false,
        ),
        (
            "https://example.com/org/repo",
            "https://exampleXcom/org/repo",
            false,
        ),
        (
            "https://example.com/org/repo",
            "https://evil.com/example.com/org/repo",
            false,
        ),
        (
            "https://example.com/.*",
            "https://example.com/org/repo",
            false,
        ),
    ];

    #[test]
    fn urls_of_the_same_repository() {
        for (page, repository, same) in PAGES {
            let url = same_repository(page).expect(page);
            assert_eq!(url.is_match(repository), *same, "{page} {repository}");
        }
        for nobody in [
            "",
            "https://",
            "https:///org/repo",
            "https://example.com",
            "git@example.com:org/repo",
            "https://[::1/x",
        ] {
            assert!(same_repository(nobody).is_none(), "{nobody}");
        }
        assert!(same_repository(&format!("https://example.com/{}", "a".repeat(5000))).is_none());
    }

    #[test]
    fn revisions_that_move() {
        let moved = |pushed: &str, head: bool, target: &str| {
            let push = Push {
                revisions: pushed.split(',').map(revision).collect(),
                head,
                ..Push::default()
            };
            Watched::new(&push).moved(target, "")
        };
        for (pushed, head, target, want) in [
            ("refs/heads/main", true, "", true),
            ("refs/heads/main", true, "HEAD", true),
            ("refs/heads/dev", false, "HEAD", false),
            ("refs/heads/main", true, "main", true),
            ("refs/heads/main", true, "refs/heads/main", true),
            ("refs/heads/main", true, "refs/tags/main", true),
            ("refs/heads/main", true, "dev", false),
            ("refs/heads/feature/x", false, "feature/x", true),
            ("refs/heads/feature/x", false, "x", false),
            ("refs/heads/a,refs/heads/b", false, "b", true),
            ("refs/tags/v1.2.3", false, "1.x", true),
            ("refs/tags/v1.2.3", false, "refs/tags/1.*", true),
            ("refs/tags/v1.2.3", false, ">= 2", false),
            ("refs/tags/nightly", false, "1.x", false),
        ] {
            assert_eq!(moved(pushed, head, target), want, "{pushed} {target}");
        }
    }

    #[test]
    fn tags_with_a_prefix() {
        let moved = |pushed: &str, target: &str| {
            let push = Push {
                revisions: vec![revision(pushed)],
                ..Push::default()
            };
            Watched::new(&push).moved(target, "app/")
        };
        for (pushed, target, want) in [
            ("refs/tags/app/v1.2.3", "1.x", true),
            ("refs/tags/app/v1.2.3", "^2", false),
            ("refs/tags/app/v1.2.3", "v1.2.3", true),
            ("refs/tags/app/2.0.0-rc.1", "2.0.0-rc.1", true),
            ("refs/tags/v1.2.3", "1.x", false),
            ("refs/tags/other/v1.2.3", "1.x", false),
            ("refs/tags/app/latest", "1.x", false),
            // The prefix hides no branch.
            ("refs/heads/main", "main", true),
        ] {
            assert_eq!(moved(pushed, target), want, "{pushed} {target}");
        }
    }

    #[test]
    fn a_tag_in_its_range_concerns_an_application() {
        let source = |revision: &str, prefix: &str| {
            let source = json!({"repoURL": "https://example.com/org/repo.git", "path": "app", "targetRevision": revision, "tagPrefix": prefix});
            let app = json!({"metadata": {"name": "a"}, "spec": {"source": source}});
            serde_json::from_value::<Application>(app).expect("an Application")
        };
        let push = Push {
            urls: vec!["https://example.com/org/repo".to_owned()],
            revisions: vec![revision("refs/tags/app/1.4.0")],
            ..Push::default()
        };
        let watched = Watched::new(&push);
        assert!(watched.concerns(&source("^1.2", "app/")));
        assert!(!watched.concerns(&source("^2", "app/")));
        assert!(!watched.concerns(&source("^1.2", "")));
    }
}
