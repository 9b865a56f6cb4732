//! Lists of names in Argo CD's settings: a name, a glob, or a regular expression between slashes.
//!
//! Main functions: [`any`], [`fits`]. Expressions have the .NET syntax of dlclark/regexp2, so they
//! support lookahead (`/^((?!kube-).)*$/`); one that would take too long matches nothing.

use crate::glob::Glob;
use fancy_regex::RegexBuilder;

/// Backtracking steps for one expression on one text; a name has at most a few hundred characters.
const BACKTRACKS: usize = 100_000;

/// Whether one of the patterns matches this text. An invalid pattern matches nothing.
pub fn any(patterns: &[String], text: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| fits(pattern, text).unwrap_or(false))
}

/// Whether the pattern matches this text; `None` if it is invalid. An expression may match anywhere
/// in the text; a glob must match all of it. A pattern between slashes is also tried as a glob.
pub fn fits(pattern: &str, text: &str) -> Option<bool> {
    let expression = pattern.strip_prefix('/').and_then(|p| p.strip_suffix('/'));
    let found = expression.map(|expression| finds(expression, text));
    let glob = Glob::new(pattern, &[]).ok().map(|glob| glob.matches(text));
    match (found, glob) {
        (Some(Some(true)), _) | (_, Some(true)) => Some(true),
        (Some(None), _) | (_, None) => None,
        _ => Some(false),
    }
}

/// `None`: the expression is invalid, or took too long.
fn finds(expression: &str, text: &str) -> Option<bool> {
    RegexBuilder::new(expression)
        .backtrack_limit(BACKTRACKS)
        .build()
        .ok()?
        .is_match(text)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::any;

    #[test]
    fn a_list_has_names_globs_and_expressions() {
        for (patterns, text, expected) in [
            (&[][..], "team-a", false),
            (&["team-a"][..], "team-a", true),
            (&["team-a"], "team-ab", false),
            (&["team-*"], "team-a", true),
            (&["team-*"], "other", false),
            (&["other", "team-?"], "team-b", true),
            (&["{a,b}-*"], "b-1", true),
            (&["/^team-[ab]$/"], "team-b", true),
            (&["/^team-[ab]$/"], "team-c", false),
            (&["/team/"], "my-team-1", true),
            (&["/^((?!kube-).)*$/"], "team-a", true),
            (&["/^((?!kube-).)*$/"], "kube-system", false),
            (&["/(/"], "(", false),
            (&["/(/", "*"], "x", true),
            (&["/"], "x", false),
            (&["//"], "x", true),
            (&["[a"], "[a", false),
            (
                &["/^(a+)+$/"],
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
                false,
            ),
            (
                &["/^(?=(a+)+$)b/"],
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
                false,
            ),
        ] {
            let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
            assert_eq!(any(&patterns, text), expected, "{patterns:?} {text}");
        }
    }
}
