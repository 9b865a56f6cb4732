//! Which commit a revision means, given the refs of a repository. Pure.

use crate::RepoError;

/// A ref as `ls-remote` shows it, annotated tags already peeled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// `HEAD`, `refs/heads/main`, …
    pub name: String,
    pub sha: String,
    /// What a symbolic ref points to.
    pub target: Option<String>,
}

/// 40 hexadecimal digits.
pub(crate) fn is_full_sha(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Seven or more hexadecimal digits.
pub(crate) fn is_abbreviated_sha(revision: &str) -> bool {
    revision.len() >= 7 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The name people write: `main` for refs/heads/main, `v1` for refs/tags/v1, `pull/1/head` for refs/pull/1/head.
fn short(name: &str) -> &str {
    let cut = |prefix: &str| name.strip_prefix(prefix);
    let remote = || cut("refs/remotes/").map(|r| r.strip_suffix("/HEAD").unwrap_or(r));
    remote().or_else(|| cut("refs/heads/")).or_else(|| cut("refs/tags/")).or_else(|| cut("refs/")).unwrap_or(name)
}

/// The SHA of a revision: HEAD (or empty), a branch, a tag, a full ref name, else something that looks like a SHA as it is.
/// A tag wins over a branch of the same name, as in git.
pub(crate) fn resolve(refs: &[Reference], revision: &str) -> Result<String, RepoError> {
    let revision = if revision.is_empty() { "HEAD" } else { revision };
    let named = |prefix: &str| {
        let mut matching = refs.iter().filter(|r| r.name.starts_with(prefix));
        matching.find(|r| if revision.starts_with("refs/") { r.name == revision } else { short(&r.name) == revision })
    };
    if let Some(found) = named("refs/tags/").or_else(|| named("refs/heads/")).or_else(|| named("")) {
        return Ok(found.sha.clone());
    }
    if is_abbreviated_sha(revision) {
        return Ok(revision.to_owned());
    }
    Err(RepoError::RevisionNotFound { revision: revision.chars().take(200).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions() {
        let reference = |name: &str, digit: &str| Reference { name: name.to_owned(), sha: digit.repeat(40), target: None };
        let refs = [
            reference("HEAD", "1"),
            reference("refs/heads/main", "1"),
            reference("refs/heads/v1", "2"),
            reference("refs/heads/feature/x", "3"),
            reference("refs/heads/abcdef1", "4"),
            reference("refs/tags/v1", "5"),
            reference("refs/pull/7/head", "6"),
        ];
        let cases = [
            ("", Some("1")),
            ("HEAD", Some("1")),
            ("main", Some("1")),
            ("v1", Some("5")),
            ("refs/heads/v1", Some("2")),
            ("refs/tags/v1", Some("5")),
            ("feature/x", Some("3")),
            ("abcdef1", Some("4")),
            ("pull/7/head", Some("6")),
            ("refs/pull/7/head", Some("6")),
            ("heads/main", None),
            ("x", None),
            ("refs/heads/nope", None),
            ("abcdef", None),
        ];
        for (revision, want) in cases {
            let got = resolve(&refs, revision).ok();
            assert_eq!(got, want.map(|d| d.repeat(40)), "{revision}");
        }
        assert_eq!(resolve(&refs, "deadbee").ok().as_deref(), Some("deadbee"));
        let error = resolve(&refs, "nope").expect_err("missing").to_string();
        assert_eq!(error, "unable to resolve 'nope' to a commit SHA");
    }
}
