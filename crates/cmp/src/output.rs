//! What a command prints, as documents.
//!
//! Main function: [`documents`].

use serde_json::Value;
use tiphys_gocompat::{json, yaml};

/// The documents of a text in JSON or YAML, each as JSON. Empty ones are left out. Blocks.
pub fn documents(text: &[u8]) -> Result<Vec<String>, String> {
    if text.trim_ascii_start().starts_with(b"{") {
        let values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
        if let Ok(values) = values.collect::<Result<Vec<_>, _>>() {
            return Ok(values.iter().map(json::to_string).collect());
        }
    }
    let limits = yaml::Limits {
        bytes: usize::MAX,
        ..yaml::Limits::default()
    };
    let failed = |e: yaml::YamlError| {
        format!("failed to unmarshal manifest: error converting YAML to JSON: {e}")
    };
    let documents = yaml::parse_documents(text, &limits).map_err(failed)?;
    let values = documents.into_iter().map(|document| document.value);
    let present = values.filter(|value| !value.is_null());
    Ok(present.map(|value| json::to_string(&value)).collect())
}

#[cfg(test)]
mod tests {
    use super::documents;

    #[test]
    fn documents_are_split() {
        for (text, want) in [
            ("", &[][..]),
            ("---\n# nothing\n---\nnull\n", &[]),
            (
                "{\"a\": 1}\n{\"b\": \"<\"}",
                &["{\"a\":1}", "{\"b\":\"\\u003c\"}"],
            ),
            (
                "a: 1\n---\nb: [x]\n---\n",
                &["{\"a\":1}", "{\"b\":[\"x\"]}"],
            ),
            ("{a: 1}", &["{\"a\":1}"]),
            ("text", &["\"text\""]),
        ] {
            let found = documents(text.as_bytes()).expect("documents");
            assert_eq!(found, want, "{text}");
        }
        let e = documents(b"a: [").expect_err("no YAML");
        assert!(e.starts_with("failed to unmarshal manifest: error converting YAML to JSON: "));
    }
}
