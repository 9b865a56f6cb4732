//! Messages on standard error, in the format that scripts for the `argocd` command parse.

use super::{escape_html, time};
use jiff::Timestamp;
use serde_json::Value;
use std::{io::IsTerminal as _, sync::OnceLock};

static FORMAT: OnceLock<Format> = OnceLock::new();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Text,
    /// For users.
    Plain,
}

/// `text` or `json`; by default plain text at a terminal, and `json` elsewhere, where scripts read
/// it.
pub fn set_format(format: &str) {
    let _ = FORMAT.set(chosen(format, std::io::stderr().is_terminal()));
}

fn chosen(format: &str, terminal: bool) -> Format {
    match format {
        "text" => Format::Text,
        "" if terminal => Format::Plain,
        _ => Format::Json,
    }
}

fn line(level: &str, message: &str, time: &str, format: Format) -> String {
    let quoted = |s: &str| Value::from(s).to_string();
    match format {
        Format::Text => format!(
            "time={} level={level} msg={}",
            quoted(time),
            quoted(message)
        ),
        Format::Json => escape_html(&format!(
            "{{\"level\":{},\"msg\":{},\"time\":{}}}",
            quoted(level),
            quoted(message),
            quoted(time)
        )),
        Format::Plain => {
            let level = if level == "fatal" { "error" } else { level };
            // The gRPC code is for programs.
            let message = message
                .strip_prefix("rpc error: code = ")
                .and_then(|m| m.split_once(" desc = "))
                .map_or(message, |(_, text)| text);
            format!("{level}: {message}")
        }
    }
}

fn say(level: &str, message: &str) {
    let format = FORMAT
        .get()
        .copied()
        .unwrap_or_else(|| chosen("", std::io::stderr().is_terminal()));
    eprintln!(
        "{}",
        line(level, message, &time::rfc3339(Timestamp::now()), format)
    );
}

/// `hint`: advice, shown to users only.
pub fn fatal(message: &str, hint: &str) {
    say("fatal", message);
    let format = FORMAT
        .get()
        .copied()
        .unwrap_or_else(|| chosen("", std::io::stderr().is_terminal()));
    if format == Format::Plain && !hint.is_empty() {
        eprintln!("hint: {hint}");
    }
}

pub fn error(message: &str) {
    say("error", message);
}

/// The line of a warning, for output that has lines of a log in it.
pub fn warning(message: &str) -> String {
    let format = match FORMAT.get().copied() {
        Some(format) => format,
        None => chosen("", std::io::stdout().is_terminal()),
    };
    line("warning", message, &time::rfc3339(Timestamp::now()), format) + "\n"
}

/// A warning before the format of the log is known.
pub fn warn_as_text(message: &str) {
    let now = time::rfc3339(Timestamp::now());
    eprintln!("{}", line("warning", message, &now, Format::Text));
}

pub fn warn(message: &str) {
    say("warning", message);
}

pub fn info(message: &str) {
    say("info", message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_at_a_terminal_get_text() {
        assert_eq!(
            (
                chosen("", true),
                chosen("", false),
                chosen("json", true),
                chosen("text", false)
            ),
            (Format::Plain, Format::Json, Format::Json, Format::Text)
        );
        let of = |level: &str, message: &str| line(level, message, "now", Format::Plain);
        assert_eq!(
            of(
                "fatal",
                "rpc error: code = NotFound desc = applications.argoproj.io \"x\" not found"
            ),
            "error: applications.argoproj.io \"x\" not found"
        );
        assert_eq!(of("warning", "a < b"), "warning: a < b");
    }

    #[test]
    fn lines() {
        let now = "2026-01-02T03:04:05Z";
        assert_eq!(
            line("fatal", "rpc error: desc = \"a\" < b", now, Format::Json),
            r#"{"level":"fatal","msg":"rpc error: desc = \"a\" \u003c b","time":"2026-01-02T03:04:05Z"}"#
        );
        assert_eq!(
            line("warning", "a \"b\"", now, Format::Text),
            r#"time="2026-01-02T03:04:05Z" level=warning msg="a \"b\"""#
        );
    }
}
