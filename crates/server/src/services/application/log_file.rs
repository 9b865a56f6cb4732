//! Logs as a file that a browser saves. Main function: [`log_file`].

use crate::parameters::Parameters;
use serde::Deserialize;
use tiphys_rpc::StreamFile;

/// What the file needs of a line.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    content: String,
    #[serde(default)]
    last: bool,
}

/// The file that a query with `download=true` asks for, named after its container where the query
/// says which.
pub fn log_file(query: &str) -> Option<StreamFile> {
    let values = Parameters::of_query(query);
    let value = |name: &str| values.first(name).unwrap_or_default();
    if value("download") != "true" {
        return None;
    }
    let parts = [value("namespace"), value("podName"), value("container")];
    let name = if parts.iter().all(|part| is_name(part)) {
        format!("{}.log", parts.join("-"))
    } else {
        "log.log".to_owned()
    };
    Some(StreamFile { name, content })
}

/// Nothing else of a query becomes part of a header.
fn is_name(text: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 253
        && text.starts_with(is_alphanumeric)
        && text.ends_with(is_alphanumeric)
        && text.chars().all(|c| is_alphanumeric(c) || "-.".contains(c))
}

fn content(message: &[u8]) -> Option<Vec<u8>> {
    let line: Line = serde_json::from_slice(message).ok()?;
    (!line.last).then(|| (line.content + "\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_after_its_container() {
        let name = |query: &str| log_file(query).map(|file| file.name);
        for (query, wanted) in [
            ("download=false", None),
            ("container=web", None),
            ("download=true", Some("log.log")),
            ("download=true&namespace=a&container=web", Some("log.log")),
            (
                "download=true&namespace=a&podName=p-0&container=web",
                Some("a-p-0-web.log"),
            ),
            (
                "download=true&namespace=a&podName=p%0d%0aX:&container=web",
                Some("log.log"),
            ),
        ] {
            assert_eq!(name(query).as_deref(), wanted, "{query}");
        }
    }

    #[test]
    fn the_last_message_is_no_line() {
        let add = |text: &str| content(text.as_bytes());
        assert_eq!(
            add(r#"{"content":"Hi","last":false}"#),
            Some(b"Hi\n".to_vec())
        );
        assert_eq!(add(r#"{"content":"","last":true}"#), None);
        assert_eq!(add("no message"), None);
    }
}
