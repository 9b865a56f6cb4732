//! Tokens of constraints: operators, versions with wildcards, hyphen ranges.
//!
//! Main functions: [`parts`] and [`ranges`]. The grammar is unambiguous, so a single pass from left
//! to right is enough; the Go library's regular expressions, which accept the same, would take
//! longer to compile than rendering a small chart.

/// A version in a constraint, and its pieces with their leading separators: `.2`, `.x`, `-rc.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found<'t> {
    pub text: &'t str,
    pub major: &'t str,
    pub minor: &'t str,
    pub patch: &'t str,
    pub prerelease: &'t str,
}

/// `1.2 - 2`, with the blanks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range<'t> {
    pub text: &'t str,
    pub from: &'t str,
    pub to: &'t str,
}

const BLANKS: [char; 5] = ['\t', '\n', '\x0c', '\r', ' '];

/// Longer ones first.
const OPERATORS: [&str; 12] = [
    "!=", ">=", "=>", "<=", "=<", "~>", "=", ">", "<", "~", "^", "",
];

/// Operators and versions, separated by blanks or commas; None if there is anything else.
pub(super) fn parts(text: &str) -> Option<Vec<(&str, Found<'_>)>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(BLANKS);
    loop {
        let sign = OPERATORS.into_iter().find(|sign| rest.starts_with(sign))?;
        let (version, behind) = version(rest[sign.len()..].trim_start_matches(BLANKS))?;
        found.push((sign, version));
        rest = behind.trim_start_matches(BLANKS);
        match rest.strip_prefix(',') {
            None if rest.is_empty() => return Some(found),
            None if rest.len() == behind.len() => return None,
            None => {}
            Some(next) => rest = next.trim_start_matches(BLANKS),
        }
    }
}

/// All ranges in the text.
pub(super) fn ranges(text: &str) -> Vec<Range<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        match range(rest) {
            Some((range, behind)) => {
                found.push(range);
                rest = behind;
            }
            None => rest = rest.strip_prefix(|_: char| true).unwrap_or_default(),
        }
    }
    found
}

/// The range at the beginning of a text, and the rest.
fn range(text: &str) -> Option<(Range<'_>, &str)> {
    let (from, rest) = version(text.trim_start_matches(BLANKS))?;
    let rest = rest
        .strip_prefix(BLANKS)?
        .trim_start_matches(BLANKS)
        .strip_prefix('-')?;
    let (to, rest) = version(rest.strip_prefix(BLANKS)?.trim_start_matches(BLANKS))?;
    let rest = rest.trim_start_matches(BLANKS);
    Some((
        Range {
            text: &text[..text.len() - rest.len()],
            from: from.text,
            to: to.text,
        },
        rest,
    ))
}

/// The version at the beginning of a text, and the rest.
fn version(text: &str) -> Option<(Found<'_>, &str)> {
    let rest = text.strip_prefix('v').unwrap_or(text);
    let (major, rest) = run(rest, is_number);
    if major.is_empty() {
        return None;
    }
    let (minor, rest) = marked(rest, '.', is_number);
    let (patch, rest) = if minor.is_empty() {
        ("", rest)
    } else {
        marked(rest, '.', is_number)
    };
    let (prerelease, rest) = identifiers(rest, '-');
    let (_, rest) = identifiers(rest, '+');
    Some((
        Found {
            text: &text[..text.len() - rest.len()],
            major,
            minor,
            patch,
            prerelease,
        },
        rest,
    ))
}

fn is_number(c: char) -> bool {
    matches!(c, '0'..='9' | '|' | 'x' | 'X' | '*')
}

fn is_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

/// The characters of one kind at the beginning of a text.
fn run(text: &str, kind: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !kind(c)).unwrap_or(text.len()))
}

/// A mark followed by at least one character of a kind, or nothing.
fn marked(text: &str, mark: char, kind: fn(char) -> bool) -> (&str, &str) {
    let end = text
        .strip_prefix(mark)
        .map_or(0, |rest| run(rest, kind).0.len());
    text.split_at(if end == 0 { 0 } else { mark.len_utf8() + end })
}

/// A mark followed by identifiers separated by dots, or nothing.
fn identifiers(text: &str, mark: char) -> (&str, &str) {
    let (first, mut rest) = marked(text, mark, is_identifier);
    while !first.is_empty() && !marked(rest, '.', is_identifier).0.is_empty() {
        rest = marked(rest, '.', is_identifier).1;
    }
    text.split_at(text.len() - rest.len())
}
