//! Fake cloud servers on localhost: which requests they get, and what becomes of their responses.

use super::*;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;
use std::sync::Mutex as Lock;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};

/// A server with responses by `METHOD path`, which records head and body of each request.
struct Cloud {
    url: String,
    asked: Arc<Lock<Vec<(String, String)>>>,
}

impl Cloud {
    async fn new(answers: Vec<(&'static str, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let asked: Arc<Lock<Vec<(String, String)>>> = Arc::default();
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let (mut head, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).await.expect("a line");
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().expect("a length");
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                    head.push_str(&line);
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).await.expect("a body");
                let answer = answers.iter().find(|(what, _)| head.starts_with(what));
                let (status, text) = answer.map_or(("403 Forbidden", "no"), |(_, text)| {
                    ("200 OK", text.as_str())
                });
                let answer = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                );
                seen.lock()
                    .expect("whole")
                    .push((head, String::from_utf8(body).expect("text")));
                stream
                    .write_all(answer.as_bytes())
                    .await
                    .expect("it listens");
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().expect("whole").clone()
    }
}

fn env(values: &[(&str, &str)]) -> Env {
    let nothing = [
        "HOME",
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
    ];
    let nothing = nothing
        .iter()
        .map(|name| ((*name).to_owned(), String::new()));
    let values = nothing
        .chain(
            values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
        .collect();
    Env::with(values)
}

async fn asked_for(login: Login, values: &[(&str, &str)]) -> Result<Token, String> {
    Tokens::new(login, env(values)).token().await
}

fn file(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("tiphys-tokens-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("writable");
    path.to_str().expect("a path").to_owned()
}

/// A response like that of STS.
fn assumed(key: &str) -> String {
    format!(
        "<R><Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>st</SessionToken>\
         <Expiration>2027-01-01T00:00:00Z</Expiration></Credentials></R>"
    )
}

/// The URL in a token.
fn presigned(token: &Token) -> String {
    let text = token
        .value
        .strip_prefix("k8s-aws-v1.")
        .expect("EKS' prefix");
    String::from_utf8(URL_SAFE_NO_PAD.decode(text).expect("base64")).expect("text")
}

fn aws(config: Value) -> Login {
    Login::Aws(eks::Login::deserialize(config).expect("valid"))
}

#[tokio::test]
async fn aws_keys_of_the_environment_sign_for_the_cluster() {
    let values = [
        ("AWS_ACCESS_KEY_ID", "K"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("AWS_REGION", "eu-west-1"),
    ];
    let token = asked_for(aws(json!({"clusterName": "prod"})), &values)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    let url = presigned(&token);
    assert!(
        url.starts_with("https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&"),
        "{url}"
    );
    let left = token.until.duration_since(Timestamp::now()).as_secs();
    assert!((880..=900).contains(&left), "{left}");
}

#[tokio::test]
async fn aws_roles_are_assumed_with_a_web_identity_and_one_after_another() {
    let sts = Cloud::new(vec![("POST /", assumed("ASSUMED"))]).await;
    let identity = file("identity", "a.b.c\n");
    let values = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", identity.as_str()),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/pod"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ENDPOINT_URL_STS", &sts.url),
    ];
    let login = aws(json!({"clusterName": "prod", "roleARN": "arn:aws:iam::2:role/deploy"}));
    let token = asked_for(login, &values)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(
        presigned(&token).contains("X-Amz-Credential=ASSUMED%2F")
            && presigned(&token).contains("X-Amz-Security-Token=st&")
    );
    let asked = sts.asked();
    assert!(
        asked[0].1.contains("Action=AssumeRoleWithWebIdentity&")
            && asked[0].1.ends_with("&WebIdentityToken=a.b.c"),
        "{asked:?}"
    );
    assert!(!asked[0].0.contains("authorization:"), "it proves itself");
    assert!(
        asked[1].1.contains("Action=AssumeRole&")
            && asked[1]
                .1
                .contains("RoleArn=arn%3Aaws%3Aiam%3A%3A2%3Arole%2Fdeploy&"),
        "{asked:?}"
    );
    assert!(
        asked[1]
            .0
            .contains("authorization: AWS4-HMAC-SHA256 Credential=ASSUMED/"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn aws_profiles_lead_to_keys_and_roles() {
    let sts = Cloud::new(vec![("POST /", assumed("ROLE"))]).await;
    let config = file(
        "config",
        "[profile dev]\nrole_arn = arn:dev\nsource_profile = base\nregion = eu-north-1\n[profile odd]\nsso_session = x\n",
    );
    let keys = file(
        "credentials",
        "[base]\naws_access_key_id = BASE\naws_secret_access_key = s\n",
    );
    let values = [
        ("AWS_CONFIG_FILE", config.as_str()),
        ("AWS_SHARED_CREDENTIALS_FILE", &keys),
        ("AWS_ENDPOINT_URL_STS", &sts.url),
        // The profile in the Secret takes precedence.
        ("AWS_ACCESS_KEY_ID", "OTHER"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
    ];
    let token = asked_for(aws(json!({"clusterName": "c", "profile": "dev"})), &values)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(
        presigned(&token).contains("X-Amz-Credential=ROLE%2F")
            && presigned(&token).contains("%2Feu-north-1%2Fsts")
    );
    assert!(sts.asked()[0].0.contains("Credential=BASE/"));
    let error = |profile: &'static str| {
        let values = values.to_vec();
        async move {
            asked_for(aws(json!({"profile": profile})), &values)
                .await
                .err()
                .expect(profile)
        }
    };
    assert_eq!(
        error("odd").await,
        "AWS: profile \"odd\": sso_session is not supported; use keys, a role or a web identity"
    );
    assert_eq!(
        error("none").await,
        "AWS: there is no profile \"none\" in AWS' configuration"
    );
}

#[tokio::test]
async fn aws_pods_and_machines_have_an_identity() {
    let keys = r#"{"AccessKeyId": "POD", "SecretAccessKey": "s", "Token": "t", "Expiration": "2027-01-01T00:00:00Z"}"#.to_owned();
    let pod = Cloud::new(vec![("GET /v1/credentials ", keys.clone())]).await;
    let (url, secret) = (
        format!("{}/v1/credentials", pod.url),
        file("pod-token", "eks-token"),
    );
    let values = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &secret),
    ];
    let token = asked_for(aws(json!({"clusterName": "c"})), &values)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(
        presigned(&token).starts_with("https://sts.amazonaws.com/?")
            && presigned(&token).contains("Credential=POD%2F")
    );
    assert!(pod.asked()[0].0.contains("authorization: eks-token"));
    let far = [(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "http://example.com/keys",
    )];
    assert!(
        asked_for(aws(json!({})), &far)
            .await
            .err()
            .expect("far")
            .contains("of this machine and its neighbours only")
    );
    let roles = "/latest/meta-data/iam/security-credentials/";
    let machine = Cloud::new(vec![
        ("PUT /latest/api/token ", "imds".into()),
        ("GET /latest/meta-data/iam/security-credentials/node ", keys),
        (
            "GET /latest/meta-data/iam/security-credentials/ ",
            "node".into(),
        ),
    ])
    .await;
    let values = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", machine.url.as_str())];
    let token = asked_for(aws(json!({"clusterName": "c"})), &values)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(presigned(&token).contains("Credential=POD%2F"));
    let asked = machine.asked();
    assert!(
        asked[2].0.starts_with(&format!("GET {roles}node "))
            && asked[2].0.contains("x-aws-ec2-metadata-token: imds"),
        "{asked:?}"
    );
    let none = asked_for(aws(json!({})), &[("AWS_EC2_METADATA_DISABLED", "true")])
        .await
        .err()
        .expect("none");
    assert!(
        none.starts_with("AWS: there are no credentials: "),
        "{none}"
    );
}

const GRANT: &str = r#"{"access_token": "granted", "expires_in": 3599, "token_type": "Bearer"}"#;

#[tokio::test]
async fn google_gives_tokens_to_machines_users_and_service_accounts() {
    let machine = Cloud::new(vec![(
        "GET /computeMetadata/v1/instance/service-accounts/default/token?scopes=https%3A",
        GRANT.into(),
    )])
    .await;
    let token = asked_for(Login::Gcp, &[("GCE_METADATA_HOST", &machine.url[7..])])
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(token.value == "granted" && machine.asked()[0].0.contains("metadata-flavor: Google"));

    let google = Cloud::new(vec![("POST /token ", GRANT.into())]).await;
    let uri = format!("{}/token", google.url);
    let user = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r", "token_uri": uri});
    let user = file("user.json", &user.to_string());
    asked_for(Login::Gcp, &[("GOOGLE_APPLICATION_CREDENTIALS", &user)])
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        google.asked()[0].1,
        "grant_type=refresh_token&refresh_token=r&client_id=c&client_secret=s"
    );

    let key = include_str!("../../../tests/keys/rsa.pem");
    let account = json!({"type": "service_account", "client_email": "a@b", "private_key_id": "1", "private_key": key, "token_uri": uri});
    let account = file("account.json", &account.to_string());
    asked_for(Login::Gcp, &[("GOOGLE_APPLICATION_CREDENTIALS", &account)])
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    let body = google.asked()[1].1.clone();
    let assertion = body.split_once("&assertion=").expect("an assertion").1;
    let parts: Vec<&str> = assertion.split('.').collect();
    let claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).expect("base64")).expect("JSON");
    assert_eq!(
        (parts.len(), claims["iss"].as_str(), claims["aud"].as_str()),
        (3, Some("a@b"), Some(uri.as_str()))
    );
    // 2,048 bits.
    assert_eq!(URL_SAFE_NO_PAD.decode(parts[2]).expect("base64").len(), 256);

    let federated = file("federated.json", r#"{"type": "external_account"}"#);
    let error = asked_for(
        Login::Gcp,
        &[("GOOGLE_APPLICATION_CREDENTIALS", &federated)],
    )
    .await
    .err()
    .expect("not supported");
    assert!(
        error.contains("credentials of type \"external_account\" are not supported"),
        "{error}"
    );
}

#[tokio::test]
async fn azure_gives_tokens_to_workloads_applications_and_machines() {
    let entra = Cloud::new(vec![("POST /tenant/oauth2/v2.0/token ", GRANT.into())]).await;
    let identity = file("federated", "jwt");
    let base = [
        ("AZURE_AUTHORITY_HOST", entra.url.as_str()),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "me"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&base, more].concat();
    let mut workload = base.to_vec();
    workload.push(("AZURE_FEDERATED_TOKEN_FILE", &identity));
    let token = asked_for(Login::Azure, &workload)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(token.value, "granted");
    asked_for(
        Login::Azure,
        &with(&[
            ("AAD_LOGIN_METHOD", "spn"),
            ("AZURE_CLIENT_SECRET", "s&s"),
            ("AAD_SERVER_APPLICATION_ID", "other"),
        ]),
    )
    .await
    .unwrap_or_else(|e| panic!("{e}"));
    let (asked, common) = (
        entra.asked(),
        "grant_type=client_credentials&client_id=me&scope=",
    );
    assert_eq!(
        asked[0].1,
        format!(
            "{common}6dae42f8-4368-4678-94ff-3960e28e3630%2F.default&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=jwt"
        )
    );
    assert_eq!(
        asked[1].1,
        format!("{common}other%2F.default&client_secret=s%26s")
    );

    // The metadata service returns the seconds as text.
    let machine = Cloud::new(vec![(
        "GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=6dae42f8",
        GRANT.replace("3599", "\"3599\""),
    )])
    .await;
    let values = [
        ("AAD_LOGIN_METHOD", "msi"),
        ("AZURE_POD_IDENTITY_AUTHORITY_HOST", machine.url.as_str()),
    ];
    let token = asked_for(Login::Azure, &values)
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(token.value == "granted" && machine.asked()[0].0.contains("metadata: true"));
    let error = asked_for(Login::Azure, &with(&[("AAD_LOGIN_METHOD", "devicecode")]))
        .await
        .err()
        .expect("nobody is there");
    assert_eq!(
        error,
        "Azure: AAD_LOGIN_METHOD devicecode is not supported; use workloadidentity, spn or msi"
    );
}

#[tokio::test]
async fn argo_cds_program_is_stood_in_for() {
    let cloud = Cloud::new(vec![("GET /computeMetadata", GRANT.into())]).await;
    let exec = json!({"command": "/usr/local/bin/argocd-k8s-auth", "args": ["gcp"], "env": {"GCE_METADATA_HOST": cloud.url[7..], "GOOGLE_APPLICATION_CREDENTIALS": "", "HOME": ""}});
    let tokens = Tokens::of_exec(&exec)
        .expect("it is its program")
        .unwrap_or_else(|e| panic!("{e}"));
    for _ in 0..3 {
        assert_eq!(tokens.header().await.expect("a token"), "Bearer granted");
    }
    assert_eq!(cloud.asked().len(), 1, "it is good for an hour");
    assert!(Tokens::of_exec(&json!({"command": "aws-iam-authenticator"})).is_none());
    let wrong = Tokens::of_exec(&json!({"command": "argocd-k8s-auth", "args": ["oci"]}))
        .expect("it is its program");
    assert_eq!(
        wrong.err().expect("no such cloud"),
        "argocd-k8s-auth: the first argument must be aws, gcp or azure"
    );
    let args = ["--cluster-name", "c", "--role-arn=r"];
    assert!(
        eks::Login::of_args(&args).is_ok() && eks::Login::of_args(&["--cluster-name"]).is_err()
    );
}

#[tokio::test]
async fn a_refusal_is_told_and_not_asked_for_again_at_once() {
    let cloud = Cloud::new(Vec::new()).await;
    let tokens = Tokens::new(Login::Gcp, env(&[("GCE_METADATA_HOST", &cloud.url[7..])]));
    for _ in 0..2 {
        let error = tokens.header().await.expect_err("refused").to_string();
        assert!(
            error.starts_with("no token for the cluster: Google Cloud: ")
                && error.ends_with("403 Forbidden: no"),
            "{error}"
        );
    }
    assert_eq!(cloud.asked().len(), 1);
}
