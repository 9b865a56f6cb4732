//! The requests to a server. Main type: [`Script`]; JSON in and out.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A list of requests in a namespace of its own, which exists before the first one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// A description for readers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    pub steps: Vec<Step>,
}

/// One request, or the beginning or end of a watch.
///
/// In all fields `${ns}` stands for the script's namespace, `${ip}` for an address of its own, and
/// `${3.metadata.uid}` for that field in the response to step 3 (counted from 0).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// As it is sent, without `?`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub accept: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// A body that is not JSON, or that a JSON tree cannot represent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
    /// Repeated until the response has this status: for what a server does asynchronously, such as
    /// serving a new kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u16>,
}

/// The two ends of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Watch {
    /// The request opens a stream; the response is its head.
    Start,
    /// The events since then, of the stream that step `n` opened.
    Drain(usize),
}

impl Step {
    /// The body as it is sent.
    pub fn payload(&self) -> Option<String> {
        self.text
            .clone()
            .or_else(|| self.body.as_ref().map(Value::to_string))
    }

    /// Method and path, for messages.
    pub fn title(&self) -> String {
        match self.watch {
            Some(Watch::Drain(of)) => format!("events of the watch of step {of}"),
            Some(Watch::Start) => format!("WATCH {}{}", self.path, self.query_part()),
            None => format!("{} {}{}", self.method, self.path, self.query_part()),
        }
    }

    fn query_part(&self) -> String {
        if self.query.is_empty() {
            String::new()
        } else {
            format!("?{}", self.query)
        }
    }
}

/// Replaces `${...}`; `lookup` gets the text between the braces.
pub fn fill(text: &str, lookup: &dyn Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        out.push_str(&rest[..start]);
        out.push_str(&lookup(&rest[start + 2..start + length]));
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn placeholders_are_filled_and_the_rest_stays() {
        let lookup = |name: &str| format!("<{name}>");
        assert_eq!(
            fill("/a/${ns}/b/${3.metadata.uid}", &lookup),
            "/a/<ns>/b/<3.metadata.uid>"
        );
        assert_eq!(fill("$1 ${open", &lookup), "$1 ${open");
    }
}
