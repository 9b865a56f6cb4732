//! Sign-outs at one of several servers, of sessions that have had more than one token.

use crate::{
    common::World,
    sso::{
        Provider,
        browser::{browse, given, signed_in},
        now, projects,
    },
};
use serde_json::json;
use std::time::Duration;
use tiphys_server::ports::Store as _;

/// A browser signs in, and is soon given another token. Returns both.
async fn tokens_of_a_session(world: &World, provider: &Provider) -> (String, String) {
    let first = provider.sign(json!({"iat": now() - 60, "exp": now() + 120, "jti": "1"}));
    let tokens = json!({"id_token": first, "refresh_token": "refresh-1"});
    let session = signed_in(world, provider, tokens).await;
    let second = provider.sign(json!({"exp": now() + 3600, "jti": "2"}));
    *provider.token.lock().expect("not poisoned") = json!({"id_token": second});
    let of_second = [("argocd.token".to_owned(), second.clone())];
    assert_eq!(given(world, &session).await, of_second);
    (first, second)
}

/// A user who signs out has often been given another token meanwhile, by another server.
#[tokio::test]
async fn a_sign_out_at_another_server_ends_all_tokens_of_a_session() {
    let provider = Provider::start().await;
    let world = provider.world("refreshTokenThreshold: 5m\n", &[]).await;
    let (first, second) = tokens_of_a_session(&world, &provider).await;
    assert!(projects(&world, &first).await.is_ok());

    let other = world.again(tiphys_server::Options::default()).await;
    let session = format!("argocd.token={second}");
    let (status, _, text) = browse(&other, "/auth/logout", &session).await;
    assert_eq!(status, 303, "{text}");
    // The other learns of the first from the one that gave the second.
    for (server, token) in [&world, &other]
        .into_iter()
        .flat_map(|server| [(server, &first), (server, &second)])
    {
        let refused = async {
            loop {
                let answer = projects(server, token).await;
                // That is told while nobody waits.
                if answer.is_err() || std::ptr::eq(server, &world) {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let refused = tokio::time::timeout(Duration::from_secs(60), refused).await;
        let said = "invalid session: token is revoked, please re-login".to_owned();
        assert_eq!(refused, Ok(Err((401, said))));
    }
}

/// The server that gave the other tokens ends them, though nobody uses them there.
#[tokio::test]
async fn a_sign_out_elsewhere_ends_tokens_that_are_used_nowhere_else() {
    let provider = Provider::start().await;
    let world = provider.world("refreshTokenThreshold: 5m\n", &[]).await;
    let (_, second) = tokens_of_a_session(&world, &provider).await;

    let other = world.again(tiphys_server::Options::default()).await;
    assert!(projects(&other, &second).await.is_ok());
    // The provider gave this one the id of the first.
    let ends = now() + 7200;
    let namesake = provider.sign(json!({"exp": ends, "jti": "1"}));
    let session = format!("argocd.token={namesake}");
    let (status, _, text) = browse(&other, "/auth/logout", &session).await;
    assert_eq!(status, 303, "{text}");
    // Nothing but this asks the other, and nothing at all asks the first.
    let refused = async {
        while projects(&other, &second).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let refused = tokio::time::timeout(Duration::from_secs(60), refused).await;
    assert!(refused.is_ok(), "the second token is still valid");

    // The first of the two with one id ends sooner, and does not make the record shorter.
    let record = world.store.secret("tiphys-revoked-sessions").await;
    let record = record.expect("a record").data;
    assert_eq!(record.get("1"), Some(&ends.to_string().into_bytes()));
    assert!(record.contains_key("2"), "{:?}", record.keys());
}
