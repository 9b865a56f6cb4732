//! Helm's log lines on standard error: warnings, and some errors.
//!
//! Main functions: [`line`] and [`failure`].

use super::manifests::UNKNOWN_HOOKS;
use tiphys_gocompat::text::{is_print, quote};

/// Warnings that Helm logs at level warn, with fields; all others are logged at level info.
const WARNINGS: [&str; 10] = [
    FORGOTTEN_NULL,
    UNRESOLVED_URN,
    DRY_RUN,
    BOOLEAN_DRY_RUN,
    "this chart is deprecated",
    "returned non-bool value",
    "ImportValues missing table from chart",
    "ImportValues missing table",
    "missing required value",
    "missing required values",
];
/// A schema that is not checked.
pub(super) const UNRESOLVED_URN: &str = "unresolved URN reference ignored; using permissive schema";
/// Helm does not log this one.
pub(super) const FORGOTTEN_NULL: &str =
    "null in a chart's values does not remove the default of its subchart";
const BOOLEAN_DRY_RUN: &str =
    "boolean '--dry-run=true' flag is deprecated and must be replaced with '--dry-run=client'";
const DRY_RUN: &str = "--dry-run is deprecated and should be replaced with '--dry-run=client'";

/// Notes that are logged with fields.
const NOTES: [&str; 3] = [UNKNOWN_HOOKS, LINKED, FAILED];
/// A link that was followed.
pub(super) const LINKED: &str =
    "found symbolic link in path. Contents of linked file included and used";
/// What `fail` logs in lint mode, where it does not fail.
pub(super) const FAILED: &str = "funcMap fail";

/// Errors that Helm also logs before it returns them.
const LOGGED: [&str; 2] = [
    "release name check failed",
    "chart dependencies processing failed",
];

/// The log line for a warning.
pub fn line(warning: &str) -> String {
    let fields = |known: &str| {
        warning
            .strip_prefix(known)
            .filter(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let known = |list: &'static [&'static str]| {
        list.iter()
            .find_map(|known| Some((quote(known), fields(known)?)))
    };
    match (known(&WARNINGS), known(&NOTES)) {
        (Some((message, fields)), _) => format!("level=WARN msg={message}{fields}"),
        (None, Some((message, fields))) => format!("level=INFO msg={message}{fields}"),
        (None, None) => format!("level=INFO msg={}", text(warning)),
    }
}

/// The log line for an error that Helm also logs, if it is one.
pub fn failure(error: &str) -> Option<String> {
    let (message, why) = LOGGED
        .iter()
        .find_map(|known| Some((known, error.strip_prefix(*known)?.strip_prefix(": ")?)))?;
    Some(format!(
        "level=ERROR msg={} error={}",
        quote(message),
        text(why)
    ))
}

/// A text, quoted where Go's log would quote it.
pub(super) fn text(text: &str) -> String {
    let odd = |c: char| c.is_whitespace() || c == '"' || c == '=' || !is_print(c);
    if text.is_empty() || text.contains(odd) {
        quote(text)
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_look_as_in_helms_log() {
        assert_eq!(
            line("this chart is deprecated"),
            "level=WARN msg=\"this chart is deprecated\""
        );
        assert_eq!(
            line("returned non-bool value path=b chart=s"),
            "level=WARN msg=\"returned non-bool value\" path=b chart=s"
        );
        assert_eq!(
            line("warning: skipped \"x\""),
            "level=INFO msg=\"warning: skipped \\\"x\\\"\""
        );
        assert_eq!(
            line("skipping unknown hooks hookTypes=a,b"),
            "level=INFO msg=\"skipping unknown hooks\" hookTypes=a,b"
        );
        let link = "found symbolic link in path. Contents of linked file included and used path=/a resolved=\"/b c\"";
        let told = "level=INFO msg=\"found symbolic link in path. Contents of linked file included and used\" path=/a resolved=\"/b c\"";
        assert_eq!(line(link), told);
        assert_eq!(
            line("funcMap fail message=no"),
            "level=INFO msg=\"funcMap fail\" message=no"
        );
        let error = "release name check failed: release name \"A\": no";
        assert_eq!(
            failure(error).as_deref(),
            Some(
                "level=ERROR msg=\"release name check failed\" error=\"release name \\\"A\\\": no\""
            )
        );
        assert_eq!(failure("library charts are not installable"), None);
    }
}
