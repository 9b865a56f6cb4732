//! What the cases find on loopback: their identity provider, with its keys and one token that it
//! gives for a code, and the service of extensions, which tells what it got. Main functions:
//! [`serve`] and [`echo`].

use anyhow::Context;
use axum::{
    Json, Router,
    body::Bytes,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use tokio::{net::TcpListener, task::JoinHandle};

const PORT: u16 = 18_097;
const ECHO_PORT: u16 = 18_099;
/// Headers of the connection, and of the client that passes a request on.
const NOT_TOLD: [&str; 6] = [
    "content-length",
    "connection",
    "user-agent",
    "traceparent",
    "accept-encoding",
    "accept",
];

/// Serves the keys of the fixtures until aborted.
pub async fn serve(fixtures: &Value) -> anyhow::Result<JoinHandle<()>> {
    let issuer = fixtures["issuer"].as_str().context("no issuer")?.to_owned();
    let discovery = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/auth"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "scopes_supported": ["openid", "profile", "email", "groups"],
        "claims_supported": ["sub", "email", "groups"],
    });
    let keys = fixtures["jwks"].clone();
    let token = fixtures["tokens"]["sso"].clone();
    let router = Router::new()
        .route(
            "/token",
            post(move |body: String| async move { exchanged(&body, &token) }),
        )
        .route(
            "/.well-known/openid-configuration",
            get(move || async move { Json(discovery) }),
        )
        .route("/keys", get(move || async move { Json(keys) }));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await;
    let listener = listener.with_context(|| format!("the cases need port {PORT}"))?;
    Ok(tokio::spawn(async move {
        // It ends with the runtime.
        let _ = axum::serve(listener, router).await;
    }))
}

/// The answer to the exchange of a code, which says what it is to be.
fn exchanged(body: &str, token: &Value) -> Response {
    let code = body
        .split('&')
        .find_map(|pair| pair.strip_prefix("code="))
        .unwrap_or_default();
    let mut answer = json!({"access_token": "a", "token_type": "Bearer", "expires_in": 300});
    match code {
        "ok" => answer["id_token"] = token.clone(),
        "no-id-token" => {}
        _ => {
            let refusal = json!({"error": "invalid_grant", "error_description": "no such code"});
            return (StatusCode::BAD_REQUEST, Json(refusal)).into_response();
        }
    }
    Json(answer).into_response()
}

/// Answers every request with what it was, until aborted.
pub async fn echo() -> anyhow::Result<JoinHandle<()>> {
    let told = |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
        let path = uri.path_and_query().map(ToString::to_string);
        let headers: serde_json::Map<String, Value> = headers
            .iter()
            .filter(|(name, _)| !NOT_TOLD.contains(&name.as_str()))
            .map(|(name, value)| {
                let text = String::from_utf8_lossy(value.as_bytes());
                (name.as_str().to_owned(), text.into_owned().into())
            })
            .collect();
        let body = String::from_utf8_lossy(&body).into_owned();
        let method = method.to_string();
        Json(json!({"method": method, "path": path, "headers": headers, "body": body}))
    };
    let router = Router::new().fallback(told);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, ECHO_PORT)).await;
    let listener = listener.with_context(|| format!("the cases need port {ECHO_PORT}"))?;
    Ok(tokio::spawn(async move {
        // It ends with the runtime.
        let _ = axum::serve(listener, router).await;
    }))
}
