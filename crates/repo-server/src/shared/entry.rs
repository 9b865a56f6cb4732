//! Shared values as JSON, to the byte: manifests carry a hash of their own text.
//!
//! Main functions: [`read`] and [`written`].

use base64::{Engine as _, engine::general_purpose::URL_SAFE};
use serde::{Deserialize, Serialize};
use tiphys_api::rpc::repo_server::ManifestResponse;

/// What a text of manifests begins with; its hash follows, in quotes.
const BEGIN: &str = r#"{"cacheEntryHash":""#;

/// Manifests, or what is known of renders that failed. Without the hash, which comes first.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    manifest_response: Option<ManifestResponse>,
    most_recent_error: String,
    first_failure_timestamp: i64,
    number_of_consecutive_failures: i64,
    number_of_cached_responses_returned: i64,
}

/// A value as Go's encoder writes it. `None`: it is no JSON.
pub(super) fn json(value: &impl Serialize) -> Option<String> {
    let text = serde_json::to_string(value).ok()?;
    let mut escaped = String::with_capacity(text.len());
    // In JSON these are only in texts.
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    Some(escaped)
}

/// The manifests in a text. `None`: it has none, or another hash.
pub(super) fn read(json: &[u8]) -> Option<ManifestResponse> {
    let text = std::str::from_utf8(json).ok()?.trim_end();
    let (hash, rest) = text.strip_prefix(BEGIN)?.split_once('"')?;
    if hash != hash_of(rest) {
        tracing::warn!("shared manifests do not have their hash, and are not used");
        return None;
    }
    let rest = format!("{{{}", rest.strip_prefix(',')?);
    let entry: Entry = serde_json::from_str(&rest).ok()?;
    let failed = entry.first_failure_timestamp != 0 || !entry.most_recent_error.is_empty();
    entry.manifest_response.filter(|_| !failed)
}

/// The text of manifests.
pub(super) fn written(response: &ManifestResponse) -> Option<Vec<u8>> {
    let entry = Entry {
        manifest_response: Some(response.clone()),
        most_recent_error: String::new(),
        first_failure_timestamp: 0,
        number_of_consecutive_failures: 0,
        number_of_cached_responses_returned: 0,
    };
    let fields = json(&entry)?;
    let rest = format!(",{}", fields.strip_prefix('{')?);
    let hash = hash_of(&rest);
    Some(format!("{BEGIN}{hash}\"{rest}\n").into_bytes())
}

/// Of the text with an empty hash.
fn hash_of(rest: &str) -> String {
    let text = BEGIN.bytes().chain(*b"\"").chain(rest.bytes());
    URL_SAFE.encode(fnv64a(text).to_be_bytes())
}

/// 64-bit FNV-1a.
fn fnv64a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response() -> ManifestResponse {
        ManifestResponse {
            manifests: vec![r#"{"kind":"A","text":"a<b & c>d"}"#.to_owned()],
            revision: "abc".to_owned(),
            source_type: "Directory".to_owned(),
            ..ManifestResponse::default()
        }
    }

    #[test]
    fn manifests_are_written_and_read() {
        let written = written(&response()).expect("JSON");
        assert_eq!(read(&written), Some(response()));
        let text = String::from_utf8(written).expect("text");
        let rest = r#","manifestResponse":{"manifests":["{\"kind\":\"A\",\"text\":\"a\u003cb \u0026 c\u003ed\"}"],"revision":"abc","sourceType":"Directory"},"mostRecentError":"","firstFailureTimestamp":0,"numberOfConsecutiveFailures":0,"numberOfCachedResponsesReturned":0}"#;
        assert!(text.ends_with(&format!("\"{rest}\n")), "{text}");
        assert!(read(text.replace("abc", "abd").as_bytes()).is_none());
        assert!(read(b"{}").is_none() && read(b"").is_none());
    }

    #[test]
    fn failures_are_no_manifests() {
        let rest = r#","manifestResponse":null,"mostRecentError":"no","firstFailureTimestamp":1,"numberOfConsecutiveFailures":1,"numberOfCachedResponsesReturned":0}"#;
        let text = format!("{BEGIN}{}\"{rest}\n", hash_of(rest));
        assert!(read(text.as_bytes()).is_none());
    }

    #[test]
    fn the_hash_is_go_s() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv64a(text.bytes()), hash, "{text}");
        }
        let empty = URL_SAFE.encode(fnv64a(r#"{"cacheEntryHash":""}"#.bytes()).to_be_bytes());
        assert_eq!(hash_of("}"), empty);
    }
}
