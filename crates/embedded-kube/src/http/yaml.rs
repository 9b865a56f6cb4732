//! Responses in YAML. Main function: [`encode`].

use super::{failure, negotiate};
use crate::status::Status;
use axum::body::Body;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::BodyExt;
use serde_json::Value;

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
    let text = match body.collect().await {
        Ok(body) => serde_json::from_slice::<Value>(&body.to_bytes())
            .map(|value| tiphys_gocompat::yaml::to_string(&value)),
        Err(error) => return failure(&Status::internal(error)),
    };
    match text {
        Ok(text) => {
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
}
