//! Semantic versions and version constraints, as parsed, compared and checked by
//! github.com/Masterminds/semver/v3.
//!
//! Main types: [`Version`] and [`Constraints`]. It must not know what the versions are for.

mod check;
mod constraint;
mod scan;

pub use constraint::{ConstraintError, Constraints};

use std::cmp::Ordering;
use std::fmt;

/// Longest text that is parsed as a version.
const MAX_VERSION: usize = 256;

/// Why a text is not a version, with the Go library's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SemverError {
    #[error("invalid semantic version")]
    Invalid,
    #[error("version string empty")]
    Empty,
    #[error("invalid characters in version")]
    Characters,
    #[error("version segment starts with 0")]
    StartsWithZero,
    #[error("invalid metadata string")]
    Metadata,
    #[error("invalid prerelease string")]
    Prerelease,
    #[error("version string is too long (max {MAX_VERSION} bytes)")]
    TooLong,
    #[error("{}strconv.ParseUint: parsing \"{number}\": {}", if *.loose { "error parsing version segment: " } else { "" }, number_fault(number))]
    Number { number: String, loose: bool },
}

fn number_fault(number: &str) -> &'static str {
    if number.is_empty() {
        "invalid syntax"
    } else {
        "value out of range"
    }
}

/// A version. Equality compares the text; [`Version::precedence`] ignores metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    /// The text after `-`, empty for a release.
    pub prerelease: String,
    /// The text after `+`.
    pub metadata: String,
    original: String,
}

impl Version {
    /// `NewVersion`: also accepts `v1`, `1.2` and leading zeros.
    pub fn parse(text: &str) -> Result<Self, SemverError> {
        if text.len() > MAX_VERSION {
            return Err(SemverError::TooLong);
        }
        let loose = Loose::read(text).ok_or(SemverError::Invalid)?;
        let number = |n: Option<&str>| n.map_or(Ok(0), |n| segment(n, true));
        let [major, minor, patch] = loose.numbers;
        let (major, minor, patch) = (
            number(Some(major.unwrap_or_default()))?,
            number(minor)?,
            number(patch)?,
        );
        if !loose.prerelease.is_empty() {
            validate_prerelease(loose.prerelease)?;
        }
        Ok(Self {
            major,
            minor,
            patch,
            prerelease: loose.prerelease.to_owned(),
            metadata: loose.metadata.to_owned(),
            original: text.to_owned(),
        })
    }

    /// `StrictNewVersion`: only what semver.org allows.
    pub fn parse_strict(text: &str) -> Result<Self, SemverError> {
        match text.len() {
            0 => return Err(SemverError::Empty),
            n if n > MAX_VERSION => return Err(SemverError::TooLong),
            _ => {}
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(SemverError::Invalid);
        };
        let (rest, metadata) = rest
            .split_once('+')
            .map_or((rest, None), |(rest, m)| (rest, Some(m)));
        metadata.map_or(Ok(()), validate_metadata)?;
        let (patch, prerelease) = rest
            .split_once('-')
            .map_or((rest, None), |(patch, p)| (patch, Some(p)));
        prerelease.map_or(Ok(()), validate_prerelease)?;
        for part in [major, minor, patch] {
            if !is_number(part) {
                return Err(SemverError::Characters);
            }
            if part.len() > 1 && part.starts_with('0') {
                return Err(SemverError::StartsWithZero);
            }
        }
        Ok(Self {
            major: segment(major, false)?,
            minor: segment(minor, false)?,
            patch: segment(patch, false)?,
            prerelease: prerelease.unwrap_or_default().to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        })
    }

    /// The text it was parsed from.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// `Compare`: by numbers, then by prerelease; ignores metadata.
    pub fn precedence(&self, other: &Self) -> Ordering {
        let numbers = |v: &Self| (v.major, v.minor, v.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_prereleases(&self.prerelease, &other.prerelease),
            }
        })
    }
}

/// As `String`: always three numbers, no leading `v`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

/// The pieces of `v1.2.3-pre+meta`; all except the first number are optional.
struct Loose<'a> {
    numbers: [Option<&'a str>; 3],
    prerelease: &'a str,
    metadata: &'a str,
}

impl<'a> Loose<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, metadata) = text
            .split_once('+')
            .map_or((text, None), |(rest, m)| (rest, Some(m)));
        let (text, prerelease) = text
            .split_once('-')
            .map_or((text, None), |(rest, p)| (rest, Some(p)));
        let identifiers = |list: &str| list.split('.').all(is_identifier);
        if !metadata.is_none_or(identifiers) || !prerelease.is_none_or(identifiers) {
            return None;
        }
        let mut parts = text.split('.');
        let numbers = [parts.next(), parts.next(), parts.next()];
        let whole = parts.next().is_none()
            && numbers
                .iter()
                .flatten()
                .all(|n| !n.is_empty() && is_number(n));
        whole.then_some(Self {
            numbers,
            prerelease: prerelease.unwrap_or_default(),
            metadata: metadata.unwrap_or_default(),
        })
    }
}

fn segment(number: &str, loose: bool) -> Result<u64, SemverError> {
    number.parse().map_err(|_| SemverError::Number {
        number: number.to_owned(),
        loose,
    })
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn validate_prerelease(text: &str) -> Result<(), SemverError> {
    for part in text.split('.') {
        if !is_identifier(part) {
            return Err(SemverError::Prerelease);
        }
        if is_number(part) && part.len() > 1 && part.starts_with('0') {
            return Err(SemverError::StartsWithZero);
        }
    }
    Ok(())
}

fn validate_metadata(text: &str) -> Result<(), SemverError> {
    if text.split('.').all(is_identifier) {
        Ok(())
    } else {
        Err(SemverError::Metadata)
    }
}

pub(crate) fn compare_prereleases(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let (left, right) = (a.next(), b.next());
        if left.is_none() && right.is_none() {
            return Ordering::Equal;
        }
        match compare_parts(left.unwrap_or_default(), right.unwrap_or_default()) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
}

/// Numbers by value and before words; a number that does not fit in 64 bits counts as a word.
fn compare_parts(a: &str, b: &str) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().min(1).cmp(&b.len().min(1));
    }
    let number = |text: &str| {
        if is_number(text) {
            text.parse::<u64>().ok()
        } else {
            None
        }
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}
