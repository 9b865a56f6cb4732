//! Resolves a revision to a commit, given the refs of a repository. Pure.
//!
//! Main function: [`resolve_target`]; [`Target`] says what has to be looked up.

use crate::{RepoError, versions};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A ref as listed by `ls-remote`, with annotated tags peeled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// `HEAD`, `refs/heads/main`, …
    pub name: String,
    pub sha: String,
    /// The target of a symbolic ref.
    pub target: Option<String>,
    /// The object of an annotated tag itself.
    pub tag: Option<String>,
}

/// 40 hexadecimal digits.
pub fn is_full_sha(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Seven or more hexadecimal digits.
pub fn is_abbreviated_sha(revision: &str) -> bool {
    revision.len() >= 7 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

/// How a target revision is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// The name of a ref, or a SHA.
    Name(Cow<'a, str>),
    /// The highest of the tags with a prefix that satisfies a constraint.
    Highest {
        constraint: &'a str,
        tag_prefix: &'a str,
    },
}

impl<'a> Target<'a> {
    /// An exact version is a name, with the prefix of the tags before it. A name that is no version
    /// stands for itself: a prefix doesn't hide branches.
    pub fn new(revision: &'a str, tag_prefix: &'a str) -> Self {
        if versions::is_constraint(revision) {
            return Self::Highest {
                constraint: revision,
                tag_prefix,
            };
        }
        Self::Name(if versions::is_exact(revision) {
            format!("{tag_prefix}{revision}").into()
        } else {
            or_head(revision).into()
        })
    }
}

/// The name of a ref, where an empty one is HEAD.
pub(crate) fn or_head(revision: &str) -> &str {
    if revision.is_empty() {
        "HEAD"
    } else {
        revision
    }
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

fn named<'a>(refs: &'a [Reference], revision: &str) -> Option<&'a Reference> {
    let names = candidates(revision);
    names
        .iter()
        .find_map(|name| refs.iter().find(|r| r.name == *name))
}

/// Another ref of this name, with another commit.
fn another<'a>(refs: &'a [Reference], revision: &str, found: &Reference) -> Option<&'a Reference> {
    let names = candidates(revision);
    refs.iter()
        .find(|r| names.contains(&r.name) && r.name != found.name && r.sha != found.sha)
}

/// The annotated tag that a target revision resolves to, if it is one: its name and itself.
pub(crate) fn annotated_tag<'a>(
    refs: &'a [Reference],
    revision: &str,
    tag_prefix: &str,
) -> Option<(&'a str, &'a Reference)> {
    if is_full_sha(revision) {
        return None;
    }
    let found = match Target::new(revision, tag_prefix) {
        Target::Name(name) => named(refs, &name),
        Target::Highest {
            constraint,
            tag_prefix,
        } => {
            let tags: Vec<&str> = refs
                .iter()
                .filter_map(|r| r.name.strip_prefix("refs/tags/"))
                .collect();
            match versions::pick_tag(constraint, &tags, tag_prefix) {
                Ok(picked) => refs
                    .iter()
                    .find(|r| r.name.strip_prefix("refs/tags/") == Some(&*picked)),
                Err(_) => named(refs, constraint),
            }
        }
    };
    let found = found.filter(|r| r.tag.is_some())?;
    Some((found.name.strip_prefix("refs/tags/")?, found))
}

/// The SHA of a revision: HEAD (or empty), a tag, a branch, a full ref name, else the revision
/// itself if it looks like a SHA.
pub(crate) fn resolve(refs: &[Reference], revision: &str) -> Result<String, RepoError> {
    let revision = or_head(revision);
    if let Some(found) = named(refs, revision) {
        if let Some(other) = another(refs, revision, found) {
            tracing::warn!(
                "{revision:?} is the name of {} ({}) and of {} ({}): the first counts, as in git; a full name says which is meant",
                found.name,
                found.sha,
                other.name,
                other.sha
            );
        }
        return Ok(found.sha.clone());
    }
    if is_abbreviated_sha(revision) {
        return Ok(revision.to_owned());
    }
    Err(RepoError::RevisionNotFound {
        revision: shortened(revision),
    })
}

/// The SHA of the highest tag that satisfies a constraint. If there is none, a ref may still have
/// that name: a branch can be called `1.x`.
pub(crate) fn highest(
    refs: &[Reference],
    constraint: &str,
    tag_prefix: &str,
) -> Result<String, RepoError> {
    let (tags, shas): (Vec<&str>, Vec<&str>) = refs
        .iter()
        .filter_map(|r| Some((r.name.strip_prefix("refs/tags/")?, r.sha.as_str())))
        .unzip();
    match versions::pick_tag(constraint, &tags, tag_prefix) {
        Ok(picked) => {
            let found = tags.iter().position(|tag| *tag == picked);
            found.map(|i| shas[i].to_owned()).ok_or_else(|| {
                RepoError::Internal(format!("tag {picked:?} was picked but is not listed"))
            })
        }
        Err(why) => resolve(refs, constraint).map_err(|_| RepoError::NoTag {
            revision: shortened(constraint),
            reason: why.to_string(),
        }),
    }
}

/// The SHA of a target revision: that of a ref, of the highest tag in a range, or itself.
///
/// # Errors
/// [`RepoError::RevisionNotFound`], or [`RepoError::NoTag`] with the reason.
pub fn resolve_target(
    refs: &[Reference],
    revision: &str,
    tag_prefix: &str,
) -> Result<String, RepoError> {
    if is_full_sha(revision) {
        return Ok(revision.to_owned());
    }
    match Target::new(revision, tag_prefix) {
        Target::Name(name) => resolve(refs, &name),
        Target::Highest {
            constraint,
            tag_prefix,
        } => highest(refs, constraint, tag_prefix),
    }
}

/// As long as it may be in a message.
pub(crate) fn shortened(revision: &str) -> String {
    revision.chars().take(200).collect()
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
            tag: None,
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
        for (revision, other) in [
            ("v1", Some("refs/heads/v1")),
            ("main", None),
            ("HEAD", None),
            ("refs/tags/v1", None),
        ] {
            let found = named(&refs, revision).expect("it is there");
            let another = another(&refs, revision, found).map(|r| r.name.as_str());
            assert_eq!(another, other, "{revision}");
        }
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
        assert_eq!(
            error,
            "unable to resolve 'nope' to a commit SHA: revision not found"
        );
    }

    #[test]
    fn targets() {
        let reference = |name: &str, digit: &str| Reference {
            name: name.to_owned(),
            sha: digit.repeat(40),
            target: None,
            tag: None,
        };
        let refs = [
            reference("HEAD", "1"),
            reference("refs/heads/main", "1"),
            reference("refs/heads/1.0.0", "2"),
            reference("refs/heads/2.x", "3"),
            reference("refs/tags/1.0.0", "4"),
            reference("refs/tags/v1.2.0", "5"),
            reference("refs/tags/a/v1.3.0", "6"),
            reference("refs/tags/a/latest", "7"),
        ];
        for (revision, tag_prefix, want) in [
            ("", "", Ok("1")),
            ("", "a/", Ok("1")),
            ("1.0.0", "", Ok("4")),
            ("1.*", "", Ok("5")),
            ("~1.0", "", Ok("4")),
            // A branch with the constraint as its name.
            ("2.x", "", Ok("3")),
            ("^1", "a/", Ok("6")),
            ("v1.3.0", "a/", Ok("6")),
            ("main", "a/", Ok("1")),
            ("a/latest", "a/", Ok("7")),
            (
                "1.3.0",
                "a/",
                Err("unable to resolve 'a/1.3.0' to a commit SHA: revision not found"),
            ),
            (
                "^3",
                "a/",
                Err(
                    "unable to resolve '^3' to a commit SHA: version matching constraint not found in 2 tags",
                ),
            ),
            (
                "nope",
                "a/",
                Err("unable to resolve 'nope' to a commit SHA: revision not found"),
            ),
        ] {
            let got = resolve_target(&refs, revision, tag_prefix);
            let want = want.map(|d| d.repeat(40)).map_err(str::to_owned);
            assert_eq!(
                got.map_err(|e| e.to_string()),
                want,
                "{revision} {tag_prefix:?}"
            );
        }
    }
}
