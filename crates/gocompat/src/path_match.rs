//! Patterns for file names as Go's `path.Match`: `*`, `?`, `[a-z]`, `\`; nothing but `/` matches
//! `/`.
//!
//! Main function: [`matches`].

/// The pattern is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct BadPattern;

/// Whether the whole name matches. An invalid pattern is an error wherever the fault is.
pub fn matches(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    matches_with(pattern, name, &['^'])
}

/// The same with these characters for negation in `[^a]`.
pub(crate) fn matches_with(
    pattern: &str,
    name: &str,
    negations: &[char],
) -> Result<bool, BadPattern> {
    let tokens = tokens(pattern, negations)?;
    let name: Vec<char> = name.chars().collect();
    Ok(run(&tokens, &name))
}

enum Token {
    Char(char),
    Any,
    Star,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Token {
    fn fits(&self, c: char) -> bool {
        match self {
            Self::Char(want) => *want == c,
            Self::Any => c != '/',
            Self::Star => false,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated
            }
        }
    }
}

/// Backtracking to the last star is enough.
fn run(tokens: &[Token], name: &[char]) -> bool {
    let (mut t, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        match tokens.get(t) {
            Some(Token::Star) => {
                back = Some((t + 1, n));
                t += 1;
                continue;
            }
            Some(token) if name.get(n).is_some_and(|c| token.fits(*c)) => {
                (t, n) = (t + 1, n + 1);
                continue;
            }
            None if n == name.len() => return true,
            _ => {}
        }
        match back {
            Some((after, from)) if name.get(from).is_some_and(|c| *c != '/') => {
                back = Some((after, from + 1));
                (t, n) = (after, from + 1);
            }
            _ => return false,
        }
    }
}

fn tokens(pattern: &str, negations: &[char]) -> Result<Vec<Token>, BadPattern> {
    let mut chars = pattern.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => Token::Star,
            '?' => Token::Any,
            '\\' => Token::Char(chars.next().ok_or(BadPattern)?),
            '[' => class(&mut chars, negations)?,
            c => Token::Char(c),
        });
    }
    Ok(tokens)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn class(chars: &mut Chars<'_>, negations: &[char]) -> Result<Token, BadPattern> {
    let negated = chars.next_if(|c| negations.contains(c)).is_some();
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && chars.next_if_eq(&']').is_some() {
            return Ok(Token::Class { negated, ranges });
        }
        let low = class_char(chars)?;
        let high = if chars.next_if_eq(&'-').is_some() {
            class_char(chars)?
        } else {
            low
        };
        chars.peek().ok_or(BadPattern)?;
        ranges.push((low, high));
    }
}

fn class_char(chars: &mut Chars<'_>) -> Result<char, BadPattern> {
    match chars.next() {
        None | Some('-' | ']') => Err(BadPattern),
        Some('\\') => chars.next().ok_or(BadPattern),
        Some(c) => Ok(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of Go's path.Match, from the documentation of its syntax and from runs with Go
    /// 1.26.
    #[test]
    fn as_go_matches() {
        for (pattern, name, want) in [
            ("abc", "abc", Ok(true)),
            ("*", "abc", Ok(true)),
            ("*c", "abc", Ok(true)),
            ("a*", "ab/c", Ok(false)),
            ("a*/b", "abc/b", Ok(true)),
            ("a*/b", "a/c/b", Ok(false)),
            ("a*b*c*d*e*/f", "axbxcxdxe/xxx/f", Ok(false)),
            ("a*b?c*x", "abxbbxdbxebxczzx", Ok(true)),
            ("ab[c]", "abc", Ok(true)),
            ("ab[^c]", "abc", Ok(false)),
            ("ab[b-d]", "abc", Ok(true)),
            ("a\\*b", "a*b", Ok(true)),
            ("a[^a]b", "a☺b", Ok(true)),
            ("a???b", "a☺b", Ok(false)),
            ("a?b", "a/b", Ok(false)),
            ("a[^b]b", "a/b", Ok(true)),
            ("[\\]a]", "]", Ok(true)),
            ("[]a]", "]", Err(BadPattern)),
            ("[-]", "-", Err(BadPattern)),
            ("[x-]", "x", Err(BadPattern)),
            ("[a-b-c]", "a", Err(BadPattern)),
            ("[", "a", Err(BadPattern)),
            ("[^", "a", Err(BadPattern)),
            ("a[", "ab", Err(BadPattern)),
            ("*x", "xxx", Ok(true)),
            ("", "", Ok(true)),
            (".?*", ".x", Ok(true)),
            (".?*", ".", Ok(false)),
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern:?} on {name:?}");
        }
        assert_eq!(matches(&"*a".repeat(500), &"a".repeat(499)), Ok(false));
    }
}
