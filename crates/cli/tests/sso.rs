//! `login --sso`, `relogin` and the refresh of a session, with an identity provider on loopback and
//! a test in the place of the browser.

use crate::scenarios::world::program;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Command, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};
use tiphys_testkit::{
    Api, Options, PATIENCE, Tiphys,
    charts::{Answer, FileServer},
    eventually, free_port,
};

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

struct Provider {
    server: FileServer,
    key: EncodingKey,
}

impl Provider {
    fn start() -> Self {
        let (server, random) = (FileServer::start(), ring::rand::SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let document = document.expect("a key");
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
        let pair = pair.expect("a key");
        let point = pair.public_key().as_ref();
        let part = |range: std::ops::Range<usize>| BASE64_URL_SAFE_NO_PAD.encode(&point[range]);
        let url = server.url();
        let discovery = json!({"issuer": url, "jwks_uri": format!("{url}/keys"),
            "authorization_endpoint": format!("{url}/auth"),
            "token_endpoint": format!("{url}/token"), "scopes_supported": ["offline_access"]});
        let keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "k",
            "x": part(1..33), "y": part(33..65)}]});
        server.serve("/.well-known/openid-configuration", &*discovery.to_string());
        server.serve("/keys", &*keys.to_string());
        Self {
            key: EncodingKey::from_ec_der(document.as_ref()),
            server,
        }
    }

    /// The token for the next code, or the next refresh.
    fn gives(&self, email: &str, lifetime: u64, refresh_token: Option<&str>) {
        let claims = json!({"iss": self.server.url(), "sub": "user-1", "aud": "argo-cli",
            "iat": now(), "exp": now() + lifetime, "email": email, "groups": ["devs"]});
        let header = Header {
            kid: Some("k".into()),
            ..Header::new(Algorithm::ES256)
        };
        let token = jsonwebtoken::encode(&header, &claims, &self.key).expect("it signs");
        let answer = json!({"id_token": token, "refresh_token": refresh_token});
        self.server.serve("/token", &*answer.to_string());
    }
}

fn cli(config: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(words)
        .arg("--config")
        .arg(config)
        .env_remove("ARGOCD_OPTS")
        // Report 20: what is on this machine is never asked through a proxy. Nothing listens there.
        .env("HTTP_PROXY", "http://127.0.0.1:9")
        .env("ALL_PROXY", "http://127.0.0.1:9")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(config: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = cli(config, words).output().expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.code(), text)
}

/// Runs the command and does what the browser would, with this addition to the callback's query.
fn browse(config: &Path, words: &[&str], answer: &str) -> (Option<i32>, String) {
    let port = free_port();
    let mut child = cli(config, words)
        .args([
            "--sso-launch-browser=false",
            "--sso-port",
            &port.to_string(),
        ])
        .spawn()
        .expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let (mut text, mut url) = (String::new(), None);
    while url.is_none() {
        let mut line = String::new();
        if out.read_line(&mut line).expect("text") == 0 {
            break;
        }
        url = line
            .split_once("flow login: ")
            .map(|(_, url)| url.trim().to_owned());
        text.push_str(&line);
    }
    let url = reqwest::Url::parse(&url.unwrap_or_else(|| panic!("no address: {text}")));
    let url = url.expect("a URL");
    let value = |name: &str| {
        let found = url.query_pairs().find(|(n, _)| n == name);
        found.map(|(_, v)| v.into_owned()).unwrap_or_default()
    };
    assert_eq!(value("client_id"), "argo-cli");
    assert_eq!(value("scope"), "openid profile email groups offline_access");
    assert_eq!(value("code_challenge_method"), "S256");
    assert_eq!(
        value("redirect_uri"),
        format!("http://localhost:{port}/auth/callback")
    );
    let listener = Api::plain(&format!("http://127.0.0.1:{port}"));
    // Another page's guess changes nothing.
    let guess = listener
        .get("/auth/callback?code=evil&state=guess")
        .expect("it answers");
    assert_eq!(guess.status, 400);
    let state = value("state");
    let answered = listener.get(&format!("/auth/callback?{answer}&state={state}"));
    answered.expect("it answers");
    out.read_to_string(&mut text).expect("text");
    let output = child.wait_with_output().expect("it ends");
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text)
}

#[test]
fn the_command_line_signs_in_with_a_browser() {
    let provider = Provider::start();
    let (mut tiphys, kube) = Tiphys::ready(&Options {
        program: program(),
        ..Options::default()
    });
    tiphys.login().expect("the password is new");
    let oidc = format!(
        "name: Corp\nissuer: {}\nclientID: argo\ncliClientID: argo-cli\n",
        provider.server.url()
    );
    let maps = "/api/v1/namespaces/argocd/configmaps";
    for (name, data) in [
        ("argocd-cm", json!({"oidc.config": oidc, "url": tiphys.url})),
        (
            "argocd-rbac-cm",
            json!({"policy.csv": "p, role:dev, projects, get, default, allow\ng, devs, role:dev\n"}),
        ),
    ] {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name,
            "labels": {"app.kubernetes.io/part-of": "argocd"}}, "data": data});
        let path = format!("{maps}/{name}");
        match kube.find(&path) {
            Some(_) => drop(kube.patch(&path, &json!({"data": data}))),
            None => drop(kube.create(maps, &map)),
        }
    }
    let address = tiphys.url.trim_start_matches("http://").to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config");
    let api = Api::plain(&tiphys.url);
    eventually(PATIENCE, "the settings are read", || {
        let settings = api.get("/api/v1/settings").map_err(|e| e.0)?.body;
        let is_set = settings["oidcConfig"]["issuer"].is_string();
        is_set.then_some(()).ok_or_else(|| settings.to_string())
    });
    let login = ["login", &*address, "--plaintext", "--sso"];

    let (code, said) = browse(&config, &login, "error=access_denied&error_description=no");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("access_denied: no"), "{said}");
    assert!(!config.exists());

    // Report 26: the remedy is told, and the code is used once.
    let refusal = Answer {
        status: 401,
        ..Answer::from("{\"error\": \"invalid_client\"}")
    };
    provider.server.serve("/token", refusal);
    provider.server.paths();
    let (code, said) = browse(&config, &login, "code=zero");
    assert_eq!(code, Some(1), "{said}");
    for part in ["Register \\\"argo-cli\\\"", "public client", "cliClientID"] {
        assert!(said.contains(part), "{said}");
    }
    let asked = provider.server.paths();
    let tokens = asked.iter().filter(|path| *path == "/token").count();
    assert_eq!(tokens, 1, "{asked:?}");

    provider.gives("ann@example.com", 3600, None);
    let (code, said) = browse(&config, &login, "code=one");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("'ann@example.com' logged in successfully"),
        "{said}"
    );
    let (code, said) = run(&config, &["account", "get-user-info", "-o", "json"]);
    assert_eq!(code, Some(0), "{said}");
    let info: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(info["username"], "ann@example.com");
    assert_eq!(info["groups"], json!(["devs"]));
    let (code, said) = run(&config, &["proj", "list", "-o", "name"]);
    assert_eq!((code, &*said), (Some(0), "default\n"));
    let (code, said) = run(&config, &["account", "can-i", "create", "clusters", "*"]);
    assert_eq!((code, &*said), (Some(0), "no\n"));

    provider.gives("bob@example.com", 1, Some("again"));
    let (code, said) = browse(&config, &["relogin"], "code=two");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Reinitiating SSO login"), "{said}");
    // It is over before it can be used, and the refresh token gives another one.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    provider.gives("eve@example.com", 3600, None);
    let (code, said) = run(&config, &["account", "get-user-info"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("eve@example.com"), "{said}");
    let stored = std::fs::read_to_string(&config).expect("it is there");
    assert!(stored.contains("refresh-token: again"), "{stored}");

    // Nobody is told of a login that is not kept. Nothing can be made in this folder.
    let lost = Path::new("/proc/none/config");
    provider.gives("ann@example.com", 3600, None);
    let (code, said) = browse(lost, &login, "code=three");
    assert_eq!(code, Some(20), "{said}");
    assert!(said.contains("/proc/none/config"), "{said}");
    assert!(!said.contains("logged in"), "{said}");
}
