//! The servers that give tokens are played by this process.

use super::*;
use crate::{ContactWatch, ErrorKind, shares::Shares};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::Url;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    process::Command,
    sync::{LazyLock, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// An RSA key, and an elliptic one, which none of the servers takes.
static KEYS: LazyLock<[String; 2]> = LazyLock::new(|| {
    let made = |args: &[&str]| {
        let out = Command::new("openssl")
            .args(args)
            .output()
            .expect("openssl");
        String::from_utf8(out.stdout).expect("PEM text")
    };
    [
        made(&["genrsa", "2048"]),
        made(&["genpkey", "-algorithm", "ed25519"]),
    ]
});

#[derive(Clone, Debug, Default)]
struct Asked {
    line: String,
    authorization: String,
    form: HashMap<String, String>,
}

struct Server {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// `answer`: the status, headers and body for the how-manieth question.
    async fn start(
        answer: impl Fn(usize, &Asked) -> (u16, &'static str, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let question = read(&mut stream).await;
                let number = {
                    let mut list = list.lock().expect("no panic");
                    list.push(question.clone());
                    list.len()
                };
                let (status, headers, body) = answer(number, &question);
                let body = body.to_string();
                let text = format!(
                    "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(text.as_bytes()).await;
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }

    fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

async fn read(stream: &mut TcpStream) -> Asked {
    let (mut text, mut part) = (String::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut part).await.expect("a request");
        text.push_str(&String::from_utf8_lossy(&part[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let header = |name: &str| {
            head.lines()
                .filter_map(|line| line.split_once(": "))
                .find(|(found, _)| found.eq_ignore_ascii_case(name))
                .map_or_else(String::new, |(_, value)| value.to_owned())
        };
        if body.len() < header("content-length").parse().unwrap_or(0) {
            continue;
        }
        let query = Url::parse(&format!("http://form.invalid?{body}")).expect("a form");
        return Asked {
            line: head
                .lines()
                .next()
                .unwrap_or_default()
                .replace(" HTTP/1.1", ""),
            authorization: header("authorization"),
            form: query.query_pairs().into_owned().collect(),
        };
    }
}

fn tokens(workload: Option<Workload>) -> Tokens {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let common = Common {
        shares: Shares::new(4),
        contacts: ContactWatch::default(),
        look_ups: crate::common::no_look_ups(),
    };
    Tokens::new(Duration::from_secs(10), Arc::new(common), workload)
}

fn access(url: &str, identity: Identity) -> RepoAccess {
    RepoAccess {
        identity: Some(identity),
        ..RepoAccess::public(url)
    }
}

fn app(server: &Server, installation: i64) -> Identity {
    Identity::GitHubApp {
        id: 7,
        installation,
        key: Secret::new(&KEYS[0]),
        api: format!("{}/api/v3/", server.url),
    }
}

/// The claims of a statement, whose signature is that of the key.
fn claims(statement: &str) -> Value {
    let (content, signature) = statement.rsplit_once('.').expect("three parts");
    let der = rustls_pemfile::private_key(&mut KEYS[0].as_bytes()).expect("a key");
    let Some(PrivateKeyDer::Pkcs8(der)) = der else {
        panic!("openssl writes PKCS 8");
    };
    let pair = ring::signature::RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).expect("a key");
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public());
    let decoded = |part| URL_SAFE_NO_PAD.decode(part).expect("base64");
    public
        .verify(content.as_bytes(), &decoded(signature))
        .expect("signed by the key");
    let (header, claims) = content.split_once('.').expect("two parts");
    let header: Value = serde_json::from_slice(&decoded(header)).expect("a header");
    assert_eq!(header["alg"], "RS256");
    serde_json::from_slice(&decoded(claims)).expect("claims")
}

fn hour() -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1)).to_string()
}

#[tokio::test]
async fn a_github_app_proves_itself_and_gets_a_password() {
    let server = Server::start(|number, _| {
        let token = json!({"token": format!("ghs_{number}"), "expires_at": hour()});
        (201, "", token)
    })
    .await;
    let tokens = tokens(None);
    let of = async |url: &str| {
        let access = tokens
            .signed_in(&access(url, app(&server, 42)))
            .await
            .expect("a token");
        (access.username, access.password.expose().to_owned())
    };
    let first = ("x-access-token".to_owned(), "ghs_1".to_owned());
    assert_eq!(of("https://github.com/acme/a").await, first);
    assert_eq!(
        of("https://github.com/other/b").await,
        first,
        "kept, and shared"
    );
    assert_eq!(
        server.lines(),
        ["POST /api/v3/app/installations/42/access_tokens"]
    );
    let said = server.asked()[0].authorization.clone();
    let claims = claims(said.strip_prefix("Bearer ").expect("a statement"));
    let (from, until) = (claims["iat"].as_i64(), claims["exp"].as_i64());
    assert_eq!(claims["iss"], "7");
    assert!(
        until
            .zip(from)
            .is_some_and(|(until, from)| until - from <= 600)
    );
    // A token that the repository refuses is not used again.
    tokens.refused(&access("https://github.com/acme/a", app(&server, 42)));
    assert_eq!(of("https://github.com/acme/a").await.1, "ghs_2");
}

#[tokio::test]
async fn the_installation_is_that_of_the_owner() {
    let server = Server::start(|number, asked| {
        if asked.line.starts_with("POST") {
            let token = json!({"token": format!("ghs_{number}"), "expires_at": hour()});
            return (201, "", token);
        }
        let (login, next) = if asked.line.ends_with("page=1") {
            (
                "elsewhere",
                "link: <https://api.example/2>; rel=\"next\"\r\n",
            )
        } else {
            ("ACME", "")
        };
        let found = json!([{"id": 5, "account": null}, {"id": 9, "account": {"login": login}}]);
        (200, next, found)
    })
    .await;
    let tokens = tokens(None);
    let of = async |url: &str| tokens.signed_in(&access(url, app(&server, 0))).await;
    let access = of("https://github.com/acme/web.git")
        .await
        .expect("a token");
    assert_eq!(access.password.expose(), "ghs_3");
    let asked = [
        "GET /api/v3/app/installations?per_page=100&page=1",
        "GET /api/v3/app/installations?per_page=100&page=2",
        "POST /api/v3/app/installations/9/access_tokens",
    ];
    assert_eq!(server.lines(), asked);
    of("https://github.com/acme/other").await.expect("a token");
    assert_eq!(server.lines(), asked, "one token for the owner");
    for (url, reason) in [
        (
            "https://github.com/nobody/web",
            "no token for repository https://github.com/nobody/web: GitHub App 7 is not installed \
             for nobody",
        ),
        (
            "https://github.com/web",
            "no token for repository https://github.com/web: the URL has no owner, whose \
             installation of the GitHub App could be found: set githubAppInstallationID",
        ),
    ] {
        let error = of(url).await.expect_err("no installation");
        assert_eq!(error.to_string(), reason);
        assert_eq!(error.kind(), ErrorKind::Config);
    }
}

#[tokio::test]
async fn a_google_service_account_gets_a_password() {
    let server =
        Server::start(|_, _| (200, "", json!({"access_token": "ya29", "expires_in": 3600}))).await;
    let key = json!({
        "type": "service_account", "client_email": "ci@example.com", "private_key_id": "k1",
        "private_key": KEYS[0], "token_uri": format!("{}/token", server.url),
    });
    let identity = Identity::Google(Secret::new(key.to_string()));
    let access = access("https://source.developers.google.com/p/x/r/y", identity);
    let tokens = tokens(None);
    let signed_in = tokens.signed_in(&access).await.expect("a token");
    let login = (signed_in.username.as_str(), signed_in.password.expose());
    assert_eq!(login, ("ci@example.com", "ya29"));
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /token");
    assert_eq!(
        asked.form["grant_type"],
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    );
    let claims = claims(&asked.form["assertion"]);
    assert_eq!(claims["iss"], "ci@example.com");
    assert_eq!(claims["aud"], format!("{}/token", server.url));
    assert_eq!(
        claims["scope"],
        "https://www.googleapis.com/auth/cloud-platform"
    );
}

#[tokio::test]
async fn azure_gives_bearer_tokens_to_principals_and_workloads() {
    let server = Server::start(|number, _| {
        // The first one expires at once, and the second says so in a text.
        let lifetime = [json!(60), json!("3599")][(number - 1).min(1)].clone();
        let token = json!({"access_token": format!("ey{number}"), "expires_in": lifetime});
        (200, "", token)
    })
    .await;
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("token");
    std::fs::write(&file, "projected\n").expect("written");
    let tokens = tokens(Some(Workload {
        tenant: "t1".into(),
        client: "c1".into(),
        token_file: file,
        authority: format!("{}/", server.url),
        hosts: Vec::new(),
    }));
    let principal = Identity::AzurePrincipal {
        tenant: "t2".into(),
        client: "c2".into(),
        secret: "s2".into(),
        authority: server.url.clone(),
    };
    let repository = "https://dev.azure.com/acme/_git/web";
    let of = async |identity: &Identity| {
        let access = tokens
            .signed_in(&access(repository, identity.clone()))
            .await;
        access.expect("a token").bearer_token.expose().to_owned()
    };
    assert_eq!(of(&principal).await, "ey1");
    assert_eq!(of(&principal).await, "ey2", "the first one is too old");
    assert_eq!(of(&principal).await, "ey2");
    assert_eq!(of(&Identity::AzureWorkload).await, "ey3");
    assert_eq!(
        server.lines(),
        [
            "POST /t2/oauth2/v2.0/token",
            "POST /t2/oauth2/v2.0/token",
            "POST /t1/oauth2/v2.0/token"
        ]
    );
    let [of_principal, _, of_workload] = &server.asked()[..] else {
        panic!("three questions");
    };
    for (asked, expected) in [
        (
            of_principal,
            &[("client_id", "c2"), ("client_secret", "s2")][..],
        ),
        (
            of_workload,
            &[
                ("client_id", "c1"),
                (
                    "client_assertion_type",
                    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                ),
                ("client_assertion", "projected"),
            ][..],
        ),
    ] {
        let common = [
            ("grant_type", "client_credentials"),
            ("scope", "499b84ac-1321-427f-aa17-267ca6975798/.default"),
        ];
        let expected: HashMap<_, _> = expected
            .iter()
            .chain(&common)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(asked.form, expected);
    }
}

#[tokio::test]
async fn why_there_is_no_token_is_said_without_secrets() {
    let server = Server::start(|_, asked| match asked.line.as_str() {
        line if line.contains("/installations/1/") => (
            401,
            "",
            json!({"message": "A JSON web token\ncould not be decoded"}),
        ),
        line if line.contains("/installations/2/") => (502, "", json!("CANARY")),
        line if line.contains("/installations/3/") => (201, "", json!({"tokens": "CANARY"})),
        line if line.contains("/installations/4/") => {
            (307, "location: http://127.0.0.1:1/stolen\r\n", json!({}))
        }
        _ => (
            400,
            "",
            json!({"error": "invalid_client", "error_description": "AADSTS7000215: bad secret"}),
        ),
    })
    .await;
    let github = |installation, key: &str| match app(&server, installation) {
        Identity::GitHubApp { id, api, .. } => Identity::GitHubApp {
            id,
            installation,
            key: Secret::new(key),
            api,
        },
        other => other,
    };
    let own = format!("{}/api/v3/app/installations", server.url);
    let principal = Identity::AzurePrincipal {
        tenant: "t".into(),
        client: "c".into(),
        secret: "CANARY".into(),
        authority: server.url.clone(),
    };
    for (identity, reason, kind) in [
        (
            github(1, &KEYS[0]),
            format!(
                "{own}/1/access_tokens answered 401 Unauthorized: A JSON web token could not be \
                 decoded"
            ),
            ErrorKind::Config,
        ),
        (
            github(2, &KEYS[0]),
            format!("{own}/2/access_tokens answered 502 Bad Gateway"),
            ErrorKind::Upstream,
        ),
        (
            github(3, &KEYS[0]),
            format!("{own}/3/access_tokens: bad answer"),
            ErrorKind::Config,
        ),
        (
            github(4, &KEYS[0]),
            format!("{own}/4/access_tokens answered 307 Temporary Redirect"),
            ErrorKind::Config,
        ),
        (
            principal,
            format!(
                "{}/t/oauth2/v2.0/token answered 400 Bad Request: AADSTS7000215: bad secret",
                server.url
            ),
            ErrorKind::Config,
        ),
    ] {
        refuses(identity, &reason, kind).await;
    }
}

#[tokio::test]
async fn an_unusable_identity_is_named_without_its_key() {
    let github = |key: &str| Identity::GitHubApp {
        id: 7,
        installation: 5,
        key: Secret::new(key),
        api: String::new(),
    };
    for (identity, reason) in [
        (
            github("CANARY"),
            "GitHub App 7: the private key is no PEM text",
        ),
        (
            github(&KEYS[1]),
            "GitHub App 7: the private key cannot be used: WrongAlgorithm",
        ),
        (
            Identity::Google("CANARY".into()),
            "gcpServiceAccountKey is no JSON text of a key",
        ),
        (
            Identity::Google(r#"{"type": "authorized_user"}"#.into()),
            "gcpServiceAccountKey has type \"authorized_user\", only service_account is supported",
        ),
        (
            Identity::AzureWorkload,
            "useAzureWorkloadIdentity needs AZURE_TENANT_ID, AZURE_CLIENT_ID and \
             AZURE_FEDERATED_TOKEN_FILE in the environment, which Azure's webhook sets in Pods \
             that are labelled azure.workload.identity/use: \"true\"",
        ),
    ] {
        refuses(identity, reason, ErrorKind::Config).await;
    }
}

async fn refuses(identity: Identity, reason: &str, kind: ErrorKind) {
    let access = access("https://h/o/r", identity);
    let error = tokens(None).signed_in(&access).await.expect_err(reason);
    assert_eq!(
        error.to_string(),
        format!("no token for repository https://h/o/r: {reason}")
    );
    assert_eq!(error.kind(), kind, "{reason}");
    assert!(!format!("{access:?}{error:?}").contains("CANARY"));
}

#[tokio::test]
async fn whoever_arrives_meanwhile_waits_for_the_same_token() {
    let server = Server::start(|number, _| {
        let token = json!({"token": format!("ghs_{number}"), "expires_at": hour()});
        (201, "", token)
    })
    .await;
    let tokens = tokens(None);
    let access = access("https://github.com/acme/a", app(&server, 42));
    let all = futures::future::join_all((0..8).map(|_| tokens.signed_in(&access))).await;
    assert!(all.iter().all(|one| {
        one.as_ref()
            .is_ok_and(|access| access.password.expose() == "ghs_1")
    }));
    assert_eq!(server.lines().len(), 1);
}

#[test]
fn another_host_is_not_reached_with_what_belongs_to_the_repository() {
    let access = RepoAccess {
        insecure: true,
        ca_data: "ca".into(),
        tls_client_cert: "cert".into(),
        tls_client_key: "key".into(),
        password: "p".into(),
        proxy: "http://proxy".into(),
        ..RepoAccess::public("https://GHE.example.com/acme/web")
    };
    let reached = |url: &str| ask::asking(&access, &Url::parse(url).expect("a URL"));
    let same = reached("https://ghe.example.com/api/v3/app");
    assert!(same.insecure && same.ca_data == "ca" && same.tls_client_cert == "cert");
    assert!(same.password.is_empty() && same.identity.is_none());
    let other = reached("https://login.example.com/t");
    let plain = RepoAccess {
        proxy: "http://proxy".into(),
        ..RepoAccess::public("https://login.example.com/t")
    };
    assert_eq!(other, plain);
}

#[tokio::test]
async fn the_token_of_a_workload_is_for_azure() {
    let server =
        Server::start(|_, _| (200, "", json!({"access_token": "ey", "expires_in": 3600}))).await;
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("token");
    std::fs::write(&file, "projected").expect("written");
    let tokens = tokens(Some(Workload {
        tenant: "t".into(),
        client: "c".into(),
        token_file: file,
        authority: server.url.clone(),
        hosts: vec!["git.example.com".into(), ".corp.example".into()],
    }));
    for (url, given) in [
        ("https://dev.azure.com/acme/_git/web", true),
        ("https://acme.visualstudio.com/_git/web", true),
        ("https://DEV.azure.com/acme/_git/web", true),
        ("https://git.example.com/web", true),
        ("https://a.corp.example/web", true),
        ("https://dev.azure.com.attacker.example/web", false),
        ("https://evilvisualstudio.com/web", false),
        ("https://visualstudio.com.attacker.example/web", false),
        ("https://dev.azure.com@attacker.example/web", false),
        ("https://attacker.example/dev.azure.com", false),
        ("http://dev.azure.com/acme/_git/web", false),
        ("https://corp.example/web", false),
        ("https://sub.git.example.com/web", false),
    ] {
        let access = access(url, Identity::AzureWorkload);
        let token = tokens.signed_in(&access).await;
        assert_eq!(token.is_ok(), given, "{url}");
    }
}

#[test]
fn the_identity_of_settings() {
    let app = |repo: &mut Repository| {
        (repo.github_app_id, repo.github_app_private_key) = (1, "k".into());
    };
    let google = |repo: &mut Repository| repo.gcp_service_account_key = "k".into();
    let workload = |repo: &mut Repository| repo.use_azure_workload_identity = true;
    let principal = |repo: &mut Repository| {
        repo.azure_service_principal_client_id = "c".into();
        repo.azure_service_principal_client_secret = "s".into();
        repo.azure_service_principal_tenant_id = "t".into();
    };
    let mut repo = Repository::default();
    let mut found = Vec::new();
    let mut note = |repo: &Repository| {
        found.push(match Identity::of(repo) {
            None => "none",
            Some(Identity::GitHubApp { .. }) => "github",
            Some(Identity::Google(_)) => "google",
            Some(Identity::AzureWorkload) => "workload",
            Some(Identity::AzurePrincipal { .. }) => "principal",
        });
    };
    note(&repo);
    principal(&mut repo);
    note(&repo);
    workload(&mut repo);
    note(&repo);
    google(&mut repo);
    note(&repo);
    app(&mut repo);
    note(&repo);
    repo.ssh_private_key = "k".into();
    note(&repo);
    let half = Repository {
        azure_service_principal_client_id: "c".into(),
        github_app_private_key: "k".into(),
        ..Repository::default()
    };
    note(&half);
    assert_eq!(
        found,
        [
            "none",
            "principal",
            "workload",
            "google",
            "github",
            "none",
            "none"
        ]
    );
}
