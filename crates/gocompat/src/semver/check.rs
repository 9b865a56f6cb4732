//! Whether a version satisfies one part of a constraint, and why not.
//!
//! Main function: [`part`].

use super::constraint::{Operator, Part};
use super::{Version, compare_prereleases};
use std::cmp::Ordering;

/// Why a version does not satisfy a constraint.
type Answer = Result<(), String>;

pub(super) fn only_releases(version: &Version) -> String {
    format!(
        "\"{version}\" is a prerelease version and the constraint is only looking for release versions"
    )
}

/// Prereleases satisfy nothing unless the group names one.
pub(super) fn part(version: &Version, part: &Part, prereleases: bool) -> Answer {
    if !version.prerelease.is_empty() && !prereleases {
        return Err(only_releases(version));
    }
    match part.operator {
        Operator::Equal if part.dirty => tilde(version, part),
        Operator::Equal => say(
            version.precedence(&part.version).is_eq(),
            version,
            "is not equal to",
            part,
        ),
        Operator::NotEqual => say(differs(version, part), version, "is equal to", part),
        Operator::Greater => say(
            greater(version, part),
            version,
            "is less than or equal to",
            part,
        ),
        Operator::Less => say(
            version.precedence(&part.version).is_lt(),
            version,
            "is greater than or equal to",
            part,
        ),
        Operator::GreaterEqual => say(
            version.precedence(&part.version).is_ge(),
            version,
            "is less than",
            part,
        ),
        Operator::LessEqual => say(
            less_or_equal(version, part),
            version,
            "is greater than",
            part,
        ),
        Operator::Tilde => tilde(version, part),
        Operator::Caret => caret(version, part),
    }
}

fn say(holds: bool, version: &Version, what: &str, part: &Part) -> Answer {
    if holds {
        Ok(())
    } else {
        Err(format!("\"{version}\" {what} \"{}\"", part.original))
    }
}

fn differs(version: &Version, part: &Part) -> bool {
    let wanted = &part.version;
    if part.dirty {
        if wanted.major != version.major {
            return true;
        }
        if part.minor_dirty {
            return false;
        }
        if wanted.minor != version.minor {
            return true;
        }
        if part.patch_dirty {
            return compare_prereleases(&version.prerelease, &wanted.prerelease).is_ne();
        }
        if wanted.patch != version.patch {
            return true;
        }
    }
    version.precedence(wanted).is_ne()
}

/// `>11` requires 12, `>11.1` requires 11.2.
fn greater(version: &Version, part: &Part) -> bool {
    let wanted = &part.version;
    match version.major.cmp(&wanted.major) {
        unequal @ (Ordering::Less | Ordering::Greater) if part.dirty => unequal.is_gt(),
        _ if part.minor_dirty => false,
        _ if part.patch_dirty => version.minor > wanted.minor,
        _ => version.precedence(wanted).is_gt(),
    }
}

/// `<=11` accepts 11.9, `<=11.1` accepts 11.1.9; with a wildcard for everything, only the major
/// number counts.
fn less_or_equal(version: &Version, part: &Part) -> bool {
    let wanted = &part.version;
    if !part.dirty {
        return version.precedence(wanted).is_le();
    }
    version.major < wanted.major
        || (version.major == wanted.major && (part.minor_dirty || version.minor <= wanted.minor))
}

fn tilde(version: &Version, part: &Part) -> Answer {
    let wanted = &part.version;
    say(
        version.precedence(wanted).is_ge(),
        version,
        "is less than",
        part,
    )?;
    if (wanted.major, wanted.minor, wanted.patch) == (0, 0, 0)
        && !part.minor_dirty
        && !part.patch_dirty
    {
        return Ok(());
    }
    say(
        version.major == wanted.major,
        version,
        "does not have same major version as",
        part,
    )?;
    say(
        part.minor_dirty || version.minor == wanted.minor,
        version,
        "does not have same major and minor version as",
        part,
    )
}

/// The leftmost nonzero number must stay the same.
fn caret(version: &Version, part: &Part) -> Answer {
    let wanted = &part.version;
    say(
        version.precedence(wanted).is_ge(),
        version,
        "is less than",
        part,
    )?;
    if wanted.major > 0 || part.minor_dirty {
        return say(
            version.major == wanted.major,
            version,
            "does not have same major version as",
            part,
        );
    }
    say(
        version.major == 0,
        version,
        "does not have same major version as",
        part,
    )?;
    if wanted.minor > 0 || part.patch_dirty {
        let hint = ". Expected minor versions to match when constraint major version is 0";
        return say(
            version.minor == wanted.minor,
            version,
            "does not have same minor version as",
            part,
        )
        .map_err(|e| e + hint);
    }
    say(
        version.minor == 0,
        version,
        "does not have same minor version as",
        part,
    )?;
    let hint = ". Expect version and constraint to equal when major and minor versions are 0";
    say(
        version.patch == wanted.patch,
        version,
        "does not equal",
        part,
    )
    .map_err(|e| e + hint)
}
