//! Converts Go's regular expressions to the dialect of our library, with Go's error messages. Main
//! functions: [`compile_pattern`], [`error`].

use regex::Regex;

/// The maximum size of a compiled pattern.
const MAX_PATTERN: usize = 1 << 20;

/// Converts a Go pattern to the dialect of our library, in which `\d` and the like match more than
/// ASCII, and a bracket in a class begins a nested class.
pub fn from_go(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut chars = text.chars().peekable();
    let (mut class, mut first) = (false, false);
    while let Some(c) = chars.next() {
        let was_first = std::mem::take(&mut first);
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('s') => out.push_str("[\\t\\n\\x0c\\r ]"),
                Some('S') => out.push_str("[^\\t\\n\\x0c\\r ]"),
                Some('b') if !class => out.push_str("(?-u:\\b)"),
                Some('B') if !class => out.push_str("(?-u:\\B)"),
                Some('Q') => {
                    let rest: String = chars.clone().collect();
                    let end = rest.find("\\E").unwrap_or(rest.len());
                    out.push_str(&regex::escape(&rest[..end]));
                    chars
                        .by_ref()
                        .take(rest[..end].chars().count() + 2)
                        .for_each(|_| {});
                }
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if class && chars.peek() == Some(&':') => {
                // A named class, such as `[:alpha:]`.
                out.push('[');
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '[' if class => out.push_str("\\["),
            '[' => {
                (class, first) = (true, true);
                out.push('[');
            }
            '^' if class && was_first => {
                first = true;
                out.push('^');
            }
            ']' if class && was_first => out.push_str("\\]"),
            ']' if class => {
                class = false;
                out.push(']');
            }
            '&' | '~' if class => out.extend(['\\', c]),
            '-' if class && chars.peek() == Some(&'-') => out.push_str("\\-"),
            other => out.push(other),
        }
    }
    out
}

/// Compiles a pattern like Go, as far as the two dialects agree.
pub fn compile_pattern(text: &str) -> Option<Regex> {
    regex::RegexBuilder::new(&from_go(text))
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN)
        .build()
        .ok()
}

/// The message of Go's regexp package, as closely as our library allows; None for a valid
/// expression.
pub fn error(pattern: &str) -> Option<String> {
    let error = Regex::new(&from_go(pattern)).err()?;
    let regex::Error::Syntax(text) = &error else {
        return None;
    };
    let reason = text.rsplit("error: ").next().unwrap_or("").trim();
    let said = match reason {
        r if r.contains("unclosed group") => format!("missing closing ): `{pattern}`"),
        r if r.contains("unopened group") => format!("unexpected ): `{pattern}`"),
        r if r.contains("unclosed character class") => {
            format!(
                "missing closing ]: `{}`",
                pattern.find('[').map_or(pattern, |at| &pattern[at..])
            )
        }
        r if r.contains("repetition operator missing expression") => {
            let at = pattern.find(['*', '+', '?']).unwrap_or(0);
            format!(
                "missing argument to repetition operator: `{}`",
                pattern.get(at..=at).unwrap_or("")
            )
        }
        r if r.contains("repetition count range") || r.contains("repetition quantifier") => {
            let at = pattern.find('{').unwrap_or(0);
            let end = pattern[at..]
                .find('}')
                .map_or(pattern.len(), |e| at + e + 1);
            format!("invalid repeat count: `{}`", &pattern[at..end])
        }
        r if r.contains("look-around") => {
            let at = pattern
                .find("(?=")
                .or_else(|| pattern.find("(?!"))
                .or_else(|| pattern.find("(?<"))
                .unwrap_or(0);
            format!(
                "invalid or unsupported Perl syntax: `{}`",
                pattern.get(at..at + 3).unwrap_or("(?")
            )
        }
        r if r.contains("backreference") || r.contains("unrecognized escape") => {
            let at = pattern.find('\\').unwrap_or(0);
            format!(
                "invalid escape sequence: `{}`",
                pattern.get(at..at + 2).unwrap_or("\\")
            )
        }
        r if r.contains("incomplete escape") => {
            "trailing backslash at end of expression: ``".to_owned()
        }
        other => format!("{other}: `{pattern}`"),
    };
    Some(format!("error parsing regexp: {said}"))
}
