//! Picks a version from a list by a revision: an exact version, a constraint, or a literal name.
//! The same rules serve the tags of a Git repository, the versions in a chart index and the tags of
//! an OCI repository. Pure.

use std::cmp::Ordering;
use tiphys_gocompat::semver::{Constraints, Version};

/// Why no version was picked, in Argo CD's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VersionError {
    #[error("version matching constraint not found in {0} tags")]
    NoMatch(usize),
    /// It is neither a constraint nor the name of a tag.
    #[error("failed to determine semver constraint: {0}")]
    NoConstraint(String),
}

/// Whether it names one version and needs no list.
pub(crate) fn is_exact(revision: &str) -> bool {
    Version::parse(revision).is_ok()
}

pub(crate) fn is_constraint(revision: &str) -> bool {
    Constraints::parse(revision).is_ok()
}

/// The version that a revision stands for. An exact one is returned as it is, whether or not it is
/// listed; of several that match equally well, the first.
pub(crate) fn pick<'a>(revision: &'a str, listed: &'a [String]) -> Result<&'a str, VersionError> {
    if is_exact(revision) {
        return Ok(revision);
    }
    let constraint = match Constraints::parse(revision) {
        Ok(constraint) => constraint,
        Err(e) => {
            let literal = listed.iter().find(|tag| *tag == revision);
            return literal
                .map(String::as_str)
                .ok_or_else(|| VersionError::NoConstraint(e.to_string()));
        }
    };
    let matching = listed
        .iter()
        .filter_map(|tag| Version::parse(tag).ok().map(|version| (tag, version)))
        .filter(|(_, version)| constraint.check(version));
    let highest = matching.reduce(|best, next| match next.1.precedence(&best.1) {
        Ordering::Greater => next,
        _ => best,
    });
    highest
        .map(|(tag, _)| tag.as_str())
        .ok_or(VersionError::NoMatch(listed.len()))
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
}
