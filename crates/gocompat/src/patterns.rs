//! Lists of names as Argo CD's settings write them: a name, a glob, or a regular expression between slashes.
//!
//! Main function: [`any`]. Expressions are those of the .NET kind that dlclark/regexp2 reads, so they may look ahead
//! (`/^((?!kube-).)*$/`); one that would go on for too long matches nothing.

use crate::glob;
use fancy_regex::RegexBuilder;

/// Steps back that one expression may take on one text; a name has at most some hundred characters.
const BACKTRACKS: usize = 100_000;

/// Whether one of the patterns is of this text. A broken pattern is of no text.
pub fn any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, text))
}

/// An expression may match anywhere in the text; a glob means all of it. What is between slashes may be meant as a glob, too.
fn matches(pattern: &str, text: &str) -> bool {
    let expression = pattern.strip_prefix('/').and_then(|p| p.strip_suffix('/'));
    expression.is_some_and(|expression| finds(expression, text)) || glob::matches(pattern, text, &[])
}

fn finds(expression: &str, text: &str) -> bool {
    let expression = RegexBuilder::new(expression).backtrack_limit(BACKTRACKS).build();
    expression.is_ok_and(|expression| expression.is_match(text).unwrap_or(false))
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
            (&["/^(a+)+$/"], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false),
            (&["/^(?=(a+)+$)b/"], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false),
        ] {
            let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
            assert_eq!(any(&patterns, text), expected, "{patterns:?} {text}");
        }
    }
}
