//! The Authorization header from the environment. Pure.

use super::{AssetSyncerError, Surroundings, failed};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use std::collections::BTreeMap;
use tiphys_repo::Secret;

#[derive(Deserialize, Default)]
#[serde(default)]
struct DockerConfig {
    auths: Option<BTreeMap<String, Entry>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    username: String,
    password: String,
    /// `user:password` in base64; it counts before the two.
    auth: String,
}

/// The whole value of the header; empty for none. White space around it is not part of it.
///
/// # Errors
/// The docker config is none, or has not exactly one entry.
pub(crate) fn header(surroundings: &Surroundings) -> Result<Secret, AssetSyncerError> {
    let config = surroundings.docker_config.expose();
    if config.is_empty() {
        return Ok(Secret::new(surroundings.authorization.expose().trim()));
    }
    // The parser's own message may quote the text, which has a password in it.
    let config: DockerConfig = serde_json::from_str(config).map_err(|e| {
        failed(format!(
            "the docker config is invalid at column {}",
            e.column()
        ))
    })?;
    let mut auths = config.auths.unwrap_or_default().into_values();
    let entry = match (auths.next(), auths.next()) {
        (Some(entry), None) => entry,
        (None, _) => return Err(failed("the given config doesn't include an auth entry")),
        (Some(_), Some(_)) => {
            return Err(failed("the given config should include one auth entry"));
        }
    };
    let pair = if entry.auth.is_empty() {
        format!("{}:{}", entry.username, entry.password)
    } else {
        let bad = || failed("the auth of the docker config is not user:password in base64");
        let text = STANDARD.decode(entry.auth.trim()).map_err(|_| bad())?;
        let text = String::from_utf8(text).map_err(|_| bad())?;
        text.contains(':').then_some(text).ok_or_else(bad)?
    };
    Ok(Secret::new(format!("Basic {}", STANDARD.encode(pair))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_is_a_header() {
        for (header_value, config, wanted) in [
            ("Bearer t\n", "", Ok("Bearer t")),
            ("", "", Ok("")),
            (
                "Bearer t",
                r#"{"auths":{"h":{"username":"user","password":"pass"}}}"#,
                Ok("Basic dXNlcjpwYXNz"),
            ),
            (
                "",
                r#"{"auths":{"h":{"username":"x","password":"y","auth":"dXNlcjpwYXNz"}}}"#,
                Ok("Basic dXNlcjpwYXNz"),
            ),
            (
                "",
                r#"{"auths":{}}"#,
                Err("error: the given config doesn't include an auth entry"),
            ),
            (
                "",
                r#"{"h":{"auth":"dXNlcjpwYXNz"}}"#,
                Err("error: the given config doesn't include an auth entry"),
            ),
            (
                "",
                r#"{"auths":{"a":{},"b":{}}}"#,
                Err("error: the given config should include one auth entry"),
            ),
            (
                "",
                r#"{"auths":{"a":{"auth":"%%"}}}"#,
                Err("error: the auth of the docker config is not user:password in base64"),
            ),
            (
                "",
                "secret",
                Err("error: the docker config is invalid at column 1"),
            ),
        ] {
            let surroundings = Surroundings {
                authorization: header_value.into(),
                docker_config: config.into(),
                ..Surroundings::default()
            };
            let found = header(&surroundings);
            let found = found
                .as_ref()
                .map(Secret::expose)
                .map_err(ToString::to_string);
            assert_eq!(found, wanted.map_err(str::to_owned), "{config}");
        }
    }
}
