//! Signing in with an identity provider, which is on loopback here.

pub mod browser;

use crate::common::World;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::net::TcpListener;

const BASE: &str = "http://cd.example.com";
const POLICY: &str = "g, devs, role:dev\n\
                      p, role:dev, projects, get, team-a, allow\n\
                      p, user-1, clusters, get, *, allow\n\
                      p, u42, projects, get, team-b, allow\n\
                      p, proj:team-a:ci, projects, get, *, allow\n";

pub fn now() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    i64::try_from(now.as_secs()).expect("a time")
}

fn base64(bytes: &[u8]) -> String {
    use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// An identity provider. `code` says what its token endpoint answers.
pub struct Provider {
    issuer: String,
    key: Vec<u8>,
    /// The requests for tokens: their bodies and who asked.
    asked: Arc<Mutex<Vec<(String, String)>>>,
    /// The ID token for any code.
    pub token: Arc<Mutex<Value>>,
}

impl Provider {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let issuer = format!("http://{}", listener.local_addr().expect("an address"));
        let random = ring::rand::SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let key = document.expect("a key").as_ref().to_vec();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random);
        let pair = pair.expect("a key");
        let point = pair.public_key().as_ref();
        let jwks = json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig",
            "kid": "k1", "x": base64(&point[1..33]), "y": base64(&point[33..65])}]});
        let (asked, token) = (Arc::default(), Arc::new(Mutex::new(Value::Null)));
        let provider = Self {
            issuer: issuer.clone(),
            key,
            asked: Arc::clone(&asked),
            token: Arc::clone(&token),
        };
        let discovery = json!({"issuer": issuer,
            "authorization_endpoint": format!("{issuer}/auth?tenant=1"),
            "token_endpoint": format!("{issuer}/token"), "jwks_uri": format!("{issuer}/keys"),
            "userinfo_endpoint": format!("{issuer}/userinfo")});
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let (discovery, jwks) = (discovery.clone(), jwks.clone());
                let (asked, token) = (Arc::clone(&asked), Arc::clone(&token));
                let service = hyper::service::service_fn(move |request| {
                    let (discovery, jwks) = (discovery.clone(), jwks.clone());
                    let (asked, token) = (Arc::clone(&asked), Arc::clone(&token));
                    async move { answer(request, &discovery, &jwks, &asked, &token).await }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        provider
    }

    /// The usual claims with these changes; null removes one.
    fn claims(&self, changes: Value) -> Value {
        let mut claims = json!({"iss": self.issuer, "sub": "user-1", "aud": "argo",
            "iat": now(), "exp": now() + 3600, "email": "ann@example.com", "groups": ["devs"]});
        let fields = claims.as_object_mut().expect("claims");
        for (name, value) in changes.as_object().expect("claims") {
            if value.is_null() {
                fields.remove(name);
            } else {
                fields.insert(name.clone(), value.clone());
            }
        }
        claims
    }

    fn signed(&self, claims: &Value) -> String {
        let header = Header {
            kid: Some("k1".into()),
            ..Header::new(Algorithm::ES256)
        };
        let key = EncodingKey::from_ec_der(&self.key);
        jsonwebtoken::encode(&header, claims, &key).expect("it signs")
    }

    pub fn sign(&self, changes: Value) -> String {
        self.signed(&self.claims(changes))
    }

    fn config(&self, more: &str) -> String {
        format!(
            "name: Corp\nissuer: {}\nclientID: argo\ncliClientID: argo-cli\nclientSecret: $corp.secret\n{more}",
            self.issuer
        )
    }

    pub async fn world(&self, more: &str, settings: &[(&str, &str)]) -> World {
        let config = self.config(more);
        let mut all = vec![
            ("oidc.config", config.as_str()),
            ("url", BASE),
            ("policy.csv", POLICY),
        ];
        all.extend_from_slice(settings);
        let world = World::start_by_policy(&all, &[("corp.secret", "hush/+")]).await;
        for name in ["team-a", "team-b"] {
            let project = json!({"project": {"metadata": {"name": name}}});
            let (status, reply) = world
                .rest(Method::POST, "/api/v1/projects", Some(project))
                .await;
            assert_eq!(status, 200, "{reply}");
        }
        world
    }
}

async fn answer(
    request: Request<hyper::body::Incoming>,
    discovery: &Value,
    jwks: &Value,
    asked: &Mutex<Vec<(String, String)>>,
    token: &Mutex<Value>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let path = request.uri().path().to_owned();
    let authorization = request.headers().get("authorization");
    let authorization = authorization
        .and_then(|a| a.to_str().ok())
        .unwrap_or_default();
    let authorization = authorization.to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let body = String::from_utf8_lossy(&body).into_owned();
    let (status, answer) = match &*path {
        "/.well-known/openid-configuration" => (200, discovery.clone()),
        "/keys" => (200, jwks.clone()),
        "/userinfo" if authorization == "Bearer access-1" => {
            (200, json!({"sub": "user-1", "groups": ["devs"]}))
        }
        "/token" => {
            let refused = body.contains("code=refused");
            asked
                .lock()
                .expect("not poisoned")
                .push((body, authorization));
            if refused {
                let error = json!({"error": "invalid_grant", "error_description": "no such code"});
                (400, error)
            } else {
                (200, token.lock().expect("not poisoned").clone())
            }
        }
        _ => (404, Value::Null),
    };
    let response = Response::builder().status(status);
    let answer = Full::new(Bytes::from(answer.to_string()));
    Ok(response.body(answer).expect("an answer"))
}

pub async fn as_user(world: &World, token: &str, path: &str) -> (u16, Value) {
    world.rest_as(token, Method::GET, path, None).await
}

pub async fn projects(world: &World, token: &str) -> Result<Vec<String>, (u16, String)> {
    let (status, reply) = as_user(world, token, "/api/v1/projects").await;
    if status != 200 {
        return Err((
            status,
            reply["message"].as_str().unwrap_or_default().to_owned(),
        ));
    }
    let items = reply["items"].as_array().cloned().unwrap_or_default();
    let name = |p: &Value| {
        p["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    Ok(items.iter().map(name).collect())
}

#[tokio::test]
async fn tokens_of_the_provider_are_sessions() {
    let provider = Provider::start().await;
    let world = provider.world("", &[]).await;
    for (changes, seen) in [
        (json!({}), vec!["team-a"]),
        (json!({"groups": "devs"}), vec!["team-a"]),
        (json!({"groups": [5, "devs"]}), vec!["team-a"]),
        (json!({"groups": null}), vec![]),
        (json!({"aud": ["x", "argo-cli"]}), vec!["team-a"]),
        (
            json!({"federated_claims": {"user_id": "u42"}}),
            vec!["team-a", "team-b"],
        ),
        // Clocks differ.
        (
            json!({"iat": now() + 100, "nbf": now() + 100}),
            vec!["team-a"],
        ),
        (json!({"exp": (now() + 60) as f64 + 0.5}), vec!["team-a"]),
    ] {
        let token = provider.sign(changes.clone());
        let found = projects(&world, &token).await;
        let seen: Vec<String> = seen.into_iter().map(str::to_owned).collect();
        assert_eq!(found, Ok(seen), "{changes}");
    }
    let token = provider.sign(json!({}));
    let (_, info) = as_user(&world, &token, "/api/v1/session/userinfo").await;
    assert_eq!(
        info,
        json!({"loggedIn": true, "username": "ann@example.com", "iss": provider.issuer,
            "groups": ["devs"]})
    );
    let (status, refused) = as_user(&world, &token, "/api/v1/projects/ghost").await;
    let said = refused["message"].as_str().unwrap_or_default();
    assert_eq!(status, 403);
    assert!(
        said.starts_with("permission denied: projects, get, ghost, sub: user-1, iat: "),
        "{said}"
    );
}

#[tokio::test]
async fn nobody_else_makes_sessions() {
    let (provider, stranger) = (Provider::start().await, Provider::start().await);
    let world = provider.world("", &[]).await;
    let whole = provider.sign(json!({}));
    let (head, signature) = whole.rsplit_once('.').expect("a signature");
    let unsigned = format!(
        "{}.{}.",
        base64(br#"{"alg":"none"}"#),
        head.split_once('.').expect("two").1
    );
    let secret = EncodingKey::from_secret(b"hush/+");
    let symmetric = Header {
        kid: Some("k1".into()),
        ..Header::new(Algorithm::HS256)
    };
    let symmetric = jsonwebtoken::encode(&symmetric, &provider.claims(json!({})), &secret);
    let other_key = stranger.signed(&provider.claims(json!({})));
    let unknown_key = {
        let header = Header {
            kid: Some("k2".into()),
            ..Header::new(Algorithm::ES256)
        };
        let key = EncodingKey::from_ec_der(&provider.key);
        jsonwebtoken::encode(&header, &provider.claims(json!({})), &key).expect("it signs")
    };
    for (what, token) in [
        ("another audience", provider.sign(json!({"aud": "x"}))),
        ("no audience", provider.sign(json!({"aud": null}))),
        ("an empty audience", provider.sign(json!({"aud": []}))),
        ("expired", provider.sign(json!({"exp": now() - 1}))),
        ("never expires", provider.sign(json!({"exp": null}))),
        ("not valid yet", provider.sign(json!({"nbf": now() + 1000}))),
        ("no subject", provider.sign(json!({"sub": null}))),
        (
            "a project's subject",
            provider.sign(json!({"sub": "proj:team-a:ci"})),
        ),
        (
            "another issuer",
            provider.sign(json!({"iss": stranger.issuer})),
        ),
        ("another provider", stranger.sign(json!({}))),
        ("another key", other_key),
        ("an unknown key", unknown_key),
        ("no signature", format!("{head}.")),
        ("a cut signature", format!("{head}.{}", &signature[..40])),
        ("alg none", unsigned),
        ("alg HS256", symmetric.expect("it signs")),
    ] {
        let refused = projects(&world, &token).await;
        let expected = "invalid session: failed to verify the token".to_owned();
        assert_eq!(refused, Err((401, expected)), "{what}");
    }
}

#[tokio::test]
async fn a_provider_that_was_just_configured_counts() {
    let provider = Provider::start().await;
    let secrets = [("corp.secret", "hush/+")];
    let world = World::start_by_policy(&[("policy.csv", POLICY)], &secrets).await;
    let token = provider.sign(json!({}));
    assert!(projects(&world, &token).await.is_err());
    world.store.configure("oidc.config", &provider.config(""));
    // Longer than the moment in which strangers cannot make settings be read again, and shorter
    // than settings are remembered.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(projects(&world, &token).await.is_ok());
}

#[tokio::test]
async fn settings_decide_which_tokens_count() {
    let provider = Provider::start().await;
    let token = provider.sign(json!({}));
    let no_audience = provider.sign(json!({"aud": null}));
    let world = provider
        .world(
            "skipAudienceCheckWhenTokenHasNoAudience: true\nallowedAudiences: [x]\n",
            &[],
        )
        .await;
    assert!(projects(&world, &no_audience).await.is_ok());
    assert!(projects(&world, &token).await.is_err());
    assert!(
        projects(&world, &provider.sign(json!({"aud": "x"})))
            .await
            .is_ok()
    );
    let world = provider.world("", &[("scopes", "[email]")]).await;
    assert_eq!(projects(&world, &token).await, Ok(vec![]));
    let world = provider
        .world(
            "",
            &[
                ("users.anonymous.enabled", "true"),
                ("policy.default", "role:readonly"),
            ],
        )
        .await;
    assert!(projects(&world, "a.b.c").await.is_ok());
    // Without a provider, or with one that cannot be read.
    for (config, said) in [
        ("", "invalid session: SSO is not configured"),
        ("issuer: x\n", "clientID is missing"),
        (
            "issuer: x\nclientID: $none",
            "$none does not resolve: argocd-secret has no key none",
        ),
    ] {
        let settings = [("oidc.config", config), ("policy.csv", POLICY)];
        let world = World::start_by_policy(&settings, &[]).await;
        let (status, refused) = projects(&world, &token).await.expect_err(config);
        assert_eq!(status, 401);
        assert!(refused.contains(said), "{config}: {refused}");
    }
}

#[tokio::test]
async fn users_of_the_provider_have_no_accounts() {
    let provider = Provider::start().await;
    let hash = bcrypt::hash(crate::common::PASSWORD, 4).expect("it hashes");
    let config = provider.config("");
    let policy = "p, user-1, accounts, update, bob, allow\n";
    let settings = [
        ("oidc.config", config.as_str()),
        ("url", BASE),
        ("policy.csv", policy),
        ("accounts.bob", "login, apiKey"),
        ("accounts.user-1", "login, apiKey"),
    ];
    let secrets = [
        ("corp.secret", "x"),
        ("accounts.bob.password", hash.as_str()),
        ("accounts.user-1.password", hash.as_str()),
    ];
    let world = World::start_by_policy(&settings, &secrets).await;
    let (fresh, old) = (
        provider.sign(json!({})),
        provider.sign(json!({"iat": now() - 1000})),
    );
    let set =
        |name: &str| json!({"name": name, "currentPassword": "", "newPassword": "long enough"});
    for (what, token, body, status, said) in [
        (
            "a namesake",
            &fresh,
            set("user-1"),
            403,
            "permission denied",
        ),
        (
            "nobody named",
            &fresh,
            set(""),
            403,
            "permission denied: accounts, update, , sub: user-1",
        ),
        ("old", &old, set("bob"), 500, "SSO token is too old"),
        ("another's", &fresh, set("bob"), 200, ""),
    ] {
        let (got, reply) = world
            .rest_as(token, Method::PUT, "/api/v1/account/password", Some(body))
            .await;
        assert_eq!(got, status, "{what}: {reply}");
        let message = reply["message"].as_str().unwrap_or_default();
        assert!(message.contains(said), "{what}: {reply}");
    }
    let (status, settings) = world
        .rest_as("", Method::GET, "/api/v1/settings", None)
        .await;
    assert_eq!(status, 200);
    assert_eq!(
        settings["oidcConfig"],
        json!({"name": "Corp", "issuer": provider.issuer, "clientID": "argo", "cliClientID": "argo-cli"})
    );
    assert!(!settings.to_string().contains("hush"));
}

/// The recorded tokens of suite `session`, signed with RSA by the provider of the cases.
#[test]
fn recorded_keys_are_understood() {
    let Some(file) = tiphys_testkit::shared("cases/api-fixtures/sso.json") else {
        return;
    };
    let text = std::fs::read_to_string(file).expect("the recorded keys");
    let recorded: Value = serde_json::from_str(&text).expect("JSON");
    let keys: jsonwebtoken::jwk::JwkSet =
        serde_json::from_value(recorded["jwks"].clone()).expect("keys");
    let key = jsonwebtoken::DecodingKey::from_jwk(&keys.keys[0]).expect("a key");
    let token = recorded["tokens"]["sso"].as_str().expect("a token");
    let mut validation = jsonwebtoken::Validation::new(Algorithm::RS256);
    validation.validate_aud = false;
    let claims = jsonwebtoken::decode::<Value>(token, &key, &validation).expect("it fits");
    assert_eq!(claims.claims["sub"], "sso-user");
}
