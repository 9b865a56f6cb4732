//! What Dex's configuration is made of.

use super::*;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pair = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    pairs.iter().map(pair).collect()
}

fn options(is_tls: bool) -> DexOptions {
    let files = ("/tmp/tls.crt".to_owned(), "/tmp/tls.key".to_owned());
    DexOptions {
        certificate: is_tls.then_some(files),
        log_level: "info".into(),
        log_format: "json".into(),
    }
}

const SECRETS: [(&str, &str); 4] = [
    ("dex.github.clientSecret", " hush\n"),
    ("corp:dollar", "a$b"),
    ("corp:begins", "$HOME"),
    ("dex.plain", "static"),
];

fn made_with(
    config: &[(&str, &str)],
    options: &DexOptions,
) -> Result<Option<DexConfiguration>, DexFault> {
    let input = DexInput {
        config: &map(config),
        signing_key: b"key",
        secrets: &map(&SECRETS),
    };
    DexConfiguration::of(&input, options)
}

const CM: &str = "https://cd.example.com";

/// The configuration of a `dex.config`.
fn made(dex: &str) -> DexConfiguration {
    let found = made_with(&[("url", CM), (DEX, dex)], &options(true));
    found.ok().flatten().expect("a configuration")
}

fn read(text: &str) -> Value {
    let limits = yaml::Limits::default();
    yaml::parse_document(text, &limits, yaml::Duplicates::Refuse).expect("YAML")
}

const GITHUB: &str = "
connectors:
- type: github
  id: gh
  name: GitHub
  config:
    clientID: aabb
    clientSecret: $dex.github.clientSecret
";

#[test]
fn everything_is_as_argo_cd_writes_it() {
    let whole = read(&made(GITHUB).text());
    let secret = dex_secret(b"key");
    // The beginning of SHA-256 in base64 for URLs, as `openssl dgst -sha256` makes it.
    assert_eq!(secret, "LHDhK3oGRvkiefQnx7OOczTY5Tic_xZ6HcMOc_gm");
    let expected = json!({
        "issuer": "https://cd.example.com/api/dex",
        "storage": {"type": "memory"},
        "web": {"https": "0.0.0.0:5556", "tlsCert": "/tmp/tls.crt", "tlsKey": "/tmp/tls.key"},
        "logger": {"level": "INFO", "format": "json"},
        "grpc": {"addr": "0.0.0.0:5557"},
        "telemetry": {"http": "0.0.0.0:5558"},
        "oauth2": {"skipApprovalScreen": true},
        "staticClients": [
            {"id": "argo-cd", "name": "Argo CD", "secret": secret,
             "redirectURIs": ["https://cd.example.com/auth/callback"]},
            {"id": "argo-cd-cli", "name": "Argo CD CLI", "public": true,
             "redirectURIs": ["http://localhost", "http://localhost:8085/auth/callback"]},
            {"id": "argo-cd-pkce", "name": "Argo CD PKCE", "public": true,
             "redirectURIs": ["http://localhost:4000/auth/callback"]},
        ],
        "connectors": [{"type": "github", "id": "gh", "name": "GitHub", "config": {
            "clientID": "aabb", "clientSecret": "hush",
            "redirectURI": "https://cd.example.com/api/dex/callback"}}],
    });
    assert_eq!(whole, expected);
}

#[test]
fn what_the_settings_say_is_kept_where_argo_cd_keeps_it() {
    let dex = "
issuer: https://elsewhere.example.com
storage: {type: kubernetes}
web: {http: '127.0.0.1:1', tlsMinVersion: '1.3', allowedOrigins: ['*']}
logger: {level: debug}
grpc: {addr: '127.0.0.1:2'}
oauth2: {skipApprovalScreen: false, passwordConnector: local}
expiry: {idTokens: 1h}
staticClients:
- {id: mine, secret: $dex.plain}
connectors:
- {type: ldap, id: ldap, config: {host: 'ldap.example.com:636', rootCA: /ca.pem}}
- {type: oidc, id: oidc, config: {issuer: 'https://sso.example.com', redirectURI: other}}
";
    let whole = read(&made(dex).text());
    for (pointer, expected) in [
        ("/issuer", json!("https://cd.example.com/api/dex")),
        ("/storage", json!({"type": "memory"})),
        (
            "/web",
            json!({"https": "0.0.0.0:5556", "tlsCert": "/tmp/tls.crt", "tlsKey": "/tmp/tls.key",
                "tlsMinVersion": "1.3"}),
        ),
        ("/logger", json!({"level": "debug", "format": "json"})),
        ("/grpc", json!({"addr": "0.0.0.0:5557"})),
        (
            "/oauth2",
            json!({"skipApprovalScreen": false, "passwordConnector": "local"}),
        ),
        ("/expiry", json!({"idTokens": "1h"})),
        ("/staticClients/0/id", json!("argo-cd")),
        (
            "/staticClients/3",
            json!({"id": "mine", "secret": "static"}),
        ),
        (
            "/connectors/0/config",
            json!({"host": "ldap.example.com:636", "rootCA": "/ca.pem"}),
        ),
        (
            "/connectors/1/config/redirectURI",
            json!("https://cd.example.com/api/dex/callback"),
        ),
    ] {
        assert_eq!(whole.pointer(pointer), Some(&expected), "{pointer}");
    }
}

#[test]
fn options_and_addresses_count() {
    let found = made_with(
        &[
            ("url", "https://cd.example.com/argo/"),
            ("additionalUrls", "[https://cd.example.org]"),
            // The issuer is that of Dex nevertheless.
            (
                "oidc.config",
                "issuer: https://sso.example.com\nclientID: a",
            ),
            (DEX, GITHUB),
        ],
        &DexOptions {
            log_level: "warning".into(),
            log_format: "text".into(),
            ..options(false)
        },
    );
    let whole = read(&found.ok().flatten().expect("a configuration").text());
    assert_eq!(whole["web"], json!({"http": "0.0.0.0:5556"}));
    assert_eq!(whole["logger"], json!({"level": "WARN", "format": "text"}));
    assert_eq!(whole["issuer"], "https://cd.example.com/argo/api/dex");
    assert_eq!(
        whole["staticClients"][0]["redirectURIs"],
        json!([
            "https://cd.example.com/argo/auth/callback",
            "https://cd.example.org/auth/callback"
        ])
    );
    for (given, expected) in [
        ("trace", "DEBUG"),
        ("Info", "INFO"),
        ("panic", "ERROR"),
        ("INFO+2", "INFO+2"),
    ] {
        assert_eq!(level(given), expected);
    }
}

#[test]
fn references_are_replaced_and_dollar_signs_escaped_for_dex() {
    let dex = "
enablePasswordDB: true
frontend: {issuer: $corp:dollar, theme: $dark}
connectors:
- type: ldap
  id: $dex.plain
  config:
    bindPW: $corp:dollar
    begins: $corp:begins
    list: [$dex.plain, a$b, 1]
    env: $FROM_THE_ENVIRONMENT
    alone: $
";
    let made = made(dex);
    let whole = read(&made.text());
    assert_eq!(
        whole["connectors"][0],
        json!({"type": "ldap", "id": "static", "config": {"bindPW": "a$$b", "begins": "$$HOME",
            "list": ["static", "a$$b", 1], "env": "$FROM_THE_ENVIRONMENT", "alone": "$$"}})
    );
    // Dex replaces variables in the configurations of connectors alone.
    assert_eq!(
        whole["frontend"],
        json!({"issuer": "a$b", "theme": "$dark"})
    );
    assert_eq!(
        made.unresolved(),
        ["connectors[0].config.env", "frontend.theme"]
    );
}

#[test]
fn what_is_shown_has_no_secrets() {
    let dex = "
staticPasswords: [{email: a@example.com, hash: $2a$10$literal}]
connectors:
- type: gitlab
  id: gl
  config: {clientID: $dex.plain, clientSecret: literal, baseURL: 'https://git.example.com'}
";
    let shown = made(dex).shown();
    let read = read(&shown);
    assert_eq!(
        read["connectors"][0]["config"],
        json!({"clientID": HIDDEN, "clientSecret": HIDDEN, "baseURL": "https://git.example.com",
            "redirectURI": "https://cd.example.com/api/dex/callback"})
    );
    assert_eq!(read["staticClients"][0]["secret"], HIDDEN);
    let derived = dex_secret(b"key");
    for secret in ["literal", "static\n", derived.as_str()] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn without_an_address_or_connectors_there_is_nothing_to_write() {
    for config in [
        &[("url", CM)][..],
        &[(DEX, GITHUB)],
        &[
            ("url", " "),
            (DEX, GITHUB),
            ("additionalUrls", "[https://x]"),
        ],
        &[("url", CM), (DEX, " \n")],
        &[("url", CM), (DEX, "# nothing\n")],
        &[("url", CM), (DEX, "{}")],
    ] {
        let found = made_with(config, &options(true));
        assert!(found.is_ok_and(|found| found.is_none()), "{config:?}");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let dex = |text| vec![("url", CM), (DEX, text)];
    let more = |text| vec![("url", CM), (DEX, GITHUB), (ADDITIONAL_URLS, text)];
    for (config, why) in [
        (
            dex("connectors: ["),
            "dex.config of argocd-cm: it is not valid YAML",
        ),
        (dex("[1]"), "dex.config of argocd-cm: it must be a map"),
        (dex("expiry: {}"), "connectors must be a list"),
        (dex("connectors: [a]"), "connectors[0] has no type"),
        (
            dex("connectors: [{type: mock}, {type: saml}]"),
            "connectors[1] has no config",
        ),
        (
            vec![("url", "cd.example.com"), (DEX, GITHUB)],
            "url of argocd-cm: \"cd.example.com\"",
        ),
        (
            more("https://x"),
            "additionalUrls of argocd-cm: it must be a list",
        ),
        (
            more("[nowhere]"),
            "additionalUrls of argocd-cm: \"nowhere\"",
        ),
    ] {
        let fault = made_with(&config, &options(true)).err().expect(why);
        assert!(fault.to_string().contains(why), "{why}: {fault}");
    }
    let input = DexInput {
        config: &map(&[("url", CM), (DEX, GITHUB)]),
        signing_key: b"",
        secrets: &BTreeMap::new(),
    };
    let fault = DexConfiguration::of(&input, &options(true)).err();
    assert_eq!(fault, Some(DexFault::NoSigningKey));
}

#[test]
fn the_hash_of_a_password_refers_to_nothing() {
    let hash = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W";
    let users = format!("{GITHUB}staticPasswords: [{{email: a, hash: {hash}}}]\n");
    let with_users = made(&users);
    assert!(with_users.unresolved().is_empty());
    let user = &read(&with_users.text())["staticPasswords"][0];
    assert_eq!(user["hash"], hash);
    assert!(!with_users.shown().contains(hash));
    // In a connector, Dex would take it for variables.
    let secret = format!("connectors: [{{type: github, config: {{clientSecret: {hash}}}}}]\n");
    let expected = ["connectors[0].config.clientSecret"];
    assert_eq!(made(&secret).unresolved(), expected);
}
