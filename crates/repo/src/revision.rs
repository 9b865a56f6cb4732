//! Resolves a revision to a commit, given the refs of a repository. Pure.

use crate::RepoError;

/// A ref as listed by `ls-remote`, with annotated tags peeled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// `HEAD`, `refs/heads/main`, …
    pub name: String,
    pub sha: String,
    /// The target of a symbolic ref.
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

/// The full ref names that a revision may stand for, in git's own order (gitrevisions(7)). `HEAD`
/// is the repository's HEAD, and a full ref name only itself: a branch with the same name does not
/// override it.
pub(crate) fn candidates(revision: &str) -> Vec<String> {
    if revision == "HEAD" || revision.starts_with("refs/") {
        return vec![revision.to_owned()];
    }
    let in_order = ["refs/", "refs/tags/", "refs/heads/", "refs/remotes/"]
        .map(|prefix| format!("{prefix}{revision}"));
    in_order
        .into_iter()
        .chain([format!("refs/remotes/{revision}/HEAD")])
        .collect()
}

/// The SHA of a revision: HEAD (or empty), a tag, a branch, a full ref name, else the revision
/// itself if it looks like a SHA.
pub(crate) fn resolve(refs: &[Reference], revision: &str) -> Result<String, RepoError> {
    let revision = if revision.is_empty() {
        "HEAD"
    } else {
        revision
    };
    let found = candidates(revision)
        .iter()
        .find_map(|name| refs.iter().find(|r| r.name == *name));
    if let Some(found) = found {
        return Ok(found.sha.clone());
    }
    if is_abbreviated_sha(revision) {
        return Ok(revision.to_owned());
    }
    Err(RepoError::RevisionNotFound {
        revision: revision.chars().take(200).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions() {
        let reference = |name: &str, digit: &str| Reference {
            name: name.to_owned(),
            sha: digit.repeat(40),
            target: None,
        };
        let refs = [
            reference("HEAD", "1"),
            reference("refs/heads/main", "1"),
            reference("refs/heads/v1", "2"),
            reference("refs/heads/feature/x", "3"),
            reference("refs/heads/abcdef1", "4"),
            reference("refs/tags/v1", "5"),
            reference("refs/pull/7/head", "6"),
            // Names that look like others.
            reference("refs/heads/HEAD", "7"),
            reference("refs/tags/HEAD", "7"),
            reference("refs/heads/refs/heads/main", "7"),
            reference("refs/heads/tags/v1", "7"),
            reference("refs/tags/heads/main", "7"),
            reference("refs/heads/team/x", "8"),
            reference("refs/heads/refs/heads/only", "9"),
            reference("refs/remotes/origin/HEAD", "a"),
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
            ("heads/main", Some("1")),
            ("tags/v1", Some("5")),
            ("refs/heads/main", Some("1")),
            ("refs/heads/HEAD", Some("7")),
            ("refs/heads/team/x", Some("8")),
            ("team/x", Some("8")),
            ("refs/heads/only", None),
            ("origin", Some("a")),
            ("x", None),
            ("refs/heads/nope", None),
            ("abcdef", None),
        ];
        for (revision, want) in cases {
            let got = resolve(&refs, revision).ok();
            assert_eq!(got, want.map(|d| d.repeat(40)), "{revision}");
        }
        assert_eq!(resolve(&refs, "deadbee").ok().as_deref(), Some("deadbee"));
        let without_head: Vec<_> = refs.iter().filter(|r| r.name != "HEAD").cloned().collect();
        assert!(
            resolve(&without_head, "HEAD").is_err() && resolve(&without_head, "").is_err(),
            "a branch is not the remote's HEAD"
        );
        let error = resolve(&refs, "nope").expect_err("missing").to_string();
        assert_eq!(error, "unable to resolve 'nope' to a commit SHA");
    }
}
