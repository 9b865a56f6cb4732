//! Messages on standard error, in the form that scripts around the `argocd` command read.

use super::{escape_html, time};
use jiff::Timestamp;
use serde_json::Value;
use std::sync::OnceLock;

static AS_TEXT: OnceLock<bool> = OnceLock::new();

/// `text` or `json`; anything but `text` is `json`, as it is the default.
pub fn set_format(format: &str) {
    let _ = AS_TEXT.set(format == "text");
}

fn line(level: &str, message: &str, time: &str, as_text: bool) -> String {
    let quoted = |s: &str| Value::from(s).to_string();
    if as_text {
        return format!("time={} level={level} msg={}", quoted(time), quoted(message));
    }
    escape_html(&format!("{{\"level\":{},\"msg\":{},\"time\":{}}}", quoted(level), quoted(message), quoted(time)))
}

fn say(level: &str, message: &str) {
    let as_text = AS_TEXT.get().copied().unwrap_or(false);
    eprintln!("{}", line(level, message, &time::rfc3339(Timestamp::now()), as_text));
}

pub fn fatal(message: &str) {
    say("fatal", message);
}

pub fn error(message: &str) {
    say("error", message);
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
    fn lines() {
        let now = "2026-01-02T03:04:05Z";
        assert_eq!(
            line("fatal", "rpc error: desc = \"a\" < b", now, false),
            r#"{"level":"fatal","msg":"rpc error: desc = \"a\" \u003c b","time":"2026-01-02T03:04:05Z"}"#
        );
        assert_eq!(line("warning", "a \"b\"", now, true), r#"time="2026-01-02T03:04:05Z" level=warning msg="a \"b\"""#);
    }
}
