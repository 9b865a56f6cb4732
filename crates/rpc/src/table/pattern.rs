//! Path patterns of REST bindings: `/a/{name}/b`, `{field.sub}`, and `{rest=**}`, which only
//! literals may follow.

use std::fmt;

/// The decoded variables of a path, each with the dotted name of the field it fills.
pub type Bindings = Vec<(String, String)>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable(String),
    /// The rest of the path but the literals after it, possibly empty.
    Rest(String),
}

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
    /// Whether a path is decoded before it is divided.
    decodes_first: bool,
}

impl Pattern {
    pub fn parse(text: &str) -> Self {
        let part = |word: &str| match word.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
            None => Part::Literal(word.to_owned()),
            Some(name) => match name.strip_suffix("=**") {
                Some(name) => Part::Rest(name.to_owned()),
                None => Part::Variable(name.to_owned()),
            },
        };
        Self {
            parts: text.trim_start_matches('/').split('/').map(part).collect(),
            decodes_first: false,
        }
    }

    /// The same for paths that are decoded before they are divided, as Go's gateways do: escaped
    /// slashes divide them, too. The rest takes these; other variables could not have any, and
    /// literals after the rest could be confused with what it has.
    #[must_use]
    pub fn decoded_first(self) -> Self {
        Self {
            decodes_first: true,
            ..self
        }
    }

    /// The number of variables.
    pub fn variables(&self) -> usize {
        self.parts
            .iter()
            .filter(|p| !matches!(p, Part::Literal(_)))
            .count()
    }

    /// Whether the literals before a rest are at their places. A request is compared with all
    /// patterns, and nearly all end here, before its words and variables are allocated.
    fn may_match(&self, path: &str) -> bool {
        let mut words = path.split('/');
        for part in &self.parts {
            match (part, words.next()) {
                (Part::Rest(_), _) => return true,
                (Part::Literal(literal), Some(word)) if word == literal => {}
                (Part::Variable(_), Some(_)) => {}
                _ => return false,
            }
        }
        words.next().is_none()
    }

    /// The variables, if the path (still percent-encoded) matches.
    pub fn matches(&self, path: &str) -> Option<Bindings> {
        // What has no escapes is decoded already, and nearly no path has any.
        let decodes = self.decodes_first && path.contains('%');
        let whole = decodes.then(|| percent_decode(path));
        let value = |word: &str| match whole {
            Some(_) => word.to_owned(),
            None => percent_decode(word),
        };
        let path = whole.as_deref().unwrap_or(path).strip_prefix('/')?;
        if !self.may_match(path) {
            return None;
        }
        let words: Vec<&str> = path.split('/').collect();
        let (mut words, mut bindings) = (words.as_slice().iter(), Vec::new());
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(literal) => {
                    if *words.next()? != literal {
                        return None;
                    }
                }
                Part::Variable(name) => {
                    let word = words.next()?;
                    bindings.push((name.clone(), value(word)));
                }
                Part::Rest(name) => {
                    let after = self.parts.len() - at - 1;
                    let count = words.len().checked_sub(after)?;
                    let rest: Vec<&str> = words.by_ref().take(count).copied().collect();
                    bindings.push((name.clone(), value(&rest.join("/"))));
                }
            }
        }
        words.next().is_none().then_some(bindings)
    }
}

/// The pattern as it was written.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Literal(text) => write!(f, "/{text}"),
            Part::Variable(name) => write!(f, "/{{{name}}}"),
            Part::Rest(name) => write!(f, "/{{{name}=**}}"),
        })
    }
}

/// Percent-decodes; invalid sequences are kept.
pub fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| {
                text.get(at + 1..at + 3)
                    .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            })
            .flatten();
        out.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let matched = |pattern: &str, path: &str| {
            let pattern = match pattern.strip_prefix("decoded ") {
                Some(pattern) => Pattern::parse(pattern).decoded_first(),
                None => Pattern::parse(pattern),
            };
            pattern.matches(path).map(|b| {
                b.iter()
                    .map(|(k, v)| format!("{k}={v}"))
                    .collect::<Vec<_>>()
                    .join(",")
            })
        };
        for (pattern, path, want) in [
            ("/api/v1/a", "/api/v1/a", Some("")),
            ("/api/v1/a", "/api/v1/a/", None),
            ("/api/v1/a/{name}", "/api/v1/a/x", Some("name=x")),
            ("/api/v1/a/{name}", "/api/v1/a/", Some("name=")),
            (
                "/r/{repo}/refs",
                "/r/https%3A%2F%2Fh%2Fr.git/refs",
                Some("repo=https://h/r.git"),
            ),
            ("/c/{id.value}", "/c/a%zz", Some("id.value=a%zz")),
            ("/can/{r}/{s=**}", "/can/x/y/z", Some("r=x,s=y/z")),
            ("/can/{r}/{s=**}", "/can/x", Some("r=x,s=")),
            ("/can/{r}/{s=**}", "/can/x%2Fy/z", Some("r=x/y,s=z")),
            ("/can/{r}/{s=**}", "/can/x/y%2Fz", Some("r=x,s=y/z")),
            ("decoded /can/{r}/{s=**}", "/can/x", Some("r=x,s=")),
            ("decoded /can/{r}/{s=**}", "/can/x%2Fy/z", Some("r=x,s=y/z")),
            ("decoded /can/{r}/{s=**}", "/can/x/y%2Fz", Some("r=x,s=y/z")),
            (
                "decoded /can/{r}/{s=**}",
                "/can/x/y%252Fz",
                Some("r=x,s=y%2Fz"),
            ),
            (
                "decoded /can/{r}/{s=**}",
                "/can/x/https%3A%2F%2Fh%2Fr",
                Some("r=x,s=https://h/r"),
            ),
            ("/of/{s=**}/v", "/of/a%2Fv", None),
            ("/of/{s=**}", "/of/a%2Fv", Some("s=a/v")),
            ("/of/{s=**}/v", "/of/a/b/v", Some("s=a/b")),
            ("/of/{s=**}/v", "/of/a%2Fb/v", Some("s=a/b")),
            ("/of/{s=**}/v", "/of/v", Some("s=")),
            ("/of/{s=**}/v", "/of/a/b", None),
            ("/of/{s=**}/v", "/of", None),
        ] {
            assert_eq!(matched(pattern, path).as_deref(), want, "{pattern} {path}");
        }
    }
}
