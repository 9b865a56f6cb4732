//! What Go says of a regular expression that it cannot read. Main function: [`error`].

/// The message of Go's regexp package, as near as ours can tell; None for a good expression.
pub fn error(pattern: &str) -> Option<String> {
    let error = regex::Regex::new(&crate::structural::from_go(pattern)).err()?;
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
