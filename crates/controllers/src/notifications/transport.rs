//! Requests over HTTP, signed for whom they say.
//!
//! Main type: [`Link`].

use super::{mail, nats};
use jiff::Timestamp;
use reqwest::{Client, Method, Url, header::HeaderValue, redirect::Policy};
use std::{sync::Arc, time::Duration};
use tiphys_cloud::{
    aws::{self, Identities},
    gcp,
    sigv4::{self, Keys, Scope},
};
use tiphys_notify::send::{Mail, Published, Request, Response, Signer, Transport};
use tokio::runtime::Handle;

/// Most of an answer that is read.
const ANSWER: usize = 1 << 20;
const CONNECT: Duration = Duration::from_secs(10);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("requests can not be sent: {0}")]
pub struct LinkError(#[from] reqwest::Error);

/// Two HTTP clients: one that checks certificates, and one that does not. They follow no redirects,
/// because bodies and headers have credentials that may not reach another host. Cheap to clone.
#[derive(Clone)]
pub struct Link {
    careful: Arc<Client>,
    careless: Arc<Client>,
    aws: Arc<Identities>,
    google: Arc<gcp::Tokens>,
}

impl Link {
    /// # Errors
    /// If the system's certificates can not be read.
    pub fn new() -> Result<Self, LinkError> {
        Self::with(Identities::default(), gcp::Tokens::default())
    }

    /// With who this process is at cloud providers.
    fn with(aws: Identities, google: gcp::Tokens) -> Result<Self, LinkError> {
        // An error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .redirect(Policy::none())
                .connect_timeout(CONNECT)
                .user_agent(concat!("tiphys-notifications/", env!("CARGO_PKG_VERSION")))
        };
        let careless = builder().tls_danger_accept_invalid_certs(true);
        Ok(Self {
            careful: Arc::new(builder().build()?),
            careless: Arc::new(careless.build()?),
            aws: Arc::new(aws),
            google: Arc::new(google),
        })
    }

    /// A transport for a thread that may wait.
    pub fn waiting(&self, runtime: Handle) -> impl Transport {
        Waiting {
            link: self.clone(),
            runtime,
        }
    }

    /// The headers that tell whom a request is from.
    async fn signature(&self, request: &Request) -> Result<Vec<(&'static str, String)>, String> {
        match &request.signer {
            Signer::None => Ok(Vec::new()),
            Signer::Aws {
                region,
                service,
                keys: Some((id, secret)),
            } => {
                let keys = Keys {
                    id: id.clone(),
                    secret: secret.clone(),
                    session: None,
                    until: None,
                };
                scoped(request, (&keys, region, service), Timestamp::now())
            }
            Signer::Aws {
                region,
                service,
                keys: None,
            } => {
                let login = aws::Login {
                    region,
                    ..aws::Login::default()
                };
                let identity = self.aws.of(login).await.map_err(|e| format!("AWS: {e}"))?;
                let of = (&identity.keys, region.as_str(), *service);
                scoped(request, of, Timestamp::now())
            }
            Signer::Google { key_file } => {
                let token = self.google.of(key_file).await;
                let token = token.map_err(|e| format!("Google Cloud: {e}"))?;
                Ok(vec![("authorization", format!("Bearer {}", token.value))])
            }
        }
    }

    async fn send(&self, request: &Request) -> Result<Response, String> {
        // No URL: it may be a secret.
        let told = |error: reqwest::Error| chain(&error.without_url());
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| format!("{:?} is not a method", request.method))?;
        let client = if request.insecure {
            &self.careless
        } else {
            &self.careful
        };
        let mut built = client
            .request(method, &request.url)
            .timeout(request.timeout)
            .body(request.body.clone());
        for (name, value) in &request.headers {
            built = built.header(name, value);
        }
        for (name, value) in self.signature(request).await? {
            let value = HeaderValue::try_from(value);
            let mut value = value.map_err(|_| format!("the header {name} has a bad value"))?;
            value.set_sensitive(true);
            built = built.header(name, value);
        }
        let mut answer = built.send().await.map_err(told)?;
        let retry_after = answer.headers().get(reqwest::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(told)? {
            let room = ANSWER.saturating_sub(body.len());
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() >= ANSWER {
                break;
            }
        }
        Ok(Response {
            status: answer.status().as_u16(),
            body,
            retry_after: retry_after.map(Duration::from_secs),
        })
    }
}

/// What is signed of a request by AWS' rules: that its URL has no query is for its sender to see to.
fn scoped(
    request: &Request,
    (keys, region, service): (&Keys, &str, &str),
    now: Timestamp,
) -> Result<Vec<(&'static str, String)>, String> {
    // As it is sent.
    let url = Url::parse(&request.url).map_err(|_| "the URL cannot be read".to_owned())?;
    let host = sigv4::host(&url);
    let headers: Vec<(String, &str)> = request
        .headers
        .iter()
        .map(|(name, value)| (name.to_lowercase(), value.as_str()))
        .collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    let scope = Scope {
        keys,
        region,
        service,
        now,
    };
    Ok(scope.headers(sigv4::Request {
        method: &request.method,
        host: &host,
        path: url.path(),
        headers: &headers,
        body: &request.body,
    }))
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The link as a thread that may wait uses it.
struct Waiting {
    link: Link,
    runtime: Handle,
}

impl Transport for Waiting {
    fn exchange(&mut self, request: &Request) -> Result<Response, String> {
        self.runtime.block_on(self.link.send(request))
    }

    fn mail(&mut self, mail: &Mail) -> Result<(), String> {
        mail::send(mail, jiff::Timestamp::now())
    }

    fn publish(&mut self, message: &Published) -> Result<(), String> {
        self.runtime.block_on(nats::publish(message))
    }

    fn wait(&mut self, time: Duration) {
        self.runtime.block_on(tokio::time::sleep(time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_cloud::Env;
    use tokio::{io::AsyncReadExt as _, io::AsyncWriteExt as _, net::TcpListener};

    fn request(url: &str, signer: Signer) -> Request {
        Request {
            method: "POST".to_owned(),
            url: url.to_owned(),
            headers: vec![
                ("Content-Type".into(), "application/x-amz-json-1.0".into()),
                ("X-Amz-Target".into(), "AmazonSQS.GetQueueUrl".into()),
            ],
            body: b"{\"QueueName\":\"q\"}".to_vec(),
            signer,
            insecure: false,
            timeout: Duration::from_secs(10),
        }
    }

    /// The signature was computed by another program from the rules that AWS publishes.
    #[test]
    fn the_signature_covers_the_request() {
        let keys = Keys {
            id: "AKID".into(),
            secret: "s3cret".into(),
            session: None,
            until: None,
        };
        let now = "2026-01-02T03:04:05Z".parse().expect("a time");
        let request = request("https://sqs.eu-west-1.amazonaws.com/", Signer::None);
        let headers = scoped(&request, (&keys, "eu-west-1", "sqs"), now).expect("headers");
        let authorization = "AWS4-HMAC-SHA256 Credential=AKID/20260102/eu-west-1/sqs/aws4_request, \
            SignedHeaders=content-type;host;x-amz-date;x-amz-target, \
            Signature=89054476e7c62054b3a0016f5c2df3e4265dd1ef80aed112ce2031a52ffb7a12";
        let expected = [
            ("x-amz-date", "20260102T030405Z".to_owned()),
            ("authorization", authorization.to_owned()),
        ];
        assert_eq!(headers, expected);
    }

    /// A server that answers three requests alike: as OAuth servers and as containers' credentials.
    /// Returns what it was sent.
    async fn server() -> (String, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let task = tokio::spawn(async move {
            let mut asked = Vec::new();
            while asked.len() < 3 {
                let (mut stream, _) = listener.accept().await.expect("a client");
                let mut text = vec![0; 8192];
                let read = stream.read(&mut text).await.expect("a request");
                asked.push(String::from_utf8_lossy(&text[..read]).to_lowercase());
                let body = r#"{"access_token": "granted", "expires_in": 3600,
                    "AccessKeyId": "AKPOD", "SecretAccessKey": "s", "Token": "pod-session"}"#;
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.expect("sent");
            }
            asked
        });
        (url, task)
    }

    fn env(values: &[(&str, &str)]) -> Env {
        let nothing = [
            "HOME",
            "AWS_ACCESS_KEY_ID",
            "AWS_CONFIG_FILE",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_PROFILE",
            "AWS_SHARED_CREDENTIALS_FILE",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
        ];
        let nothing = nothing.iter().map(|name| (*name, ""));
        let values = nothing.chain(values.iter().copied());
        Env::with(
            values
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }

    #[tokio::test]
    async fn a_pods_identity_signs_many_messages() {
        let (url, task) = server().await;
        let address = format!("{url}/credentials");
        let aws = env(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &address)]);
        let link = Link::with(Identities::new(aws), gcp::Tokens::default()).expect("a link");
        let signer = Signer::Aws {
            region: "eu-west-1".to_owned(),
            service: "sqs",
            keys: None,
        };
        for _ in 0..2 {
            let request = request(&format!("{url}/"), signer.clone());
            assert_eq!(link.send(&request).await.expect("an answer").status, 200);
        }
        let asked = task.await.expect("asked");
        assert!(asked[0].starts_with("get /credentials "), "{}", asked[0]);
        for sent in &asked[1..] {
            for part in [
                "authorization: aws4-hmac-sha256 credential=akpod/",
                "/eu-west-1/sqs/aws4_request, ",
                "x-amz-security-token: pod-session\r\n",
            ] {
                assert!(sent.contains(part), "{part}: {sent}");
            }
        }
    }

    #[tokio::test]
    async fn a_machines_identity_has_a_token() {
        let (url, task) = server().await;
        let host = url.trim_start_matches("http://").to_owned();
        let google = env(&[
            ("GCE_METADATA_HOST", &host),
            ("GOOGLE_APPLICATION_CREDENTIALS", ""),
        ]);
        let link = Link::with(Identities::default(), gcp::Tokens::new(google)).expect("a link");
        let signer = Signer::Google {
            key_file: String::new(),
        };
        for _ in 0..2 {
            let request = request(&format!("{url}/publish"), signer.clone());
            assert_eq!(link.send(&request).await.expect("an answer").status, 200);
        }
        let asked = task.await.expect("asked");
        assert!(
            asked[0].starts_with("get /computemetadata/v1/"),
            "{}",
            asked[0]
        );
        assert!(
            asked[2].contains("authorization: bearer granted\r\n"),
            "{}",
            asked[2]
        );
    }

    #[tokio::test]
    async fn a_key_file_gives_one_token_for_many_messages() {
        let (url, task) = server().await;
        let file = std::env::temp_dir().join(format!("tiphys-pubsub-{}", std::process::id()));
        let user = serde_json::json!({
            "type": "authorized_user", "client_id": "c", "client_secret": "s",
            "refresh_token": "r", "token_uri": format!("{url}/token"),
        });
        std::fs::write(&file, user.to_string()).expect("written");
        let signer = Signer::Google {
            key_file: file.to_str().expect("a path").to_owned(),
        };
        let link = Link::new().expect("a link");
        for _ in 0..2 {
            let request = request(&format!("{url}/publish"), signer.clone());
            assert_eq!(link.send(&request).await.expect("an answer").status, 200);
        }
        let asked = task.await.expect("asked");
        assert!(asked[0].starts_with("post /token "), "{}", asked[0]);
        for sent in &asked[1..] {
            assert!(sent.starts_with("post /publish "), "{sent}");
            assert!(sent.contains("authorization: bearer granted\r\n"), "{sent}");
        }
        std::fs::remove_file(file).expect("removed");
    }

    #[tokio::test]
    async fn what_cannot_be_signed_is_not_sent() {
        let link = Link::new().expect("a link");
        let signer = Signer::Google {
            key_file: "/nonexistent/key.json".to_owned(),
        };
        let failed = link.send(&request("http://127.0.0.1:1/", signer)).await;
        let told = failed.expect_err("no key");
        assert!(
            told.starts_with("Google Cloud: /nonexistent/key.json: "),
            "{told}"
        );
    }
}
