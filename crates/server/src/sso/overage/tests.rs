//! Groups that Entra ID leaves out, against something that stands in for Microsoft Graph.

use crate::sso::{DexTls, Sso, SsoConfig, config::Graph};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

/// Stands in for Microsoft Graph.
struct StandIn {
    endpoint: String,
    calls: Arc<AtomicUsize>,
    request: Arc<Mutex<String>>,
}

async fn stand_in(status: u16, body: Value) -> StandIn {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}/v1.0", listener.local_addr().expect("an address"));
    let calls = Arc::new(AtomicUsize::new(0));
    let request = Arc::new(Mutex::new(String::new()));
    let (counted, seen) = (Arc::clone(&calls), Arc::clone(&request));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut text = String::new();
            while !text.ends_with('}') {
                let mut buffer = [0; 4096];
                let Ok(count @ 1..) = stream.read(&mut buffer).await else {
                    break;
                };
                text.push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
            *seen.lock().expect("not poisoned") = text;
            let body = body.to_string();
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    StandIn {
        endpoint,
        calls,
        request,
    }
}

fn settings(azure: &str) -> Result<Option<SsoConfig>, String> {
    let text = format!("issuer: https://login.example.test\nclientID: portal\nazure: {azure}\n");
    let data = BTreeMap::from([("oidc.config".to_owned(), text)]);
    SsoConfig::read(&data, &BTreeMap::new(), b"").map_err(|e| e.to_string())
}

fn config(endpoint: Option<&str>) -> Arc<SsoConfig> {
    let mut config = settings("{}").expect("settings").expect("a provider");
    // Settings cannot name another host than Microsoft's.
    config.graph = endpoint.map(|endpoint| Graph {
        endpoint: endpoint.to_owned(),
        lifetime: None,
    });
    Arc::new(config)
}

fn access_token(scp: &Value) -> String {
    let encoded = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    format!(
        "{}.{}.c2ln",
        encoded(json!({})),
        encoded(json!({ "scp": scp }))
    )
}

fn with_note() -> Map<String, Value> {
    let claims = json!({
        "sub": "u-9",
        "_claim_names": {"groups": "src1"},
        "_claim_sources": {"src1": {"endpoint": "http://127.0.0.1:9/never"}},
    });
    claims.as_object().expect("an object").clone()
}

fn sso() -> Sso {
    Sso::new(String::new(), DexTls::default())
}

#[tokio::test]
async fn groups_that_a_token_leaves_out_are_asked_for_once() {
    let graph = stand_in(200, json!({"value": ["g-1", "g-2"]})).await;
    let config = config(Some(&graph.endpoint));
    for scp in [json!("User.Read openid"), json!(["openid", "user.read"])] {
        let sso = sso();
        sso.signed_in("u-9", access_token(&scp), Some(600));
        for _ in 0..100 {
            let mut claims = with_note();
            sso.add_groups(&config, &mut claims).await.expect("groups");
            assert_eq!(claims["groups"], json!(["g-1", "g-2"]));
        }
    }
    assert_eq!(graph.calls.load(Ordering::SeqCst), 2);
    let request = graph.request.lock().expect("not poisoned").clone();
    assert!(request.starts_with("POST /v1.0/me/getMemberGroups HTTP/1.1\r\n"));
    assert!(request.ends_with("\r\n\r\n{\"securityEnabledOnly\":true}"));
    assert!(
        request
            .to_lowercase()
            .contains("authorization: bearer e30.")
    );
}

#[tokio::test]
async fn without_the_scope_an_answer_or_a_token_nobody_is_without_groups() {
    let refusing = stand_in(503, json!({"value": ["g-1"]})).await;
    let odd = stand_in(200, json!({"value": "g-1"})).await;
    let read = json!("User.Read");
    for (graph, token, calls, said) in [
        (
            &refusing,
            Some(access_token(&json!("openid"))),
            0,
            "missing User.Read scope",
        ),
        (
            &refusing,
            Some("opaque".to_owned()),
            0,
            "missing User.Read scope",
        ),
        (&refusing, None, 0, "no accessToken for u-9"),
        (&refusing, Some(access_token(&read)), 1, "503"),
        (&odd, Some(access_token(&read)), 1, "not the expected JSON"),
    ] {
        let sso = sso();
        if let Some(token) = token {
            sso.signed_in("u-9", token, Some(600));
        }
        let config = config(Some(&graph.endpoint));
        let added = sso.add_groups(&config, &mut with_note()).await;
        let error = added.expect_err(said).to_string();
        assert!(error.contains(said), "{error}");
        assert_eq!(graph.calls.swap(0, Ordering::SeqCst), calls, "{said}");
    }
}

#[tokio::test]
async fn nobody_is_asked_without_the_option_or_the_note() {
    let graph = stand_in(200, json!({"value": ["other"]})).await;
    let sso = sso();
    sso.signed_in("u-9", access_token(&json!("User.Read")), Some(600));
    let mut claims = with_note();
    let added = sso.add_groups(&config(None), &mut claims).await;
    assert!(added.is_ok() && !claims.contains_key("groups"));
    let mut named = Map::from_iter([
        ("sub".into(), "u-9".into()),
        ("groups".into(), json!(["g"])),
    ]);
    let added = sso
        .add_groups(&config(Some(&graph.endpoint)), &mut named)
        .await;
    assert!(added.is_ok() && named["groups"] == json!(["g"]));
    assert_eq!(graph.calls.load(Ordering::SeqCst), 0);
}

#[test]
fn access_tokens_go_to_microsoft_alone() {
    let on = |endpoint: &str| {
        settings(&format!(
            "{{enableUserGroupOverageClaim: true, graphApiEndpoint: \"{endpoint}\"}}"
        ))
    };
    let endpoint = |settings: Result<Option<SsoConfig>, String>| {
        let graph = settings.expect("settings").expect("a provider").graph;
        graph.map(|graph| graph.endpoint)
    };
    let public = Some("https://graph.microsoft.com/v1.0".to_owned());
    assert_eq!(endpoint(on("")), public);
    assert_eq!(endpoint(settings("{}")), None);
    let us = Some("https://graph.microsoft.us/v1.0".to_owned());
    assert_eq!(endpoint(on("https://graph.microsoft.us/v1.0/")), us);
    for refused in [
        "http://graph.microsoft.com/v1.0",
        "https://graph.windows.example.test/v1.0",
        "https://graph.microsoft.com.example.test/v1.0",
        "https://graph.microsoft.com@example.test/v1.0",
        "https://a:b@graph.microsoft.com/v1.0",
        "https://graph.microsoft.com/v1.0?x=",
        "graph.microsoft.com",
    ] {
        let error = on(refused).err().expect(refused);
        assert!(error.contains("azure.graphApiEndpoint"), "{error}");
    }
    let error = settings("{userGroupOverageClaimCacheExpiration: soon}").err();
    assert!(error.is_some_and(|e| e.contains("userGroupOverageClaimCacheExpiration \"soon\"")));
}
