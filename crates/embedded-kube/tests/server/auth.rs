//! Authorization: tokens, roles, impersonation, escalation, reviews. The messages are those of a
//! real server.

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_embedded_kube::auth::{TokenUser, UserInfo};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tower::ServiceExt;

async fn start() -> (EmbeddedKube, Router) {
    let user = |token: &str, name: &str, groups: &[&str]| TokenUser {
        token: token.into(),
        info: UserInfo::new(name, groups),
    };
    let users = vec![user("t-bob", "bob", &["dev"]), user("t-eve", "eve", &[])];
    let kube = EmbeddedKube::start(Options {
        admin_token: Some("t-admin".into()),
        users,
        ..Options::default()
    })
    .await
    .expect("it starts");
    let router = kube.client_router();
    (kube, router)
}

/// Sends a request as the user with this token (empty: anonymous). `line` is method, path and
/// further headers as `name:value`.
async fn ask(router: &Router, token: &str, line: &str, body: &Value) -> (u16, Value) {
    let mut words = line.split_whitespace();
    let mut request = Request::builder()
        .method(words.next().expect("a method"))
        .uri(words.next().expect("a path"));
    request = request.header(
        "content-type",
        if line.starts_with("PATCH") {
            "application/merge-patch+json"
        } else {
            "application/json"
        },
    );
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    for (name, value) in words.filter_map(|w| w.split_once(':')) {
        request = request.header(name, value);
    }
    let body = if body.is_null() {
        Body::empty()
    } else {
        Body::from(body.to_string())
    };
    let response = router
        .clone()
        .oneshot(request.body(body).expect("a request"))
        .await
        .expect("it answers");
    let code = response.status().as_u16();
    let bytes = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (
        code,
        serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
    )
}

async fn admin(router: &Router, path: &str, body: Value) {
    let (code, answer) = ask(router, "t-admin", &format!("POST {path}"), &body).await;
    assert_eq!(code, 201, "{answer}");
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn role(kind: &str, name: &str, rules: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rules})
}

fn binding(kind: &str, name: &str, role: (&str, &str), subject: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "subjects": [subject],
           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1}})
}

fn bob() -> Value {
    json!({"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"})
}

#[tokio::test]
async fn requests_are_admitted_or_refused_in_the_words_of_a_real_server() {
    let (kube, router) = start().await;
    admin(
        &router,
        &format!("{RBAC}/namespaces/default/rolebindings"),
        binding("RoleBinding", "lost", ("Role", "gone"), bob()),
    )
    .await;
    let reader = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"], "resourceNames": ["one"]}]);
    admin(
        &router,
        &format!("{RBAC}/clusterroles"),
        role("ClusterRole", "reader", reader),
    )
    .await;
    admin(
        &router,
        &format!("{RBAC}/namespaces/default/rolebindings"),
        binding("RoleBinding", "r", ("ClusterRole", "reader"), bob()),
    )
    .await;
    let as_group = json!([{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users", "groups"], "resourceNames": ["carol", "dev"]}]);
    admin(
        &router,
        &format!("{RBAC}/clusterroles"),
        role("ClusterRole", "actor", as_group),
    )
    .await;
    let eve = json!({"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"});
    admin(
        &router,
        &format!("{RBAC}/clusterrolebindings"),
        binding("ClusterRoleBinding", "a", ("ClusterRole", "actor"), eve),
    )
    .await;
    let lost = "RBAC: role.rbac.authorization.k8s.io \"gone\" not found";
    let pods = "/api/v1/namespaces/default/pods";
    let table: Vec<(&str, String, u16, String)> = vec![
        ("", format!("GET {pods}"), 403, "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"".into()),
        ("", "GET /version".into(), 200, String::new()),
        ("", "GET /readyz".into(), 200, String::new()),
        ("", "GET /apis".into(), 403, "forbidden: User \"system:anonymous\" cannot get path \"/apis\"".into()),
        ("nobody", "GET /version".into(), 401, "Unauthorized".into()),
        ("t-bob", "GET /apis".into(), 200, String::new()),
        ("t-bob", "GET /nothing".into(), 403, "forbidden: User \"bob\" cannot get path \"/nothing\"".into()),
        ("t-bob", format!("GET {pods}"), 403, format!("pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\": {lost}")),
        ("t-bob", format!("GET {pods}?fieldSelector=metadata.name%3Done"), 200, String::new()),
        ("t-bob", format!("GET {pods}/one"), 404, "pods \"one\" not found".into()),
        ("t-bob", format!("GET {pods}/one/log"), 404, "pods \"one\" not found".into()),
        ("t-bob", format!("DELETE {pods}/one"), 403, format!("pods \"one\" is forbidden: User \"bob\" cannot delete resource \"pods\" in API group \"\" in the namespace \"default\": {lost}")),
        ("t-bob", "GET /apis/apps/v1/deployments".into(), 403, "deployments.apps is forbidden: User \"bob\" cannot list resource \"deployments\" in API group \"apps\" at the cluster scope".into()),
        ("t-bob", "PUT /api/v1/nodes/n/status".into(), 403, "nodes \"n\" is forbidden: User \"bob\" cannot update resource \"nodes/status\" in API group \"\" at the cluster scope".into()),
        ("t-admin", format!("GET {pods} impersonate-user:bob"), 403, format!("pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\": {lost}")),
        ("t-admin", format!("GET {pods} impersonate-user:x impersonate-group:system:masters"), 200, String::new()),
        ("t-admin", format!("GET {pods} impersonate-group:g"), 400, "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"g\"}, Extra:map[string][]string(nil)} without impersonating a user name".into()),
        ("t-bob", format!("GET {pods} impersonate-user:eve"), 403, format!("pods is forbidden: User \"bob\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"default\": {lost}")),
        ("t-eve", format!("GET {pods} impersonate-user:carol impersonate-group:dev"), 403, "pods is forbidden: User \"carol\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"".into()),
        ("t-eve", format!("GET {pods} impersonate-user:bob"), 403, "pods is forbidden: User \"eve\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"default\"".into()),
    ];
    for (token, line, code, message) in table {
        let (got, answer) = ask(&router, token, &line, &Value::Null).await;
        let text = answer["message"].as_str().unwrap_or_default();
        assert_eq!(
            (got, text),
            (code, if code == 200 { text } else { message.as_str() }),
            "{token} {line}"
        );
    }
    kube.shutdown().await;
}

#[tokio::test]
async fn nobody_gives_away_what_he_does_not_have() {
    let (kube, router) = start().await;
    admin(
        &router,
        &format!("{RBAC}/namespaces/default/rolebindings"),
        binding("RoleBinding", "b", ("ClusterRole", "admin"), bob()),
    )
    .await;
    // A controller aggregates the roles that make up "admin".
    let can = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                     "spec": {"resourceAttributes": {"namespace": "default", "verb": "create", "group": "rbac.authorization.k8s.io", "resource": "roles"}}});
    for _ in 0..200 {
        let (_, answer) = ask(
            &router,
            "t-bob",
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            &can,
        )
        .await;
        if answer["status"]["allowed"] == true {
            assert_eq!(
                answer["status"]["reason"],
                "RBAC: allowed by RoleBinding \"b/default\" of ClusterRole \"admin\" to User \"bob\""
            );
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let roles = format!("POST {RBAC}/namespaces/default/roles");
    let held = role(
        "Role",
        "held",
        json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]),
    );
    assert_eq!(ask(&router, "t-bob", &roles, &held).await.0, 201);
    let more = json!([{"verbs": ["get", "list"], "apiGroups": ["example.com"], "resources": ["widgets", "pods"]}, {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let (code, answer) = ask(
        &router,
        "t-bob",
        &roles,
        &role("Role", "more", more.clone()),
    )
    .await;
    let text = "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"bob\" (groups=[\"dev\" \"system:authenticated\"]) is attempting to grant RBAC \
                permissions not currently held:\n{APIGroups:[\"example.com\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n\
                {APIGroups:[\"example.com\"], Resources:[\"widgets\"], Verbs:[\"get\" \"list\"]}";
    assert_eq!((code, answer["message"].as_str()), (403, Some(text)));
    let (code, _) = ask(
        &router,
        "t-bob",
        &format!("PATCH {RBAC}/namespaces/default/roles/held"),
        &json!({"rules": more}),
    )
    .await;
    assert_eq!(code, 403);
    let bindings = format!("POST {RBAC}/namespaces/default/rolebindings");
    let (code, answer) = ask(
        &router,
        "t-bob",
        &bindings,
        &binding("RoleBinding", "x", ("ClusterRole", "cluster-admin"), bob()),
    )
    .await;
    assert!(
        code == 403
            && answer["message"]
                .as_str()
                .is_some_and(|m| m.ends_with("{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}")),
        "{answer}"
    );
    let (code, answer) = ask(
        &router,
        "t-bob",
        &bindings,
        &binding("RoleBinding", "x", ("Role", "nothing"), bob()),
    )
    .await;
    assert_eq!(
        (code, answer["message"].as_str()),
        (
            404,
            Some("rolebindings.rbac.authorization.k8s.io \"nothing\" not found")
        )
    );
    assert_eq!(
        ask(
            &router,
            "t-bob",
            &bindings,
            &binding("RoleBinding", "x", ("ClusterRole", "view"), bob())
        )
        .await
        .0,
        201
    );
    kube.shutdown().await;
}

/// Asks for a token of the service account `ci`.
async fn request_token(router: &Router, spec: Value) -> (u16, Value) {
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    let path = "POST /api/v1/namespaces/default/serviceaccounts/ci/token";
    ask(router, "t-admin", path, &request).await
}

fn token(answer: &Value) -> String {
    answer["status"]["token"]
        .as_str()
        .expect("a token")
        .to_owned()
}

async fn who_am_i(router: &Router, token: &str) -> (u16, Value) {
    let me = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
    ask(router, token, path, &me).await
}

/// The token that a controller puts into the Secret `s`.
async fn token_in_secret(router: &Router) -> String {
    use base64::Engine as _;
    let mut kept = Value::Null;
    for _ in 0..200 {
        let path = "GET /api/v1/namespaces/default/secrets/s";
        let (_, secret) = ask(router, "t-admin", path, &Value::Null).await;
        kept = secret["data"]["token"].clone();
        if kept.is_string() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let kept = base64::engine::general_purpose::STANDARD
        .decode(kept.as_str().expect("a token"))
        .expect("base64");
    String::from_utf8(kept).expect("text")
}

#[tokio::test]
async fn tokens_of_service_accounts_say_who_they_are_and_end_with_what_they_are_bound_to() {
    let (kube, router) = start().await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ci"}});
    admin(
        &router,
        "/api/v1/namespaces/default/serviceaccounts",
        account,
    )
    .await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
                        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "ci"}}});
    admin(&router, "/api/v1/namespaces/default/secrets", secret).await;
    let (code, free) = request_token(&router, json!({})).await;
    assert_eq!(
        (code, &free["spec"]["expirationSeconds"]),
        (201, &json!(3600))
    );
    let bound_to = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}});
    let (_, bound) = request_token(&router, bound_to).await;
    let (_, elsewhere) = request_token(&router, json!({"audiences": ["vault"]})).await;
    let (code, short) = request_token(&router, json!({"expirationSeconds": 60})).await;
    assert_eq!(code, 422, "{short}");
    let (code, answer) = who_am_i(&router, &token(&free)).await;
    assert_eq!(
        (code, &answer["status"]["userInfo"]["username"]),
        (201, &json!("system:serviceaccount:default:ci"))
    );
    assert_eq!(
        answer["status"]["userInfo"]["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
    assert_eq!(who_am_i(&router, &token(&bound)).await.0, 201);
    assert_eq!(who_am_i(&router, &token(&elsewhere)).await.0, 401);
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token(&elsewhere), "audiences": ["vault"]}});
    let (_, answer) = ask(
        &router,
        "t-admin",
        "POST /apis/authentication.k8s.io/v1/tokenreviews",
        &review,
    )
    .await;
    assert_eq!(
        (
            &answer["status"]["authenticated"],
            &answer["status"]["audiences"]
        ),
        (&json!(true), &json!(["vault"]))
    );
    let kept = token_in_secret(&router).await;
    assert_eq!(who_am_i(&router, &kept).await.0, 201);
    ask(
        &router,
        "t-admin",
        "DELETE /api/v1/namespaces/default/secrets/s",
        &Value::Null,
    )
    .await;
    assert_eq!(
        [
            who_am_i(&router, &kept).await.0,
            who_am_i(&router, &token(&bound)).await.0
        ],
        [401, 401]
    );
    assert_eq!(who_am_i(&router, &token(&free)).await.0, 201);
    ask(
        &router,
        "t-admin",
        "DELETE /api/v1/namespaces/default/serviceaccounts/ci",
        &Value::Null,
    )
    .await;
    assert_eq!(who_am_i(&router, &token(&free)).await.0, 401);
    kube.shutdown().await;
}
