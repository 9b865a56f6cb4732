//! Requests over HTTP, signed for whom they say.
//!
//! Main type: [`Link`].

use super::{mail, nats};
use jiff::Timestamp;
use reqwest::{
    Client, Method, Url,
    header::HeaderValue,
    redirect::{Action, Attempt, Policy},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_cloud::{
    aws::{self, Identities},
    gcp,
    sigv4::{self, Keys, Scope},
};
use tiphys_notify::send::{Mail, Published, Request, Response, Signer, Transport};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Most of an answer that is read.
const ANSWER: usize = 1 << 20;
const CONNECT: Duration = Duration::from_secs(10);

/// How long one delivery may be tried again.
const LONGEST_DELIVERY: Duration = Duration::from_secs(300);

/// Most redirects of one request.
const REDIRECTS: usize = 10;

/// Follows a redirect that keeps the message and stays with the server that the configuration
/// names: 307 and 308 keep method and body. Any other is the answer, which is no success: after it
/// the message would be lost, or told to somebody else. That includes a 301, 302 or 303 of a GET,
/// after which Argo CD sends another GET, without the body.
fn within_server(attempt: Attempt<'_>) -> Action {
    let keeps = matches!(attempt.status().as_u16(), 307 | 308);
    let from = attempt.previous().last();
    let stays = from.is_some_and(|from| is_within(from, attempt.url()));
    if keeps && stays && attempt.previous().len() <= REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Whether a URL leads to the server of another one. With another scheme or port it does not, as the
/// client would leave out who asks, and the message would be sent by nobody.
fn is_within(from: &Url, to: &Url) -> bool {
    from.origin() == to.origin()
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("requests can not be sent: {0}")]
pub struct LinkError(#[from] reqwest::Error);

/// Two HTTP clients: one that checks certificates, and one that does not. They follow redirects
/// within a server only, because bodies and headers have credentials. Cheap to clone.
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
                .redirect(Policy::custom(within_server))
                // URLs may be secrets.
                .referer(false)
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
        self.waiting_until(runtime, CancellationToken::new(), || true)
    }

    /// A transport for a thread that may wait until the process ends, or it is no longer this
    /// replica that sends.
    pub(super) fn waiting_until<F: Fn() -> bool>(
        &self,
        runtime: Handle,
        end: CancellationToken,
        is_ours: F,
    ) -> impl Transport + use<F> {
        Waiting {
            link: self.clone(),
            runtime,
            end,
            is_ours,
            began: Instant::now(),
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
struct Waiting<F> {
    link: Link,
    runtime: Handle,
    end: CancellationToken,
    /// Another replica would send the same again.
    is_ours: F,
    /// There is one for each delivery.
    began: Instant,
}

impl<F: Fn() -> bool> Transport for Waiting<F> {
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
        let ended = self.end.cancelled();
        // Whether the process ends is asked for next.
        let _ = self
            .runtime
            .block_on(async { tokio::time::timeout(time, ended).await });
    }

    fn is_over(&self) -> bool {
        self.end.is_cancelled() || self.began.elapsed() > LONGEST_DELIVERY || !(self.is_ours)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
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

    /// A server that answers each request with a status and a location. Returns what it was sent.
    async fn redirecting(
        answers: Vec<(u16, &'static str)>,
    ) -> (String, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let task = tokio::spawn(async move {
            let mut asked = Vec::new();
            for (status, location) in answers {
                let (mut stream, _) = listener.accept().await.expect("a client");
                let (mut text, mut part) = (String::new(), vec![0; 8192]);
                while !text.ends_with('}') {
                    let read = stream.read(&mut part).await.expect("a request");
                    assert!(read > 0, "the request ends too early: {text}");
                    text.push_str(&String::from_utf8_lossy(&part[..read]));
                }
                asked.push(text);
                let answer = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\nlocation: {location}\r\n\
                     content-length: 0\r\n\r\n"
                );
                stream.write_all(answer.as_bytes()).await.expect("sent");
            }
            asked
        });
        (url, task)
    }

    #[tokio::test]
    async fn a_redirect_within_the_server_takes_the_message_along() {
        for status in [307, 308] {
            let (url, task) = redirecting(vec![(status, "/moved"), (200, "")]).await;
            let link = Link::new().expect("a link");
            let mut request = request(&format!("{url}/s3cret"), Signer::None);
            let signed = ("Authorization".to_owned(), "Bearer t".to_owned());
            request.headers.push(signed);
            let answer = link.send(&request).await;
            assert_eq!(answer.expect("an answer").status, 200);
            let asked = task.await.expect("asked");
            assert!(asked[1].starts_with("POST /moved "), "{}", asked[1]);
            assert!(asked[1].ends_with("{\"QueueName\":\"q\"}"), "{}", asked[1]);
            let again = asked[1].to_lowercase();
            assert!(again.contains("authorization: bearer t\r\n"), "{again}");
            assert!(!again.contains("s3cret"), "{again}");
        }
    }

    /// The last redirect has another status: it is the answer.
    #[tokio::test]
    async fn redirects_are_followed_a_few_times() {
        let mut answers = vec![(307, "/again"); REDIRECTS];
        answers.push((308, "/again"));
        let (url, _task) = redirecting(answers).await;
        let link = Link::new().expect("a link");
        let answer = link.send(&request(&url, Signer::None)).await;
        assert_eq!(answer.expect("an answer").status, 308);
    }

    /// After the first three the message would be lost, and the others lead to another server, where
    /// nobody listens.
    #[tokio::test]
    async fn other_redirects_are_answers() {
        for (status, location) in [
            (301, "/moved"),
            (302, "/moved"),
            (303, "/moved"),
            (307, "http://127.0.0.1:1/moved"),
            (308, "http://localhost:1/moved"),
        ] {
            let (url, task) = redirecting(vec![(status, location)]).await;
            let link = Link::new().expect("a link");
            let answer = link.send(&request(&url, Signer::None)).await;
            assert_eq!(answer.expect("an answer").status, status, "{location}");
            assert_eq!(task.await.expect("asked").len(), 1);
        }
    }

    #[test]
    fn the_end_of_the_process_ends_a_wait() {
        let runtime = tokio::runtime::Runtime::new().expect("threads");
        let link = Link::new().expect("a link");
        let end = CancellationToken::new();
        let ours = Cell::new(true);
        let mut transport =
            link.waiting_until(runtime.handle().clone(), end.clone(), || ours.get());
        transport.wait(Duration::ZERO);
        assert!(!transport.is_over());
        // Another replica has the lease meanwhile.
        ours.set(false);
        assert!(transport.is_over());
        ours.set(true);
        end.cancel();
        transport.wait(Duration::MAX);
        assert!(transport.is_over());
    }

    #[test]
    fn a_server_has_one_scheme_and_one_port() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        for (from, to, same) in [
            ("http://a.test/x", "http://a.test/y", true),
            ("http://a.test/x", "https://a.test/x", false),
            ("https://a.test/x", "https://a.test:443/y", true),
            ("https://a.test/x", "http://a.test/x", false),
            ("https://a.test/x", "https://b.test/x", false),
            ("https://a.test/x", "https://a.test:8443/x", false),
            ("http://a.test:8080/x", "https://a.test/x", false),
        ] {
            assert_eq!(is_within(&url(from), &url(to)), same, "{from} {to}");
        }
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
