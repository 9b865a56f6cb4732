//! Signing in with an identity provider, which is on loopback here.

use crate::common::World;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
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

/// A request of a browser: the status, the headers and the text.
pub async fn browse(world: &World, path: &str, cookies: &str) -> (u16, HeaderMap, String) {
    let mut request = Request::builder()
        .uri(path)
        .header("host", "cd.example.com");
    if !cookies.is_empty() {
        request = request.header("cookie", cookies);
    }
    let request = request.body(Full::default()).expect("a request");
    let (parts, body) = world.send(request).await.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    (parts.status.as_u16(), parts.headers, text)
}

fn location(headers: &HeaderMap) -> (String, Vec<(String, String)>) {
    let url = headers["location"].to_str().expect("text");
    let url = reqwest::Url::parse(url).expect("a URL");
    let pairs = url
        .query_pairs()
        .map(|(k, v)| (k.into_owned(), v.into_owned()));
    let pairs = pairs.collect();
    let mut bare = url;
    bare.set_query(None);
    (bare.to_string(), pairs)
}

/// The cookies that an answer sets, by name, without attributes.
fn cookies(headers: &HeaderMap) -> Vec<(String, String)> {
    let all = headers.get_all("set-cookie").iter();
    let pair = |value: &http::HeaderValue| {
        let text = value.to_str().expect("text").to_owned();
        let pair = text.split(';').next().unwrap_or_default().to_owned();
        let (name, value) = pair.split_once('=').expect("a pair");
        (name.to_owned(), value.to_owned())
    };
    all.map(pair).collect()
}

/// Begins to sign in: the state that the provider sends back, and the cookie.
async fn begin(world: &World) -> (String, String) {
    let (_, headers, _) = browse(world, "/auth/login", "").await;
    let (_, query) = location(&headers);
    let value = |name: &str| {
        query
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.clone())
    };
    assert_eq!(
        value("scope").as_deref(),
        Some("openid profile email groups")
    );
    let (name, sealed) = cookies(&headers).remove(0);
    (value("state").expect("a state"), format!("{name}={sealed}"))
}

#[tokio::test]
async fn sign_ins_in_several_tabs_do_not_disturb_each_other() {
    let provider = Provider::start().await;
    let world = provider.world("", &[]).await;
    let (first, one) = begin(&world).await;
    let (second, other) = begin(&world).await;
    let token = provider.sign(json!({}));
    *provider.token.lock().expect("not poisoned") = json!({"id_token": token});
    let both = format!("{one}; {other}");
    for (state, cookie) in [(&second, &other), (&first, &one)] {
        let callback = format!("/auth/callback?code=ok&state={state}");
        let (status, headers, text) = browse(&world, &callback, &both).await;
        assert_eq!(status, 303, "{text}");
        // Only its own is over.
        let over: Vec<_> = cookies(&headers)
            .into_iter()
            .filter(|(name, _)| name.starts_with("argocd.oauthstate"))
            .collect();
        let name = cookie.split('=').next().expect("a name").to_owned();
        assert_eq!(over, [(name, String::new())]);
    }
    let crossed = format!(
        "{}={}",
        one.split('=').next().expect("a name"),
        &other[27..]
    );
    let callback = format!("/auth/callback?code=ok&state={first}");
    let (status, _, text) = browse(&world, &callback, &crossed).await;
    assert_eq!(
        (status, text.contains("invalid state in")),
        (400, true),
        "{text}"
    );

    // Those of a browser that goes around in a circle are dropped.
    let many: Vec<String> = (0..16)
        .map(|n| format!("argocd.oauthstate.{n}=x"))
        .collect();
    let (_, headers, _) = browse(&world, "/auth/login", &many.join("; ")).await;
    assert_eq!(cookies(&headers).len(), 17);
    let (_, headers, _) = browse(&world, "/auth/login", &many[1..].join("; ")).await;
    assert_eq!(cookies(&headers).len(), 1);
}

#[tokio::test]
async fn a_browser_signs_in_and_out() {
    let provider = Provider::start().await;
    let more = "enablePKCEAuthentication: true\nrequestedScopes: [openid, groups]\n\
                requestedIDTokenClaims: {groups: {essential: true}}\n\
                logoutURL: https://sso.example.com/logout?hint={{token}}&to={{logoutRedirectURL}}\n";
    let world = provider.world(more, &[]).await;
    let (status, headers, _) = browse(
        &world,
        "/auth/login?return_url=http%3A%2F%2Fcd.example.com%2Fapplications",
        "",
    )
    .await;
    assert_eq!(status, 303);
    let (to, query) = location(&headers);
    assert_eq!(to, format!("{}/auth", provider.issuer));
    let value = |name: &str| {
        let found = query.iter().find(|(n, _)| n == name);
        found.map(|(_, v)| v.clone()).unwrap_or_default()
    };
    assert_eq!(value("tenant"), "1");
    assert_eq!(value("client_id"), "argo");
    assert_eq!(value("redirect_uri"), "http://cd.example.com/auth/callback");
    assert_eq!(value("response_type"), "code");
    assert_eq!(value("scope"), "openid groups");
    assert_eq!(
        value("claims"),
        r#"{"id_token":{"groups":{"essential":true}}}"#
    );
    assert_eq!(value("code_challenge_method"), "S256");
    let begun = cookies(&headers);
    let [(name, sealed)] = begun.as_slice() else {
        panic!("{begun:?}");
    };
    let of_state = format!("argocd.oauthstate.{}", &value("state")[..8]);
    assert_eq!(*name, of_state);
    let state_cookie = format!("{name}={sealed}");

    let token = provider.sign(json!({"jti": "one", "padding": "x".repeat(9000)}));
    *provider.token.lock().expect("not poisoned") = json!({"id_token": token});
    let callback = format!("/auth/callback?code=ok&state={}", value("state"));
    // Left by an even longer token, and of another program.
    let sent =
        format!("{state_cookie}; argocd.token-3=old; argocd.token-7=old; argocd.tokenX=theirs");
    let (status, headers, text) = browse(&world, &callback, &sent).await;
    let page = "http://cd.example.com/applications";
    let link = format!("<a href=\"{page}\">See Other</a>.\n\n");
    assert_eq!((status, text), (303, link));
    assert_eq!(headers["location"], page);
    let (body, authorization) = provider.asked.lock().expect("not poisoned")[0].clone();
    assert!(
        body.contains("grant_type=authorization_code&code=ok&redirect_uri="),
        "{body}"
    );
    assert!(body.contains("code_verifier="), "{body}");
    // The secret is encoded before it is put into the header.
    assert_eq!(authorization, "Basic YXJnbzpodXNoJTJGJTJC");
    let set = cookies(&headers);
    let names: Vec<&str> = set.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(
        names,
        [
            of_state.as_str(),
            "argocd.token",
            "argocd.token-1",
            "argocd.token-2",
            "argocd.token-3",
            "argocd.token-7"
        ]
    );
    assert_eq!(set.last().map(|(_, value)| value.as_str()), Some(""));
    let session: Vec<String> = set
        .iter()
        .skip(1)
        .map(|(n, v)| format!("{n}={v}"))
        .collect();
    let session = session.join("; ");
    let (status, _, text) = browse(&world, "/api/v1/projects", &session).await;
    assert_eq!(status, 200, "{text}");

    let (status, headers, _) = browse(&world, "/auth/logout", &session).await;
    let (to, query) = location(&headers);
    assert_eq!((status, &*to), (303, "https://sso.example.com/logout"));
    assert_eq!(query[0], ("hint".to_owned(), token.clone()));
    assert_eq!(query[1], ("to".to_owned(), BASE.to_owned()));
    let refused = projects(&world, &token).await;
    let said = "invalid session: token is revoked, please re-login".to_owned();
    assert_eq!(refused, Err((401, said)));

    // Sessions of others are not the provider's concern: of an account, and of nobody.
    let own = format!("argocd.token={}", world.token);
    for session in [own.as_str(), "argocd.token=no.such.token", session.as_str()] {
        let (status, headers, _) = browse(&world, "/auth/logout", session).await;
        assert_eq!(
            (status, &headers["location"]),
            (303, &HeaderValue::from_static(BASE))
        );
    }
}

#[tokio::test]
async fn browsers_are_sent_to_no_foreign_place() {
    let provider = Provider::start().await;
    let world = provider
        .world(
            "",
            &[("additionalUrls", "- https://second.example.com/cd/\n")],
        )
        .await;
    for (url, good) in [
        ("http://cd.example.com", true),
        ("http://cd.example.com/applications?x=y", true),
        ("https://second.example.com/cd/applications", true),
        ("", true),
        ("/applications", false),
        ("//evil.example.com", false),
        ("https://cd.example.com", false),
        ("http://cd.example.com:8080", false),
        ("http://cd.example.com.evil.example.com", false),
        ("http://cd.example.com@evil.example.com", false),
        ("http://evil.example.com/?http://cd.example.com", false),
        ("https://second.example.com/cdx", false),
        ("http://cd.example.com/applications/%0d%0aX-A:1", false),
        ("http://cd.example.com/applications%5c..", false),
        ("https://second.example.com/cd/../x", false),
        ("http://cd.example.com/\r\nSet-Cookie: a=b", false),
        ("javascript:alert(1)", false),
    ] {
        let query = reqwest::Url::parse_with_params("http://x/", [("return_url", url)]);
        let query = query.expect("a URL").query().unwrap_or_default().to_owned();
        let (status, ..) = browse(&world, &format!("/auth/login?{query}"), "").await;
        assert_eq!(status, if good { 303 } else { 400 }, "{url}");
    }
}

#[tokio::test]
async fn wrong_ways_end_without_a_session() {
    let provider = Provider::start().await;
    let world = provider.world("", &[]).await;
    let (state, sealed) = begin(&world).await;
    let expired = provider.sign(json!({"exp": now() - 5}));
    let stranger = Provider::start().await.sign(json!({}));
    for (what, answer, query, cookie, status, said) in [
        (
            "an error",
            json!({}),
            "error=access_denied&error_description=not%20you".to_owned(),
            "",
            400,
            "access_denied: not you\n",
        ),
        (
            "no code",
            json!({}),
            String::new(),
            "",
            400,
            "the identity provider sent no code",
        ),
        (
            "no cookie",
            json!({}),
            format!("code=a&state={state}"),
            "",
            400,
            "http: named cookie not present\n",
        ),
        (
            "another state",
            json!({}),
            "code=a&state=b".to_owned(),
            &*sealed,
            400,
            "invalid state in",
        ),
        (
            "a forged cookie",
            json!({}),
            format!("code=a&state={state}"),
            "argocd.oauthstate=AAAA",
            400,
            "invalid state in",
        ),
        (
            "refused",
            json!({}),
            format!("code=refused&state={state}"),
            &*sealed,
            500,
            "failed to get token: oauth2: \"invalid_grant\" \"no such code\"\n",
        ),
        (
            "no token",
            json!({"access_token": "x"}),
            format!("code=a&state={state}"),
            &*sealed,
            500,
            "no id_token in token response\n",
        ),
        (
            "an expired one",
            json!({"id_token": expired}),
            format!("code=a&state={state}"),
            &*sealed,
            500,
            "invalid session token: the token is expired\n",
        ),
        (
            "a foreign one",
            json!({"id_token": stranger}),
            format!("code=a&state={state}"),
            &*sealed,
            500,
            "invalid session token: ",
        ),
    ] {
        *provider.token.lock().expect("not poisoned") = answer;
        let (got, headers, text) = browse(&world, &format!("/auth/callback?{query}"), cookie).await;
        assert_eq!(got, status, "{what}: {text}");
        assert!(text.starts_with(said), "{what}: {text}");
        let has_session = cookies(&headers)
            .iter()
            .any(|(name, _)| name.starts_with("argocd.token"));
        assert!(!has_session, "{what}");
    }
    let world = World::start().await;
    for path in [
        "/auth/login",
        "/auth/callback?code=a&state=b",
        "/api/dex/auth",
    ] {
        let (status, ..) = browse(&world, path, "").await;
        assert_eq!(status, 404, "{path}");
    }
}

#[tokio::test]
async fn groups_come_from_the_user_info_endpoint_if_that_is_wanted() {
    let provider = Provider::start().await;
    let world = provider.world("enableUserInfoGroups: true\n", &[]).await;
    let token = provider.sign(json!({"groups": null}));
    let refused = projects(&world, &token).await;
    let said = "invalid session: error while querying userinfo endpoint: no accessToken for user-1";
    assert_eq!(refused, Err((401, said.to_owned())));
    let (state, sealed) = begin(&world).await;
    *provider.token.lock().expect("not poisoned") =
        json!({"id_token": token, "access_token": "access-1", "expires_in": 600});
    let (status, _, text) = browse(
        &world,
        &format!("/auth/callback?code=a&state={state}"),
        &sealed,
    )
    .await;
    assert_eq!(status, 303, "{text}");
    assert_eq!(
        projects(&world, &token).await,
        Ok(vec!["team-a".to_owned()])
    );
}

/// Signs in: the cookies of the session.
pub async fn signed_in(world: &World, provider: &Provider, tokens: Value) -> String {
    let (state, sealed) = begin(world).await;
    *provider.token.lock().expect("not poisoned") = tokens;
    let callback = format!("/auth/callback?code=a&state={state}");
    let (status, headers, text) = browse(world, &callback, &sealed).await;
    assert_eq!(status, 303, "{text}");
    let session = cookies(&headers).into_iter();
    let session = session.filter(|(name, _)| name.starts_with("argocd.token"));
    let session: Vec<String> = session
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    session.join("; ")
}

/// The cookies that a call of a browser gets.
pub async fn given(world: &World, session: &str) -> Vec<(String, String)> {
    let (status, headers, text) = browse(world, "/api/v1/projects", session).await;
    assert_eq!(status, 200, "{text}");
    cookies(&headers)
}

#[tokio::test]
async fn sessions_of_browsers_are_refreshed_before_they_end() {
    let provider = Provider::start().await;
    let world = provider.world("refreshTokenThreshold: 5m\n", &[]).await;
    let refreshes = || {
        let asked = provider.asked.lock().expect("not poisoned");
        let forms = asked.iter().map(|(form, _)| form.clone());
        let forms = forms.filter(|form| form.contains("grant_type=refresh_token"));
        forms.collect::<Vec<_>>()
    };
    let first = provider.sign(json!({
        "iat": now() - 60, "exp": now() + 120, "jti": "1", "more": "x".repeat(5000)
    }));
    let tokens = json!({"id_token": first, "refresh_token": "refresh-1"});
    let session = signed_in(&world, &provider, tokens).await;
    assert!(session.contains("argocd.token-1="), "{session}");

    let second = provider.sign(json!({"iat": now() - 60, "exp": now() + 120, "jti": "2"}));
    *provider.token.lock().expect("not poisoned") = json!({"id_token": second});
    let set = given(&world, &session).await;
    let of_second = [
        ("argocd.token".to_owned(), second.clone()),
        ("argocd.token-1".to_owned(), String::new()),
    ];
    assert_eq!(set, of_second, "and the rest of the longer one is gone");
    let expected = ["grant_type=refresh_token&refresh_token=refresh-1"];
    assert_eq!(refreshes(), expected);
    // A request that was under way has the old token.
    assert_eq!(given(&world, &session).await, of_second);
    assert_eq!(refreshes(), expected);

    // The provider gave no new refresh token: the old one counts.
    let third = provider.sign(json!({"exp": now() + 3600, "jti": "3"}));
    *provider.token.lock().expect("not poisoned") = json!({"id_token": third});
    let session = format!("argocd.token={second}");
    let of_third = [("argocd.token".to_owned(), third.clone())];
    assert_eq!(given(&world, &session).await, of_third);
    assert_eq!(refreshes().len(), 2);
    let session = format!("argocd.token={third}");
    assert!(given(&world, &session).await.is_empty());
    assert_eq!(refreshes().len(), 2);
}

#[tokio::test]
async fn a_session_goes_on_as_it_is_where_it_cannot_be_refreshed() {
    let provider = Provider::start().await;
    let world = provider.world("refreshTokenThreshold: 5m\n", &[]).await;
    let asked = || provider.asked.lock().expect("not poisoned").len();
    let near_its_end = |id: &str| {
        let token = provider.sign(json!({"iat": now() - 60, "exp": now() + 120, "jti": id}));
        json!({"id_token": token, "refresh_token": "refresh-1"})
    };
    let others = provider.sign(json!({"sub": "user-2"}));
    for (id, tokens) in [
        ("1", json!({"id_token": others})),
        ("2", json!({"access_token": "a"})),
    ] {
        let session = signed_in(&world, &provider, near_its_end(id)).await;
        *provider.token.lock().expect("not poisoned") = tokens;
        let before = asked();
        // The second call does not ask again so soon.
        for _ in 0..2 {
            assert!(given(&world, &session).await.is_empty(), "{id}");
            assert_eq!(asked(), before + 1, "{id}");
        }
    }

    // A token that was just issued: the next one would be as short.
    let token = provider.sign(json!({"iat": now() + 60, "exp": now() + 120, "jti": "new"}));
    let tokens = json!({"id_token": token, "refresh_token": "refresh-1"});
    let session = signed_in(&world, &provider, tokens).await;
    let before = asked();
    assert!(given(&world, &session).await.is_empty());
    assert_eq!(asked(), before);

    // Not without the setting.
    let world = provider.world("", &[]).await;
    let session = signed_in(&world, &provider, near_its_end("3")).await;
    let before = asked();
    assert!(given(&world, &session).await.is_empty());
    assert_eq!(asked(), before);
}

#[tokio::test]
async fn a_session_that_ended_is_not_refreshed() {
    let provider = Provider::start().await;
    let world = provider.world("refreshTokenThreshold: 5m\n", &[]).await;
    let asked = || provider.asked.lock().expect("not poisoned").len();
    // Such a token has no id of its own.
    let token = provider.sign(json!({"iat": now() - 60, "exp": now() + 120}));
    let tokens = json!({"id_token": token, "refresh_token": "refresh-1"});
    let session = signed_in(&world, &provider, tokens).await;
    let next = provider.sign(json!({"iat": now() - 50, "exp": now() + 120}));
    *provider.token.lock().expect("not poisoned") =
        json!({"id_token": next, "refresh_token": "refresh-2"});
    let of_next = [("argocd.token".to_owned(), next.clone())];
    assert_eq!(given(&world, &session).await, of_next);

    let other = provider.sign(json!({"iat": now() - 40, "exp": now() + 3600}));
    let (status, _, text) = browse(&world, "/auth/logout", &session).await;
    assert_eq!(status, 303, "{text}");
    let before = asked();
    for token in [&token, &next] {
        let session = format!("argocd.token={token}");
        let (status, headers, text) = browse(&world, "/api/v1/projects", &session).await;
        assert_eq!(status, 401, "{text}");
        assert!(text.contains("token is revoked"), "{text}");
        assert!(cookies(&headers).is_empty(), "{headers:?}");
    }
    assert_eq!(asked(), before);
    // Another session of the same user goes on.
    assert_eq!(
        projects(&world, &other).await,
        Ok(vec!["team-a".to_owned()])
    );

    // The record outlasts this server, and holds for others.
    let again = world.again(tiphys_server::Options::default()).await;
    for token in [&token, &next] {
        let refused = projects(&again, token).await;
        let said = "invalid session: token is revoked, please re-login".to_owned();
        assert_eq!(refused, Err((401, said)));
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
