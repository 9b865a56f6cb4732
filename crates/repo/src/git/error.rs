//! gix errors as text.

/// The messages of an error and its causes in one line, without repetitions. URLs passed to gix
/// never contain credentials.
pub(super) fn text(error: &gix::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.iter_errors() {
        let part = cause.to_string().replace(['\n', '\r'], " ");
        if !part.is_empty() && !parts.iter().any(|p| p.contains(&part)) {
            parts.push(part);
        }
    }
    parts.join(": ").chars().take(600).collect()
}
