//! Error messages of Go's JSON decoder, for the few that users see and scripts match.

/// Go's message for a document that `serde_json` refused.
pub fn error_text(document: &str, error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let trimmed = document.trim_start();
    for literal in ["null", "true", "false"] {
        if trimmed.starts_with(&literal[..1]) {
            let wrong = literal
                .chars()
                .zip(trimmed.chars())
                .find(|(expected, got)| expected != got);
            if let Some((expected, got)) = wrong {
                return format!(
                    "invalid character {got:?} in literal {literal} (expecting {expected:?})"
                );
            }
        }
    }
    match trimmed.chars().next() {
        Some(first)
            if !first.is_ascii_digit()
                && !matches!(first, '{' | '[' | '"' | '-' | 'n' | 't' | 'f') =>
        {
            format!("invalid character {first:?} looking for beginning of value")
        }
        _ => error.to_string(),
    }
}
