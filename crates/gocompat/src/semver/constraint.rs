//! Parses constraints: `>= 1.2, < 2 || ~3.1`, hyphen ranges and wildcards.
//!
//! Main type: [`Constraints`].

use super::scan::{self, Found};
use super::{Version, check};
use crate::text::quote;
use std::fmt;

/// Longest text that is parsed as a constraint.
const MAX_CONSTRAINT: usize = 512;
/// Most groups between `||`.
const MAX_GROUPS: usize = 32;

/// Why a text is not a constraint, with the Go library's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    #[error("constraint string is too long (max {MAX_CONSTRAINT} bytes)")]
    TooLong,
    #[error("too many constraint groups (max {MAX_GROUPS})")]
    TooManyGroups,
    #[error("improper constraint: {}", quote(.0))]
    Improper(String),
    #[error("constraint parser error")]
    Version,
}

/// Groups, one of which must be satisfied; a group is satisfied if all its parts are.
#[derive(Clone, Debug)]
pub struct Constraints {
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    parts: Vec<Part>,
    /// A part names a prerelease, so prereleases are accepted.
    prereleases: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

#[derive(Clone, Debug)]
pub(super) struct Part {
    pub operator: Operator,
    /// The operator as written.
    sign: String,
    pub version: Version,
    /// The version as written.
    pub original: String,
    /// What is missing or a wildcard: everything, the minor number, the patch number.
    pub dirty: bool,
    pub minor_dirty: bool,
    pub patch_dirty: bool,
}

impl Constraints {
    /// `NewConstraint`.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        if text.len() > MAX_CONSTRAINT {
            return Err(ConstraintError::TooLong);
        }
        let text = rewrite_ranges(text);
        let groups: Vec<&str> = text.split("||").collect();
        if groups.len() > MAX_GROUPS {
            return Err(ConstraintError::TooManyGroups);
        }
        Ok(Self {
            groups: groups
                .into_iter()
                .map(Group::parse)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Whether the version satisfies one group.
    pub fn check(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| {
            group
                .parts
                .iter()
                .all(|part| check::part(version, part, group.prereleases).is_ok())
        })
    }

    /// `Validate`: as [`Constraints::check`], with every reason why not.
    pub fn validate(&self, version: &Version) -> Result<(), Vec<String>> {
        let mut reasons = Vec::new();
        let mut told = false;
        for group in &self.groups {
            let mut holds = true;
            for part in &group.parts {
                if !group.prereleases && !version.prerelease.is_empty() {
                    if !std::mem::replace(&mut told, true) {
                        reasons.push(check::only_releases(version));
                    }
                    holds = false;
                } else if let Err(reason) = check::part(version, part, group.prereleases) {
                    reasons.push(reason);
                    holds = false;
                }
            }
            if holds {
                return Ok(());
            }
        }
        Err(reasons)
    }
}

/// As `String` prints it: hyphen ranges rewritten, one space between parts.
impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, group) in self.groups.iter().enumerate() {
            f.write_str(if i > 0 { " || " } else { "" })?;
            for (j, part) in group.parts.iter().enumerate() {
                write!(
                    f,
                    "{}{}{}",
                    if j > 0 { " " } else { "" },
                    part.sign,
                    part.original
                )?;
            }
        }
        Ok(())
    }
}

impl Group {
    fn parse(text: &str) -> Result<Self, ConstraintError> {
        let parts = scan::parts(text).ok_or_else(|| ConstraintError::Improper(text.to_owned()))?;
        let parts: Vec<Part> = parts
            .into_iter()
            .map(|(sign, found)| Part::new(sign, &found))
            .collect::<Result<_, _>>()?;
        let prereleases = parts.iter().any(|part| !part.version.prerelease.is_empty());
        Ok(Self { parts, prereleases })
    }
}

impl Part {
    fn new(sign: &str, found: &Found<'_>) -> Result<Self, ConstraintError> {
        let Found {
            text,
            major,
            minor,
            patch,
            prerelease,
        } = *found;
        let (minor_dirty, patch_dirty) = (
            !is_open(major) && is_open(minor),
            !is_open(major) && !is_open(minor) && is_open(patch),
        );
        let dirty = is_open(major) || minor_dirty || patch_dirty;
        let version = match () {
            () if is_open(major) => format!("0.0.0{prerelease}"),
            () if minor_dirty => format!("{major}.0.0{prerelease}"),
            () if patch_dirty => format!("{major}{minor}.0{prerelease}"),
            () => text.to_owned(),
        };
        Ok(Self {
            operator: operator(sign),
            sign: sign.to_owned(),
            version: Version::parse(&version).map_err(|_| ConstraintError::Version)?,
            original: text.to_owned(),
            dirty,
            minor_dirty,
            patch_dirty,
        })
    }
}

fn operator(sign: &str) -> Operator {
    match sign {
        "!=" => Operator::NotEqual,
        ">" => Operator::Greater,
        "<" => Operator::Less,
        ">=" | "=>" => Operator::GreaterEqual,
        "<=" | "=<" => Operator::LessEqual,
        "~" | "~>" => Operator::Tilde,
        "^" => Operator::Caret,
        _ => Operator::Equal,
    }
}

fn is_open(number: &str) -> bool {
    matches!(
        number.strip_prefix('.').unwrap_or(number),
        "" | "x" | "X" | "*"
    )
}

/// `1 - 2` becomes `>= 1, <= 2 `.
fn rewrite_ranges(text: &str) -> String {
    let mut out = text.to_owned();
    for range in scan::ranges(text) {
        out = out.replacen(
            range.text,
            &format!(">= {}, <= {} ", range.from, range.to),
            1,
        );
    }
    out
}
