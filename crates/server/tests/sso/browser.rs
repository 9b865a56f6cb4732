//! Sign-ins of browsers: the way to the provider and back, the session and its end.

use super::{BASE, Provider, now, projects};
use crate::common::World;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

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
