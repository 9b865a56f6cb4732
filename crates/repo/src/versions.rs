//! Picks a version from a list by a revision: an exact version, a constraint, or a literal name.
//! The same rules serve the tags of a Git repository, the versions in a chart index and the tags of
//! an OCI repository. Pure.
//!
//! Main functions: [`pick`], and [`pick_tag`] for tags with a prefix.

use std::cmp::Ordering;
use tiphys_gocompat::{
    semver::{Constraints, Version},
    text::quote,
};

/// Why no version was picked, in Argo CD's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    #[error("version matching constraint not found in {0} tags")]
    NoMatch(usize),
    /// It is neither a constraint nor the name of a tag.
    #[error("failed to determine semver constraint: {0}")]
    NoConstraint(String),
    #[error(
        "tagPrefix {} requires targetRevision to be a semver constraint, but {} is not a valid constraint",
        quote(.prefix),
        quote(.revision)
    )]
    NameWithPrefix { prefix: String, revision: String },
}

/// Whether it names one version and needs no list.
pub fn is_exact(revision: &str) -> bool {
    Version::parse(revision).is_ok()
}

/// Whether it needs a list, such as `1.x`. A name like `main` does not.
pub fn is_constraint(revision: &str) -> bool {
    !is_exact(revision) && Constraints::parse(revision).is_ok()
}

/// The version that a revision stands for. An exact one is returned as it is, whether or not it is
/// listed; of several that match equally well, the first.
pub fn pick<'a>(revision: &'a str, listed: &'a [impl AsRef<str>]) -> Result<&'a str, VersionError> {
    if is_exact(revision) {
        return Ok(revision);
    }
    let constraint = match Constraints::parse(revision) {
        Ok(constraint) => constraint,
        Err(e) => {
            let is_listed = listed.iter().any(|tag| tag.as_ref() == revision);
            return is_listed
                .then_some(revision)
                .ok_or_else(|| VersionError::NoConstraint(e.to_string()));
        }
    };
    let matching = listed
        .iter()
        .map(AsRef::as_ref)
        .filter_map(|tag| Version::parse(tag).ok().map(|version| (tag, version)))
        .filter(|(_, version)| constraint.check(version));
    let highest = matching.reduce(|best, next| match next.1.precedence(&best.1) {
        Ordering::Greater => next,
        _ => best,
    });
    highest
        .map(|(tag, _)| tag)
        .ok_or(VersionError::NoMatch(listed.len()))
}

/// The tag that a revision stands for among those that begin with `prefix`, which is not part of
/// their version. With a prefix, names are refused: it is there for versions only.
pub fn pick_tag(
    revision: &str,
    tags: &[impl AsRef<str>],
    prefix: &str,
) -> Result<String, VersionError> {
    if !prefix.is_empty() && !is_exact(revision) && !is_constraint(revision) {
        return Err(VersionError::NameWithPrefix {
            prefix: prefix.to_owned(),
            revision: revision.to_owned(),
        });
    }
    let versions: Vec<&str> = tags
        .iter()
        .filter_map(|tag| tag.as_ref().strip_prefix(prefix))
        .collect();
    pick(revision, &versions).map(|version| format!("{prefix}{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_picks_a_version() {
        let listed = [
            "0.5.0",
            "0.5.1",
            "1.2.2",
            "1.2.3",
            "1.3.0-rc.1",
            "2.0.0+build.7",
            "v3.0.0",
            "canary",
        ]
        .map(str::to_owned);
        for (revision, picked) in [
            ("0.5", Some("0.5")),
            ("0.5.*", Some("0.5.1")),
            ("1.2", Some("1.2")),
            ("^1", Some("1.2.3")),
            (">0.5 <1.3", Some("1.2.3")),
            ("*", Some("v3.0.0")),
            ("x", Some("v3.0.0")),
            (">=1.0.0-0", Some("v3.0.0")),
            ("1.3.*", None),
            ("1.3.x-0", Some("1.3.0-rc.1")),
            ("~1.3.0-0", Some("1.3.0-rc.1")),
            ("2.0.0", Some("2.0.0")),
            ("v1.2.3", Some("v1.2.3")),
            ("99.0.0", Some("99.0.0")),
            ("1.0.0-alpha.*", None),
            ("latest", None),
            ("canary", Some("canary")),
        ] {
            assert_eq!(pick(revision, &listed).ok(), picked, "{revision}");
        }
        let none = pick("1.3.*", &listed).expect_err("only a prerelease");
        assert_eq!(
            none.to_string(),
            "version matching constraint not found in 8 tags"
        );
        let word = pick("latest", &listed).expect_err("no such tag");
        assert_eq!(
            word.to_string(),
            "failed to determine semver constraint: improper constraint: \"latest\""
        );
    }

    #[test]
    fn of_equal_versions_the_first_listed_is_picked() {
        for listed in [["1.0", "v1.0.0"], ["v1.0.0", "1.0"], ["1.0.0+b", "1.0.0+a"]] {
            let listed = listed.map(str::to_owned);
            assert_eq!(pick("^1", &listed).expect("one matches"), listed[0]);
        }
    }

    #[test]
    fn a_prefix_is_not_part_of_the_version() {
        let tags = [
            "a/v1.0.0",
            "a/1.1.0",
            "a/2.0.0-rc.1",
            "a/latest",
            "b/3.0.0",
            "4.0.0",
            "a/",
        ];
        for (revision, prefix, picked) in [
            ("*", "a/", Ok("a/1.1.0")),
            ("~1.0", "a/", Ok("a/v1.0.0")),
            (">=1-0", "a/", Ok("a/2.0.0-rc.1")),
            (
                "^1",
                "b/",
                Err("version matching constraint not found in 1 tags"),
            ),
            (
                "^1",
                "c/",
                Err("version matching constraint not found in 0 tags"),
            ),
            ("v1.0.0", "a/v", Ok("a/vv1.0.0")),
            (
                "latest",
                "a/",
                Err(
                    "tagPrefix \"a/\" requires targetRevision to be a semver constraint, but \"latest\" is not a valid constraint",
                ),
            ),
            ("*", "", Ok("4.0.0")),
            ("a/latest", "", Ok("a/latest")),
        ] {
            let got = pick_tag(revision, &tags, prefix).map_err(|e| e.to_string());
            let picked = picked.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(got, picked, "{revision} with {prefix:?}");
        }
    }
}
