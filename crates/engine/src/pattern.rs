//! Wildcards in kinds, namespaces and servers.

/// Go's `path.Match` for texts without slashes: `*`, `?`, `[a-z]`, `[^a]` and `\` before a
/// character meant literally. A malformed pattern matches nothing.
pub fn path_match(pattern: &str, text: &str) -> bool {
    matches(
        &pattern.chars().collect::<Vec<_>>(),
        &text.chars().collect::<Vec<_>>(),
    )
}

/// A glob in settings and projects: `*` matches any text, `{a,b}` one of several.
pub fn glob(pattern: &str, text: &str) -> bool {
    tiphys_gocompat::glob::matches(pattern, text, &[])
}

fn matches(mut pattern: &[char], mut text: &[char]) -> bool {
    // The last star and the text at that point: on a mismatch the star matches one more character.
    let mut retry: Option<(&[char], &[char])> = None;
    loop {
        match step(pattern, text) {
            Step::Done => return true,
            Step::Star(rest) => {
                retry = Some((rest, text));
                pattern = rest;
            }
            Step::One(rest) => (pattern, text) = (rest, &text[1..]),
            Step::Malformed => return false,
            Step::No => match retry {
                Some((rest, from)) if !from.is_empty() => {
                    retry = Some((rest, &from[1..]));
                    (pattern, text) = (rest, &from[1..]);
                }
                _ => return false,
            },
        }
    }
}

enum Step<'a> {
    Done,
    Star(&'a [char]),
    One(&'a [char]),
    No,
    Malformed,
}

fn step<'a>(pattern: &'a [char], text: &[char]) -> Step<'a> {
    let one = |matched: bool, rest: &'a [char]| if matched { Step::One(rest) } else { Step::No };
    match (pattern.split_first(), text.first()) {
        (None, None) => Step::Done,
        (None, Some(_)) => Step::No,
        (Some(('*', rest)), _) => Step::Star(rest),
        (Some(('?', rest)), next) => one(next.is_some(), rest),
        (Some(('\\', rest)), next) => match rest.split_first() {
            Some((literal, rest)) => one(next == Some(literal), rest),
            None => Step::Malformed,
        },
        (Some(('[', rest)), next) => match class(rest) {
            Some((ranges, negated, rest)) => one(
                next.is_some_and(|c| {
                    ranges.iter().any(|(low, high)| (low..=high).contains(&c)) != negated
                }),
                rest,
            ),
            None => Step::Malformed,
        },
        (Some((literal, rest)), next) => one(next == Some(literal), rest),
    }
}

type Ranges = Vec<(char, char)>;

/// The ranges of a character class, whether it is negated, and the pattern after `]`.
fn class(pattern: &[char]) -> Option<(Ranges, bool, &[char])> {
    let (negated, mut rest) = match pattern.first()? {
        '^' => (true, &pattern[1..]),
        _ => (false, pattern),
    };
    let mut ranges = Vec::new();
    while *rest.first()? != ']' || ranges.is_empty() {
        let low = *rest.first()?;
        if rest.get(1) == Some(&'-') && rest.get(2).is_some_and(|c| *c != ']') {
            ranges.push((low, rest[2]));
            rest = &rest[3..];
        } else {
            ranges.push((low, low));
            rest = &rest[1..];
        }
    }
    Some((ranges, negated, &rest[1..]))
}

#[cfg(test)]
mod tests {
    use super::path_match;

    #[test]
    fn wildcards() {
        let yes = [
            ("*", ""),
            ("*", "x"),
            ("*.example.com", "a.example.com"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[^a]x", "bx"),
            ("a*b*c", "aXbYbZc"),
            ("\\*", "*"),
        ];
        let no = [
            ("", "x"),
            ("a", "b"),
            ("a?c", "ac"),
            ("[a-c]x", "dx"),
            ("[^a]x", "ax"),
            ("a*b", "ac"),
            ("[a", "a"),
            ("\\*", "x"),
            ("a*", "ba"),
        ];
        for (pattern, text) in yes {
            assert!(path_match(pattern, text), "{pattern} should match {text}");
        }
        for (pattern, text) in no {
            assert!(
                !path_match(pattern, text),
                "{pattern} should not match {text}"
            );
        }
    }
}
