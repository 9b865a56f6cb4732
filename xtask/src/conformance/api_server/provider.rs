//! The identity provider of the cases, on loopback: its keys, and nothing that signs anything. Main
//! function: [`serve`].

use anyhow::Context;
use axum::{Json, Router, routing::get};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use tokio::{net::TcpListener, task::JoinHandle};

const PORT: u16 = 18_097;

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
    let router = Router::new()
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
