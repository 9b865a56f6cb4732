//! Reading constraints: `>= 1.2, < 2 || ~3.1`, hyphen ranges and wildcards.
//!
//! Main type: [`Constraints`].

use super::{Version, check};
use crate::text::quote;
use regex::Regex;
use std::fmt;
use std::sync::LazyLock;

/// Longest text that is read as a constraint.
const MAX_CONSTRAINT: usize = 512;
/// Most groups between `||`.
const MAX_GROUPS: usize = 32;

/// Why a text is not a constraint, worded as the Go library does.
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

/// Groups of which one must hold; a group holds when all its parts do.
#[derive(Clone, Debug)]
pub struct Constraints {
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    parts: Vec<Part>,
    /// A part names a prerelease, so prereleases are looked at.
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
    /// Something is missing or a wildcard: anything, the minor number, the patch number.
    pub dirty: bool,
    pub minor_dirty: bool,
    pub patch_dirty: bool,
}

const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
const VERSION: &str = concat!(
    r"v?([0-9|xX*]+)(\.[0-9|xX*]+)?(\.[0-9|xX*]+)?",
    r"(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?",
    r"(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?"
);

/// A pattern with `OPS`, `VER` and `WS` filled in; Go's `\s` is these five characters.
fn pattern(text: &str) -> Regex {
    let text = text.replace("OPS", OPERATORS).replace("VER", VERSION).replace("WS", r"[\t\n\f\r ]");
    Regex::new(&text).expect("a constant pattern")
}

static ONE: LazyLock<Regex> = LazyLock::new(|| pattern("^WS*(OPS)WS*(VER)WS*$"));
static RANGE: LazyLock<Regex> = LazyLock::new(|| pattern("WS*(VER)WS+-WS+(VER)WS*"));
static FIND: LazyLock<Regex> = LazyLock::new(|| pattern("(OPS)WS*(VER)"));
static VALID: LazyLock<Regex> = LazyLock::new(|| pattern("^(WS*(OPS)WS*(VER)WS*)((?:WS+|,WS*)(OPS)WS*(VER)WS*)*$"));

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
        Ok(Self { groups: groups.into_iter().map(Group::parse).collect::<Result<_, _>>()? })
    }

    /// Whether the version satisfies one group.
    pub fn check(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| group.parts.iter().all(|part| check::part(version, part, group.prereleases).is_ok()))
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

/// As `String`: hyphen ranges rewritten, one space between parts.
impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, group) in self.groups.iter().enumerate() {
            f.write_str(if i > 0 { " || " } else { "" })?;
            for (j, part) in group.parts.iter().enumerate() {
                write!(f, "{}{}{}", if j > 0 { " " } else { "" }, part.sign, part.original)?;
            }
        }
        Ok(())
    }
}

impl Group {
    fn parse(text: &str) -> Result<Self, ConstraintError> {
        if !VALID.is_match(text) {
            return Err(ConstraintError::Improper(text.to_owned()));
        }
        let parts: Vec<Part> = FIND.find_iter(text).map(|found| Part::parse(found.as_str())).collect::<Result<_, _>>()?;
        let prereleases = parts.iter().any(|part| !part.version.prerelease.is_empty());
        Ok(Self { parts, prereleases })
    }
}

impl Part {
    fn parse(text: &str) -> Result<Self, ConstraintError> {
        let found = ONE.captures(text).ok_or_else(|| ConstraintError::Improper(text.to_owned()))?;
        let group = |i: usize| found.get(i).map_or("", |m| m.as_str());
        let (sign, original, major, minor, patch, prerelease) = (group(1), group(2), group(3), group(4), group(5), group(6));
        let mut part = Self {
            operator: operator(sign),
            sign: sign.to_owned(),
            version: Version::parse("0.0.0").expect("a constant version"),
            original: original.to_owned(),
            dirty: true,
            minor_dirty: false,
            patch_dirty: false,
        };
        let version = if is_open(major) {
            format!("0.0.0{prerelease}")
        } else if is_open(minor) {
            part.minor_dirty = true;
            format!("{major}.0.0{prerelease}")
        } else if is_open(patch) {
            part.patch_dirty = true;
            format!("{major}{minor}.0{prerelease}")
        } else {
            part.dirty = false;
            original.to_owned()
        };
        part.version = Version::parse(&version).map_err(|_| ConstraintError::Version)?;
        Ok(part)
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
    matches!(number.strip_prefix('.').unwrap_or(number), "" | "x" | "X" | "*")
}

/// `1 - 2` becomes `>= 1, <= 2 `.
fn rewrite_ranges(text: &str) -> String {
    let mut out = text.to_owned();
    for found in RANGE.captures_iter(text) {
        let range = format!(">= {}, <= {} ", &found[1], &found[11]);
        out = out.replacen(&found[0], &range, 1);
    }
    out
}
