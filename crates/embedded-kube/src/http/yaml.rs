//! Responses in YAML. Main function: [`encode`].

use super::{failure, negotiate};
use crate::status::Status;
use axum::body::Body;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::BodyExt;
use serde_json::Value;
use tiphys_gocompat::yaml::to_string_within;

/// A response in YAML may always have so many bytes,
const SHORT: usize = 1 << 20;
/// and so many times those of its JSON.
const MANIFOLD: usize = 16;
const TOO_LONG: &str = "the YAML is more than 16 times as long as the JSON: its lists are nested \
                        too deeply";

/// Converts a JSON response to YAML; leaves others unchanged.
pub async fn encode(response: Response<Body>) -> Response<Body> {
    if response
        .headers()
        .get(CONTENT_TYPE)
        .is_none_or(|found| found != "application/json")
    {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let json = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return failure(&Status::internal(error)),
    };
    let most = SHORT.max(json.len().saturating_mul(MANIFOLD));
    match serde_json::from_slice::<Value>(&json).map(|value| to_string_within(&value, most)) {
        Ok(None) => failure(&Status::internal(TOO_LONG)),
        Ok(Some(text)) => {
            parts
                .headers
                .insert(CONTENT_TYPE, HeaderValue::from_static(negotiate::YAML));
            Response::from_parts(parts, Body::from(text))
        }
        Err(error) => failure(&Status::internal(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::json_response;
    use super::*;
    use serde_json::json;

    async fn text(response: Response<Body>) -> String {
        let body = encode(response)
            .await
            .into_body()
            .collect()
            .await
            .expect("a body");
        String::from_utf8(body.to_bytes().to_vec()).expect("a text")
    }

    #[tokio::test]
    async fn only_json_is_written_anew() {
        let object =
            json!({"kind": "ConfigMap", "data": {"b": "1", "a": "yes"}, "apiVersion": "v1"});
        assert_eq!(
            text(json_response(&object)).await,
            "apiVersion: v1\ndata:\n  a: \"yes\"\n  b: \"1\"\nkind: ConfigMap\n"
        );
        assert_eq!(
            text(Response::new(Body::from("{\"a\": 1}"))).await,
            "{\"a\": 1}"
        );
    }
    #[tokio::test]
    async fn deeply_nested_lists_do_not_become_hundreds_of_times_as_long() {
        let nested = |levels: usize| {
            let items = json!(vec![1; 100_000]);
            (0..levels).fold(items, |inner, _| json!([inner]))
        };
        assert!(
            text(json_response(&nested(3)))
                .await
                .starts_with("- - - - 1\n")
        );
        let answer = text(json_response(&nested(90))).await;
        assert!(answer.contains("nested too deeply"), "{answer:.200}");
    }
}
