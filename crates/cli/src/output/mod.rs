//! Output of commands: tables, documents, times, trees and differences. Main functions: [`print`]
//! and [`document`]. It turns values into text; it must not know how they were fetched.

pub mod diff;
pub mod log;
pub mod reader;
pub mod sort;
pub mod summary;
pub mod table;
pub mod time;
pub mod tree;

use crate::failure::Failure;
use serde::Serialize;
use serde_json::Value;
use std::{
    io::{self, Write as _},
    sync::OnceLock,
};
use tiphys_repo::net::reason;

/// Why something that was printed did not arrive.
static LOST: OnceLock<String> = OnceLock::new();

/// Writes to standard output. A closed pipe (`| head`) is not an error; any other error is kept for
/// [`lost`].
pub fn print(text: &str) {
    try_print(text);
}

/// Why output got lost, such as on a full disk: a command must not end as if all were printed.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Fails if output got [`lost`].
pub fn arrived() -> Result<(), Failure> {
    match lost() {
        Some(why) => Err(Failure::fatal(format!("write /dev/stdout: {why}"))),
        None => Ok(()),
    }
}

/// The same; false: nobody reads it any more, so that whoever prints without end can end.
pub fn try_print(text: &str) -> bool {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(e) = &written
        && e.kind() != io::ErrorKind::BrokenPipe
    {
        // The first error says it; another thread may have been faster.
        let _ = LOST.set(reason(e));
    }
    written.is_ok()
}

/// JSON as Go's `MarshalIndent` prints it: two spaces, and escaped HTML characters.
pub fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Failure::error(format!("unable to marshal resource to json: {e}")))?;
    Ok(escape_html(&text) + "\n")
}

/// These characters occur only in strings, so the text can be escaped as a whole.
pub(crate) fn escape_html(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)))
            }
            _ => out.push(c),
        }
    }
    out
}

pub fn yaml(value: &impl Serialize) -> Result<String, Failure> {
    let value = serde_json::to_value(value)
        .map_err(|e| Failure::error(format!("unable to marshal resource to yaml: {e}")))?;
    Ok(tiphys_gocompat::yaml::to_string(&value))
}

/// A value in the format given by `-o`.
pub fn document(value: &impl Serialize, format: &str) -> Result<String, Failure> {
    match format {
        "json" => json(value),
        "yaml" => yaml(value),
        _ => Err(unknown_format(format)),
    }
}

/// An object as somebody declares it: without what only a cluster knows. The members are in the
/// order of their names.
pub fn declared(object: &impl Serialize) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(object).map_err(|e| Failure::error(e.to_string()))?;
    if let Value::Object(object) = &mut value {
        object.remove("status");
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("creationTimestamp");
            metadata.remove("namespace");
        }
    }
    Ok(value)
}

pub fn unknown_format(format: &str) -> Failure {
    Failure::error(format!("unknown output format: {format}"))
        .with_hint("the command's --help lists the formats that -o takes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_as_go_prints_it() {
        let text = json(&json!({"b": [], "a": {"x": "1 < 2 && 3 > 2"}})).expect("a value");
        assert_eq!(
            text,
            "{\n  \"a\": {\n    \"x\": \"1 \\u003c 2 \\u0026\\u0026 3 \\u003e 2\"\n  },\n  \"b\": []\n}\n"
        );
    }

    #[test]
    fn an_object_is_declared_without_its_status() {
        let declared = declared(&json!({
            "metadata": {"name": "a", "namespace": "b", "creationTimestamp": null},
            "status": {"health": {}},
            "spec": {"z": 1, "a": 2},
        }));
        let text = declared.and_then(|value| yaml(&value)).expect("YAML");
        assert_eq!(text, "metadata:\n  name: a\nspec:\n  a: 2\n  z: 1\n");
    }

    #[test]
    fn a_format_that_is_not_known_is_named() {
        let e = document(&json!({}), "xml").expect_err("no such format");
        assert_eq!(
            (e.code, e.message.as_str()),
            (20, "unknown output format: xml")
        );
    }
}
