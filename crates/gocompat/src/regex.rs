//! Regular expressions in Go's syntax, matched in linear time.
//!
//! Main type: [`Regex`]. Its size is limited.

use crate::sprig::regexp::syntax;

/// Largest compiled expression.
const SIZE: usize = 2 << 20;
/// Longest expression.
const LONGEST: usize = 64 << 10;

#[derive(Clone, Debug)]
pub struct Regex(regex::Regex);

impl Regex {
    /// # Errors
    /// In Go's words where the translation finds it.
    pub fn new(expression: &str) -> Result<Self, String> {
        if expression.len() > LONGEST {
            return Err(format!(
                "a regular expression is longer than {LONGEST} bytes"
            ));
        }
        let failed = |reason: String| format!("error parsing regexp: {reason}");
        let translated = syntax::translate(expression).map_err(failed)?;
        let built = regex::RegexBuilder::new(&translated)
            .size_limit(SIZE)
            .dfa_size_limit(SIZE)
            .build();
        built.map(Self).map_err(|error| failed(error.to_string()))
    }

    /// Whether it matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Regex;

    #[test]
    fn expressions_are_those_of_go() {
        for (expression, text, want) in [
            ("^(?:a.*|b)$", "abc", true),
            ("^(?:a.*|b)$", "xb", false),
            (r"\d+", "a12", true),
        ] {
            assert_eq!(Regex::new(expression).expect("right").is_match(text), want);
        }
        assert!(Regex::new("(").is_err());
        assert!(Regex::new("(?=a)").is_err());
    }
}
